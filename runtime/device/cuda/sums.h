//===- sums.h - Checksums of what lies on the GPU ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums chunks with functions of the image (runtime/abi/cuda_sums.h), on a stream of their own. So
// data that is read from an SSD waits for no kernel. The host gets the lanes and combines them
// into one number. The caller decides its use.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_SUMS_H
#define BOA_RUNTIME_DEVICE_CUDA_SUMS_H

#include "runtime/abi/cuda_sums.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/device/host.h"
#include "runtime/state/checksum.h"

#include <atomic>
#include <map>

namespace boa::cuda {

class GpuSums : public FarSums, private DeviceListener {
public:
  /// All outlive it.
  GpuSums(const Program &, const Gpu &, const GpuMemory &);
  /// Nothing is under way.
  ~GpuSums() override;
  /// Finds the functions, and allocates.
  absl::Status Create();
  absl::Status Start() { return stream.Start(); }
  /// Its threads end.
  void Stop() { stream.Stop(); }

  int32_t Most() const override { return kSumChunks; }
  void Make(const Work &, int32_t first, int32_t count, Receiver) override;

private:
  /// Chunks of one transfer, as work of the stream.
  struct Piece : Work {
    int64_t chunk_bytes = 0;
    Receiver receiver;
    std::vector<uint64_t> sums;
  };
  /// The lanes of one piece, as the host gets them.
  using Slot = uint64_t[kSumChunks][kChecksumLanes];

  absl::Status Find();
  absl::Status Enqueue(Piece &);
  absl::Status Finish(Piece &);
  void Done(const Work &, int64_t begin_ns, int64_t end_ns, absl::Status) override;
  void Moved(const Work &, int32_t, int64_t, int64_t, int64_t) override {}
  void Wake() override {}

  const Program &program;
  const Gpu &gpu;
  const GpuMemory &memory;
  std::map<int64_t, Function> functions; // by bytes of a chunk
  // Slots, then the keys; on the device, and registered with it.
  static constexpr size_t kKeysAt = GpuStream::kDepth * sizeof(Slot);
  static constexpr size_t kBytes = kKeysAt + kChecksumKeys * sizeof(uint64_t);
  Pointer on_device = 0;
  char *on_host = nullptr;
  bool registered = false;
  size_t next = 0; // the first thread's
  std::atomic<int64_t> pieces{0};
  absl::Status error; // the first, the second thread's
  Order order;        // of this stream alone: its work waits for none
  GpuStream stream;
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_SUMS_H
