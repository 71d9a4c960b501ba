//===- updates.cpp - The functions of an image that no kernel launches ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A packed program's updates, norms and checksums (layer.boa). They run by the runtime's own
// classes, as in a training. Their results are compared with the host's, bit for bit.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/sums.h"
#include "runtime/device/cuda/updates.h"
#include "runtime/kernels/master.h"
#include "test/gpu/measures.h"
#include "test/gpu/step.h"
#include "test/gpu/timing.h"
#include "test/gpu/traffic.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <set>
#include <vector>

namespace boa::gputest {
namespace {

constexpr size_t kGradient = 2; // behind weights and low; the states follow
constexpr int64_t kStep = 1;
constexpr int kSumRounds = 9;
constexpr int kHostRounds = 5;

const char *Verdict(bool same) { return same ? "the host's bits" : "OTHER BITS THAN THE HOST'S"; }

class UpdateMeasure {
public:
  UpdateMeasure(const Session &session, const PackedProgram &packed, const cuda::Gpu &gpu)
      : session(session), program(packed.program), gpu(gpu), memory(gpu, session.stream()),
        updates(program, packed.optimizer, gpu, memory), on_host(program, packed.optimizer) {}

  int Run() {
    absl::Status status = Allocate();
    if (status.ok())
      status = updates.Create(session.stream(), 64);
    if (!status.ok())
      return NotMeasured("the optimizer", status);
    for (int32_t group = 0; group < int32_t(program.groups.size()); ++group)
      if (program.groups[group].gradient >= 0)
        if (status = MeasureGroup(group); !status.ok())
          return NotMeasured("the optimizer of " + program.groups[group].name, status);
    if (status = MeasureSums(); !status.ok())
      return NotMeasured("checksums", status);
    return failed;
  }

private:
  /// Bytes of a chunk of each tensor, in the order of Work::buffers; 0 of one that the group lacks.
  std::vector<int64_t> SizesOf(const Group &group) const {
    std::vector<int64_t> sizes{(group.weight_type == "bf16" ? 2 : 4) * group.chunk_elements,
                               (group.low >= 0 ? 2 : 0) * group.chunk_elements,
                               4 * group.chunk_elements};
    for (const OptimizerState &state : program.optimizer.states)
      sizes.push_back(StateBytes(state.type, group.chunk_elements));
    return sizes;
  }

  /// Room for the tensors of one group, one behind the other.
  absl::Status Allocate() {
    for (const Group &group : program.groups) {
      int64_t bytes = 0;
      for (int64_t size : SizesOf(group))
        bytes += group.chunks * size;
      arena = std::max(arena, bytes);
    }
    int64_t bytes[2] = {};
    bytes[BOA_DEVICE] = arena;
    absl::Status status = gpu.CheckFree(arena);
    return status.ok() ? memory.Allocate(bytes) : status;
  }

  /// The work of some chunks, with the place of each tensor at the first of them.
  Work WorkOf(Work::Kind kind, int32_t group_index, int32_t first, int32_t count) const {
    const Group &group = program.groups[group_index];
    Work work;
    work.kind = kind;
    work.index = group_index;
    work.step = kStep;
    work.first = first;
    work.count = count;
    int64_t begin = 0;
    const auto sizes = SizesOf(group);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Location at{BOA_DEVICE, begin + first * sizes[i]};
      if (kind == Work::Kind::update || i == kGradient)
        work.buffers.push_back(sizes[i] > 0 ? at : Location());
      begin += group.chunks * sizes[i];
    }
    return work;
  }

  char *At(const Location &where) const { return memory.Address(Memory::Side::device, where); }

  absl::Status Put(const Location &to, const void *from, size_t bytes) const {
    const cuda::Driver &driver = session.driver();
    absl::Status status =
        driver.Call("copying to the device", driver.MemcpyHtoDAsync,
                    reinterpret_cast<cuda::Pointer>(At(to)), from, bytes, session.stream());
    return status.ok() ? session.Wait() : status;
  }
  absl::Status Get(const Location &from, void *to, size_t bytes) const {
    const cuda::Driver &driver = session.driver();
    absl::Status status =
        driver.Call("copying from the device", driver.MemcpyDtoHAsync, to,
                    reinterpret_cast<cuda::Pointer>(At(from)), bytes, session.stream());
    return status.ok() ? session.Wait() : status;
  }

  /// The first chunk of each tensor, at random.
  std::vector<std::vector<char>> MakeChunk(const Group &group) const {
    std::vector<std::vector<char>> chunk;
    for (int64_t size : SizesOf(group))
      chunk.emplace_back(size_t(size));
    uint32_t random = 1;
    auto next = [&] {
      random = random * 1664525u + 1013904223u;
      return float(random >> 8) / float(1 << 24);
    };
    auto put = [&](size_t tensor, int64_t at, const auto &value) {
      std::memcpy(chunk[tensor].data() + size_t(at) * sizeof value, &value, sizeof value);
    };
    for (int64_t e = 0; e < group.chunk_elements; ++e) {
      const float weight = next() - 0.5f;
      uint32_t bits;
      std::memcpy(&bits, &weight, sizeof bits);
      if (group.low >= 0) {
        put(0, e, MasterHigh(bits));
        put(1, e, MasterLow(bits));
      } else {
        put(0, e, weight);
      }
      put(kGradient, e, (next() - 0.5f) * 1e-1f);
      for (size_t s = 0; s < program.optimizer.states.size(); ++s) {
        const std::string &type = program.optimizer.states[s].type;
        const float value = next() * 1e-2f;
        std::memcpy(&bits, &value, sizeof bits);
        if (type == "f32")
          put(kGradient + 1 + s, e, value);
        else if (type == "bf16")
          put(kGradient + 1 + s, e, uint16_t(bits >> 16));
        else // codes; all scales are one
          put(kGradient + 1 + s, e, uint8_t(bits));
      }
    }
    for (size_t s = 0; s < program.optimizer.states.size(); ++s)
      if (IsCode(program.optimizer.states[s].type))
        for (int64_t block = 0; block < group.chunk_elements / BOA_STATE_BLOCK; ++block)
          put(kGradient + 1 + s, group.chunk_elements / 4 + block, 1.0f);
    return chunk;
  }

  absl::Status MeasureGroup(int32_t index) {
    const Group &group = program.groups[index];
    const auto sizes = SizesOf(group);
    auto chunk = MakeChunk(group);
    Work first = WorkOf(Work::Kind::update, index, 0, 1);
    const cuda::Driver &driver = session.driver();
    absl::Status status =
        driver.Call("clearing", driver.MemsetD8Async,
                    reinterpret_cast<cuda::Pointer>(memory.DeviceArena().first),
                    static_cast<unsigned char>(0), size_t(arena), session.stream());
    for (size_t i = 0; i < sizes.size() && status.ok(); ++i)
      if (sizes[i] > 0)
        status = Put(first.buffers[i], chunk[i].data(), chunk[i].size());

    // The norm decides about the clipping factor of the update, on both sides.
    Work norm = WorkOf(Work::Kind::norm, index, 0, group.chunks);
    Work done;
    done.kind = Work::Kind::norm_done;
    done.step = kStep;
    for (Work *work : {&norm, &done, &first})
      if (status.ok())
        status = updates.Enqueue(*work);
    if (status.ok())
      status = session.Wait();
    if (status.ok())
      status = updates.Finish(first);
    std::vector<float> gradient(size_t(group.elements));
    std::memcpy(gradient.data(), chunk[kGradient].data(), chunk[kGradient].size());
    on_host.Norm(norm, gradient.data());
    if (status.ok())
      status = on_host.FinishNorm(kStep);
    std::vector<char *> addresses;
    for (size_t i = 0; i < sizes.size(); ++i)
      addresses.push_back(sizes[i] > 0 ? chunk[i].data() : nullptr);
    if (status.ok())
      status = on_host.Update(first, addresses);
    bool same = true;
    for (size_t i = 0; i < sizes.size() && status.ok(); ++i) {
      std::vector<char> found(chunk[i].size());
      if (sizes[i] > 0)
        status = Get(first.buffers[i], found.data(), found.size());
      same &= found == chunk[i];
    }
    if (!status.ok())
      return status;
    failed |= !same;

    int64_t moved = -sizes[kGradient]; // which is only read
    for (int64_t size : sizes)
      moved += 2 * size;
    const auto update = MeasureMs(session, [&] {
      absl::Status all;
      for (int32_t at = 0; at < group.chunks && all.ok(); ++at) {
        Work work = WorkOf(Work::Kind::update, index, at, 1);
        all = updates.Enqueue(work);
      }
      return all;
    });
    if (!update.ok())
      return update.status();
    std::printf("update of %s, %d chunks: %s, %s; %s\n", group.name.c_str(), int(group.chunks),
                FormatMs(*update).c_str(),
                FormatBandwidth(double(group.chunks * moved), *update).c_str(), Verdict(same));
    if (status = MeasureHost(index, chunk, double(group.chunks * moved)); !status.ok())
      return status;
    const auto norms = MeasureMs(session, [&] { return updates.Enqueue(norm); });
    if (!norms.ok())
      return norms.status();
    // The norms that were measured are no part of the next group's.
    if (status = updates.Enqueue(done); !status.ok())
      return status;
    std::printf("norm of %s: %s, %s\n", group.name.c_str(), FormatMs(*norms).c_str(),
                FormatBandwidth(double(group.elements * 4), *norms).c_str());
    return absl::OkStatus();
  }

  /// The same updates by all threads of the host: of all chunks, since a cache holds one. Alone,
  /// and beside copies both ways, with which they share the host's memory.
  absl::Status MeasureHost(int32_t index, const std::vector<std::vector<char>> &chunk,
                           double moved) {
    std::vector all(size_t(program.groups[index].chunks), chunk);
    auto alone = TimeHost(index, all);
    if (!alone.ok())
      return alone.status();
    std::printf("the same by the host: %s, %s\n", FormatMs(*alone).c_str(),
                FormatBandwidth(moved, *alone).c_str());
    Traffic traffic;
    if (absl::Status status = traffic.Start(); !status.ok())
      return status;
    const auto begin = std::chrono::steady_clock::now();
    const int64_t before = traffic.Copied();
    auto beside = TimeHost(index, all);
    const int64_t copied = traffic.Copied() - before;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    traffic.Stop();
    if (!beside.ok())
      return beside.status();
    const double together = moved / *beside + double(copied) / took.count(); // bytes a millisecond
    std::printf("the same beside copies both ways: %s, %s; the copies %s; together %s\n",
                FormatMs(*beside).c_str(), FormatBandwidth(moved, *beside).c_str(),
                FormatBandwidth(double(copied), took.count()).c_str(),
                FormatBandwidth(together, 1).c_str());
    return absl::OkStatus();
  }

  /// Milliseconds of an update of all chunks by the host.
  absl::StatusOr<double> TimeHost(int32_t index, std::vector<std::vector<std::vector<char>>> &all) {
    std::vector<double> milliseconds;
    for (int round = 0; round < kHostRounds; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (size_t at = 0; at < all.size(); ++at) {
        std::vector<char *> addresses;
        for (std::vector<char> &tensor : all[at])
          addresses.push_back(tensor.empty() ? nullptr : tensor.data());
        if (absl::Status status =
                on_host.Update(WorkOf(Work::Kind::update, index, int32_t(at), 1), addresses);
            !status.ok())
          return status;
      }
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - begin;
      milliseconds.push_back(took.count());
    }
    std::sort(milliseconds.begin(), milliseconds.end());
    return milliseconds[kHostRounds / 2];
  }

  /// Of as many chunks at once as one launch takes: of each size that the program has.
  absl::Status MeasureSums() {
    cuda::GpuSums sums(program, gpu, memory);
    absl::Status status = sums.Create();
    if (status.ok())
      status = sums.Start();
    std::set<int64_t> seen;
    for (int32_t id = 0; id < int32_t(program.storages.size()) && status.ok(); ++id) {
      const Storage &storage = program.storages[id];
      const int64_t bytes = storage.chunk_bytes();
      if (storage.LivesOn(Home::ssd) && bytes <= arena && seen.insert(bytes).second)
        status = MeasureSum(sums, id, int32_t(std::min<int64_t>(sums.Most(), arena / bytes)));
    }
    sums.Stop();
    return status;
  }

  absl::Status MeasureSum(cuda::GpuSums &sums, int32_t storage, int32_t count) {
    const int64_t bytes = program.storages[storage].chunk_bytes();
    Work work;
    work.storage = storage;
    work.buffers = {{BOA_DEVICE, 0}};
    std::vector<char> chunk(static_cast<size_t>(bytes));
    if (absl::Status status = Get(work.buffers[0], chunk.data(), chunk.size()); !status.ok())
      return status;
    std::vector<double> milliseconds;
    bool same = true;
    for (int round = 0; round < kSumRounds; ++round) {
      using Told = absl::StatusOr<std::vector<uint64_t>>;
      std::promise<Told> told;
      const auto begin = std::chrono::steady_clock::now();
      sums.Make(work, 0, count, [&](Told made) { told.set_value(std::move(made)); });
      const Told made = told.get_future().get();
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - begin;
      if (!made.ok())
        return made.status();
      milliseconds.push_back(took.count());
      same &= made->front() == Checksum(chunk.data(), bytes);
    }
    failed |= !same;
    std::nth_element(milliseconds.begin(), milliseconds.begin() + kSumRounds / 2,
                     milliseconds.end());
    const double median = milliseconds[kSumRounds / 2];
    std::printf("checksums of %d chunks of %d bytes, the host's wait with it: %s, %s; %s\n",
                int(count), int(bytes), FormatMs(median).c_str(),
                FormatBandwidth(double(count * bytes), median).c_str(), Verdict(same));
    return absl::OkStatus();
  }

  const Session &session;
  const Program &program;
  const cuda::Gpu &gpu;
  cuda::GpuMemory memory;
  int64_t arena = 0; // bytes
  cuda::GpuUpdates updates;
  Updates on_host;
  int failed = 0;
};

} // namespace

int MeasureUpdates(const std::string &file, double /*peak*/) {
  auto session = Session::Open();
  if (!session.ok())
    return NotMeasured("the optimizer", session.status());
  auto packed = PackedProgram::Load(file);
  if (!packed.ok())
    return NotMeasured("the optimizer", packed.status());
  auto gpu = cuda::Gpu::Open();
  absl::Status status = gpu.status();
  if (gpu.ok())
    status = (*gpu)->Load(*(*packed)->image);
  return status.ok() ? UpdateMeasure(**session, **packed, **gpu).Run()
                     : NotMeasured("the optimizer", status);
}

} // namespace boa::gputest
