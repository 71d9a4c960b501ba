//===- trainer.cpp - The training loop ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/trainer.h"

#include "runtime/engine/engine.h"
#include "runtime/state/computation.h"
#include "runtime/state/state.h"
#include "runtime/support/units.h"
#include "runtime/trainer/data.h"
#include "runtime/trainer/metrics.h"
#include "runtime/trainer/outputs.h"
#include "runtime/trainer/process.h"
#include "runtime/trainer/progress.h"
#include "runtime/trainer/settings.h"
#include "runtime/trainer/trace.h"
#include "runtime/trainer/weights.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

namespace boa {
namespace {

using Clock = std::chrono::steady_clock;

/// The program with what the command line says instead.
Program Override(Program program, const TrainerOptions &options) {
  if (options.steps)
    program.train.steps = *options.steps;
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

/// The storage with a role that the trainer itself fills or reads: in memory,
/// one entry for each micro-batch, of at least `bytes`.
absl::StatusOr<int32_t> FindPort(const Program &program, const std::string &role, int64_t bytes) {
  for (size_t i = 0; i < program.storages.size(); ++i) {
    const Storage &storage = program.storages[i];
    if (storage.role != role)
      continue;
    if (storage.LivesOn(Home::ssd) || storage.bytes < bytes ||
        storage.entry_count() != program.MicroBatches())
      return absl::InvalidArgumentError(
          absl::StrCat("program descriptor: storage `", storage.name, "`: expected ",
                       program.MicroBatches(), " entries of at least ", bytes, " bytes in memory"));
    return static_cast<int32_t>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("program descriptor: no storage with role `", role, "`"));
}

/// What the micro-batches of one run bring to the engine and take from it.
struct MicroBatches {
  MicroBatches(int64_t count, int64_t tokens_each)
      : tokens(count, std::vector<int32_t>(tokens_each)), targets(tokens), losses(count) {}
  double MeanLoss() const {
    double sum = 0;
    for (float loss : losses)
      sum += loss;
    return sum / double(losses.size());
  }
  std::vector<std::vector<int32_t>> tokens, targets;
  std::vector<float> losses;
};

/// A step that the engine has been given.
struct EnqueuedStep {
  int64_t step = 0, run = 0;
  int64_t start_ns = 0;               // of the engine's clock
  std::unique_ptr<MicroBatches> data; // the engine has its address
};

/// One run of this process, from Open to Finish.
class Run {
public:
  Run(const Program &compiled, const Kernels &kernels, const EntryPoints &entries,
      const TrainerOptions &options)
      : program(Override(compiled, options)), kernels(kernels), entries(entries), options(options) {
  }

  absl::Status Train();

private:
  // In this order; each relies on those before it.
  absl::Status CheckRequest();
  absl::Status CheckFiles() const;
  absl::Status BeyondSteps(int64_t at) const;
  absl::Status CheckFinished();
  absl::Status OpenData();
  absl::Status OpenState();
  absl::Status OpenEngine();
  absl::Status OpenReports();
  absl::Status LoadWeights();
  absl::Status BeginOrRestore();
  absl::Status Loop();
  absl::Status Finish();

  absl::Status EnqueueStep();
  absl::Status FinishStep();
  bool Ending() const { return interrupt.interrupted() || !reporting.ok(); }
  bool NextFollowsDirectly();
  bool EvaluationDue(int64_t after) const;
  bool CommitDue(int64_t after);
  absl::Status Evaluate(std::optional<double> &loss);
  int64_t Enqueue(boa_entry_point, int64_t number, MicroBatches &);
  absl::Status Report(int64_t run, double loss, double seconds, std::optional<double> norm,
                      std::optional<double> validation_loss);

  absl::Status DrainUpdates();
  absl::Status Commit();
  absl::Status Settle();
  std::string FormatState() const;
  void LeaveTraining();
  void EnterTraining();
  void Account(const Counters &);
  absl::Status Interrupted() const;
  absl::Status AtStep(const absl::Status &) const;

  const Program program;
  const Kernels kernels;
  const EntryPoints entries;
  const TrainerOptions options;

  InterruptGuard interrupt;
  std::vector<std::string> directories; // of the state, by ssd path
  std::string save;
  bool finished = false; // before this process: nothing is left to do
  std::optional<Data> data;
  std::unique_ptr<StateStore> state;
  std::deque<EnqueuedStep> enqueued; // steps that the engine has: it uses their data
  std::unique_ptr<Engine> engine;    // uses the state and these: goes first
  std::optional<Metrics> metrics;
  absl::Status reporting; // of the metrics
  std::optional<OutputFile> trace;
  std::unique_ptr<Progress> progress;
  Settings settings;
  int32_t tokens = -1, targets = -1, losses = -1; // storages

  int64_t first = 0;   // steps done when this process began
  int64_t step = 0;    // steps done
  int64_t follows = 0; // steps that the engine ran one after another, until now
  int64_t pending = 0; // step with updates outstanding after these, or 0
  int64_t committed = 0;
  std::map<int64_t, double> norms; // of gradients, by steps that are not yet reported
  int64_t commit_at = 0;           // the last step after which time had come for a commit
  Clock::time_point last_commit = Clock::now();
  Counters unreported;              // of training, not yet in a line
  std::optional<DiskBytes> entered; // when training was last entered
  Outcome outcome;
};

absl::Status Run::Train() {
  using Stage = absl::Status (Run::*)();
  for (Stage stage :
       {&Run::CheckRequest, &Run::CheckFinished, &Run::OpenData, &Run::OpenState, &Run::OpenEngine,
        &Run::OpenReports, &Run::BeginOrRestore, &Run::Loop, &Run::Finish})
    if (absl::Status status = (this->*stage)(); !status.ok() || finished)
      return status;
  return absl::OkStatus();
}

absl::Status Run::CheckRequest() {
  if (absl::Status status = CheckMemory(program); !status.ok())
    return status;
  if (options.resume && !options.weights.empty())
    return absl::InvalidArgumentError(
        "--weights begins a run and --resume continues one: only one of them "
        "can be given");
  const std::vector<SsdSettings> &ssd = program.machine.ssd;
  if (!options.state.empty())
    directories.push_back(options.state);
  else
    directories.push_back(ssd.empty() ? "state" : ssd[0].path);
  for (size_t i = 1; i < ssd.size(); ++i)
    directories.push_back(ssd[i].path);

  const TrainSettings &t = program.train;
  const int64_t token_bytes = program.MicroBatch() * program.model.context * sizeof(int32_t);
  for (auto [role, bytes, port] :
       {std::tuple<const char *, int64_t, int32_t *>{"tokens", token_bytes, &tokens},
        {"targets", token_bytes, &targets},
        {"loss", sizeof(float), &losses}}) {
    absl::StatusOr<int32_t> found = FindPort(program, role, bytes);
    if (!found.ok())
      return found.status();
    *port = *found;
  }
  save = options.save.empty() ? directories[0] + "/model.safetensors" : options.save;
  return CheckFiles();
}

/// Ensures that no output overwrites a file that is needed, and that none fails after the last
/// step.
absl::Status Run::CheckFiles() const {
  // A file with the temporary name is removed.
  std::vector<FileUse> outputs = {{"--save", save}, {"--save", TemporaryName(save)}},
                       kept = StateFiles(directories);
  std::vector<FileUse> others = {{"the training text", program.train.data},
                                 {"this program", "/proc/self/exe"}};
  for (const std::string &source : options.sources)
    others.push_back({"a source of this program", source});
  kept.insert(kept.end(), others.begin(), others.end());
  if (absl::Status status = CheckOutputs(outputs, kept); !status.ok())
    return status;
  // The directory of the state need not be there yet.
  if (absl::Status status = CheckNewFile(outputs[0], !options.save.empty()); !status.ok())
    return status;
  // The weights are read before --save replaces them.
  kept.push_back({"the weights to begin from", options.weights});
  kept.insert(kept.end(), {{"--save", save},
                           {"--save", TemporaryName(save)},
                           {"the trained weights", directories[0] + "/model.safetensors"}});
  return CheckOutputs({{"--metrics", options.metrics}, {"--trace", options.trace}}, kept);
}

absl::Status Run::BeyondSteps(int64_t at) const {
  return absl::FailedPreconditionError(absl::StrCat("`", directories[0], "` is at step ", at,
                                                    ", beyond the ", program.train.steps,
                                                    " steps asked for; --steps can raise them"));
}

/// Whether an earlier process did all that is asked for, or more: then nothing is opened to
/// write.
absl::Status Run::CheckFinished() {
  if (!options.resume)
    return absl::OkStatus();
  FileSystem &disk = options.disk ? *options.disk : SystemFiles();
  absl::StatusOr<std::optional<CommitRecord>> last =
      StateStore::Peek(disk, program, directories[0], options.changed_model);
  // That is said of the last commit. Of another one StateStore::Open says it.
  if (!last.ok())
    return options.at ? absl::OkStatus() : last.status();
  const int64_t steps = program.train.steps;
  if (*last && !options.at && (*last)->step > steps)
    return BeyondSteps((*last)->step);
  if (!*last || (*last)->step != steps || options.at.value_or(steps) != steps ||
      !IsExport(program, save, **last))
    return absl::OkStatus();
  finished = true;
  Progress(options.quiet ? nullptr : options.out, steps, steps)
      .Say(absl::StrCat("`", directories[0], "` is already at step ", steps,
                        ", and its weights are in ", save, "; --steps can ask for more"));
  return absl::OkStatus();
}

absl::Status Run::OpenData() {
  absl::StatusOr<Data> opened = Data::Open(DataOptions(program));
  if (absl::IsNotFound(opened.status()))
    return absl::NotFoundError(
        absl::StrCat(opened.status().message(), "\n  ",
                     options.sources.empty()
                         ? "--data FILE names the text; a path is relative to the working directory"
                         : "`data` in a spec is relative to the spec file; in --set and --data, "
                           "to the working directory"));
  if (!opened.ok())
    return opened.status();
  absl::StatusOr<uint64_t> fingerprint = opened->Fingerprint();
  if (!fingerprint.ok())
    return fingerprint.status();
  settings = CollectSettings(program, *fingerprint);
  data = *std::move(opened);
  return absl::OkStatus();
}

absl::Status Run::OpenState() {
  const std::string &directory = directories[0];
  FileSystem &disk = options.disk ? *options.disk : SystemFiles();
  absl::StatusOr<bool> found = StateStore::Exists(disk, directory);
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
  if (!exists && !options.metrics.empty())
    if (absl::Status status = Metrics::CheckNew(options.metrics); !status.ok())
      return status;
  const int64_t keep = program.train.commit_keep;
  const OpenOptions opening = {options.changed_model, [this] { return interrupt.interrupted(); }};
  absl::StatusOr<std::unique_ptr<StateStore>> opened =
      exists ? StateStore::Open(disk, program, directories, keep, options.at, opening)
             : StateStore::Create(disk, program, directories, keep, opening);
  if (absl::IsCancelled(opened.status()))
    return InterruptedError(interrupt.signal(), std::string(opened.status().message()));
  if (!opened.ok())
    return opened.status();
  state = *std::move(opened);
  return CheckExportSpace(program, save); // what is free now is free of the state
}

absl::Status Run::OpenEngine() {
  EngineOptions engine_options;
  engine_options.trace = !options.trace.empty();
  engine_options.scheduler = options.scheduler;
  absl::StatusOr<std::unique_ptr<Engine>> created =
      Engine::Create(program, kernels, state.get(), engine_options);
  if (!created.ok())
    return created.status();
  engine = *std::move(created);
  // The plan was checked before anything was allocated; this is what was. Where device
  // and host are one memory, what was said of them adds up.
  const MachineSettings &machine = program.machine;
  auto check = [&](int64_t allocated, const char *of, int64_t limit, const char *in_all) {
    if (limit == 0 || allocated <= limit)
      return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "the program takes ", FormatBytes(allocated), " of ", of, "memory, but machine `",
        machine.name, "` gives ", FormatBytes(limit), in_all));
  };
  if (!IsSeparate(machine))
    return check(engine->ArenaBytes(), "", machine.device_memory + machine.host_memory, " in all");
  absl::Status status = check(engine->ArenaBytes(BOA_DEVICE), "device ", machine.device_memory, "");
  return status.ok() ? check(engine->ArenaBytes(BOA_HOST), "host ", machine.host_memory, "")
                     : status;
}

absl::Status Run::OpenReports() {
  first = step = committed = options.resume ? state->Committed().step : 0;
  if (!options.metrics.empty()) {
    absl::StatusOr<Metrics> opened =
        options.resume ? Metrics::Continue(options.metrics, first, state->Identity())
                       : Metrics::Create(options.metrics);
    if (!opened.ok())
      return opened.status();
    metrics = *std::move(opened);
  }
  if (!options.trace.empty()) {
    absl::StatusOr<OutputFile> created = OutputFile::Open(options.trace);
    if (!created.ok())
      return created.status();
    trace = *std::move(created);
  }
  progress =
      std::make_unique<Progress>(options.quiet ? nullptr : options.out, first, program.train.steps);
  progress->Say(FormatStart(program, data->training_bytes(), data->validation_bytes()));
  progress->Say(FormatState());
  return absl::OkStatus();
}

/// Where the state is and what it takes, and what opening it found.
std::string Run::FormatState() const {
  int64_t bytes = 0;
  for (int64_t path : state->BytesByPath())
    bytes += path;
  const int64_t keep = program.train.commit_keep;
  std::string text = absl::StrCat(
      "  state in ", absl::StrJoin(directories, ", "), ": ", FormatBytes(bytes), " on SSD, ",
      keep == 1 ? "the last commit is kept" : absl::StrCat("the last ", keep, " commits are kept"),
      "; ", engine->DescribeIo(), "\n");
  text += DescribeForeignPaths(directories);
  if (trace)
    absl::StrAppend(&text, "  note: --trace keeps the newest ", kTraceEvents,
                    " commands, in up to ", FormatBytes(kTraceEvents * int64_t(sizeof(TraceEvent))),
                    " beside the memory of the plan\n");
  for (const std::string &note : state->Notes())
    absl::StrAppend(&text, "  note: ", note, "\n");
  return text;
}

/// A run may begin from weights of another computation. That is announced.
absl::Status Run::LoadWeights() {
  absl::StatusOr<Computation> trained = ReadComputation(options.weights);
  if (!trained.ok())
    return trained.status();
  std::vector<std::string> lines;
  if (trained->version != 0 && trained->version == program.computation.version)
    lines = DescribeDifferences(trained->text, program.computation.text);
  if (!lines.empty())
    progress->Say(absl::StrCat("note: the weights in ", options.weights,
                               " were trained for another computation:\n  ",
                               absl::StrJoin(lines, "\n  ")));
  return LoadParameters(program, *engine, options.weights);
}

absl::Status Run::BeginOrRestore() {
  if (options.resume) {
    const CommitRecord &record = state->Committed();
    if (first > program.train.steps)
      return BeyondSteps(first);
    progress->Say(absl::StrCat("resuming after step ", first));
    if (!state->ComputationChange().empty())
      progress->Say(state->ComputationChange());
    if (std::string changes = DescribeChanges(record.extra, settings); !changes.empty())
      progress->Say(changes);
    if (std::string changes = DescribeNewEnvironment(record.environment, engine->Environment());
        !changes.empty())
      progress->Say(changes);
    if (absl::Status status = engine->Restore(); !status.ok())
      return status;
    return ConvertMasters(program, *engine, *state);
  }
  absl::Status status =
      options.weights.empty() ? InitializeParameters(program, *engine) : LoadWeights();
  // From here on the directory can be resumed.
  return status.ok() ? Commit() : status;
}

absl::Status Run::Loop() {
  EnterTraining();
  while (step < program.train.steps) {
    if (Ending() && enqueued.empty()) {
      absl::Status status = committed == step ? absl::OkStatus() : Commit();
      return !status.ok() ? AtStep(status) : reporting.ok() ? Interrupted() : AtStep(reporting);
    }
    if (enqueued.empty())
      if (absl::Status status = EnqueueStep(); !status.ok())
        return status;
    if (NextFollowsDirectly()) {
      if (absl::Status status = engine->Wait(enqueued.front().run, kEnqueueAhead); !status.ok())
        return AtStep(status);
      if (!Ending())
        if (absl::Status status = EnqueueStep(); !status.ok())
          return status;
    }
    if (absl::Status status = FinishStep(); !status.ok())
      return status;
    // Whether it is due was decided before the next step was enqueued.
    if (enqueued.empty() && CommitDue(step))
      if (absl::Status status = Commit(); !status.ok())
        return AtStep(status);
  }
  return AtStep(DrainUpdates());
}

bool Run::EvaluationDue(int64_t after) const {
  const TrainSettings &t = program.train;
  return t.evaluate_every > 0 && t.evaluate_batches > 0 && entries.evaluate &&
         (after % t.evaluate_every == 0 || after == t.steps);
}

/// Decided once for each step, before it ends: time does not stand still.
bool Run::CommitDue(int64_t after) {
  const TrainSettings &t = program.train;
  if (t.commit_every > 0 && after % t.commit_every == 0)
    return true;
  const std::chrono::duration<double> since = Clock::now() - last_commit;
  if (t.commit_seconds > 0 && since.count() >= t.commit_seconds)
    commit_at = std::max(commit_at, after);
  return commit_at == after;
}

/// Whether nothing comes between the step that runs and the one after it.
bool Run::NextFollowsDirectly() {
  const int64_t running = enqueued.front().step;
  return running < program.train.steps && !EvaluationDue(running) && !CommitDue(running);
}

/// Reads micro-batches and enqueues what trains on, or evaluates, them.
absl::Status Run::EnqueueStep() {
  const TrainSettings &t = program.train;
  EnqueuedStep next;
  next.step = (enqueued.empty() ? step : enqueued.back().step) + 1;
  next.data = std::make_unique<MicroBatches>(program.MicroBatches(),
                                             program.MicroBatch() * program.model.context);
  for (int64_t m = 0; m < program.MicroBatches(); ++m)
    if (absl::Status status = data->FillTraining(next.step, m, next.data->tokens[m].data(),
                                                 next.data->targets[m].data());
        !status.ok())
      return AtStep(status);
  next.start_ns = engine->Now();
  next.run = Enqueue(entries.step, next.step, *next.data);
  // A step that follows another has that one's updates to apply, and finds in
  // memory what it ended with.
  outcome.predicted.Add(program.TrafficOfStep(follows++));
  pending = program.plan.delay > 0 ? next.step : 0;
  enqueued.push_back(std::move(next));
  return absl::OkStatus();
}

int64_t Run::Enqueue(boa_entry_point entry, int64_t number, MicroBatches &batches) {
  std::vector<Port> in, out;
  for (size_t m = 0; m < batches.losses.size(); ++m) {
    const int64_t bytes = batches.tokens[m].size() * sizeof(int32_t);
    in.push_back({tokens, int64_t(m), batches.tokens[m].data(), bytes});
    in.push_back({targets, int64_t(m), batches.targets[m].data(), bytes});
    out.push_back({losses, int64_t(m), &batches.losses[m], sizeof(float)});
  }
  if (entry != entries.step)
    follows = 0;
  return engine->Enqueue(entry, number, entry == entries.step ? pending : 0, in, out);
}

/// Waits for the oldest step that is enqueued.
absl::Status Run::FinishStep() {
  ++step;
  if (absl::Status status = engine->Wait(enqueued.front().run); !status.ok())
    return AtStep(status);
  const EnqueuedStep done = std::move(enqueued.front());
  enqueued.pop_front();
  const int64_t end_ns = engine->EndOf(done.run);
  const double seconds = double(end_ns - done.start_ns) * 1e-9;
  // The one behind it had the engine from then on.
  for (EnqueuedStep &next : enqueued)
    next.start_ns = end_ns;

  if (const std::string remark = engine->TakeRemark(); !remark.empty())
    progress->Say(absl::StrCat("step ", step, ": ", remark));
  const double loss = done.data->MeanLoss();
  norms.merge(engine->TakeNorms());
  std::optional<double> norm;
  if (auto it = norms.find(step); it != norms.end())
    norm = it->second;
  norms.erase(norms.begin(), norms.upper_bound(step));
  if (norm && !std::isfinite(*norm)) {
    progress->Say(absl::StrCat("step ", step, " is left out: its gradient is not finite (loss ",
                               loss, "); weights and moments stay as they were"));
  } else if (!std::isfinite(loss)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the loss of step ", step, " is ", std::isnan(loss) ? "nan" : "infinite",
        "; nothing of it is kept: the last committed step is ", committed, " in `", directories[0],
        "`. The same settings lead here again; a lower learning rate, a longer "
        "warm-up or gradient clipping may not"));
  }

  std::optional<double> validation_loss;
  if (EvaluationDue(step))
    if (absl::Status status = Evaluate(validation_loss); !status.ok())
      return AtStep(status);
  return Report(done.run, loss, seconds, norm, validation_loss);
}

/// Leaves `loss` empty if it is interrupted.
absl::Status Run::Evaluate(std::optional<double> &loss) {
  // The weights of all updates so far. To apply them now changes none of them.
  if (absl::Status status = DrainUpdates(); !status.ok())
    return status;
  if (absl::Status status = Settle(); !status.ok())
    return status;
  LeaveTraining();
  const int64_t total = program.train.evaluate_batches;
  const int64_t at_once = program.MicroBatches();
  double sum = 0;
  for (int64_t begin = 0; begin < total; begin += at_once) {
    if (interrupt.interrupted())
      break;
    // The last call may have more room than batches: what is left over repeats
    // them and does not count.
    MicroBatches batches(at_once, program.MicroBatch() * program.model.context);
    for (int64_t m = 0; m < at_once; ++m)
      if (absl::Status status = data->FillValidation((begin + m) % total, batches.tokens[m].data(),
                                                     batches.targets[m].data());
          !status.ok())
        return status;
    if (absl::Status status = engine->Wait(Enqueue(entries.evaluate, step, batches)); !status.ok())
      return status;
    const int64_t count = std::min(at_once, total - begin);
    for (int64_t m = 0; m < count; ++m)
      sum += batches.losses[m];
  }
  if (!interrupt.interrupted())
    loss = sum / total;
  EnterTraining();
  return absl::OkStatus();
}

absl::Status Run::Report(int64_t run, double loss, double seconds, std::optional<double> norm,
                         std::optional<double> validation_loss) {
  const TrainSettings &t = program.train;
  // What moves after a step counts for the next; after the last there is none.
  if (step == t.steps)
    if (absl::Status status = Settle(); !status.ok())
      return AtStep(status);
  Account(engine->TakeCounters(run));
  StepRecord record;
  record.step = step;
  record.run = state->Identity();
  record.loss = loss;
  record.rate = LearningRate(program.train.optimizer, step, t.steps);
  record.tokens = program.MicroBatches() * program.MicroBatch() * program.model.context;
  record.seconds = seconds;
  record.Take(program, unreported, *engine);
  record.gradient_norm = norm;
  record.validation_loss = validation_loss;
  unreported = {};

  ++outcome.steps;
  outcome.tokens += record.tokens;
  outcome.seconds += seconds;
  outcome.loss = loss;
  if (validation_loss)
    outcome.validation_loss = validation_loss;
  progress->Step(record);
  if (validation_loss)
    progress->Say(absl::StrFormat("step %d: validation loss %.4f", step, *validation_loss));
  // A file that cannot be written ends the run, but not without a commit.
  if (metrics && reporting.ok())
    reporting = metrics->Write(record);
  return absl::OkStatus();
}

absl::Status Run::DrainUpdates() {
  if (pending == 0)
    return absl::OkStatus();
  if (absl::Status status = engine->Run(entries.drain, step, pending); !status.ok())
    return status;
  pending = 0;
  follows = 0;
  if (auto it = program.traffic.find("drain"); it != program.traffic.end())
    outcome.predicted.Add(it->second);
  return absl::OkStatus();
}

absl::Status Run::Commit() {
  if (absl::Status status = DrainUpdates(); !status.ok())
    return status;
  if (absl::Status status = Settle(); !status.ok())
    return status;
  const bool training = entered.has_value();
  LeaveTraining();
  CommitRecord record;
  record.step = step;
  record.time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  record.extra = settings;
  record.plan = program.ScheduleInWords();
  record.environment = engine->Environment();
  record.samples = CountSamples(state->Committed(), step, program.train.batch, settings);
  if (absl::Status status = engine->Commit(std::move(record)); !status.ok())
    return status;
  committed = step;
  last_commit = Clock::now();
  if (training)
    EnterTraining();
  return absl::OkStatus();
}

absl::Status Run::Finish() {
  if (committed != step || first == step)
    if (absl::Status status = Commit(); !status.ok())
      return AtStep(status);
  LeaveTraining();
  if (absl::Status status = ExportParameters(program, *engine, save, step); !status.ok())
    return AtStep(status);
  if (trace)
    if (absl::Status status = WriteTrace(*trace, program.model.name, engine->TakeTrace());
        !status.ok())
      return status;
  outcome.last_step = step;
  outcome.TakeMemory(program, *engine);
  outcome.resident_bytes = PeakResidentBytes();
  outcome.saved = save;
  progress->Say(outcome.steps > 0 ? "\n" + FormatOutcome(program, outcome)
                                  : absl::StrCat("  weights saved to ", save));
  return reporting;
}

/// Waits for all transfers and counts them.
absl::Status Run::Settle() {
  absl::Status status = engine->Drain();
  Account(engine->TakeCounters());
  return status;
}

// The plan predicts steps and drains. What initialisation, evaluation, commits
// and export move is not compared with it, so it is not counted.

void Run::LeaveTraining() {
  if (!entered)
    return;
  const DiskBytes now = ReadDiskBytes();
  outcome.disk_read += now.read - entered->read;
  outcome.disk_written += now.written - entered->written;
  entered.reset();
}

void Run::EnterTraining() {
  // What is still under way was not training's. An error stays in the engine:
  // its next call returns it.
  engine->Drain().IgnoreError();
  engine->TakeCounters();
  entered = ReadDiskBytes();
}

void Run::Account(const Counters &counters) {
  if (!entered)
    return;
  unreported.Add(counters);
  outcome.moved.Add(counters.moved);
}

absl::Status Run::Interrupted() const {
  return InterruptedError(interrupt.signal(),
                          absl::StrCat("interrupted after step ", step, " of ", program.train.steps,
                                       ", which is committed in `", directories[0],
                                       "`; the same command with --resume continues"));
}

/// An error with where the run was and what is left of it.
absl::Status Run::AtStep(const absl::Status &status) const {
  if (status.ok())
    return status;
  return absl::Status(
      status.code(),
      absl::StrCat("step ", step, ": ", status.message(), "; the last committed step is ",
                   committed, " in `", directories[0],
                   // What is damaged may be a part of that commit.
                   absl::IsDataLoss(status) ? absl::StrCat("`; `boa state ", directories[0],
                                                           " --check` says whether it is whole")
                                            : "`, and --resume continues from it"));
}

} // namespace

absl::Status Train(const Program &program, const Kernels &kernels, const EntryPoints &entries,
                   const TrainerOptions &options) {
  return Run(program, kernels, entries, options).Train();
}

} // namespace boa
