//===- opening.cpp - Opens the parts of a training run --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/opening.h"

#include "runtime/abi/parts.h"
#include "runtime/data/other_tokens.h"
#include "runtime/generate/committed_settings.h"
#include "runtime/state/computation.h"
#include "runtime/state/new_adapters.h"
#include "runtime/support/units.h"
#include "runtime/trainer/output_checks.h"
#include "runtime/view/metrics.h"
#include "runtime/view/progress.h"
#include "runtime/view/progress_line.h"
#include "runtime/view/tensorboard.h"
#include "runtime/weights/check_parameters.h"
#include "runtime/weights/export_parameters.h"
#include "runtime/weights/initial_values.h"
#include "runtime/weights/parameter_storages.h"
#include "runtime/weights/peft_adapter.h"
#include "runtime/weights/restore.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boa {

std::string FolderOfTokens(const std::string &named, const std::string &state) {
  if (!named.empty())
    return named;
  std::filesystem::path path = state;
  if (!path.has_filename()) // it ends with a slash
    path = path.parent_path();
  return (path.parent_path() / "boa-tokens").string();
}

absl::Status WithPathHint(const absl::Status &status, bool of_spec) {
  if (!absl::IsNotFound(status))
    return status;
  return absl::NotFoundError(absl::StrCat(
      status.message(), "\n  ",
      of_spec
          ? "`data` in a spec is relative to the spec file; in --set and --data, to the working "
            "directory"
          : "--data names the text; a path is relative to the working directory"));
}

absl::Status AtData(const TrainRequest &request, const absl::Status &status) {
  const std::string &place = request.options().data_place;
  return place.empty()
             ? status
             : absl::Status(status.code(),
                            absl::StrCat(status.message(), " (`data` stands in ", place, ")"));
}

absl::StatusOr<Data> OpenData(const TrainRequest &request, const InterruptGuard &interrupt) {
  DataOptions options(request.program());
  options.cache.directory = FolderOfTokens(request.options().tokens, request.directories()[0]);
  options.cache.is_named = !request.options().tokens.empty();
  if (absl::StrContains(options.data + options.validate,
                        "chat(")) // the tokens of a state stay the same
    options.cache.date = TemplateDateOf(
        CommittedSettings(request.disk(), request.directories()[0], request.options().at));
  Progress progress(request.options().quiet ? nullptr : request.options().out, 0, 0);
  ProgressLine line("makes tokens: ");
  options.cache.say = [&](const std::string &text) { progress.Say(text); };
  options.cache.show = [&](int64_t bytes, int64_t of) { line.Show(bytes, of); };
  options.cache.stops = [&] { return interrupt.interrupted(); };
  absl::StatusOr<Data> opened = Data::Open(options);
  if (absl::IsCancelled(opened.status()))
    return InterruptedError(interrupt.signal(), std::string(opened.status().message()));
  if (!opened.ok())
    return WithPathHint(opened.status(), !request.options().sources.empty());
  return opened;
}

absl::StatusOr<std::unique_ptr<BaseWeights>> OpenBase(const TrainRequest &request) {
  const std::string &from = request.options().from;
  if (from.empty())
    return nullptr;
  auto opened = BaseWeights::Open(request.disk(), request.program(), from, Adapters::may_be_new);
  if (!opened.ok())
    return absl::Status(opened.status().code(), absl::StrCat("--from ", opened.status().message()));
  return opened;
}

absl::StatusOr<std::unique_ptr<GivenWeights>> OpenGiven(const TrainRequest &request) {
  const TrainerOptions &options = request.options();
  if (options.weights.empty())
    return nullptr;
  return GivenWeights::Open(request.program(), options.weights, options.unwanted,
                            Adapters::may_be_new);
}

absl::Status MatchAdapter(const TrainRequest &request) {
  PeftAdapter *adapter = request.options().adapter.get();
  return adapter ? adapter->Match(request.program()) : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StateStore>>
OpenState(const TrainRequest &request, const BaseWeights *base, const InterruptGuard &interrupt) {
  const TrainerOptions &options = request.options();
  const std::string &directory = request.directories()[0];
  absl::StatusOr<bool> found = StateStore::Exists(request.disk(), directory);
  if (!found.ok())
    return found.status();
  const bool exists = *found;
  if (exists && !options.resume)
    return absl::AlreadyExistsError(
        absl::StrCat("`", directory,
                     "` already holds a training; continue it with --resume, "
                     "or begin another with --state and a new directory"));
  if (!exists && options.resume)
    return absl::NotFoundError(absl::StrCat("`", directory,
                                            "` holds no training to resume; --state names its "
                                            "directory, and without --resume a new one begins"));
  if (!exists && !options.tensorboard.empty())
    if (absl::Status status = EventFile::Check(options.tensorboard, ""); !status.ok())
      return status;
  if (!exists && !options.metrics.empty())
    if (absl::Status status = Metrics::CheckNew(options.metrics); !status.ok())
      return status;
  const Program &program = request.program();
  const int64_t keep = program.train.commit_keep;
  OpenOptions opening = {options.changed_model, [&] { return interrupt.interrupted(); }, {}};
  if (base)
    opening.base = base->Origin();
  constexpr int64_t kFew = int64_t(16) << 20; // for manifests, metrics and the like
  opening.spare_bytes = BytesOfExport(program) + kFew;
  absl::StatusOr<std::unique_ptr<StateStore>> opened =
      exists ? StateStore::Open(request.disk(), program, request.directories(), keep, options.at,
                                opening)
             : StateStore::Create(request.disk(), program, request.directories(), keep, opening);
  if (absl::IsCancelled(opened.status()))
    return InterruptedError(interrupt.signal(), std::string(opened.status().message()));
  if (!opened.ok())
    return opened.status();
  // The state has its space already, and grows for readers only where the export still fits.
  if (absl::Status status = CheckExportSpace(program, request.save()); !status.ok())
    return status;
  return opened;
}

absl::StatusOr<std::unique_ptr<Engine>> OpenEngine(const TrainRequest &request,
                                                   const Kernels &kernels, StateStore &state) {
  EngineOptions options;
  options.trace = !request.options().trace.empty() || !request.options().report.empty();
  options.trace_memory = !request.options().report.empty();
  options.scheduler = request.options().scheduler;
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(request.program(), kernels, &state, options);
  if (!engine.ok())
    return engine.status();
  // The plan was checked before; these are the sizes of the allocations. The limits of device and
  // host add up if both are one memory.
  const MachineSettings &machine = request.program().machine;
  auto check = [&](int64_t allocated, const char *of, int64_t limit, const char *in_all) {
    if (limit == 0 || allocated <= limit)
      return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "the program takes ", FormatBytes(allocated), " of ", of, "memory, but machine `",
        machine.name, "` gives ", FormatBytes(limit), in_all));
  };
  absl::Status status;
  if (!IsSeparate(machine)) {
    status =
        check((*engine)->ArenaBytes(), "", machine.device_memory + machine.host_memory, " in all");
  } else {
    status = check((*engine)->ArenaBytes(BOA_DEVICE), "device ", machine.device_memory, "");
    if (status.ok())
      status = check((*engine)->ArenaBytes(BOA_HOST), "host ", machine.host_memory, "");
  }
  if (!status.ok())
    return status;
  return engine;
}

/// How many weights have adapters, each layer by itself.
static int64_t CountAdapted(const Program &program) {
  int64_t count = 0;
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters)
      count += parameter.adapter.down.empty() ? 0 : CountWholes(group);
  return count;
}

/// A run may begin with the weights of another computation. The report says so. `are_new`: whether
/// adapters that `trained` lacks begin with new values.
static void ReportComputation(const std::string &source, const Computation &trained,
                              const Program &program, bool are_new, RunReport &report) {
  if (trained.version == 0 || trained.version != program.computation.version)
    return;
  const std::optional<std::string> without = WithoutNewAdapters(program, trained.text);
  if (without && are_new)
    report.Say(absl::StrCat("new adapters for ", CountAdapted(program), " weights"));
  const std::vector<std::string> lines =
      DescribeDifferences(trained.text, without.value_or(program.computation.text));
  if (!lines.empty())
    report.Say(absl::StrCat("note: the weights in ", source,
                            " were trained for another computation:\n  ",
                            absl::StrJoin(lines, "\n  ")));
}

/// A folder of PEFT tells its dropout, of which a spec or a compiled program may have another.
static void ReportDropout(const PeftAdapter &adapter, const Program &program, RunReport &report) {
  double share = 0;
  if (!adapter.dropout().empty() && !absl::SimpleAtod(adapter.dropout(), &share))
    return; // it was checked
  if (share != program.train.adapter_dropout)
    report.Say(absl::StrCat("note: the adapters were trained with dropout = ", share,
                            " and go on with dropout = ", program.train.adapter_dropout));
}

absl::Status FillParameters(const TrainRequest &request, BaseWeights *base,
                            const GivenWeights *given, Engine &engine, RunReport &report) {
  const Program &program = request.program();
  if (base) {
    const BaseState origin = base->Origin();
    report.Say(absl::StrCat("begins with the weights of step ", origin.step, " of `",
                            origin.directory, "`"));
    ReportComputation(request.options().from, base->computation(), program, /*are_new=*/true,
                      report);
    return FillParameters(
        program, engine,
        [&](int64_t g, int64_t entry, int64_t p, int64_t first, int64_t count, float *values) {
          const Group &group = program.groups[size_t(g)];
          const Parameter &parameter = group.parameters[size_t(p)];
          if (base->Has(group, parameter))
            return base->Read(group, entry, parameter, first, count, values);
          InitialValues(program, g, entry, p, first, count, values);
          return absl::OkStatus();
        });
  }
  if (!given && HasAdapters(program))
    report.Say("note: the model under the adapters is random: --weights or --from names one that "
               "was trained");
  if (!given)
    return InitializeParameters(program, engine);
  const PeftAdapter *adapter = request.options().adapter.get();
  ReportComputation(request.options().weights, given->computation(), program,
                    /*are_new=*/!adapter, report);
  if (const std::string note = given->NoteOfInitial(); !note.empty())
    report.Say(note);
  if (!adapter)
    return given->Fill(engine);
  report.Say(absl::StrCat("begins with the adapters of `", adapter->folder(), "`"));
  ReportDropout(*adapter, program, report);
  return FillParameters(
      program, engine,
      [&](int64_t g, int64_t entry, int64_t p, int64_t first, int64_t count, float *values) {
        return adapter->Has(g, p) ? adapter->Read(program, g, entry, p, first, count, values)
                                  : given->Read(g, entry, p, first, count, values);
      });
}

absl::Status RestoreCommit(const TrainRequest &request, const Settings &settings, StateStore &state,
                           Engine &engine, RunReport &report) {
  const CommitRecord &record = state.Committed();
  if (record.step > request.program().train.steps)
    return request.BeyondSteps(record.step);
  // Their states may have the same names and sizes, and mean something else.
  const std::string optimizer = WordOf(request.program().train.optimizer.kind);
  if (auto was = record.extra.find("optimizer");
      record.step > 0 && was != record.extra.end() && was->second != optimizer)
    return absl::FailedPreconditionError(
        absl::StrCat("the optimizer was ", was->second, " and is ", optimizer,
                     ", whose state is another: go on with ", was->second,
                     ", or begin a new training with these weights (--from)"));
  if (!request.options().changed_data) {
    if (absl::Status status = CheckFilesOfData(record.extra, settings); !status.ok())
      return AtData(request, status);
    if (const std::string other = DescribeOtherTokens(record.extra, settings); !other.empty())
      return AtData(request,
                    absl::FailedPreconditionError(absl::StrCat(
                        other, ". Bring the former tokenizer back; or give --changed-data, "
                               "if the model is to learn these")));
  }
  report.Say(absl::StrCat("resuming after step ", record.step));
  if (PlanOf(record) && request.options().plan.block.empty())
    report.Say("note: this run has a plan of its own; the one that was chosen stays in the state");
  for (const std::string &change :
       {state.ComputationChange(), DescribeChanges(record.extra, settings),
        DescribeNewEnvironment(record.environment, engine.Environment())})
    if (!change.empty())
      report.Say(change);
  return Restore(request.program(), state, engine);
}

} // namespace boa
