//===- tables.cpp - Tables of kernels in a GPU's memory -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/tables.h"

namespace boa::cuda {

GpuTables::~GpuTables() {
  if (memory)
    gpu.driver().MemFree.address(memory);
}

absl::Status GpuTables::Create(const std::vector<AngleTable> &tables, Stream stream) {
  offsets = TableOffsets(tables);
  const size_t bytes = size_t(offsets.back());
  if (bytes == 0)
    return absl::OkStatus();
  std::vector<char> made(bytes);
  FillTables(tables, made.data());
  const Driver &driver = gpu.driver();
  const char *const doing = "copying tables to the device";
  absl::Status status = gpu.CheckFree(int64_t(bytes));
  if (status.ok())
    status = driver.Call(doing, driver.MemAlloc, &memory, bytes);
  if (status.ok())
    status = driver.Call(doing, driver.MemcpyHtoDAsync, memory, made.data(), bytes, stream);
  // It may be at reading them, be there an error or not.
  const absl::Status over = driver.Call(doing, driver.StreamSynchronize, stream);
  return status.ok() ? over : status;
}

} // namespace boa::cuda
