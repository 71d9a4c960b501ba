//===- evaluate_commit.cpp - The loss of a whole text ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/evaluate_commit.h"

#include "runtime/data/other_tokens.h"
#include "runtime/device/memory.h"
#include "runtime/support/printable.h"
#include "runtime/support/units.h"
#include "runtime/trainer/opening.h"
#include "runtime/trainer/request.h"
#include "runtime/trainer/step_queue.h"
#include "runtime/weights/restore.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

namespace boa {
namespace {

/// All data are for validation, and all of them that are for validation are used.
Program WithText(Program program, const std::string &data) {
  if (!data.empty())
    program.train.data = program.train.validate = data;
  program.train.evaluate_every = program.train.evaluate_batches = 1;
  return program;
}

struct Sum {
  double loss = 0;
  int64_t targets = 0, sequences = 0;
};

absl::Status AsItWas(const absl::Status &status) {
  return IfInterrupted(status, "interrupted; the state is as it was");
}

absl::StatusOr<Sum> Add(const Program &program, const Data &data, int64_t step, StepQueue &steps) {
  Sum sum;
  sum.sequences = data.WholeSequences();
  const int64_t of_batch = program.MicroBatches() * program.MicroBatch();
  for (int64_t first = 0; first < sum.sequences; first += of_batch) {
    if (Interrupted())
      return Interruption();
    MicroBatches batches(program);
    for (int64_t m = 0; m < program.MicroBatches(); ++m)
      if (absl::Status status =
              data.FillWhole(first + m * program.MicroBatch(), batches.tokens[size_t(m)].data(),
                             batches.targets[size_t(m)].data(), batches.StartsOf(m));
          !status.ok())
        return status;
    batches.CountTargets();
    if (absl::Status status = steps.Evaluate(step, batches); !status.ok())
      return status;
    sum.loss += batches.TotalLoss();
    sum.targets += batches.counted();
  }
  return sum;
}

} // namespace

absl::Status Evaluate(const Program &compiled, const Kernels &kernels, const EntryPoints &entries,
                      const TrainerOptions &options, const InterruptGuard &interrupt) {
  TrainerOptions own = options;
  own.data.clear(); // it is in the program
  TrainRequest request(WithText(compiled, options.data), own);
  if (absl::Status status = request.Check(); !status.ok())
    return status;
  const Program &program = request.program();
  if (absl::Status status = StateStore::CheckFree(request.disk(), request.directories());
      !status.ok())
    return status;
  if (absl::Status status = CheckMemoryLeft(program); !status.ok())
    return status;
  const std::string &directory = request.directories()[0];
  absl::StatusOr<bool> exists = StateStore::Exists(request.disk(), directory);
  if (!exists.ok())
    return exists.status();
  if (!*exists)
    return absl::NotFoundError(
        absl::StrCat("`", directory, "` holds no training; --state names its directory"));

  absl::StatusOr<Data> data = OpenData(request, interrupt);
  if (!data.ok())
    return data.status();
  const OpenOptions opening = {options.changed_model, [&] { return interrupt.interrupted(); }, {}};
  absl::StatusOr<std::unique_ptr<StateStore>> state =
      StateStore::Open(request.disk(), program, request.directories(), program.train.commit_keep,
                       options.at, opening);
  if (absl::IsCancelled(state.status()))
    return InterruptedError(interrupt.signal(), std::string(state.status().message()));
  if (!state.ok())
    return state.status();
  absl::StatusOr<std::unique_ptr<Engine>> engine = OpenEngine(request, kernels, **state);
  if (!engine.ok())
    return AsItWas(engine.status());
  (*engine)->SetEndsOnSignal(std::chrono::seconds(0));
  StepQueue steps(request, entries, *data, *std::move(engine));
  for (const std::string &note :
       {(*state)->ComputationChange(), NoteOtherTokens((*state)->Committed().extra, data->facts())})
    if (!note.empty())
      std::fprintf(stderr, "%s\n", Printable(note).c_str());
  if (absl::Status status = Restore(program, **state, steps.engine()); !status.ok())
    return AsItWas(status);

  const int64_t step = (*state)->Committed().step;
  absl::StatusOr<Sum> sum = Add(program, *data, step, steps);
  if (!sum.ok())
    return AsItWas(sum.status());
  if (sum->targets == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("no token of ", program.train.validate, " is a target: there is no loss"));
  const double loss = sum->loss / double(sum->targets);
  // Of masked tokens, the model has seen both sides: that is no perplexity.
  const std::string perplexity = program.train.objective == Objective::next_token
                                     ? absl::StrFormat(", perplexity %.5g", std::exp(loss))
                                     : "";
  std::fprintf(options.out, "step %lld of %s: loss %.6f%s, over %lld targets in %lld sequence%s\n",
               static_cast<long long>(step), Printable(directory).c_str(), loss, perplexity.c_str(),
               static_cast<long long>(sum->targets), static_cast<long long>(sum->sequences),
               sum->sequences == 1 ? "" : "s");
  return absl::OkStatus();
}

} // namespace boa
