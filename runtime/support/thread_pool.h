//===- thread_pool.h - One pool for kernels and optimizer -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Generated kernels, matrix products and the optimizer share these threads, so
// that no part of the machine is claimed twice. A call made from inside a body
// runs inline; two callers at once take turns.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_THREAD_POOL_H
#define BOA_RUNTIME_SUPPORT_THREAD_POOL_H

#include <cstdint>

namespace boa {

/// Threads that work on a loop, the caller's included; 0: one for each processor that the process
/// may use (limits.h). Takes effect at the next call of ParallelFor that finds it changed.
void SetThreads(int64_t threads);
int64_t Threads();

/// body(data, begin, end) on disjoint parts that make up [0, count), each a
/// multiple of `grain` but the last. The parts depend on count, grain and the
/// number of threads only; a thread takes one after another. Returns when all
/// are done. If a body throws (std::bad_alloc), it leaves out the parts that have
/// not begun, and throws the first exception when no body runs any more.
void ParallelFor(int64_t count, int64_t grain, void (*body)(void *data, int64_t begin, int64_t end),
                 void *data);

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_THREAD_POOL_H
