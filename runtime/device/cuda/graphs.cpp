//===- graphs.cpp - Kernels as CUDA graphs --------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/graphs.h"

#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace boa::cuda {

absl::Status KernelGraphs::Create(std::vector<int64_t> launches) {
  launches_of = std::move(launches);
  const char *const named = std::getenv("BOA_CUDA_GRAPHS");
  const bool none = named && std::strcmp(named, "none") == 0;
  if (named && *named && !none)
    return absl::InvalidArgumentError(
        absl::StrCat("BOA_CUDA_GRAPHS=", named, ": it is `none`, or not set"));
  const bool any = std::any_of(launches_of.begin(), launches_of.end(),
                               [](int64_t count) { return count >= kLeastLaunches; });
  if (!any || none)
    return absl::OkStatus();
  const Driver &driver = gpu.driver();
  return driver.Call("making a stream to capture on", driver.StreamCreate, &stream, kNonBlocking);
}

KernelGraphs::~KernelGraphs() {
  const Driver &driver = gpu.driver();
  for (auto &[key, graph] : graphs)
    if (graph.exec)
      driver.GraphExecDestroy.address(graph.exec);
  if (stream)
    driver.StreamDestroy.address(stream);
}

absl::Status KernelGraphs::Enqueue(Work &work, const std::vector<void *> &buffers, boa_queue &queue,
                                   const std::function<void()> &call) {
  Graph graph;
  queue.launches = 0;
  if (stream && !queue.synchronizes && !queue.times && launches_of[work.index] >= kLeastLaunches) {
    key.assign(1, uintptr_t(work.index));
    for (size_t i = 0; i < work.buffers.size(); ++i)
      key.push_back(reinterpret_cast<uintptr_t>(buffers[i]));
    const bool captured = Find(work, queue, call, graph);
    if (!queue.status.ok())
      return queue.status;
    if (captured) {
      const Driver &driver = gpu.driver();
      work.launches = graph.launches;
      work.launch_calls = int32_t(queue.launches) + 1; // those of the capture, too
      return queue.status =
                 driver.Call("launching a graph", driver.GraphLaunch, graph.exec, queue.stream);
    }
  }
  const int64_t before = queue.launches; // of a capture that failed
  call();
  work.launches = int32_t(queue.launches - before);
  work.launch_calls = int32_t(queue.launches);
  return queue.status;
}

bool KernelGraphs::Find(const Work &work, boa_queue &queue, const std::function<void()> &call,
                        Graph &found) {
  if (first_run < 0)
    first_run = work.run;
  making &= work.run - first_run < kRuns && made < kMostGraphs && launches_made < kMostLaunches;
  auto at = graphs.find(key);
  if (at == graphs.end()) {
    if (making && graphs.size() < kMostKeys)
      graphs.emplace(key, Graph());
    return false;
  }
  if (!at->second.exec && making)
    if (absl::Status status = Make(queue, call, at->second); !status.ok()) {
      making = false;
      MutexLock lock(mutex);
      remark = absl::StrCat("no more kernels become CUDA graphs: kernel ",
                            program.kernels[work.index].name, ": ", status.message());
    }
  found = at->second;
  return found.exec;
}

std::string KernelGraphs::TakeRemark() {
  MutexLock lock(mutex);
  return std::exchange(remark, {});
}

/// An error of it is nobody's loss.
template <typename... P, typename... A>
absl::Status KernelGraphs::Call(const Entry<Result, P...> &entry, A... arguments) const {
  const Result result = entry.address(arguments...);
  return result == kSuccess ? absl::OkStatus()
                            : gpu.driver().Error(result, entry.symbol, "capturing it",
                                                 "its work is launched piece by piece");
}

absl::Status KernelGraphs::Make(boa_queue &queue, const std::function<void()> &call, Graph &graph) {
  const Driver &driver = gpu.driver();
  size_t free = 0, total = 0;
  absl::Status status = Call(driver.MemGetInfo, &free, &total);
  if (status.ok() && free < kLeftFree)
    status = absl::ResourceExhaustedError(
        absl::StrCat("of the device's memory ", FormatBytes(double(free)), " are free"));
  CapturedGraph captured = nullptr;
  if (status.ok())
    status = Capture(queue, call, captured);
  if (status.ok())
    status = Instantiate(captured, queue.stream, graph);
  if (captured)
    driver.GraphDestroy.address(captured);
  if (!status.ok())
    return status;
  graph.launches = int32_t(queue.launches);
  ++made;
  launches_made += graph.launches;
  return status;
}

/// Nothing of what the kernel enqueues meanwhile runs, be there an error or not.
absl::Status KernelGraphs::Capture(boa_queue &queue, const std::function<void()> &call,
                                   CapturedGraph &captured) {
  const Driver &driver = gpu.driver();
  const Stream own = queue.stream;
  auto redirect = [&](Stream to) {
    queue.stream = to;
    return queue.dnn ? queue.dnn->SetStream(to) : absl::OkStatus();
  };
  absl::Status status = redirect(stream);
  if (status.ok())
    status = Call(driver.StreamBeginCapture, stream, kThreadLocalCapture);
  if (status.ok()) {
    call();
    const absl::Status enqueued = std::exchange(queue.status, absl::OkStatus());
    status = Call(driver.StreamEndCapture, stream, &captured);
    if (status.ok())
      status = enqueued;
  }
  // Attention that stays on the other stream would run beside what comes before it.
  queue.status = redirect(own);
  return status.ok() ? queue.status : status;
}

absl::Status KernelGraphs::Instantiate(CapturedGraph captured, Stream on, Graph &graph) {
  const Driver &driver = gpu.driver();
  GraphExec exec = nullptr;
  absl::Status status = Call(driver.GraphInstantiate, &exec, captured, 0ull);
  // What it takes of the device's memory, it takes now.
  if (status.ok())
    status = Call(driver.GraphUpload, exec, on);
  if (status.ok())
    graph.exec = exec;
  else if (exec)
    driver.GraphExecDestroy.address(exec);
  return status;
}

} // namespace boa::cuda
