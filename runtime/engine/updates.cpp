//===- engine/updates.cpp - Updates and norms ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the optimizer's thread does. Each update looks whether what it made is finite,
// and each norm whether the gradients are: a model that has lost its numbers is never
// committed. Where `nonfinite` is "skip", a step whose norm is not finite is left
// out: none of its updates, delayed ones included, changes a bit.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/impl.h"

#include "runtime/optimizer.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace boa {

// In place of the clipping factor of a step that is left out.
static constexpr double kLeftOut = 0;

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

static std::string TensorName(const Group &group, int64_t entry, const Parameter &parameter) {
  if (!group.layer)
    return absl::StrCat(group.name, ".", parameter.name);
  return absl::StrCat(group.name, ".", entry, ".", parameter.name);
}

static absl::Status GradientError(const std::string &tensor, int64_t step) {
  return absl::OutOfRangeError(absl::StrCat(
      "the gradient of ", tensor, " is not finite in step ", step,
      ": lower the learning rate, or let such steps be left out (nonfinite = skip), and go on "
      "from the last commit"));
}

/// Says which tensor it was, of a range that begins at element `first` of its
/// entry. What lies between parameters is of no matter.
absl::Status Engine::Impl::NotFinite(const Command &command, const UpdateRange &range,
                                     int64_t first) const {
  const Group &group = program.groups[command.index];
  for (bool gradient : {true, false})
    for (const Parameter &parameter : group.parameters) {
      int64_t from = std::max(first, parameter.offset);
      int64_t to = std::min(first + range.count, parameter.offset + Elements(parameter));
      for (int64_t i = from - first; i < to - first; ++i) {
        if (gradient ? GradientIsFinite(range, i) : StateIsFinite(range, i))
          continue;
        std::string tensor = TensorName(group, command.buffers[0]->entry, parameter);
        if (gradient)
          return GradientError(tensor, command.step);
        return absl::OutOfRangeError(absl::StrCat(
            "the weights or moments of ", tensor, " are not finite after the update of step ",
            command.step,
            ": lower the learning rate, or clip the gradients' norm, and go on from the last "
            "commit"));
      }
    }
  return absl::OkStatus();
}

absl::Status Engine::Impl::RunUpdate(const Command &command, double clip) {
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
    if (UpdateElementsParallel(constants, range))
      continue;
    if (absl::Status status = NotFinite(command, range, from); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// Over the parameters alone: what lies between them is not part of the norm.
GradientNorm Engine::Impl::SumGradient(const Command &command) const {
  const Group &group = program.groups[command.index];
  const Buffer &buffer = *command.buffers[0];
  auto *values = reinterpret_cast<const float *>(Address(buffer, command.first));
  int64_t begin = command.first * group.chunk_elements;
  int64_t end = begin + command.count * group.chunk_elements;
  GradientNorm norm;
  for (const Parameter &parameter : group.parameters) {
    int64_t from = std::max(begin, parameter.offset);
    int64_t to = std::min(end, parameter.offset + Elements(parameter));
    if (from >= to)
      continue;
    double sum = SumOfSquares(values + (from - begin), to - from);
    if (!std::isfinite(sum) && norm.not_finite.empty())
      norm.not_finite = TensorName(group, buffer.entry, parameter);
    norm.squares += sum;
  }
  return norm;
}

/// With the mutex held.
void Engine::Impl::FinishNorm(int64_t step) {
  // In order of group and entry, whatever the order of arrival.
  double total = 0;
  std::string not_finite;
  for (const auto &[key, norm] : norms) {
    total += norm.squares;
    if (not_finite.empty())
      not_finite = norm.not_finite;
  }
  norms.clear();
  double norm = std::sqrt(total), limit = program.optimizer.clip;
  if (std::isfinite(norm)) {
    // The small number is for a norm of 0, all of whose gradients stay as they are.
    clip_factors[step] = limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
  } else if (program.training.nonfinite == "skip") {
    clip_factors[step] = kLeftOut;
    left_out.push_back(step);
  } else {
    return Fail(GradientError(not_finite, step));
  }
  while (clip_factors.size() > 2) // this step's and the one before
    clip_factors.erase(clip_factors.begin());
}

//===----------------------------------------------------------------------===//
// The queue's commands
//===----------------------------------------------------------------------===//

/// Zeros or copies.
void Engine::Impl::Fill(const Command &command) const {
  const Buffer &buffer = *command.buffers[0];
  int64_t bytes = command.count * ChunkBytes(buffer.storage);
  if (command.kind == Command::Kind::zero)
    std::memset(Address(buffer, command.first), 0, bytes);
  else if (command.kind == Command::Kind::copy)
    std::memcpy(Address(*command.buffers[1], command.first), Address(buffer, command.first), bytes);
  else if (command.kind == Command::Kind::copy_in)
    std::memcpy(buffer.base, command.port.data, command.port.bytes);
  else
    std::memcpy(command.port.data, buffer.base, command.port.bytes);
}

/// With the mutex held. Within one memory nothing crosses a link.
void Engine::Impl::CountCopy(const Command &command) {
  const Buffer &from = *command.buffers[0], &to = *command.buffers[1];
  if (!Separate() || from.space == to.space || command.run == kNoRun)
    return;
  Counters &counted = counters[command.run];
  (to.space == BOA_DEVICE ? counted.to_device
                          : counted.to_host)[program.storages[to.storage].role] +=
      command.count * ChunkBytes(to.storage);
}

void Engine::Impl::DoOptimizer(std::unique_lock<std::mutex> &lock, const CommandRef &command) {
  const bool needs_norm = program.optimizer.clip > 0 || program.training.nonfinite == "skip";
  double clip = 1;
  if (auto it = clip_factors.find(command->step); it != clip_factors.end())
    clip = it->second;
  else if (command->kind == Command::Kind::update && needs_norm &&
           !Expect(false, "updates before the gradient norm of that step is known"))
    return;
  updating = true;
  lock.unlock();
  command->begin_ns = Now();
  std::string name;
  GradientNorm norm;
  absl::Status status;
  switch (command->kind) {
  case Command::Kind::update:
    name = program.groups[command->index].name;
    if (clip != kLeftOut)
      status = RunUpdate(*command, clip);
    break;
  case Command::Kind::norm:
    name = "norm";
    norm = SumGradient(*command);
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
  if (!status.ok())
    Fail(std::move(status));
  if (command->kind == Command::Kind::norm) {
    const Buffer &buffer = *command->buffers[0];
    norms[{command->index, buffer.entry, command->first}] = std::move(norm);
  }
  if (command->kind == Command::Kind::norm_done)
    FinishNorm(command->step);
  if (command->kind == Command::Kind::copy)
    CountCopy(*command);
  counters[command->run].optimizer_seconds += double(end - command->begin_ns) * 1e-9;
  Record(TraceEvent::Row::optimizer, *command, name, end, 0);
  Complete(command);
  Submit(lock);
  changed.notify_all();
}

} // namespace boa
