//===- ranges.h - Ranges in a profiler's timeline ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_RANGES_H
#define BOA_RUNTIME_DEVICE_CUDA_RANGES_H

namespace boa::cuda {

/// An NVTX range of this thread while it lives: a profiler shows its name above what is enqueued.
/// Nothing without a profiler, and nothing where the build found no NVTX.
class Range {
public:
  explicit Range(const char *name);
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;
  ~Range();
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_RANGES_H
