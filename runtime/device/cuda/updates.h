//===- updates.h - The optimizer on a GPU ------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Updates and norms by functions of the image (update_layout.h), on a stream of their own:
// an update that waits for its state to come from SSD holds up no kernel. What is decided
// about a step (its rate, its clipping factor, whether it is left out) is the host's
// (device/updates.h), from the same sums; so the results are the host's bits.
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
  GpuUpdates(const Program &, const Gpu &, const GpuMemory &);
  ~GpuUpdates();
  /// Finds the functions, and allocates: so much of what is enqueued on `stream` is not
  /// over at once.
  absl::Status Create(Stream stream, size_t depth);

  /// On one thread, in the order of the program. An update is enqueued; a norm is over when
  /// this returns, as those that follow need to know it.
  absl::Status Enqueue(Work &);
  /// On another, of what is over: whether what an update made is finite.
  absl::Status Finish(const Work &);
  std::map<int64_t, double> TakeNorms() { return updates.TakeNorms(); }

private:
  /// What passes between the host and an update, in the memory of each.
  struct Slot {
    alignas(64) float constants[kUpdateConstants];
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
