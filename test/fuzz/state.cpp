//===- state.cpp - Any damage to a state's files --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state of two paths and two commits is damaged as the input says: bytes written
// over, files cut, stretched, emptied, removed or swapped; numbers and places in
// the manifests and in files of commits, sealed and named again so that only what they say is
// wrong. Opened, it is
// refused, or it is a state: its chunks stand apart and in their files, it is
// written to and committed, and opens again at that commit. Damage without a seal
// that was made again never opens at a commit that was not made.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/checksum.h"
#include "runtime/state/saved_commit.h"
#include "runtime/state/state.h"
#include "test/fuzz/support.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <fuzzer/FuzzedDataProvider.h>
#include <iterator>
#include <set>

using namespace boa;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kSteps[] = {3, 8}; // of the two commits
/// Those of commits follow, by their names.
const char *const kFiles[] = {
    "a/manifest.json", "a/manifest.copy.json", "a/data", "a/lock", "b/data", "b/lock"};

/// The operating system's, with identities that are the same in every run.
class Disk : public FileSystem {
public:
  absl::StatusOr<std::shared_ptr<Directory>> OpenDirectory(const std::string &path) override {
    return real.OpenDirectory(path);
  }
  absl::StatusOr<std::unique_ptr<OpenFile>> Open(const std::string &path, OpenMode mode) override {
    return real.Open(path, mode);
  }
  absl::StatusOr<std::unique_ptr<OpenFile>> Lock(const std::string &path) override {
    return real.Lock(path);
  }
  absl::StatusOr<PathKind> Kind(const std::string &path) override { return real.Kind(path); }
  absl::StatusOr<std::string> RealPath(const std::string &path) override {
    return real.RealPath(path);
  }
  absl::Status MakeDirectory(const std::string &path) override { return real.MakeDirectory(path); }
  absl::Status RemoveDirectory(const std::string &path) override {
    return real.RemoveDirectory(path);
  }
  absl::Status Rename(const std::string &from, const std::string &to) override {
    return real.Rename(from, to);
  }
  absl::Status Unlink(const std::string &path) override { return real.Unlink(path); }
  absl::Status SyncDirectory(const std::string &path) override { return real.SyncDirectory(path); }
  absl::StatusOr<DeviceSpace> Space(const std::string &directory) override {
    return real.Space(directory);
  }
  uint64_t Unique() override { return ++last * 0x9e3779b97f4a7c15; }
  absl::StatusOr<std::unique_ptr<IoBackend>> CreateIo(std::vector<IoFile> files,
                                                      std::vector<IoLink> links, void *arena,
                                                      int64_t bytes,
                                                      const IoOptions &options) override {
    return real.CreateIo(std::move(files), std::move(links), arena, bytes, options);
  }

private:
  FileSystem &real = SystemFiles();
  uint64_t last = 0;
};

Program MakeProgram() {
  Program program;
  program.model.name = "fuzzed";
  auto add = [&](const char *name, const char *role, Home::Tier tier, bool persistent) {
    Storage &storage = program.storages.emplace_back();
    storage.name = name;
    storage.role = role;
    storage.homes = {{2, {{tier, 2}}}};
    storage.entries = {2};
    storage.chunks = 2;
    storage.bytes = 2 * kPage;
    storage.persistent = persistent;
  };
  add("weights.block", "weights", Home::ssd, true);
  add("momentum.block", "momentum", Home::host, true);
  add("checkpoints", "checkpoints", Home::ssd, false);
  Group &group = program.groups.emplace_back();
  group.name = "block";
  group.weights = 0;
  Parameter &parameter = group.parameters.emplace_back();
  parameter.name = "w";
  parameter.shape = {32, 32};
  return program;
}

const Program &TheProgram() {
  static const Program program = MakeProgram();
  return program;
}

std::string Folder() { return fuzz::Scratch() + "/state"; }
std::vector<std::string> Paths() { return {Folder() + "/a", Folder() + "/b"}; }

/// Gives every persistent chunk new contents and commits them.
absl::Status WriteAndCommit(StateStore &store, int64_t step) {
  for (int32_t id = 0; id < int32_t(TheProgram().storages.size()); ++id)
    for (int64_t entry = 0; entry < 2; ++entry)
      for (int32_t chunk = 0; chunk < 2; ++chunk) {
        Extent extent = store.Next(id, entry, chunk);
        if (extent.file < 0)
          return store.status();
        store.SetChecksum(extent, uint64_t(step) * 100 + uint64_t(id));
      }
  CommitRecord record;
  record.step = step;
  record.extra = {{"data", "42"}};
  return store.Commit(record);
}

std::string ReadWhole(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The state as it was left whole.
struct State {
  std::vector<std::string> names, files;
};

State MakeState() {
  fs::remove_all(Folder());
  fs::create_directories(Folder());
  Disk disk;
  auto store = StateStore::Create(disk, TheProgram(), Paths(), 2);
  fuzz::Require(store.ok(), "a state is made");
  for (int64_t step : kSteps)
    fuzz::Require(WriteAndCommit(**store, step).ok(), "a state is committed");
  store->reset();
  State state;
  state.names.assign(std::begin(kFiles), std::end(kFiles));
  for (const fs::directory_entry &entry : fs::directory_iterator(Paths()[0]))
    if (const std::string name = entry.path().filename().string(); IsSealedName(name))
      state.names.push_back("a/" + name);
  std::sort(state.names.begin() + std::size(kFiles), state.names.end());
  for (const std::string &name : state.names)
    state.files.push_back(ReadWhole(absl::StrCat(Folder(), "/", name)));
  return state;
}

/// One number of the manifest becomes another, or one of its digits or letters; the
/// checksum matches again.
void DamageAndSeal(std::string &text, FuzzedDataProvider &input) {
  std::string line = text.substr(0, text.find('\n'));
  std::vector<size_t> numbers, inner;
  for (size_t i = 1; i < line.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(line[i])) && line[i - 1] == ':')
      numbers.push_back(i);
    if (std::isalnum(static_cast<unsigned char>(line[i])))
      inner.push_back(i);
  }
  if (input.ConsumeBool() && !numbers.empty()) {
    size_t at = numbers[input.ConsumeIntegralInRange<size_t>(0, numbers.size() - 1)];
    size_t end = line.find_first_not_of("0123456789", at);
    line.replace(at, end - at,
                 input.ConsumeBool() ? absl::StrCat(input.ConsumeIntegral<int64_t>())
                                     : absl::StrCat(input.ConsumeIntegralInRange(0, 9)));
  } else if (!inner.empty()) {
    size_t at = inner[input.ConsumeIntegralInRange<size_t>(0, inner.size() - 1)];
    line[at] = "0123456789abcdef"[input.ConsumeIntegralInRange(0, 15)];
  }
  line += '\n';
  text = absl::StrFormat("%sxxh3 %016x\n", line, Checksum(line.data(), int64_t(line.size())));
}

std::string Resealed(const std::string &text) {
  const std::string line = text.substr(0, text.find('\n') + 1);
  return absl::StrFormat("%sxxh3 %016x\n", line, Checksum(line.data(), int64_t(line.size())));
}

/// Gives a file of a commit the name that its contents ask for, in all that name it.
void Rename(State &state, size_t which) {
  std::string &name = state.names[which];
  const size_t at = name.find('.') + 1;
  if (name.size() < at + 32)
    return;
  const std::string old = name.substr(at, 32), sum = NameOfContents(state.files[which]);
  name.replace(at, 32, sum);
  for (size_t i = 0; i < state.files.size() && sum != old; ++i) {
    const bool is_commit = absl::StartsWith(state.names[i], "a/commit.");
    if (i == which || (i >= 2 && !is_commit) || !absl::StrContains(state.files[i], old))
      continue;
    state.files[i] = Resealed(absl::StrReplaceAll(state.files[i], {{old, sum}}));
    if (is_commit)
      Rename(state, i);
  }
}

/// Returns whether a file was sealed again.
bool Damage(State &state, std::set<size_t> &removed, FuzzedDataProvider &input) {
  std::vector<std::string> &files = state.files;
  const size_t which = input.ConsumeIntegralInRange<size_t>(0, files.size() - 1);
  std::string &file = files[which];
  const size_t most = 2 * file.size() + 10;
  switch (input.ConsumeIntegralInRange(0, 9)) {
  case 0: {
    std::string bytes = input.ConsumeRandomLengthString(64);
    const size_t at = input.ConsumeIntegralInRange<size_t>(0, file.size());
    file.replace(at, std::min(bytes.size(), file.size() - at), bytes);
    return false;
  }
  case 1:
    file.resize(input.ConsumeIntegralInRange<size_t>(0, file.size()));
    return false;
  case 2:
    file.resize(input.ConsumeIntegralInRange<size_t>(0, most), '\0');
    return false;
  case 3:
    removed.insert(which);
    return false;
  case 4:
    file = files[input.ConsumeIntegralInRange<size_t>(0, files.size() - 1)];
    return false;
  case 8:
  case 9: {
    const size_t of = input.ConsumeIntegralInRange<size_t>(std::size(kFiles), files.size() - 1);
    DamageAndSeal(files[of], input);
    Rename(state, of);
    return true;
  }
  default:
    DamageAndSeal(files[0], input);
    if (input.ConsumeBool())
      DamageAndSeal(files[1], input);
    else
      files[1] = files[0];
    return true;
  }
}

/// All places are in the files, aligned and apart.
void CheckPlaces(StateStore &store, bool next) {
  std::set<std::pair<int32_t, int64_t>> seen;
  for (int32_t id = 0; id < int32_t(TheProgram().storages.size()); ++id)
    for (int64_t entry = 0; entry < 2; ++entry)
      for (int32_t chunk = 0; chunk < 2; ++chunk) {
        const Storage &storage = TheProgram().storages[id];
        Extent extent = store.Current(id, entry, chunk);
        for (bool second : {false, true}) {
          if (second) {
            if (!next || !storage.persistent)
              continue;
            extent = store.Next(id, entry, chunk);
          }
          if (extent.file < 0) // never written, or another form
            continue;
          fuzz::Require(extent.file < int32_t(store.Files().size()), "a file of the state");
          fuzz::Require(extent.offset >= kPage && extent.offset % kPage == 0, "a place for chunks");
          fuzz::Require(seen.insert({extent.file, extent.offset}).second, "places are apart");
          fuzz::Require(extent.offset + kPage <=
                            int64_t(fs::file_size(store.Files()[extent.file].path)),
                        "a place in its file");
        }
      }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const State whole = MakeState();
  FuzzedDataProvider input(data, size);
  State state = whole;
  std::set<size_t> removed;
  const bool at_first = input.ConsumeBool(), one_path = input.ConsumeBool();
  bool sealed = false;
  for (int edits = input.ConsumeIntegralInRange(1, 4); edits > 0; --edits)
    sealed |= Damage(state, removed, input);

  fs::remove_all(Folder());
  for (const std::string &path : Paths())
    fs::create_directories(path);
  for (size_t i = 0; i < state.files.size(); ++i)
    if (!removed.count(i))
      fuzz::WriteFile(absl::StrCat(Folder(), "/", state.names[i]), state.files[i]);

  Disk disk;
  std::vector<std::string> paths = Paths();
  if (one_path)
    paths.pop_back();
  StateStore::Exists(disk, paths[0]).IgnoreError();
  std::optional<int64_t> at;
  if (at_first)
    at = kSteps[0];
  auto store = StateStore::Open(disk, TheProgram(), paths, 2, at);
  if (!store.ok()) {
    fuzz::Require(!store.status().message().empty(), "a refusal says why");
    return 0;
  }
  const int64_t step = (*store)->Committed().step;
  fuzz::Require(sealed || step == kSteps[0] || step == kSteps[1], "a commit that was made");
  CheckPlaces(**store, /*next=*/false);
  CheckPlaces(**store, /*next=*/true);
  const int64_t next = step < INT64_MAX - 5 ? step + 5 : step;
  absl::Status committed = WriteAndCommit(**store, next);
  if (!committed.ok())
    return 0;
  store->reset();
  auto again = StateStore::Open(disk, TheProgram(), paths, 2);
  fuzz::Require(again.ok() && (*again)->Committed().step == next, "what is committed opens");
  return 0;
}
