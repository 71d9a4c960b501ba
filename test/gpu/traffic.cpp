//===- traffic.cpp - Copies both ways, beside something else --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/gpu/traffic.h"

#include "test/gpu/session.h"

#include <algorithm>
#include <future>
#include <utility>

namespace boa::gputest {

/// Long enough that a wait for it costs little; together more than a last-level cache has.
static constexpr size_t kCopied = size_t(128) << 20;

absl::Status Traffic::Start() {
  std::promise<void> started;
  auto first = started.get_future();
  thread = std::thread([this, &started] {
    bool told = false;
    status = Copy([&] {
      if (!std::exchange(told, true))
        started.set_value();
    });
    if (!told)
      started.set_value();
  });
  first.wait();
  if (copied == 0)
    thread.join(); // it failed
  return copied > 0 ? absl::OkStatus() : status;
}

void Traffic::Stop() {
  stopped = true;
  if (thread.joinable())
    thread.join();
}

absl::Status Traffic::Copy(const std::function<void()> &done) {
  auto session = Session::Open();
  if (!session.ok())
    return session.status();
  const cuda::Driver &driver = (*session)->driver();
  size_t free = 0, total = 0;
  absl::Status status = (*session)->AskMemory(free, total);
  const size_t bytes = std::min(kCopied, free / 8) / 4096 * 4096;
  DeviceMemory device(**session);
  PinnedMemory host(**session);
  if (status.ok())
    status = device.Allocate(2 * bytes);
  if (status.ok())
    status = host.Allocate(2 * bytes);
  cuda::Stream back = nullptr;
  if (status.ok())
    status =
        driver.Call("making a stream", driver.StreamCreate, &back, unsigned(cuda::kNonBlocking));
  const auto at = reinterpret_cast<cuda::Pointer>(device.at(0));
  while (status.ok() && !stopped) {
    status = driver.Call("copying to the device", driver.MemcpyHtoDAsync, at,
                         static_cast<const void *>(host.at(0)), bytes, (*session)->stream());
    if (status.ok())
      status = driver.Call("copying from the device", driver.MemcpyDtoHAsync,
                           static_cast<void *>(host.at(bytes)), at + bytes, bytes, back);
    if (status.ok())
      status = (*session)->Wait();
    if (status.ok())
      status = driver.Call("waiting for the GPU", driver.StreamSynchronize, back);
    if (status.ok()) {
      copied += int64_t(2 * bytes);
      done();
    }
  }
  if (back)
    driver.StreamDestroy.address(back);
  return status;
}

} // namespace boa::gputest
