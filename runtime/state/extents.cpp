//===- extents.cpp - Where each chunk stands ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/extents.h"

#include "runtime/state/dealer.h"

#include "absl/strings/str_format.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace boa {

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

Extents::Extents(const Program &program, size_t files, Grow grow)
    : grow(std::move(grow)), given(files) {
  Dealer dealer(StripeWeights(program.machine, files));
  const std::vector<bool> states = StatesOfOptimizer(program);
  for (const Storage &storage : program.storages) {
    Table &table = tables.emplace_back();
    table.zero_at_first = states[tables.size() - 1];
    table.storage = SavedStorageOf(storage);
    table.persistent = storage.persistent;
    table.shared = IsShared(storage);
    if (!storage.persistent && !storage.LivesOn(Home::ssd))
      continue;
    size_t count = size_t(table.storage.entries * table.storage.chunks);
    dealer.NextStorage();
    for (int64_t entry = 0; entry < table.storage.entries; ++entry)
      for (int32_t chunk = 0; chunk < table.storage.chunks; ++chunk)
        table.file.push_back(
            storage.HasExtent(entry, chunk) ? int32_t(dealer.Deal(table.storage.chunk_bytes)) : -1);
    table.current.resize(count);
    table.spare.resize(count);
    table.named.resize(count);
  }
  spaces.resize(files);
}

std::vector<int64_t> Extents::BytesNeeded(int64_t keep, const std::vector<bool> &stands) const {
  // With the new commits alone, and when those that were claimed begin to go.
  std::vector<int64_t> bytes, first;
  for (const Space &space : spaces) {
    bytes.push_back(std::max(kStateBlock + space.frozen, space.held));
    first.push_back(std::max(kStateBlock + space.claimed, space.held));
  }
  auto add = [](int64_t &sum, int64_t chunk_bytes, int64_t extents) {
    int64_t more = 0;
    if (__builtin_mul_overflow(chunk_bytes, extents, &more) ||
        __builtin_add_overflow(sum, more, &sum))
      sum = kMostFileBytes;
  };
  for (size_t s = 0; s < tables.size(); ++s) {
    const Table &table = tables[s];
    // Frozen weights stay on the paths where they are.
    if (table.persistent && table.shared && !stands.empty() && stands[s])
      continue;
    for (int32_t file : table.file) {
      if (file < 0)
        continue;
      add(bytes[size_t(file)], table.storage.chunk_bytes, ExtentsOfChunk(table.shared, keep));
      add(first[size_t(file)], table.storage.chunk_bytes,
          ExtentsOfChunk(table.shared, std::max<int64_t>(keep - claimed_commits, 0)));
    }
  }
  bytes.resize(given);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::max(bytes[i], first[i]);
  return bytes;
}

absl::Status Extents::Claim(const std::vector<SavedCommit> &commits,
                            const std::vector<File> &files) {
  struct Place {
    int64_t begin, end;
    size_t commit;
    int64_t index;
    const ChunkTable *table;
    bool frozen;
  };
  std::vector<std::vector<Place>> places(files.size());
  std::unordered_set<const ChunkTable *> seen;
  for (size_t i = 0; i < commits.size(); ++i)
    for (const SavedTable &saved : commits[i].tables) {
      const bool frozen = IsFrozenStorage(saved.storage.name);
      for (const auto &table : saved.tables) {
        if (!seen.insert(table.get()).second)
          continue; // of an earlier commit, too
        for (size_t at = 0; at < table->chunks.size(); ++at) {
          const Extent &extent = table->chunks[at].extent;
          places[size_t(extent.file)].push_back({extent.offset, extent.offset + table->chunk_bytes,
                                                 i, table->first + int64_t(at) * table->step,
                                                 table.get(), frozen});
        }
      }
    }
  spaces.resize(files.size());
  claimed_commits = int64_t(commits.size());
  const bool knows_all = std::all_of(commits.begin(), commits.end(),
                                     [](const SavedCommit &commit) { return commit.fault.ok(); });
  for (size_t i = 0; i < files.size(); ++i) {
    std::sort(places[i].begin(), places[i].end(), [](const Place &a, const Place &b) {
      return std::tie(a.begin, a.end, a.commit) < std::tie(b.begin, b.end, b.commit);
    });
    Place last = {0, kStateBlock, 0, 0, nullptr, false};
    for (const Place &place : places[i]) {
      if (place.end > files[i].bytes)
        return absl::DataLossError(absl::StrFormat(
            "%s is truncated: it has %d bytes, and a chunk of the commit of step %d "
            "ends at %d; restore the state from a copy",
            files[i].path, files[i].bytes, commits[place.commit].record.step, place.end));
      // A chunk that was not written between two commits may stand in a table of each.
      const bool shared = place.begin == last.begin && place.end == last.end &&
                          place.table != last.table && place.index == last.index &&
                          place.table->storage == last.table->storage;
      if (place.begin < last.end && !shared)
        return absl::DataLossError(absl::StrFormat(
            "two chunks have one place, at offset %d of %s: restore the state from a copy",
            place.begin, files[i].path));
      if (!shared) {
        spaces[i].claimed += place.end - place.begin;
        spaces[i].frozen += place.frozen ? place.end - place.begin : 0;
      }
      if (knows_all)
        spaces[i].free.Give(last.end, place.begin - last.end); // nothing if it is shared
      last = place;
    }
    spaces[i].bytes = last.end;
    if (!knows_all)
      spaces[i].bytes = spaces[i].held =
          std::max(last.end, files[i].bytes / kStateBlock * kStateBlock);
  }
  return absl::OkStatus();
}

void Extents::MarkNamed(Table &table, const SavedTable *saved) {
  table.named.assign(table.named.size(), 1);
  table.committed.clear();
  if (saved)
    table.committed = saved->tables;
}

void Extents::Adopt(const SavedCommit &commit, const std::vector<bool> &stands) {
  MutexLock lock(mutex);
  for (const SavedTable &saved : commit.tables)
    for (const auto &table : saved.tables)
      for (const SavedChunk &chunk : table->chunks)
        checksums[chunk.extent] = chunk.checksum;
  for (size_t s = 0; s < tables.size(); ++s) {
    if (!stands[s])
      continue;
    Table &table = tables[s];
    const SavedTable &saved = *FindTable(commit, table.storage.name);
    for (const auto &one : saved.tables)
      for (size_t i = 0; i < one->chunks.size(); ++i)
        table.current[size_t(one->first + int64_t(i) * one->step)] = one->chunks[i].extent;
    MarkNamed(table, &saved);
  }
}

absl::Status Extents::Begin(const std::vector<int64_t> &bytes) {
  for (size_t i = 0; i < spaces.size(); ++i) {
    spaces[i].free.Give(spaces[i].bytes, bytes[i] - spaces[i].bytes);
    spaces[i].bytes = bytes[i];
  }
  for (size_t storage = 0; storage < tables.size(); ++storage) {
    const Table &table = tables[storage];
    for (size_t i = 0; !table.persistent && i < table.file.size(); ++i)
      if (table.file[i] >= 0)
        if (auto next = Next(int32_t(storage), int64_t(i) / table.storage.chunks,
                             int32_t(int64_t(i) % table.storage.chunks));
            !next.ok())
          return next.status();
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Shadow paging
//===----------------------------------------------------------------------===//

Extent Extents::Current(int32_t storage, int64_t entry, int32_t chunk) const {
  const Table &table = tables[size_t(storage)];
  return table.current[table.Index(entry, chunk)];
}

absl::StatusOr<Extent> Extents::Next(int32_t storage, int64_t entry, int32_t chunk) {
  Table &table = tables[size_t(storage)];
  size_t i = table.Index(entry, chunk);
  if (table.current[i].file >= 0 && !table.named[i])
    return table.current[i];
  if (table.spare[i] == 0)
    if (absl::Status status = TakeRun(table, entry, table.file[i]); !status.ok())
      return status;
  table.current[i] = {table.file[i], std::exchange(table.spare[i], 0)};
  table.named[i] = 0;
  return table.current[i];
}

/// Spare extents for all chunks of an entry that are dealt to the file and have none. They are
/// one range if there is such a range.
absl::Status Extents::TakeRun(Table &table, int64_t entry, int32_t file) {
  Pool &free = spaces[size_t(file)].free;
  int64_t bytes = table.storage.chunk_bytes;
  std::vector<size_t> chunks;
  for (size_t i = table.Index(entry, 0); i < table.Index(entry + 1, 0); ++i)
    if (table.file[i] == file && table.spare[i] == 0 &&
        (table.current[i].file < 0 || table.named[i]))
      chunks.push_back(i);
  int64_t all = int64_t(chunks.size()) * bytes;
  std::optional<int64_t> run = table.persistent ? free.Take(all) : free.TakeLast(all);
  for (size_t i : chunks) {
    if (run) {
      table.spare[i] = *run;
      *run += bytes;
      continue;
    }
    absl::StatusOr<int64_t> offset = TakeOne(file, bytes);
    if (!offset.ok())
      return offset.status();
    table.spare[i] = *offset;
  }
  return absl::OkStatus();
}

/// An extent for one chunk. The file grows if no free range is large enough.
absl::StatusOr<int64_t> Extents::TakeOne(int32_t file, int64_t bytes) {
  Space &space = spaces[size_t(file)];
  if (std::optional<int64_t> offset = space.free.Take(bytes))
    return *offset;
  if (absl::Status status = GrowFile(file, space.bytes + bytes); !status.ok())
    return status;
  return *space.free.Take(bytes);
}

absl::Status Extents::GrowFile(int32_t file, int64_t bytes) {
  Space &space = spaces[size_t(file)];
  if (absl::Status status = grow(file, bytes); !status.ok())
    return status;
  space.free.Give(space.bytes, bytes - space.bytes);
  space.bytes = bytes;
  return absl::OkStatus();
}

absl::Status Extents::GrowFiles(const std::vector<int64_t> &bytes) {
  for (size_t i = 0; i < spaces.size(); ++i)
    if (bytes[i] > spaces[i].bytes)
      if (absl::Status status = GrowFile(int32_t(i), bytes[i]); !status.ok())
        return status;
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Checksums
//===----------------------------------------------------------------------===//

void Extents::SetChecksum(const Extent &extent, uint64_t checksum) {
  MutexLock lock(mutex);
  checksums[extent] = checksum;
}

std::optional<uint64_t> Extents::Checksum(const Extent &extent) const {
  MutexLock lock(mutex);
  auto found = checksums.find(extent);
  if (found == checksums.end())
    return std::nullopt;
  return found->second;
}

//===----------------------------------------------------------------------===//
// Committing
//===----------------------------------------------------------------------===//

absl::StatusOr<SavedCommit> Extents::Contents() const {
  MutexLock lock(mutex);
  SavedCommit saved;
  for (const Table &table : tables) {
    if (!table.persistent)
      continue;
    if (table.zero_at_first && std::all_of(table.current.begin(), table.current.end(),
                                           [](const Extent &of) { return of.file < 0; })) {
      saved.absent.push_back(table.storage);
      continue;
    }
    SavedTable &to = saved.tables.emplace_back();
    to.storage = table.storage;
    if (absl::Status status = AddTables(table, to); !status.ok())
      return status;
  }
  return saved;
}

absl::Status Extents::AddTables(const Table &table, SavedTable &to) const {
  std::vector<uint8_t> is_there(table.current.size());
  size_t left = table.current.size();
  for (const auto &one : table.committed) {
    bool same = true;
    for (size_t i = 0; i < one->chunks.size() && same; ++i)
      same = table.named[size_t(one->first + int64_t(i) * one->step)];
    if (!same)
      continue;
    for (size_t i = 0; i < one->chunks.size(); ++i)
      is_there[size_t(one->first + int64_t(i) * one->step)] = 1;
    left -= one->chunks.size();
    to.tables.push_back(one);
  }
  std::shared_ptr<ChunkTable> fresh;
  for (size_t i = 0; i < table.current.size() && left > 0; ++i) {
    if (is_there[i] || int64_t(i) % kMostTableChunks == 0)
      fresh = nullptr;
    if (is_there[i])
      continue;
    auto sum = checksums.find(table.current[i]);
    if (sum == checksums.end())
      return absl::InternalError(
          absl::StrFormat("cannot commit: entry %d chunk %d of %s was never written",
                          int64_t(i) / table.storage.chunks, int64_t(i) % table.storage.chunks,
                          table.storage.name));
    if (!fresh) {
      fresh = to.tables.emplace_back(std::make_shared<ChunkTable>());
      fresh->storage = table.storage.name;
      fresh->chunk_bytes = table.storage.chunk_bytes;
      fresh->first = int64_t(i);
    }
    fresh->chunks.push_back({table.current[i], sum->second});
    --left;
  }
  return absl::OkStatus();
}

/// Several commits name an extent only for one chunk that was not written between them (Claim).
/// So chunks of one index are compared.
void Extents::Committed(const std::vector<SavedCommit> &kept,
                        const std::vector<SavedCommit> &dropped) {
  for (Table &table : tables)
    if (table.persistent)
      MarkNamed(table, FindTable(kept.back(), table.storage.name));
  if (dropped.empty())
    return;
  std::unordered_set<const ChunkTable *> seen;                 // each once
  std::map<std::string, std::vector<const ChunkTable *>> stay; // by storage
  for (const SavedCommit &commit : kept)
    for (const SavedTable &table : commit.tables)
      for (const auto &one : table.tables)
        if (seen.insert(one.get()).second)
          stay[one->storage].push_back(one.get());
  std::vector<std::pair<Extent, int64_t>> gone; // with its bytes
  for (const SavedCommit &commit : dropped)
    for (const SavedTable &table : commit.tables)
      for (const auto &one : table.tables) {
        if (!seen.insert(one.get()).second)
          continue;
        // Each commit has one or two tables of these chunks.
        std::vector<const ChunkTable *> others;
        for (const ChunkTable *other : stay[one->storage])
          if (other->first <= one->Last() && one->first <= other->Last())
            others.push_back(other);
        for (size_t i = 0; i < one->chunks.size(); ++i) {
          const int64_t index = one->first + int64_t(i) * one->step;
          if (std::none_of(others.begin(), others.end(), [&](const ChunkTable *other) {
                const SavedChunk *chunk = other->Find(index);
                return chunk && chunk->extent == one->chunks[i].extent;
              }))
            gone.push_back({one->chunks[i].extent, one->chunk_bytes});
        }
      }
  // Each once, even if several tables named it.
  std::sort(gone.begin(), gone.end(), [](const auto &a, const auto &b) {
    return std::tie(a.first.file, a.first.offset) < std::tie(b.first.file, b.first.offset);
  });
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  MutexLock lock(mutex);
  for (const auto &[extent, bytes] : gone) {
    checksums.erase(extent);
    if (extent.offset >= spaces[size_t(extent.file)].held)
      spaces[size_t(extent.file)].free.Give(extent.offset, bytes);
  }
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

std::vector<int64_t> Extents::Bytes() const {
  std::vector<int64_t> bytes;
  for (const Space &space : spaces)
    bytes.push_back(space.bytes);
  return bytes;
}

} // namespace boa
