//===- world.cpp - Ranks on any engine, for tests -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/comm/world.h"

#include <cstdlib>
#include <thread>

namespace boa {

std::vector<std::string> Engines() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE"))
    return {"mpi"};
  return {"threads", "tcp", "simulated"};
}

std::vector<std::unique_ptr<Comm>> OpenTcp(int32_t ranks, std::chrono::milliseconds timeout) {
  TcpOptions options;
  options.ranks = ranks;
  options.timeout = timeout;
  options.root = "127.0.0.1:0";
  const absl::StatusOr<int> listening = ListenTcp(options.root);
  EXPECT_EQ(listening.status(), absl::OkStatus());
  auto comms = std::vector<std::unique_ptr<Comm>>(size_t(ranks));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank, options]() mutable {
      options.rank = rank;
      options.listening = rank == 0 ? *listening : -1;
      absl::StatusOr<std::unique_ptr<Comm>> comm = CreateTcpComm(options);
      ASSERT_EQ(comm.status(), absl::OkStatus());
      comms[rank] = *std::move(comm);
    });
  for (std::thread &thread : threads)
    thread.join();
  return comms;
}

/// MPI starts once a process, so its tests share it.
static std::unique_ptr<Comm> of_mpirun;

static std::unique_ptr<Comm> TakeMpi() {
  if (of_mpirun)
    return std::move(of_mpirun);
  absl::StatusOr<std::unique_ptr<Comm>> opened = CreateMpiComm();
  EXPECT_EQ(opened.status(), absl::OkStatus());
  return *std::move(opened);
}

World::World(const std::string &engine, int32_t ranks) {
  if (engine == "threads") {
    comms = *CreateThreadComms(ranks);
  } else if (engine == "tcp") {
    comms = OpenTcp(ranks, std::chrono::seconds(60));
  } else if (engine == "mpi") {
    std::unique_ptr<Comm> own = TakeMpi();
    comms.resize(size_t(own->ranks()));
    const int32_t rank = own->rank();
    comms[rank] = std::move(own);
  } else {
    network = std::make_unique<SimulatedNetwork>(ranks, 1);
    comms = network->Open();
  }
}

World::~World() {
  for (std::unique_ptr<Comm> &comm : comms)
    if (comm && std::getenv("OMPI_COMM_WORLD_SIZE"))
      of_mpirun = std::move(comm);
  comms.clear(); // their callbacks use this world
}

int World::Submit(int32_t rank, std::vector<Message> sends, std::vector<Message> receives) {
  if (!Has(rank))
    return -1;
  int number = 0;
  {
    std::lock_guard<std::mutex> lock(mutex);
    number = submitted++;
  }
  comms[rank]->Submit({std::move(sends), std::move(receives), [this, number](absl::Status status) {
                         std::lock_guard<std::mutex> lock(mutex);
                         EXPECT_TRUE(complete.emplace(number, std::move(status)).second);
                         changed.notify_all();
                       }});
  return number;
}

bool World::IsComplete(int number) {
  std::lock_guard<std::mutex> lock(mutex);
  return complete.count(number) > 0;
}

absl::Status World::Wait(int number) {
  if (number < 0)
    return absl::OkStatus();
  while (network && !IsComplete(number) && network->Step()) {
  }
  std::unique_lock<std::mutex> lock(mutex);
  if (!changed.wait_for(lock, std::chrono::seconds(network ? 0 : 60),
                        [&] { return complete.count(number) > 0; }))
    return absl::UnknownError("it does not end");
  return complete[number];
}

void World::WaitForAll() {
  for (int number = 0; number < submitted; ++number)
    EXPECT_EQ(Wait(number), absl::OkStatus());
}

} // namespace boa
