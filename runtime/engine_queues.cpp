//===- engine_queues.cpp - Where commands run -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Transfers on the backend's threads, kernels on the compute thread, updates,
// zeros and copies on the optimizer thread. No work is done under the mutex.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine_impl.h"

#include "runtime/optimizer.h"
#include "runtime/state/checksum.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace boa {

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// Hands ready transfers to the backend, without the mutex. Reads stay while the
/// driver may yet say what first uses them.
void Engine::Impl::Submit(std::unique_lock<std::mutex> &lock) {
  while (error.ok()) {
    std::vector<CommandRef> batch, held;
    for (CommandRef &command : to_submit) {
      bool early = issuing && command->kind == Command::Kind::read && command->first_use == 0;
      (early ? held : batch).push_back(std::move(command));
    }
    to_submit = std::move(held);
    if (batch.empty())
      return;
    transfers += batch.size();
    lock.unlock();
    for (const CommandRef &command : batch)
      Transfer(command);
    lock.lock();
  }
}

/// Reads: when what they bring is used. Writes: what the step itself reads again
/// (activations), then what the next one begins with (weights), then the rest, each
/// in the order of becoming ready.
int64_t Engine::Impl::Deadline(const Command &command) const {
  if (command.kind == Command::Kind::read)
    return command.first_use ? command.first_use : command.sequence;
  const Storage &storage = program.storages[command.storage];
  return !storage.persistent ? 0 : storage.role == "weights" ? 1 : 2;
}

/// One request for each run of chunks that lie one behind another in a file.
void Engine::Impl::Transfer(const CommandRef &command) {
  Buffer &buffer = *command->buffers[0];
  int64_t bytes = ChunkBytes(command->storage);
  command->begin_ns = Now();
  std::vector<std::pair<int32_t, int32_t>> runs; // first, count, relative
  for (int32_t c = 0; c < command->count; ++c) {
    const Extent &extent = command->extents[c];
    if (c > 0 && extent.file == command->extents[c - 1].file &&
        extent.offset == command->extents[c - 1].offset + bytes)
      ++runs.back().second;
    else
      runs.push_back({c, 1});
  }
  command->requests = runs.size();
  for (auto [first, count] : runs) {
    IoRequest request;
    request.write = command->kind == Command::Kind::write;
    request.file = command->extents[first].file;
    request.offset = command->extents[first].offset;
    request.bytes = count * bytes;
    request.data = buffer.base + (command->first + first - buffer.first) * bytes;
    request.deadline = Deadline(*command);
    request.done = [this, command, first = first, count = count](absl::Status status) {
      TransferDone(command, first, count, std::move(status));
    };
    io->Submit(std::move(request));
  }
}

void Engine::Impl::TransferDone(const CommandRef &command, int32_t first, int32_t count,
                                absl::Status status) {
  const Storage &storage = program.storages[command->storage];
  Buffer &buffer = *command->buffers[0];
  int64_t bytes = ChunkBytes(command->storage);
  bool write = command->kind == Command::Kind::write;
  // The buffer is unchanged until the command completes: check outside the lock.
  for (int32_t c = first; c < first + count && status.ok(); ++c) {
    const char *data = buffer.base + (command->first + c - buffer.first) * bytes;
    uint64_t sum = boa::Checksum(data, bytes);
    int32_t chunk = command->first + c;
    if (write)
      state->SetChecksum(command->extents[c], sum);
    else if (auto expected = state->Checksum(command->extents[c]); expected && *expected != sum)
      status = absl::DataLossError(absl::StrCat(
          "checksum of ", storage.name, " entry ", command->entry, " chunk ", chunk, " in ",
          state->Files()[command->extents[c].file].path, " at offset ", command->extents[c].offset,
          " does not match: the data on disk was damaged; restore the state directory from a "
          "copy"));
  }
  std::unique_lock lock(mutex);
  if (!status.ok())
    Fail(std::move(status));
  Counters &counted = counters[command->run];
  (write ? counted.written : counted.read)[storage.role] += count * bytes;
  if (options.trace) {
    int32_t link = state->Files()[command->extents[first].file].link;
    TraceEvent event{write ? TraceEvent::Row::write : TraceEvent::Row::read,
                     link,
                     storage.name,
                     command->begin_ns,
                     Now(),
                     count * bytes};
    if (trace.size() < size_t(options.trace_events))
      trace.push_back(std::move(event));
    else
      trace[trace_next++ % trace.size()] = std::move(event);
  }
  if (--command->requests == 0) {
    Complete(command);
    Submit(lock);
    // Counted last: whoever waits for no transfers may free the engine's parts.
    --transfers;
    changed.notify_all();
  }
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

void Engine::Impl::Record(TraceEvent::Row row, const Command &command, const std::string &name,
                          int64_t end_ns, int64_t bytes) {
  if (!options.trace)
    return;
  TraceEvent event{row, 0, name, command.begin_ns, end_ns, bytes};
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
    if (compute.empty() || !error.ok()) {
      if (!error.ok())
        compute.clear();
      changed.wait(lock);
      continue;
    }
    CommandRef command = compute.front();
    if (command->unmet != 0) {
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
      continue;
    }
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
    if (!error.ok()) {
      optimizer.clear();
      fills.clear();
    }
    CommandRef command;
    if (!fills.empty()) {
      command = fills.front();
      fills.pop_front();
    } else if (!optimizer.empty() && optimizer.front()->unmet == 0) {
      command = optimizer.front();
      optimizer.pop_front();
    } else {
      changed.wait(lock);
      continue;
    }
    updating = true;
    double clip = 1;
    if (auto it = clip_factors.find(command->step); it != clip_factors.end())
      clip = it->second;
    else if (command->kind == Command::Kind::update && program.optimizer.clip > 0)
      Expect(false, "updates before the gradient norm of that step is known");
    if (!error.ok()) {
      updating = false;
      continue;
    }
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
}

/// Nothing runs and nothing can: the program needs more slots than it has.
bool Engine::Impl::Stuck() const {
  bool kernel = !compute.empty() && compute.front()->unmet == 0;
  bool update = !optimizer.empty() && optimizer.front()->unmet == 0;
  return !incomplete.empty() && transfers == 0 && !computing && !updating && fills.empty() &&
         to_submit.empty() && !kernel && !update;
}

/// Waits until the condition holds, or an error has come to rest.
template <typename Condition> absl::Status Engine::Impl::WaitFor(Condition condition) {
  std::unique_lock lock(mutex);
  Submit(lock);
  changed.wait(lock, [&] {
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
