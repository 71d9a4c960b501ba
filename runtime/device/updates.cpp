//===- updates.cpp - Updates and norms ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/updates.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace boa {

// In place of the clipping factor of a step that is left out.
static constexpr double kLeftOut = 0;

Updates::Updates(const Program &program) : program(program) {
  for (const Group &group : program.groups) {
    std::vector<DecayRange> ranges;
    for (const Parameter &parameter : group.parameters) {
      if (!ranges.empty())
        ranges.back().end = parameter.offset;
      if (ranges.empty() || ranges.back().decay != parameter.decay)
        ranges.push_back({parameter.offset, group.elements, parameter.decay});
      ranges.back().end = group.elements;
    }
    decay.push_back(std::move(ranges));
  }
}

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

/// So many elements of a chunk, behind the first `skip`.
UpdateRange Updates::RangeOf(const Group &group, char *const (&addresses)[5], int64_t skip,
                             int64_t count) const {
  auto [weights, low, momentum, variance, gradient] = addresses;
  const int64_t weight_size = group.weight_type == "bf16" ? 2 : 4;
  UpdateRange range;
  range.weights = weights + skip * weight_size;
  range.low = low ? reinterpret_cast<int16_t *>(low) + skip : nullptr;
  range.momentum = momentum ? reinterpret_cast<float *>(momentum) + skip : nullptr;
  range.variance = variance ? reinterpret_cast<float *>(variance) + skip : nullptr;
  range.gradient = reinterpret_cast<float *>(gradient) + skip;
  range.count = count;
  return range;
}

std::vector<Updates::Piece> Updates::PiecesOf(const Work &work) const {
  const Group &group = program.groups[work.index];
  const int64_t begin = work.first * group.chunk_elements;
  const int64_t end = begin + work.count * group.chunk_elements;
  std::vector<Piece> pieces;
  for (const Parameter &parameter : group.parameters) {
    const int64_t from = std::max(begin, parameter.offset);
    const int64_t to = std::min(end, parameter.offset + parameter.elements());
    if (from < to)
      pieces.push_back({from - begin, to - begin, parameter});
  }
  return pieces;
}

/// What lies between parameters is of no matter.
absl::Status Updates::CheckFinite(const Work &work, char *const (&addresses)[5]) const {
  const Group &group = program.groups[work.index];
  const UpdateRange range = RangeOf(group, addresses, 0, group.chunk_elements);
  for (bool gradient : {true, false})
    for (const Piece &piece : PiecesOf(work))
      for (int64_t i = piece.begin; i < piece.end; ++i) {
        if (gradient ? GradientIsFinite(range, i) : StateIsFinite(range, i))
          continue;
        std::string tensor = TensorName(group, work.entry, piece.parameter);
        if (gradient)
          return GradientError(tensor, work.step);
        return absl::OutOfRangeError(absl::StrCat(
            "the weights or moments of ", tensor, " are not finite after the update of step ",
            work.step,
            ": lower the learning rate, or clip the gradients' norm, and go on from the last "
            "commit"));
      }
  return absl::OkStatus();
}

/// Below 1 in f32 too: at 1 a moment would never change.
static float DecayInF32(double beta) { return std::min(float(beta), std::nextafter(1.0f, 0.0f)); }

absl::StatusOr<std::optional<UpdateConstants>> Updates::Constants(int64_t step) const {
  double clip = 1;
  if (auto it = clip_factors.find(step); it != clip_factors.end())
    clip = it->second;
  else if (NeedsNorm(program.train))
    return absl::InternalError(
        "the program updates before the gradient norm of that step is known");
  if (clip == kLeftOut)
    return std::nullopt;
  const OptimizerSettings &config = program.train.optimizer;
  UpdateConstants constants;
  constants.adamw = config.kind == OptimizerKind::adamw;
  constants.rate = float(LearningRate(config, step, program.train.steps));
  constants.beta1 = DecayInF32(config.beta1);
  constants.beta2 = DecayInF32(config.beta2);
  constants.eps = float(config.eps);
  constants.momentum = float(config.momentum);
  // Of the betas that the update uses: 1 - 0.999f is 1.3e-5 less than 0.001.
  constants.correction1 = float(1 / (1 - std::pow(double(constants.beta1), double(step))));
  constants.correction2 = float(1 / (1 - std::pow(double(constants.beta2), double(step))));
  constants.gradient_scale = float(clip);
  return constants;
}

absl::Status Updates::Update(const Work &work, char *const (&addresses)[5]) {
  const auto constants = Constants(work.step);
  if (!constants.ok() || !*constants)
    return constants.status();
  const Group &group = program.groups[work.index];
  const int64_t begin = work.first * group.chunk_elements, end = begin + group.chunk_elements;
  bool finite = true;
  for (const DecayRange &part : decay[work.index]) {
    const int64_t from = std::max(begin, part.begin), to = std::min(end, part.end);
    if (from >= to)
      continue;
    UpdateRange range = RangeOf(group, addresses, from - begin, to - from);
    range.decay = part.decay ? float(program.train.optimizer.weight_decay) : 0;
    finite &= UpdateElementsParallel(**constants, range);
  }
  return finite ? absl::OkStatus() : CheckFinite(work, addresses);
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// Over the parameters alone: what lies between them is not part of the norm.
void Updates::Norm(const Work &work, const float *values) {
  std::vector<double> squares;
  for (const Piece &piece : PiecesOf(work))
    squares.push_back(SumOfSquares(values + piece.begin, piece.end - piece.begin));
  AddNorm(work, squares);
}

void Updates::AddNorm(const Work &work, const std::vector<double> &squares) {
  const Group &group = program.groups[work.index];
  const std::vector<Piece> pieces = PiecesOf(work);
  GradientNorm norm;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!std::isfinite(squares[i]) && norm.not_finite.empty())
      norm.not_finite = TensorName(group, work.entry, pieces[i].parameter);
    norm.squares += squares[i];
  }
  norms[{work.index, work.entry, work.first}] = std::move(norm);
}

absl::Status Updates::FinishNorm(int64_t step) {
  // In order of group and entry, whatever the order of arrival.
  double total = 0;
  std::string not_finite;
  for (const auto &[key, norm] : norms) {
    total += norm.squares;
    if (not_finite.empty())
      not_finite = norm.not_finite;
  }
  norms.clear();
  double norm = std::sqrt(total), limit = program.train.clip;
  if (std::isfinite(norm)) {
    // The small number is for a norm of 0, all of whose gradients stay as they are.
    clip_factors[step] = limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
  } else if (program.train.nonfinite == Nonfinite::skip) {
    clip_factors[step] = kLeftOut;
  } else {
    return GradientError(not_finite, step);
  }
  {
    std::lock_guard lock(mutex);
    step_norms[step] = norm;
  }
  while (clip_factors.size() > 2) // this step's and the one before
    clip_factors.erase(clip_factors.begin());
  return absl::OkStatus();
}

std::map<int64_t, double> Updates::TakeNorms() {
  std::lock_guard lock(mutex);
  return std::exchange(step_norms, {});
}

} // namespace boa
