//===- graphs.h - Kernels as CUDA graphs -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_GRAPHS_H
#define BOA_RUNTIME_DEVICE_CUDA_GRAPHS_H

#include "runtime/device/cuda/queue.h"
#include "runtime/device/work.h"
#include "runtime/support/mutex.h"

#include <functional>
#include <map>

namespace boa::cuda {

/// A kernel enqueues work that depends on its buffers' addresses alone. The second time that the
/// kernel has the same addresses, its work is captured as a graph. From then on one call launches
/// that graph.
///
/// The capture has a stream of its own, so other threads may wait for the compute stream
/// meanwhile. If a kernel cannot be captured, nothing of it has run. Then it is called as without
/// graphs, no more graphs are made, and the reason is reported once.
///
/// BOA_CUDA_GRAPHS=none: there are no graphs.
class KernelGraphs {
public:
  /// Fewer launches than this cost about as much as the launch of a graph.
  static constexpr int64_t kLeastLaunches = 4;
  /// The number of graphs and the number of their launches bound their memory. All graphs are
  /// made in the first runs. Addresses that appear later are rare, or there are too many of them.
  static constexpr size_t kMostGraphs = 1024, kMostKeys = 8192;
  static constexpr int64_t kMostLaunches = 16384, kRuns = 128;
  /// Graphs leave this much of the device's memory free.
  static constexpr size_t kLeftFree = size_t{64} << 20;

  /// Both outlive it.
  KernelGraphs(const Program &program, const Gpu &gpu) : program(program), gpu(gpu) {}
  ~KernelGraphs();
  /// `launches`: of each kernel, as planning counted them.
  absl::Status Create(std::vector<int64_t> launches);

  /// Enqueues a kernel on the queue's stream. Either `call` calls the kernel's function with the
  /// queue, or a graph repeats the work of an earlier call. Counts launches and calls in the
  /// work.
  absl::Status Enqueue(Work &, const std::vector<void *> &buffers, boa_queue &,
                       const std::function<void()> &call);
  /// Why no more graphs are made; empty once it was taken. Called from any thread.
  std::string TakeRemark();

private:
  /// The kernel's number, then addresses.
  using Key = std::vector<uintptr_t>;
  struct Graph {
    GraphExec exec = nullptr; // null: the addresses came up, but were not captured
    int32_t launches = 0;
  };

  /// Whether the graph is to be launched; if not, nothing was enqueued.
  bool Find(const Work &, boa_queue &, const std::function<void()> &call, Graph &found);
  absl::Status Make(boa_queue &, const std::function<void()> &call, Graph &);
  absl::Status Capture(boa_queue &, const std::function<void()> &call, CapturedGraph &);
  absl::Status Instantiate(CapturedGraph, Stream, Graph &);
  template <typename... P, typename... A>
  absl::Status Call(const Entry<Result, P...> &entry, A... arguments) const;

  const Program &program;
  const Gpu &gpu;
  Stream stream = nullptr;          // to capture on; null: there are no graphs
  std::vector<int64_t> launches_of; // by kernel
  std::map<Key, Graph> graphs;
  Key key;
  int64_t first_run = -1;
  size_t made = 0;
  int64_t launches_made = 0; // in graphs
  bool making = true;
  Mutex mutex;
  std::string remark ABSL_GUARDED_BY(mutex);
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_GRAPHS_H
