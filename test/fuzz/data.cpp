//===- data.cpp - Any text as training data, any settings -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input ends in settings, within what ParseProgram accepts; what stands before
// them is the text. Where it opens, any batch of it can be filled, with tokens of
// the vocabulary and at least one target, the same each time. The same bytes are then files of
// tokens, the index and the targets of one, and records of conversations.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/sizes.h"
#include "runtime/data/chat_form.h"
#include "runtime/data/data.h"
#include "runtime/data/documents.h"
#include "runtime/data/records.h"
#include "runtime/data/token_marks.h"
#include "test/fuzz/support.h"

#include <algorithm>
#include <fuzzer/FuzzedDataProvider.h>

using namespace boa;

namespace {

constexpr int64_t kMost = int64_t{1} << 31; // of what is counted, in ParseProgram
constexpr int64_t kMostFilled = 1 << 16;    // elements that are filled here

/// Mostly small, sometimes anything.
int64_t Count(FuzzedDataProvider &input, int64_t least, int64_t most = kMost) {
  return input.ConsumeIntegralInRange<uint8_t>(0, 7) == 7
             ? input.ConsumeIntegralInRange<int64_t>(least, most)
             : input.ConsumeIntegralInRange<int64_t>(least, 40);
}

DataOptions Settings(FuzzedDataProvider &input) {
  DataOptions settings;
  settings.objective = input.ConsumeBool() ? Objective::masked : Objective::next_token;
  settings.mask_probability = input.ConsumeBool() ? input.ConsumeProbability<double>()
                                                  : input.ConsumeFloatingPoint<double>();
  settings.mask_token = input.ConsumeIntegral<int32_t>() >> input.ConsumeIntegralInRange(0, 31);
  settings.vocab = input.ConsumeBool() ? 256 : Count(input, 1, kLongestAxis);
  settings.context = Count(input, 1, kLongestAxis);
  settings.micro_batch = Count(input, 1);
  settings.micro_batches = Count(input, 1);
  settings.evaluate_batches = Count(input, 0);
  settings.seed = input.ConsumeIntegral<int64_t>();
  return settings;
}

void Check(const DataOptions &settings, const std::vector<int32_t> &tokens,
           const std::vector<int32_t> &targets, bool documents) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    fuzz::Require(tokens[i] >= 0 && tokens[i] < settings.vocab, "a token of the vocabulary");
    fuzz::Require(targets[i] >= -1 && targets[i] < settings.vocab, "a target of the vocabulary");
  }
  for (size_t begin = 0; begin < targets.size(); begin += size_t(settings.context)) {
    bool any = false;
    for (size_t i = begin; i < begin + size_t(settings.context); ++i)
      any |= targets[i] >= 0;
    fuzz::Require(any || documents, "a sequence has a target");
  }
}

/// Fills some batches, if they are small enough.
void Fill(const DataOptions &settings, int64_t step, int64_t batch, int64_t validation,
          bool documents) {
  absl::StatusOr<Data> data = Data::Open(settings);
  if (!data.ok())
    return;
  absl::StatusOr<Data> again = Data::Open(settings);
  fuzz::Require(again.ok() && data->facts() == again->facts(), "data have one fingerprint");
  if (settings.micro_batch > kMostFilled || settings.context > kMostFilled ||
      settings.micro_batch * settings.context > kMostFilled)
    return;
  const size_t elements = size_t(settings.micro_batch * settings.context);
  std::vector<int32_t> tokens(elements), targets(elements), tokens_again(elements),
      targets_again(elements);
  if (batch < settings.micro_batches) {
    absl::Status status = data->FillTraining(step, batch, tokens.data(), targets.data());
    // A token of a file may be found to be outside of the vocabulary now.
    if (!status.ok() && !TokensAreBytes(settings.data))
      return;
    fuzz::Require(
        status.ok() &&
            data->FillTraining(step, batch, tokens_again.data(), targets_again.data()).ok(),
        "a batch can be filled");
    fuzz::Require(tokens == tokens_again && targets == targets_again, "a batch is the same");
    Check(settings, tokens, targets, documents);
  }
  if (settings.evaluate_every > 0 &&
      validation < data->ValidationSequences() / settings.micro_batch) {
    absl::Status status = data->FillValidation(validation, tokens.data(), targets.data());
    if (!status.ok() && !TokensAreBytes(settings.data))
      return;
    fuzz::Require(status.ok(), "a batch for validation can be filled");
    Check(settings, tokens, targets, documents);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  FuzzedDataProvider input(bytes, size);
  DataOptions settings = Settings(input);
  const int64_t step = input.ConsumeIntegralInRange<int64_t>(0, INT64_MAX);
  const int64_t batch = Count(input, 0), validation = Count(input, 0);
  settings.evaluate_every = input.ConsumeBool(); // or never: then validation has no text
  const std::string path = fuzz::Scratch() + "/text";
  const std::string contents = input.ConsumeRemainingBytesAsString();
  fuzz::WriteFile(path, contents);
  settings.data = path;
  Fill(settings, step, batch, validation, /*documents=*/false);
  // The same bytes as a file of tokens, and as the index of one.
  for (const char *arguments : {"", ", uint8", ", end = 1"}) {
    settings.data = "tokens(\"" + path + "\"" + arguments + ")";
    Fill(settings, step % 1000, batch, validation,
         // The mask's own token is never masked.
         /*documents=*/*arguments != 0 || settings.objective == Objective::masked);
  }
  if (absl::StatusOr<Documents> documents = Documents::Open(path); documents.ok()) {
    std::vector<int64_t> begins;
    fuzz::Require(documents->FindBegins(0, documents->tokens(), begins).ok() &&
                      std::is_sorted(begins.begin(), begins.end()),
                  "an index that opens can be searched");
  }
  for (Mark kind : {Mark::target, Mark::begin})
    if (absl::StatusOr<TokenMarks> marks = TokenMarks::Open(path, kind); marks.ok()) {
      std::vector<bool> bits(size_t(std::min(marks->tokens(), kMostFilled)));
      fuzz::Require(marks->Read(0, bits).ok() && marks->marked() <= marks->tokens(),
                    "marks that open can be read");
    }
  static const ChatForm form(*OpenTemplate("chatml"), {});
  const auto read = [](int64_t, absl::string_view line, int64_t) {
    const auto record = ParseRecord(line, [](bool) { return &form.jinja(); });
    if (!record.ok())
      return absl::OkStatus();
    fuzz::Require(record->is_pair ? !record->completion.empty()
                                  : !record->conversation.messages.empty(),
                  "a record has something to learn");
    const auto texts = form.Answers(record->conversation);
    for (const ChatText &text : texts.ok() ? *texts : std::vector<ChatText>()) {
      size_t done = 0;
      for (const auto &[begin, end] : text.targets) {
        fuzz::Require(done <= begin && begin < end && end <= text.text.size(),
                      "targets are parts of the text, in order");
        done = end;
      }
    }
    return absl::OkStatus();
  };
  if (absl::StatusOr<InputFile> file = InputFile::Open(path); file.ok())
    fuzz::Require(ReadLines(*file, read).ok(), "lines can be read");
  return 0;
}
