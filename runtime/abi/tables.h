//===- tables.h - Tables that kernels read ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cosines and sines of positions. For a context of 32k they are many MiB, so a program holds
// their frequencies alone. The host computes them at start for every device. So kernels of
// all devices read the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_TABLES_H
#define BOA_RUNTIME_ABI_TABLES_H

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

/// Row r, column c holds the cosine or sine of r * frequencies[c].
struct AngleTable {
  std::string function; // "cosine" or "sine"
  int64_t rows = 0;
  std::vector<double> frequencies;

  int64_t elements() const { return rows * static_cast<int64_t>(frequencies.size()); }
};

/// Tables begin at multiples of it, in bytes.
constexpr int64_t kTableAlignment = 256;

/// The bytes of memory that a table takes.
inline int64_t TableBytes(const AngleTable &table, int64_t element_bytes = sizeof(float)) {
  const int64_t bytes = table.elements() * element_bytes;
  return (bytes + kTableAlignment - 1) / kTableAlignment * kTableAlignment;
}

/// Computed in f64 and rounded once: float or double.
template <typename T> void FillTable(const AngleTable &, T *values);

/// The byte offsets of tables of f32 that lie one after another, and the end of the last.
std::vector<int64_t> TableOffsets(const std::vector<AngleTable> &);
void FillTables(const std::vector<AngleTable> &, char *memory);

} // namespace boa

#endif // BOA_RUNTIME_ABI_TABLES_H
