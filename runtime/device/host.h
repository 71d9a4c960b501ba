//===- host.h - What stays on the host --------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The half of a device that does not depend on where kernels run: the optimizer, fills of the
// host's memory, and SSDs.
//
//   optimizer  one thread; updates and norms in the order given, fills as they come
//   I/O        the backend's threads, each transfer by itself
//   checksums  one thread for every eight processors
//
// Written data is summed. Read data is summed and compared before its first use. For memory that
// the host does not reach, the device computes the sums (FarSums).
//
// With a scheduler there are no threads. The owner asks how many things can be done (Choices),
// and does one (Do).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_HOST_H
#define BOA_RUNTIME_DEVICE_HOST_H

#include "runtime/device/device.h"
#include "runtime/device/memory.h"
#include "runtime/device/updates.h"
#include "runtime/support/mutex.h"

#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <vector>

namespace boa {

/// Copies, or fills with zeros, on this thread. Large ones also use the threads of loops.
void RunFill(const Work &, const Memory &);

/// Computes the checksums (state/checksum.h) of SSD transfers to and from memory that the host
/// does not reach.
class FarSums {
public:
  virtual ~FarSums() = default;
  /// The most chunks that it takes at once.
  virtual int32_t Most() const = 0;
  /// Sums `count` chunks of a transfer, from its chunk `first`. Called from any thread; does not
  /// block. `receiver` is called once, on a thread of FarSums, with the sums in order.
  using Receiver = std::function<void(absl::StatusOr<std::vector<uint64_t>>)>;
  virtual void Make(const Work &, int32_t first, int32_t count, Receiver receiver) = 0;
};

/// Implements Device for a device with threads. It does all work but kernels and work that the
/// device keeps to itself. No submitted work may be under way when it is destroyed.
class Host {
public:
  Host(const Program &, const boa_optimizer *, StateStore *state, const CpuOptions &);
  ~Host() { Stop(); }
  /// Called once. All arguments outlive its threads. `far` is for SSDs that reach a device's
  /// memory which the host does not reach.
  absl::Status Start(const Memory &, DeviceListener *, FarSums *far = nullptr);
  /// Ends its threads. Call it before destroying anything that the listener gives work to, or
  /// takes work from: a thread may still be in Done.
  void Stop();
  void Submit(Work &);
  void Cancel();
  /// Nanoseconds, of the clock of all devices that have threads.
  static int64_t Now();

  /// Without threads: how many things can be done now. Do does one of them. Work that arrives in
  /// between may be that one.
  size_t Choices();
  void Do(size_t choice);

  std::map<int64_t, double> TakeNorms() { return updates.TakeNorms(); }
  std::string Describe() const { return io ? io->Describe() : "memory only"; }

private:
  /// Starts a thread.
  absl::Status Add(std::function<void()> loop);

  /// Chunks of a transfer, counted from its first, whose checksums are to be noted or
  /// compared.
  struct Sum {
    Work *work;
    int32_t first, count;
  };
  template <typename Item> struct Queue {
    std::deque<Item> items;
    CondVar added;
    Item Take(size_t which = 0) {
      Item item = items[which];
      items.erase(items.begin() + which);
      return item;
    }
  };

  void OptimizerLoop();
  void SumLoop();
  void RunUpdate(Work &) ABSL_LOCKS_EXCLUDED(mutex);
  void Fill(Work &) ABSL_LOCKS_EXCLUDED(mutex);

  // transfers.cpp
  void Transfer(Work &) ABSL_LOCKS_EXCLUDED(mutex);
  void TransferDone(Work &, int32_t first, int32_t count, absl::Status) ABSL_LOCKS_EXCLUDED(mutex);
  void AddSums(Work &, int32_t first, int32_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void PartDone(Work &, absl::Status) ABSL_LOCKS_EXCLUDED(mutex);
  void AddFarSums(Work &, int32_t first, int32_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void MakeSum(const Sum &) ABSL_LOCKS_EXCLUDED(mutex);
  absl::Status UseSum(const Work &, int32_t c, uint64_t sum);
  char *TransferAddress(const Work &, int32_t c) const;

  const Program &program;
  StateStore *const state;
  const CpuOptions options;
  const Memory *memory = nullptr;
  DeviceListener *listener = nullptr;
  FarSums *far = nullptr;
  Updates updates; // the optimizer thread's

  Mutex mutex; // also of how many parts of a transfer are left (Work::parts)
  Queue<Work *> optimizer ABSL_GUARDED_BY(mutex), fills ABSL_GUARDED_BY(mutex); // of one thread
  Queue<Sum> sums ABSL_GUARDED_BY(mutex);
  // Transfers of which parts are under way.
  std::map<uint32_t, absl::Status> failed ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::unique_ptr<IoBackend> io;
  std::vector<std::thread> threads;
};

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_HOST_H
