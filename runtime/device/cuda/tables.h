//===- tables.h - Tables of kernels in a GPU's memory ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_TABLES_H
#define BOA_RUNTIME_DEVICE_CUDA_TABLES_H

#include "runtime/abi/program.h"
#include "runtime/device/cuda/gpu.h"

namespace boa::cuda {

/// Made by the host and copied once: the bits are those of a CPU's.
class GpuTables {
public:
  /// The GPU outlives it.
  explicit GpuTables(const Gpu &gpu) : gpu(gpu) {}
  ~GpuTables();
  /// When it returns, nothing is under way on the stream.
  absl::Status Create(const std::vector<AngleTable> &, Stream);
  void *Address(int64_t table) const {
    return reinterpret_cast<void *>(memory + Pointer(offsets[table]));
  }

private:
  const Gpu &gpu;
  Pointer memory = 0;
  std::vector<int64_t> offsets;
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_TABLES_H
