//===- updates.h - The optimizer on a GPU ------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs updates and norms with functions of the image (runtime/abi/cuda_updates.h), on a stream of
// their own. So an update that waits for its state from SSD holds up no kernel. The host decides
// a step's rate, its clipping factor, and whether it is left out (device/updates.h). It uses the
// same sums, so the results are the host's bits.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_UPDATES_H
#define BOA_RUNTIME_DEVICE_CUDA_UPDATES_H

#include "runtime/abi/cuda_updates.h"
#include "runtime/device/cuda/gpu.h"
#include "runtime/device/updates.h"

#include <vector>

namespace boa::cuda {

class GpuUpdates {
public:
  /// All outlive it.
  GpuUpdates(const Program &, const boa_optimizer *, const Gpu &, const GpuMemory &);
  ~GpuUpdates();
  /// Finds the functions, and allocates. At most `depth` pieces of work on `stream` are not over
  /// at once.
  absl::Status Create(Stream stream, size_t depth);

  /// Called on one thread, in the order of the program. Enqueues an update. A norm is over when
  /// this returns, since the updates after it need its value.
  absl::Status Enqueue(Work &);
  /// Called on another thread, for finished work: checks that an update's results are finite.
  absl::Status Finish(const Work &);
  std::map<int64_t, double> TakeNorms() { return updates.TakeNorms(); }

private:
  /// The data that the host and an update exchange, in the memory of each.
  struct Slot {
    alignas(64) float constants[kUpdateScalars + BOA_MOST_SCALARS];
    alignas(64) int32_t flag;
  };
  /// The functions of a group, and blocks of its sums.
  struct Functions {
    Function update = nullptr, norm = nullptr;
    int64_t sums = 0;
  };

  absl::Status Find();
  absl::Status EnqueueUpdate(const Work &);
  absl::Status Norm(const Work &);
  absl::Status Launch(Function, const char *doing, int64_t blocks, int64_t threads,
                      std::vector<Pointer> arguments);
  Pointer At(Location) const;

  const Program &program;
  const Gpu &gpu;
  const GpuMemory &memory;
  Updates updates; // the first thread's, but for CheckFinite
  Stream stream = nullptr;
  Event summed = nullptr;           // behind the sums of a norm
  std::vector<Functions> functions; // by group
  // Slots, then the sums of a norm; on the device, and registered with it.
  int64_t depth = 0, next = 0, bytes = 0;
  Pointer on_device = 0;
  char *on_host = nullptr;
  bool registered = false;
  Slot *slots = nullptr;
  double *sums = nullptr;
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_UPDATES_H
