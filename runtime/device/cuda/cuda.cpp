//===- cuda.cpp - The device that is an NVIDIA GPU ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three streams, of which the first waits for the others as Work::after says:
//
//   compute    kernels, one after another
//   to device  what comes from the host, and all else that fills the device's memory
//   to host    what goes there
//
// and, where the optimizer runs on the device (device/cuda/updates.h), a fourth:
//
//   optimizer  updates and norms, one after another
//
// and, where SSDs reach the device's memory (device/cuda/files.h), one for the checksums of what
// they move there (device/cuda/sums.h).
//
// What stays on the host is device/host.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/files.h"
#include "runtime/device/cuda/graphs.h"
#include "runtime/device/cuda/launch_times.h"
#include "runtime/device/cuda/queue.h"
#include "runtime/device/cuda/ranges.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/device/cuda/sums.h"
#include "runtime/device/cuda/tables.h"
#include "runtime/device/cuda/updates.h"
#include "runtime/device/host.h"
#include "runtime/support/thread_pool.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace boa {
namespace {

using cuda::Blas;
using cuda::Gpu;
using cuda::GpuMemory;
using cuda::GpuStream;
using cuda::Pointer;
using Facts = std::map<std::string, std::string>;

/// The key in the environment for algorithms of products that are not the first proposals.
constexpr char kChoices[] = "algorithms";

class CudaDevice : public Device {
public:
  CudaDevice(const Program &program, const Kernels &kernels, StateStore *state, const IoOptions &io)
      : program(program), kernels(kernels), state(state),
        host(program, kernels.optimizer, state, {Reaching(io), /*scheduler=*/nullptr}) {}
  ~CudaDevice() override;
  absl::Status Start(const int64_t (&bytes)[2], Location workspace, DeviceListener *) override;
  void Submit(Work &) override;
  void Cancel() override;
  int64_t Now() const override { return Host::Now(); }
  bool OrdersKernels() const override { return true; }
  std::map<int64_t, double> TakeNorms() override {
    return updates ? updates->TakeNorms() : host.TakeNorms();
  }
  std::string TakeRemark() override { return graphs ? graphs->TakeRemark() : ""; }
  std::string Describe() const override {
    const std::string attention = queue.dnn ? queue.dnn->Describe() : "";
    return absl::StrCat(
        host.Describe(), "; on ", gpu->Describe(),
        program.machine.gemm == GemmKind::own ? ", products by the program's own kernels" : "",
        attention.empty() ? "" : ", ", attention);
  }
  Facts Environment() const override;

private:
  std::vector<GpuStream *> Streams() const;
  GpuStream *StreamOf(const Work &);
  absl::Status CreateUpdates();
  bool ReachesFiles() const { return program.machine.direct && state; }
  std::string Name(const Work &) const;
  absl::Status PlanKernels();
  absl::Status TryLibraries(bool &all);
  absl::Status ChooseProducts(void *memory);
  absl::Status EnqueueKernel(Work &);
  absl::Status EnqueueFill(Work &, cuda::Stream);
  Pointer OnDevice(Location where) const {
    return reinterpret_cast<Pointer>(memory->Address(Memory::Side::device, where));
  }

  IoOptions Reaching(IoOptions io) {
    io.far = program.machine.direct ? &files : nullptr;
    return io;
  }

  const Program &program;
  const Kernels kernels;
  StateStore *const state;
  DeviceListener *listener = nullptr;
  // Each uses those before it.
  std::unique_ptr<Gpu> gpu;
  boa_queue queue; // with what follows, the compute stream's first thread's
  std::unique_ptr<cuda::LaunchTimes> times; // where they are asked for
  std::vector<void *> kernel_buffers;
  std::unique_ptr<cuda::GpuTables> tables;
  void *workspace = nullptr;
  bool products_chosen = false;
  std::unique_ptr<cuda::KernelGraphs> graphs; // with the queue
  cuda::Order order;
  std::unique_ptr<cuda::GpuUpdates> updates; // where the optimizer runs here
  std::unique_ptr<GpuStream> compute, to_device, to_host, optimizer;
  std::unique_ptr<GpuMemory> memory;
  std::unique_ptr<cuda::GpuSums> sums; // with the next, where SSDs reach the memory
  cuda::GpuFiles files;
  Host host;
};

CudaDevice::~CudaDevice() {
  // All threads, before anything goes that they give work to.
  host.Stop();
  for (GpuStream *stream : Streams())
    stream->Stop();
  if (sums)
    sums->Stop();
  if (gpu)
    gpu->Enter().IgnoreError(); // this thread, which takes it all down
  queue.dnn = nullptr;          // before its stream
}

Facts CudaDevice::Environment() const {
  Facts versions = {{"gpu", gpu->Describe()}, {"driver", gpu->driver().Describe()}};
  if (queue.blas)
    versions["products"] = absl::StrCat("cuBLASLt ", queue.blas->version());
  if (std::string choices = queue.blas ? queue.blas->Choices() : ""; !choices.empty())
    versions[kChoices] = choices;
  if (std::string attention = queue.dnn ? queue.dnn->Describe() : ""; !attention.empty())
    versions["attention"] = std::string(absl::StripPrefix(attention, "attention "));
  return versions;
}

/// All streams that were made.
std::vector<GpuStream *> CudaDevice::Streams() const {
  std::vector<GpuStream *> streams;
  for (const auto *stream : {&compute, &to_device, &to_host, &optimizer})
    if (*stream)
      streams.push_back(stream->get());
  return streams;
}

absl::Status CudaDevice::Start(const int64_t (&bytes)[2], Location at,
                               DeviceListener *new_listener) {
  listener = new_listener;
  if (!kernels.image || !IsSeparate(program.machine))
    return absl::InternalError("the program is not one for a GPU: it has no image for it, or "
                               "takes its memory for the host's");
  SetThreads(program.machine.threads);
  absl::StatusOr<std::unique_ptr<Gpu>> opened = Gpu::Open();
  if (!opened.ok())
    return opened.status();
  gpu = *std::move(opened);
  if (absl::Status status = gpu->Load(*kernels.image); !status.ok())
    return status;
  auto made = cuda::LaunchTimes::Create(*gpu);
  if (!made.ok())
    return made.status();
  times = *std::move(made);
  for (std::unique_ptr<GpuStream> *stream : {&compute, &to_device, &to_host}) {
    auto enqueue = [this, stream](Work &work) {
      return stream == &compute ? EnqueueKernel(work) : EnqueueFill(work, (*stream)->handle());
    };
    auto finish = [this](const Work &work) {
      return times && work.kind == Work::Kind::kernel ? times->Finish() : absl::OkStatus();
    };
    auto name = [this](const Work &work) { return Name(work); };
    *stream = std::make_unique<GpuStream>(*gpu, order, enqueue, name, finish);
    if (absl::Status status = (*stream)->Create(listener); !status.ok())
      return status;
  }
  tables = std::make_unique<cuda::GpuTables>(*gpu);
  if (absl::Status status = tables->Create(program.tables, compute->handle()); !status.ok())
    return status;
  if (absl::Status status = PlanKernels(); !status.ok())
    return status;
  // Before what libraries take, which may be much: a trial needs no more than the program.
  if (absl::Status status = gpu->CheckFree(bytes[BOA_DEVICE]); !status.ok())
    return status;
  memory = std::make_unique<GpuMemory>(*gpu, compute->handle(), GpuMemory::kPart,
                                       program.machine.direct ? BOA_BLOCK_BYTES : 1);
  if (program.UpdatesOnDevice())
    if (absl::Status status = CreateUpdates(); !status.ok())
      return status;
  if (ReachesFiles()) {
    sums = std::make_unique<cuda::GpuSums>(program, *gpu, *memory);
    if (absl::Status status = sums->Create(); !status.ok())
      return status;
  }
  for (bool all = false; !all;) {
    absl::Status status = TryLibraries(all);
    if (status.ok() && !all)
      status = PlanKernels(); // of other calls now
    if (!status.ok())
      return status;
  }
  // The program's memory comes last: what is free now stays free.
  if (absl::Status status = memory->Allocate(bytes); !status.ok())
    return status;
  workspace = memory->Address(Memory::Side::device, at);
  if (ReachesFiles()) {
    const auto [arena, size] = memory->DeviceArena();
    if (absl::Status status = files.Open(*gpu, state->Files(), arena, size); !status.ok())
      return status;
  }
  if (absl::Status status = host.Start(*memory, listener, sums.get()); !status.ok())
    return status;
  cuda::InitializeRanges();
  for (GpuStream *stream : Streams())
    if (absl::Status status = stream->Start(); !status.ok())
      return status;
  return sums ? sums->Start() : absl::OkStatus();
}

absl::Status CudaDevice::CreateUpdates() {
  updates = std::make_unique<cuda::GpuUpdates>(program, kernels.optimizer, *gpu, *memory);
  optimizer = std::make_unique<GpuStream>(
      *gpu, order, [this](Work &work) { return updates->Enqueue(work); },
      [this](const Work &work) { return Name(work); },
      [this](const Work &work) { return updates->Finish(work); });
  absl::Status status = optimizer->Create(listener);
  return status.ok() ? updates->Create(optimizer->handle(), GpuStream::kDepth) : status;
}

/// Finds out what the kernels' calls need: nothing is asked or allocated for it later. There is no
/// memory yet: all buffers, the tables behind them, and the workspace are at an address that is
/// aligned as theirs will be.
absl::Status CudaDevice::PlanKernels() {
  queue.gpu = gpu.get();
  queue.driver = &gpu->driver();
  queue.stream = compute->handle();
  const char *const synchronous = std::getenv("BOA_CUDA_SYNC");
  queue.synchronizes = synchronous && *synchronous && std::strcmp(synchronous, "0") != 0;
  void *const nowhere = reinterpret_cast<void *>(uintptr_t{1} << 20);
  queue.times = times.get();
  queue.plans = true;
  std::vector<int64_t> launches;
  for (size_t k = 0; k < program.kernels.size() && queue.status.ok(); ++k) {
    const size_t buffers = program.kernels[k].buffers.size() + program.kernels[k].tables.size();
    kernel_buffers.resize(std::max(kernel_buffers.size(), buffers));
    std::fill_n(kernel_buffers.begin(), buffers, nowhere);
    queue.launches = 0;
    kernels.table[k](kernel_buffers.data(), nowhere, &queue);
    launches.push_back(queue.launches);
  }
  queue.plans = false;
  if (!queue.status.ok())
    return queue.status;
  graphs = std::make_unique<cuda::KernelGraphs>(program, *gpu);
  return graphs->Create(std::move(launches));
}

/// Sets the algorithms of products that are not the library's first proposals. A commit made with
/// this GPU and these versions says which. Otherwise they are measured, where that is wanted.
absl::Status CudaDevice::ChooseProducts(void *trial) {
  if (std::exchange(products_chosen, true))
    return absl::OkStatus();
  const absl::StatusOr<bool> measures = Blas::WantsMeasuring();
  if (!measures.ok())
    return measures.status();
  const Facts committed = state ? state->Committed().environment : Facts();
  auto is_as_then = [&, now = Environment()](const char *key) {
    const auto then = committed.find(key), here = now.find(key);
    return then != committed.end() && here != now.end() && then->second == here->second;
  };
  if (const auto choices = committed.find(kChoices); choices != committed.end() &&
                                                     is_as_then("gpu") && is_as_then("driver") &&
                                                     is_as_then("products")) {
    const absl::StatusOr<bool> taken = queue.blas->TakeChoices(choices->second);
    if (!taken.ok() || *taken)
      return taken.status();
  }
  return *measures ? queue.blas->Measure(*queue.driver, trial, queue.stream) : absl::OkStatus();
}

/// Runs what was planned of libraries once, on memory for a while: what they load then is loaded
/// before the program's memory is taken. `all`: none of it is done without from now on.
absl::Status CudaDevice::TryLibraries(bool &all) {
  all = true;
  const int64_t bytes =
      std::max(queue.blas ? queue.blas->TrialBytes() : 0, queue.dnn ? queue.dnn->TrialBytes() : 0);
  if (bytes == 0)
    return absl::OkStatus();
  const cuda::Driver &driver = gpu->driver();
  Pointer trial = 0;
  absl::Status status =
      driver.Call("allocating memory for a trial", driver.MemAlloc, &trial, size_t(bytes));
  if (!status.ok())
    return status;
  void *const at = reinterpret_cast<void *>(trial);
  if (queue.blas)
    status = ChooseProducts(at);
  if (queue.blas && status.ok())
    status = queue.blas->Try(at, queue.stream);
  if (queue.dnn && status.ok())
    all = queue.dnn->Try(at);
  // Nothing uses the memory when it goes, though the wait may be what fails.
  absl::Status over = driver.Call("waiting for a trial", driver.StreamSynchronize, queue.stream);
  if (!over.ok())
    driver.StreamSynchronize.address(queue.stream);
  if (status.ok())
    status = std::move(over);
  absl::Status freed = driver.Call("freeing memory of a trial", driver.MemFree, trial);
  return status.ok() ? freed : status;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

/// Null: the host's.
GpuStream *CudaDevice::StreamOf(const Work &work) {
  if (work.kind == Work::Kind::kernel)
    return compute.get();
  if (work.IsFill())
    return work.ToDevice() ? to_device.get() : work.ToHost() ? to_host.get() : nullptr;
  return work.IsTransfer() ? nullptr : optimizer.get();
}

void CudaDevice::Submit(Work &work) {
  if (GpuStream *stream = StreamOf(work))
    stream->Submit(work);
  else
    host.Submit(work);
}

void CudaDevice::Cancel() {
  const int64_t now = Now();
  order.Cancel();
  for (GpuStream *stream : Streams())
    for (Work *work : stream->Clear()) {
      const int64_t sequence = work->sequence;
      listener->Done(*work, now, now, absl::CancelledError("not begun"));
      order.Remove(sequence);
    }
  host.Cancel();
}

std::string CudaDevice::Name(const Work &work) const {
  if (work.kind == Work::Kind::kernel)
    return absl::StrCat("kernel ", program.kernels[work.index].name);
  if (work.kind == Work::Kind::norm_done)
    return ""; // the host's
  if (!work.IsFill())
    return absl::StrCat(work.kind == Work::Kind::norm ? "norm of " : "update of ",
                        program.groups[work.index].name, " entry ", work.entry);
  return absl::StrCat(program.storages[work.storage].name, " entry ", work.entry);
}

absl::Status CudaDevice::EnqueueKernel(Work &work) {
  for (size_t i = 0; i < work.buffers.size(); ++i)
    kernel_buffers[i] = memory->Address(Memory::Side::device, work.buffers[i]);
  void **behind = kernel_buffers.data() + work.buffers.size();
  for (int64_t table : program.kernels[work.index].tables)
    *behind++ = tables->Address(table);
  absl::Status status;
  if (!listener->IsLeftOut(work))
    status = graphs->Enqueue(work, kernel_buffers, queue, [&] {
      kernels.table[work.index](kernel_buffers.data(), workspace, &queue);
    });
  if (times)
    times->EndKernel(program.kernels[work.index].name);
  return status;
}

absl::Status CudaDevice::EnqueueFill(Work &work, cuda::Stream stream) {
  const cuda::Driver &driver = gpu->driver();
  const size_t bytes = size_t(work.bytes);
  switch (work.kind) {
  case Work::Kind::zero:
    return driver.Call("filling with zeros", driver.MemsetD8Async, OnDevice(work.buffers[0]), 0,
                       bytes, stream);
  case Work::Kind::copy_in:
    return driver.Call("copying to the device", driver.MemcpyHtoDAsync, OnDevice(work.buffers[0]),
                       work.outside, bytes, stream);
  case Work::Kind::copy_out:
    return driver.Call("copying from the device", driver.MemcpyDtoHAsync, work.outside,
                       OnDevice(work.buffers[0]), bytes, stream);
  default:
    return memory->Copy(work.buffers[0], work.buffers[1], work.bytes, stream);
  }
}

} // namespace

std::unique_ptr<Device> CreateCudaDevice(const Program &program, const Kernels &kernels,
                                         StateStore *state, const IoOptions &io) {
  return std::make_unique<CudaDevice>(program, kernels, state, io);
}

} // namespace boa
