//===- seed.cpp - One training on disks that fail -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/simulation/campaign.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <limits>

namespace boa {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// Where the run of a seed stands.
class SeedRun {
public:
  SeedRun(uint64_t seed, const CampaignOptions &options, Trainers &trainers, Tally &tally)
      : options(options), trainers(trainers), tally(tally), dice(seed), disk(dice.Next()) {}

  std::string Run();

private:
  void Draw();
  void DrawProcess(bool disturbed);
  void Disturb();
  std::string RunProcess(bool disturbed);
  std::string Judge(const Ended &, bool disturbed, const FaultCounts &before);
  std::string CheckError(const std::string &message, bool disturbed, const FaultCounts &before);
  void EndProcess();
  std::string MakeStranger();
  std::string CheckStranger();
  std::string CheckRefused(const Ended &);
  void Say(const std::string &text) const {
    if (options.verbose)
      std::fprintf(stderr, "%s\n", text.c_str());
  }

  const CampaignOptions &options;
  Trainers &trainers;
  Tally &tally;
  Dice dice;
  SimulatedDisk disk;
  Process process;
  std::vector<std::string> paths;
  int64_t acknowledged = -1;       // the step of the last commit that was
  bool tight = false;              // a disk has little space
  std::optional<Process> stranger; // another training, whose second path is there
  std::unique_ptr<OpenFile> held;  // the lock of a path, as another process has it
  std::string refusal;             // the path for which a process must be refused
  bool finished = false, refused = false;
};

/// What stays the same over all processes of the run.
void SeedRun::Draw() {
  linear::Options &o = process.options;
  o.weight_type = dice.Of({"f32", "bf16"});
  o.delayed = dice.Chance(0.5);
  o.clip = dice.Of({0.0, 0.05});
  o.steps = dice.Of({6, 9, 12});
  const int64_t count = options.paths > 0 ? options.paths : 1 + dice.Below(3);
  tight = dice.Chance(0.1);
  for (int64_t i = 0; i < count; ++i) {
    const std::string device = absl::StrCat("/ssd", i);
    disk.AddDevice(device, tight ? (10 + dice.Below(90)) * 4096 : kNoLimit,
                   std::chrono::microseconds(20 + dice.Below(500)));
    paths.push_back(device + "/state");
  }
}

/// What the next one is given: another schedule, other paths.
void SeedRun::DrawProcess(bool disturbed) {
  linear::Options &o = process.options;
  // A delayed one that lives on SSD has its gradients there, so it stays there.
  if (!o.delayed || acknowledged < 0)
    o.tier = dice.Chance(0.7) ? "ssd" : "device";
  // A norm is a sum of chunks.
  if (o.clip == 0)
    o.chunk_elements = dice.Of({2048, 2048, 4096});
  o.commit_every = dice.Below(4);
  o.commit_keep = 1 + dice.Below(3);
  o.evaluate_every = dice.Of({0, 0, 2, 3});
  process.paths = paths;
  for (size_t i = 1; i < process.paths.size(); ++i)
    std::swap(process.paths[i], process.paths[i + size_t(dice.Below(int64_t(paths.size() - i)))]);
  if (!tight)
    process.paths.resize(size_t(1 + dice.Below(int64_t(paths.size()))));
  if (!disturbed)
    process.paths = paths;
  IoOptions io;
  io.depth = dice.Of({1, 2, 5, 32});
  io.segment_bytes = dice.Of({4096, 8192, 12288, 1 << 20});
  disk.SetIo(io);
  refusal.clear();
  if (!disturbed || disk.Dead())
    return;
  if (dice.Chance(0.05)) {
    const std::string &path = process.paths[size_t(dice.Below(int64_t(process.paths.size())))];
    if (auto lock = disk.Lock(path + "/lock"); lock.ok()) {
      held = *std::move(lock);
      refusal = path;
    }
  } else if (stranger && process.paths.size() > 1 && dice.Chance(0.2)) {
    refusal = process.paths.back() = stranger->paths.back();
  }
}

/// Another training beside this one, of the same model.
std::string SeedRun::MakeStranger() {
  stranger = process;
  stranger->options.steps = 2;
  stranger->paths = {"/ssd0/other", "/ssd0/other2"};
  SeededScheduler scheduler(dice.Next());
  stranger->disk = &disk;
  stranger->scheduler = &scheduler;
  Ended ended = trainers.Run(*stranger);
  trainers.Begin();
  return ended.status.ok() ? "" : "without a fault: " + ended.status.ToString();
}

/// It is as it was.
std::string SeedRun::CheckStranger() {
  SeededScheduler scheduler(dice.Next());
  stranger->scheduler = &scheduler;
  stranger->resume = true;
  trainers.Begin();
  Ended ended = trainers.Run(*stranger);
  if (!ended.status.ok())
    return CheckError("another training: " + std::string(ended.status.message()), false, {});
  return ended.trained.weights == trainers.Reference(stranger->options).weights
             ? ""
             : "the weights of another training differ";
}

/// What a process must come to that was given a path of another.
std::string SeedRun::CheckRefused(const Ended &ended) {
  if (ended.status.ok())
    return "a path was taken that was another's: " + refusal;
  return "";
}

void SeedRun::Disturb() {
  FaultRates rates;
  const int64_t kinds = options.faults.empty() || dice.Chance(0.15) ? 0 : 1 + dice.Below(3);
  std::string text;
  for (int64_t i = 0; i < kinds; ++i) {
    const Fault fault = options.faults[size_t(dice.Below(int64_t(options.faults.size())))];
    if (fault >= Fault::power_loss)
      continue;
    // Syncs are few.
    rates[fault] = fault <= Fault::eintr         ? dice.Of({0.05, 0.3})
                   : fault == Fault::failed_sync ? 1.0 / dice.Of({3, 10, 30})
                                                 : 1.0 / dice.Of({8, 30, 100, 300});
    absl::StrAppendFormat(&text, " %s %.4f", FaultName(fault), rates[fault]);
  }
  disk.SetRates({});
  if (dice.Chance(0.5))
    disk.SetRates(rates);
  else
    disk.SetRates(paths[size_t(dice.Below(int64_t(paths.size())))].substr(0, 5), rates);
  std::vector<Fault> ends;
  for (Fault fault : options.faults)
    if (fault >= Fault::power_loss)
      ends.push_back(fault);
  if (!ends.empty() && dice.Chance(0.7)) {
    const int64_t at = 1 + dice.Below(dice.Of({80, 80, 200, 600}));
    const Fault how = ends[size_t(dice.Below(int64_t(ends.size())))];
    disk.DieAt(at, how);
    absl::StrAppendFormat(&text, " %s after %d operations", FaultName(how), at);
  }
  Say("faults:" + text);
}

std::string SeedRun::Run() {
  if (options.verbose)
    disk.SetLog([](const std::string &line) { std::fprintf(stderr, "  %s\n", line.c_str()); });
  ++tally.runs;
  Draw();
  trainers.Begin();
  std::string failure;
  if (!tight && dice.Chance(0.1))
    failure = MakeStranger();
  const int64_t disturbed = 1 + dice.Below(5);
  for (int64_t i = 0; i < disturbed && failure.empty() && !finished; ++i) {
    Disturb();
    failure = RunProcess(true);
  }
  // A run that ended is resumed as well: its last commit must be there.
  disk.SetRates({});
  disk.DieAt(0, Fault::kill);
  for (const std::string &path : paths)
    disk.SetSpace(path.substr(0, 5), kNoLimit);
  if (failure.empty())
    failure = RunProcess(false);
  if (failure.empty() && stranger)
    failure = CheckStranger();
  for (size_t i = 0; i < kFaults; ++i)
    tally.faults.counts[i] += disk.Counts().counts[i];
  tally.operations += disk.Operations();
  tally.refused += refused;
  return failure;
}

std::string SeedRun::RunProcess(bool disturbed) {
  const FaultCounts before = disk.Counts();
  DrawProcess(disturbed);
  SeededScheduler scheduler(dice.Next());
  process.disk = &disk;
  process.scheduler = &scheduler;
  process.resume = acknowledged >= 0;
  const linear::Options &o = process.options;
  Say(absl::StrFormat("process: %s %s%s clip %g steps %d commit %d keep %d evaluate %d in %s%s",
                      o.tier, o.weight_type, o.delayed ? " delayed" : "", o.clip, o.steps,
                      o.commit_every, o.commit_keep, o.evaluate_every,
                      absl::StrJoin(process.paths, ", "), process.resume ? ", resumed" : ""));
  Ended ended = trainers.Run(process);
  // A commit that nobody was told of may be there all the same.
  if (!process.resume && absl::IsAlreadyExists(ended.status) &&
      absl::StrContains(ended.status.message(), "--resume")) {
    process.resume = true;
    ended = trainers.Run(process);
  }
  ++tally.processes;
  tally.choices += scheduler.choices;
  Say("ended: " + ended.status.ToString());
  std::string failure = refusal.empty() ? "" : CheckRefused(ended);
  if (failure.empty())
    failure = Judge(ended, disturbed, before);
  EndProcess();
  return failure;
}

std::string SeedRun::Judge(const Ended &ended, bool disturbed, const FaultCounts &before) {
  if (ended.resumed && *ended.resumed < acknowledged)
    return absl::StrFormat("step %d was acknowledged, and step %d was resumed", acknowledged,
                           *ended.resumed);
  finished = ended.status.ok();
  std::string difference = trainers.Compare(process.options, ended.trained, finished);
  if (!difference.empty())
    return difference;
  if (finished) {
    ++tally.finished;
    acknowledged = process.options.steps;
    return "";
  }
  ++(disk.Dead() ? tally.died : tally.stopped);
  const std::string message(ended.status.message());
  static const std::string kCommitted = "the last committed step is ";
  if (size_t at = message.find(kCommitted); at != std::string::npos) {
    const int64_t step = std::atoll(message.c_str() + at + kCommitted.size());
    if (step < acknowledged)
      return absl::StrFormat("step %d was acknowledged, and then %s", acknowledged, message);
    acknowledged = step;
  }
  return CheckError(message, disturbed, before);
}

std::string SeedRun::CheckError(const std::string &message, bool disturbed,
                                const FaultCounts &before) {
  if (!absl::StrContains(message, "/"))
    return "an error names no file: " + message;
  if (absl::StrContains(message, "checksum of")) {
    bool named = false;
    for (const char *tensor : {"weights", "momentum", "variance", "low", "gradients"})
      named |= absl::StrContains(message, absl::StrCat("checksum of ", tensor));
    if (!named)
      return "an error names no tensor: " + message;
  }
  if (!refusal.empty() && absl::StrContains(message, refusal))
    return "";
  if (tight && disturbed)
    return "";
  bool struck = false;
  for (size_t i = size_t(Fault::io_error); i < kFaults; ++i)
    struck |= disk.Counts().counts[i] > before.counts[i];
  if (struck && disturbed)
    return "";
  for (const std::string &path : disk.Damaged())
    if (absl::StrContains(message, path)) {
      refused = true;
      return "";
    }
  return "without a reason: " + message;
}

void SeedRun::EndProcess() {
  disk.DieAt(0, Fault::kill);
  held.reset();
  const int64_t how = dice.Below(3);
  const bool may_lose = std::find(options.faults.begin(), options.faults.end(),
                                  Fault::power_loss) != options.faults.end();
  if (how == 0 && may_lose)
    disk.PowerLoss();
  else if (how == 1)
    disk.Kill();
  disk.Restart();
}

} // namespace

std::string RunSeed(uint64_t seed, const CampaignOptions &options, Trainers &trainers,
                    Tally &tally) {
  return SeedRun(seed, options, trainers, tally).Run();
}

} // namespace boa
