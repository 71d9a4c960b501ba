//===- host.h - What stays on the host --------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The half of a device that is the same whatever computes: the optimizer, what fills the
// host's memory, SSDs.
//
//   optimizer  one thread, updates and norms in the order given; fills as they come
//   I/O        the backend's threads, each transfer by itself
//   checksums  a thread for each eight processors: what is written is summed, what
//              is read is compared before anybody uses it; sums of what lies in a memory
//              that the host does not reach are the device's (FarSums)
//
// With a scheduler there are none: who owns it asks what there is to do, and chooses.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_HOST_H
#define BOA_RUNTIME_DEVICE_HOST_H

#include "runtime/device/device.h"
#include "runtime/device/memory.h"
#include "runtime/device/updates.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace boa {

/// Copies, or fills with zeros, on this thread and, what is large, on those of loops.
void RunFill(const Work &, const Memory &);

/// Who makes checksums (state/checksum.h) of what SSDs move to and from a memory that the host
/// does not reach.
class FarSums {
public:
  virtual ~FarSums() = default;
  /// How many chunks it takes at once, at most.
  virtual int32_t Most() const = 0;
  /// Of chunks of a transfer, counted from its first. From any thread; does not block. `told` is
  /// called once, on a thread of its own: the sums, in their order.
  using Told = std::function<void(absl::StatusOr<std::vector<uint64_t>>)>;
  virtual void Make(const Work &, int32_t first, int32_t count, Told told) = 0;
};

/// What a device of threads has of Device, for all work but kernels and what it keeps to
/// itself. Nothing that was submitted is under way when it goes.
class Host {
public:
  Host(const Program &, StateStore *state, const CpuOptions &);
  ~Host() { Stop(); }
  /// Once. All outlive its threads. `far`: where SSDs reach a device's memory, and the host
  /// does not.
  absl::Status Start(const Memory &, DeviceListener *, FarSums *far = nullptr);
  /// Its threads end. Before anything goes that the listener may give work to, or take work
  /// back from: a thread that says Done may be at it still.
  void Stop();
  void Submit(Work &);
  void Cancel();
  /// Nanoseconds, of the clock of all devices that have threads.
  static int64_t Now();

  /// Without threads: so many things there are to do, and one of them is done. What comes
  /// in meanwhile may be the one.
  size_t Choices();
  void Do(size_t choice);

  std::map<int64_t, double> TakeNorms() { return updates.TakeNorms(); }
  std::string Describe() const { return io ? io->Describe() : "memory only"; }

private:
  /// Chunks of a transfer, counted from its first, whose checksums are to be noted or
  /// compared.
  struct Sum {
    Work *work;
    int32_t first, count;
  };
  template <typename Item> struct Queue {
    std::deque<Item> items;
    std::condition_variable added;
    Item Take(size_t which = 0) {
      Item item = items[which];
      items.erase(items.begin() + which);
      return item;
    }
  };

  void OptimizerLoop();
  void SumLoop();
  void RunUpdate(Work &);
  void Fill(Work &);

  // transfers.cpp
  void Transfer(Work &);
  void TransferDone(Work &, int32_t first, int32_t count, absl::Status);
  void AddSums(Work &, int32_t first, int32_t count);
  void PartDone(Work &, absl::Status);
  void AddFarSums(Work &, int32_t first, int32_t count);
  void MakeSum(const Sum &);
  absl::Status UseSum(const Work &, int32_t c, uint64_t sum);
  char *TransferAddress(const Work &, int32_t c) const;

  const Program &program;
  StateStore *const state;
  const CpuOptions options;
  const Memory *memory = nullptr;
  DeviceListener *listener = nullptr;
  FarSums *far = nullptr;
  Updates updates; // the optimizer thread's

  std::mutex mutex;               // of the queues, and of how many parts of a transfer are left
  Queue<Work *> optimizer, fills; // both the optimizer thread's
  Queue<Sum> sums;
  std::map<uint32_t, absl::Status> failed; // transfers of which parts are under way
  bool stopping = false;
  std::unique_ptr<IoBackend> io;
  std::vector<std::thread> threads;
};

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_HOST_H
