//===- data.cpp - Batches from a text -------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/data.h"

#include "runtime/support/random.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <vector>

namespace boa {
namespace {

// The purpose of a hash: the first word of its key.
enum Purpose : uint64_t { kTrainingStart = 1, kTrainingMask, kValidationMask };

absl::StatusOr<InputFile> OpenText(const std::string &path) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (file.ok())
    return file;
  std::error_code error;
  const std::string whole = std::filesystem::absolute(path, error).string();
  return absl::Status(file.status().code(), absl::StrCat("training data: ", file.status().message(),
                                                         "\n  looked for: ", error ? path : whole));
}

absl::Status CheckVocabulary(const InputFile &file, const DataOptions &options) {
  if (options.vocab >= 256)
    return absl::OkStatus();
  std::vector<uint8_t> block(1 << 20);
  for (int64_t offset = 0; offset < file.size(); offset += block.size()) {
    const int64_t count = std::min<int64_t>(block.size(), file.size() - offset);
    if (absl::Status status = file.Read(offset, block.data(), count); !status.ok())
      return status;
    for (int64_t i = 0; i < count; ++i)
      if (block[i] >= options.vocab)
        return absl::InvalidArgumentError(
            absl::StrCat("`", options.data, "`: byte ", static_cast<int>(block[i]), " at offset ",
                         offset + i, " is outside the vocabulary of ", options.vocab));
  }
  return absl::OkStatus();
}

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

absl::Status CheckLength(int64_t size, int64_t training, const DataOptions &options) {
  const int64_t need = options.context + 1;
  if (training < need)
    return absl::InvalidArgumentError(
        absl::StrCat("`", options.data, "` has ", size, " bytes, ", training,
                     " of them for training, but one sequence takes ", need,
                     ": a longer text or a smaller context is needed"));
  const bool evaluates = options.evaluate_every > 0 && options.evaluate_batches > 0;
  if (evaluates && size - training < need)
    return absl::InvalidArgumentError(
        absl::StrCat("`", options.data, "` has ", size, " bytes, the last tenth of them, ",
                     size - training, ", for validation, but one sequence takes ", need,
                     ": a longer text, a smaller context or no evaluation is needed"));
  return absl::OkStatus();
}

} // namespace

DataOptions::DataOptions(const Program &program)
    : data(program.train.data), objective(program.train.objective),
      mask_probability(program.train.mask_probability), mask_token(program.train.mask_token),
      vocab(program.model.vocab), context(program.model.context), micro_batch(program.MicroBatch()),
      micro_batches(program.MicroBatches()), seed(program.train.seed),
      evaluate_every(program.train.evaluate_every),
      evaluate_batches(program.train.evaluate_batches) {}

std::string DescribeUnusedTokens(const DataOptions &options) {
  const bool mask = options.objective == Objective::masked && options.mask_token >= 256;
  const int64_t used = mask ? 257 : 256;
  if (options.vocab <= used)
    return "";
  return absl::StrCat("note: the vocabulary has ", options.vocab,
                      " tokens, but the data fills only ", used, ": each byte is a token",
                      mask ? ", and the mask is one" : "",
                      "; the others never occur and are never sampled");
}

absl::StatusOr<Data> Data::Open(const DataOptions &options) {
  if (absl::Status status = CheckMask(options); !status.ok())
    return status;
  absl::StatusOr<InputFile> file = OpenText(options.data);
  if (!file.ok())
    return file.status();
  const int64_t training = file->size() - file->size() / 10;
  if (absl::Status status = CheckLength(file->size(), training, options); !status.ok())
    return status;
  if (absl::Status status = CheckVocabulary(*file, options); !status.ok())
    return status;
  Data data;
  data.options = options;
  data.file = *std::move(file);
  data.training = training;
  return data;
}

absl::Status Data::FillTraining(int64_t step, int64_t micro_batch, int32_t *tokens,
                                int32_t *targets) const {
  const uint64_t seed = options.seed, step_key = step;
  for (int64_t i = 0; i < options.micro_batch; ++i) {
    const uint64_t sequence = micro_batch * options.micro_batch + i;
    const int64_t start =
        Below(Hash({kTrainingStart, seed, step_key, sequence}), training - options.context);
    if (absl::Status status =
            FillSequence(start, Hash({kTrainingMask, seed, step_key, sequence}),
                         tokens + i * options.context, targets + i * options.context);
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status Data::FillValidation(int64_t micro_batch, int32_t *tokens, int32_t *targets) const {
  const int64_t sequences = options.evaluate_batches * options.micro_batches * options.micro_batch;
  const int64_t starts = validation_bytes() - options.context;
  for (int64_t i = 0; i < options.micro_batch; ++i) {
    const int64_t sequence = micro_batch * options.micro_batch + i;
    const int64_t start =
        training + static_cast<int64_t>(static_cast<__int128>(sequence) * starts / sequences);
    // Without the seed: runs with different seeds are compared on the same
    // text.
    if (absl::Status status =
            FillSequence(start, Hash({kValidationMask, static_cast<uint64_t>(sequence)}),
                         tokens + i * options.context, targets + i * options.context);
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status Data::FillSequence(int64_t start, uint64_t key, int32_t *tokens,
                                int32_t *targets) const {
  // One byte more than the context: the last target.
  std::vector<uint8_t> bytes(options.context + 1);
  if (absl::Status status = file.Read(start, bytes.data(), bytes.size()); !status.ok())
    return status;
  std::copy_n(bytes.begin(), options.context, tokens);
  if (options.objective == Objective::masked)
    Mask(key, tokens, targets);
  else
    std::copy_n(bytes.begin() + 1, options.context, targets);
  return absl::OkStatus();
}

/// Devlin et al. 2018: of the positions to predict, 80% show the mask token, 10% a random one and
/// 10% the original. Every sequence has the same number of them, and so the same weight in the
/// mean. A sequence without any would have no loss, so it has at least one.
void Data::Mask(uint64_t key, int32_t *tokens, int32_t *targets) const {
  const int64_t count = std::clamp<int64_t>(
      std::llround(options.mask_probability * options.context), 1, options.context);
  // The beginning of a shuffle (Fisher and Yates).
  std::vector<int64_t> positions(options.context);
  std::iota(positions.begin(), positions.end(), 0);
  std::fill_n(targets, options.context, -1);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t other = i + Below(Hash({key, static_cast<uint64_t>(i), 0}), options.context - i);
    std::swap(positions[i], positions[other]);
    targets[positions[i]] = tokens[positions[i]];
  }
  for (int64_t i = 0; i < options.context; ++i) {
    const uint64_t position = i;
    const double kind = Unit(Hash({key, position, 1}));
    if (targets[i] == -1 || kind >= 0.9)
      continue;
    if (kind < 0.8)
      tokens[i] = options.mask_token;
    else
      tokens[i] = Below(Hash({key, position, 2}), std::min<int64_t>(options.vocab, 256));
  }
}

absl::StatusOr<uint64_t> Data::Fingerprint() const {
  constexpr int64_t kBlock = 64 << 10, kBlocks = 256;
  const int64_t size = file.size();
  const int64_t blocks = std::min((size + kBlock - 1) / kBlock, kBlocks);
  uint64_t hash = Hash({static_cast<uint64_t>(size)});
  std::vector<uint64_t> words(kBlock / 8);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t begin =
        blocks < kBlocks ? block * kBlock : block * (size - kBlock) / (kBlocks - 1);
    const int64_t count = std::min(kBlock, size - begin);
    words.assign(words.size(), 0);
    if (absl::Status status = file.Read(begin, words.data(), count); !status.ok())
      return status;
    for (uint64_t word : words)
      hash = Mix(hash ^ word);
  }
  return hash;
}

} // namespace boa
