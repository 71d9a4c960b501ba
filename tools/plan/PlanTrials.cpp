//===- PlanTrials.cpp -----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/PlanTrials.h"

#include "frontend/Frontend.h"
#include "frontend/Printer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace boa {
namespace {

// The first steps fill memory and pipelines. The last one, which is not waited for, begins while
// the one before it ends. Even steps may run in another order than odd ones.
constexpr int64_t kSteps = 5;
constexpr size_t kFirstSteady = 2, kSteady = 2;

double steadySeconds(const SimulatedRun &run) {
  double sum = 0;
  for (size_t i = kFirstSteady; i < kFirstSteady + kSteady; ++i)
    sum += run.seconds[i];
  return sum / double(kSteady);
}

/// A share in percent, with the fewest digits that read back as the same share.
std::string printShare(double share) {
  for (int digits = 1; digits <= 17; ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, 100 * share);
    if (std::strtod(text.c_str(), nullptr) / 100 == share && text.find('e') == std::string::npos)
      return text;
  }
  return absl::StrFormat("%.17g", 100 * share);
}

absl::StatusOr<SimulatedRun> simulateSteps(const Program &program, boa_entry_point step,
                                           bool record = false) {
  SimulateOptions options;
  options.steps = kSteps;
  options.leave_last = true;
  options.out = nullptr;
  options.record = record;
  EntryPoints entries;
  entries.step = step;
  return Simulate(program, entries, options);
}

/// The placement as a spec writes it.
std::string print(const Placement &place) {
  std::vector<std::string> parts;
  for (const Placement::Part &part : place.parts)
    if (&part == &place.parts.back())
      parts.push_back(WordOf(part.tier));
    else if (part.layers > 0)
      parts.push_back(absl::StrCat(WordOf(part.tier), " ", part.layers, " layers"));
    else
      parts.push_back(absl::StrCat(WordOf(part.tier), " ", printShare(part.share), "%"));
  return absl::StrJoin(parts, ", ");
}

} // namespace

bool Trial::isQuick() const {
  constexpr int64_t kFewChunks = 4096;
  int64_t chunks = 0;
  for (const Storage &storage : program.storages)
    chunks += storage.entry_count() * storage.chunks;
  return chunks <= kFewChunks;
}

/// A compilation of a choice: its key among the entries, and the request.
struct Trials::Job {
  std::string key;
  CompileRequest request;
};

struct Trials::Entry {
  std::once_flag compiled, simulated;
  bool isAskedFor = false, isUsed = false; // compiled, simulated
  std::unique_ptr<JitProgram> jit;
  Trial trial;

  void compile(Compiler &compiler, const CompileRequest &request) {
    trial.failure.status = tryCompile(compiler, request);
    trial.fits = trial.failure.status.ok();
    trial.need = compiler.memoryNeed();
    trial.possible = trial.fits || trial.need;
    if (!trial.possible)
      trial.failure.diagnostics = compiler.diagnostics();
  }

  /// Waits while another thread simulates it.
  void simulate() {
    std::call_once(simulated, [&] {
      if (!trial.fits)
        return;
      auto run = simulateSteps(trial.program, trial.step);
      if (!run.ok()) {
        trial.failure.status = run.status();
        trial.fits = trial.possible = false;
        return;
      }
      trial.seconds = steadySeconds(*run);
      trial.uses = std::move(run->uses);
    });
  }

private:
  absl::Status tryCompile(Compiler &compiler, const CompileRequest &request) {
    auto program = compiler.jit(request);
    if (!program.ok())
      return program.status();
    jit = *std::move(program);
    auto text = jit->lookupAs<const char *>("boa_program");
    if (!text)
      return absl::InternalError(llvm::toString(text.takeError()));
    auto entry = jit->lookupAs<boa_entry_point>("boa_step");
    if (!entry)
      return absl::InternalError(llvm::toString(entry.takeError()));
    trial.step = *entry;
    auto parsed = ParseProgram(*text);
    if (!parsed.ok())
      return parsed.status();
    trial.program = *std::move(parsed);
    return absl::OkStatus();
  }
};

/// The number of other threads. More would take much memory, and try choices that no search needs.
static unsigned countOthers() {
  constexpr unsigned kMost = 8;
  return std::min(llvm::hardware_concurrency().compute_thread_count() - 1, kMost);
}

Trials::Trials(const CompileRequest &spec)
    : request(spec), others(llvm::hardware_concurrency(std::max(countOthers(), 1u))) {
  request.simulate = true;
  request.dump.clear();
  // Standard input can be read only once.
  frontend::FrontendResult result;
  if (request.texts.empty())
    request.texts = frontend::readFiles(request.files, result.diagnostics);
  if (result.diagnostics.empty())
    result = frontend::compileTexts(request.texts, request.overrides, request.held);
  std::fputs(result.diagnostics.c_str(), stderr);
  if (!result.spec)
    return;
  given = result.spec->givenOfPlan;
  activations = result.spec->activationsOfPlan;
  kindsOfLayers = int(
      llvm::count_if(result.spec->model.stages, [](const auto &stage) { return stage.isLayer; }));
  settings.emplace();
  settings->model = result.spec->shape;
  settings->train = result.spec->train;
  settings->plan = result.spec->plan;
  settings->machine = result.spec->machine;
}

Trials::~Trials() {
  ++prepared;
  others.wait();
}

bool Trials::isGiven(const std::string &path) const { return llvm::is_contained(given, path); }

std::string Trials::schedule(const Choice &choice) const {
  std::vector<std::string> arguments;
  if (choice.delay > 0)
    arguments.push_back(absl::StrCat("delay = ", frontend::printNumber(choice.delay)));
  if (choice.prefetch != PlanSettings().prefetch)
    arguments.push_back(absl::StrCat("prefetch = ", choice.prefetch));
  if (!choice.recompute)
    arguments.push_back("recompute = false");
  if (choice.order == Schedule::vertical && !settings->plan.snake)
    arguments.push_back("snake = false");
  if (choice.keep > 0)
    arguments.push_back(absl::StrCat("keep = ", choice.keep, " layers"));
  // A schedule without a delay may mean another than 0 (with clipping).
  if (choice.delay == 0)
    arguments.insert(arguments.begin(), "delay = 0");
  return absl::StrCat(WordOf(choice.order), "(", absl::StrJoin(arguments, ", "), ")");
}

Placement Trials::place(const Shares &shares) const {
  Placement place;
  place.parts.clear();
  const bool onSsd = HasSsdRates(settings->machine);
  auto add = [&](int percent, HomeTier tier) {
    if (percent > 0)
      place.parts.push_back({tier, percent / 100.0});
  };
  add(shares.device, HomeTier::device);
  add(shares.host + (onSsd ? 0 : shares.rest()), HomeTier::host);
  add(onSsd ? shares.rest() : 0, HomeTier::ssd);
  return place;
}

std::vector<std::string> Trials::overrides(const Choice &choice) const {
  std::vector<std::string> changes = {absl::StrCat("plan.micro_batch=", choice.microBatch),
                                      absl::StrCat("plan.schedule=", schedule(choice))};
  if (choice.vocabularyBlocks > 1)
    changes.push_back(absl::StrCat("plan.vocabulary_blocks=", choice.vocabularyBlocks));
  if (choice.batch > 0)
    changes.push_back(absl::StrCat("train.batch=", choice.batch));
  for (const auto &[role, shares] : choice.places)
    changes.push_back(absl::StrCat("plan.place.", role, "=", print(place(shares))));
  llvm::append_range(changes, choice.changes);
  return changes;
}

std::string Trials::block(const Choice &choice) const {
  std::string text = absl::StrCat("plan {\n  micro_batch = ", choice.microBatch,
                                  "\n  schedule    = ", schedule(choice), "\n");
  if (choice.vocabularyBlocks > 1 || isGiven("plan.vocabulary_blocks"))
    absl::StrAppend(&text, "  vocabulary_blocks = ", choice.vocabularyBlocks, "\n");
  if (isGiven("plan.update"))
    absl::StrAppend(&text, "  update      = ", WordOf(settings->plan.update), "\n");
  const std::string own = absl::StrJoin(activations, "");
  std::vector<std::pair<std::string, std::string>> places;
  settings->plan.place.Visit([&](const SettingRow &row, const Placement &place) {
    const std::string role = llvm::StringRef(row.path).rsplit('.').second.str();
    auto found = choice.places.find(role);
    places.emplace_back(role,
                        print(found == choice.places.end() ? place : this->place(found->second)));
  });
  const bool same =
      llvm::all_of(places, [&](const auto &role) { return role.second == places.front().second; });
  if (same)
    return absl::StrCat(text, "  place       = ", places.front().second, "\n", own, "}\n");
  absl::StrAppend(&text, "  place {\n");
  for (const auto &[role, place] : places)
    absl::StrAppendFormat(&text, "    %-18s = %s\n", role, place);
  return absl::StrCat(text, "  }\n", own, "}\n");
}

Trials::Job Trials::jobOf(const Choice &choice, int64_t mostChunks, bool limited) const {
  std::vector<std::string> changes = overrides(choice);
  if (!limited)
    for (const char *memory : {"machine.device.memory=none", "machine.host.memory=none"})
      changes.push_back(memory);
  Job job = {absl::StrCat(absl::StrJoin(changes, "\n"), "\n", mostChunks), request};
  CompileRequest &changed = job.request;
  llvm::append_range(changed.overrides, changes);
  changed.mostChunks = mostChunks;
  // Kernels do not work on chunks, but the number of chunks changes the padding of their weights.
  changed.kernels = absl::StrCat(choice.microBatch, choice.recompute ? " again" : " saved", " ",
                                 choice.vocabularyBlocks, " ", mostChunks);
  for (const std::string &change : choice.changes)
    if (mayChangeKernels(change))
      absl::StrAppend(&changed.kernels, " ", change);
  // Of several kinds of layers, some may have none that keeps its activations.
  if (choice.keep > 0)
    absl::StrAppend(&changed.kernels, " and kept", kindsOfLayers > 1 ? choice.keep : 0);
  return job;
}

Trials::Entry &Trials::entryOf(const Job &job) {
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Entry> &found = entries[job.key];
  if (!found)
    found = std::make_unique<Entry>();
  return *found;
}

/// Waits while another thread compiles it.
void Trials::compile(Entry &entry, const Job &job) {
  std::call_once(entry.compiled, [&] {
    std::unique_ptr<Compiler> compiler;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!idle.empty()) {
        compiler = std::move(idle.back());
        idle.pop_back();
      }
    }
    if (!compiler)
      compiler = std::make_unique<Compiler>(/*quiet=*/true, &kernels);
    entry.compile(*compiler, job.request);
    const std::lock_guard<std::mutex> lock(mutex);
    idle.push_back(std::move(compiler));
  });
}

const Trial &Trials::make(const Choice &choice, bool simulated, int64_t mostChunks, bool limited) {
  const Job job = jobOf(choice, mostChunks, limited);
  Entry &entry = entryOf(job);
  compile(entry, job);
  countCompiled += !std::exchange(entry.isAskedFor, true);
  if (simulated) {
    entry.simulate();
    countSimulated += entry.trial.fits && !std::exchange(entry.isUsed, true);
  }
  if (!entry.trial.possible && !failure)
    failure = entry.trial.failure;
  return entry.trial;
}

void Trials::prepare(const std::vector<Choice> &choices, bool simulated) {
  const int64_t now = ++prepared;
  if (countOthers() == 0) // the only core is the caller's
    return;
  for (const Choice &choice : choices)
    others.async([this, now, simulated, job = jobOf(choice, kMostChunks, /*limited=*/true)] {
      if (prepared != now)
        return;
      Entry &entry = entryOf(job);
      compile(entry, job);
      if (simulated)
        entry.simulate();
    });
}

const Trial &Trials::run(const Choice &choice) { return make(choice, /*simulated=*/true); }

const Trial &Trials::compile(const Choice &choice) { return make(choice, /*simulated=*/false); }

const Trial &Trials::runUnlimited(const Choice &choice) {
  return make(choice, /*simulated=*/true, kMostChunks, /*limited=*/false);
}

const Trial &Trials::makeWhole(const Choice &choice, bool simulated) {
  const Trial &trial = make(choice, simulated);
  const bool whole = llvm::none_of(trial.program.groups,
                                   [](const Group &group) { return group.chunks >= kMostChunks; });
  return whole ? trial : make(choice, simulated, /*mostChunks=*/0);
}

const Trial &Trials::runWhole(const Choice &choice) {
  return makeWhole(choice, /*simulated=*/true);
}

const Trial &Trials::compileWhole(const Choice &choice) {
  return makeWhole(choice, /*simulated=*/false);
}

absl::StatusOr<SimulatedRun> Trials::record(const Trial &trial) {
  return simulateSteps(trial.program, trial.step, /*record=*/true);
}

double Trials::simulate(const Trial &trial, const MachineSettings &machine) {
  Program program = trial.program;
  program.machine = machine;
  auto run = simulateSteps(program, trial.step);
  return run.ok() ? steadySeconds(*run) : trial.seconds;
}

} // namespace boa
