//===- saved_values.cpp - Elements of a commit, by parameter --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/saved_values.h"

#include "runtime/kernels/master.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

namespace boa {

const SavedParameter *SavedValues::Find(const Group &group, const Parameter &parameter) const {
  const std::string name = absl::StrCat(group.name, ".", parameter.name);
  auto found = std::find_if(parameters.begin(), parameters.end(), [&](const SavedParameter &other) {
    return UserName(other.name) == name;
  });
  return found == parameters.end() ? nullptr : &*found;
}

absl::StatusOr<const char *> SavedValues::Hold(const SavedTable &table, size_t index,
                                               int64_t lane) {
  Held &of = held[{table.storage.role, lane}];
  if (of.table == &table && of.index == index)
    return of.data.get();
  if (of.table != &table)
    of.data.reset(static_cast<char *>(
        std::aligned_alloc(size_t(kStateBlock), size_t(table.storage.chunk_bytes))));
  if (!of.data)
    return absl::ResourceExhaustedError("no memory for a chunk");
  of.table = nullptr;
  if (absl::Status status = read(table, index, of.data.get()); !status.ok())
    return status;
  of.index = index;
  of.table = &table;
  return of.data.get();
}

/// From the part of the program's to the whole parameter, to the part of the commit's.
template <typename Take>
absl::Status SavedValues::ForEachRun(const Parts &parts, const SavedParameter &saved,
                                     const SavedTable &table, int64_t chunk_elements, int64_t entry,
                                     int64_t first, int64_t count, Take take) const {
  auto of_entry = [&](int64_t from, int64_t begin, int64_t elements) {
    begin += saved.offset;
    for (int64_t at = begin, end = begin + elements, next; at < end; at = next) {
      const int64_t chunk = at / chunk_elements;
      next = std::min(end, (chunk + 1) * chunk_elements);
      // Columns of parts alternate.
      const int64_t lane = saved.split > 0 ? from : 0;
      if (absl::Status status = take(lane, size_t(from * table.storage.chunks + chunk),
                                     at % chunk_elements, next - at);
          !status.ok())
        return status;
    }
    return absl::OkStatus();
  };
  const Parts stored = PartsOf(commit, saved);
  return parts.ForEachOfPart(entry, first, count,
                             [&](int64_t whole, int64_t begin, int64_t elements) {
                               return stored.ForEachOfWhole(whole, begin, elements, of_entry);
                             });
}

absl::Status SavedValues::ReadMaster(const Group &group, int64_t entry, const Parameter &parameter,
                                     int64_t first, int64_t count, float *values) {
  const SavedParameter &saved = *Find(group, parameter);
  const std::string of = GroupOf(saved);
  const SavedTable &table = *FindTable(commit, absl::StrCat("weights.", of));
  const SavedTable *halves = FindTable(commit, absl::StrCat("low.", of)); // none if it is frozen
  auto take = [&](int64_t lane, size_t index, int64_t begin, int64_t elements) {
    absl::StatusOr<const char *> high = Hold(table, index, lane);
    if (!high.ok())
      return high.status();
    if (!narrow) {
      std::memcpy(values, *high + begin * 4, size_t(elements) * 4);
      values += elements;
      return absl::OkStatus();
    }
    absl::StatusOr<const char *> low = static_cast<const char *>(nullptr);
    if (halves)
      low = Hold(*halves, index, lane);
    if (!low.ok())
      return low.status();
    const auto *upper = reinterpret_cast<const uint16_t *>(*high) + begin;
    const auto *lower = *low ? reinterpret_cast<const int16_t *>(*low) + begin : nullptr;
    for (int64_t i = 0; i < elements; ++i, ++values) {
      const uint32_t bits = JoinMaster(upper[i], lower ? lower[i] : int16_t{0});
      std::memcpy(values, &bits, 4);
    }
    return absl::OkStatus();
  };
  return ForEachRun(Parts(group, parameter), saved, table,
                    table.storage.chunk_bytes / (narrow ? 2 : 4), entry, first, count, take);
}

bool SavedValues::HasState(const std::string &role, const Group &group,
                           const Parameter &parameter) const {
  const SavedParameter *saved = Find(group, parameter);
  return saved && FindTable(commit, absl::StrCat(role, ".", GroupOf(*saved)));
}

absl::Status SavedValues::ReadState(const std::string &role, int64_t size, const Group &group,
                                    int64_t entry, const Parameter &parameter, int64_t first,
                                    int64_t count, char *bytes) {
  const SavedParameter &saved = *Find(group, parameter);
  const SavedTable &table = *FindTable(commit, absl::StrCat(role, ".", GroupOf(saved)));
  auto take = [&](int64_t lane, size_t index, int64_t begin, int64_t elements) {
    absl::StatusOr<const char *> from = Hold(table, index, lane);
    if (!from.ok())
      return from.status();
    std::memcpy(bytes, *from + begin * size, size_t(elements * size));
    bytes += elements * size;
    return absl::OkStatus();
  };
  return ForEachRun(Parts(group, parameter), saved, table, table.storage.chunk_bytes / size, entry,
                    first, count, take);
}

} // namespace boa
