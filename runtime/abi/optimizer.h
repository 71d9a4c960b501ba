//===- optimizer.h - The compiled optimizer ---------------------*- C -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that a program has for its boa.optimizer (dialect/OptimizerOps.td). It runs on the
// host; the forms of a GPU are in runtime/abi/cuda_updates.h. Every element goes through the same
// operations, none of them fused. So neither threads nor chunks nor the processor change a bit.
//
// Weights stored as bf16 are the rounded upper half of their f32 master:
// bits(master) = (high << 16) + low. There high = (bits + 0x8000) >> 16, and low is a signed 16-bit
// remainder. The pair is exactly the master, so it is never stored twice.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_OPTIMIZER_H
#define BOA_RUNTIME_ABI_OPTIMIZER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Elements [begin, end) of a chunk that share a learning rate and a weight decay.
typedef struct {
  int64_t begin, end;
  float rate, decay;
} boa_update_range;

/// A state in 8 bits has a scale for each block of so many elements. A chunk has the codes of its
/// elements, then the scales in f32.
#define BOA_STATE_BLOCK INT64_C(256)
/// The optimizer works on parts of so many elements: a chunk is whole parts.
#define BOA_UPDATE_PART INT64_C(2048)

/// As many scalars as all updates of a step may take.
#define BOA_MOST_SCALARS 16

/// `boa_optimizer` of a program that trains.
typedef struct {
  /// The scalars that all updates of a step take, as many as the descriptor says.
  void (*prepare)(int64_t step, float *scalars);
  /// Updates elements [begin, end) of a chunk: whole parts. All addresses are those of the chunk.
  /// `low` is null where weights are f32. Gradients are multiplied by `scale`. `count` ranges cover
  /// the parameters, in order. Elements between them stay as they are. Bits that round states come
  /// from `seed` and the element. Returns 0 if a new weight or state is not finite, which is always
  /// so where the gradient is not.
  int32_t (*update)(void *weights, int16_t *low, const float *gradient, void *const *states,
                    const float *scalars, float scale, const boa_update_range *ranges,
                    int64_t count, int64_t begin, int64_t end, int64_t chunk_elements,
                    uint32_t seed);
} boa_optimizer;

#ifdef __cplusplus
}
#endif

#endif // BOA_RUNTIME_ABI_OPTIMIZER_H
