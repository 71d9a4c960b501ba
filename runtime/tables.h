//===- tables.h - Tables that kernels read ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cosines and sines of positions, which a program says and does not contain: for a context
// of 32k they are many MiB. The host computes them at start, for every device: so kernels
// of all devices read the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TABLES_H
#define BOA_RUNTIME_TABLES_H

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

/// Its row r and column c hold the cosine or sine of r * frequencies[c].
struct AngleTable {
  std::string function; // "cosine" or "sine"
  int64_t rows = 0;
  std::vector<double> frequencies;

  int64_t elements() const { return rows * static_cast<int64_t>(frequencies.size()); }
};

/// Where tables begin is a multiple of it.
constexpr int64_t kTableAlignment = 256;

/// What one takes of memory.
inline int64_t TableBytes(const AngleTable &table, int64_t element_bytes = sizeof(float)) {
  const int64_t bytes = table.elements() * element_bytes;
  return (bytes + kTableAlignment - 1) / kTableAlignment * kTableAlignment;
}

/// Computed in f64 and rounded once: float or double.
template <typename T> void FillTable(const AngleTable &, T *values);

/// Where each of a program's begins, which lie one after another in f32, and where the last ends.
std::vector<int64_t> TableOffsets(const std::vector<AngleTable> &);
void FillTables(const std::vector<AngleTable> &, char *memory);

} // namespace boa

#endif // BOA_RUNTIME_TABLES_H
