//===- kernel_bench.h - What measurements of kernels share ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_BENCH_KERNEL_BENCH_H
#define BOA_TEST_BENCH_KERNEL_BENCH_H

#include <cstdint>

namespace bench {

/// One thread works, and its processor time is counted.
extern bool cpuTime;

/// In seconds.
double now();

/// Memory of small numbers, for std::free.
float *allocate(int64_t bytes);

/// Products of a training step, with each instruction set. Returns 1 if the table (isa.cpp)
/// chooses slow kernels.
int measureProducts();
void measureAttention();

} // namespace bench

#endif // BOA_TEST_BENCH_KERNEL_BENCH_H
