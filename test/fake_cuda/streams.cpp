//===- streams.cpp - Streams, events, copies and launches -------*- C++ -*-===//
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

#include <chrono>
#include <cstring>
#include <thread>

using namespace boa::fake;

namespace {

Driver &driver() { return Driver::Get(); }

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
  if (RefuseCapturing(*stream))
    return Report(CUDA_ERROR_INVALID_HANDLE, "cuStreamDestroy_v2: of a stream that captures");
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
  if (CUresult error = RefuseCapturing(*stream))
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
  if (CUresult error = RefuseCapturing(*stream))
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
      (error = FindStream(__func__, handle, context, stream)) || (error = RefuseCapturing(*stream)))
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
  work.waits = true;
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
  return Give(*stream, __func__, [=]() -> std::string {
    InHostFunction() = true;
    function(data);
    InHostFunction() = false;
    return {};
  });
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
      (error = FindStream(__func__, stream_handle, context, stream)) ||
      (error = RefuseCapturing(*stream)))
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
  if (const int64_t most = 2 * driver().settings.wake_us) {
    static std::atomic<uint64_t> waits{0};
    Random random(driver().settings.seed * 1000003 + waits.fetch_add(1, std::memory_order_relaxed));
    std::this_thread::sleep_for(std::chrono::microseconds(random.Below(most)));
  }
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
// Copies
//===----------------------------------------------------------------------===//

/// Between the device's memory and the host's. Of pageable memory there is a copy when the call
/// returns; to such memory it has happened by then, or, as the driver's documentation allows, not.
static CUresult CopyHost(const char *what, bool to_device, CUdeviceptr device, void *host,
                         size_t bytes, CUstream handle) {
  Context *context;
  uint64_t pinned = 0;
  if (CUresult error = BeginCallIn(what, context))
    return error;
  if (CUresult error = FindPinned(what, host, bytes, pinned))
    return error;
  std::shared_ptr<Stream> stream;
  if (CUresult missing = FindStream(what, handle, context, stream))
    return missing;
  if (CUresult capturing = pinned ? CUDA_SUCCESS : RefuseCapturing(*stream))
    return capturing;
  auto *at = static_cast<char *>(host);
  std::vector<char> staged;
  if (to_device && !pinned)
    staged.assign(at, at + bytes);
  CUresult error =
      Enqueue(what, handle, {{device, bytes, to_device ? "where to" : "where from"}},
              [=, staged = std::move(staged)](const std::vector<char *> &data) -> std::string {
                if (pinned && !driver().pinned.Has(pinned))
                  return what + std::string(": the host's memory was unpinned while the copy "
                                            "waited in its stream");
                if (to_device)
                  memcpy(data[0], pinned ? at : staged.data(), bytes);
                else
                  memcpy(at, data[0], bytes);
                return {};
              });
  if (error || pinned || to_device || driver().settings.pageable)
    return error;
  stream->Wait();
  return context->error;
}

BOA_FAKE_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                           CUstream stream) {
  return CopyHost(__func__, true, to, const_cast<void *>(from), bytes, stream);
}

BOA_FAKE_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                                           CUstream stream) {
  return CopyHost(__func__, false, from, to, bytes, stream);
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
// Launches
//===----------------------------------------------------------------------===//

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
      int64_t(block_x) * block_y * block_z > driver().settings.block_threads)
    return Report(CUDA_ERROR_INVALID_VALUE,
                  kernel + "a grid or a block of a size that no device has");
  if (shared_bytes > function->dynamic_limit || emulated.shared_bytes > kStaticShared)
    return Report(CUDA_ERROR_INVALID_VALUE,
                  kernel + "more shared memory than the function may have");
  if (extra || (emulated.arguments && !arguments))
    return Report(CUDA_ERROR_INVALID_VALUE, kernel + "arguments are given by their addresses");
  if (!context->GrowStack(driver().settings.local))
    return CUDA_ERROR_OUT_OF_MEMORY;
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
                   now.seed ^= Stream::Done() << 32; // of a graph each time in another order
                   now.args = const_cast<void *const *>(addresses.data());
                   return RunLaunch(now);
                 });
}

} // extern "C"
