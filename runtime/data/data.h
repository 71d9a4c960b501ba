//===- data.h - Batches of a training ---------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sequences of each step, from the sources of `data`. The last tenth of each source is for
// validation, unless `validate` names others.
//
// Sampling keeps no state. A sequence is a function of (seed, step, sequence of the step) and of
// the samples that the opened commit counts. So a resumed run reads the same ones as an unbroken
// run. Micro-batches only cut a step into parts.
//
//   - Of a text, a sequence begins at a byte that is a hash.
//   - Of tokens, sample n of a source is its window at position n: each window once in each epoch,
//     in an order that is a function of seed and epoch (order.h).
//   - In a mix, the source of a sample is a function of the seed and the number of all samples
//     before it. So another batch or mix goes on with sequences that were not seen.
//
// Refuses what its sources refuse (text.h, shard.h), and a source that has no sequence to train
// on. If the run evaluates, each one for validation must have a sequence, too. Of tokens the last
// sequence may be padded, so two tokens are enough; masked ones need as many as a sequence has.
//
// Threads: calls of a const Data may come from several threads at once.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_DATA_H
#define BOA_RUNTIME_DATA_DATA_H

#include "runtime/abi/program.h"
#include "runtime/data/mask.h"
#include "runtime/data/order.h"
#include "runtime/data/source.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boa {

/// Where sequences come from, and their shape. Members as in the table of settings.
struct DataOptions {
  std::string data, validate;
  Objective objective = Objective::next_token;
  bool document_mask = false; // attention is within documents
  double mask_probability = 0.15;
  int64_t mask_token = 0;
  int64_t vocab = 256, context = 0;
  int64_t micro_batch = 0, micro_batches = 0; // sequences; of a step
  int64_t seed = 1;
  int64_t evaluate_every = 0, evaluate_batches = 0;
  CacheOptions cache; // of the tokens of text(...) and chat(...)

  DataOptions() = default;
  explicit DataOptions(const Program &);

  bool evaluates() const { return evaluate_every > 0 && evaluate_batches > 0; }
  int64_t batch() const { return micro_batches * micro_batch; }
  int64_t asked() const; // sequences of an evaluation, if there are so many
};

/// Names of settings that tell the files of a pattern: `files of PATTERN` of all together, and
/// `file of PATTERN: PATH` of each of the first ones. `call of PATTERN` is the call that names them
/// in `data`. `tokenizer of PATTERN` is a hash. `padding of PATTERN` is the multiple to which each
/// document is padded, if any. The date is the one that chat templates show, if any does.
inline constexpr char kFilesOf[] = "files of ", kFileOf[] = "file of ", kCallOf[] = "call of ",
                      kTokenizerOf[] = "tokenizer of ", kPaddingOf[] = "padding of ",
                      kTemplateDate[] = "date of templates";
/// The setting that tells which tokens masked training leaves alone, beside the mask.
inline constexpr char kSpecialTokens[] = "special tokens";

/// A note if the vocabulary has tokens that no text holds; otherwise "".
std::string DescribeUnusedTokens(const DataOptions &);

/// Whether tokens are the bytes of a text.
bool TokensAreBytes(const std::string &data);

/// The files of `data` or `validate`. A wrong value has none; Data::Open names the fault.
std::vector<std::string> DataFiles(const std::string &data);

class Data {
public:
  static absl::StatusOr<Data> Open(const DataOptions &);

  /// The run goes on after `step`. `samples`: sequences that were consumed until then, by the
  /// identity of a source. Comes before steps are filled.
  void Continue(int64_t step, const std::map<std::string, int64_t> &samples);

  /// One micro-batch of a training step: [micro_batch, context] each. Targets of -1 do not count.
  /// `starts`, if not null, are the positions at which the documents of tokens begin.
  absl::Status FillTraining(int64_t step, int64_t micro_batch, int32_t *tokens, int32_t *targets,
                            int32_t *starts = nullptr) const;
  /// The sequences of an evaluation: those of `evaluate_batches` batches, or all that there are. So
  /// none comes twice.
  int64_t ValidationSequences() const;
  /// One micro-batch of them. Every evaluation has the same ones: spread evenly over the part for
  /// validation, or those of WholeSequences where it asks for all. Behind the last, no target
  /// counts.
  absl::Status FillValidation(int64_t micro_batch, int32_t *tokens, int32_t *targets,
                              int32_t *starts = nullptr) const;

  /// All sequences for validation, in the order of the sources: each of their tokens is in one.
  int64_t WholeSequences() const;
  /// `micro_batch` of them, from `first` on: [micro_batch, context] each. Behind the last, no
  /// target counts.
  absl::Status FillWhole(int64_t first, int32_t *tokens, int32_t *targets,
                         int32_t *starts = nullptr) const;

  /// A source, and those of its windows that are for one purpose.
  struct Part {
    std::shared_ptr<const Source> source;
    int64_t first = 0, windows = 0;
    int64_t share = 1; // of a mix, without a common divisor
    bool packed = true;
    SourceKind kind = SourceKind::bytes;
    std::string identity; // "tokens with fingerprint 0123456789abcdef"
  };
  /// For who looks at the data. Without `validate`, both have the same sources.
  const std::vector<Part> &ToTrain() const { return training; }
  const std::vector<Part> &ToValidate() const { return validation; }
  /// A sequence as a program gets it, and the window of which it was made.
  struct Sequence {
    const Part *part = nullptr;
    Window window;
    std::vector<int32_t> tokens, targets, starts; // context of each
  };
  absl::StatusOr<Sequence> ReadTraining(int64_t step, int64_t sequence) const;
  /// A window of all that the source has (Source::ReadAny).
  absl::Status ReadAny(const Part &, int64_t window, Sequence &) const;

  /// Sequences of an epoch: each one to train on. Of a text, whose sequences overlap, as many as
  /// have a target for each byte, and a part of one.
  double SequencesOfEpoch(const Part &) const;
  /// The step that ends so many epochs of the data to train on. What was consumed of them until the
  /// opened commit counts; where they were over before, this is an earlier step. Refuses a mix,
  /// which has no epochs.
  absl::StatusOr<int64_t> StepOfEpochs(double epochs) const;
  /// The sequences that the steps after `first` up to `last` consume, by the identity of a source.
  std::map<std::string, int64_t> Consumed(int64_t first, int64_t last) const;
  /// The tokens that a step takes from each source of a mix, by the source's name; empty: no mix.
  std::map<std::string, int64_t> TokensOf(int64_t step) const;
  /// The settings that a commit keeps: identities of sources, and the files of each pattern.
  const std::map<std::string, std::string> &facts() const { return settings; }
  /// Whether a source to train on tells where its documents begin.
  bool TellsDocuments() const;
  /// The sources and their sizes, a line each.
  std::string Describe() const;

private:
  struct Sample {
    const Part *part = nullptr;
    int64_t window = 0;
    uint64_t mask = 0; // key
  };

  absl::Status OpenParts(const std::string &setting, const std::string &text,
                         std::vector<Part> &parts, std::vector<int64_t> &shares);
  absl::Status OpenPart(const DataSource &, Part &);
  absl::Status CheckPart(const Part &, bool validates) const;
  absl::Status TakeTokenizer(const DataSource &);
  absl::Status TakeSpecial(const DataSource &);
  void NoteSpecial();
  Sample SampleOf(int64_t step, int64_t sequence) const;
  /// Without a part: there is none.
  Sample ValidationSample(int64_t sequence) const;
  Sample WholeSample(int64_t sequence) const;
  int64_t WholeSequences(const Part &) const;
  int64_t Stride(const Part &) const; // from one whole sequence to the next
  /// Sequence i of those that the pointers point to. A sample without a part has no target.
  absl::Status FillSequence(const Sample &, int64_t i, int32_t *tokens, int32_t *targets,
                            int32_t *starts) const;
  /// The tokens of a window, and its targets. `mask`: key of a masked one.
  void Fill(const Part &, const Window &, uint64_t mask, int32_t *tokens, int32_t *targets,
            int32_t *starts) const;
  void Fill(const Part &, uint64_t mask, Sequence &) const;

  DataOptions options;
  MaskOptions mask;
  std::vector<Part> training, validation;
  Mixture mixture;
  std::map<std::string, std::string> settings;
  std::string tokenizer, tokenizer_print; // the first one, and a hash of it
  // Of the opened commit.
  int64_t committed = 0;             // step
  int64_t consumed = 0;              // of all sources
  std::vector<int64_t> consumed_of;  // of each part
  std::vector<int64_t> counted;      // what the mixture says of `consumed`
  std::vector<int64_t> validated_of; // sequences of one evaluation, of each part
  std::vector<bool> special;         // tokens that masked training leaves alone; else empty
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_DATA_H
