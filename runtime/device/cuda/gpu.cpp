//===- gpu.cpp - A GPU with the program's code and memory on it -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/gpu.h"

#include "runtime/support/interrupt.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

namespace boa::cuda {

/// What PTX is made for (passes/target/cuda/EmbedImage.cpp): sm_80.
static constexpr int kLeastMajor = 8;

//===----------------------------------------------------------------------===//
// The GPU
//===----------------------------------------------------------------------===//

absl::StatusOr<std::unique_ptr<Gpu>> Gpu::Open() {
  auto opened = Driver::Open();
  if (!opened.ok())
    return opened.status();
  std::unique_ptr<Gpu> gpu(new Gpu(*std::move(opened)));
  const Driver &driver = gpu->driver();
  const char *const looking = "looking for a GPU";
  int count = 0;
  char name[256] = "";
  absl::Status status = driver.Call(looking, driver.DeviceGetCount, &count);
  if (status.ok() && count == 0)
    return driver.Error(kNoDevice, driver.DeviceGetCount.symbol, looking);
  if (status.ok())
    status = driver.Call(looking, driver.DeviceGet, &gpu->ordinal, 0);
  if (status.ok())
    status = driver.Call(looking, driver.DeviceGetName, name, int(sizeof(name)), gpu->ordinal);
  auto ask = [&](int attribute, int &value) {
    if (status.ok())
      status = driver.Call(looking, driver.DeviceGetAttribute, &value, attribute, gpu->ordinal);
  };
  ask(kCapabilityMajor, gpu->major);
  ask(kCapabilityMinor, gpu->minor);
  ask(kMaxSharedBytesOptin, gpu->most.shared_bytes);
  for (int i = 0; i < 3; ++i) {
    ask(kMaxBlock + i, gpu->most.block[i]);
    ask(kMaxGrid + i, gpu->most.grid[i]);
  }
  gpu->name = name;
  if (status.ok() && gpu->major < kLeastMajor)
    return absl::FailedPreconditionError(
        absl::StrCat(name, " is of compute capability ", gpu->major, ".", gpu->minor,
                     ": `device cuda` needs ", kLeastMajor, ".0 (A100) or newer"));
  if (status.ok())
    status =
        driver.Call("starting the GPU", driver.DevicePrimaryCtxRetain, &gpu->context, gpu->ordinal);
  if (status.ok())
    status = gpu->Enter();
  if (status.ok())
    status =
        driver.Call("asking for free memory", driver.MemGetInfo, &gpu->free_at_first, &gpu->total);
  if (!status.ok())
    return status;
  return gpu;
}

Gpu::~Gpu() {
  if (module)
    table->ModuleUnload.address(module);
  if (context)
    table->DevicePrimaryCtxRelease.address(ordinal);
}

absl::Status Gpu::Enter() const {
  return table->Call("naming the GPU to a thread", table->CtxSetCurrent, context);
}

std::string Gpu::Describe() const { return absl::StrCat(name, " (sm_", major, minor, ")"); }

absl::Status Gpu::Load(const boa_device_image &image) {
  std::string log(8192, '\0');
  int options[] = {kErrorLogBuffer, kErrorLogBufferBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  const Result result = table->ModuleLoadDataEx.address(&module, image.module, 2, options, values);
  if (result != kSuccess) {
    module = nullptr;
    absl::Status status = table->Error(result, table->ModuleLoadDataEx.symbol,
                                       absl::StrCat("translating the program for ", Describe()));
    log.resize(strnlen(log.data(), log.size()));
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), log.empty() ? "" : "\n", log));
  }
  loaded.resize(image.count);
  absl::Status status;
  int most_local = 0;
  for (int64_t i = 0; i < image.count && status.ok(); ++i) {
    LoadedFunction &function = loaded[i];
    const char *const name = function.name = image.functions[i];
    status = table->Call(name, table->ModuleGetFunction, &function.handle, module, name);
    // It may not be on the GPU before it is asked after: launched first, it would be then.
    int local = 0;
    for (auto [attribute, value] : {std::pair<int, int *>{kMaxThreads, &function.most_threads},
                                    {kOwnSharedBytes, &function.shared_bytes},
                                    {kLocalBytes, &local}})
      if (status.ok())
        status = table->Call(name, table->FuncGetAttribute, value, attribute, function.handle);
    most_local = std::max(most_local, local);
  }
  return status.ok() ? ReserveLocal(size_t(most_local)) : status;
}

/// For all threads that may run at once, so many bytes each. The driver would take it when a
/// function is first launched, when the program has the rest.
absl::Status Gpu::ReserveLocal(size_t bytes) const {
  const char *const doing = "reserving local memory for the program's functions";
  size_t there_is = 0;
  absl::Status status = table->Call(doing, table->CtxGetLimit, &there_is, kStackSize);
  return status.ok() && there_is < bytes ? table->Call(doing, table->CtxSetLimit, kStackSize, bytes)
                                         : status;
}

absl::Status Gpu::CheckFree(int64_t bytes) const {
  size_t free = 0, total = 0;
  absl::Status status = table->Call("asking for free memory", table->MemGetInfo, &free, &total);
  if (!status.ok() || size_t(bytes) <= free)
    return status;
  // Others may have given some back meanwhile.
  const size_t code = free_at_first - std::min(free, free_at_first);
  return absl::ResourceExhaustedError(absl::StrCat(
      "the program takes ", FormatBytes(double(bytes)), " of device memory, but of the ",
      FormatBytes(double(total)), " of ", Describe(), " ", FormatBytes(double(free)),
      " are free: CUDA itself and other processes have ", FormatBytes(double(total - free - code)),
      ", the program's code and its libraries ", FormatBytes(double(code)),
      "; end what else uses the GPU (nvidia-smi lists it), or compile the program with less in "
      "`device cuda { memory = ... }`"));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

absl::Status GpuMemory::Allocate(const int64_t (&bytes)[2]) {
  if (absl::Status status = AllocateDevice(bytes[BOA_DEVICE]); !status.ok())
    return status;
  arena_bytes = bytes[BOA_HOST];
  if (absl::Status status = MapArena(arena_bytes, arena); !status.ok())
    return status;
  return Register();
}

absl::Status GpuMemory::Register() {
  const Driver &driver = gpu.driver();
  const char *const registering = "registering the host's memory with the GPU";
  while (registered < arena_bytes) {
    if (Interrupted())
      return Interruption();
    const int64_t bytes = std::min(part, arena_bytes - registered);
    const Result result = driver.MemHostRegister.address(arena + registered, size_t(bytes), 0);
    // The host's memory is used up, or the part that the process may have.
    if (result == kOutOfMemory)
      return driver.Error(
          result, driver.MemHostRegister.symbol, registering,
          absl::StrCat("the system locks no more than ", FormatBytes(double(registered)), " of ",
                       FormatBytes(double(arena_bytes)),
                       " in memory: allow the process, or its container, more (ulimit -l, "
                       "--ulimit memlock=-1), or compile the program with less in `host { memory = "
                       "... }`"));
    if (result != kSuccess)
      return driver.Error(result, driver.MemHostRegister.symbol, registering);
    registered += bytes;
  }
  return absl::OkStatus();
}

absl::Status GpuMemory::AllocateDevice(int64_t bytes) {
  if (bytes == 0)
    return absl::OkStatus();
  const Driver &driver = gpu.driver();
  const int64_t whole = bytes + alignment - 1; // nothing more than 256 bytes is promised
  absl::Status status = gpu.CheckFree(whole);
  if (status.ok())
    status =
        driver.Call("allocating the device's memory", driver.MemAlloc, &allocated, size_t(whole));
  if (!status.ok())
    return status;
  device = (allocated + Pointer(alignment) - 1) / Pointer(alignment) * Pointer(alignment);
  device_bytes = bytes;
  status = driver.Call("clearing the device's memory", driver.MemsetD8Async, device, 0,
                       size_t(bytes), stream);
  return status.ok() ? driver.Call("clearing the device's memory", driver.StreamSynchronize, stream)
                     : status;
}

GpuMemory::~GpuMemory() {
  const Driver &driver = gpu.driver();
  driver.StreamSynchronize.address(stream); // it may be at clearing it
  for (int64_t at = 0; at < registered; at += part)
    driver.MemHostUnregister.address(arena + at);
  UnmapArena(arena, arena_bytes);
  if (allocated)
    driver.MemFree.address(allocated);
}

char *GpuMemory::Address(Side side, Location where) const {
  if (where.space == BOA_DEVICE)
    return side == Side::host ? nullptr : reinterpret_cast<char *>(device) + where.offset;
  return where.space < 0 || side == Side::device ? nullptr : arena + where.offset;
}

absl::Status GpuMemory::Copy(Location from, Location to, int64_t bytes, Stream on) const {
  const Driver &driver = gpu.driver();
  auto at = [&](Location where) { return reinterpret_cast<Pointer>(Address(Side::copies, where)); };
  if (from.space == BOA_DEVICE && to.space == BOA_DEVICE)
    return driver.Call("copying on the device", driver.MemcpyDtoDAsync, at(to), at(from),
                       size_t(bytes), on);
  Location &host = from.space == BOA_HOST ? from : to;
  absl::Status status;
  while (bytes > 0 && status.ok()) {
    const int64_t now = std::min(bytes, part - host.offset % part);
    char *const address = Address(Side::copies, host);
    status = &host == &from ? driver.Call("copying to the device", driver.MemcpyHtoDAsync, at(to),
                                          address, size_t(now), on)
                            : driver.Call("copying from the device", driver.MemcpyDtoHAsync,
                                          address, at(from), size_t(now), on);
    from.offset += now;
    to.offset += now;
    bytes -= now;
  }
  return status;
}

} // namespace boa::cuda
