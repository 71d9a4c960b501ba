//===- session.cpp --------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/gpu/session.h"

#include <cstdlib>
#include <cstring>

namespace boa::gputest {

absl::StatusOr<std::unique_ptr<Session>> Session::Open() {
  auto gpu = cuda::Gpu::Open();
  if (!gpu.ok())
    return gpu.status();
  auto session = std::make_unique<Session>();
  session->opened = *std::move(gpu);
  if (absl::Status status = session->driver().Call(
          "making a stream", session->driver().StreamCreate, &session->made, cuda::kNonBlocking);
      !status.ok())
    return status;
  return session;
}

Session::~Session() {
  if (made)
    driver().StreamDestroy.address(made);
}

absl::Status Session::Wait() const {
  return driver().Call("waiting for the GPU", driver().StreamSynchronize, made);
}

absl::Status Session::AskMemory(size_t &free, size_t &total) const {
  return driver().Call("asking for free memory", driver().MemGetInfo, &free, &total);
}

DeviceMemory::~DeviceMemory() {
  if (!address)
    return;
  session.Wait().IgnoreError(); // what was enqueued may use it
  session.driver().MemFree.address(address);
}

absl::Status DeviceMemory::Allocate(size_t bytes) {
  const cuda::Driver &driver = session.driver();
  absl::Status status = driver.Call("allocating memory", driver.MemAlloc, &address, bytes);
  if (!status.ok())
    return status;
  return driver.Call("filling memory", driver.MemsetD8Async, address, 0xff, bytes,
                     session.stream());
}

absl::Status DeviceMemory::Clear(size_t bytes) {
  const cuda::Driver &driver = session.driver();
  return driver.Call("clearing memory", driver.MemsetD8Async, address, 0, bytes, session.stream());
}

absl::Status DeviceMemory::Put(size_t offset, const void *from, size_t bytes) {
  const cuda::Driver &driver = session.driver();
  return driver.Call("copying to the device", driver.MemcpyHtoDAsync, address + offset, from, bytes,
                     session.stream());
}

absl::Status DeviceMemory::Get(size_t offset, void *to, size_t bytes) {
  const cuda::Driver &driver = session.driver();
  absl::Status status = driver.Call("copying from the device", driver.MemcpyDtoHAsync, to,
                                    address + offset, bytes, session.stream());
  return status.ok() ? session.Wait() : status;
}

PinnedMemory::~PinnedMemory() {
  if (registered)
    session.driver().MemHostUnregister.address(memory);
  std::free(memory);
}

absl::Status PinnedMemory::Allocate(size_t bytes) {
  memory = static_cast<char *>(std::aligned_alloc(4096, bytes));
  if (!memory)
    return absl::ResourceExhaustedError("there is too little of the host's memory");
  std::memset(memory, 1, bytes);
  absl::Status status =
      session.driver().Call("registering the host's memory", session.driver().MemHostRegister,
                            static_cast<void *>(memory), bytes, 0u);
  registered = status.ok();
  return status;
}

} // namespace boa::gputest
