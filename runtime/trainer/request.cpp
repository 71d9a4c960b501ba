//===- request.cpp - A checked request for a training run -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/request.h"

#include "runtime/io/new_file.h"
#include "runtime/state/state.h"
#include "runtime/support/units.h"
#include "runtime/trainer/output_checks.h"
#include "runtime/view/progress.h"
#include "runtime/view/report_file.h"
#include "runtime/view/tables.h"
#include "runtime/weights/export_parameters.h"

#include "absl/strings/str_cat.h"

#include <optional>
#include <tuple>
#include <utility>

namespace boa {
namespace {

Program Override(Program program, const TrainerOptions &options) {
  if (options.steps || options.epochs > 0) {
    program.train.steps = options.steps.value_or(0);
    program.train.epochs = options.epochs;
  }
  if (!options.data.empty())
    program.train.data = options.data;
  return program;
}

absl::Status CheckArena(const Program &program, const std::string &tier, int64_t need,
                        int64_t limit) {
  if (limit == 0 || need <= limit)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the plan needs ", FormatBytes(need), " of ", tier, " memory, but machine `",
      program.machine.name, "` gives ", FormatBytes(limit), ":\n", FormatArena(program, tier),
      "compile it for this machine, with a smaller micro_batch or with more on "
      "SSD"));
}

absl::Status CheckMemory(const Program &program) {
  absl::Status status =
      CheckArena(program, "device", program.arena_device, program.machine.device_memory);
  if (status.ok())
    status = CheckArena(program, "host", program.arena_host, program.machine.host_memory);
  return status;
}

/// The storage with this role. It lives in memory and has an entry of at least `bytes` for each
/// micro-batch, or for each of every layer.
absl::StatusOr<int32_t> FindPortOfRole(const Program &program, const std::string &role,
                                       int64_t bytes) {
  for (size_t i = 0; i < program.storages.size(); ++i) {
    const Storage &storage = program.storages[i];
    if (storage.role != role)
      continue;
    const std::vector<int64_t> &entries = storage.entries;
    const bool of_layers = role == "dropout_keys"; // [layers, micro-batches]
    const bool fits = of_layers ? entries.size() == 2 && entries[1] == program.MicroBatches()
                                : storage.entry_count() == program.MicroBatches();
    if (storage.LivesOn(Home::ssd) || storage.bytes < bytes || !fits)
      return absl::InvalidArgumentError(
          absl::StrCat("program descriptor: storage `", storage.name, "`: expected ",
                       of_layers ? "layers x " : "", program.MicroBatches(),
                       " entries of at least ", bytes, " bytes in memory"));
    return static_cast<int32_t>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("program descriptor: no storage with role `", role, "`"));
}

} // namespace

TrainRequest::TrainRequest(const Program &compiled, const TrainerOptions &options)
    : changed(Override(compiled, options)), given(options) {}

FileSystem &TrainRequest::disk() const { return given.disk ? *given.disk : SystemFiles(); }

absl::Status TrainRequest::Check() {
  if (absl::Status status = CheckMemory(changed); !status.ok())
    return status;
  if (given.resume && !given.weights.empty())
    return absl::InvalidArgumentError(
        "--weights begins a run and --resume continues one: only one of them "
        "can be given");
  if (!given.from.empty() && (given.resume || !given.weights.empty()))
    return absl::InvalidArgumentError("--from begins a run with the weights of a state: neither "
                                      "--resume nor --weights can be given with it");
  const std::vector<SsdSettings> &ssd = changed.machine.ssd;
  state.push_back(given.state.empty() ? FolderOfState(changed.machine) : given.state);
  for (size_t i = 1; i < ssd.size(); ++i)
    state.push_back(ssd[i].path);
  if (absl::Status status = FindPorts(); !status.ok())
    return status;
  weights = given.save.empty() ? state[0] + "/model.safetensors" : given.save;
  return CheckFiles();
}

absl::Status TrainRequest::FindPorts() {
  const int64_t token_bytes = changed.MicroBatch() * changed.model.context * sizeof(int32_t);
  for (auto [role, bytes, port] :
       {std::tuple<const char *, int64_t, int32_t *>{"tokens", token_bytes, &found.tokens},
        {"targets", token_bytes, &found.targets},
        {"document_starts", token_bytes, &found.document_starts},
        {"dropout_keys", token_bytes, &found.dropout_keys},
        {"loss_gradients", sizeof(float), &found.loss_gradients},
        {"loss", sizeof(float), &found.losses}}) {
    if ((port == &found.document_starts && !changed.TakesDocuments()) ||
        (port == &found.dropout_keys && !changed.TakesDropout()))
      continue;
    absl::StatusOr<int32_t> storage = FindPortOfRole(changed, role, bytes);
    if (!storage.ok())
      return storage.status();
    *port = *storage;
  }
  return absl::OkStatus();
}

/// No output may overwrite a file that the run needs, and none may fail after the last step.
absl::Status TrainRequest::CheckFiles() const {
  // A file with the temporary name is removed.
  std::vector<FileUse> outputs = {{"--save", weights}, {"--save", TemporaryName(weights)}},
                       kept = StateFiles(state);
  std::vector<FileUse> others = {{"this program", "/proc/self/exe"}};
  const std::vector<FileUse> data = FilesOfData(changed.train);
  others.insert(others.end(), data.begin(), data.end());
  for (const std::string &source : given.sources)
    others.push_back({"a source of this program", source});
  kept.insert(kept.end(), others.begin(), others.end());
  if (absl::Status status = CheckOutputs(outputs, kept); !status.ok())
    return status;
  // The directory of the state need not be there yet.
  if (absl::Status status = CheckNewFile(outputs[0], !given.save.empty()); !status.ok())
    return status;
  // The weights are read before --save replaces them.
  kept.push_back({"the weights to begin from", given.weights});
  kept.insert(kept.end(), {{"--save", weights},
                           {"--save", TemporaryName(weights)},
                           {"the trained weights", state[0] + "/model.safetensors"}});
  outputs = ReportOutputs(given.report);
  outputs.insert(outputs.end(),
                 {{"--metrics", given.metrics}, {"--trace", given.trace}, {"--log", given.log}});
  if (absl::Status status = CheckOutputs(outputs, kept); !status.ok())
    return status;
  return CheckReport(given.report);
}

absl::Status TrainRequest::CountSteps(const Data &data) {
  if (changed.train.epochs == 0)
    return absl::OkStatus();
  absl::StatusOr<int64_t> steps = data.StepOfEpochs(changed.train.epochs);
  if (!steps.ok())
    return steps.status();
  changed.train.steps = *steps;
  return absl::OkStatus();
}

absl::Status TrainRequest::BeyondSteps(int64_t at) const {
  // The steps before had a batch of their own: those of the epochs may be others.
  TrainSettings asked = changed.train;
  if (asked.epochs > 0)
    asked.steps = 0;
  return absl::FailedPreconditionError(
      absl::StrCat("`", state[0], "` is at step ", at, ", beyond the ", DescribeSteps(asked),
                   " asked for; ", FlagOfSteps(), " can raise them"));
}

absl::StatusOr<bool> TrainRequest::IsFinished() const {
  bool finished = false;
  if (!given.resume)
    return finished;
  absl::StatusOr<std::optional<CommitRecord>> last =
      StateStore::Peek(disk(), changed, state[0], given.changed_model);
  // This is the error of the last commit. For another one, StateStore::Open has the error.
  if (!last.ok())
    return given.at ? absl::StatusOr<bool>(finished) : last.status();
  const int64_t steps = changed.train.steps;
  if (*last && !given.at && (*last)->step > steps)
    return BeyondSteps((*last)->step);
  if (!*last || (*last)->step != steps || given.at.value_or(steps) != steps ||
      !IsExport(changed, weights, **last))
    return finished;
  finished = true;
  Progress(given.quiet ? nullptr : given.out, steps, steps)
      .Say(absl::StrCat("`", state[0], "` is already at step ", steps, ", and its weights are in ",
                        weights, "; ", FlagOfSteps(), " can ask for more"));
  return finished;
}

} // namespace boa
