//===- layout.cpp - Where each chunk stands -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chunks are dealt to the ssd paths in proportion to their bandwidth. The deal
// says where a chunk is written; where it is read is what was written down. So a
// path that is added or taken away needs no copying: a step writes every chunk.
//
// A persistent chunk has at most one extent more than commits are kept. The chunks
// of an entry that one path holds take theirs together, one behind another, so
// that they move in large transfers. Chunks of other storages, whose home is an
// SSD, have one each, at the end of the file.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/dealer.h"
#include "runtime/state/impl.h"
#include "runtime/state/sealed.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace boa {
/// How many of the bytes each path takes, in parts.
std::vector<double> StripeWeights(const MachineSettings &machine, size_t paths) {
  bool reads = machine.ssd.size() >= paths, writes = reads;
  for (size_t path = 0; path < paths && path < machine.ssd.size(); ++path) {
    reads &= machine.ssd[path].read > 0;
    writes &= machine.ssd[path].write > 0;
  }
  std::vector<double> weights(paths, 1);
  for (size_t path = 0; path < paths && (reads || writes); ++path) {
    double time = 0; // to read and write one byte
    if (reads)
      time += 1 / double(machine.ssd[path].read);
    if (writes)
      time += 1 / double(machine.ssd[path].write);
    weights[path] = 1 / time;
  }
  return weights;
}

/// Whether a manifest can hold its storages.
absl::Status StateStore::Impl::CheckProgram(const Program &program) {
  std::vector<std::string> written = {program.model.name};
  for (const Storage &storage : program.storages)
    written.push_back(storage.name);
  for (const SavedParameter &parameter : ParametersOf(program))
    written.push_back(parameter.name);
  for (const std::string &name : written)
    if (name.size() > kMostText)
      return absl::InvalidArgumentError(
          absl::StrFormat("program descriptor: the name `%s...` has %d bytes: a state can hold %d",
                          name.substr(0, 40), name.size(), kMostText));
  std::set<std::string> names;
  for (const Storage &storage : program.storages) {
    if (!storage.persistent && !storage.LivesOn(Home::ssd))
      continue;
    if (!names.insert(storage.name).second)
      return absl::InvalidArgumentError(
          absl::StrFormat("program descriptor: two storages `%s`", storage.name));
    int64_t chunks = std::max(storage.chunks, 1);
    if (storage.entry_count() < 1 || storage.bytes < 1 || storage.bytes % (chunks * kStateBlock))
      return absl::InvalidArgumentError(
          absl::StrFormat("program descriptor: storage `%s` has %d entries of %d bytes in %d "
                          "chunks: expected whole "
                          "blocks of %d bytes",
                          storage.name, storage.entry_count(), storage.bytes, chunks, kStateBlock));
  }
  return absl::OkStatus();
}

void StateStore::Impl::LayOut(const Program &program) {
  std::vector<double> weights;
  for (const StatePath &path : paths)
    if (path.given)
      weights.push_back(path.weight);
  Dealer dealer(weights);
  for (const Storage &storage : program.storages) {
    Table &table = tables.emplace_back();
    table.storage = {storage.name, storage.role, storage.entry_count(), std::max(storage.chunks, 1),
                     storage.bytes / std::max(storage.chunks, 1)};
    table.persistent = storage.persistent;
    if (!storage.persistent && !storage.LivesOn(Home::ssd))
      continue;
    size_t count = size_t(table.storage.entries * table.storage.chunks);
    std::vector<bool> placed; // by chunk of an entry; what outlives the run has its place anyway
    for (int32_t chunk = 0; chunk < table.storage.chunks; ++chunk)
      placed.push_back(storage.persistent || storage.tier(chunk) == Home::ssd);
    dealer.NextStorage();
    for (size_t chunk = 0; chunk < count; ++chunk)
      table.path.push_back(
          placed[chunk % placed.size()] ? int32_t(dealer.Deal(table.storage.chunk_bytes)) : -1);
    table.current.resize(count);
    table.spare.resize(count);
    table.named.resize(count);
  }
}

/// Of each data file.
std::vector<int64_t> StateStore::Impl::BytesNeeded() const {
  std::vector<int64_t> bytes(paths.size(), kStateBlock);
  for (const Table &table : tables)
    for (int32_t path : table.path) {
      if (path < 0)
        continue;
      int64_t more = 0, &sum = bytes[size_t(path)];
      if (__builtin_mul_overflow(table.storage.chunk_bytes, ExtentsOfChunk(table.persistent, keep),
                                 &more) ||
          __builtin_add_overflow(sum, more, &sum))
        sum = kMostFileBytes;
    }
  return bytes;
}

/// What commits name is there, and no two chunks of a commit share a byte.
absl::Status StateStore::Impl::CheckPlaces() {
  struct Place {
    int64_t begin, end;
    size_t commit, index;
    const SavedTable *table;
  };
  std::vector<std::vector<Place>> places(paths.size());
  for (size_t i = 0; i < manifest.commits.size(); ++i)
    for (const SavedTable &table : manifest.commits[i].tables)
      for (size_t index = 0; index < table.chunks.size(); ++index) {
        const Extent &extent = table.chunks[index].extent;
        places[size_t(extent.file)].push_back(
            {extent.offset, extent.offset + table.storage.chunk_bytes, i, index, &table});
      }
  for (size_t i = 0; i < paths.size(); ++i) {
    StatePath &path = paths[i];
    std::sort(places[i].begin(), places[i].end(), [](const Place &a, const Place &b) {
      return std::tie(a.begin, a.end, a.commit) < std::tie(b.begin, b.end, b.commit);
    });
    Place last = {0, kStateBlock, 0, 0, nullptr};
    for (const Place &place : places[i]) {
      if (place.end > path.bytes)
        return absl::DataLossError(absl::StrFormat(
            "%s is truncated: it has %d bytes, and a chunk of the commit of step %d "
            "ends at %d; restore the state from a copy",
            path.DataPath(), path.bytes, manifest.commits[place.commit].record.step, place.end));
      // A chunk that was not written between two commits is of both.
      const bool shared = place.begin == last.begin && place.end == last.end &&
                          place.commit != last.commit && place.index == last.index &&
                          place.table->storage.name == last.table->storage.name;
      if (place.begin < last.end && !shared)
        return absl::DataLossError(
            absl::StrFormat("two chunks stand in one place, at offset %d of %s: restore the state "
                            "from a copy",
                            place.begin, path.DataPath()));
      if (!shared)
        path.taken.push_back({place.begin, place.end});
      last = place;
    }
  }
  return absl::OkStatus();
}

/// What no commit names is free; of it, scratch takes its part at once.
absl::Status StateStore::Impl::FillPools() {
  for (StatePath &path : paths) {
    int64_t free = kStateBlock;
    for (auto [begin, end] : path.taken) {
      path.pool.Give(free, begin - free);
      free = end;
    }
    path.pool.Give(free, path.bytes - free);
    path.taken = {};
  }
  for (Table &table : tables)
    for (size_t i = 0; !table.persistent && i < table.path.size(); ++i)
      if (table.path[i] >= 0 && table.current[i].file < 0) {
        if (table.spare[i].file < 0)
          if (absl::Status status =
                  TakeRun(table, int64_t(i) / table.storage.chunks, table.path[i]);
              !status.ok())
            return status;
        std::swap(table.current[i], table.spare[i]);
      }
  return absl::OkStatus();
}

/// A place for one chunk, where the file has to grow if need be.
absl::StatusOr<int64_t> StateStore::Impl::TakeOne(StatePath &path, int64_t bytes) {
  if (std::optional<int64_t> place = path.pool.Take(bytes))
    return *place;
  if (absl::Status status = path.data->Reserve(path.bytes + bytes); !status.ok())
    return status;
  path.pool.Give(path.bytes, bytes);
  path.bytes += bytes;
  return *path.pool.Take(bytes);
}

/// Spare extents for all chunks of an entry that are dealt to the path and have
/// none: in one piece if there is one.
absl::Status StateStore::Impl::TakeRun(Table &table, int64_t entry, int32_t index) {
  StatePath &path = paths[size_t(index)];
  int64_t bytes = table.storage.chunk_bytes;
  std::vector<size_t> chunks;
  for (size_t i = table.Index(entry, 0); i < table.Index(entry + 1, 0); ++i)
    if (table.path[i] == index && table.spare[i].file < 0 &&
        (table.current[i].file < 0 || table.named[i]))
      chunks.push_back(i);
  int64_t all = int64_t(chunks.size()) * bytes;
  std::optional<int64_t> run = table.persistent ? path.pool.Take(all) : path.pool.TakeLast(all);
  for (size_t i : chunks) {
    if (run) {
      table.spare[i] = {index, *run};
      *run += bytes;
      continue;
    }
    absl::StatusOr<int64_t> place = TakeOne(path, bytes);
    if (!place.ok())
      return place.status();
    table.spare[i] = {index, *place};
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Shadow paging
//===----------------------------------------------------------------------===//

Extent StateStore::Current(int32_t storage, int64_t entry, int32_t chunk) const {
  const Table &table = impl->tables[size_t(storage)];
  return table.current[table.Index(entry, chunk)];
}

Extent StateStore::Next(int32_t storage, int64_t entry, int32_t chunk) {
  Table &table = impl->tables[size_t(storage)];
  size_t i = table.Index(entry, chunk);
  if (!impl->failed.ok())
    return {};
  if (table.current[i].file >= 0 && !table.named[i])
    return table.current[i];
  if (table.spare[i].file < 0)
    if (absl::Status status = impl->TakeRun(table, entry, table.path[i]); !status.ok()) {
      impl->failed = status;
      return {};
    }
  table.current[i] = std::exchange(table.spare[i], {});
  table.named[i] = 0;
  return table.current[i];
}

absl::Status StateStore::status() const { return impl->failed; }

void StateStore::SetChecksum(const Extent &extent, uint64_t checksum) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  impl->checksums[extent] = checksum;
}

std::optional<uint64_t> StateStore::Checksum(const Extent &extent) const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  auto found = impl->checksums.find(extent);
  if (found == impl->checksums.end())
    return std::nullopt;
  return found->second;
}

} // namespace boa
