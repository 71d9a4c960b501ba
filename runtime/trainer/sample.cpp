//===- sample.cpp - Text from a trained model -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/sample.h"

#include "runtime/engine/engine.h"
#include "runtime/state/computation.h"
#include "runtime/support/printable.h"
#include "runtime/support/random.h"
#include "runtime/data/data.h"
#include "runtime/trainer/base_weights.h"
#include "runtime/trainer/given_weights.h"
#include "runtime/trainer/weights.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace boa {
namespace {

absl::Status CheckRequest(const Program &program, const SampleOptions &options) {
  if (program.train.objective != Objective::next_token)
    return absl::InvalidArgumentError(absl::StrCat("`", program.model.name,
                                                   "` is trained to fill in masked bytes, not to "
                                                   "continue a text: it cannot be sampled"));
  if (!TokensAreBytes(program.train.data))
    return absl::InvalidArgumentError(
        absl::StrCat("`", program.model.name, "` learns ", program.train.data,
                     ", whose tokens are not bytes of a text: it cannot be sampled"));
  if (options.prompt.empty())
    return absl::InvalidArgumentError(
        "an empty prompt: the model continues a text of at least one byte");
  if (!(options.temperature >= 0))
    return absl::InvalidArgumentError(
        absl::StrCat("temperature ", options.temperature, ": expected 0 or above"));
  if (options.length < 0 || options.top_k < 0)
    return absl::InvalidArgumentError("length and top-k must not be negative");
  for (unsigned char byte : options.prompt)
    if (byte >= program.model.vocab)
      return absl::InvalidArgumentError(absl::StrCat("the prompt's byte ", static_cast<int>(byte),
                                                     " is outside the vocabulary of ",
                                                     program.model.vocab));
  return absl::OkStatus();
}

/// The one storage with a role, in memory and of at least `bytes`.
absl::StatusOr<int32_t> FindPort(const Program &program, const std::string &role, int64_t bytes) {
  for (size_t i = 0; i < program.storages.size(); ++i) {
    const Storage &storage = program.storages[i];
    if (storage.role == role && !storage.LivesOn(Home::ssd) && storage.bytes >= bytes)
      return static_cast<int32_t>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "program descriptor: no storage in memory with role `", role, "` and ", bytes, " bytes"));
}

/// The last `context` bytes of the text from the left, and zeros after them. The prediction for a
/// byte does not depend on those to its right. Returns the position of the text's last byte.
int64_t FillWindow(const std::string &text, int64_t context, int32_t *tokens) {
  const int64_t count = std::min<int64_t>(text.size(), context);
  std::fill_n(tokens, context, 0);
  std::transform(text.end() - count, text.end(), tokens,
                 [](char byte) { return static_cast<unsigned char>(byte); });
  return count - 1;
}

} // namespace

int64_t PickToken(const float *logits, int64_t count, double temperature, int64_t top_k,
                  double unit) {
  if (temperature <= 0)
    return std::max_element(logits, logits + count) - logits;
  std::vector<int64_t> candidates(count);
  std::iota(candidates.begin(), candidates.end(), 0);
  if (top_k > 0 && top_k < count) {
    // Among equal logits the same ones are kept every time.
    std::sort(candidates.begin(), candidates.end(), [&](int64_t a, int64_t b) {
      return std::pair(-logits[a], a) < std::pair(-logits[b], b);
    });
    candidates.resize(top_k);
    std::sort(candidates.begin(), candidates.end());
  }
  float largest = logits[candidates[0]];
  for (int64_t token : candidates)
    largest = std::max(largest, logits[token]);
  std::vector<double> cumulative;
  double total = 0;
  for (int64_t token : candidates)
    cumulative.push_back(total += std::exp((logits[token] - largest) / temperature));
  const auto picked = std::upper_bound(cumulative.begin(), cumulative.end(), unit * total);
  // Rounding may leave `unit * total` at the very end.
  const size_t index = std::min<size_t>(picked - cumulative.begin(), candidates.size() - 1);
  return candidates[index];
}

absl::Status Sample(const Program &program, const Kernels &kernels, boa_entry_point predict,
                    const std::string &weights, const SampleOptions &options, std::ostream &out) {
  if (absl::Status status = CheckRequest(program, options); !status.ok())
    return status;
  const int64_t context = program.model.context;
  const int64_t vocab = program.model.vocab;
  absl::StatusOr<int32_t> tokens = FindPort(program, "tokens", context * 4);
  if (!tokens.ok())
    return tokens.status();
  absl::StatusOr<int32_t> logits = FindPort(program, "logits", context * vocab * 4);
  if (!logits.ok())
    return logits.status();

  // A commit of a state, or a file or folder.
  std::unique_ptr<BaseWeights> commit;
  std::unique_ptr<GivenWeights> given;
  absl::StatusOr<bool> is_state = StateStore::Exists(SystemFiles(), weights);
  if (is_state.ok() && *is_state) {
    absl::StatusOr<std::unique_ptr<BaseWeights>> opened =
        BaseWeights::Open(SystemFiles(), program, weights);
    if (!opened.ok())
      return opened.status();
    commit = *std::move(opened);
  } else {
    absl::StatusOr<std::unique_ptr<GivenWeights>> opened = GivenWeights::Open(program, weights, {});
    if (!opened.ok())
      return opened.status();
    given = *std::move(opened);
  }
  const Computation trained = commit ? commit->computation() : given->computation();
  absl::StatusOr<std::string> change = CheckComputation(absl::StrCat("`", weights, "`"), trained,
                                                        program.computation, options.changed_model);
  if (!change.ok())
    return change.status();
  if (trained.version == 0 && program.computation.version != 0)
    *change = absl::StrCat("note: `", weights,
                           "` does not say what its program computes: only "
                           "parameters were compared");
  if (!change->empty())
    std::cerr << Printable(*change) << "\n";

  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(program, kernels, /*state=*/nullptr, {});
  if (!engine.ok())
    return engine.status();
  absl::Status filled =
      given ? given->Fill(**engine)
            : FillParameters(program, **engine,
                             [&](int64_t g, int64_t entry, int64_t p, int64_t first, int64_t count,
                                 float *values) {
                               const Group &group = program.groups[size_t(g)];
                               return commit->Read(group, entry, group.parameters[size_t(p)], first,
                                                   count, values);
                             });
  if (!filled.ok())
    return filled;
  commit.reset(); // from here on the state may be trained

  std::vector<int32_t> window(context);
  std::vector<float> rows(context * vocab);
  const std::vector<Port> in = {{*tokens, 0, window.data(), context * 4}};
  const std::vector<Port> out_rows = {{*logits, 0, rows.data(), context * vocab * 4}};
  std::string text = options.prompt;
  if (options.echo)
    out << text << std::flush;
  for (int64_t i = 0; i < options.length; ++i) {
    const int64_t last = FillWindow(text, context, window.data());
    if (absl::Status status = (*engine)->Run(predict, i + 1, 0, in, out_rows); !status.ok())
      return status;
    // A vocabulary may go beyond bytes, to a mask token or to round sizes.
    const int64_t token = PickToken(
        rows.data() + last * vocab, std::min<int64_t>(vocab, 256), options.temperature,
        options.top_k, Unit(Hash({static_cast<uint64_t>(options.seed), static_cast<uint64_t>(i)})));
    text.push_back(static_cast<char>(token));
    out << text.back() << std::flush;
  }
  if (!out)
    return absl::UnavailableError("writing the text failed");
  return absl::OkStatus();
}

} // namespace boa
