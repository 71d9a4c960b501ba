//===- session.h - A GPU that is tried --------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GPU_SESSION_H
#define BOA_TEST_GPU_SESSION_H

#include "runtime/device/cuda/gpu.h"
#include "runtime/device/cuda/queue.h"

#include <memory>

namespace boa::gputest {

/// A GPU with a stream, and the queue of kernels that are run on it.
class Session {
public:
  static absl::StatusOr<std::unique_ptr<Session>> Open();
  ~Session();

  const cuda::Gpu &gpu() const { return *opened; }
  const cuda::Driver &driver() const { return opened->driver(); }
  cuda::Stream stream() const { return made; }
  absl::Status Wait() const;
  /// Of the device's memory.
  absl::Status AskMemory(size_t &free, size_t &total) const;

private:
  std::unique_ptr<cuda::Gpu> opened;
  cuda::Stream made = nullptr;
};

/// Device memory for a while, freed at the end.
class DeviceMemory {
public:
  explicit DeviceMemory(const Session &session) : session(session) {}
  ~DeviceMemory();
  /// Every byte 0xff: NaN.
  absl::Status Allocate(size_t bytes);
  absl::Status Clear(size_t bytes);
  absl::Status Put(size_t offset, const void *from, size_t bytes);
  absl::Status Get(size_t offset, void *to, size_t bytes);
  char *at(size_t offset) const { return reinterpret_cast<char *>(address) + offset; }

private:
  const Session &session;
  cuda::Pointer address = 0;
};

/// The host's memory, registered as the runtime does it.
class PinnedMemory {
public:
  explicit PinnedMemory(const Session &session) : session(session) {}
  ~PinnedMemory();
  absl::Status Allocate(size_t bytes);
  char *at(size_t offset) const { return memory + offset; }

private:
  const Session &session;
  char *memory = nullptr;
  bool registered = false;
};

} // namespace boa::gputest

#endif // BOA_TEST_GPU_SESSION_H
