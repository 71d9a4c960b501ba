//===- driver.cpp - The driver's functions ----------------------*- C++ -*-===//
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

using namespace boa::fake;

namespace {

constexpr int64_t kStaticShared = 48 << 10, kMostShared = 227 << 10;
constexpr int64_t kMostArguments = 512; // 4 KiB of addresses
constexpr size_t kPage = 4096;

Driver &driver() { return Driver::Get(); }

std::string operator+(const char *what, const std::string &words) {
  return std::string(what) + words;
}

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

/// BeginCallIn's error is the sticky one: what gives something back does so nevertheless.
bool GivesBack(CUresult error, Context *context) {
  return context && context->error && error == context->error;
}

CUresult CheckHost(const char *what, const void *host) {
  for (Context &context : driver().contexts)
    if (context.memory && context.memory->Holds(reinterpret_cast<uint64_t>(host)))
      return Report(CUDA_ERROR_INVALID_VALUE,
                    what + std::string(": an address of device memory for the host's"));
  return CUDA_SUCCESS;
}

/// Number of what is pinned around all of these bytes; 0: they are pageable.
CUresult FindPinned(const char *what, const void *host, size_t bytes, uint64_t &number) {
  if (CUresult error = CheckHost(what, host))
    return error;
  uint64_t begin = reinterpret_cast<uint64_t>(host);
  number = driver().pinned.Find(begin, bytes).number;
  if (!number && driver().pinned.Touches(begin, bytes))
    return Report(CUDA_ERROR_INVALID_VALUE,
                  what + std::string(": of the host's bytes some are pinned and some are not"));
  return CUDA_SUCCESS;
}

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
    d.calls.clear();
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

BOA_FAKE_API CUresult cuDriverGetVersion(int *version) {
  Settings settings;
  if (std::string error = ParseSettings(getenv("BOA_FAKE_CUDA"), settings); !error.empty())
    return Report(CUDA_ERROR_INVALID_VALUE, "BOA_FAKE_CUDA: " + error);
  *version = settings.driver;
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuGetErrorName(CUresult error, const char **name) {
  switch (error) {
#define BOA_NAME(code)                                                                             \
  case code:                                                                                       \
    *name = #code;                                                                                 \
    return CUDA_SUCCESS;
    BOA_NAME(CUDA_SUCCESS)
    BOA_NAME(CUDA_ERROR_INVALID_VALUE)
    BOA_NAME(CUDA_ERROR_OUT_OF_MEMORY)
    BOA_NAME(CUDA_ERROR_NOT_INITIALIZED)
    BOA_NAME(CUDA_ERROR_NO_DEVICE)
    BOA_NAME(CUDA_ERROR_INVALID_DEVICE)
    BOA_NAME(CUDA_ERROR_INVALID_IMAGE)
    BOA_NAME(CUDA_ERROR_INVALID_CONTEXT)
    BOA_NAME(CUDA_ERROR_NO_BINARY_FOR_GPU)
    BOA_NAME(CUDA_ERROR_ECC_UNCORRECTABLE)
    BOA_NAME(CUDA_ERROR_INVALID_PTX)
    BOA_NAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    BOA_NAME(CUDA_ERROR_INVALID_HANDLE)
    BOA_NAME(CUDA_ERROR_NOT_FOUND)
    BOA_NAME(CUDA_ERROR_NOT_READY)
    BOA_NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
    BOA_NAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
    BOA_NAME(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
    BOA_NAME(CUDA_ERROR_LAUNCH_FAILED)
    BOA_NAME(CUDA_ERROR_NOT_PERMITTED)
    BOA_NAME(CUDA_ERROR_NOT_SUPPORTED)
    BOA_NAME(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
    BOA_NAME(CUDA_ERROR_UNKNOWN)
#undef BOA_NAME
  }
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

BOA_FAKE_API CUresult cuGetErrorString(CUresult error, const char **words) {
  switch (error) {
  case CUDA_SUCCESS:
    *words = "no error";
    break;
  case CUDA_ERROR_OUT_OF_MEMORY:
    *words = "out of memory";
    break;
  case CUDA_ERROR_ILLEGAL_ADDRESS:
    *words = "an illegal memory access was encountered";
    break;
  case CUDA_ERROR_LAUNCH_FAILED:
    *words = "unspecified launch failure";
    break;
  case CUDA_ERROR_NO_DEVICE:
    *words = "no CUDA-capable device is detected";
    break;
  default:
    if (cuGetErrorName(error, words))
      return CUDA_ERROR_INVALID_VALUE;
    *words = "an error of the fake driver";
  }
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
      {16, 4},                                 // MULTIPROCESSOR_COUNT
      {18, 0},                                 // INTEGRATED
      {19, 1},                                 // CAN_MAP_HOST_MEMORY
      {40, 3},                                 // ASYNC_ENGINE_COUNT
      {41, 1},                                 // UNIFIED_ADDRESSING
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
    primary.memory = std::make_unique<DeviceMemory>(d.settings.memory);
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
  std::vector<std::shared_ptr<Stream>> retired;
  {
    std::lock_guard<std::mutex> context_lock(context.mutex);
    retired.swap(context.retired);
  }
  retired.clear();
  context.completions.clear();
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

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

BOA_FAKE_API CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  *total = context->memory->capacity;
  *free = *total - context->memory->ranges.Bytes();
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
  if (!driver().pinned.Add(reinterpret_cast<uint64_t>(host), bytes, false))
    return Report(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                  "cuMemHostRegister_v2: some of it is pinned already");
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuMemHostUnregister(void *host) {
  return Unpin(__func__, host, false, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

BOA_FAKE_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                           CUstream stream) {
  Context *context;
  uint64_t pinned = 0;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (CUresult error = FindPinned(__func__, from, bytes, pinned))
    return error;
  std::vector<DeviceRange> ranges = {{to, bytes, "where to"}};
  if (pinned)
    return Enqueue(__func__, stream, ranges, [=](const std::vector<char *> &data) -> std::string {
      if (!driver().pinned.Has(pinned))
        return "cuMemcpyHtoDAsync_v2: the host's memory was unpinned while the copy "
               "waited in its stream";
      memcpy(data[0], from, bytes);
      return {};
    });
  // Of pageable memory there is a copy when the call returns.
  auto *begin = static_cast<const char *>(from);
  return Enqueue(__func__, stream, ranges,
                 [staged = std::vector<char>(begin, begin + bytes)](
                     const std::vector<char *> &data) -> std::string {
                   std::copy(staged.begin(), staged.end(), data[0]);
                   return {};
                 });
}

BOA_FAKE_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                                           CUstream handle) {
  Context *context;
  uint64_t pinned = 0;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (CUresult error = FindPinned(__func__, to, bytes, pinned))
    return error;
  CUresult error = Enqueue(
      __func__, handle, {{from, bytes, "where from"}},
      [=](const std::vector<char *> &data) -> std::string {
        if (pinned && !driver().pinned.Has(pinned))
          return "cuMemcpyDtoHAsync_v2: the host's memory was unpinned while the copy waited "
                 "in its stream";
        memcpy(to, data[0], bytes);
        return {};
      });
  if (error || pinned)
    return error;
  // To pageable memory it has happened when the call returns.
  std::shared_ptr<Stream> stream;
  if (CUresult missing = FindStream(__func__, handle, context, stream))
    return missing;
  stream->Wait();
  return context->error;
}

BOA_FAKE_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                           CUstream stream) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (to < from + bytes && from < to + bytes)
    return Report(CUDA_ERROR_INVALID_VALUE, "cuMemcpyDtoDAsync_v2: the ranges overlap");
  return Enqueue(__func__, stream, {{to, bytes, "where to"}, {from, bytes, "where from"}},
                 [=](const std::vector<char *> &data) -> std::string {
                   memcpy(data[0], data[1], bytes);
                   return {};
                 });
}

BOA_FAKE_API CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t bytes,
                                      CUstream stream) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  return Enqueue(__func__, stream, {{address, bytes, "where to"}},
                 [=](const std::vector<char *> &data) -> std::string {
                   memset(data[0], value, bytes);
                   return {};
                 });
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

BOA_FAKE_API CUresult cuStreamCreate(CUstream *handle, unsigned flags) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (flags & ~CU_STREAM_NON_BLOCKING)
    return Report(CUDA_ERROR_INVALID_VALUE, "cuStreamCreate: unknown flags");
  const Settings &settings = driver().settings;
  uint64_t seed = settings.seed * 1000003 + ++driver().streams_made;
  *handle = driver().streams.Add(std::make_shared<Stream>(context, seed, settings.delay_us));
  return CUDA_SUCCESS;
}

// What it was given happens nevertheless.
BOA_FAKE_API CUresult cuStreamDestroy_v2(CUstream handle) {
  Context *context = nullptr;
  CUresult error = BeginCallIn(__func__, context);
  if (error && !GivesBack(error, context))
    return error;
  std::shared_ptr<Stream> stream;
  if (CUresult missing = FindStream(__func__, handle, context, stream))
    return missing;
  driver().streams.Remove(handle);
  stream->Close();
  std::lock_guard<std::mutex> lock(context->mutex);
  context->retired.push_back(std::move(stream));
  return error;
}

BOA_FAKE_API CUresult cuStreamSynchronize(CUstream handle) {
  Context *context;
  std::shared_ptr<Stream> stream;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (CUresult error = FindStream(__func__, handle, context, stream))
    return error;
  stream->Wait();
  return context->error;
}

BOA_FAKE_API CUresult cuStreamQuery(CUstream handle) {
  Context *context;
  std::shared_ptr<Stream> stream;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (CUresult error = FindStream(__func__, handle, context, stream))
    return error;
  if (!stream->Idle())
    return CUDA_ERROR_NOT_READY;
  return context->error;
}

BOA_FAKE_API CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  Context *context;
  CUresult error;
  std::shared_ptr<Stream> stream;
  if ((error = BeginCallIn(__func__, context)) ||
      (error = FindStream(__func__, handle, context, stream)))
    return error;
  auto event = FindIn(__func__, driver().events, event_handle, context, error);
  if (!event)
    return error;
  if (flags)
    return Report(CUDA_ERROR_INVALID_VALUE, "cuStreamWaitEvent: flags must be 0");
  // What was recorded last before this call; nothing, where nothing was.
  Completion *last = event->last;
  if (!last)
    return CUDA_SUCCESS;
  Stream::Work work;
  work.what = __func__;
  work.run = [last]() -> std::string {
    last->Wait();
    return {};
  };
  stream->Push(std::move(work));
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuLaunchHostFunc(CUstream handle, void (*function)(void *), void *data) {
  Context *context;
  std::shared_ptr<Stream> stream;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (CUresult error = FindStream(__func__, handle, context, stream))
    return error;
  Stream::Work work;
  work.what = __func__;
  work.inject = LateInjection(__func__);
  work.run = [=]() -> std::string {
    InHostFunction() = true;
    function(data);
    InHostFunction() = false;
    return {};
  };
  stream->Push(std::move(work));
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuEventCreate(CUevent *handle, unsigned flags) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  if (flags & ~(CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC))
    return Report(CUDA_ERROR_INVALID_VALUE, "cuEventCreate: unknown flags");
  auto event = std::make_shared<Event>();
  event->context = context;
  event->timed = !(flags & CU_EVENT_DISABLE_TIMING);
  *handle = driver().events.Add(std::move(event));
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuEventDestroy_v2(CUevent handle) {
  Context *context = nullptr;
  CUresult error = BeginCallIn(__func__, context);
  if (error && !GivesBack(error, context))
    return error;
  CUresult missing;
  if (!FindIn(__func__, driver().events, handle, context, missing))
    return missing;
  driver().events.Remove(handle);
  return error;
}

BOA_FAKE_API CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  Context *context;
  CUresult error;
  std::shared_ptr<Stream> stream;
  if ((error = BeginCallIn(__func__, context)) ||
      (error = FindStream(__func__, stream_handle, context, stream)))
    return error;
  auto event = FindIn(__func__, driver().events, handle, context, error);
  if (!event)
    return error;
  Completion *completion;
  {
    std::lock_guard<std::mutex> lock(context->mutex);
    completion = &context->completions.emplace_back();
  }
  event->last = completion;
  Stream::Work work;
  work.what = __func__;
  work.always = true; // who waits for it must end
  work.run = [completion]() -> std::string {
    completion->Finish();
    return {};
  };
  stream->Push(std::move(work));
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuEventSynchronize(CUevent handle) {
  Context *context;
  CUresult error;
  if ((error = BeginCallIn(__func__, context)))
    return error;
  auto event = FindIn(__func__, driver().events, handle, context, error);
  if (!event)
    return error;
  if (Completion *last = event->last)
    last->Wait();
  return context->error;
}

BOA_FAKE_API CUresult cuEventQuery(CUevent handle) {
  Context *context;
  CUresult error;
  if ((error = BeginCallIn(__func__, context)))
    return error;
  auto event = FindIn(__func__, driver().events, handle, context, error);
  if (!event)
    return error;
  Completion *last = event->last;
  if (last && !last->Over())
    return CUDA_ERROR_NOT_READY;
  return context->error;
}

static CUresult ElapsedTime(const char *what, float *ms, CUevent begin, CUevent end) {
  Context *context;
  CUresult error;
  if ((error = BeginCallIn(what, context)))
    return error;
  int64_t ns[2];
  CUevent handles[] = {begin, end};
  for (int i = 0; i < 2; ++i) {
    auto event = FindIn(what, driver().events, handles[i], context, error);
    if (!event)
      return error;
    Completion *last = event->last;
    if (!last || !event->timed)
      return Report(CUDA_ERROR_INVALID_HANDLE,
                    what + std::string(last ? ": of an event without timing"
                                            : ": of an event that was never recorded"));
    if (!last->Over(&ns[i]))
      return CUDA_ERROR_NOT_READY;
  }
  *ms = float((ns[1] - ns[0]) * 1e-6);
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end) {
  return ElapsedTime(__func__, ms, begin, end);
}

BOA_FAKE_API CUresult cuEventElapsedTime_v2(float *ms, CUevent begin, CUevent end) {
  return ElapsedTime(__func__, ms, begin, end);
}

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

BOA_FAKE_API CUresult cuModuleLoadDataEx(CUmodule *handle, const void *image, unsigned count,
                                         int *options, void **values) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  const auto *emulated = static_cast<const boa_emulated_module *>(image);
  if (strncmp(emulated->magic, BOA_EMULATED_MAGIC, sizeof BOA_EMULATED_MAGIC) != 0) {
    const char words[] = "the fake driver runs emulated kernels alone";
    size_t size = 0;
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
        size = reinterpret_cast<uintptr_t>(values[i]);
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER && size)
        snprintf(static_cast<char *>(values[i]), size, "%s", words);
    return CUDA_ERROR_INVALID_PTX;
  }
  for (int64_t i = 0; i < emulated->count; ++i) {
    const boa_emulated_function &function = emulated->functions[i];
    if (!function.name || !function.body || function.shared_bytes < 0 ||
        function.shared_bytes > kMostShared || function.arguments < 0 ||
        function.arguments > kMostArguments)
      return Report(CUDA_ERROR_INVALID_IMAGE,
                    "cuModuleLoadDataEx: function " + std::to_string(i) +
                        " of the module is not laid out as emulated.h says");
  }
  auto module = std::make_shared<Module>();
  module->context = context;
  module->emulated = emulated;
  *handle = driver().modules.Add(std::move(module));
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuModuleUnload(CUmodule handle) {
  Context *context = nullptr;
  CUresult error = BeginCallIn(__func__, context);
  if (error && !GivesBack(error, context))
    return error;
  CUresult missing;
  if (!FindIn(__func__, driver().modules, handle, context, missing))
    return missing;
  driver().modules.Remove(handle);
  return error;
}

BOA_FAKE_API CUresult cuModuleGetFunction(CUfunction *handle, CUmodule module_handle,
                                          const char *name) {
  Context *context;
  CUresult error;
  if ((error = BeginCallIn(__func__, context)))
    return error;
  auto module = FindIn(__func__, driver().modules, module_handle, context, error);
  if (!module)
    return error;
  for (int64_t i = 0; i < module->emulated->count; ++i) {
    const boa_emulated_function &emulated = module->emulated->functions[i];
    if (strcmp(emulated.name, name) != 0)
      continue;
    auto function = std::make_shared<Function>();
    function->context = context;
    function->module = module_handle;
    function->emulated = &emulated;
    function->dynamic_limit = kStaticShared - emulated.shared_bytes;
    *handle = driver().functions.Add(std::move(function));
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

/// The function, of a module that is loaded; or null and `error`, which was reported.
static std::shared_ptr<Function> FindFunction(const char *what, CUfunction handle, Context *context,
                                              CUresult &error) {
  auto function = FindIn(what, driver().functions, handle, context, error);
  if (function && !driver().modules.Has(function->module)) {
    error =
        Report(CUDA_ERROR_INVALID_HANDLE, what + std::string(": of a module that was unloaded"));
    return nullptr;
  }
  return function;
}

BOA_FAKE_API CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
  Context *context;
  CUresult error;
  if ((error = BeginCallIn(__func__, context)))
    return error;
  auto function = FindFunction(__func__, handle, context, error);
  if (!function)
    return error;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return Report(CUDA_ERROR_INVALID_VALUE,
                  "cuFuncSetAttribute: the fake has no attribute " + std::to_string(attribute));
  if (value < 0 || value + function->emulated->shared_bytes > kMostShared)
    return CUDA_ERROR_INVALID_VALUE;
  function->dynamic_limit = value;
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y,
                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned shared_bytes,
                                     CUstream stream_handle, void **arguments, void **extra) {
  Context *context;
  CUresult error;
  std::shared_ptr<Stream> stream;
  if ((error = BeginCallIn(__func__, context)) ||
      (error = FindStream(__func__, stream_handle, context, stream)))
    return error;
  auto function = FindFunction(__func__, handle, context, error);
  if (!function)
    return error;
  const boa_emulated_function &emulated = *function->emulated;
  std::string kernel = std::string("cuLaunchKernel of '") + emulated.name + "': ";
  if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z || grid_x > 0x7fffffff ||
      grid_y > 65535 || grid_z > 65535 || block_z > 64 ||
      int64_t(block_x) * block_y * block_z > 1024)
    return Report(CUDA_ERROR_INVALID_VALUE,
                  kernel + "a grid or a block of a size that no device has");
  if (shared_bytes > function->dynamic_limit || emulated.shared_bytes > kStaticShared)
    return Report(CUDA_ERROR_INVALID_VALUE,
                  kernel + "more shared memory than the function may have");
  if (extra || (emulated.arguments && !arguments))
    return Report(CUDA_ERROR_INVALID_VALUE, kernel + "arguments are given by their addresses");
  std::vector<DeviceRange> ranges;
  for (int64_t i = 0; i < emulated.arguments; ++i)
    ranges.push_back(
        {*static_cast<CUdeviceptr *>(arguments[i]), 1, kernel + "argument " + std::to_string(i)});
  Launch launch;
  launch.function = &emulated;
  const unsigned sizes[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
  for (int i = 0; i < 3; ++i) {
    launch.grid[i] = sizes[i];
    launch.block[i] = sizes[i + 3];
  }
  launch.dynamic_bytes = shared_bytes;
  launch.seed = stream->NextSeed();
  launch.threads = driver().settings.threads;
  return Enqueue(__func__, stream_handle, std::move(ranges),
                 [=, module = function->module](const std::vector<char *> &data) -> std::string {
                   if (!driver().modules.Has(module))
                     return kernel + "its module was unloaded while it waited in its stream";
                   std::vector<const void *> addresses;
                   for (char *const &address : data)
                     addresses.push_back(&address);
                   Launch now = launch;
                   now.args = const_cast<void *const *>(addresses.data());
                   return RunLaunch(now);
                 });
}

} // extern "C"
