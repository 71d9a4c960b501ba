//===- queue.h - The compute queue of a GPU ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_QUEUE_H
#define BOA_RUNTIME_DEVICE_CUDA_QUEUE_H

#include "runtime/abi.h"
#include "runtime/device/cuda/blas.h"
#include "runtime/device/cuda/dnn.h"
#include "runtime/device/cuda/gpu.h"

#include <vector>

/// What the calls of calls.h work on: one thread at a time, with the context current.
struct boa_queue {
  const boa::cuda::Gpu *gpu = nullptr;
  const boa::cuda::Driver *driver = nullptr; // the GPU's
  boa::cuda::Stream stream = nullptr;
  std::vector<int64_t> shared_bytes;     // by function, beside its own, that a launch may ask for
  std::vector<void *> arguments;         // of a launch, while it is made
  std::unique_ptr<boa::cuda::Blas> blas; // once a kernel multiplies
  std::unique_ptr<boa::cuda::Dnn> dnn;   // once a kernel asks for attention
  bool plans = false;                    // nothing is enqueued
  bool synchronizes = false;             // each call waits for its work, whose error it then has
  int64_t launches = 0;                  // that calls asked for, of whoever sets it to 0
  absl::Status status;                   // of all calls so far
};

#endif // BOA_RUNTIME_DEVICE_CUDA_QUEUE_H
