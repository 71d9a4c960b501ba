//===- continuation.cpp - Token by token, until a text ends ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/generate/continuation.h"

#include "runtime/generate/stop_strings.h"
#include "runtime/support/interrupt.h"
#include "runtime/support/random.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

namespace boa {

absl::Status CheckContinues(const Program &program) {
  if (program.train.objective == Objective::next_token)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`", program.model.name,
                                                 "` is trained to fill in masked bytes, not to "
                                                 "continue a text: it cannot be sampled"));
}

absl::Status Check(const DrawOptions &options) {
  if (!(options.temperature >= 0))
    return absl::InvalidArgumentError(
        absl::StrCat("temperature ", options.temperature, ": expected 0 or above"));
  if (options.top_k < 0)
    return absl::InvalidArgumentError("top-k must not be negative");
  if (!(options.top_p > 0 && options.top_p <= 1))
    return absl::InvalidArgumentError(
        absl::StrCat("top-p ", options.top_p, ": expected a share above 0, up to 1"));
  return absl::OkStatus();
}

int64_t PickToken(const float *logits, int64_t count, const DrawOptions &options, double unit) {
  if (options.temperature <= 0)
    return std::max_element(logits, logits + count) - logits;
  std::vector<int64_t> candidates(count);
  std::iota(candidates.begin(), candidates.end(), 0);
  // Among equal logits the same ones are kept every time.
  auto likelier = [&](int64_t a, int64_t b) {
    return std::pair(-logits[a], a) < std::pair(-logits[b], b);
  };
  const bool most = options.top_k > 0 && options.top_k < count;
  if (most) {
    std::nth_element(candidates.begin(), candidates.begin() + options.top_k, candidates.end(),
                     likelier);
    candidates.resize(options.top_k);
  }
  const float largest = logits[*std::min_element(candidates.begin(), candidates.end(), likelier)];
  auto weight = [&](int64_t token) {
    return std::exp((logits[token] - largest) / options.temperature);
  };
  if (options.top_p < 1) {
    std::sort(candidates.begin(), candidates.end(), likelier);
    double total = 0, sum = 0;
    for (int64_t token : candidates)
      total += weight(token);
    size_t kept = 0;
    while (kept < candidates.size() && sum < options.top_p * total)
      sum += weight(candidates[kept++]);
    candidates.resize(std::max<size_t>(kept, 1));
  }
  std::sort(candidates.begin(), candidates.end());
  std::vector<double> cumulative;
  double total = 0;
  for (int64_t token : candidates)
    cumulative.push_back(total += weight(token));
  const auto picked = std::upper_bound(cumulative.begin(), cumulative.end(), unit * total);
  // Rounding may leave `unit * total` at the very end.
  const size_t index = std::min<size_t>(picked - cumulative.begin(), candidates.size() - 1);
  return candidates[index];
}

static double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

absl::StatusOr<ContinuedText> Continue(Generator &generator, Codec &codec,
                                       const DrawOptions &options, int64_t length,
                                       std::vector<int32_t> &text, std::ostream &out,
                                       const LogitsReader &reader) {
  ContinuedText made;
  StopStrings stop(codec.Stops());
  const auto write = [&](const std::string &piece) {
    made.text += piece;
    out << piece << std::flush;
  };
  auto begin = std::chrono::steady_clock::now();
  for (; made.tokens < length && out; ++made.tokens) {
    absl::StatusOr<const float *> logits = generator.Logits(text);
    if (Interrupted()) {
      made.end = ContinuedText::End::signal;
      break;
    }
    if (!logits.ok())
      return logits.status();
    if (absl::Status status = reader ? reader(*logits) : absl::OkStatus(); !status.ok())
      return status;
    if (made.tokens == 0) {
      made.first_seconds = SecondsSince(begin);
      begin = std::chrono::steady_clock::now();
    }
    const double unit =
        Unit(Hash({static_cast<uint64_t>(options.seed), static_cast<uint64_t>(made.tokens)}));
    const auto token = static_cast<int32_t>(PickToken(*logits, codec.size(), options, unit));
    if (codec.Ends(token)) {
      made.end = ContinuedText::End::itself;
      break;
    }
    text.push_back(token);
    absl::StatusOr<std::string> shown = codec.Add(token);
    if (!shown.ok())
      return shown.status();
    write(stop.Add(*shown));
    if (stop.Found()) {
      ++made.tokens;
      made.end = ContinuedText::End::itself;
      break;
    }
  }
  if (!stop.Found())
    write(stop.Add(codec.Finish()) + stop.Finish());
  made.seconds = SecondsSince(begin);
  return made;
}

} // namespace boa
