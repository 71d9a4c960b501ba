//===- cpu.cpp - A device of threads --------------------------------------===//
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
#include "runtime/device/cpu.h"

#include "runtime/kernels/isa.h"
#include "runtime/thread_pool.h"

#include "absl/strings/str_cat.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace boa {

CpuDevice::CpuDevice(const Program &program, const boa_kernel *kernels, StateStore *state,
                     const CpuOptions &options)
    : program(program), kernels(kernels), state(state), options(options),
      memory(program.machine.separate ? CreateSplitMemory() : CreateUnifiedMemory()),
      updates(program) {}

std::unique_ptr<Device> CreateCpuDevice(const Program &program, const boa_kernel *kernels,
                                        StateStore *state, const CpuOptions &options) {
  return std::make_unique<CpuDevice>(program, kernels, state, options);
}

int64_t CpuDevice::Now() const {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

absl::Status CpuDevice::Start(const int64_t (&bytes)[2], Location at, DeviceListener *told) {
  listener = told;
  SetThreads(options.scheduler ? 1 : program.machine.threads);
  if (const char *isa = std::getenv("BOA_CPU"))
    if (absl::Status status = UseIsa(isa); !status.ok())
      return absl::Status(status.code(), absl::StrCat("BOA_CPU=", isa, ": ", status.message()));
  if (absl::Status status = memory->Allocate(bytes); !status.ok())
    return status;
  workspace = memory->Address(CpuMemory::Side::device, at);
  size_t most = 0;
  for (const Kernel &kernel : program.kernels)
    most = std::max(most, kernel.buffers.size());
  kernel_buffers.resize(most);
  if (state) {
    auto [arena, size] = memory->HostArena();
    auto backend = state->Disk().CreateIo(state->Files(), state->Links(), arena, size, options.io);
    if (!backend.ok())
      return backend.status();
    io = std::move(*backend);
  }
  if (options.scheduler)
    return absl::OkStatus();
  try {
    threads.emplace_back([this] { Loop(compute, &CpuDevice::RunKernel); });
    threads.emplace_back([this] { OptimizerLoop(); });
    if (program.machine.separate)
      threads.emplace_back([this] { Loop(copies, &CpuDevice::RunFill); });
    // One sums what a fast disk moves.
    for (int64_t i = 0; state && i < (Threads() + 7) / 8; ++i)
      threads.emplace_back([this] { SumLoop(); });
  } catch (const std::system_error &error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the engine's threads: ", error.code().message(),
                     ": allow the process more threads (ulimit -u) or more memory"));
  }
  return absl::OkStatus();
}

CpuDevice::~CpuDevice() {
  io.reset(); // its last word is in a queue of sums, or with the listener
  {
    std::lock_guard lock(mutex);
    stopping = true;
    compute.added.notify_all();
    optimizer.added.notify_all();
    copies.added.notify_all();
    sums.added.notify_all();
  }
  for (std::thread &thread : threads)
    thread.join();
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

CpuDevice::Queue<Work *> &CpuDevice::QueueOf(const Work &work) {
  if (work.kind == Work::Kind::kernel)
    return compute;
  if (!work.IsFill())
    return optimizer;
  const bool between =
      work.kind == Work::Kind::copy && work.buffers[0].space != work.buffers[1].space;
  return between ? copies : fills;
}

void CpuDevice::Submit(Work &work) {
  if (work.IsTransfer())
    return Transfer(work);
  std::lock_guard lock(mutex);
  Queue<Work *> &queue = QueueOf(work);
  queue.items.push_back(&work);
  (&queue == &fills ? optimizer : queue).added.notify_one();
}

void CpuDevice::Cancel() {
  std::vector<Work *> over;
  {
    std::lock_guard lock(mutex);
    for (Queue<Work *> *queue : {&compute, &optimizer, &fills, &copies}) {
      over.insert(over.end(), queue->items.begin(), queue->items.end());
      queue->items.clear();
    }
  }
  const int64_t now = Now();
  for (Work *work : over)
    listener->Done(*work, now, now, absl::CancelledError("not begun"));
}

void CpuDevice::Loop(Queue<Work *> &queue, void (CpuDevice::*how)(Work &)) {
  std::unique_lock lock(mutex);
  while (true) {
    queue.added.wait(lock, [&] { return stopping || !queue.items.empty(); });
    if (stopping)
      return;
    Work *work = queue.Take();
    lock.unlock();
    (this->*how)(*work);
    lock.lock();
  }
}

void CpuDevice::OptimizerLoop() {
  std::unique_lock lock(mutex);
  while (true) {
    optimizer.added.wait(
        lock, [&] { return stopping || !optimizer.items.empty() || !fills.items.empty(); });
    if (stopping)
      return;
    const bool fill = !fills.items.empty();
    Work *work = (fill ? fills : optimizer).Take();
    lock.unlock();
    fill ? RunFill(*work) : RunUpdate(*work);
    lock.lock();
  }
}

/// Does one of the things that could happen next, the one that the scheduler chooses.
bool CpuDevice::Advance() {
  if (!options.scheduler)
    return false;
  std::unique_lock lock(mutex);
  const size_t kernels_ready = !compute.items.empty(), updates_ready = !optimizer.items.empty();
  const size_t landings = io && io->Pending();
  const size_t count = kernels_ready + updates_ready + fills.items.size() + copies.items.size() +
                       sums.items.size() + landings;
  if (count == 0)
    return false;
  size_t choice = options.scheduler->Choose(count);
  auto run = [&](Queue<Work *> &queue, size_t which, void (CpuDevice::*how)(Work &)) {
    Work *work = queue.Take(which);
    lock.unlock();
    (this->*how)(*work);
    return true;
  };
  if (choice < kernels_ready)
    return run(compute, 0, &CpuDevice::RunKernel);
  if ((choice -= kernels_ready) < updates_ready)
    return run(optimizer, 0, &CpuDevice::RunUpdate);
  if ((choice -= updates_ready) < fills.items.size())
    return run(fills, choice, &CpuDevice::RunFill);
  if ((choice -= fills.items.size()) < copies.items.size())
    return run(copies, choice, &CpuDevice::RunFill);
  if ((choice -= copies.items.size()) < sums.items.size()) {
    const Sum sum = sums.Take(choice);
    lock.unlock();
    MakeSum(sum);
    return true;
  }
  lock.unlock();
  io->Advance();
  return true;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

void CpuDevice::RunKernel(Work &work) {
  for (size_t i = 0; i < work.buffers.size(); ++i)
    kernel_buffers[i] = memory->Address(CpuMemory::Side::device, work.buffers[i]);
  const int64_t begin = Now();
  kernels[work.index](kernel_buffers.data(), workspace, nullptr);
  listener->Done(work, begin, Now(), absl::OkStatus());
}

void CpuDevice::RunUpdate(Work &work) {
  auto host = [&](size_t i) { return memory->Address(CpuMemory::Side::host, work.buffers[i]); };
  absl::Status status;
  const int64_t begin = Now();
  if (work.kind == Work::Kind::update)
    status = updates.Update(work, {host(0), host(1), host(2), host(3), host(4)});
  else if (work.kind == Work::Kind::norm)
    updates.Norm(work, reinterpret_cast<const float *>(host(0)));
  else
    status = updates.FinishNorm(work.step);
  listener->Done(work, begin, Now(), std::move(status));
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
  // What is small does not wait for a kernel's loop.
  if (bytes < 4 * kPart)
    run(&fill, 0, bytes);
  else
    ParallelFor(bytes, kPart, run, &fill);
}

/// Zeros or copies.
void CpuDevice::RunFill(Work &work) {
  auto at = [&](size_t i) { return memory->Address(CpuMemory::Side::copies, work.buffers[i]); };
  const int64_t begin = Now();
  char *const outside = static_cast<char *>(work.outside);
  if (work.kind == Work::Kind::zero)
    FillBytes(at(0), nullptr, work.bytes);
  else if (work.kind == Work::Kind::copy)
    FillBytes(at(1), at(0), work.bytes);
  else if (work.kind == Work::Kind::copy_in)
    FillBytes(at(0), outside, work.bytes);
  else
    FillBytes(outside, at(0), work.bytes);
  listener->Done(work, begin, Now(), absl::OkStatus());
}

} // namespace boa
