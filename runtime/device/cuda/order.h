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
#include "runtime/support/mutex.h"

#include <map>

namespace boa::cuda {

/// The work in streams that is not over, with the events that end it. A stream lets the GPU wait
/// for the predecessors of its next work (Work::after). Called from any thread.
///
/// All waits end: a work waits only for work that was submitted before it. The oldest work that
/// is not over waits for none.
class Order {
public:
  void Add(const Work &work, Stream);
  /// The work was enqueued, with this end. Null: it was not, and never will be.
  void Enqueued(const Work &, Event end);
  /// Waits until the work's predecessors are enqueued, then enqueues waits for them.
  absl::Status Await(const Driver &, const Work &, Stream);
  /// Waits until all predecessors of the work are removed.
  void AwaitRemoved(const Work &);
  /// The work is over, and its listener was told. Its event may be reused after this returns.
  void Remove(int64_t sequence);
  /// After an error: nothing more is enqueued, and no thread waits for it.
  void Cancel();

private:
  struct UnderWay {
    Stream stream;
    Event end = nullptr;
    bool enqueued = false, failed = false;
    int64_t in_use = 0; // calls that have its event, without the mutex
  };
  absl::Status AwaitEnd(const Driver &, UnderWay &, Stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  Mutex mutex;
  CondVar changed;
  std::map<int64_t, UnderWay> under_way ABSL_GUARDED_BY(mutex); // by Work::sequence
  bool cancelled ABSL_GUARDED_BY(mutex) = false;
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_ORDER_H
