//===- tensor.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/tensor.h"

#include <cstring>

namespace boa::fake {
namespace {

constexpr int kWarp = 32;

float Wide(uint32_t half) {
  const uint32_t bits = half << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

} // namespace

void MultiplyTile(uint32_t *const registers[kWarp]) {
  // A register has two elements beside each other along the sum. Four lanes have eight of them.
  float a[16][16], b[8][16], c[16][8];
  for (int lane = 0; lane < kWarp; ++lane) {
    const int group = lane / 4, pair = lane % 4 * 2;
    for (int i = 0; i < 4; ++i)
      for (int e = 0; e < 2; ++e)
        a[group + i % 2 * 8][pair + i / 2 * 8 + e] = Wide(registers[lane][i] >> 16 * e & 0xffff);
    for (int i = 0; i < 2; ++i)
      for (int e = 0; e < 2; ++e)
        b[group][pair + i * 8 + e] = Wide(registers[lane][4 + i] >> 16 * e & 0xffff);
    for (int i = 0; i < 4; ++i)
      memcpy(&c[group + i / 2 * 8][pair + i % 2], &registers[lane][6 + i], sizeof(float));
  }
  for (auto &row : c)
    for (float &sum : row) {
      const float *x = a[&row - c], *y = b[&sum - row];
      for (int k = 0; k < 16; ++k)
        sum += x[k] * y[k];
    }
  for (int lane = 0; lane < kWarp; ++lane)
    for (int i = 0; i < 4; ++i)
      memcpy(&registers[lane][6 + i], &c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2],
             sizeof(float));
}

void LoadMatrices(const void *const rows[kWarp], bool transpose, uint32_t *const registers[kWarp]) {
  for (int i = 0; i < 4; ++i) {
    uint16_t elements[8][8];
    for (int row = 0; row < 8; ++row)
      memcpy(elements[row], rows[8 * i + row], sizeof elements[row]);
    for (int lane = 0; lane < kWarp; ++lane) {
      const int group = lane / 4, pair = lane % 4 * 2;
      const uint32_t low = transpose ? elements[pair][group] : elements[group][pair];
      const uint32_t high = transpose ? elements[pair + 1][group] : elements[group][pair + 1];
      registers[lane][i] = low | high << 16;
    }
  }
}

} // namespace boa::fake
