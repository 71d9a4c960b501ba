//===- tables.cpp - Tables that kernels read ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/tables.h"

#include <cmath>

namespace boa {

template <typename T> void FillTable(const AngleTable &table, T *values) {
  const bool sine = table.function == "sine";
  for (int64_t row = 0; row < table.rows; ++row)
    for (double frequency : table.frequencies) {
      const double angle = static_cast<double>(row) * frequency;
      *values++ = static_cast<T>(sine ? std::sin(angle) : std::cos(angle));
    }
}
template void FillTable(const AngleTable &, float *);
template void FillTable(const AngleTable &, double *);

std::vector<int64_t> TableOffsets(const std::vector<AngleTable> &tables) {
  std::vector<int64_t> offsets{0};
  for (const AngleTable &table : tables)
    offsets.push_back(offsets.back() + TableBytes(table));
  return offsets;
}

void FillTables(const std::vector<AngleTable> &tables, char *memory) {
  const std::vector<int64_t> offsets = TableOffsets(tables);
  for (size_t i = 0; i < tables.size(); ++i)
    FillTable(tables[i], reinterpret_cast<float *>(memory + offsets[i]));
}

} // namespace boa
