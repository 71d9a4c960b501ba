//===- cpu.h - A device of threads ------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the files of the CPU device share; nobody else includes it.
//
//   compute    one thread, kernels in the order given
//   optimizer  one thread, updates and norms in the order given; fills as they come
//   copies     where there are two memories, one thread for what goes between them
//   I/O        the backend's threads, each transfer by itself
//   checksums  a thread for each eight processors: what is written is summed, what
//              is read is compared before anybody uses it
//
// With a scheduler there are none: all of that happens in Advance, one thing after
// another, in the order that it chooses.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CPU_H
#define BOA_RUNTIME_DEVICE_CPU_H

#include "runtime/device/device.h"
#include "runtime/device/memory.h"
#include "runtime/device/updates.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace boa {

class CpuDevice : public Device {
public:
  CpuDevice(const Program &, const boa_kernel *kernels, StateStore *state, const CpuOptions &);
  ~CpuDevice() override;
  absl::Status Start(const int64_t (&bytes)[2], Location workspace, DeviceListener *) override;
  void Submit(Work &) override;
  void Cancel() override;
  int64_t Now() const override;
  bool Advance() override;
  bool HasThreads() const override { return !options.scheduler; }
  std::vector<int64_t> TakeSkipped() override { return updates.TakeSkipped(); }
  std::string Describe() const override { return io ? io->Describe() : "memory only"; }

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

  void Loop(Queue<Work *> &, void (CpuDevice::*)(Work &));
  void OptimizerLoop();
  void SumLoop();
  Queue<Work *> &QueueOf(const Work &);
  void RunKernel(Work &);
  void RunUpdate(Work &);
  void RunFill(Work &);

  // transfers.cpp
  void Transfer(Work &);
  void TransferDone(Work &, int32_t first, int32_t count, absl::Status);
  void AddSums(Work &, int32_t first, int32_t count);
  void PartDone(Work &, absl::Status);
  void MakeSum(const Sum &);
  absl::Status SumChunk(const Work &, int32_t c);
  char *TransferAddress(const Work &, int32_t c) const;

  const Program &program;
  const boa_kernel *const kernels;
  StateStore *const state;
  const CpuOptions options;
  DeviceListener *listener = nullptr;
  std::unique_ptr<CpuMemory> memory;
  char *workspace = nullptr;
  std::vector<void *> kernel_buffers; // the compute thread's
  Updates updates;                    // the optimizer thread's

  std::mutex mutex; // of the queues, and of how many parts of a transfer are left
  Queue<Work *> compute, optimizer, fills, copies; // fills are the optimizer thread's too
  Queue<Sum> sums;
  std::map<uint32_t, absl::Status> failed; // transfers of which parts are under way
  bool stopping = false;
  std::unique_ptr<IoBackend> io;
  std::vector<std::thread> threads;
};

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_CPU_H
