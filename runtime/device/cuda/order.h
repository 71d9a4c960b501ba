//===- order.h - What waits for what between streams -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_ORDER_H
#define BOA_RUNTIME_DEVICE_CUDA_ORDER_H

#include "runtime/device/cuda/driver.h"
#include "runtime/device/work.h"

#include <condition_variable>
#include <map>
#include <mutex>

namespace boa::cuda {

/// The work that was given to streams and is not over, with the events that end it. A stream
/// lets the GPU wait for what its next work must come after (Work::after). From any thread.
///
/// Nobody here waits for ever: a work waits for such alone as were given before it, and of all
/// that are not over the one that was given first waits for none.
class Order {
public:
  void Add(const Work &work, Stream);
  /// It was enqueued, and its end is this; null: it was not, nor will be.
  void Enqueued(const Work &, Event end);
  /// Enqueues the waits that the work needs, once what it comes after was enqueued.
  absl::Status Await(const Driver &, const Work &, Stream);
  /// Until all that the work comes after was removed.
  void AwaitRemoved(const Work &);
  /// It is over, and whom it concerns was told: its event may be used again when this returns.
  void Remove(int64_t sequence);
  /// After an error: nothing more is enqueued, and nobody waits for that.
  void Cancel();

private:
  struct UnderWay {
    Stream stream;
    Event end = nullptr;
    bool enqueued = false, failed = false;
    int64_t in_use = 0; // calls that have its event, without the mutex
  };
  absl::Status AwaitEnd(const Driver &, UnderWay &, Stream, std::unique_lock<std::mutex> &);

  std::mutex mutex;
  std::condition_variable changed;
  std::map<int64_t, UnderWay> under_way; // by Work::sequence
  bool cancelled = false;
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_ORDER_H
