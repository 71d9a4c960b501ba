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
#include "runtime/tokenizer/chat.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/trainer/weights.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace boa {
namespace {

absl::Status CheckRequest(const Program &program, const SampleOptions &options) {
  if (program.train.objective != Objective::next_token)
    return absl::InvalidArgumentError(absl::StrCat("`", program.model.name,
                                                   "` is trained to fill in masked bytes, not to "
                                                   "continue a text: it cannot be sampled"));
  if (options.tokenizer.empty() && !TokensAreBytes(program.train.data))
    return absl::InvalidArgumentError(
        absl::StrCat("`", program.model.name, "` learns ", program.train.data,
                     ", whose tokens are not bytes of a text: add --tokenizer FILE"));
  if (options.chat && options.tokenizer.empty())
    return absl::InvalidArgumentError(
        "--chat: the template of messages is in the tokenizer: add --tokenizer FILE");
  if (options.prompt.empty())
    return absl::InvalidArgumentError(
        "an empty prompt: the model continues a text of at least one byte");
  if (!(options.temperature >= 0))
    return absl::InvalidArgumentError(
        absl::StrCat("temperature ", options.temperature, ": expected 0 or above"));
  if (options.length < 0 || options.top_k < 0)
    return absl::InvalidArgumentError("length and top-k must not be negative");
  for (unsigned char byte : options.prompt)
    if (options.tokenizer.empty() && byte >= program.model.vocab)
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

/// The last `context` tokens from the left, and zeros after them. The prediction for a token does
/// not depend on those to its right. Returns the position of the last token.
int64_t FillWindow(const std::vector<int32_t> &text, int64_t context, int32_t *tokens) {
  const int64_t count = std::min<int64_t>(text.size(), context);
  std::fill_n(tokens, context, 0);
  std::copy(text.end() - count, text.end(), tokens);
  return count - 1;
}

/// The text as tokens and back: those of a tokenizer, or bytes.
class Codec {
public:
  static absl::StatusOr<Codec> Open(const SampleOptions &options, int64_t vocab) {
    Codec codec;
    // A vocabulary may go beyond bytes, to a mask token or to round sizes.
    codec.count = std::min<int64_t>(vocab, 256);
    if (options.tokenizer.empty())
      return codec;
    absl::StatusOr<std::shared_ptr<const Tokenizer>> opened = Tokenizer::Open(options.tokenizer);
    if (!opened.ok())
      return opened.status();
    codec.tokenizer = *std::move(opened);
    codec.count = codec.tokenizer->size();
    if (codec.count > vocab)
      return absl::InvalidArgumentError(absl::StrCat(
          "`", options.tokenizer, "` has ", codec.count, " tokens, but the model's vocabulary is ",
          vocab, ": the model was trained with another tokenizer"));
    if (options.chat) {
      if (codec.tokenizer->chat_template().empty())
        return absl::InvalidArgumentError(
            absl::StrCat("--chat: `", options.tokenizer,
                         "` has no chat template, so it is not known how the "
                         "model takes messages"));
      absl::StatusOr<ChatTemplate> chat =
          ChatTemplate::Recognize(codec.tokenizer->chat_template(), options.tokenizer);
      if (!chat.ok())
        return chat.status();
      codec.chat = *chat;
    }
    codec.decoder = std::make_unique<StreamDecoder>(codec.tokenizer, /*show_special=*/false);
    return codec;
  }

  absl::StatusOr<std::vector<int32_t>> Encode(const std::string &text) {
    std::vector<int32_t> tokens;
    absl::StatusOr<std::string> prompt = text;
    if (chat) {
      prompt = chat->Render({{"user", text}}, /*ask=*/true, TextOf(tokenizer->bos()),
                            TextOf(tokenizer->eos()));
      if (!prompt.ok())
        return prompt.status();
    }
    if (!tokenizer) {
      for (unsigned char byte : text)
        tokens.push_back(byte);
      return tokens;
    }
    // A prompt goes on: nothing is put behind it. A template has all that stands before it.
    EncodeOptions options;
    options.closes = false;
    options.surround = !chat;
    absl::Status status = Encoder(tokenizer).Encode(chat ? *prompt : text, options, tokens);
    if (!status.ok())
      return absl::InvalidArgumentError(absl::StrCat("the prompt: ", status.message()));
    for (int32_t token : tokens)
      if (absl::StatusOr<std::string> shown = decoder->Add(token); !shown.ok())
        return shown.status();
    return tokens;
  }
  /// The text that a token adds.
  absl::StatusOr<std::string> Add(int32_t token) {
    return tokenizer ? decoder->Add(token) : std::string(1, static_cast<char>(token));
  }
  std::string Finish() { return tokenizer ? decoder->Finish() : ""; }
  bool Ends(int32_t token) const { return tokenizer && token == tokenizer->eos(); }
  /// Tokens that can be drawn.
  int64_t size() const { return count; }

private:
  std::string TextOf(int32_t token) const {
    return token < 0 ? "" : Decode(tokenizer, {token}, /*show_special=*/true).value_or("");
  }

  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<StreamDecoder> decoder;
  std::optional<ChatTemplate> chat;
  int64_t count = 0;
};

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

  absl::StatusOr<Codec> codec = Codec::Open(options, vocab);
  if (!codec.ok())
    return codec.status();
  absl::StatusOr<std::vector<int32_t>> text = codec->Encode(options.prompt);
  if (!text.ok())
    return text.status();
  if (text->empty())
    return absl::InvalidArgumentError("the prompt has no tokens: the model continues at least one");

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
  if (options.echo && !options.chat)
    out << options.prompt << std::flush;
  for (int64_t i = 0; i < options.length; ++i) {
    const int64_t last = FillWindow(*text, context, window.data());
    if (absl::Status status = (*engine)->Run(predict, i + 1, 0, in, out_rows); !status.ok())
      return status;
    const int32_t token = static_cast<int32_t>(
        PickToken(rows.data() + last * vocab, codec->size(), options.temperature, options.top_k,
                  Unit(Hash({static_cast<uint64_t>(options.seed), static_cast<uint64_t>(i)}))));
    if (codec->Ends(token))
      break;
    text->push_back(token);
    absl::StatusOr<std::string> shown = codec->Add(token);
    if (!shown.ok())
      return shown.status();
    out << *shown << std::flush;
  }
  out << codec->Finish() << std::flush;
  if (!out)
    return absl::UnavailableError("writing the text failed");
  return absl::OkStatus();
}

} // namespace boa
