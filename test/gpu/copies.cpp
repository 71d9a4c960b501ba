//===- copies.cpp - Copies and launches -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/gpu/measures.h"
#include "test/gpu/timing.h"

#include "runtime/abi/cuda_calls.h"

#include "absl/strings/str_cat.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace boa::gputest {
namespace {

double Now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Enough that a copy is far longer than its launch, and more than a last-level cache has.
constexpr size_t kCopied = size_t(256) << 20;

/// Two streams, which copy one way each.
class Copies {
public:
  explicit Copies(const Session &session) : session(session), driver(session.driver()) {}
  ~Copies() {
    for (cuda::Stream stream : streams)
      if (stream)
        driver.StreamDestroy.address(stream);
  }

  int Run() {
    size_t free = 0, total = 0;
    absl::Status status = session.AskMemory(free, total);
    bytes = std::min(kCopied, free / 8) / 4096 * 4096;
    DeviceMemory device(session);
    PinnedMemory host(session);
    for (cuda::Stream &stream : streams)
      if (status.ok())
        status = driver.Call("making a stream", driver.StreamCreate, &stream,
                             unsigned(cuda::kNonBlocking));
    if (status.ok())
      status = device.Allocate(2 * bytes);
    if (status.ok())
      status = session.Wait();
    if (status.ok())
      status = host.Allocate(2 * bytes);
    if (!status.ok())
      return NotMeasured("copies", status);
    const auto at = reinterpret_cast<cuda::Pointer>(device.at(0));
    Enqueue in = [&] {
      return driver.Call("copying to the device", driver.MemcpyHtoDAsync, at,
                         static_cast<const void *>(host.at(0)), bytes, streams[0]);
    };
    Enqueue out = [&] {
      return driver.Call("copying from the device", driver.MemcpyDtoHAsync,
                         static_cast<void *>(host.at(bytes)), at + bytes, bytes, streams[1]);
    };
    std::printf("copies of %.0f MiB, the host's memory registered\n", double(bytes) / 1048576);
    int failed = 0;
    failed |= Print("to the device, alone", {in}, double(bytes));
    failed |= Print("from the device, alone", {out}, double(bytes));
    failed |= Print("both at once, together", {in, out}, 2.0 * double(bytes));
    failed |= Print("on the device, read and written", {[&] {
                      return driver.Call("copying on the device", driver.MemcpyDtoDAsync, at,
                                         at + bytes, bytes, streams[0]);
                    }},
                    2.0 * double(bytes));
    failed |= Print("filling the device's memory", {[&] {
                      return driver.Call("filling memory", driver.MemsetD8Async, at,
                                         static_cast<unsigned char>(1), bytes, streams[0]);
                    }},
                    double(bytes));
    std::vector<char> pageable(bytes, 1);
    failed |=
        Print("to the device, from memory that is not registered", {[&] {
                return driver.Call("copying to the device", driver.MemcpyHtoDAsync, at,
                                   static_cast<const void *>(pageable.data()), bytes, streams[0]);
              }},
              double(bytes));
    return failed;
  }

private:
  using Enqueue = std::function<absl::Status()>;

  /// By the host's clock, since it is of two streams: the best of a few.
  int Print(const char *what, const std::vector<Enqueue> &work, double moved) {
    double least = 0;
    for (int i = 0; i < 4; ++i) {
      const double began = Now();
      absl::Status status;
      for (const Enqueue &one : work)
        if (status.ok())
          status = one();
      for (cuda::Stream stream : streams)
        if (status.ok())
          status = driver.Call("waiting for the GPU", driver.StreamSynchronize, stream);
      if (!status.ok())
        return NotMeasured(what, status);
      const double took = Now() - began;
      least = i == 0 ? took : std::min(least, took);
    }
    std::printf("%s: %s, %s\n", what, FormatBandwidth(moved, least).c_str(),
                FormatMs(least).c_str());
    return 0;
  }

  const Session &session;
  const cuda::Driver &driver;
  cuda::Stream streams[2] = {};
  size_t bytes = 0;
};

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// So many, or as many as take no longer than this.
constexpr int kLaunches = 1000;
constexpr double kLaunchesMs = 50;

/// What a call takes the host, and what one after another takes the GPU.
int PrintLaunches(const Session &session, const char *what, int each,
                  const std::function<absl::Status()> &enqueue) {
  double host = 0, gpu = 0, alone = 0;
  int calls = 1;
  for (int round = 0; round < 2; ++round) { // the first one warms up
    Timer timer(session);
    absl::Status status = timer.Create();
    if (round > 0)
      calls = std::clamp(int(kLaunchesMs / std::max(alone, 1e-3)), 1, kLaunches);
    if (status.ok())
      status = timer.Record(0);
    const double began = Now();
    for (int i = 0; i < calls && status.ok(); ++i)
      status = enqueue();
    host = Now() - began;
    if (status.ok())
      status = timer.Record(1);
    const absl::StatusOr<double> took = status.ok() ? timer.Read() : status;
    if (!took.ok())
      return NotMeasured(what, took.status());
    gpu = *took;
    const double waits = Now();
    status = enqueue();
    if (status.ok())
      status = session.Wait();
    if (!status.ok())
      return NotMeasured(what, status);
    alone = Now() - waits;
  }
  std::printf("%s: the host %.2f us a call, the GPU %.2f us a launch one after another, one call "
              "and a wait %.2f us\n",
              what, host / calls * 1e3, gpu / calls / each * 1e3, alone * 1e3);
  return 0;
}

} // namespace

int MeasureCopies() {
  auto session = Session::Open();
  return session.ok() ? Copies(**session).Run() : NotMeasured("copies", session.status());
}

int MeasureLaunches(const std::string &object) {
  const char *const what = "launches and graphs";
  void *const library = dlopen(object.c_str(), RTLD_NOW);
  if (!library)
    return NotMeasured(what, absl::NotFoundError(dlerror()));
  const auto kernel = reinterpret_cast<boa_kernel>(dlsym(library, "f32_forward"));
  auto *const image = static_cast<const boa_device_image *>(dlsym(library, "f32_forward_image"));
  if (!kernel || !image)
    return NotMeasured(what, absl::NotFoundError(absl::StrCat(object, " has no f32_forward")));
  auto session = Session::Open();
  if (!session.ok())
    return NotMeasured(what, session.status());
  auto gpu = cuda::Gpu::Open();
  absl::Status status = gpu.status();
  if (status.ok())
    status = (*gpu)->Load(*image);
  // Room for more than its arguments.
  constexpr size_t kBuffers = 16, kBytes = 1 << 16;
  DeviceMemory memory(**session);
  if (status.ok())
    status = memory.Allocate(kBuffers * kBytes);
  if (!status.ok())
    return NotMeasured(what, status);
  std::vector<void *> buffers;
  for (size_t i = 0; i < kBuffers; ++i)
    buffers.push_back(memory.at(i * kBytes));
  boa_queue queue;
  queue.gpu = gpu->get();
  queue.driver = &(*gpu)->driver();
  queue.stream = (*session)->stream();
  auto call = [&] {
    kernel(buffers.data(), buffers.back(), &queue);
    return queue.status;
  };
  queue.plans = true;
  status = call();
  queue.plans = false;
  if (!status.ok())
    return NotMeasured(what, status);
  const cuda::Driver &driver = *queue.driver;
  int failed = PrintLaunches(**session, "launches of a small kernel", 1, call);
  for (int nodes : {10, 100}) {
    const std::string name = absl::StrCat("graphs of ", nodes, " of them");
    constexpr int kThreadLocal = 1;
    cuda::CapturedGraph captured = nullptr;
    cuda::GraphExec exec = nullptr;
    const double began = Now();
    status = driver.Call("capturing", driver.StreamBeginCapture, queue.stream, kThreadLocal);
    if (status.ok()) {
      for (int i = 0; i < nodes && queue.status.ok(); ++i)
        call().IgnoreError();
      status = driver.Call("capturing", driver.StreamEndCapture, queue.stream, &captured);
    }
    if (status.ok())
      status = queue.status;
    if (status.ok())
      status = driver.Call("capturing", driver.GraphInstantiate, &exec, captured, 0ull);
    const double made = Now() - began;
    if (status.ok()) {
      failed |= PrintLaunches(**session, name.c_str(), nodes, [&] {
        return driver.Call("launching a graph", driver.GraphLaunch, exec, queue.stream);
      });
      std::printf("  made in %s\n", FormatMs(made).c_str());
    } else {
      failed = NotMeasured(name, status);
    }
    (*session)->Wait().IgnoreError();
    if (exec)
      driver.GraphExecDestroy.address(exec);
    if (captured)
      driver.GraphDestroy.address(captured);
  }
  return failed;
}

} // namespace boa::gputest
