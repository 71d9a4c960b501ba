//===- updates.cpp - Updates and norms ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/updates.h"

#include "runtime/kernels/master.h"
#include "runtime/kernels/norm.h"
#include "runtime/support/thread_pool.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

namespace boa {

// In place of the clipping factor of a step that is left out.
static constexpr double kLeftOut = 0;

// Parts that are worth a thread's wake-up, and elements that one thread updates sooner.
static constexpr int64_t kUpdateGrain = 8, kUpdateAlone = 1 << 18;

Updates::Updates(const Program &program, const boa_optimizer *optimizer)
    : program(program), optimizer(optimizer) {
  for (const Group &group : program.groups) {
    std::vector<Range> &of = ranges.emplace_back();
    for (const Parameter &parameter : group.parameters) {
      const float lr_scale = float(parameter.lr_scale), decay = float(parameter.decay);
      if (!of.empty())
        of.back().end = parameter.offset;
      if (of.empty() || of.back().lr_scale != lr_scale || of.back().decay != decay)
        of.push_back({parameter.offset, group.elements, lr_scale, decay});
      of.back().end = group.elements;
    }
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

template <typename T> static T At(const char *address, int64_t i) {
  T value;
  std::memcpy(&value, address + i * int64_t{sizeof(T)}, sizeof(T));
  return value;
}

static float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Of element `i` of a chunk, the weight and all states.
bool Updates::StateIsFinite(const Group &group, const std::vector<char *> &addresses,
                            int64_t i) const {
  const float weight =
      addresses[1]
          ? FloatOf(JoinMaster(At<uint16_t>(addresses[0], i), At<int16_t>(addresses[1], i)))
          : At<float>(addresses[0], i);
  bool finite = std::isfinite(weight);
  for (size_t s = 0; s < program.optimizer.states.size(); ++s) {
    const std::string &type = program.optimizer.states[s].type;
    const char *state = addresses[3 + s];
    if (type == "bf16")
      finite &= std::isfinite(FloatOf(uint32_t{At<uint16_t>(state, i)} << 16));
    else // of a code the scale of its block
      finite &=
          std::isfinite(IsCode(type) ? At<float>(state + group.chunk_elements, i / BOA_STATE_BLOCK)
                                     : At<float>(state, i));
  }
  return finite;
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

/// The values between parameters do not matter.
absl::Status Updates::CheckFinite(const Work &work, const std::vector<char *> &addresses) const {
  const Group &group = program.groups[work.index];
  for (bool gradient : {true, false})
    for (const Piece &piece : PiecesOf(work))
      for (int64_t i = piece.begin; i < piece.end; ++i) {
        if (gradient ? std::isfinite(At<float>(addresses[2], i))
                     : StateIsFinite(group, addresses, i))
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

absl::StatusOr<std::optional<UpdateNumbers>> Updates::Numbers(int64_t step) const {
  if (!optimizer)
    return absl::InternalError("the program updates weights, but has no optimizer");
  double clip = 1;
  if (auto it = clip_factors.find(step); it != clip_factors.end())
    clip = it->second;
  else if (NeedsNorm(program.train))
    return absl::InternalError(
        "the program updates before the gradient norm of that step is known");
  if (clip == kLeftOut)
    return std::nullopt;
  const OptimizerSettings &config = program.train.optimizer;
  UpdateNumbers numbers;
  numbers.rate = float(LearningRate(config, step, program.train.steps));
  numbers.gradient_scale = float(clip);
  optimizer->prepare(step, numbers.scalars);
  return numbers;
}

uint32_t Updates::Seed(const Work &work) const {
  uint64_t bits = uint64_t(program.train.seed);
  for (int64_t number : {work.step, int64_t{work.index}, work.entry, int64_t{work.first}}) {
    bits = (bits ^ uint64_t(number)) * 0x9e3779b97f4a7c15;
    bits ^= bits >> 32;
  }
  return uint32_t(bits);
}

namespace {
/// One call of the compiled optimizer, in parts.
struct UpdateTask {
  const boa_optimizer *optimizer;
  const std::vector<char *> *addresses;
  const UpdateNumbers *numbers;
  const std::vector<boa_update_range> *ranges;
  int64_t elements;
  uint32_t seed;
  std::atomic<bool> finite{true};

  void Run(int64_t begin, int64_t end) {
    const std::vector<char *> &at = *addresses;
    if (!optimizer->update(at[0], reinterpret_cast<int16_t *>(at[1]),
                           reinterpret_cast<const float *>(at[2]),
                           reinterpret_cast<void *const *>(at.data() + 3), numbers->scalars,
                           numbers->gradient_scale, ranges->data(), int64_t(ranges->size()), begin,
                           std::min(end, elements), elements, seed))
      finite = false;
  }
};
} // namespace

absl::Status Updates::Update(const Work &work, const std::vector<char *> &addresses) {
  const auto numbers = Numbers(work.step);
  if (!numbers.ok() || !*numbers)
    return numbers.status();
  const Group &group = program.groups[work.index];
  const int64_t begin = work.first * group.chunk_elements, end = begin + group.chunk_elements;
  std::vector<boa_update_range> parts;
  for (const Range &part : ranges[work.index])
    if (const int64_t from = std::max(begin, part.begin), to = std::min(end, part.end); from < to)
      parts.push_back({from - begin, to - begin, (*numbers)->rate * part.lr_scale, part.decay});
  UpdateTask task{optimizer, &addresses, &**numbers, &parts, group.chunk_elements, Seed(work)};
  // Sooner done than handed over: a turn at the pool costs two wake-ups.
  if (group.chunk_elements <= kUpdateAlone)
    task.Run(0, group.chunk_elements);
  else
    ParallelFor((group.chunk_elements + BOA_UPDATE_PART - 1) / BOA_UPDATE_PART, kUpdateGrain,
                [](void *data, int64_t first, int64_t last) {
                  static_cast<UpdateTask *>(data)->Run(first * BOA_UPDATE_PART,
                                                       last * BOA_UPDATE_PART);
                },
                &task);
  return task.finite ? absl::OkStatus() : CheckFinite(work, addresses);
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
    MutexLock lock(mutex);
    step_norms[step] = norm;
  }
  while (clip_factors.size() > 2) // this step's and the one before
    clip_factors.erase(clip_factors.begin());
  return absl::OkStatus();
}

std::map<int64_t, double> Updates::TakeNorms() {
  MutexLock lock(mutex);
  return std::exchange(step_norms, {});
}

} // namespace boa
