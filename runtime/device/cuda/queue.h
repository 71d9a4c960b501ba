//===- queue.h - The compute queue of a GPU ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_QUEUE_H
#define BOA_RUNTIME_DEVICE_CUDA_QUEUE_H

#include "runtime/abi/abi.h"
#include "runtime/device/cuda/blas.h"
#include "runtime/device/cuda/dnn.h"
#include "runtime/device/cuda/gpu.h"

#include <vector>

namespace boa::cuda {

class LaunchTimes;

/// The arguments of one boa_cuda_launch.
struct LaunchCall {
  int64_t function;
  int64_t grid[3], block[3];
  int64_t shared_bytes;
  std::vector<void *> arguments; // addresses in device memory
};

/// Gets a kernel's calls in place of the GPU, to measure them one by one.
class CallListener {
public:
  virtual ~CallListener() = default;
  virtual void Launch(const LaunchCall &) = 0;
  virtual void Multiply(const Product &) = 0;
  /// Whether a library computes it. If not, the kernel launches its own function.
  virtual bool Attend(const Attention &) = 0;
};

} // namespace boa::cuda

/// The queue of the calls in runtime/abi/cuda_calls.h. One thread at a time uses it, with the
/// context current.
struct boa_queue {
  const boa::cuda::Gpu *gpu = nullptr;
  const boa::cuda::Driver *driver = nullptr; // the GPU's
  boa::cuda::Stream stream = nullptr;
  std::vector<int64_t> shared_bytes;       // by function, beside its own, that a launch may ask for
  std::vector<void *> arguments;           // of a launch, while it is made
  std::unique_ptr<boa::cuda::Blas> blas;   // once a kernel multiplies
  std::unique_ptr<boa::cuda::Dnn> dnn;     // once a kernel asks for attention
  bool plans = false;                      // nothing is enqueued
  bool synchronizes = false;               // each call waits for its work, whose error it then has
  boa::cuda::LaunchTimes *times = nullptr; // where there is one, it times each call
  boa::cuda::CallListener *listener = nullptr; // where there is one, it is told, and nothing else
  int64_t launches = 0;                        // that calls asked for, of whoever sets it to 0
  absl::Status status;                         // of all calls so far
};

#endif // BOA_RUNTIME_DEVICE_CUDA_QUEUE_H
