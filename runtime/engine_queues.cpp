//===- engine_queues.cpp - Where commands run -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels on the compute thread, updates, zeros and copies on the optimizer
// thread; or, with a scheduler, all on the thread that waits. No work is done under
// the mutex. Transfers are in engine_transfers.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine_impl.h"

#include "runtime/optimizer.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <cstring>
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
    kernel_buffers[i] = command.buffers[i] ? command.buffers[i]->base : nullptr;
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

void Engine::Impl::RunUpdate(const Command &command, double clip) {
  const Group &group = program.groups[command.index];
  const Optimizer &config = program.optimizer;
  UpdateConstants constants;
  constants.adamw = config.kind == "adamw";
  constants.rate = float(LearningRate(config, command.step, program.training.steps));
  constants.beta1 = float(config.beta1);
  constants.beta2 = float(config.beta2);
  constants.eps = float(config.eps);
  constants.momentum = float(config.momentum);
  constants.correction1 = float(1 / (1 - std::pow(config.beta1, double(command.step))));
  constants.correction2 = float(1 / (1 - std::pow(config.beta2, double(command.step))));
  constants.gradient_scale = float(clip);
  // Addresses of this chunk's first element in each buffer.
  auto at = [&](const BufferRef &buffer, int64_t size) -> char * {
    if (!buffer)
      return nullptr;
    return buffer->base + (command.chunk - buffer->first) * group.chunk_elements * size;
  };
  int64_t weight_size = group.weight_type == "bf16" ? 2 : 4;
  char *weights = at(command.buffers[0], weight_size), *low = at(command.buffers[1], 2);
  char *momentum = at(command.buffers[2], 4), *variance = at(command.buffers[3], 4);
  char *gradient = at(command.buffers[4], 4);
  int64_t begin = command.chunk * group.chunk_elements, end = begin + group.chunk_elements;
  for (const DecayRange &part : decay[command.index]) {
    int64_t from = std::max(begin, part.begin), to = std::min(end, part.end);
    if (from >= to)
      continue;
    int64_t skip = from - begin;
    UpdateRange range;
    range.weights = weights + skip * weight_size;
    range.low = low ? reinterpret_cast<int16_t *>(low) + skip : nullptr;
    range.momentum = momentum ? reinterpret_cast<float *>(momentum) + skip : nullptr;
    range.variance = variance ? reinterpret_cast<float *>(variance) + skip : nullptr;
    range.gradient = reinterpret_cast<float *>(gradient) + skip;
    range.count = to - from;
    range.decay = part.decay ? float(config.weight_decay) : 0;
    UpdateElementsParallel(constants, range);
  }
}

/// Over the parameters alone: what lies between them is not part of the norm.
double Engine::Impl::SumGradient(const Command &command) const {
  const Group &group = program.groups[command.index];
  const Buffer &buffer = *command.buffers[0];
  auto *values = reinterpret_cast<const float *>(buffer.base);
  int64_t begin = buffer.first * group.chunk_elements;
  int64_t end = begin + buffer.count * group.chunk_elements;
  double sum = 0;
  for (const Parameter &parameter : group.parameters) {
    int64_t from = std::max(begin, parameter.offset);
    int64_t to = std::min(end, parameter.offset + Elements(parameter));
    if (from < to)
      sum += SumOfSquares(values + (from - begin), to - from);
  }
  return sum;
}

/// With the mutex held.
void Engine::Impl::FinishNorm(int64_t step) {
  double total = 0; // in order of group and entry, whatever the order of arrival
  for (const auto &[key, value] : squares)
    total += value;
  squares.clear();
  double norm = std::sqrt(total), limit = program.optimizer.clip;
  if (!std::isfinite(norm))
    return Fail(absl::OutOfRangeError(
        absl::StrCat("the gradient norm of step ", step,
                     " is not finite: lower the learning rate, and go on from the last commit")));
  // The small number is for a norm of 0, all of whose gradients stay as they are.
  clip_factors[step] = limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
  while (clip_factors.size() > 2) // this step's and the one before
    clip_factors.erase(clip_factors.begin());
}

/// Zeros or copies.
void Engine::Impl::Fill(const Command &command) const {
  const Buffer &buffer = *command.buffers[0];
  int64_t bytes = ChunkBytes(buffer.storage);
  if (command.kind == Command::Kind::zero)
    std::memset(buffer.base + (command.first - buffer.first) * bytes, 0, command.count * bytes);
  else if (command.kind == Command::Kind::copy_in)
    std::memcpy(buffer.base, command.port.data, command.port.bytes);
  else
    std::memcpy(command.port.data, buffer.base, command.port.bytes);
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

void Engine::Impl::DoOptimizer(std::unique_lock<std::mutex> &lock, const CommandRef &command) {
  double clip = 1;
  if (auto it = clip_factors.find(command->step); it != clip_factors.end())
    clip = it->second;
  else if (command->kind == Command::Kind::update && program.optimizer.clip > 0 &&
           !Expect(false, "updates before the gradient norm of that step is known"))
    return;
  updating = true;
  lock.unlock();
  command->begin_ns = Now();
  std::string name;
  double sum = 0;
  switch (command->kind) {
  case Command::Kind::update:
    name = program.groups[command->index].name;
    RunUpdate(*command, clip);
    break;
  case Command::Kind::norm:
    name = "norm";
    sum = SumGradient(*command);
    break;
  case Command::Kind::norm_done:
    name = "norm";
    break;
  default:
    name = command->kind == Command::Kind::zero ? "zero" : "copy";
    Fill(*command);
    break;
  }
  int64_t end = Now();
  lock.lock();
  updating = false;
  if (command->kind == Command::Kind::norm) {
    const Buffer &buffer = *command->buffers[0];
    squares[{command->index, buffer.entry, buffer.first}] = sum;
  }
  if (command->kind == Command::Kind::norm_done)
    FinishNorm(command->step);
  counters[command->run].optimizer_seconds += double(end - command->begin_ns) * 1e-9;
  Record(TraceEvent::Row::optimizer, *command, name, end, 0);
  Complete(command);
  Submit(lock);
  changed.notify_all();
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
