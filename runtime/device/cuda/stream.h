//===- stream.h - One of the GPU's queues ------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_STREAM_H
#define BOA_RUNTIME_DEVICE_CUDA_STREAM_H

#include "runtime/device/cuda/gpu.h"
#include "runtime/device/cuda/order.h"
#include "runtime/device/device.h"
#include "runtime/device/lane.h"
#include "runtime/support/mutex.h"

#include <deque>
#include <functional>

namespace boa::cuda {

/// A stream of the driver and two threads. The first enqueues the work in the order given. The
/// second waits for its end and reports it. At most kDepth pieces of work are between the two,
/// each with a pair of events, which are made once. The GPU's clock, mapped to the host's, gives
/// the begin and end of work.
class GpuStream {
public:
  /// The most pieces of enqueued work that are not over: some milliseconds of small kernels.
  static constexpr size_t kDepth = 64;

  /// `enqueue` puts a work's commands on the stream, on the first thread. `finish`, if given,
  /// checks the results of finished work, on the second. `name` is for errors of the driver and
  /// for profilers; "" needs none. All outlive it.
  GpuStream(const Gpu &gpu, Order &order, std::function<absl::Status(Work &)> enqueue,
            std::function<std::string(const Work &)> name,
            std::function<absl::Status(const Work &)> finish = {})
      : gpu(gpu), order(order), enqueue(std::move(enqueue)), name(std::move(name)),
        finish(std::move(finish)) {}
  /// Nothing is under way.
  ~GpuStream();
  absl::Status Create(DeviceListener *);
  absl::Status Start();
  /// Its threads end.
  void Stop();

  void Submit(Work &work) {
    order.Add(work, stream);
    enqueuing.Add(&work);
  }
  /// Takes out the work that was not enqueued yet.
  std::deque<Work *> Clear() { return enqueuing.Clear(); }
  Stream handle() const { return stream; }

private:
  struct Enqueued {
    Work *work;
    Event begin, end;
    absl::Status status;
  };
  void Enqueue(Work &);
  void Finish(const Enqueued &);
  absl::Status Await(const Enqueued &, float (&milliseconds)[2]);
  std::pair<int64_t, int64_t> Place(const float (&milliseconds)[2], int64_t seen_ns);

  const Gpu &gpu;
  Order &order;
  const std::function<absl::Status(Work &)> enqueue;
  const std::function<std::string(const Work &)> name;
  const std::function<absl::Status(const Work &)> finish;
  DeviceListener *listener = nullptr;
  Stream stream = nullptr;
  Event events[kDepth + 1][2] = {}; // one pair more: the last that is over is what is counted from

  Mutex mutex;
  CondVar finished_one;
  // Pieces of work so far.
  size_t enqueued = 0; // the first thread's
  size_t finished ABSL_GUARDED_BY(mutex) = 0;
  bool failed = false; // the first thread's: nothing more is enqueued
  // The second thread's: the last end of work, by the host's clock as far as known.
  Event last_end = nullptr;
  int64_t last_end_ns = 0;
  int64_t least_lag_ns = 0, lags = 0; // between an end and when it was seen
  Lane<Work *> enqueuing{[this](Work *work) { Enqueue(*work); }};
  Lane<Enqueued> finishing{[this](const Enqueued &work) { Finish(work); }};
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_STREAM_H
