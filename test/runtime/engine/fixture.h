//===- fixture.h - An engine and a program by hand --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Entry points written by hand, on both I/O backends and by a scheduler. What they leave in
// the storages is compared with the same commands carried out one after another.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_ENGINE_FIXTURE_H
#define BOA_TEST_RUNTIME_ENGINE_FIXTURE_H

#include "runtime/engine/engine.h"
#include "runtime/kernels/norm.h"
#include "test/runtime/chunks.h"
#include "test/runtime/reference_optimizer.h"
#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <thread>
#include <unistd.h>

namespace boa::engine_test {

constexpr int64_t kChunk = 8192; // bytes
constexpr int32_t kChunks = 2;
constexpr int64_t kWords = kChunk * kChunks / 8; // of one entry
constexpr int64_t kEntries = 8;
constexpr int64_t kElements = kChunk * kChunks / 4; // f32 of one entry

enum StorageId : int32_t { kData, kMemory, kWeights, kMomentum, kVariance, kGradient };
enum KernelId : int32_t { kMix, kSlowMix, kCount };

/// out = 3 out + a + 7 b, so that the order of two calls shows.
inline void Mix(void *const *buffers, void *, boa_queue *) {
  auto *a = static_cast<const uint64_t *>(buffers[0]);
  auto *b = static_cast<const uint64_t *>(buffers[1]);
  auto *out = static_cast<uint64_t *>(buffers[2]);
  for (int64_t i = 0; i < kWords; ++i)
    out[i] = 3 * out[i] + a[i] + 7 * b[i];
}
inline void SlowMix(void *const *buffers, void *workspace, boa_queue *queue) {
  std::this_thread::sleep_for(std::chrono::microseconds(300));
  Mix(buffers, workspace, queue);
}
/// Counts the buffers that are null into the last one.
inline void Count(void *const *buffers, void *, boa_queue *) {
  auto *out = static_cast<uint64_t *>(buffers[1]);
  out[0] = buffers[0] == nullptr;
}
inline const boa_kernel kTable[] = {Mix, SlowMix, Count};
inline const Kernels kKernels(kTable, nullptr, &kReferenceAdamW);

// Entry points carry no data of their own.
inline std::function<void(boa_context *, int64_t, int64_t)> driver;
inline void Drive(boa_context *context, int64_t step, int64_t pending) {
  driver(context, step, pending);
}

inline Storage MakeStorage(const char *name, Home::Tier tier, int64_t entries, bool persistent,
                           int32_t slots) {
  Storage storage;
  storage.name = storage.role = name;
  storage.homes = {{entries, {{tier, kChunks}}}};
  storage.entries = {entries};
  storage.bytes = kChunk * kChunks;
  storage.chunks = kChunks;
  storage.persistent = persistent;
  if (tier == Home::ssd)
    storage.pools = {{BOA_DEVICE, kChunks, slots}};
  return storage;
}

inline Program MakeProgram(int32_t slots = 16, bool persistent = true) {
  Program program;
  program.abi = BOA_ABI_VERSION;
  program.model.name = "test";
  program.storages = {MakeStorage("data", Home::ssd, kEntries, persistent, slots),
                      MakeStorage("memory", Home::device, kEntries, true, 0),
                      MakeStorage("weights", Home::ssd, 2, true, 4),
                      MakeStorage("momentum", Home::ssd, 2, true, 4),
                      MakeStorage("variance", Home::host, 2, true, 0),
                      MakeStorage("gradient", Home::host, 2, false, 0)};
  for (StorageId of : {kWeights, kMomentum, kVariance})
    program.storages[of].name += ".block";
  KernelBuffer read{true, false}, write{false, true}, both{true, true};
  program.kernels = {{"mix", {read, read, both}, 64},
                     {"slow_mix", {read, read, both}, 4096},
                     {"count", {read, write}}};
  Group group;
  group.name = "block";
  group.count = 2;
  group.layer = true;
  group.elements = kElements;
  group.chunks = kChunks;
  group.chunk_elements = kElements / kChunks;
  group.weight_type = "f32";
  group.parameters = {{"matrix", {40, 50}, 0, "zeros", 0, 0, 1, 0.1},
                      {"bias", {kElements - 2100}, 2048, "zeros", 0, 1, 1, 0}};
  group.weights = kWeights;
  group.states = {kMomentum, kVariance};
  group.gradient = kGradient;
  program.groups = {group};
  program.optimizer = kReferenceShape;
  reference_settings = {};
  program.train.optimizer.rate = RateKind::constant;
  program.train.optimizer.peak = program.train.optimizer.floor = 0.01;
  program.train.steps = 100;
  return program;
}

inline boa_buffer Fetch(boa_context *context, int32_t storage, int64_t entry, int32_t first = 0,
                        int32_t count = kChunks) {
  return boa_rt_prefetch(context, storage, entry, first, count, BOA_DEVICE, 0);
}

inline boa_buffer FetchZeros(boa_context *context, int32_t storage, int64_t entry) {
  return boa_rt_prefetch(context, storage, entry, 0, kChunks, BOA_DEVICE, /*zero=*/1);
}

/// out = mix(a, b, out) with all three entries of `storage`, written home.
inline void MixEntries(boa_context *context, int32_t storage, int64_t a, int64_t b, int64_t out,
                       int32_t retain = 0, KernelId kernel = kMix) {
  boa_buffer buffers[] = {Fetch(context, storage, a), Fetch(context, storage, b),
                          Fetch(context, storage, out)};
  boa_rt_launch(context, kernel, 3, buffers);
  boa_rt_offload(context, buffers[2], storage, out, 0, kChunks);
  boa_rt_release(context, buffers[0], 0);
  boa_rt_release(context, buffers[1], 0);
  boa_rt_release(context, buffers[2], retain);
}

inline std::vector<float> RandomFloats(uint32_t seed) {
  std::minstd_rand random(seed + 1);
  std::vector<float> values(kElements);
  for (float &value : values)
    value = float(int64_t(random() % 2001) - 1000) / 1000;
  return values;
}

/// A seed decides.
class RandomScheduler : public Scheduler {
public:
  explicit RandomScheduler(uint32_t seed) : random(seed) {}
  size_t Choose(size_t count) override {
    ++choices;
    return random() % count;
  }
  int64_t choices = 0;

private:
  std::minstd_rand random;
};

inline std::string NotFiniteMessage(const std::string &what) {
  return what + ", and go on from the last commit";
}

inline std::string DamageMessage(const std::string &chunk, const std::string &path, int64_t offset,
                                 bool persistent) {
  return absl::StrCat("checksum of ", chunk, " in ", path, " at offset ", offset,
                      " does not match: the data on disk is damaged; check the disk, then ",
                      persistent ? "restore the state directory from a copy or go on from an "
                                   "earlier commit"
                                 : "go on from the last commit");
}

class EngineTest : public testing::TestWithParam<const char *> {
protected:
  bool scheduled() const { return GetParam() == std::string("scheduled"); }

  EngineOptions Options() {
    EngineOptions options;
    options.io.prefer_threads = GetParam() == std::string("threads");
    options.scheduler = scheduled() ? &scheduler : nullptr;
    return options;
  }

  void Make(Program with, EngineOptions options, bool reopen = false) {
    engine.reset();
    state.reset();
    program = std::move(with);
    if (program.machine.ssd.empty())
      program.machine.ssd = {{scratch.path("state")}};
    auto opened = reopen ? StateStore::Open(SystemFiles(), program, {scratch.path("state")})
                         : StateStore::Create(SystemFiles(), program, {scratch.path("state")});
    ASSERT_TRUE(opened.ok()) << opened.status();
    state = *std::move(opened);
    auto made = Engine::Create(program, kKernels, state.get(), options);
    ASSERT_TRUE(made.ok()) << made.status();
    engine = *std::move(made);
  }
  void Make() { Make(MakeProgram(), Options()); }

  int64_t Enqueue(const std::function<void(boa_context *)> &body, int64_t step = 1,
                  const std::vector<Port> &in = {}, const std::vector<Port> &out = {}) {
    driver = [&](boa_context *context, int64_t, int64_t) { body(context); };
    return engine->Enqueue(Drive, step, 0, in, out);
  }
  absl::Status Run(const std::function<void(boa_context *)> &body, int64_t step = 1) {
    return engine->Wait(Enqueue(body, step));
  }

  /// Closes the state and changes a byte of a chunk on disk; the file's path.
  std::string Damage(const Extent &extent) {
    std::string path = state->Files()[extent.file].path;
    state.reset();
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(extent.offset + 100);
    file.put('x');
    return path;
  }

  /// Changes a bit of a chunk on disk while the state is open.
  void FlipBit(const Extent &extent) {
    ASSERT_TRUE(engine->Drain().ok());
    int fd = state->Files()[extent.file].fd;
    std::unique_ptr<char, decltype(&std::free)> block(
        static_cast<char *>(std::aligned_alloc(4096, 4096)), &std::free);
    ASSERT_EQ(pread(fd, block.get(), 4096, extent.offset + 4096), 4096);
    block.get()[1234] ^= 4;
    ASSERT_EQ(pwrite(fd, block.get(), 4096, extent.offset + 4096), 4096);
  }

  template <class T> std::vector<T> Read(int32_t storage, int64_t entry) {
    std::vector<T> values(kChunk * kChunks / sizeof(T));
    for (int32_t chunk = 0; chunk < kChunks; ++chunk) {
      absl::Status status = ReadChunk(*engine, storage, entry, chunk,
                                      values.data() + chunk * (kChunk / sizeof(T)), kChunk);
      EXPECT_TRUE(status.ok()) << status;
    }
    return values;
  }
  template <class T> void Write(int32_t storage, int64_t entry, const std::vector<T> &values) {
    for (int32_t chunk = 0; chunk < kChunks; ++chunk) {
      absl::Status status = WriteChunk(*engine, storage, entry, chunk,
                                       values.data() + chunk * (kChunk / sizeof(T)), kChunk);
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  /// Zeros for what a test did not write.
  absl::Status WriteRest() {
    const std::vector<char> zeros(kChunk);
    for (size_t s = 0; s < program.storages.size(); ++s) {
      const Storage &storage = program.storages[s];
      for (int64_t entry = 0; entry < storage.entry_count(); ++entry)
        for (int32_t chunk = 0; chunk < storage.chunks; ++chunk)
          if (storage.persistent && storage.TierOf(entry, chunk) == Home::ssd &&
              state->Current(s, entry, chunk).file < 0)
            if (absl::Status status = WriteChunk(*engine, s, entry, chunk, zeros.data(), kChunk);
                !status.ok())
              return status;
    }
    return absl::OkStatus();
  }
  absl::Status CommitAll(const CommitRecord &record) {
    absl::Status status = WriteRest();
    return status.ok() ? engine->Commit(record) : status;
  }
  /// Weights, moments and gradients of both entries.
  void WriteTensors() {
    for (int64_t entry = 0; entry < 2; ++entry) {
      for (int32_t storage : {kWeights, kMomentum, kGradient})
        Write(storage, entry, RandomFloats(storage + entry));
      Write(kVariance, entry, std::vector<float>(kElements, 0.01f));
    }
  }
  /// The bits of weights and moments.
  std::vector<std::vector<uint32_t>> Tensors() {
    std::vector<std::vector<uint32_t>> bits;
    for (int32_t storage : {kWeights, kMomentum, kVariance})
      for (int64_t entry = 0; entry < 2; ++entry)
        bits.push_back(Read<uint32_t>(storage, entry));
    return bits;
  }
  void FillWords(int32_t storage) {
    for (int64_t entry = 0; entry < kEntries; ++entry)
      Write(storage, entry, std::vector<uint64_t>(kWords, 100 * entry + 1));
  }

  Scratch scratch;
  RandomScheduler scheduler{1};
  Program program;
  std::unique_ptr<StateStore> state;
  std::unique_ptr<Engine> engine;
};

/// Both chunks of both entries, from the last to the first.
inline void UpdateAll(boa_context *context, int64_t step) {
  for (int64_t entry = 0; entry < 2; ++entry)
    for (int32_t chunk = kChunks; chunk-- > 0;) {
      boa_buffer weights = Fetch(context, kWeights, entry, chunk, 1);
      boa_buffer momentum = Fetch(context, kMomentum, entry, chunk, 1);
      boa_buffer variance = Fetch(context, kVariance, entry, chunk, 1);
      boa_buffer gradient = Fetch(context, kGradient, entry);
      const boa_buffer states[] = {momentum, variance};
      boa_rt_update(context, 0, chunk, step, weights, 0, gradient, 2, states);
      boa_rt_offload(context, weights, kWeights, entry, chunk, 1);
      boa_rt_offload(context, momentum, kMomentum, entry, chunk, 1);
      for (boa_buffer buffer : {weights, momentum, variance, gradient})
        boa_rt_release(context, buffer, 0);
    }
}

inline void TakeNorm(boa_context *context, int64_t step) {
  for (int64_t entry = 2; entry-- > 0;) {
    boa_buffer gradient = Fetch(context, kGradient, entry);
    boa_rt_norm(context, 0, gradient);
    boa_rt_release(context, gradient, 0);
  }
  boa_rt_norm_done(context, step);
}

} // namespace boa::engine_test

#endif // BOA_TEST_RUNTIME_ENGINE_FIXTURE_H
