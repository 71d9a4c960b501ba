//===- host.cpp - What stays on the host ----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Queues and threads; transfers are in device/transfers.cpp. No work is done under the
// mutex, and nobody is told anything under it.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/host.h"

#include "runtime/device/lane.h"
#include "runtime/support/thread_pool.h"

#include <time.h>

#include <cstring>
#include <utility>

namespace boa {

int64_t Host::Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

Host::Host(const Program &program, const boa_optimizer *optimizer, StateStore *state,
           const CpuOptions &options)
    : program(program), state(state), options(options), updates(program, optimizer) {}

absl::Status Host::Start(const Memory &reached, DeviceListener *new_listener, FarSums *sums_there) {
  memory = &reached;
  listener = new_listener;
  far = sums_there;
  if (state) {
    auto [arena, size] = memory->HostArena();
    auto backend = state->Disk().CreateIo(state->Files(), state->Links(), arena, size, options.io);
    if (!backend.ok())
      return backend.status();
    io = std::move(*backend);
  }
  if (options.scheduler)
    return absl::OkStatus();
  absl::Status status = Add([this] { OptimizerLoop(); });
  // One thread makes checksums as fast as a disk moves data.
  for (int64_t i = 0; state && i < (Threads() + 7) / 8 && status.ok(); ++i)
    status = Add([this] { SumLoop(); });
  return status;
}

absl::Status Host::Add(std::function<void()> loop) {
  std::thread thread;
  absl::Status status = StartThread(kEngineThreads, thread, std::move(loop));
  if (status.ok())
    threads.push_back(std::move(thread));
  return status;
}

void Host::Stop() {
  io.reset(); // its last word is in a queue of sums, or with the listener
  {
    MutexLock lock(mutex);
    stopping = true;
    optimizer.added.NotifyAll();
    sums.added.NotifyAll();
  }
  for (std::thread &thread : threads)
    thread.join();
  threads.clear();
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

void Host::Submit(Work &work) {
  if (work.IsTransfer())
    return Transfer(work);
  MutexLock lock(mutex);
  (work.IsFill() ? fills : optimizer).items.push_back(&work);
  optimizer.added.NotifyOne();
}

void Host::Cancel() {
  if (io)
    io->Cancel();
  std::vector<Work *> over;
  {
    MutexLock lock(mutex);
    for (Queue<Work *> *queue : {&optimizer, &fills}) {
      over.insert(over.end(), queue->items.begin(), queue->items.end());
      queue->items.clear();
    }
  }
  const int64_t now = Now();
  for (Work *work : over)
    listener->Done(*work, now, now, absl::CancelledError("not begun"));
}

void Host::OptimizerLoop() {
  MutexLock lock(mutex);
  while (true) {
    while (!stopping && optimizer.items.empty() && fills.items.empty())
      optimizer.added.Wait(mutex);
    if (stopping)
      return;
    const bool fill = !fills.items.empty();
    Work *work = (fill ? fills : optimizer).Take();
    MutexUnlock unlocked(mutex);
    fill ? Fill(*work) : RunUpdate(*work);
  }
}

size_t Host::Choices() {
  MutexLock lock(mutex);
  return !optimizer.items.empty() + fills.items.size() + sums.items.size() + (io && io->Pending());
}

void Host::Do(size_t choice) {
  MutexLock lock(mutex);
  const size_t updates_ready = !optimizer.items.empty();
  if (choice < updates_ready) {
    Work *work = optimizer.Take();
    MutexUnlock unlocked(mutex);
    return RunUpdate(*work);
  }
  if ((choice -= updates_ready) < fills.items.size()) {
    Work *work = fills.Take(choice);
    MutexUnlock unlocked(mutex);
    return Fill(*work);
  }
  if ((choice -= fills.items.size()) < sums.items.size()) {
    const Sum sum = sums.Take(choice);
    MutexUnlock unlocked(mutex);
    return MakeSum(sum);
  }
  MutexUnlock unlocked(mutex);
  if (io)
    io->Advance();
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

void Host::RunUpdate(Work &work) {
  const Memory::Side side = program.UpdatesOnDevice() ? Memory::Side::device : Memory::Side::host;
  std::vector<char *> addresses;
  for (const Location &buffer : work.buffers)
    addresses.push_back(memory->Address(side, buffer));
  absl::Status status;
  const int64_t begin = Now();
  if (work.kind == Work::Kind::update)
    status = updates.Update(work, addresses);
  else if (work.kind == Work::Kind::norm)
    updates.Norm(work, reinterpret_cast<const float *>(addresses[0]));
  else
    status = updates.FinishNorm(work.step);
  listener->Done(work, begin, Now(), std::move(status));
}

void Host::Fill(Work &work) {
  const int64_t begin = Now();
  RunFill(work, *memory);
  listener->Done(work, begin, Now(), absl::OkStatus());
}

/// Copies, or fills with zeros where `from` is null; what is large on all threads.
static void FillBytes(char *to, const char *from, int64_t bytes) {
  constexpr int64_t kPart = 1 << 20;
  struct Fill {
    char *to;
    const char *from;
  } fill{to, from};
  auto run = [](void *data, int64_t begin, int64_t end) {
    const Fill &fill = *static_cast<const Fill *>(data);
    if (fill.from)
      std::memcpy(fill.to + begin, fill.from + begin, end - begin);
    else
      std::memset(fill.to + begin, 0, end - begin);
  };
  // A small fill does not wait for the loop of a kernel.
  if (bytes < 4 * kPart)
    run(&fill, 0, bytes);
  else
    ParallelFor(bytes, kPart, run, &fill);
}

void RunFill(const Work &work, const Memory &memory) {
  auto at = [&](size_t i) { return memory.Address(Memory::Side::copies, work.buffers[i]); };
  char *const outside = static_cast<char *>(work.outside);
  if (work.kind == Work::Kind::zero)
    FillBytes(at(0), nullptr, work.bytes);
  else if (work.kind == Work::Kind::copy)
    FillBytes(at(1), at(0), work.bytes);
  else if (work.kind == Work::Kind::copy_in)
    FillBytes(at(0), outside, work.bytes);
  else
    FillBytes(outside, at(0), work.bytes);
}

} // namespace boa
