//===- data.cpp - Batches of a training -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/data.h"

#include "runtime/data/tokenized.h"
#include "runtime/support/random.h"
#include "runtime/support/units.h"

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace boa {
namespace {

// The purpose of a hash: the first word of its key.
enum Purpose : uint64_t { kTrainingStart = 1, kTrainingMask, kValidationMask };

// Files of a source that a commit names, so that one that changed can be named.
constexpr size_t kMostNamed = 64;
constexpr absl::int128 kMostValidated = int64_t{1} << 56; // sequences

absl::Status CheckMask(const DataOptions &options) {
  if (options.objective != Objective::masked)
    return absl::OkStatus();
  if (options.mask_token < 0 || options.mask_token >= options.vocab)
    return absl::InvalidArgumentError(absl::StrCat(
        "mask token ", options.mask_token, " is outside the vocabulary of ", options.vocab));
  if (!(options.mask_probability > 0 && options.mask_probability <= 1))
    return absl::InvalidArgumentError(absl::StrCat("mask probability ", options.mask_probability,
                                                   " is not above 0 and at most 1"));
  return absl::OkStatus();
}

} // namespace

DataOptions::DataOptions(const Program &program)
    : data(program.train.data), validate(program.train.validate),
      objective(program.train.objective), document_mask(program.TakesDocuments()),
      mask_probability(program.train.mask_probability), mask_token(program.train.mask_token),
      vocab(program.model.vocab), context(program.model.context), micro_batch(program.MicroBatch()),
      micro_batches(program.MicroBatches()), seed(program.train.seed),
      evaluate_every(program.train.evaluate_every),
      evaluate_batches(program.train.evaluate_batches) {}

bool TokensAreBytes(const std::string &data) { return !IsSourceCall(data); }

std::vector<std::string> DataFiles(const std::string &data) {
  std::string error;
  return data.empty() ? std::vector<std::string>() : FilesOf(ParseSources(data, error));
}

std::string DescribeUnusedTokens(const DataOptions &options) {
  const bool mask = options.objective == Objective::masked && options.mask_token >= 256;
  const int64_t used = mask ? 257 : 256;
  if (options.vocab <= used || !TokensAreBytes(options.data))
    return "";
  return absl::StrCat("note: the vocabulary has ", options.vocab,
                      " tokens, but the data fills only ", used, ": each byte is a token",
                      mask ? ", and the mask is one" : "",
                      "; the others never occur and are never sampled");
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

absl::StatusOr<Data> Data::Open(const DataOptions &options) {
  if (absl::Status status = CheckMask(options); !status.ok())
    return status;
  Data data;
  data.options = options;
  const bool bytes = TokensAreBytes(options.data), own = !options.validate.empty();
  if (own && TokensAreBytes(options.validate) != bytes)
    return absl::InvalidArgumentError(
        absl::StrCat("`data` is ", bytes ? "a text" : "tokens", ", but `validate` is ",
                     bytes ? "tokens" : "a text", ": their tokens mean different things"));
  data.mask = {options.mask_probability, options.mask_token,
               bytes ? std::min<int64_t>(options.vocab, 256) : options.vocab};
  std::vector<int64_t> shares;
  if (absl::Status status = data.OpenParts("data", options.data, data.training, shares);
      !status.ok())
    return status;
  data.mixture = Mixture(shares, uint64_t(options.seed));
  data.validation = data.training;
  if (own)
    if (absl::Status status = data.OpenParts("validate", options.validate, data.validation, shares);
        !status.ok())
      return status;
  // Without the seed: runs with different seeds are compared on the same sequences.
  data.validation_mixture = Mixture(shares, 0);
  for (Part &part : data.training)
    part.windows = own ? part.source->windows() : part.source->training_windows();
  for (Part &part : data.validation) {
    part.first = own ? 0 : part.source->first_validation_window();
    part.windows = std::max<int64_t>(part.source->windows() - part.first, 0);
  }
  for (const auto *parts : {&data.training, &data.validation})
    for (const Part &part : *parts)
      if (absl::Status status = data.CheckPart(part, parts == &data.validation); !status.ok())
        return status;
  const absl::int128 validated = absl::int128(options.evaluate_batches) * options.batch();
  data.validated_of = data.validation_mixture.Count(int64_t(std::min(validated, kMostValidated)));
  data.Continue(0, {});
  return data;
}

bool Data::TellsDocuments() const {
  return std::any_of(training.begin(), training.end(),
                     [](const Part &part) { return part.source->TellsDocuments(); });
}

absl::Status Data::OpenParts(const std::string &setting, const std::string &text,
                             std::vector<Part> &parts, std::vector<int64_t> &shares) {
  std::string error;
  const std::vector<DataSource> sources = ParseSources(text, error);
  if (sources.empty())
    return absl::InvalidArgumentError(absl::StrCat(setting, ": `", text, "`: ", error));
  shares = WholeShares(sources);
  std::string all;
  parts.clear();
  for (const DataSource &source : sources) {
    Part part;
    if (absl::Status status = OpenPart(source, part); !status.ok())
      return status;
    for (const Part &other : parts)
      if (other.identity == part.identity)
        return absl::InvalidArgumentError(
            absl::StrCat("a mix has `", other.source->name(), "` and `", part.source->name(),
                         "`, which have the same contents: one share for both is needed"));
    absl::StrAppend(&all, parts.empty() ? "" : ", ",
                    sources.size() > 1 ? absl::StrCat(source.share, " of ") : "", part.identity,
                    source.end < 0 ? "" : absl::StrCat(" whose documents end with ", source.end));
    parts.push_back(std::move(part));
  }
  settings[setting] = all;
  return absl::OkStatus();
}

absl::Status Data::OpenPart(const DataSource &source, Part &part) {
  if (source.end >= 0 && options.objective == Objective::masked && !options.document_mask)
    return absl::InvalidArgumentError(
        absl::StrCat(FormatSource(source), ": masked tokens are predicted where they stand, so "
                                           "`end` would change nothing; leave it out"));
  if (absl::Status status = TakeTokenizer(source); !status.ok())
    return status;
  absl::StatusOr<std::unique_ptr<Source>> opened =
      OpenSource(source, {options.vocab, options.context, options.cache});
  if (!opened.ok())
    return opened.status();
  part.source = *std::move(opened);
  part.packed = source.packed;
  part.tokenized = source.is_tokenized();
  absl::StatusOr<std::vector<FilePrint>> files = part.source->Fingerprints();
  if (!files.ok())
    return files.status();
  std::string print = absl::StrFormat("with fingerprint %016x", Combine(*files));
  if (!source.packed)
    absl::StrAppend(&print, ", each padded to a multiple of ", options.context);
  const char *what = source.kind == SourceKind::bytes  ? "text "
                     : source.kind == SourceKind::text ? "tokens of texts "
                     : source.kind == SourceKind::chat ? "tokens of conversations "
                                                       : "tokens ";
  part.identity = absl::StrCat(what, print);
  if (source.kind == SourceKind::bytes)
    return absl::OkStatus();
  settings[absl::StrCat(kFilesOf, source.files)] =
      absl::StrCat(part.source->Describe(), " ", print);
  files->resize(std::min(files->size(), kMostNamed));
  for (const FilePrint &file : *files)
    settings[absl::StrCat(kFileOf, source.files, ": ", file.path)] =
        absl::StrFormat("%016x", file.hash);
  return absl::OkStatus();
}

/// Tokens of two tokenizers mean different things.
absl::Status Data::TakeTokenizer(const DataSource &source) {
  if (!source.is_tokenized())
    return absl::OkStatus();
  if (source.kind == SourceKind::chat && options.objective == Objective::masked)
    return absl::InvalidArgumentError(absl::StrCat(
        FormatSource(source), ": masked tokens are chosen at random, and conversations "
                              "say themselves what is learnt; use objective = "
                              "next_token"));
  if (!source.packed && options.objective == Objective::masked)
    return absl::InvalidArgumentError(absl::StrCat(
        FormatSource(source), ": masked tokens are chosen among all, so padding would be learnt; "
                              "leave out packed = false"));
  absl::StatusOr<std::string> print = PrintOfTokenizer(source.tokenizer);
  if (!print.ok())
    return print.status();
  if (tokenizer.empty()) {
    tokenizer = source.tokenizer;
    tokenizer_print = *print;
  }
  if (*print != tokenizer_print)
    return absl::InvalidArgumentError(
        absl::StrCat("`", tokenizer, "` and `", source.tokenizer,
                     "` are different tokenizers, whose tokens mean different things: the data "
                     "need one"));
  settings[absl::StrCat(kTokenizerOf, source.files)] = *print;
  if (!source.packed)
    settings[absl::StrCat(kPaddingOf, source.files)] = absl::StrCat(options.context);
  return absl::OkStatus();
}

absl::Status Data::CheckPart(const Part &part, bool validates) const {
  if (part.windows > 0 || (validates && !options.evaluates()))
    return absl::OkStatus();
  const Source &source = *part.source;
  const int64_t size = source.size();
  // Behind the last token of a document that is not packed, none is needed.
  const int64_t need = options.context + (part.packed ? 1 : 0);
  if (size >= need && source.windows() == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("`", source.name(), "`: none of its sequences of ", options.context,
                     " tokens has a target: more conversations or a smaller context are needed"));
  const int64_t held = source.overlaps() ? size - source.first_validation_window() : size / 10;
  const char *more = source.overlaps() ? "a longer text" : "more tokens";
  const std::string begin = absl::StrCat("`", source.name(), "` has ", size, " ", source.unit());
  const std::string takes = absl::StrCat(", but one sequence takes ", need, ": ", more);
  if (!options.validate.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(begin, takes, " or a smaller context is needed"));
  if (!validates)
    return absl::InvalidArgumentError(absl::StrCat(begin, ", ", size - held,
                                                   " of them for training", takes,
                                                   " or a smaller context is needed"));
  return absl::InvalidArgumentError(absl::StrCat(begin, ", the last tenth of them, ", held,
                                                 ", for validation", takes,
                                                 ", a smaller context or no evaluation is needed"));
}

//===----------------------------------------------------------------------===//
// Which sequences
//===----------------------------------------------------------------------===//

void Data::Continue(int64_t step, const std::map<std::string, int64_t> &samples) {
  committed = step;
  consumed = 0;
  for (const auto &[source, count] : samples)
    consumed += count;
  consumed_of.clear();
  for (const Part &part : training) {
    auto found = samples.find(part.identity);
    consumed_of.push_back(found == samples.end() ? 0 : found->second);
  }
  counted = mixture.Count(consumed);
}

std::map<std::string, int64_t> Data::Consumed(int64_t first, int64_t last) const {
  auto count = [&](int64_t step) {
    return mixture.Count(consumed + (step - committed) * options.batch());
  };
  const std::vector<int64_t> before = count(first), after = count(last);
  std::map<std::string, int64_t> samples;
  for (size_t i = 0; i < training.size(); ++i)
    samples[training[i].identity] += after[i] - before[i];
  return samples;
}

std::map<std::string, int64_t> Data::TokensOf(int64_t step) const {
  std::map<std::string, int64_t> tokens;
  if (training.size() > 1) {
    const std::map<std::string, int64_t> samples = Consumed(step - 1, step);
    for (const Part &part : training)
      tokens[part.source->name()] += samples.at(part.identity) * options.context;
  }
  return tokens;
}

Data::Sample Data::SampleOf(int64_t step, int64_t sequence) const {
  const uint64_t seed = options.seed;
  if (training[0].source->overlaps()) {
    const uint64_t number = step, of = sequence;
    return {&training[0],
            int64_t(Below(Hash({kTrainingStart, seed, number, of}), training[0].windows)),
            Hash({kTrainingMask, seed, number, of})};
  }
  const int64_t sample = consumed + (step - committed - 1) * options.batch() + sequence;
  const Mixture::Place place = mixture.At(sample);
  const Part &part = training[place.source];
  const int64_t position = consumed_of[place.source] + place.position - counted[place.source];
  return {&part, part.first + WindowAt(seed, position, part.windows),
          Hash({kTrainingMask, seed, uint64_t(sample)})};
}

Data::Sample Data::ValidationSample(int64_t sequence) const {
  const Mixture::Place place = validation_mixture.At(sequence);
  const Part &part = validation[place.source];
  const int64_t window = static_cast<int64_t>(static_cast<__int128>(place.position) * part.windows /
                                              std::max<int64_t>(validated_of[place.source], 1));
  return {&part, part.first + window, Hash({kValidationMask, static_cast<uint64_t>(sequence)})};
}

//===----------------------------------------------------------------------===//
// Their contents
//===----------------------------------------------------------------------===//

absl::Status Data::FillTraining(int64_t step, int64_t micro_batch, int32_t *tokens,
                                int32_t *targets, int32_t *starts) const {
  for (int64_t i = 0; i < options.micro_batch; ++i)
    if (absl::Status status = FillSequence(SampleOf(step, micro_batch * options.micro_batch + i), i,
                                           tokens, targets, starts);
        !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status Data::FillValidation(int64_t micro_batch, int32_t *tokens, int32_t *targets,
                                  int32_t *starts) const {
  for (int64_t i = 0; i < options.micro_batch; ++i)
    if (absl::Status status = FillSequence(ValidationSample(micro_batch * options.micro_batch + i),
                                           i, tokens, targets, starts);
        !status.ok())
      return status;
  return absl::OkStatus();
}

int64_t Data::WholeSequences(const Part &part) const {
  const int64_t stride = part.source->overlaps() ? options.context : 1;
  return (part.windows + stride - 1) / stride;
}

int64_t Data::WholeSequences() const {
  int64_t all = 0;
  for (const Part &part : validation)
    all += WholeSequences(part);
  return all;
}

absl::Status Data::FillWhole(int64_t first, int32_t *tokens, int32_t *targets,
                             int32_t *starts) const {
  for (int64_t i = 0; i < options.micro_batch; ++i) {
    const int64_t number = first + i;
    int64_t sequence = number;
    auto part = validation.begin();
    while (part != validation.end() && sequence >= WholeSequences(*part))
      sequence -= WholeSequences(*part++);
    if (part == validation.end()) {
      std::fill_n(tokens + i * options.context, options.context, 0);
      std::fill_n(targets + i * options.context, options.context, -1);
      if (starts)
        std::fill_n(starts + i * options.context, options.context, 0);
      continue;
    }
    const int64_t stride = part->source->overlaps() ? options.context : 1;
    const Sample sample = {&*part, part->first + sequence * stride,
                           Hash({kValidationMask, static_cast<uint64_t>(number)})};
    if (absl::Status status = FillSequence(sample, i, tokens, targets, starts); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status Data::FillSequence(const Sample &sample, int64_t i, int32_t *tokens, int32_t *targets,
                                int32_t *starts) const {
  Window window;
  if (absl::Status status = sample.part->source->Read(sample.window, window); !status.ok())
    return status;
  tokens += i * options.context;
  targets += i * options.context;
  if (starts) {
    starts += i * options.context;
    std::fill_n(starts, options.context, 0);
    for (int64_t begin : window.begins)
      if (begin < options.context)
        starts[begin] = int32_t(begin);
    std::partial_sum(starts, starts + options.context, starts,
                     [](int32_t before, int32_t here) { return std::max(before, here); });
  }
  std::copy_n(window.tokens.begin(), options.context, tokens);
  if (options.objective == Objective::masked) {
    MaskTokens(mask, sample.mask, options.context, tokens, targets);
    return absl::OkStatus();
  }
  std::copy_n(window.tokens.begin() + 1, options.context, targets);
  for (int64_t position : window.untargeted)
    targets[position] = -1;
  return absl::OkStatus();
}

std::string Data::Describe() const {
  const bool own = !options.validate.empty();
  std::string text;
  auto size = [](const Part &part) {
    const Source &source = *part.source;
    return source.overlaps() ? std::string() : absl::StrCat(source.Describe(), ", ");
  };
  // Of a text, its bytes: a window begins at each.
  auto part_of = [&](const Part &part, bool validates) {
    const Source &source = *part.source;
    if (!source.overlaps())
      return absl::StrCat(part.windows, part.windows == 1 ? " sequence" : " sequences");
    const int64_t cut = source.first_validation_window();
    return FormatBytes(double(own ? source.size() : validates ? source.size() - cut : cut));
  };
  for (size_t i = 0; i < training.size(); ++i)
    absl::StrAppend(&text, training[i].source->name(), ": ", size(training[i]),
                    part_of(training[i], false), " to train on",
                    own ? "" : absl::StrCat(", ", part_of(validation[i], true), " to validate"),
                    "\n");
  for (size_t i = 0; own && i < validation.size(); ++i)
    absl::StrAppend(&text, validation[i].source->name(), ": ", size(validation[i]),
                    part_of(validation[i], true), " to validate\n");
  if (!options.document_mask && std::any_of(training.begin(), training.end(), [](const Part &part) {
        return part.tokenized && part.packed;
      }))
    text += "note: without document_mask, attention is across the documents of a sequence\n";
  return text;
}

} // namespace boa
