//===- sample.cpp - Text from a trained model -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/generate/sample.h"

#include "runtime/abi/sources.h"
#include "runtime/data/conversation.h"
#include "runtime/data/data.h"
#include "runtime/generate/stop_strings.h"
#include "runtime/generate/template_date.h"
#include "runtime/io/file_system.h"
#include "runtime/state/commit_name.h"
#include "runtime/support/random.h"
#include "runtime/support/units.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
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
  if (!(options.top_p > 0 && options.top_p <= 1))
    return absl::InvalidArgumentError(
        absl::StrCat("top-p ", options.top_p, ": expected a share above 0, up to 1"));
  for (const std::string &stop : options.stop)
    if (stop.empty())
      return absl::InvalidArgumentError("an empty stop string: it would end any text at once");
  for (unsigned char byte : options.prompt)
    if (options.tokenizer.empty() && byte >= program.model.vocab)
      return absl::InvalidArgumentError(absl::StrCat("the prompt's byte ", static_cast<int>(byte),
                                                     " is outside the vocabulary of ",
                                                     program.model.vocab));
  return absl::OkStatus();
}

/// The date that templates show in the state whose weights are read.
std::string DateOf(const GenerationSource &source) {
  const absl::StatusOr<CommitName> named =
      FindCommit(SystemFiles(), source.weights.empty() ? source.state : source.weights);
  return named.ok() ? TemplateDateOf(SystemFiles(), named->directory, named->step) : "";
}

/// The text as tokens and back: those of a tokenizer, or bytes.
class Codec {
public:
  static absl::StatusOr<Codec> Open(const SampleOptions &options, const Program &program,
                                    const GenerationSource &source) {
    const int64_t vocab = program.model.vocab;
    Codec codec;
    codec.stops = options.stop;
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
      // As in the training: by the template of its data, with the date of its state.
      absl::StatusOr<ConversationEncoder> chat = ConversationEncoder::CreateToAsk(
          codec.tokenizer, options.tokenizer, TemplateOf(program.train.data), DateOf(source));
      if (!chat.ok())
        return absl::Status(chat.status().code(),
                            absl::StrCat("--chat: ", chat.status().message()));
      codec.chat = *std::move(chat);
      const std::string mark = codec.chat->EndOfAnswer();
      const int32_t token = codec.tokenizer->Find(mark);
      if (token >= 0 && codec.tokenizer->IsAdded(token))
        codec.mark = token;
      else if (!mark.empty())
        codec.stops.push_back(mark);
    }
    codec.decoder = std::make_unique<StreamDecoder>(codec.tokenizer, /*show_special=*/false);
    return codec;
  }

  absl::StatusOr<std::vector<int32_t>> Encode(const std::string &text) {
    std::vector<int32_t> tokens;
    if (!tokenizer) {
      for (unsigned char byte : text)
        tokens.push_back(byte);
      return tokens;
    }
    EncodeOptions options;
    options.closes = false; // a prompt goes on: nothing is put behind it
    absl::Status status = chat ? chat->EncodeQuestion({{"user", text}}, tokens)
                               : Encoder(tokenizer).Encode(text, options, tokens);
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
  bool Ends(int32_t token) const { return tokenizer && (tokenizer->Ends(token) || token == mark); }
  /// The texts that end a text.
  const std::vector<std::string> &Stops() const { return stops; }
  /// Tokens that can be drawn.
  int64_t size() const { return count; }

private:
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<StreamDecoder> decoder;
  std::optional<ConversationEncoder> chat;
  int32_t mark = -1;              // that ends an answer in the template
  std::vector<std::string> stops; // those of the user, and a mark that is no token
  int64_t count = 0;
};

/// The time and reads of a continued text, on one line.
std::string Describe(const Program &program, Engine &engine, int64_t prompt, double prompt_seconds,
                     int64_t tokens, double seconds) {
  int64_t weights = 0, resident = 0;
  for (const Storage &storage : program.storages)
    if (storage.role == "weights") {
      weights += storage.entry_count() * storage.bytes;
      resident +=
          (storage.ChunksOn(Home::device) + storage.ChunksOn(Home::host)) * storage.chunk_bytes();
    }
  const auto traffic = program.traffic.find("generate");
  int64_t read = 0;
  if (traffic != program.traffic.end())
    for (const auto &[role, bytes] : traffic->second.read)
      read += bytes;
  return absl::StrFormat(
      "prompt: %d tokens in %.3f s; then %d tokens in %.3f s: %.3f tokens/s; %s of %s of weights "
      "in memory; %d bytes read for each token; memory %s\n",
      prompt, prompt_seconds, tokens, seconds, seconds > 0 ? double(tokens) / seconds : 0,
      FormatBytes(resident), FormatBytes(weights), read, FormatBytes(engine.ArenaBytes()));
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace

int64_t PickToken(const float *logits, int64_t count, const SampleOptions &options, double unit) {
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

absl::Status Sample(const Program &program, const Kernels &kernels,
                    const GenerationEntries &entries, const GenerationSource &source,
                    const SampleOptions &options, std::ostream &out, std::ostream &notes) {
  if (absl::Status status = CheckRequest(program, options); !status.ok())
    return status;
  absl::StatusOr<Codec> codec = Codec::Open(options, program, source);
  if (!codec.ok())
    return codec.status();
  absl::StatusOr<std::vector<int32_t>> text = codec->Encode(options.prompt);
  if (!text.ok())
    return text.status();
  if (text->empty())
    return absl::InvalidArgumentError("the prompt has no tokens: the model continues at least one");
  absl::StatusOr<std::unique_ptr<Generator>> generator =
      Generator::Create(program, kernels, entries, source);
  if (!generator.ok())
    return generator.status();

  if (options.echo && !options.chat)
    out << options.prompt << std::flush;
  StopStrings stop(codec->Stops());
  std::ofstream all;
  if (!options.logits.empty())
    all.open(options.logits, std::ios::binary);
  const int64_t prompt = int64_t(text->size());
  if (const int64_t unseen = (*generator)->Unseen(prompt); unseen > 0)
    notes << absl::StrFormat(
        "note: the prompt has %d tokens, more than the context of %d: the model "
        "does not see its first %d\n",
        prompt, program.model.context, unseen);
  auto begin = std::chrono::steady_clock::now();
  double prompt_seconds = 0;
  int64_t done = 0; // tokens
  for (; done < options.length && !stop.Found(); ++done) {
    absl::StatusOr<const float *> logits = (*generator)->Logits(*text);
    if (!logits.ok())
      return logits.status();
    all.write(reinterpret_cast<const char *>(*logits), program.model.vocab * 4);
    if (done == 0) {
      prompt_seconds = SecondsSince(begin);
      begin = std::chrono::steady_clock::now();
    }
    const int32_t token = static_cast<int32_t>(
        PickToken(*logits, codec->size(), options,
                  Unit(Hash({static_cast<uint64_t>(options.seed), static_cast<uint64_t>(done)}))));
    if (codec->Ends(token))
      break;
    text->push_back(token);
    absl::StatusOr<std::string> shown = codec->Add(token);
    if (!shown.ok())
      return shown.status();
    out << stop.Add(*shown) << std::flush;
  }
  if (!stop.Found())
    out << stop.Add(codec->Finish()) << stop.Finish() << std::flush;
  if (all.close(); !options.logits.empty() && !all)
    return absl::UnavailableError(absl::StrCat("cannot write `", options.logits, "`"));
  if (!out)
    return absl::UnavailableError("writing the text failed");
  if (options.timing) // the first token belongs to the prompt
    notes << Describe(program, (*generator)->engine(), prompt, prompt_seconds,
                      std::max<int64_t>(done - 1, 0), SecondsSince(begin));
  return absl::OkStatus();
}

} // namespace boa
