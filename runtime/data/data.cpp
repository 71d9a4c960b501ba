//===- data.cpp - Batches of a training -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/data.h"

#include "runtime/abi/sizes.h"
#include "runtime/support/random.h"
#include "runtime/support/units.h"

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace boa {
namespace {

// The purpose of a hash: the first word of its key.
enum Purpose : uint64_t { kTrainingStart = 1, kTrainingMask, kValidationMask };

} // namespace

DataOptions::DataOptions(const Program &program)
    : data(program.train.data), validate(program.train.validate),
      objective(program.train.objective), document_mask(program.TakesDocuments()),
      mask_probability(program.train.mask_probability), mask_token(program.train.mask_token),
      vocab(program.model.vocab), context(program.model.context), micro_batch(program.MicroBatch()),
      micro_batches(program.MicroBatches()), seed(program.train.seed),
      evaluate_every(program.train.evaluate_every),
      evaluate_batches(program.train.evaluate_batches) {}

int64_t DataOptions::asked() const {
  const absl::int128 all = absl::int128(evaluate_batches) * batch();
  return int64_t(std::min(all, absl::int128(kMostSamples)));
}

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

double Data::SequencesOfEpoch(const Part &part) const {
  // Windows of a text begin at each byte. Of the bytes, the first one is no target.
  return part.source->overlaps() && part.windows > 0
             ? double(part.windows + options.context - 1) / double(options.context)
             : double(part.windows);
}

absl::StatusOr<int64_t> Data::StepOfEpochs(double epochs) const {
  if (training.size() > 1)
    return absl::InvalidArgumentError(absl::StrCat(
        "`", options.data, "` is a mix, which takes from each source its share, ",
        "whatever its size, and has no epochs: a number of steps is needed, of the spec or "
        "--steps; boa data tells the steps of an epoch of each"));
  // A product may be a little more than the whole number that it is: 1.1 * 10.
  constexpr double kRounding = 1 - 1e-12;
  const double sequences = std::ceil(epochs * SequencesOfEpoch(training[0]) * kRounding);
  const double left = sequences - double(consumed_of[0]);
  const double step = double(committed) + std::ceil(left / double(options.batch()));
  if (step > kMostSteps)
    return absl::InvalidArgumentError(absl::StrCat(
        epochs, " epochs take ", step, " steps, but a training has at most ", int64_t(kMostSteps)));
  return int64_t(std::max(step, 0.0));
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
  int64_t place = sequence;
  size_t i = 0;
  while (i < validation.size() && place >= validated_of[i])
    place -= validated_of[i++];
  if (i == validation.size())
    return {};
  const Part &part = validation[i];
  const int64_t whole = WholeSequences(part);
  const int64_t window = validated_of[i] == whole
                             ? place * Stride(part)
                             : int64_t(__int128{place} * part.windows / validated_of[i]);
  return {&part, part.first + window, Hash({kValidationMask, static_cast<uint64_t>(sequence)})};
}

Data::Sample Data::WholeSample(int64_t sequence) const {
  int64_t place = sequence;
  auto part = validation.begin();
  while (part != validation.end() && place >= WholeSequences(*part))
    place -= WholeSequences(*part++);
  if (part == validation.end())
    return {};
  return {&*part, part->first + place * Stride(*part),
          Hash({kValidationMask, static_cast<uint64_t>(sequence)})};
}

int64_t Data::Stride(const Part &part) const {
  return part.source->overlaps() ? options.context : 1;
}

int64_t Data::WholeSequences(const Part &part) const {
  if (!part.source->overlaps() || part.windows == 0)
    return part.windows;
  // Of a text, the last one may have few targets. Of masked bytes, the last byte is one, too.
  const int64_t targets =
      part.source->size() - part.first - (options.objective != Objective::masked);
  return (targets + options.context - 1) / options.context;
}

int64_t Data::WholeSequences() const {
  int64_t all = 0;
  for (const Part &part : validation)
    all += WholeSequences(part);
  return all;
}

int64_t Data::ValidationSequences() const {
  return std::accumulate(validated_of.begin(), validated_of.end(), int64_t{0});
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

absl::Status Data::FillWhole(int64_t first, int32_t *tokens, int32_t *targets,
                             int32_t *starts) const {
  for (int64_t i = 0; i < options.micro_batch; ++i)
    if (absl::Status status = FillSequence(WholeSample(first + i), i, tokens, targets, starts);
        !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status Data::FillSequence(const Sample &sample, int64_t i, int32_t *tokens, int32_t *targets,
                                int32_t *starts) const {
  Window window;
  tokens += i * options.context;
  targets += i * options.context;
  starts += starts ? i * options.context : 0;
  if (!sample.part) {
    std::fill_n(tokens, options.context, 0);
    std::fill_n(targets, options.context, -1);
    if (starts)
      std::fill_n(starts, options.context, 0);
    return absl::OkStatus();
  }
  if (absl::Status status = sample.part->source->Read(sample.window, window); !status.ok())
    return status;
  Fill(*sample.part, window, sample.mask, tokens, targets, starts);
  return absl::OkStatus();
}

absl::StatusOr<Data::Sequence> Data::ReadTraining(int64_t step, int64_t sequence) const {
  const Sample sample = SampleOf(step, sequence);
  Sequence read;
  read.part = sample.part;
  if (absl::Status status = sample.part->source->Read(sample.window, read.window); !status.ok())
    return status;
  Fill(*sample.part, sample.mask, read);
  return read;
}

absl::Status Data::ReadAny(const Part &part, int64_t window, Sequence &to) const {
  to.part = &part;
  if (absl::Status status = part.source->ReadAny(window, to.window); !status.ok())
    return status;
  Fill(part, /*mask=*/0, to);
  return absl::OkStatus();
}

void Data::Fill(const Part &part, uint64_t key, Sequence &to) const {
  const auto context = size_t(options.context);
  to.tokens.resize(context);
  to.targets.resize(context);
  to.starts.resize(context);
  Fill(part, to.window, key, to.tokens.data(), to.targets.data(), to.starts.data());
}

void Data::Fill(const Part &part, const Window &window, uint64_t key, int32_t *tokens,
                int32_t *targets, int32_t *starts) const {
  if (starts) {
    std::fill_n(starts, options.context, 0);
    for (int64_t begin : window.begins)
      if (begin < options.context)
        starts[begin] = int32_t(begin);
    std::partial_sum(starts, starts + options.context, starts,
                     [](int32_t before, int32_t here) { return std::max(before, here); });
  }
  std::copy_n(window.tokens.begin(), options.context, tokens);
  if (options.objective == Objective::masked) {
    std::vector<bool> may(size_t(options.context), true);
    for (int64_t position : window.untargeted)
      if (position < options.context) // behind it there is one more token
        may[size_t(position)] = false;
    std::vector<int64_t> positions;
    for (int64_t p = 0; p < options.context; ++p)
      if (may[size_t(p)] && !(part.kind != SourceKind::bytes && special[size_t(tokens[p])]))
        positions.push_back(p);
    MaskTokens(mask, key, std::move(positions), options.context, tokens, targets);
    return;
  }
  std::copy_n(window.tokens.begin() + 1, options.context, targets);
  for (int64_t position : window.untargeted)
    targets[position] = -1;
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
  const int64_t asked = options.evaluates() ? options.asked() : 0;
  if (ValidationSequences() < asked)
    absl::StrAppend(&text, "note: `evaluate` asks for ", asked,
                    " sequences, and an evaluation has ",
                    ValidationSequences() == WholeSequences() ? "all " : "", ValidationSequences(),
                    ", each once\n");
  for (const Part &part : training)
    if (options.objective == Objective::masked && tokenizer.empty() &&
        part.kind == SourceKind::tokens)
      absl::StrAppend(&text, "note: special tokens of ", part.source->name(),
                      " are masked as others are; tokens(..., tokenizer = \"FILE\") tells which "
                      "they are\n");
  if (!options.document_mask && std::any_of(training.begin(), training.end(), [](const Part &part) {
        return (part.kind == SourceKind::text || part.kind == SourceKind::chat) && part.packed;
      }))
    text += "note: without document_mask, attention is across the documents of a sequence\n";
  return text;
}

} // namespace boa
