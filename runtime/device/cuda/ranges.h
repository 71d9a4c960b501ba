//===- ranges.h - Ranges in a profiler's timeline ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_RANGES_H
#define BOA_RUNTIME_DEVICE_CUDA_RANGES_H

namespace boa::cuda {

/// Looks for a profiler. Before the threads that make ranges begin: NVTX would find it in the first
/// range, and the others would read what that one writes. A second call does nothing.
void InitializeRanges();

/// An NVTX range of this thread while it lives. A profiler shows its name above the calls inside
/// it. Nothing without a profiler, or if the build found no NVTX.
class Range {
public:
  explicit Range(const char *name);
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;
  ~Range();
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_RANGES_H
