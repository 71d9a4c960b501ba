//===- simulated_inode.cpp - What a simulated disk holds, and loses -------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/simulation/simulated_impl.h"

#include <algorithm>
#include <cstring>

namespace boa::simulated {

uint64_t Random::Next() {
  uint64_t value = state += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

//===----------------------------------------------------------------------===//
// Contents
//===----------------------------------------------------------------------===//

/// Calls `part(page, offset in it, offset in the range, bytes)` for a range.
template <typename Part> static void ForEachPage(int64_t offset, int64_t bytes, Part part) {
  for (int64_t done = 0; done < bytes;) {
    const int64_t page = (offset + done) / kPageBytes, within = (offset + done) % kPageBytes;
    const int64_t count = std::min(bytes - done, kPageBytes - within);
    part(page, within, done, count);
    done += count;
  }
}

void Contents::Read(int64_t offset, int64_t bytes, char *data) const {
  ForEachPage(offset, bytes, [&](int64_t page, int64_t within, int64_t at, int64_t count) {
    auto found = pages.find(page);
    if (found == pages.end())
      std::memset(data + at, 0, size_t(count));
    else
      std::memcpy(data + at, found->second->data() + within, size_t(count));
  });
}

Contents::Page &Contents::Own(int64_t page) {
  std::shared_ptr<Page> &ref = pages[page];
  if (!ref)
    ref = std::make_shared<Page>(Page{});
  else if (ref.use_count() > 1)
    ref = std::make_shared<Page>(*ref);
  return *ref;
}

void Contents::Write(int64_t offset, absl::string_view data) {
  ForEachPage(offset, int64_t(data.size()),
              [&](int64_t page, int64_t within, int64_t at, int64_t count) {
                std::memcpy(Own(page).data() + within, data.data() + at, size_t(count));
              });
}

void Contents::CopyPage(const Contents &from, int64_t page) {
  auto found = from.pages.find(page);
  if (found == from.pages.end())
    pages.erase(page);
  else
    pages[page] = found->second;
}

void Contents::Flip(int64_t offset, uint8_t mask) {
  Own(offset / kPageBytes)[offset % kPageBytes] ^= char(mask);
}

void Contents::Trim(int64_t size) {
  pages.erase(pages.lower_bound((size + kPageBytes - 1) / kPageBytes), pages.end());
  if (size % kPageBytes != 0 && Has(size / kPageBytes)) {
    Page &last = Own(size / kPageBytes);
    std::fill(last.begin() + size % kPageBytes, last.end(), '\0');
  }
}

int64_t Contents::PagesFrom(int64_t page) const {
  return int64_t(std::distance(pages.lower_bound(page), pages.end()));
}

//===----------------------------------------------------------------------===//
// Inode
//===----------------------------------------------------------------------===//

int64_t Inode::AllocatedPages() const {
  const int64_t whole = (reserved + kPageBytes - 1) / kPageBytes;
  return whole + now.PagesFrom(whole);
}

void Inode::Write(int64_t offset, absl::string_view data) {
  const int64_t bytes = int64_t(data.size()), end = offset + bytes;
  now.Write(offset, data);
  unsynced.push_back({offset, std::string(data)});
  Grow(end);
  // A page that is written whole holds what was written.
  ForEachPage(offset, bytes, [&](int64_t page, int64_t within, int64_t, int64_t count) {
    if (within == 0 && (count == kPageBytes || offset + bytes >= size))
      damaged.erase(page);
  });
}

void Inode::Grow(int64_t bytes) {
  if (bytes <= size)
    return;
  size = bytes;
  unsynced.push_back({0, "", size});
}

void Inode::Sync() {
  for (const Unsynced &change : unsynced)
    ForEachPage(change.offset, int64_t(change.data.size()),
                [&](int64_t page, int64_t, int64_t, int64_t) {
                  durable.CopyPage(now, page);
                  if (damaged.count(page) == 0)
                    durable_damaged.erase(page);
                });
  durable_size = size;
  durable_damaged.insert(damaged.begin(), damaged.end());
  unsynced.clear();
}

std::vector<std::pair<int64_t, int64_t>> TornSectors(int64_t offset, int64_t bytes,
                                                     Random &random) {
  const int64_t sector = random.Chance(0.5) ? kSectorBytes : kPageBytes;
  // One end of it as often as any of its sectors.
  const int64_t cut = random.Chance(0.5) ? offset + random.Below(bytes + 1) : -1;
  const bool head = random.Chance(0.5);
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int64_t begin = offset; begin < offset + bytes;) {
    const int64_t end = std::min(offset + bytes, (begin / sector + 1) * sector);
    if (cut < 0 ? random.Chance(0.5) : (end <= cut) == head)
      parts.emplace_back(begin, end - begin);
    begin = end;
  }
  return parts;
}

/// Makes a change durable, or not, or in part.
void Inode::Settle(const Unsynced &change, Random &random) {
  const int64_t fate = random.Below(3);
  if (change.size >= 0) {
    if (fate > 0)
      durable_size = std::max(durable_size, change.size);
  } else if (fate == 0) {
    durable.Write(change.offset, change.data);
  } else if (fate == 1) {
    for (auto [begin, bytes] : TornSectors(change.offset, int64_t(change.data.size()), random))
      durable.Write(
          begin,
          absl::string_view(change.data).substr(size_t(begin - change.offset), size_t(bytes)));
  }
}

void Inode::FailSync(Random &random) {
  for (const Unsynced &change : unsynced)
    Settle(change, random);
  unsynced.clear();
  // The pages are clean in spite of it, until memory is short.
  if (random.Chance(0.5)) {
    now = durable;
    now.Trim(size);
    damaged.insert(durable_damaged.begin(), durable_damaged.end());
  }
}

void Inode::LosePower(Random &random) {
  for (const Unsynced &change : unsynced)
    Settle(change, random);
  unsynced.clear();
  durable.Trim(durable_size);
  now = durable;
  size = durable_size;
  reserved = std::min(reserved, size);
  damaged.insert(durable_damaged.begin(), durable_damaged.end());
  durable_damaged = damaged;
  lock_holder = -1;
  byte_locks.clear();
}

void Inode::MarkDamaged(int64_t offset, int64_t bytes) {
  ForEachPage(offset, bytes,
              [&](int64_t page, int64_t, int64_t, int64_t) { damaged.insert(page); });
}

//===----------------------------------------------------------------------===//
// NameChange
//===----------------------------------------------------------------------===//

void NameChange::Apply() const {
  for (const Entry &entry : entries) {
    if (entry.now)
      entry.directory->durable_entries[entry.name] = entry.now;
    else
      entry.directory->durable_entries.erase(entry.name);
  }
}

bool NameChange::Concerns(const std::set<Inode *> &directories) const {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry &entry) {
    return directories.count(entry.directory.get()) > 0;
  });
}

} // namespace boa::simulated
