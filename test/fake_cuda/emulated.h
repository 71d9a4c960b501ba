//===- emulated.h - Kernels of a GPU, compiled for the host -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the compiler makes for a device that is emulated, and the fake driver runs: each
// kernel is a function that is called once a thread of its launch. Threads of a block are
// fibers of one thread of the host. The layout is fixed: generated code knows it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_EMULATED_H
#define BOA_TEST_FAKE_CUDA_EMULATED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BOA_EMULATED_MAGIC "boa-emulated-1"

typedef struct boa_emulated_thread boa_emulated_thread;

/// One thread of a block; the body's own while it runs.
struct boa_emulated_thread {
  int64_t thread[3], block[3], block_dim[3], grid_dim[3]; // x, y, z
  /// The block's, aligned to 128 bytes: shared_bytes of the function, then, from the next
  /// multiple of 16, the launch's dynamic ones. NaN, as every byte is 0xff, at the start.
  char *shared;
  /// All threads of the block, or the launch fails.
  void (*barrier)(boa_emulated_thread *);
  /// All 32 lanes of a warp, with one width (32) and mode: 0 xor, 1 up, 2 down, 3 index.
  /// The lane's own value where there is no lane to take it from.
  uint32_t (*shuffle)(boa_emulated_thread *, uint32_t value, int32_t offset, int32_t width,
                      int32_t mode);
  /// Ends the launch with these words, as an access that is out of bounds; does not return.
  void (*fault)(boa_emulated_thread *, const char *what);
  /// All 32 lanes of a warp, mma.m16n8k16 of bf16: registers[0..3] of a, [4..5] of b, and f32
  /// [6..9] of c, which become the result.
  void (*multiply)(boa_emulated_thread *, uint32_t *registers);
  /// All 32 lanes, ldmatrix of four 8 x 8 matrices of 16 bits: `row` is the lane's row of eight in
  /// shared memory, a matrix after another.
  void (*matrices)(boa_emulated_thread *, const void *row, int32_t transpose, uint32_t *registers);
  /// cp.async of 16 bytes to shared memory, those after the first `bytes` zeros. The next group
  /// that ends holds it.
  void (*copy)(boa_emulated_thread *, void *to, const void *from, int32_t bytes);
  /// Ends a group of copies.
  void (*group)(boa_emulated_thread *);
  /// For all groups but the latest ones. Only then are their copies done, at the latest moment.
  void (*wait)(boa_emulated_thread *, int32_t latest);
};

typedef struct {
  const char *name;
  /// args[i]: the address of the i-th argument, which is the address of memory.
  void (*body)(boa_emulated_thread *, void *const *args);
  int64_t shared_bytes;
  int64_t arguments; // how many
} boa_emulated_function;

/// What cuModuleLoadDataEx is given in place of PTX.
typedef struct {
  char magic[16]; // BOA_EMULATED_MAGIC, then NUL
  int64_t count;
  const boa_emulated_function *functions;
} boa_emulated_module;

#ifdef __cplusplus
} // extern "C"

static_assert(sizeof(boa_emulated_thread) == 168, "generated code knows the layout");
static_assert(sizeof(boa_emulated_function) == 32, "generated code knows the layout");
static_assert(sizeof(boa_emulated_module) == 32, "generated code knows the layout");
#endif

#endif // BOA_TEST_FAKE_CUDA_EMULATED_H
