//===- cpu.cpp - A device of threads --------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Beside what stays on the host anyway (device/host.h):
//
//   compute    one thread, kernels in the order given
//   copies     where there are two memories, one thread for what goes between them
//
// With a scheduler there is no thread: all happens in Advance, one thing after another,
// in the order that it chooses.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/host.h"
#include "runtime/device/lane.h"

#include "runtime/kernels/check.h"
#include "runtime/support/thread_pool.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdlib>

namespace boa {
namespace {

class CpuDevice : public Device {
public:
  CpuDevice(const Program &program, const Kernels &kernels, StateStore *state,
            const CpuOptions &options)
      : program(program), kernels(kernels.table), scheduler(options.scheduler),
        memory(IsSeparate(program.machine) ? CreateSplitMemory() : CreateUnifiedMemory()),
        host(program, kernels.optimizer, state, options) {}
  ~CpuDevice() override {
    // All threads, before anything goes that they give work to.
    host.Stop();
    compute.Stop();
    copies.Stop();
  }
  absl::Status Start(const int64_t (&bytes)[2], Location workspace, DeviceListener *) override;
  absl::Status MakeTables();
  void Submit(Work &work) override {
    Lane<Work *> *lane = LaneOf(work);
    lane ? lane->Add(&work) : host.Submit(work);
  }
  void Cancel() override;
  int64_t Now() const override { return Host::Now(); }
  bool Advance() override;
  bool HasThreads() const override { return !scheduler; }
  std::map<int64_t, double> TakeNorms() override { return host.TakeNorms(); }
  std::string Describe() const override { return host.Describe(); }
  std::map<std::string, std::string> Environment() const override {
    return {{"kernels", IsaName(UsedIsa())}};
  }

private:
  Lane<Work *> *LaneOf(const Work &);
  void RunKernel(Work &);
  void Copy(Work &);

  const Program &program;
  const boa_kernel *const kernels;
  Scheduler *const scheduler;
  DeviceListener *listener = nullptr;
  std::unique_ptr<Memory> memory;
  char *workspace = nullptr;
  std::vector<void *> kernel_buffers; // the compute thread's
  struct Free {
    void operator()(char *memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> tables;
  std::vector<int64_t> table_offsets;
  Host host;
  Lane<Work *> compute{[this](Work *work) { RunKernel(*work); }};
  Lane<Work *> copies{[this](Work *work) { Copy(*work); }};
};

/// Follows BOA_CPU, or else the machine; else what is used stays.
absl::Status ChooseKernels(const MachineSettings &machine) {
  const char *by_environment = std::getenv("BOA_CPU");
  const std::string name = by_environment ? by_environment : WordOf(machine.kernels);
  if (by_environment || machine.kernels != KernelSet::fastest)
    if (absl::Status status = UseIsa(name); !status.ok())
      return absl::Status(
          status.code(), absl::StrCat(by_environment ? "BOA_CPU=" : "device cpu { kernels = ", name,
                                      by_environment ? ": " : " }: ", status.message()));
  return CheckKernels(UsedIsa());
}

absl::Status CpuDevice::Start(const int64_t (&bytes)[2], Location at,
                              DeviceListener *new_listener) {
  listener = new_listener;
  SetThreads(scheduler ? 1 : program.machine.threads);
  if (absl::Status status = ChooseKernels(program.machine); !status.ok())
    return status;
  if (absl::Status status = memory->Allocate(bytes); !status.ok())
    return status;
  workspace = memory->Address(Memory::Side::device, at);
  size_t most = 0;
  for (const Kernel &kernel : program.kernels)
    most = std::max(most, kernel.buffers.size() + kernel.tables.size());
  kernel_buffers.resize(most);
  if (absl::Status status = MakeTables(); !status.ok())
    return status;
  absl::Status status = host.Start(*memory, listener);
  if (!status.ok() || scheduler)
    return status;
  status = compute.Start();
  return status.ok() && IsSeparate(program.machine) ? copies.Start() : status;
}

absl::Status CpuDevice::MakeTables() {
  table_offsets = TableOffsets(program.tables);
  const int64_t bytes = table_offsets.back();
  if (bytes == 0)
    return absl::OkStatus();
  tables.reset(static_cast<char *>(std::aligned_alloc(kTableAlignment, size_t(bytes))));
  if (!tables)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", FormatBytes(double(bytes)), " of tables"));
  FillTables(program.tables, tables.get());
  return absl::OkStatus();
}

/// Null: the host's.
Lane<Work *> *CpuDevice::LaneOf(const Work &work) {
  if (work.kind == Work::Kind::kernel)
    return &compute;
  const bool between =
      work.kind == Work::Kind::copy && work.buffers[0].space != work.buffers[1].space;
  return between ? &copies : nullptr;
}

void CpuDevice::Cancel() {
  const int64_t now = Host::Now();
  for (Lane<Work *> *lane : {&compute, &copies})
    for (Work *work : lane->Clear())
      listener->Done(*work, now, now, absl::CancelledError("not begun"));
  host.Cancel();
}

/// Does one of the things that could happen next, the one that the scheduler chooses.
bool CpuDevice::Advance() {
  if (!scheduler)
    return false;
  const size_t kernels_ready = compute.Size() > 0, copies_ready = copies.Size();
  const size_t count = kernels_ready + copies_ready + host.Choices();
  if (count == 0)
    return false;
  size_t choice = scheduler->Choose(count);
  if (choice < kernels_ready)
    return compute.Run(0);
  if ((choice -= kernels_ready) < copies_ready)
    return copies.Run(choice);
  host.Do(choice - copies_ready);
  return true;
}

void CpuDevice::RunKernel(Work &work) {
  for (size_t i = 0; i < work.buffers.size(); ++i)
    kernel_buffers[i] = memory->Address(Memory::Side::device, work.buffers[i]);
  void **behind = kernel_buffers.data() + work.buffers.size();
  for (int64_t table : program.kernels[work.index].tables)
    *behind++ = tables.get() + table_offsets[table];
  const int64_t begin = Host::Now();
  if (!listener->IsLeftOut(work))
    kernels[work.index](kernel_buffers.data(), workspace, nullptr);
  listener->Done(work, begin, Host::Now(), absl::OkStatus());
}

void CpuDevice::Copy(Work &work) {
  const int64_t begin = Host::Now();
  RunFill(work, *memory);
  listener->Done(work, begin, Host::Now(), absl::OkStatus());
}

} // namespace

std::unique_ptr<Device> CreateCpuDevice(const Program &program, const Kernels &kernels,
                                        StateStore *state, const CpuOptions &options) {
  return std::make_unique<CpuDevice>(program, kernels, state, options);
}

} // namespace boa
