//===- driver.cpp - Contexts and memory ------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the documentation of the driver says of a function holds here; what it leaves
// undefined is refused and said on stderr.
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/context.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <utility>

using namespace boa::fake;

namespace {

constexpr size_t kPage = 4096;

Driver &driver() { return Driver::Get(); }

/// What a context holds, for those who forgot it; empty: nothing.
std::string Left(const Context &context) {
  std::string left;
  auto add = [&](size_t count, const char *name) {
    if (count)
      left += (left.empty() ? "" : ", ") + std::to_string(count) + " of " + name;
  };
  add(context.memory->ranges.Count(), "cuMemAlloc");
  add(driver().streams.Of(&context).size(), "cuStreamCreate");
  add(driver().events.Of(&context).size(), "cuEventCreate");
  add(driver().modules.Of(&context).size(), "cuModuleLoadDataEx");
  add(driver().graphs.Of(&context).size(), "cuStreamEndCapture");
  add(driver().execs.Of(&context).size(), "cuGraphInstantiateWithFlags");
  return left;
}

std::string PinnedLeft() {
  size_t count = driver().pinned.Count();
  return count ? std::to_string(count) + " ranges of pinned memory" : "";
}

/// After main: what was said, and what was left, make a success into a failure.
void AtExit(int status, void *) {
  if (status != 0)
    return;
  bool pinned = false;
  for (Context &context : driver().contexts)
    if (context.memory) {
      pinned = true;
      if (std::string left = Left(context); !left.empty())
        Report(0, "left at exit: " + left);
    }
  if (pinned)
    if (std::string left = PinnedLeft(); !left.empty())
      Report(0, "left at exit: " + left);
  if (!*boa_fake_cuda_reports())
    return;
  fflush(nullptr);
  _exit(86);
}

bool IsDevice(CUdevice device) { return device >= 0 && device < driver().settings.devices; }

} // namespace

extern "C" {

//===----------------------------------------------------------------------===//
// The driver, devices, contexts
//===----------------------------------------------------------------------===//

BOA_FAKE_API CUresult cuInit(unsigned flags) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  bool used = std::any_of(std::begin(d.contexts), std::end(d.contexts),
                          [](const Context &context) { return context.retained > 0; });
  if (!used) {
    if (std::string error = ParseSettings(getenv("BOA_FAKE_CUDA"), d.settings); !error.empty())
      return Report(CUDA_ERROR_INVALID_VALUE, "BOA_FAKE_CUDA: " + error);
    std::lock_guard<std::mutex> calls_lock(d.calls_mutex);
    d.calls = {{"cuDriverGetVersion", std::exchange(d.version_calls, 0)}};
    d.late_calls.clear();
    d.streams_made = 0;
  }
  if (flags)
    return Report(CUDA_ERROR_INVALID_VALUE, "cuInit: flags must be 0");
  static const int registered = on_exit(AtExit, nullptr);
  (void)registered;
  d.initialized = d.settings.devices > 0;
  if (!d.initialized)
    return CUDA_ERROR_NO_DEVICE;
  return BeginCall(__func__);
}

// May come before cuInit, so it fails by what is said now.
BOA_FAKE_API CUresult cuDriverGetVersion(int *version) {
  Settings settings;
  if (std::string error = ParseSettings(getenv("BOA_FAKE_CUDA"), settings); !error.empty())
    return Report(CUDA_ERROR_INVALID_VALUE, "BOA_FAKE_CUDA: " + error);
  auto it = settings.fail.find(__func__);
  std::lock_guard<std::mutex> lock(driver().calls_mutex);
  if (it != settings.fail.end() && ++driver().version_calls == it->second.call) {
    driver().version_calls = 0; // there will be no cuInit
    return it->second.error;
  }
  *version = settings.driver;
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuDeviceGetCount(int *count) {
  if (CUresult error = BeginCall(__func__))
    return error;
  *count = driver().settings.devices;
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (CUresult error = BeginCall(__func__))
    return error;
  if (!IsDevice(ordinal))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
  if (CUresult error = BeginCall(__func__))
    return error;
  if (!IsDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, bytes, "Fake GPU %d", device);
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  if (CUresult error = BeginCall(__func__))
    return error;
  if (!IsDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  const std::pair<int, int> values[] = {
      {1, 1024},                               // MAX_THREADS_PER_BLOCK
      {2, 1024},                               // MAX_BLOCK_DIM_X
      {3, 1024},                               // _Y
      {4, 64},                                 // _Z
      {5, 2147483647},                         // MAX_GRID_DIM_X
      {6, 65535},                              // _Y
      {7, 65535},                              // _Z
      {8, int(kStaticShared)},                 // MAX_SHARED_MEMORY_PER_BLOCK
      {10, 32},                                // WARP_SIZE
      {13, 1000000},                           // CLOCK_RATE, in kHz
      {16, 4},                                 // MULTIPROCESSOR_COUNT
      {18, 0},                                 // INTEGRATED
      {19, 1},                                 // CAN_MAP_HOST_MEMORY
      {20, 0},                                 // COMPUTE_MODE
      {33, 1},                                 // PCI_BUS_ID
      {34, 0},                                 // PCI_DEVICE_ID
      {36, 1000000},                           // MEMORY_CLOCK_RATE, in kHz
      {37, 64},                                // GLOBAL_MEMORY_BUS_WIDTH, in bits
      {38, 1 << 20},                           // L2_CACHE_SIZE
      {40, 3},                                 // ASYNC_ENGINE_COUNT
      {41, 1},                                 // UNIFIED_ADDRESSING
      {50, 0},                                 // PCI_DOMAIN_ID
      {75, driver().settings.capability / 10}, // COMPUTE_CAPABILITY_MAJOR
      {76, driver().settings.capability % 10}, // _MINOR
      {91, 1},                                 // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
      {97, int(kMostShared)},                  // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
      {99, 1},                                 // HOST_REGISTER_SUPPORTED
  };
  for (auto [known, v] : values)
    if (known == attribute) {
      *value = v;
      return CUDA_SUCCESS;
    }
  return Report(CUDA_ERROR_INVALID_VALUE,
                "cuDeviceGetAttribute: the fake has no attribute " + std::to_string(attribute));
}

BOA_FAKE_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  if (CUresult error = BeginCall(__func__))
    return error;
  if (!IsDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  *bytes = driver().settings.memory;
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  if (CUresult error = BeginCall(__func__))
    return error;
  if (!IsDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  Context &primary = d.contexts[device];
  if (primary.retained++ == 0) {
    primary.device = device;
    primary.error = 0;
    primary.stack = kFirstStack;
    primary.memory = std::make_unique<DeviceMemory>(d.settings.memory);
    if (!primary.memory->Take(d.settings.overhead)) {
      primary.memory.reset();
      primary.retained = 0;
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  *context = reinterpret_cast<CUcontext>(&primary);
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  if (CUresult error = BeginCall(__func__))
    return error;
  if (!IsDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  Context &context = d.contexts[device];
  if (!context.retained)
    return Report(CUDA_ERROR_INVALID_CONTEXT,
                  "cuDevicePrimaryCtxRelease_v2: more often than retained");
  if (--context.retained)
    return CUDA_SUCCESS;
  std::string left = Left(context);
  bool last = std::none_of(std::begin(d.contexts), std::end(d.contexts),
                           [](const Context &other) { return other.retained > 0; });
  if (last)
    if (std::string pinned = PinnedLeft(); !pinned.empty())
      left += (left.empty() ? "" : ", ") + pinned;
  if (!left.empty())
    Report(0, "left when the context was released: " + left);
  // As the driver does: all of it goes with the context.
  d.streams.Drop(&context); // each ends its work
  d.events.Drop(&context);
  d.functions.Drop(&context);
  d.modules.Drop(&context);
  d.graphs.Drop(&context);
  d.execs.Drop(&context);
  std::vector<std::shared_ptr<Stream>> retired;
  {
    std::lock_guard<std::mutex> context_lock(context.mutex);
    retired.swap(context.retired);
  }
  retired.clear();
  context.completions.clear();
  context.captured.clear();
  if (last)
    d.pinned.Clear();
  context.memory.reset();
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuCtxSetCurrent(CUcontext context) {
  if (CUresult error = BeginCall(__func__))
    return error;
  auto *one = reinterpret_cast<Context *>(context);
  if (one && (one < driver().contexts || one >= driver().contexts + kMostDevices || !one->memory))
    return Report(CUDA_ERROR_INVALID_CONTEXT, "cuCtxSetCurrent: there is no such context");
  CurrentContext() = one;
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuCtxGetCurrent(CUcontext *context) {
  if (CUresult error = BeginCall(__func__))
    return error;
  *context = reinterpret_cast<CUcontext>(CurrentContext());
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuCtxSynchronize(void) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  for (const std::shared_ptr<Stream> &stream : driver().streams.Of(context))
    stream->Wait();
  return context->error;
}

BOA_FAKE_API CUresult cuCtxGetLimit(size_t *value, int limit) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (limit != CU_LIMIT_STACK_SIZE)
    return Report(CUDA_ERROR_INVALID_VALUE, "cuCtxGetLimit: the fake has the stack's alone");
  *value = size_t(context->stack);
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuCtxSetLimit(int limit, size_t value) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (limit != CU_LIMIT_STACK_SIZE)
    return Report(CUDA_ERROR_INVALID_VALUE, "cuCtxSetLimit: the fake has the stack's alone");
  return context->GrowStack(int64_t(value)) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

BOA_FAKE_API CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  *total = context->memory->capacity;
  *free = context->memory->Left();
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (!bytes)
    return Report(CUDA_ERROR_INVALID_VALUE, "cuMemAlloc_v2: of 0 bytes");
  *address = context->memory->Allocate(bytes);
  return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

BOA_FAKE_API CUresult cuMemFree_v2(CUdeviceptr address) {
  Context *context = nullptr;
  CUresult error = BeginCallIn(__func__, context);
  if (error && !GivesBack(error, context))
    return error;
  if (address && !context->memory->Free(address))
    return Report(CUDA_ERROR_INVALID_VALUE, "cuMemFree_v2: no allocation begins there: " +
                                                context->memory->Outside(address, 0));
  return error;
}

BOA_FAKE_API CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (!bytes)
    return Report(CUDA_ERROR_INVALID_VALUE, "cuMemHostAlloc: of 0 bytes");
  size_t whole = (bytes + kPage - 1) / kPage * kPage;
  *host = aligned_alloc(kPage, whole);
  if (!*host)
    return CUDA_ERROR_OUT_OF_MEMORY;
  memset(*host, 0xff, whole);
  driver().pinned.Add(reinterpret_cast<uint64_t>(*host), bytes, true);
  return CUDA_SUCCESS;
}

/// Of cuMemHostAlloc or of cuMemHostRegister, by `ours`.
static CUresult Unpin(const char *what, void *host, bool ours, CUresult unknown) {
  Context *context = nullptr;
  CUresult error = BeginCallIn(what, context);
  if (error && !GivesBack(error, context))
    return error;
  uint64_t begin = reinterpret_cast<uint64_t>(host);
  Ranges::Range range = driver().pinned.Find(begin, 0);
  if (!range.number || range.begin != begin || range.ours != ours)
    return Report(unknown, what + std::string(": what begins there is not of its kind"));
  driver().pinned.Remove(begin);
  if (ours)
    free(host);
  return error;
}

BOA_FAKE_API CUresult cuMemFreeHost(void *host) {
  return Unpin(__func__, host, true, CUDA_ERROR_INVALID_VALUE);
}

BOA_FAKE_API CUresult cuMemHostRegister_v2(void *host, size_t bytes, unsigned) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (!host || !bytes)
    return Report(CUDA_ERROR_INVALID_VALUE, "cuMemHostRegister_v2: of 0 bytes");
  if (CUresult error = CheckHost(__func__, host))
    return error;
  if (int64_t(bytes) > driver().settings.register_once)
    return CUDA_ERROR_INVALID_VALUE;
  if (driver().pinned.Bytes() + bytes > uint64_t(driver().settings.registered))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!driver().pinned.Add(reinterpret_cast<uint64_t>(host), bytes, false))
    return Report(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                  "cuMemHostRegister_v2: some of it is pinned already");
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuMemHostUnregister(void *host) {
  return Unpin(__func__, host, false, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

} // extern "C"
