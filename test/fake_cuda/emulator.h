//===- emulator.h - Runs a launch of an emulated kernel ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks in an order that the seed shuffles, on some threads of the host; a block's threads
// one at a time, each until it waits, ends or fails, and which is next is drawn by the
// seed. So whatever barriers and shuffles do not order happens in many orders.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_EMULATOR_H
#define BOA_TEST_FAKE_CUDA_EMULATOR_H

#include "test/fake_cuda/emulated.h"

#include <cstdint>
#include <string>

namespace boa::fake {

struct Launch {
  const boa_emulated_function *function;
  int64_t grid[3], block[3];
  int64_t dynamic_bytes = 0; // of shared memory
  void *const *args = nullptr;
  uint64_t seed = 1;
  int threads = 1; // of the host
};

/// Empty: it ran. Otherwise what went wrong first: which kernel, block, thread, and what.
std::string RunLaunch(const Launch &);

/// splitmix64.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t Next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// One of 0 ... count - 1; count is below 2^32.
  uint64_t Below(uint64_t count) { return (Next() >> 32) * count >> 32; }

private:
  uint64_t state;
};

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_EMULATOR_H
