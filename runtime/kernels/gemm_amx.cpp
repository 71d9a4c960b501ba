//===- gemm_amx.cpp - Matrix products by AMX ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/gemm_tiles.h"

#include <immintrin.h>

namespace {

/// The processor's registers, all of 16 rows of 64 bytes, while this lives.
struct Amx {
  Amx() {
    struct {
      uint8_t palette, start_row, reserved[14];
      uint16_t bytes[16];
      uint8_t rows[16];
    } config = {};
    static_assert(sizeof config == 64);
    config.palette = 1;
    for (int i = 0; i < 8; ++i)
      config.bytes[i] = 64, config.rows[i] = 16;
    _tile_loadconfig(&config);
  }
  ~Amx() { _tile_release(); }

  template <int R> static BOA_INLINE void Zero() { _tile_zero(R); }
  template <int R> static BOA_INLINE void Load(const void *from, int64_t stride) {
    _tile_loadd(R, from, stride);
  }
  template <int R> static BOA_INLINE void Store(void *to, int64_t stride) {
    _tile_stored(R, to, stride);
  }
  template <int C, int A, int B> static BOA_INLINE void Multiply() { _tile_dpbf16ps(C, A, B); }
};

} // namespace

void boa::ComputeGemmBlockAmx(const GemmBf16Bf16 &block, float *scratch) {
  Amx tiles;
  TileProduct<Amx>::Run(block, scratch);
}
void boa::ComputeGemmBlockAmx(const GemmAllBf16 &block, float *scratch) {
  Amx tiles;
  TileProduct<Amx>::Run(block, scratch);
}
