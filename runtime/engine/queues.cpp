//===- engine/queues.cpp - Where commands run -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels on the compute thread, updates, zeros and copies on the optimizer
// thread; or, with a scheduler, all on the thread that waits. No work is done under
// the mutex. What updates do is in engine/updates.cpp, transfers are in
// engine/transfers.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/impl.h"

#include <utility>

namespace boa {

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

void Engine::Impl::Record(TraceEvent::Row row, const Command &command, const std::string &name,
                          int64_t end_ns, int64_t bytes, int32_t link) {
  if (!options.trace)
    return;
  TraceEvent event{row, link, name, command.begin_ns, end_ns, bytes};
  if (trace.size() < size_t(options.trace_events))
    trace.push_back(std::move(event));
  else
    trace[trace_next++ % trace.size()] = std::move(event);
}

void Engine::Impl::RunKernel(const Command &command) {
  for (size_t i = 0; i < command.buffers.size(); ++i)
    kernel_buffers[i] =
        command.buffers[i] ? Address(*command.buffers[i], command.firsts[i]) : nullptr;
  kernels[command.index](kernel_buffers.data(), workspace);
}

void Engine::Impl::ComputeLoop() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (!error.ok())
      Abandon();
    if (KernelReady()) {
      DoKernel(lock);
      continue;
    }
    if (compute.empty()) {
      changed.wait(lock);
      continue;
    }
    CommandRef command = compute.front();
    int64_t begin = Now();
    changed.wait(lock, [&] { return command->unmet == 0 || stopping || !error.ok(); });
    double waited = double(Now() - begin) * 1e-9;
    Counters &counted = counters[command->run];
    if (command->cause == Cause::read)
      counted.waited_read += waited;
    else if (command->cause == Cause::write)
      counted.waited_write += waited;
    else if (command->cause == Cause::optimizer)
      counted.waited_optimizer += waited;
  }
}

/// Runs the next kernel, which is ready.
void Engine::Impl::DoKernel(std::unique_lock<std::mutex> &lock) {
  CommandRef command = std::move(compute.front());
  compute.pop_front();
  computing = true;
  lock.unlock();
  command->begin_ns = Now();
  RunKernel(*command);
  int64_t end = Now();
  lock.lock();
  computing = false;
  counters[command->run].compute_seconds += double(end - command->begin_ns) * 1e-9;
  Record(TraceEvent::Row::compute, *command, program.kernels[command->index].name, end, 0);
  Complete(command);
  Submit(lock);
  changed.notify_all();
}

/// After an error nothing more is begun.
void Engine::Impl::Abandon() {
  compute.clear();
  optimizer.clear();
  fills.clear();
}

void Engine::Impl::OptimizerLoop() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (!error.ok())
      Abandon();
    if (!fills.empty())
      DoFill(lock, 0);
    else if (UpdateReady())
      DoUpdate(lock);
    else
      changed.wait(lock);
  }
}

/// Runs the next update or norm, which is ready.
void Engine::Impl::DoUpdate(std::unique_lock<std::mutex> &lock) {
  CommandRef command = std::move(optimizer.front());
  optimizer.pop_front();
  DoOptimizer(lock, command);
}

/// Runs one of the fills: they do not depend on one another.
void Engine::Impl::DoFill(std::unique_lock<std::mutex> &lock, size_t which) {
  CommandRef command = std::move(fills[which]);
  fills.erase(fills.begin() + which);
  DoOptimizer(lock, command);
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

/// Without threads: does one of the things that could happen next, the one that
/// the scheduler chooses. False: there is none.
bool Engine::Impl::Advance(std::unique_lock<std::mutex> &lock) {
  if (!error.ok() || stopping)
    Abandon();
  const size_t kernels = KernelReady(), updates = UpdateReady(), landings = io && io->Pending();
  const size_t count = kernels + updates + fills.size() + sums.size() + landings;
  if (count == 0)
    return false;
  size_t choice = options.scheduler->Choose(count);
  if (choice < kernels) {
    DoKernel(lock);
  } else if ((choice -= kernels) < updates) {
    DoUpdate(lock);
  } else if ((choice -= updates) < fills.size()) {
    DoFill(lock, choice);
  } else if ((choice -= fills.size()) < sums.size()) {
    DoSum(lock, choice);
  } else {
    lock.unlock();
    io->Advance();
    lock.lock();
  }
  return true;
}

template <typename Condition>
void Engine::Impl::Await(std::unique_lock<std::mutex> &lock, Condition over) {
  if (!options.scheduler)
    return changed.wait(lock, over);
  while (!over())
    if (!Advance(lock))
      changed.wait(lock); // for a backend that has threads
}

/// What is under way cannot be stopped: the memory and the kernels are the
/// engine's until it is over.
void Engine::Impl::Stop() {
  {
    std::unique_lock lock(mutex);
    stopping = true;
    changed.notify_all();
    Await(lock, [&] { return transfers == 0; });
    transfers_over = true;
    sums_added.notify_all();
  }
  if (compute_thread.joinable())
    compute_thread.join();
  if (optimizer_thread.joinable())
    optimizer_thread.join();
  for (std::thread &thread : sum_threads)
    thread.join();
}

/// Nothing runs and nothing can: the program needs more slots than it has.
bool Engine::Impl::Stuck() const {
  return !incomplete.empty() && transfers == 0 && !computing && !updating && fills.empty() &&
         to_submit.empty() && !KernelReady() && !UpdateReady();
}

/// Waits until the condition holds, or an error has come to rest.
template <typename Condition> absl::Status Engine::Impl::WaitFor(Condition condition) {
  std::unique_lock lock(mutex);
  Submit(lock);
  Await(lock, [&] {
    if (error.ok() && Stuck())
      Fail(absl::InternalError("the program waits for a slot that nothing will give back"));
    return error.ok() ? condition() : !computing && !updating && transfers == 0;
  });
  return error;
}

absl::Status Engine::Impl::Drain() {
  return WaitFor([&] { return incomplete.empty(); });
}

absl::Status Engine::Wait(int64_t run, double share) {
  return impl->WaitFor([&] {
    auto &progress = impl->progress;
    while (!progress.empty() && progress.begin()->first <= run && progress.begin()->second.Done())
      progress.erase(progress.begin());
    if (progress.empty() || progress.begin()->first > run)
      return true;
    const auto &[oldest, left] = *progress.begin();
    return oldest == run && double(left.kernels_left) <= share * double(left.kernels) && share > 0;
  });
}

} // namespace boa
