//===- memory.h - Device memory and pinned memory ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_MEMORY_H
#define BOA_TEST_FAKE_CUDA_MEMORY_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace boa::fake {

/// Ranges of addresses that do not overlap; each has a number that no other ever has. Looking
/// up orders no thread after another, so ThreadSanitizer sees what nothing else orders.
class Ranges {
public:
  struct Range {
    uint64_t begin = 0, bytes = 0, number = 0; // number 0: none
    bool ours = false;                         // allocated, not registered
  };
  /// 0: overlaps one.
  uint64_t Add(uint64_t begin, uint64_t bytes, bool ours);
  /// What begins there, no longer in it; or none.
  Range Remove(uint64_t begin);
  void Clear();
  /// The one in which all of these lie, or, with bytes 0, the one around the address.
  Range Find(uint64_t begin, uint64_t bytes) const;
  bool Touches(uint64_t begin, uint64_t bytes) const;
  bool Has(uint64_t number) const;
  size_t Count() const;
  uint64_t Bytes() const;
  /// Where `bytes` fit, from `from` on and before `end`, aligned as cuMemAlloc promises and no
  /// better, with a gap; 0: nowhere.
  uint64_t Fit(uint64_t bytes, uint64_t from, uint64_t end) const;

private:
  bool Overlaps(uint64_t begin, uint64_t bytes) const;

  mutable std::shared_mutex mutex;
  std::map<uint64_t, Range> ranges; // by begin
  uint64_t next = 1;
};

/// Two mappings: addresses that are handed out, which fault, and beside them what is there.
class DeviceMemory {
public:
  explicit DeviceMemory(uint64_t capacity);
  ~DeviceMemory();
  /// 0: there is not enough.
  uint64_t Allocate(uint64_t bytes);
  bool Free(uint64_t address);
  /// For what is in no allocation, as long as the context lives. false: there is not enough.
  bool Take(uint64_t bytes);
  /// That neither this process uses nor others do that share the device.
  uint64_t Left() const;
  char *Data(uint64_t address) const { return data + (address - base); }
  bool Holds(uint64_t address) const { return address >= base && address < base + mapped; }
  /// Why these bytes are not within one allocation.
  std::string Outside(uint64_t address, uint64_t bytes) const;

  const uint64_t capacity;
  Ranges ranges;

private:
  void Say() const;

  const uint64_t mapped, base;
  char *const data;
  std::mutex mutex; // of Allocate, Take and Free
  std::atomic<uint64_t> taken{0};
  uint64_t cursor;
};

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_MEMORY_H
