//===- layout.cpp - Where each chunk stands -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chunks are dealt to the ssd paths in proportion to their bandwidth; the deal
// depends only on the program and on the weights that the manifest keeps. A data
// file is two halves: extent 0 of its chunks, then extent 1. A persistent chunk
// has both extents wherever it lives during a run; any other has one, in the
// scratch file, if its home is ssd.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/impl.h"

#include <algorithm>

namespace boa {

/// Deals chunks to the paths, so that each storage by itself is in proportion,
/// and all of them together where one is too small for that.
class Dealer {
public:
  explicit Dealer(std::vector<double> the_weights)
      : weights(std::move(the_weights)), total(weights.size()), storage(weights.size()) {}
  void NextStorage() { storage.assign(weights.size(), 0); }
  size_t Deal(int64_t bytes) {
    size_t best = 0;
    for (size_t path = 1; path < weights.size(); ++path)
      if (Load(path, bytes) < Load(best, bytes))
        best = path;
    storage[best] += double(bytes);
    total[best] += double(bytes);
    return best;
  }

private:
  std::pair<double, double> Load(size_t path, int64_t bytes) const {
    return {(storage[path] + double(bytes)) / weights[path],
            (total[path] + double(bytes)) / weights[path]};
  }
  std::vector<double> weights, total, storage;
};

std::vector<double> StripeWeights(const Machine &machine, size_t paths) {
  bool reads = machine.ssd.size() >= paths, writes = reads;
  for (size_t path = 0; path < paths && path < machine.ssd.size(); ++path) {
    reads &= machine.ssd[path].read > 0;
    writes &= machine.ssd[path].write > 0;
  }
  std::vector<double> weights(paths, 1);
  if (!reads && !writes)
    return weights;
  for (size_t path = 0; path < paths; ++path) {
    double time = 0; // to read and write one byte
    if (reads)
      time += 1 / double(machine.ssd[path].read);
    if (writes)
      time += 1 / double(machine.ssd[path].write);
    weights[path] = 1 / time;
  }
  return weights;
}

void StateStore::Impl::PlaceChunks(const Storage &storage, StorageLayout &layout, Dealer &dealer) {
  dealer.NextStorage();
  int64_t count = layout.entries * layout.chunks;
  for (int64_t chunk = 0; chunk < count; ++chunk) {
    size_t path = dealer.Deal(layout.chunk_bytes);
    int32_t file = storage.persistent ? DataFile(path) : ScratchFile(path);
    int64_t &end = storage.persistent ? half_bytes[path] : file_bytes[file];
    layout.extents.push_back({file, end});
    end += layout.chunk_bytes;
  }
  layout.current.assign(size_t(count), 0);
  layout.committed.assign(size_t(count), 0);
}

void StateStore::Impl::LayOut(const Program &program) {
  half_bytes.assign(directories.size(), 0);
  file_bytes.assign(directories.size() * 2, 0);
  Dealer dealer(weights);
  for (const Storage &storage : program.storages) {
    StorageLayout layout;
    layout.name = storage.name;
    layout.persistent = storage.persistent;
    layout.chunks = std::max(storage.chunks, 1);
    layout.entries = storage.entry_count();
    layout.chunk_bytes = storage.bytes / layout.chunks;
    if (storage.persistent || storage.tier == "ssd")
      PlaceChunks(storage, layout, dealer);
    storages.push_back(std::move(layout));
  }
  for (size_t path = 0; path < directories.size(); ++path)
    file_bytes[DataFile(path)] = 2 * half_bytes[path];
  NameFiles();
  for (size_t path = 0; path < directories.size(); ++path) {
    bool known = path < program.machine.ssd.size();
    links.push_back(known ? IoLink{program.machine.ssd[path].read, program.machine.ssd[path].write}
                          : IoLink{});
  }
}

//===----------------------------------------------------------------------===//
// Shadow paging
//===----------------------------------------------------------------------===//

Extent StateStore::Current(int32_t storage, int64_t entry, int32_t chunk) const {
  const StorageLayout &layout = impl->storages[storage];
  size_t index = layout.Index(entry, chunk);
  Extent extent = layout.extents[index];
  if (layout.current[index])
    extent.offset += impl->half_bytes[impl->files[extent.file].link];
  return extent;
}

Extent StateStore::Next(int32_t storage, int64_t entry, int32_t chunk) {
  StorageLayout &layout = impl->storages[storage];
  size_t index = layout.Index(entry, chunk);
  if (layout.persistent) {
    layout.current[index] = !layout.committed[index];
  }
  return Current(storage, entry, chunk);
}

void StateStore::SetChecksum(const Extent &extent, uint64_t checksum) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  impl->checksums[{extent.file, extent.offset}] = checksum;
}

std::optional<uint64_t> StateStore::Checksum(const Extent &extent) const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  auto found = impl->checksums.find({extent.file, extent.offset});
  if (found == impl->checksums.end())
    return std::nullopt;
  return found->second;
}

} // namespace boa
