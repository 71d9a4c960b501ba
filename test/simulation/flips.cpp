//===- flips.cpp - Single bytes that change at rest -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/simulation/campaign.h"

#include "runtime/state/saved_commit.h"
#include "runtime/state/state.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>

namespace boa {
namespace {

/// A state between two processes.
struct Rest {
  Process process;
  std::unique_ptr<SimulatedDisk> disk;
  std::vector<std::pair<std::string, int64_t>> files;              // with their sizes
  int64_t bytes = 0;                                               // of all of them
  std::map<std::pair<std::string, int64_t>, std::string> storages; // by file and page
};

struct Count {
  int64_t told = 0, mended = 0, unused = 0, silent = 0;
};

constexpr int64_t kStepsBefore = 4, kSteps = 7;

/// Which storage of the commit each page of the data files is of.
void FindStorages(Rest &rest, const Program &program) {
  auto store = StateStore::Open(*rest.disk, program, rest.process.paths);
  for (size_t s = 0; store.ok() && s < program.storages.size(); ++s) {
    const Storage &storage = program.storages[s];
    if (!storage.persistent)
      continue;
    const int32_t chunks = std::max(storage.chunks, 1);
    for (int64_t entry = 0; entry < storage.entry_count(); ++entry)
      for (int32_t chunk = 0; chunk < chunks; ++chunk) {
        Extent extent = (*store)->Current(int32_t(s), entry, chunk);
        for (int64_t at = 0; at < storage.bytes / chunks; at += 4096)
          rest.storages[{(*store)->Files()[size_t(extent.file)].path,
                         (extent.offset + at) / 4096}] = storage.role;
      }
  }
}

Rest MakeRest(Dice &dice, const CampaignOptions &options, Trainers &trainers) {
  Rest rest;
  rest.disk = std::make_unique<SimulatedDisk>(dice.Next());
  linear::Options &o = rest.process.options;
  o.weight_type = dice.Of({"f32", "bf16"});
  o.delayed = dice.Chance(0.5);
  o.tier = dice.Of({"ssd", "ssd", "device"});
  o.steps = kStepsBefore;
  o.commit_every = dice.Below(3);
  o.commit_keep = 1 + dice.Below(2);
  const int64_t paths = options.paths > 0 ? options.paths : 1 + dice.Below(3);
  for (int64_t i = 0; i < paths; ++i) {
    rest.disk->AddDevice(absl::StrCat("/ssd", i));
    rest.process.paths.push_back(absl::StrCat("/ssd", i, "/state"));
  }
  SeededScheduler scheduler(dice.Next());
  rest.process.disk = rest.disk.get();
  rest.process.scheduler = &scheduler;
  trainers.Begin();
  Ended ended = trainers.Run(rest.process);
  if (!ended.status.ok())
    std::fprintf(stderr, "%s\n", ended.status.ToString().c_str()), std::abort();
  o.steps = kSteps;
  for (const std::string &path : rest.disk->Files()) {
    rest.files.emplace_back(path, *(*rest.disk->Open(path, {}))->Size());
    rest.bytes += rest.files.back().second;
  }
  FindStorages(rest, *ParseProgram(linear::Descriptor(o)));
  return rest;
}

/// The file and what of it the byte is.
std::string RegionOf(const Rest &rest, const std::string &path, int64_t offset) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (IsSealedName(name)) // but for the hash
    return name.substr(0, name.find('.'));
  if (name != "data")
    return name;
  if (offset < 4096)
    return "data: head";
  auto found = rest.storages.find({path, offset / 4096});
  return found == rest.storages.end() ? "data: not of the commit" : "data: " + found->second;
}

/// One flip. What went wrong, or nothing.
std::string Flip(const Rest &rest, Dice &dice, Trainers &trainers, bool verbose,
                 std::map<std::string, Count> &table) {
  // As many of the small files, where each byte counts, as of the large ones.
  size_t file = size_t(dice.Below(int64_t(rest.files.size())));
  if (dice.Chance(0.5)) {
    int64_t at = dice.Below(rest.bytes);
    for (file = 0; at >= rest.files[file].second; ++file)
      at -= rest.files[file].second;
  }
  const auto &[path, size] = rest.files[file];
  if (size == 0)
    return "";
  int64_t offset = dice.Below(size);
  if (path.substr(path.rfind('/')) == "/data" && dice.Chance(0.1))
    offset = dice.Below(4096);
  const uint8_t mask =
      dice.Chance(0.5) ? uint8_t(1 << dice.Below(8)) : uint8_t(1 + dice.Below(255));
  SimulatedDisk disk(*rest.disk, dice.Next());
  disk.Flip(path, offset, mask).IgnoreError();
  SeededScheduler scheduler(dice.Next());
  Process process = rest.process;
  process.disk = &disk;
  process.scheduler = &scheduler;
  process.resume = true;
  trainers.Begin();
  Ended ended = trainers.Run(process);
  const std::string region = RegionOf(rest, path, offset);
  Count &count = table[region];
  const std::string where =
      absl::StrFormat("mask %d at %d of %s (%s): ", mask, offset, path, region);
  if (verbose)
    std::fprintf(stderr, "%s%s\n", where.c_str(), ended.status.ToString().c_str());
  if (!ended.status.ok()) {
    ++count.told;
    if (absl::StartsWith(region, "manifest"))
      return where + "its copy is whole: " + std::string(ended.status.message());
    return absl::StrContains(ended.status.message(), path)
               ? ""
               : where + "the error does not name it: " + std::string(ended.status.message());
  }
  const Trained &expected = trainers.Reference(process.options);
  std::string difference = trainers.Compare(process.options, ended.trained, false);
  if (difference.empty() && ended.trained.losses.size() != size_t(kSteps - kStepsBefore))
    difference = "another number of steps";
  if (difference.empty() && ended.trained.weights != expected.weights)
    difference = "the exported weights differ";
  if (!difference.empty()) {
    ++count.silent;
    return where + difference;
  }
  ++(absl::StrContains(ended.text, "note: ") ? count.mended : count.unused);
  return "";
}

} // namespace

bool RunFlips(int64_t count, uint64_t seed, const CampaignOptions &options, Trainers &trainers) {
  constexpr int64_t kOfOneState = 200;
  std::map<std::string, Count> table;
  Dice dice(seed);
  int failures = 0;
  std::optional<Rest> rest;
  for (int64_t i = 0; i < count && failures < 10; ++i) {
    if (i % kOfOneState == 0)
      rest = MakeRest(dice, options, trainers);
    std::string failure = Flip(*rest, dice, trainers, options.verbose, table);
    if (failure.empty())
      continue;
    ++failures;
    std::fprintf(stderr, "flip %lld: %s\n", static_cast<long long>(i), failure.c_str());
  }
  std::printf("%-26s %8s %8s %8s %8s\n", "flips", "told", "mended", "unused", "silent");
  for (const auto &[region, c] : table)
    std::printf("%-26s %8lld %8lld %8lld %8lld\n", region.c_str(), static_cast<long long>(c.told),
                static_cast<long long>(c.mended), static_cast<long long>(c.unused),
                static_cast<long long>(c.silent));
  return failures == 0;
}

} // namespace boa
