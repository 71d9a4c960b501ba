//===- memory.cpp - Device memory and pinned memory -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/memory.h"

#include "test/fake_cuda/share.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sys/mman.h>

namespace boa::fake {
namespace {

constexpr uint64_t kAlignment = 256; // what cuMemAlloc promises

char *Map(uint64_t bytes, int protection) {
  void *pages =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) {
    perror("fake CUDA: device memory");
    abort();
  }
  return static_cast<char *>(pages);
}

} // namespace

uint64_t Ranges::Add(uint64_t begin, uint64_t bytes, bool ours) {
  std::unique_lock<std::shared_mutex> lock(mutex);
  if (Overlaps(begin, bytes))
    return 0;
  ranges[begin] = {begin, bytes, next, ours};
  return next++;
}

Ranges::Range Ranges::Remove(uint64_t begin) {
  std::unique_lock<std::shared_mutex> lock(mutex);
  auto it = ranges.find(begin);
  if (it == ranges.end())
    return {};
  Range range = it->second;
  ranges.erase(it);
  return range;
}

void Ranges::Clear() {
  std::unique_lock<std::shared_mutex> lock(mutex);
  ranges.clear();
}

Ranges::Range Ranges::Find(uint64_t begin, uint64_t bytes) const {
  std::shared_lock<std::shared_mutex> lock(mutex);
  auto it = ranges.upper_bound(begin);
  if (it == ranges.begin())
    return {};
  const Range &range = (--it)->second;
  uint64_t at = begin - range.begin;
  return at < range.bytes && bytes <= range.bytes - at ? range : Range{};
}

bool Ranges::Touches(uint64_t begin, uint64_t bytes) const {
  std::shared_lock<std::shared_mutex> lock(mutex);
  return Overlaps(begin, bytes);
}

bool Ranges::Overlaps(uint64_t begin, uint64_t bytes) const {
  auto it = ranges.lower_bound(begin + bytes);
  if (it == ranges.begin())
    return false;
  --it;
  return it->second.begin + it->second.bytes > begin;
}

bool Ranges::Has(uint64_t number) const {
  std::shared_lock<std::shared_mutex> lock(mutex);
  for (const auto &[begin, range] : ranges)
    if (range.number == number)
      return true;
  return false;
}

size_t Ranges::Count() const {
  std::shared_lock<std::shared_mutex> lock(mutex);
  return ranges.size();
}

uint64_t Ranges::Bytes() const {
  std::shared_lock<std::shared_mutex> lock(mutex);
  uint64_t bytes = 0;
  for (const auto &[begin, range] : ranges)
    bytes += range.bytes;
  return bytes;
}

uint64_t Ranges::Fit(uint64_t bytes, uint64_t from, uint64_t end) const {
  std::shared_lock<std::shared_mutex> lock(mutex);
  uint64_t at = from;
  auto align = [&] { at = (at + kAlignment - 1) / (2 * kAlignment) * 2 * kAlignment + kAlignment; };
  align();
  for (auto it = ranges.begin(); it != ranges.end(); ++it) {
    const Range &range = it->second;
    if (range.begin + range.bytes + kAlignment <= at)
      continue;
    if (at + bytes + kAlignment <= range.begin)
      break;
    at = range.begin + range.bytes + kAlignment;
    align();
  }
  return at + bytes + kAlignment <= end ? at : 0;
}

// Twice the space, for what lies between allocations.
DeviceMemory::DeviceMemory(uint64_t capacity)
    : capacity(capacity), mapped(2 * capacity + (64 << 20)),
      base(reinterpret_cast<uint64_t>(Map(mapped, PROT_NONE))),
      data(Map(mapped, PROT_READ | PROT_WRITE)), cursor(base) {}

DeviceMemory::~DeviceMemory() {
  munmap(reinterpret_cast<void *>(base), mapped);
  munmap(data, mapped);
}

uint64_t DeviceMemory::Left() const {
  const uint64_t used = taken + ranges.Bytes(), others = UsedByOthers(used);
  return capacity - used - std::min(others, capacity - used);
}

/// To other processes, with the mutex held.
void DeviceMemory::Say() const { UsedByOthers(taken + ranges.Bytes()); }

// What was freed is handed out again as late as may be.
uint64_t DeviceMemory::Allocate(uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  if (bytes > Left())
    return 0;
  uint64_t address = ranges.Fit(bytes, cursor, base + mapped);
  if (!address)
    address = ranges.Fit(bytes, base, base + mapped);
  if (!address || !ranges.Add(address, bytes, true))
    return 0;
  cursor = address + bytes;
  Say();
  memset(Data(address), 0xff, bytes);
  return address;
}

bool DeviceMemory::Take(uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  if (bytes > Left())
    return false;
  taken += bytes;
  Say();
  return true;
}

bool DeviceMemory::Free(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex);
  Ranges::Range range = ranges.Remove(address);
  if (range.number)
    memset(Data(address), 0xff, range.bytes);
  Say();
  return range.number != 0;
}

std::string DeviceMemory::Outside(uint64_t address, uint64_t bytes) const {
  char text[160];
  Ranges::Range range = ranges.Find(address, 0);
  if (!Holds(address))
    snprintf(text, sizeof text, "%#llx is no address of device memory",
             static_cast<unsigned long long>(address));
  else if (!range.number)
    snprintf(text, sizeof text, "%#llx is in no allocation: freed, or past the end of one",
             static_cast<unsigned long long>(address));
  else
    snprintf(text, sizeof text, "%llu bytes from byte %llu of an allocation of %llu",
             static_cast<unsigned long long>(bytes),
             static_cast<unsigned long long>(address - range.begin),
             static_cast<unsigned long long>(range.bytes));
  return text;
}

} // namespace boa::fake
