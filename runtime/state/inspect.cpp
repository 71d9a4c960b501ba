//===- inspect.cpp - What a state directory holds -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/inspect.h"

#include "runtime/state/commit_name.h"
#include "runtime/state/commit_reader.h"
#include "runtime/state/commits.h"
#include "runtime/state/manifest_files.h"
#include "runtime/state/state.h"
#include "runtime/support/mutex.h"
#include "runtime/support/printable.h"
#include "runtime/support/threads.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace boa {
namespace {

constexpr size_t kReaders = 4; // of a path: a flash disk is busy with that
constexpr size_t kMostShown = 10;

/// A chunk of a commit, as the check reads it.
struct NamedChunk {
  const SavedTable *table;
  SavedChunk chunk;
  size_t index; // in the table
  int64_t step; // of the last commit that names it
};

/// All chunks that commits name, each once, in the order of the files.
std::vector<NamedChunk> NamedChunks(const Manifest &manifest) {
  std::vector<NamedChunk> chunks;
  std::unordered_set<const ChunkTable *> seen;
  for (auto commit = manifest.commits.rbegin(); commit != manifest.commits.rend(); ++commit)
    for (const SavedTable &table : commit->tables)
      for (const auto &one : table.tables)
        for (size_t i = 0, size = seen.insert(one.get()).second ? one->chunks.size() : 0; i < size;
             ++i)
          chunks.push_back({&table, one->chunks[i], size_t(one->first + int64_t(i) * one->step),
                            commit->record.step});
  auto place = [](const NamedChunk &of) {
    return std::tie(of.chunk.extent.file, of.chunk.extent.offset);
  };
  std::sort(chunks.begin(), chunks.end(), [&](const NamedChunk &a, const NamedChunk &b) {
    return place(a) != place(b) ? place(a) < place(b) : a.step > b.step;
  });
  chunks.erase(
      std::unique(chunks.begin(), chunks.end(),
                  [&](const NamedChunk &a, const NamedChunk &b) { return place(a) == place(b); }),
      chunks.end());
  return chunks;
}

int64_t BytesOf(const SavedCommit &commit) {
  int64_t bytes = 0;
  for (const SavedTable &table : commit.tables)
    bytes += table.storage.entries * table.storage.chunks * table.storage.chunk_bytes;
  return bytes;
}

/// Of one layer or stage; the tables tell how often there are such.
int64_t ParameterElements(const Manifest &manifest) {
  std::unordered_map<std::string, int64_t> entries; // of weights, by their storage
  for (const SavedTable &table : manifest.commits.back().tables)
    if (table.storage.role == "weights")
      entries[table.storage.name] = table.storage.entries;
  int64_t elements = 0;
  for (const SavedParameter &parameter : manifest.commits.back().model->parameters) {
    auto found = entries.find(absl::StrCat("weights.", GroupOf(parameter)));
    elements += CountElements(parameter.shape) * (found == entries.end() ? 1 : found->second);
  }
  return elements;
}

/// The computation of the state, its tokenizer and its base.
std::string DescribeOrigin(const Manifest &manifest) {
  static const Computation unknown;
  const Computation &computation =
      manifest.commits.empty() ? unknown : manifest.commits.back().model->computation;
  std::string text = absl::StrFormat(
      "  manifest version %d, computation %s\n", kManifestVersion,
      computation.version == 0
          ? "unknown"
          : absl::StrFormat("%s (form %d)", PrintableName(computation.hash), computation.version));
  if (!manifest.tokenizer.empty())
    absl::StrAppendFormat(&text, "  tokenizer %s\n", PrintableName(manifest.tokenizer));
  if (manifest.base)
    absl::StrAppendFormat(&text, "  begun with the weights of step %d of state %s, then in %s\n",
                          manifest.base->step, PrintableName(manifest.base->state),
                          PrintableName(manifest.base->directory));
  return text;
}

/// The facts that a commit records of its run. `which`: the commit in words.
std::string DescribeRun(const CommitRecord &record, const char *which) {
  std::string text;
  if (!record.plan.empty())
    absl::StrAppendFormat(&text, "\n  plan of %s: %s\n", which, PrintableName(record.plan));
  if (const std::optional<ChosenPlan> chosen = PlanOf(record)) {
    absl::StrAppend(&text, "  chosen by the compiler\n");
    for (absl::string_view line : absl::StrSplit(chosen->block, '\n', absl::SkipEmpty()))
      absl::StrAppend(&text, "    ", PrintableName(std::string(line)), "\n");
  }
  if (!record.environment.empty())
    absl::StrAppend(&text, "\n  environment of ", which, "\n");
  for (const auto &[key, value] : record.environment)
    absl::StrAppendFormat(&text, "    %-24s %s\n", PrintableName(key), PrintableName(value));
  if (!record.samples.empty())
    absl::StrAppend(&text, "\n  sequences consumed\n");
  for (const auto &[source, count] : record.samples)
    absl::StrAppendFormat(&text, "    %d of %s\n", count, PrintableName(source));
  return text;
}

class Inspection {
public:
  /// `best`: the step of the best commit of several. `which`: the last commit, in words.
  Inspection(FileSystem &disk, std::string home, Manifest the_manifest, std::optional<int64_t> best,
             const char *which, std::FILE *out)
      : disk(disk), home(std::move(home)), manifest(std::move(the_manifest)), best(best),
        which(which), out(out), chunks(NamedChunks(manifest)) {
    for (const SavedPath &path : manifest.paths)
      directories.push_back(path.directory == manifest.home ? this->home : path.directory);
    named.resize(directories.size());
    for (const NamedChunk &chunk : chunks)
      named[size_t(chunk.chunk.extent.file)] += chunk.table->storage.chunk_bytes;
  }

  /// Keeps trainers out, so that nothing that was read changes.
  absl::Status Lock();
  void Describe() const;
  absl::Status Check();

private:
  /// Others may have come into the place of a path on which nothing stands.
  bool IsUsed(size_t path) const { return named[path] > 0 || directories[path] == home; }
  /// Whether another computation made it than the last commit.
  bool IsOfAnother(const SavedCommit &commit) const {
    const Computation &own = commit.model->computation,
                      &last = manifest.commits.back().model->computation;
    return own.version != last.version || own.text != last.text;
  }
  absl::Status CheckHead(size_t path) const;
  void ReadSome(size_t path, std::atomic<size_t> &next, size_t end);
  void Found(const NamedChunk &, const absl::Status &);

  FileSystem &disk;
  const std::string home;
  const Manifest manifest;
  const std::optional<int64_t> best;
  const char *const which;
  std::FILE *const out;
  const std::vector<NamedChunk> chunks;
  std::vector<std::string> directories; // by path
  std::vector<int64_t> named;           // bytes of commits, by path
  std::vector<std::unique_ptr<OpenFile>> locks;
  Mutex mutex;
  size_t damaged ABSL_GUARDED_BY(mutex) = 0;
};

void Inspection::Describe() const {
  std::string text =
      absl::StrFormat("state %s of %s, %s parameters\n\n", PrintableName(manifest.state),
                      PrintableName(manifest.model),
                      manifest.commits.empty() ? "no" : FormatCount(ParameterElements(manifest)));
  absl::StrAppend(&text, DescribeOrigin(manifest));
  if (manifest.commits.empty())
    absl::StrAppend(&text, "  no commit: its beginning was cut short\n");
  for (const SavedCommit &commit : manifest.commits) {
    absl::StrAppendFormat(&text, "  step %d, committed %s, %s%s", commit.record.step,
                          FormatDate(commit.record.time), FormatBytes(BytesOf(commit)),
                          IsOfAnother(commit) ? ", of another computation" : "");
    if (const std::optional<double> loss = commit.record.validation_loss)
      absl::StrAppendFormat(&text, ", validation loss %.4f%s", *loss,
                            commit.record.step == best ? ", the best" : "");
    absl::StrAppend(&text, "\n");
    for (const SavedTable &table : commit.tables)
      if (&commit == &manifest.commits.back())
        absl::StrAppendFormat(&text, "    %-24s %5d x %-4d chunks of %s\n",
                              PrintableName(table.storage.name), table.storage.entries,
                              table.storage.chunks, FormatBytes(table.storage.chunk_bytes));
    for (const SavedStorage &storage : commit.absent)
      absl::StrAppendFormat(&text, "    %-24s absent: reads as zero\n",
                            PrintableName(storage.name));
  }
  if (!manifest.commits.empty() && !manifest.commits.back().record.extra.empty()) {
    absl::StrAppend(&text, "\n  settings of ", which, "\n");
    for (const auto &[key, value] : manifest.commits.back().record.extra)
      if (key != kPlanBlock && key != kPlanGiven)
        absl::StrAppendFormat(&text, "    %-24s %s\n", PrintableName(key), PrintableName(value));
  }
  if (!manifest.commits.empty())
    absl::StrAppend(&text, DescribeRun(manifest.commits.back().record, which));
  absl::StrAppend(&text, "\n  paths\n");
  int64_t total = 0;
  size_t needed = 0;
  for (size_t path = 0; path < directories.size(); ++path) {
    int64_t size = -1;
    if (!IsUsed(path))
      continue;
    ++needed;
    if (auto file = disk.Open(directories[path] + "/data", {}); file.ok())
      size = (*file)->Size().value_or(-1);
    absl::Status head = CheckHead(path);
    total += std::max<int64_t>(size, 0);
    absl::StrAppendFormat(
        &text, "    %s: %s of commits in a file of %s%s\n", PrintableName(directories[path]),
        FormatBytes(named[path]), size < 0 ? "unknown size" : FormatBytes(size),
        head.ok() ? "" : absl::StrCat("; ", PrintableName(std::string(head.message()))));
  }
  absl::StrAppendFormat(
      &text, "\n  To move or copy it: with no trainer running, %s (%s), anywhere.\n  Give %s\n",
      needed == 1 ? "this directory" : "all of these directories", FormatBytes(total),
      needed == 1 ? "its new place with --state."
                  : "the new place of the first with --state, those of the others as "
                    "ssd paths of the machine.");
  std::fputs(text.c_str(), out);
}

/// Whether the path is there and is the one that the manifest means.
absl::Status Inspection::CheckHead(size_t path) const {
  std::string name = directories[path] + "/data";
  absl::StatusOr<std::unique_ptr<OpenFile>> file = disk.Open(name, {});
  if (!file.ok())
    return file.status();
  std::string block(kStateBlock, '\0');
  if (absl::Status status = (*file)->Read(0, block.data(), kStateBlock); !status.ok())
    return status;
  absl::StatusOr<DataHead> head = ParseHead(block, name);
  if (!head.ok())
    return head.status();
  if (head->state != manifest.state || head->path != manifest.paths[path].id)
    return absl::DataLossError(absl::StrCat(name, " belongs to another training"));
  return absl::OkStatus();
}

absl::Status Inspection::Lock() {
  for (size_t path = 0; path < directories.size(); ++path) {
    if (!IsUsed(path))
      continue;
    const std::string &directory = directories[path];
    absl::StatusOr<std::unique_ptr<OpenFile>> lock = disk.Lock(directory + "/lock");
    if (absl::IsUnavailable(lock.status()))
      return absl::UnavailableError(absl::StrCat(
          directory, " is in use by a trainer: its bytes can be checked when that has ended"));
    if (lock.ok()) // a directory that cannot be written can be read all the same
      locks.push_back(*std::move(lock));
  }
  return absl::OkStatus();
}

void Inspection::Found(const NamedChunk &named, const absl::Status &status) {
  MutexLock lock(mutex);
  if (damaged++ < kMostShown)
    std::fprintf(out, "  step %lld: %s\n", static_cast<long long>(named.step),
                 PrintableName(std::string(status.message())).c_str());
}

/// Reads chunks of a path, from the next to before `end`. Several threads do.
void Inspection::ReadSome(size_t path, std::atomic<size_t> &next, size_t end) {
  OpenMode mode;
  mode.direct = true;
  absl::StatusOr<std::unique_ptr<OpenFile>> file = disk.Open(directories[path] + "/data", mode);
  std::unique_ptr<char, decltype(&std::free)> data(nullptr, &std::free);
  int64_t room = 0;
  for (size_t i = next++; i < end; i = next++) {
    const NamedChunk &named = chunks[i];
    const SavedStorage &storage = named.table->storage;
    if (storage.chunk_bytes > room) {
      room = storage.chunk_bytes;
      data.reset(static_cast<char *>(std::aligned_alloc(size_t(kStateBlock), size_t(room))));
    }
    absl::Status status = !data ? absl::ResourceExhaustedError("no memory for a chunk")
                          : file.ok()
                              ? ReadSavedChunk(**file, *named.table, named.index, data.get())
                              : file.status();
    if (!status.ok())
      Found(named, status);
  }
}

absl::Status Inspection::Check() {
  std::fputs("\n", out);
  for (size_t path = 0; path < directories.size(); ++path)
    if (absl::Status status = CheckHead(path); !status.ok() && named[path] > 0)
      return status;
  // All paths at once: none waits for another.
  std::vector<std::atomic<size_t>> next(directories.size());
  std::vector<std::thread> readers;
  absl::Status status;
  size_t begin = 0;
  for (size_t path = 0; path < directories.size(); ++path) {
    size_t end = begin;
    while (end < chunks.size() && size_t(chunks[end].chunk.extent.file) == path)
      ++end;
    next[path] = begin;
    for (size_t i = 0; i < std::min(kReaders, end - begin) && status.ok(); ++i) {
      std::thread reader;
      status = StartThread("a reader", reader, [&, path, end] { ReadSome(path, next[path], end); });
      if (status.ok())
        readers.push_back(std::move(reader));
    }
    begin = end;
  }
  for (std::thread &reader : readers)
    reader.join();
  if (!status.ok())
    return status;
  int64_t bytes = 0;
  for (const NamedChunk &chunk : chunks)
    bytes += chunk.table->storage.chunk_bytes;
  MutexLock lock(mutex);
  if (damaged > 0)
    return absl::DataLossError(
        absl::StrFormat("%d of %d chunks in %s are not what was written: restore them from a copy, "
                        "or resume an earlier commit with --at",
                        damaged, chunks.size(), home));
  std::fprintf(out, "  all %zu chunks of the commits (%s) are as they were written\n",
               chunks.size(), FormatBytes(bytes).c_str());
  return absl::OkStatus();
}

/// The manifests with the commit of that step alone.
absl::Status ChooseCommit(const CommitName &named, Manifest &manifest) {
  Commits commits(1);
  std::swap(commits.manifest(), manifest);
  std::vector<std::string> notes; // which concern a trainer that goes on
  absl::StatusOr<const SavedCommit *> chosen = commits.GoTo(named.step, named.directory, notes);
  if (!chosen.ok())
    return chosen.status();
  SavedCommit commit = **chosen;
  manifest = std::move(commits.manifest());
  manifest.commits = {std::move(commit)};
  return absl::OkStatus();
}

/// Takes the commits with a fault out of the manifest, and returns the faults.
std::vector<absl::Status> TakeLost(Manifest &manifest) {
  std::vector<SavedCommit> whole;
  std::vector<absl::Status> lost;
  for (SavedCommit &commit : manifest.commits)
    if (commit.fault.ok())
      whole.push_back(std::move(commit));
    else
      lost.push_back(commit.fault);
  manifest.commits = std::move(whole);
  return lost;
}

/// One fault, or one for all. Then each of them is printed.
absl::Status TellLost(const std::string &home, const std::vector<absl::Status> &lost,
                      std::FILE *out) {
  if (lost.size() <= 1)
    return lost.empty() ? absl::OkStatus() : lost[0];
  for (const absl::Status &fault : lost)
    std::fprintf(out, "%s\n", PrintableName(std::string(fault.message())).c_str());
  return absl::DataLossError(
      absl::StrFormat("%d commits in %s are lost or cannot be read", lost.size(), home));
}

/// Whether a trainer has replaced the manifests since.
bool IsOld(FileSystem &disk, const std::string &home, const Manifest &manifest) {
  const absl::StatusOr<ReadManifests> now = ReadRoot(disk, home);
  return now.ok() && now->manifest.sequence != manifest.sequence;
}

} // namespace

absl::Status DescribeState(FileSystem &disk, const std::string &name, bool check, std::FILE *out) {
  absl::StatusOr<CommitName> named = FindCommit(disk, name);
  if (!named.ok())
    return named.status();
  const std::string &home = named->directory;
  constexpr int kTries = 100;
  for (int tries = 1;; ++tries) {
    absl::StatusOr<ReadManifests> read = ReadManifest(disk, home, /*tables=*/true);
    if (!read.ok())
      return read.status();
    std::vector<SavedCommit> &commits = read->manifest.commits;
    // A lost commit may be the best.
    const bool all_whole = std::all_of(commits.begin(), commits.end(),
                                       [](const auto &commit) { return commit.fault.ok(); });
    std::optional<int64_t> best;
    if (const SavedCommit *commit = BestCommit(read->manifest);
        commit && all_whole && commits.size() > 1)
      best = commit->record.step;
    if (named->step)
      if (absl::Status status = ChooseCommit(*named, read->manifest); !status.ok())
        return status;
    const std::vector<absl::Status> faults = TakeLost(read->manifest);
    const bool has_none = commits.empty() && !faults.empty();
    Inspection inspection(disk, home, read->manifest, best,
                          named->step ? "this one" : "the last one", out);
    const absl::Status locked = check ? inspection.Lock() : absl::OkStatus();
    if (check && locked.ok() && tries < kTries && IsOld(disk, home, read->manifest))
      continue;
    const absl::Status lost = TellLost(home, faults, out);
    if (has_none)
      return lost;
    inspection.Describe();
    if (!read->note.empty())
      std::fprintf(out, "  note: %s; the other one is whole\n", PrintableName(read->note).c_str());
    for (const std::string &note : read->commit_notes)
      std::fprintf(out, "  note: %s\n", PrintableName(note).c_str());
    if (!locked.ok())
      return locked;
    if (absl::Status status = check ? inspection.Check() : absl::OkStatus(); !status.ok())
      return status;
    return lost;
  }
}

} // namespace boa
