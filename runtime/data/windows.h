//===- windows.h - Windows that have a target -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where few tokens are targets, as in conversations with long questions, many windows have none.
// They are left out: such a window costs as much as another, and teaches nothing. One bit for each
// window is in memory.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_WINDOWS_H
#define BOA_RUNTIME_DATA_WINDOWS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace boa {

class WindowSet {
public:
  WindowSet() = default;
  /// Of so many windows none is in the set.
  explicit WindowSet(int64_t windows) : words(size_t((windows + 63) / 64)) {}

  void Add(int64_t window) { words[size_t(window / 64)] |= uint64_t{1} << (window % 64); }
  /// Comes before the calls below.
  void Count();
  int64_t size() const { return count; }
  bool Has(int64_t window) const { return (words[size_t(window / 64)] >> (window % 64)) & 1; }
  /// The window at a place of the set, in order; 0 <= place < size().
  int64_t At(int64_t place) const;

private:
  std::vector<uint64_t> words;
  std::vector<int64_t> before; // windows of the set before each word
  int64_t count = 0;
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_WINDOWS_H
