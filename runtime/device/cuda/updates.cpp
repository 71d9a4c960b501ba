//===- updates.cpp - The optimizer on a GPU -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/updates.h"

#include "runtime/kernels/norm.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <string>

namespace boa::cuda {

GpuUpdates::GpuUpdates(const Program &program, const boa_optimizer *optimizer, const Gpu &gpu,
                       const GpuMemory &memory)
    : program(program), gpu(gpu), memory(memory), updates(program, optimizer) {}

GpuUpdates::~GpuUpdates() {
  const Driver &driver = gpu.driver();
  if (registered)
    driver.MemHostUnregister.address(on_host);
  UnmapArena(on_host, bytes);
  if (on_device)
    driver.MemFree.address(on_device);
  if (summed)
    driver.EventDestroy.address(summed);
}

absl::Status GpuUpdates::Create(Stream on, size_t most) {
  stream = on;
  depth = int64_t(most);
  if (absl::Status status = Find(); !status.ok())
    return status;
  const Driver &driver = gpu.driver();
  if (absl::Status status =
          driver.Call("making an event", driver.EventCreate, &summed, kBlockingSync);
      !status.ok())
    return status;
  int64_t sums_of_one = 0;
  for (const Functions &of : functions)
    sums_of_one = std::max(sums_of_one, of.sums);
  bytes = depth * int64_t(sizeof(Slot)) + sums_of_one * int64_t(sizeof(double));
  if (absl::Status status = MapArena(bytes, on_host); !status.ok())
    return status;
  slots = reinterpret_cast<Slot *>(on_host);
  sums = reinterpret_cast<double *>(slots + depth);
  const char *const doing = "allocating what updates are told by";
  absl::Status status =
      driver.Call(doing, driver.MemHostRegister, on_host, size_t(bytes), unsigned(0));
  registered = status.ok();
  return status.ok() ? driver.Call(doing, driver.MemAlloc, &on_device, size_t(bytes)) : status;
}

/// By their names: launches of kernels number functions, these are nobody's launch.
absl::Status GpuUpdates::Find() {
  for (const Group &group : program.groups) {
    Functions &of = functions.emplace_back();
    if (group.gradient < 0)
      continue;
    const std::string stored = StoredName(program, group);
    const std::string update = DeviceName(kUpdatePrefix + stored),
                      norm = DeviceName(kNormPrefix + stored);
    for (const LoadedFunction &function : gpu.functions()) {
      if (function.name == update)
        of.update = function.handle;
      if (function.name == norm)
        of.norm = function.handle;
    }
    if (!of.update || !of.norm || group.chunk_elements % (kUpdateThreads * kUpdateElements) != 0)
      return absl::InternalError(absl::StrCat(
          "the program's optimizer runs on the device, but its image has no functions for group `",
          group.name, "`: compile the program anew"));
    for (const Parameter &parameter : group.parameters)
      of.sums += SumBlocks(parameter.elements());
  }
  return absl::OkStatus();
}

Pointer GpuUpdates::At(Location where) const {
  return reinterpret_cast<Pointer>(memory.Address(Memory::Side::device, where));
}

absl::Status GpuUpdates::Launch(Function function, const char *doing, int64_t blocks,
                                int64_t threads, std::vector<Pointer> arguments) {
  std::vector<void *> addresses;
  for (Pointer &argument : arguments)
    addresses.push_back(&argument);
  const Driver &driver = gpu.driver();
  return driver.Call(doing, driver.LaunchKernel, function, unsigned(blocks), 1u, 1u,
                     unsigned(threads), 1u, 1u, 0u, stream, addresses.data(), nullptr);
}

absl::Status GpuUpdates::Enqueue(Work &work) {
  if (work.kind == Work::Kind::norm)
    return Norm(work);
  if (work.kind == Work::Kind::norm_done)
    return updates.FinishNorm(work.step);
  work.parts = int32_t(next++ % depth);
  return EnqueueUpdate(work);
}

absl::Status GpuUpdates::EnqueueUpdate(const Work &work) {
  Slot &slot = slots[work.parts];
  slot.flag = 0;
  const auto numbers = updates.Numbers(work.step);
  if (!numbers.ok() || !*numbers)
    return numbers.status();
  const UpdateNumbers &of = **numbers;
  slot.constants[kRate] = of.rate;
  slot.constants[kGradientScale] = of.gradient_scale;
  const uint32_t seed = updates.Seed(work);
  std::memcpy(&slot.constants[kChunkNumber], &work.first, sizeof(work.first));
  std::memcpy(&slot.constants[kSeed], &seed, sizeof(seed));
  std::copy(std::begin(of.scalars), std::end(of.scalars), slot.constants + kUpdateScalars);

  const Pointer there = on_device + work.parts * sizeof(Slot);
  const Pointer flag = there + offsetof(Slot, flag);
  const Group &group = program.groups[work.index];
  std::vector<Pointer> arguments{there, flag, At(work.buffers[0])};
  if (work.buffers[1].space >= 0)
    arguments.push_back(At(work.buffers[1]));
  for (size_t s = 0; s < program.optimizer.states.size(); ++s) {
    arguments.push_back(At(work.buffers[3 + s]));
    if (IsCode(program.optimizer.states[s].type))
      arguments.push_back(arguments.back() + Pointer(group.chunk_elements));
  }
  arguments.push_back(At(work.buffers[2]));
  const Driver &driver = gpu.driver();
  const char *const doing = "updating";
  absl::Status status =
      driver.Call(doing, driver.MemcpyHtoDAsync, there, &slot, sizeof(Slot), stream);
  if (status.ok())
    status = Launch(functions[work.index].update, doing,
                    program.groups[work.index].chunk_elements / (kUpdateThreads * kUpdateElements),
                    kUpdateThreads, std::move(arguments));
  return status.ok() ? driver.Call(doing, driver.MemcpyDtoHAsync, &slot.flag, flag,
                                   sizeof(slot.flag), stream)
                     : status;
}

absl::Status GpuUpdates::Finish(const Work &work) {
  if (work.kind != Work::Kind::update || slots[work.parts].flag == 0)
    return absl::OkStatus();
  // Which tensor it was the host finds out. Nobody changes the chunk before this is done.
  const Group &group = program.groups[work.index];
  std::vector<int64_t> sizes{group.chunk_elements * (group.weight_type == "bf16" ? 2 : 4),
                             group.chunk_elements * 2, group.chunk_elements * 4};
  for (const OptimizerState &state : program.optimizer.states)
    sizes.push_back(StateBytes(state.type, group.chunk_elements));
  std::vector<std::vector<char>> copies(sizes.size());
  std::vector<char *> addresses(sizes.size());
  const Driver &driver = gpu.driver();
  const char *const doing = "reading what is not finite";
  absl::Status status;
  for (size_t i = 0; i < sizes.size() && status.ok(); ++i) {
    if (work.buffers[i].space < 0)
      continue;
    copies[i].resize(sizes[i]);
    addresses[i] = copies[i].data();
    status = driver.Call(doing, driver.MemcpyDtoHAsync, addresses[i], At(work.buffers[i]),
                         copies[i].size(), stream);
  }
  // A copy to memory that is not registered may be over when the call returns, or later. The run
  // ends here: nobody minds a wait that does not sleep, nor what comes behind the copies, nor one
  // wait more, where the first may be what fails.
  absl::Status over = driver.Call(doing, driver.StreamSynchronize, stream);
  if (!over.ok())
    driver.StreamSynchronize.address(stream);
  if (status.ok())
    status = std::move(over);
  return status.ok() ? updates.CheckFinite(work, addresses) : status;
}

absl::Status GpuUpdates::Norm(const Work &work) {
  const Group &group = program.groups[work.index];
  const Functions &of = functions[work.index];
  if (work.first != 0 || work.count != group.chunks)
    return absl::InternalError("the program takes the norm of some of a gradient's chunks");
  const Pointer there = on_device + depth * sizeof(Slot);
  const Driver &driver = gpu.driver();
  const char *const doing = "adding up the squares of a gradient";
  constexpr int64_t kAtOnce = kNormThreads / kSumLanes;
  absl::Status status = Launch(of.norm, doing, (of.sums + kAtOnce - 1) / kAtOnce, kNormThreads,
                               {At(work.buffers[0]), there});
  if (status.ok())
    status = driver.Call(doing, driver.MemcpyDtoHAsync, sums, there,
                         size_t(of.sums) * sizeof(double), stream);
  if (status.ok())
    status = driver.Call(doing, driver.EventRecord, summed, stream);
  if (status.ok())
    status = driver.Call(doing, driver.EventSynchronize, summed);
  if (!status.ok())
    return status;
  std::vector<double> squares;
  const double *next_sum = sums;
  for (const Parameter &parameter : group.parameters) {
    const int64_t count = SumBlocks(parameter.elements());
    squares.push_back(PairwiseSum(next_sum, count));
    next_sum += count;
  }
  updates.AddNorm(work, squares);
  return absl::OkStatus();
}

} // namespace boa::cuda
