//===- trainer.cpp - One training run of a process ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/trainer.h"

#include "runtime/data/other_tokens.h"
#include "runtime/device/memory.h"
#include "runtime/trainer/commit_policy.h"
#include "runtime/trainer/committer.h"
#include "runtime/trainer/evaluation.h"
#include "runtime/trainer/loop.h"
#include "runtime/trainer/opening.h"
#include "runtime/trainer/process.h"
#include "runtime/trainer/request.h"
#include "runtime/trainer/run_report.h"
#include "runtime/trainer/step_queue.h"
#include "runtime/trainer/step_traffic.h"
#include "runtime/weights/export_parameters.h"
#include "runtime/weights/parameter_storages.h"

#include "absl/strings/str_cat.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace boa {
namespace {

/// An export of a finished run goes on for so long after a signal: most then end with it.
constexpr std::chrono::seconds kShortExport(3);

absl::Status AtStart(const TrainRequest &request, const absl::Status &status) {
  const std::string &directory = request.directories()[0];
  return IfInterrupted(
      status, request.options().resume
                  ? absl::StrCat("interrupted before the first step of this run; `", directory,
                                 "` is as it was, and the same command continues")
                  : absl::StrCat("interrupted before the first step; `", directory,
                                 "` holds no commit yet, and the same command begins again"));
}

absl::Status AtExport(const TrainRequest &request, const TrainingLoop &loop,
                      const absl::Status &status) {
  if (SignalOf(status) == 0)
    return loop.AtStep(status);
  return IfInterrupted(status,
                       absl::StrCat("interrupted before all weights were in `", request.save(),
                                    "`, which is as it was; step ", loop.step(),
                                    ", the last one, is committed in `", request.directories()[0],
                                    "`, and the same command with --resume saves its weights"));
}

} // namespace

absl::Status Train(const Program &compiled, const Kernels &kernels, const EntryPoints &entries,
                   const TrainerOptions &options, const InterruptGuard &interrupt) {
  TrainRequest request(compiled, options);
  const Program &program = request.program();
  CommitPolicy policy(program.train, std::chrono::steady_clock::now());

  // Checks, before anything is opened to write.
  if (absl::Status status = request.Check(); !status.ok())
    return status;
  // The steps of epochs are not counted yet.
  if (program.train.epochs == 0)
    if (absl::StatusOr<bool> finished = request.IsFinished(); !finished.ok() || *finished)
      return finished.status();
  // First, since another run of this state has memory, too.
  if (absl::Status status = StateStore::CheckFree(request.disk(), request.directories());
      !status.ok())
    return status;
  if (absl::Status status = CheckMemoryLeft(program); !status.ok())
    return status;

  // The parts. The engine is in `steps` and uses the state, so it must go first.
  absl::StatusOr<Data> data = OpenData(request, interrupt);
  if (!data.ok())
    return data.status();
  if (absl::Status status = request.CountSteps(*data); !status.ok())
    return AtData(request, status);
  if (program.TakesDocuments() && !data->TellsDocuments())
    return absl::InvalidArgumentError(absl::StrCat(
        "document_mask: nothing tells where the documents of `", program.train.data,
        "` end. tokens(..., end = N) names the token that ends them, and NAME.idx lists them; "
        "compiled with document_mask = false, attention is across them"));
  absl::StatusOr<std::unique_ptr<BaseWeights>> base = OpenBase(request);
  if (!base.ok())
    return base.status();
  absl::StatusOr<std::unique_ptr<GivenWeights>> given = OpenGiven(request);
  if (!given.ok())
    return AtStart(request, given.status());
  if (absl::Status status = MatchAdapter(request); !status.ok())
    return status;
  absl::StatusOr<std::unique_ptr<StateStore>> opened = OpenState(request, base->get(), interrupt);
  if (!opened.ok())
    return opened.status();
  StateStore &state = **opened;
  if (options.resume) {
    data->Continue(state.Committed().step, state.Committed().samples);
    if (absl::Status status = request.CountSteps(*data); !status.ok())
      return status;
    if (program.train.epochs > 0)
      if (absl::StatusOr<bool> finished = request.IsFinished(); !finished.ok() || *finished)
        return finished.status();
  }
  const Settings settings = WithPlan(CollectSettings(program, data->facts()), options.plan,
                                     options.resume ? &state.Committed() : nullptr);
  const int64_t first = options.resume ? state.Committed().step : 0;
  absl::StatusOr<std::unique_ptr<Engine>> made = OpenEngine(request, kernels, state);
  if (!made.ok())
    return AtStart(request, made.status());
  StepQueue steps(request, entries, *data, *std::move(made));
  Engine &engine = steps.engine();
  RunReport report(request, entries, first, state.Identity());
  StepTraffic traffic(engine);
  Committer committer(program, *data, settings, state, steps, traffic, policy, first);
  Evaluation evaluation(program, entries.evaluate != nullptr, *data, steps, traffic, interrupt);
  TrainingLoop loop({request, interrupt, steps, traffic, evaluation, policy, committer, report},
                    first);

  if (absl::Status status = report.Open(); !status.ok())
    return status;
  report.Start(*data, settings, state, engine);
  const auto start = [&]() -> absl::Status {
    if (options.resume)
      return RestoreCommit(request, settings, state, engine, report);
    if (*base)
      if (const std::string note = NoteOtherTokens((*base)->settings(), settings); !note.empty())
        report.Say(note);
    absl::Status status = FillParameters(request, base->get(), given->get(), engine, report);
    base->reset(); // it is read no more
    given->reset();
    // From here on the directory can be resumed.
    return status.ok() ? committer.Commit(0, std::nullopt) : status;
  };
  absl::Status status = [&]() -> absl::Status {
    engine.SetEndsOnSignal(std::chrono::seconds(0));
    if (absl::Status status = start(); !status.ok())
      return AtStart(request, status);
    engine.SetEndsOnSignal(std::nullopt);

    if (absl::Status status = loop.Run(); !status.ok())
      return status;

    // The end.
    const int64_t last = loop.step();
    if (committer.committed() != last || first == last)
      if (absl::Status status = committer.Commit(last, loop.validation_loss()); !status.ok())
        return loop.AtStep(status);
    traffic.End();
    SetStopNote("");
    engine.SetEndsOnSignal(kShortExport);
    if (absl::Status status = ExportParameters(program, engine, request.save(), last); !status.ok())
      return AtExport(request, loop, status);
    return report.Finish(last, steps.predicted(), traffic, engine);
  }();
  report.End(status, loop.step());
  return status.ok() ? report.status() : status;
}

} // namespace boa
