//===- gpu.h - A GPU with the program's code and memory on it ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_GPU_H
#define BOA_RUNTIME_DEVICE_CUDA_GPU_H

#include "runtime/abi/abi.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/memory.h"

#include <vector>

namespace boa::cuda {

/// A function of the image, on this GPU.
struct LoadedFunction {
  const char *name = nullptr;
  Function handle = nullptr;
  int most_threads = 0; // of a block
  int shared_bytes = 0; // that it declares itself
};

/// The limits of a launch on this GPU.
struct Limits {
  int grid[3] = {}, block[3] = {};
  int shared_bytes = 0; // of a block
};

/// The first GPU that the process sees, by its primary context.
class Gpu {
public:
  static absl::StatusOr<std::unique_ptr<Gpu>> Open();
  ~Gpu();

  /// Each thread calls this once, before it calls the driver. Makes the context current.
  absl::Status Enter() const;
  /// Translates the image for this GPU, and takes the device memory that its functions need. The
  /// status has the driver's reason if it refuses.
  absl::Status Load(const boa_device_image &);
  /// The functions of the image, in its order.
  const std::vector<LoadedFunction> &functions() const { return loaded; }
  const Limits &limits() const { return most; }
  std::string Describe() const; // "NVIDIA H200 (sm_90)"
  int capability() const { return major * 10 + minor; }
  /// Of device memory, before anything was loaded and allocated.
  int64_t total_bytes() const { return int64_t(total); }
  int64_t free_bytes() const { return int64_t(free_at_first); }
  /// Whether so many bytes of device memory are free; if not, the status says who has the rest.
  absl::Status CheckFree(int64_t bytes) const;

  const Driver &driver() const { return *table; }

private:
  absl::Status ReserveLocal(size_t bytes) const;
  explicit Gpu(std::unique_ptr<Driver> driver) : table(std::move(driver)) {}

  std::unique_ptr<Driver> table;
  Ordinal ordinal = 0;
  Context context = nullptr;
  Module module = nullptr;
  std::vector<LoadedFunction> loaded;
  Limits most;
  size_t total = 0, free_at_first = 0; // of device memory, once there was a context
  std::string name;
  int major = 0, minor = 0;
};

/// Its memory, and the host's, which is registered with the driver so that the GPU copies
/// from and to it by itself.
class GpuMemory : public Memory {
public:
  /// The most that is registered in one call, which no signal ends: at some GiB a second it takes a
  /// second or two. Drivers also refuse half a TiB. The GPU copies by itself what lies in one such
  /// part.
  static constexpr int64_t kPart = int64_t{4} << 30;

  /// Both outlive it. The stream clears the memory. The device's begins at a multiple of
  /// `alignment`.
  GpuMemory(const Gpu &gpu, Stream stream, int64_t part = kPart, int64_t alignment = 1)
      : gpu(gpu), stream(stream), part(part), alignment(alignment) {}
  ~GpuMemory() override;
  absl::Status Allocate(const int64_t (&bytes)[2]) override;
  /// Null for a side that cannot reach it.
  char *Address(Side, Location) const override;
  std::pair<char *, int64_t> HostArena() const override { return {arena, arena_bytes}; }
  std::pair<char *, int64_t> DeviceArena() const {
    return {reinterpret_cast<char *>(device), device_bytes};
  }
  /// Enqueues a copy within the device's memory, or between it and the host's.
  absl::Status Copy(Location from, Location to, int64_t bytes, Stream) const;

private:
  absl::Status AllocateDevice(int64_t bytes);
  /// A signal ends it between two parts.
  absl::Status Register();

  const Gpu &gpu;
  const Stream stream;
  const int64_t part, alignment;
  Pointer allocated = 0, device = 0; // the first at or before the second
  int64_t device_bytes = 0;
  char *arena = nullptr;
  int64_t arena_bytes = 0, registered = 0; // bytes
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_GPU_H
