//===- engine_test.cpp - Tests of the command graph -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Entry points written by hand, on both I/O backends. What they leave in the
// storages is compared with the same commands carried out one after another.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/engine.h"
#include "runtime/kernels/isa.h"
#include "runtime/optimizer.h"
#include "runtime/thread_pool.h"
#include "test/runtime/trainer/scratch.h"
#include "test/runtime/chunks.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <random>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace boa {
namespace {

constexpr int64_t kChunk = 8192; // bytes
constexpr int32_t kChunks = 2;
constexpr int64_t kWords = kChunk * kChunks / 8; // of one entry
constexpr int64_t kEntries = 8;
constexpr int64_t kElements = kChunk * kChunks / 4; // f32 of one entry

enum StorageId : int32_t { kData, kMemory, kWeights, kMomentum, kVariance, kGradient };
enum KernelId : int32_t { kMix, kSlowMix, kCount };

/// out = 3 out + a + 7 b, so that the order of two calls shows.
void Mix(void *const *buffers, void *, boa_queue *) {
  auto *a = static_cast<const uint64_t *>(buffers[0]);
  auto *b = static_cast<const uint64_t *>(buffers[1]);
  auto *out = static_cast<uint64_t *>(buffers[2]);
  for (int64_t i = 0; i < kWords; ++i)
    out[i] = 3 * out[i] + a[i] + 7 * b[i];
}
void SlowMix(void *const *buffers, void *workspace, boa_queue *queue) {
  std::this_thread::sleep_for(std::chrono::microseconds(300));
  Mix(buffers, workspace, queue);
}
/// Counts the buffers that are null into the last one.
void Count(void *const *buffers, void *, boa_queue *) {
  auto *out = static_cast<uint64_t *>(buffers[1]);
  out[0] = buffers[0] == nullptr;
}
const boa_kernel kKernels[] = {Mix, SlowMix, Count};

// Entry points carry no data of their own.
std::function<void(boa_context *, int64_t, int64_t)> driver;
void Drive(boa_context *context, int64_t step, int64_t pending) { driver(context, step, pending); }

Storage MakeStorage(const char *name, Home::Tier tier, int64_t entries, bool persistent,
                    int32_t slots) {
  Storage storage;
  storage.name = storage.role = name;
  storage.homes = {{tier, kChunks}};
  storage.entries = {entries};
  storage.bytes = kChunk * kChunks;
  storage.chunks = kChunks;
  storage.persistent = persistent;
  if (tier == Home::ssd)
    storage.pools = {{BOA_DEVICE, kChunks, slots}};
  return storage;
}

Program MakeProgram(int32_t slots = 16, bool persistent = true) {
  Program program;
  program.abi = BOA_ABI_VERSION;
  program.name = "test";
  program.storages = {MakeStorage("data", Home::ssd, kEntries, persistent, slots),
                      MakeStorage("memory", Home::device, kEntries, true, 0),
                      MakeStorage("weights", Home::ssd, 2, true, 4),
                      MakeStorage("momentum", Home::ssd, 2, true, 4),
                      MakeStorage("variance", Home::host, 2, true, 0),
                      MakeStorage("gradient", Home::host, 2, false, 0)};
  KernelBuffer read{true, false}, write{false, true}, both{true, true};
  program.kernels = {{"mix", {read, read, both}, 64, 0},
                     {"slow_mix", {read, read, both}, 4096, 0},
                     {"count", {read, write}, 0, 0}};
  Group group;
  group.name = "block";
  group.count = 2;
  group.layer = true;
  group.elements = kElements;
  group.chunks = kChunks;
  group.chunk_elements = kElements / kChunks;
  group.weight_type = "f32";
  group.parameters = {{"matrix", {40, 50}, 0, "zeros", 0, true},
                      {"bias", {kElements - 2100}, 2048, "zeros", 0, false}};
  group.weights = kWeights;
  group.momentum = kMomentum;
  group.variance = kVariance;
  group.gradient = kGradient;
  program.groups = {group};
  program.optimizer.kind = "adamw";
  program.optimizer.weight_decay = 0.1;
  program.optimizer.rate = "constant";
  program.optimizer.peak = program.optimizer.floor = 0.01;
  program.training.steps = 100;
  return program;
}

boa_buffer Fetch(boa_context *context, int32_t storage, int64_t entry, int32_t first = 0,
                 int32_t count = kChunks) {
  return boa_rt_prefetch(context, storage, entry, first, count, BOA_DEVICE, 0);
}

boa_buffer FetchZeros(boa_context *context, int32_t storage, int64_t entry) {
  return boa_rt_prefetch(context, storage, entry, 0, kChunks, BOA_DEVICE, /*zero=*/1);
}

/// out = mix(a, b, out) with all three entries of `storage`, written home.
void MixEntries(boa_context *context, int32_t storage, int64_t a, int64_t b, int64_t out,
                int32_t retain = 0, KernelId kernel = kMix) {
  boa_buffer buffers[] = {Fetch(context, storage, a), Fetch(context, storage, b),
                          Fetch(context, storage, out)};
  boa_rt_launch(context, kernel, 3, buffers);
  boa_rt_offload(context, buffers[2], storage, out, 0, kChunks);
  boa_rt_release(context, buffers[0], 0);
  boa_rt_release(context, buffers[1], 0);
  boa_rt_release(context, buffers[2], retain);
}

std::vector<float> RandomFloats(uint32_t seed) {
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

std::string NotFiniteMessage(const std::string &what) {
  return what + ", and go on from the last commit";
}

std::string DamageMessage(const std::string &chunk, const std::string &path, int64_t offset,
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
          if (storage.persistent && storage.tier(chunk) == Home::ssd &&
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

INSTANTIATE_TEST_SUITE_P(Backends, EngineTest, testing::Values("preferred", "threads", "scheduled"),
                         [](const auto &info) { return info.param; });

// A chain through one entry: every prefetch sees the offload before it.
TEST_P(EngineTest, PrefetchAfterOffloadSeesIt) {
  Make();
  program.kernels[kMix].flops = 5;
  program.kernels[kSlowMix].flops = 3;
  FillWords(kData);
  engine->TakeCounters();
  ASSERT_TRUE(Run([](boa_context *context) {
                for (int i = 0; i < 20; ++i)
                  MixEntries(context, kData, 1, 2, 0, 0, i % 3 ? kMix : kSlowMix);
              }).ok());
  ASSERT_TRUE(engine->Drain().ok());
  Counters counters = engine->TakeCounters();
  EXPECT_EQ(counters.moved.read["data"], 20 * 3 * kChunk * kChunks);
  EXPECT_EQ(counters.moved.written["data"], 20 * kChunk * kChunks);
  EXPECT_GT(counters.compute_seconds, 0);
  EXPECT_EQ(counters.flops, 13 * 5 + 7 * 3);
  uint64_t expected = 1;
  for (int i = 0; i < 20; ++i)
    expected = 3 * expected + 101 + 7 * 201;
  EXPECT_EQ(Read<uint64_t>(kData, 0), std::vector<uint64_t>(kWords, expected));
}

// Chunks move by themselves and meet in the entry again.
TEST_P(EngineTest, ChunksMoveAlone) {
  Make();
  FillWords(kData);
  ASSERT_TRUE(Run([](boa_context *context) {
                boa_buffer second = Fetch(context, kData, 3, 1, 1);
                boa_rt_offload(context, second, kData, 4, 1, 1);
                boa_rt_release(context, second, 0);
              }).ok());
  std::vector<uint64_t> expected(kWords, 401);
  std::fill(expected.begin() + kWords / 2, expected.end(), 301);
  EXPECT_EQ(Read<uint64_t>(kData, 4), expected);
}

TEST_P(EngineTest, RetainedCopyCostsNoTransfer) {
  Make();
  FillWords(kData);
  engine->TakeCounters();
  ASSERT_TRUE(Run([](boa_context *context) {
                MixEntries(context, kData, 1, 2, 0, /*retain=*/1);
                MixEntries(context, kData, 1, 2, 0);
              }).ok());
  ASSERT_TRUE(engine->Drain().ok());
  EXPECT_EQ(engine->TakeCounters().moved.read["data"], 5 * kChunk * kChunks);
  EXPECT_EQ(Read<uint64_t>(kData, 0)[7], 3 * (3 * 1 + 101 + 7 * 201) + 101 + 7 * 201);
}

// Neither a new entry written over a retained copy, nor one written home from
// elsewhere, nor half of one, leaves the old contents to be found.
// Steps follow one another; anything else between them gives the copy up.
TEST_P(EngineTest, RetainedCopyOutlivesItsRunWhereTheSameFollows) {
  Make(MakeProgram(/*slots=*/3), Options());
  FillWords(kData);
  ASSERT_TRUE(WriteRest().ok());
  auto mix = [](boa_context *context) { MixEntries(context, kData, 1, 2, 0, /*retain=*/1); };
  auto read = [&] {
    EXPECT_TRUE(engine->Drain().ok());
    return engine->TakeCounters().moved.read["data"];
  };
  read();
  constexpr int64_t kEntry = kChunk * kChunks;
  ASSERT_TRUE(Run(mix).ok());
  EXPECT_EQ(read(), 3 * kEntry);
  ASSERT_TRUE(Run(mix).ok());
  EXPECT_EQ(read(), 2 * kEntry);
  ASSERT_TRUE(CommitAll({2, 0, {}}).ok());
  ASSERT_TRUE(Run(mix).ok());
  EXPECT_EQ(read(), 2 * kEntry);
  // All three slots are needed: the copy's, too.
  driver = [&](boa_context *context, int64_t, int64_t) { MixEntries(context, kData, 3, 4, 5); };
  auto other = [](boa_context *context, int64_t step, int64_t pending) {
    driver(context, step, pending);
  };
  ASSERT_TRUE(engine->Run(other, 1, 0).ok());
  EXPECT_EQ(read(), 3 * kEntry);
  ASSERT_TRUE(Run(mix).ok());
  EXPECT_EQ(read(), 3 * kEntry);
  // Written past the copy.
  Write(kData, 0, std::vector<uint64_t>(kWords, 5));
  ASSERT_TRUE(Run(mix).ok());
  EXPECT_EQ(Read<uint64_t>(kData, 0)[0], 3 * 5 + 101 + 7 * 201u);
}

TEST_P(EngineTest, StaleRetainedCopyIsNotFound) {
  Make(MakeProgram(/*slots=*/4), Options());
  FillWords(kData);
  ASSERT_TRUE(Run([](boa_context *context) {
                for (int i = 0; i < 10; ++i) {
                  boa_rt_release(context, Fetch(context, kData, 0), /*retain=*/1);
                  boa_buffer other = Fetch(context, kData, 5, 1, 1);
                  boa_rt_offload(context, other, kData, 0, 1, 1);
                  boa_rt_release(context, other, 0);
                }
                MixEntries(context, kData, 0, 0, 1);
                boa_rt_release(context, Fetch(context, kData, 2), /*retain=*/1);
                boa_buffer zeros = FetchZeros(context, kData, 2);
                boa_rt_offload(context, zeros, kData, 2, 0, kChunks);
                boa_rt_release(context, zeros, 0);
              }).ok());
  std::vector<uint64_t> data = Read<uint64_t>(kData, 1);
  EXPECT_EQ(data.front(), 3 * 101 + 8 * 1u);
  EXPECT_EQ(data.back(), 3 * 101 + 8 * 501u);
  EXPECT_EQ(Read<uint64_t>(kData, 2), std::vector<uint64_t>(kWords, 0));
}

TEST_P(EngineTest, MemoryIsOrderedToo) {
  Make();
  FillWords(kMemory);
  engine->TakeCounters();
  ASSERT_TRUE(Run([](boa_context *context) {
                MixEntries(context, kMemory, 1, 2, 0, 0, kSlowMix);
                boa_rt_release(context, FetchZeros(context, kMemory, 1), 0);
                MixEntries(context, kMemory, 1, 2, 0);
              }).ok());
  Counters counters = engine->TakeCounters();
  EXPECT_TRUE(counters.moved.read.empty() && counters.moved.written.empty());
  uint64_t first = 3 * 1 + 101 + 7 * 201;
  EXPECT_EQ(Read<uint64_t>(kMemory, 0)[0], 3 * first + 7 * 201);
}

// Past the end of a loop: null tokens and buffers move nothing and harm nothing.
TEST_P(EngineTest, NullBuffers) {
  Make();
  absl::Status status = Run([](boa_context *context) {
    boa_buffer null = boa_rt_prefetch(context, kData, -1, 0, 1, BOA_DEVICE, 0);
    EXPECT_EQ(null, 0);
    boa_rt_offload(context, null, kData, 0, 0, 1);
    boa_buffer buffers[] = {null, Fetch(context, kMemory, 0)};
    boa_rt_launch(context, kCount, 2, buffers);
    boa_rt_release(context, buffers[1], 0);
    boa_rt_release(context, null, 1);
    boa_rt_update(context, 0, 0, /*step=*/0, null, null, null, null, null);
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Read<uint64_t>(kMemory, 0)[0], 1u);
}

// Each run sees what was put in for it, and its results are taken before the
// next one overwrites them, though all are enqueued at once.
TEST_P(EngineTest, RunsEnqueuedTogetherKeepTheirPortsApart) {
  Make();
  FillWords(kMemory);
  constexpr int kRuns = 5;
  std::vector<std::vector<uint64_t>> in, out(kRuns, std::vector<uint64_t>(kWords));
  for (uint64_t run = 0; run < kRuns; ++run)
    in.push_back(std::vector<uint64_t>(kWords, 10 * run));
  const int64_t bytes = kWords * sizeof(uint64_t);
  int64_t last = 0;
  for (int run = 0; run < kRuns; ++run)
    last = Enqueue(
        [](boa_context *context) {
          MixEntries(context, kMemory, 1, 2, 0, 0, kSlowMix);
          MixEntries(context, kMemory, 1, 2, 0, 0, kSlowMix);
        },
        1, {{kMemory, 1, in[run].data(), bytes}}, {{kMemory, 0, out[run].data(), bytes}});
  ASSERT_TRUE(engine->Wait(last - 1).ok());
  ASSERT_TRUE(engine->Wait(last).ok());
  uint64_t expected = 1;
  for (uint64_t run = 0; run < kRuns; ++run) {
    for (int i = 0; i < 2; ++i)
      expected = 3 * expected + 10 * run + 7 * 201;
    EXPECT_EQ(out[run], std::vector<uint64_t>(kWords, expected)) << run;
  }
  EXPECT_FALSE(
      engine->Run([](boa_context *, int64_t, int64_t) {}, 1, 0, {{kData, 0, in[0].data(), 8}})
          .ok());
}

TEST_P(EngineTest, WaitsForAShareOfARun) {
  Make();
  FillWords(kMemory);
  auto slow = [](boa_context *context) {
    for (int i = 0; i < 40; ++i)
      MixEntries(context, kMemory, 1, 2, 0, 0, kSlowMix);
  };
  std::vector<uint64_t> word(1);
  std::vector<Port> out = {{kMemory, 0, word.data(), 8}};
  int64_t first = Enqueue(slow, 1, {}, out), second = Enqueue(slow, 2);
  auto ran = [&] { return engine->TakeCounters().compute_seconds > 0; };
  ASSERT_TRUE(engine->Wait(first, 0.5).ok());
  EXPECT_TRUE(ran());
  EXPECT_EQ(word[0], 0u) << "half of the run is left";
  ASSERT_TRUE(engine->Wait(first).ok());
  EXPECT_NE(word[0], 0u);
  ASSERT_TRUE(engine->Wait(second).ok());
  ASSERT_TRUE(engine->Wait(first, 0.5).ok()); // long done
}

// What is counted belongs to the run that caused it, whenever it moved.
TEST_P(EngineTest, CountersAreByRun) {
  Make();
  FillWords(kData);
  engine->TakeCounters();
  auto mix = [](boa_context *context) { MixEntries(context, kData, 1, 2, 0, 0, kSlowMix); };
  int64_t first = Enqueue(mix), second = Enqueue([&](boa_context *context) {
                                  mix(context);
                                  mix(context);
                                });
  ASSERT_TRUE(engine->Wait(second).ok());
  ASSERT_TRUE(engine->Drain().ok());
  Counters counters = engine->TakeCounters(first);
  EXPECT_EQ(counters.moved.read["data"], 3 * kChunk * kChunks);
  EXPECT_EQ(counters.moved.written["data"], kChunk * kChunks);
  counters = engine->TakeCounters(second);
  EXPECT_EQ(counters.moved.read["data"], 6 * kChunk * kChunks);
  EXPECT_EQ(counters.moved.written["data"], 2 * kChunk * kChunks);
}

// Prefetched in one order, used in another: the disk follows the use.
TEST_P(EngineTest, WhatIsUsedFirstIsReadFirst) {
  EngineOptions options = Options();
  options.trace = true;
  options.io.depth = 1;
  Program with = MakeProgram();
  with.machine.ssd = {{scratch.path("state"), /*read=*/1 << 20}};
  Make(with, options);
  FillWords(kData);
  FillWords(kMemory);
  Write(kWeights, 0, std::vector<uint64_t>(kWords, 1));
  engine->TakeTrace();
  ASSERT_TRUE(Run([](boa_context *context) {
                std::vector<boa_buffer> data;
                for (int64_t entry = 0; entry < kEntries; ++entry)
                  data.push_back(Fetch(context, kData, entry));
                boa_buffer weights = Fetch(context, kWeights, 0);
                boa_buffer out = Fetch(context, kMemory, 0);
                boa_buffer first[] = {weights, weights, out};
                boa_rt_launch(context, kMix, 3, first);
                for (boa_buffer buffer : data) {
                  boa_buffer next[] = {buffer, buffer, out};
                  boa_rt_launch(context, kMix, 3, next);
                  boa_rt_release(context, buffer, 0);
                }
                boa_rt_release(context, weights, 0);
              }).ok());
  std::vector<std::string> names;
  for (const TraceEvent &event : engine->TakeTrace())
    if (event.row == TraceEvent::Row::read)
      names.push_back(event.name);
  ASSERT_EQ(names.size(), size_t(kEntries + 1));
  EXPECT_EQ(names[0], "weights");
}

// One slot is enough if each use gives it back.
TEST_P(EngineTest, OneSlot) {
  Make(MakeProgram(/*slots=*/1), Options());
  FillWords(kData);
  absl::Status status = Run([](boa_context *context) {
    for (int64_t i = 0; i < 40; ++i) {
      boa_buffer data = Fetch(context, kData, i % kEntries);
      boa_buffer buffers[] = {Fetch(context, kMemory, 0), Fetch(context, kMemory, 1), data};
      boa_rt_launch(context, kMix, 3, buffers);
      boa_rt_offload(context, data, kData, i % kEntries, 0, kChunks);
      boa_rt_release(context, data, 0);
    }
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Read<uint64_t>(kData, 2)[0], 201u * 3 * 3 * 3 * 3 * 3);
}

TEST_P(EngineTest, TooFewSlotsIsAnErrorAndNoHang) {
  Make(MakeProgram(/*slots=*/2), Options());
  FillWords(kData);
  absl::Status status = Run([](boa_context *context) { MixEntries(context, kData, 1, 2, 0); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_NE(status.message().find("slot"), std::string::npos) << status;
  // It is latched.
  EXPECT_EQ(Run([](boa_context *) { FAIL(); }), status);
  EXPECT_EQ(engine->Commit({}), status);
}

TEST_P(EngineTest, BrokenProgramsAreRefused) {
  const std::vector<std::function<void(boa_context *)>> bodies = {
      [](boa_context *context) { // use after release
        boa_buffer buffer = Fetch(context, kData, 0);
        boa_rt_release(context, buffer, 0);
        boa_rt_offload(context, buffer, kData, 0, 0, 1);
      },
      [](boa_context *context) { Fetch(context, kData, kEntries); },
      [](boa_context *context) { Fetch(context, kData, 0, 1, kChunks); },
      [](boa_context *context) { Fetch(context, 99, 0); },
      [](boa_context *context) {
        boa_buffer half = Fetch(context, kData, 0, 0, 1);
        boa_rt_offload(context, half, kData, 0, 0, kChunks);
      },
      [](boa_context *context) {
        boa_buffer buffer = Fetch(context, kMemory, 0);
        boa_rt_launch(context, kMix, 1, &buffer);
      },
      [](boa_context *context) { boa_rt_launch(context, 99, 0, nullptr); },
      [](boa_context *context) { boa_rt_update(context, 0, 0, 1, 0, 0, 0, 0, 0); },
      [](boa_context *context) { boa_rt_norm(context, 5, Fetch(context, kGradient, 0)); }};
  for (size_t i = 0; i < bodies.size(); ++i) {
    SCOPED_TRACE(i);
    std::error_code ignored;
    std::filesystem::remove_all(scratch.path("state"), ignored);
    Make();
    EXPECT_EQ(Run(bodies[i]).code(), absl::StatusCode::kInternal);
  }
}

TEST_P(EngineTest, RefusesMoreMemoryThanPlanned) {
  Program small = MakeProgram();
  small.arena_device = 1 << 20; // the sixteen slots alone take 256 KiB
  Make(small, Options());
  EXPECT_GE(engine->ArenaBytes(), 16 * kChunk * kChunks);
  small.arena_device = 128 << 10;
  auto refused = Engine::Create(small, kKernels, state.get(), Options());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInternal) << refused.status();
}

// What was in use, not what was planned.
TEST_P(EngineTest, PeakIsMeasured) {
  Make(MakeProgram(/*slots=*/16), Options());
  FillWords(kData);
  const int64_t stride = boa_slot_stride(kChunk * kChunks);
  // Of the arena, the slots of three storages on SSD: none was used yet.
  const int64_t none = engine->ArenaBytes() - (16 + 4 + 4) * stride;
  EXPECT_EQ(engine->PeakBytes(), none);
  auto hold = [&](int64_t count) {
    return [count](boa_context *context) {
      std::vector<boa_buffer> buffers;
      for (int64_t entry = 0; entry < count; ++entry)
        buffers.push_back(Fetch(context, kData, entry));
      for (boa_buffer buffer : buffers)
        boa_rt_release(context, buffer, 0);
    };
  };
  for (int64_t count : {2, 5, 3}) {
    ASSERT_TRUE(Run(hold(count)).ok());
    ASSERT_TRUE(engine->Drain().ok());
    EXPECT_EQ(engine->PeakBytes(), none + std::max<int64_t>(count, count == 3 ? 5 : 0) * stride);
  }
}

TEST_P(EngineTest, TransferErrorEndsTheStep) {
  EngineOptions options = Options();
  options.io.faults.fail_at = 2 * kEntries + 25; // after those that fill the entries
  options.io.faults.error = EIO;
  Make(MakeProgram(), options);
  FillWords(kData);
  absl::Status status = Run([](boa_context *context) {
    for (int64_t i = 0; i < 100; ++i)
      MixEntries(context, kData, i % 8, (i + 1) % 8, (i + 2) % 8);
  });
  if (status.ok())
    status = engine->Drain();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("state/data"), std::string::npos) << status;
  EXPECT_FALSE(engine->Commit({}).ok());
}

/// The same commands in plain order, on plain memory.
struct Reference {
  std::vector<std::vector<uint64_t>> data;
  void Mix(int64_t a, int64_t b, int64_t out, bool fresh) {
    std::vector<uint64_t> previous = fresh ? std::vector<uint64_t>(kWords) : data[out];
    for (int64_t i = 0; i < kWords; ++i)
      data[out][i] = 3 * previous[i] + data[a][i] + 7 * data[b][i];
  }
};

struct MixCommand {
  int64_t a, b, out;
  bool fresh; // out starts from zeros
  bool slow, retain;
};

std::vector<MixCommand> RandomCommands(std::mt19937 &random, int count) {
  std::vector<MixCommand> commands;
  for (int i = 0; i < count; ++i) {
    int64_t entries[kEntries];
    for (int64_t e = 0; e < kEntries; ++e)
      entries[e] = e;
    std::shuffle(entries, entries + kEntries, random);
    commands.push_back({entries[0], entries[1], entries[2], random() % 4 == 0, random() % 8 == 0,
                        random() % 4 == 0});
  }
  return commands;
}

/// Issues commands with the inputs of each brought before the one before it runs,
/// where that one does not write them.
class RandomDriver {
public:
  RandomDriver(boa_context *context, const std::vector<MixCommand> &commands)
      : context(context), commands(commands) {}
  void Run() {
    std::vector<boa_buffer> next = Bring(0);
    for (size_t i = 0; i < commands.size(); ++i) {
      std::vector<boa_buffer> now = std::move(next);
      bool hoist = i + 1 < commands.size() && !Touches(commands[i + 1], commands[i].out);
      if (hoist)
        next = Bring(i + 1);
      boa_rt_launch(context, commands[i].slow ? kSlowMix : kMix, 3, now.data());
      boa_rt_offload(context, now[2], kData, commands[i].out, 0, 1);
      boa_rt_offload(context, now[2], kData, commands[i].out, 1, 1);
      boa_rt_release(context, now[0], 0);
      boa_rt_release(context, now[1], 0);
      // At most as many copies as there are entries: slots are sized for that.
      boa_rt_release(context, now[2], commands[i].retain);
      if (!hoist && i + 1 < commands.size())
        next = Bring(i + 1);
    }
  }

private:
  static bool Touches(const MixCommand &command, int64_t entry) {
    return command.a == entry || command.b == entry || command.out == entry;
  }
  std::vector<boa_buffer> Bring(size_t i) {
    const MixCommand &command = commands[i];
    return {Fetch(context, kData, command.a), Fetch(context, kData, command.b),
            boa_rt_prefetch(context, kData, command.out, 0, kChunks, BOA_DEVICE, command.fresh)};
  }
  boa_context *context;
  const std::vector<MixCommand> &commands;
};

// Whatever overlaps, the outcome is that of the commands one after another.
TEST_P(EngineTest, RandomProgramsEqualSequentialOnes) {
  for (int seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    std::error_code ignored;
    std::filesystem::remove_all(scratch.path("state"), ignored);
    EngineOptions options = Options();
    if (seed % 2)
      options.io.faults.short_every = 3;
    options.io.segment_bytes = seed % 3 ? 4096 : 1 << 20;
    options.run_ahead = seed % 3 == 1 ? 16 << 10 : 1 << 27;
    Make(MakeProgram(6 + kEntries, /*persistent=*/seed < 3), options);
    FillWords(kData);
    Reference reference;
    for (int64_t entry = 0; entry < kEntries; ++entry)
      reference.data.emplace_back(kWords, 100 * entry + 1);
    std::mt19937 random(seed);
    for (int64_t step = 1; step <= 4; ++step) {
      std::vector<MixCommand> commands = RandomCommands(random, 60);
      int64_t run =
          Enqueue([&](boa_context *context) { RandomDriver(context, commands).Run(); }, step);
      if (seed % 2 || step == 4) { // else the next is enqueued behind it
        absl::Status status = engine->Wait(run);
        ASSERT_TRUE(status.ok()) << status;
      }
      for (const MixCommand &command : commands)
        reference.Mix(command.a, command.b, command.out, command.fresh);
      if (step == 2 && seed < 3) {
        ASSERT_TRUE(CommitAll({step, 0, {}}).ok());
      }
    }
    for (int64_t entry = 0; entry < kEntries; ++entry)
      ASSERT_EQ(Read<uint64_t>(kData, entry), reference.data[entry]) << entry;
  }
}

/// Both chunks of both entries, from the last to the first.
void UpdateAll(boa_context *context, int64_t step) {
  for (int64_t entry = 0; entry < 2; ++entry)
    for (int32_t chunk = kChunks; chunk-- > 0;) {
      boa_buffer weights = Fetch(context, kWeights, entry, chunk, 1);
      boa_buffer momentum = Fetch(context, kMomentum, entry, chunk, 1);
      boa_buffer variance = Fetch(context, kVariance, entry, chunk, 1);
      boa_buffer gradient = Fetch(context, kGradient, entry);
      boa_rt_update(context, 0, chunk, step, weights, 0, momentum, variance, gradient);
      boa_rt_offload(context, weights, kWeights, entry, chunk, 1);
      boa_rt_offload(context, momentum, kMomentum, entry, chunk, 1);
      for (boa_buffer buffer : {weights, momentum, variance, gradient})
        boa_rt_release(context, buffer, 0);
    }
}

void TakeNorm(boa_context *context, int64_t step) {
  for (int64_t entry = 2; entry-- > 0;) {
    boa_buffer gradient = Fetch(context, kGradient, entry);
    boa_rt_norm(context, 0, gradient);
    boa_rt_release(context, gradient, 0);
  }
  boa_rt_norm_done(context, step);
}

bool InParameters(int64_t i) { return i < 2000 || (i >= 2048 && i < kElements - 52); }

TEST_P(EngineTest, UpdatesAreAdamWWithClipping) {
  Program with = MakeProgram();
  with.optimizer.clip = 1.5;
  Make(with, Options());
  std::vector<double> weights[2], m[2], v[2]; // by entry
  for (int64_t entry = 0; entry < 2; ++entry) {
    std::vector<float> values = RandomFloats(7 + entry);
    Write(kWeights, entry, values);
    Write(kMomentum, entry, std::vector<float>(kElements));
    Write(kVariance, entry, std::vector<float>(kElements));
    weights[entry].assign(values.begin(), values.end());
    m[entry].assign(kElements, 0);
    v[entry].assign(kElements, 0);
  }
  const Optimizer &config = program.optimizer;
  for (int64_t step = 1; step <= 3; ++step) {
    double squares = 0;
    std::vector<float> gradient[2];
    for (int64_t entry = 0; entry < 2; ++entry) {
      gradient[entry] = RandomFloats(10 * step + entry);
      Write(kGradient, entry, gradient[entry]);
      for (int64_t i = 0; i < kElements; ++i)
        squares += InParameters(i) ? double(gradient[entry][i]) * gradient[entry][i] : 0;
    }
    absl::Status status = Run(
        [&](boa_context *context) {
          TakeNorm(context, step);
          UpdateAll(context, step);
        },
        step);
    ASSERT_TRUE(status.ok()) << status;
    double factor = std::min(1.0, config.clip / (std::sqrt(squares) + 1e-6));
    ASSERT_LT(factor, 1);
    for (int64_t entry = 0; entry < 2; ++entry)
      for (int64_t i = 0; i < kElements; ++i) {
        double g = gradient[entry][i] * factor;
        double &w = weights[entry][i];
        m[entry][i] = config.beta1 * m[entry][i] + (1 - config.beta1) * g;
        v[entry][i] = config.beta2 * v[entry][i] + (1 - config.beta2) * g * g;
        double direction =
            m[entry][i] / (1 - std::pow(config.beta1, step)) /
            (std::sqrt(v[entry][i] / (1 - std::pow(config.beta2, step))) + config.eps);
        w -= config.peak * (direction + (i < 2048 ? config.weight_decay : 0) * w);
      }
  }
  for (int64_t entry = 0; entry < 2; ++entry) {
    std::vector<float> got = Read<float>(kWeights, entry);
    for (int64_t i = 0; i < kElements; ++i)
      if (InParameters(i)) {
        ASSERT_NEAR(got[i], weights[entry][i], 1e-5) << entry << " " << i;
      }
  }
}

TEST_P(EngineTest, UpdateWithoutItsNormIsAnError) {
  Program with = MakeProgram();
  with.optimizer.clip = 1;
  Make(with, Options());
  for (int64_t entry = 0; entry < 2; ++entry)
    for (int32_t storage : {kWeights, kMomentum})
      Write(storage, entry, std::vector<float>(kElements));
  EXPECT_EQ(Run([](boa_context *context) { UpdateAll(context, 1); }).code(),
            absl::StatusCode::kInternal);
}

// Nothing is divided by a norm of 0: without gradients only the decay acts.
TEST_P(EngineTest, NormOfZeroClipsNothing) {
  Program with = MakeProgram();
  with.optimizer.clip = 0.5;
  Make(with, Options());
  std::vector<float> weights = RandomFloats(3), none(kElements);
  for (int64_t entry = 0; entry < 2; ++entry) {
    Write(kWeights, entry, weights);
    for (int32_t storage : {kMomentum, kVariance, kGradient})
      Write(storage, entry, none);
  }
  absl::Status status = Run(
      [&](boa_context *context) {
        TakeNorm(context, 1);
        UpdateAll(context, 1);
      },
      1);
  ASSERT_TRUE(status.ok()) << status;
  const Optimizer &config = program.optimizer;
  for (int64_t entry = 0; entry < 2; ++entry) {
    std::vector<float> got = Read<float>(kWeights, entry);
    for (int64_t i = 0; i < kElements; ++i)
      if (InParameters(i)) {
        double decay = config.peak * (i < 2048 ? config.weight_decay : 0);
        ASSERT_NEAR(got[i], weights[i] * (1 - decay), 1e-6) << entry << " " << i;
      }
  }
}

TEST_P(EngineTest, NormThatIsNotANumberIsAnError) {
  Program with = MakeProgram();
  with.optimizer.clip = 1;
  Make(with, Options());
  std::vector<float> gradient(kElements);
  gradient[0] = std::numeric_limits<float>::quiet_NaN();
  Write(kGradient, 0, gradient);
  absl::Status status = Run([](boa_context *context) { TakeNorm(context, 4); }, 4);
  EXPECT_EQ(status.message(), NotFiniteMessage("the gradient of block.0.matrix is not finite in "
                                               "step 4: lower the learning rate, or let such steps "
                                               "be left out (nonfinite = skip)"));
}

TEST_P(EngineTest, NormThatIsNotFiniteIsAnError) {
  Program with = MakeProgram();
  with.optimizer.clip = 1;
  Make(with, Options());
  std::vector<float> gradient(kElements);
  gradient[2047] = std::numeric_limits<float>::quiet_NaN(); // padding: no matter
  Write(kGradient, 0, gradient);
  EXPECT_TRUE(Run([](boa_context *context) { TakeNorm(context, 1); }, 1).ok());
  gradient[1999] = std::numeric_limits<float>::infinity();
  Write(kGradient, 0, gradient);
  absl::Status status = Run([](boa_context *context) { TakeNorm(context, 2); }, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
}

// Without a norm, too, nothing that is not finite is taken for a model.
TEST_P(EngineTest, UpdateOfAGradientThatIsNotFiniteIsAnError) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY}) {
    engine.reset();
    state.reset();
    std::filesystem::remove_all(scratch.path("state"));
    Make();
    WriteTensors();
    std::vector<float> gradient = RandomFloats(3);
    gradient[2047] = gradient[2001] = bad; // between parameters: no matter
    Write(kGradient, 1, gradient);
    absl::Status status = Run([](boa_context *context) { UpdateAll(context, 1); });
    EXPECT_TRUE(status.ok()) << status;
    gradient[2048 + 1000] = bad;
    Write(kGradient, 1, gradient);
    status = Run([](boa_context *context) { UpdateAll(context, 7); }, 7);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_EQ(status.message(), NotFiniteMessage("the gradient of block.1.bias is not finite in "
                                                 "step 7: lower the learning rate, or let such "
                                                 "steps be left out (nonfinite = skip)"));
    EXPECT_FALSE(CommitAll({7, 0, {}}).ok());
  }
}

TEST_P(EngineTest, UpdateThatOverflowsIsAnError) {
  Program with = MakeProgram();
  with.optimizer.peak = with.optimizer.floor = 1e36;
  Make(with, Options());
  WriteTensors();
  std::vector<float> weights = RandomFloats(1);
  weights[5] = -3e38f;
  Write(kWeights, 1, weights);
  absl::Status status = Run([](boa_context *context) { UpdateAll(context, 1); });
  EXPECT_EQ(status.message(),
            NotFiniteMessage("the weights or moments of block.1.matrix are not finite after the "
                             "update of step 1: lower the learning rate, or clip the gradients' "
                             "norm"));
}

// A step whose norm is not finite is as if it had not been, whether its updates
// come in its own run or in the next.
TEST_P(EngineTest, StepsThatAreNotFiniteAreLeftOut) {
  for (double clip : {0.0, 1.5})
    for (bool delayed : {false, true}) {
      SCOPED_TRACE(delayed);
      engine.reset();
      state.reset();
      std::filesystem::remove_all(scratch.path("state"));
      Program with = MakeProgram();
      with.optimizer.clip = clip;
      with.training.nonfinite = "skip";
      Make(with, Options());
      WriteTensors();
      std::vector<std::vector<uint32_t>> before;
      for (int64_t step = 1; step <= 4; ++step) {
        std::vector<float> gradient = RandomFloats(step);
        if (step == 2)
          gradient[100] = std::numeric_limits<float>::quiet_NaN();
        Write(kGradient, 0, gradient);
        before = Tensors();
        absl::Status status = Run(
            [&](boa_context *context) {
              TakeNorm(context, step);
              if (!delayed)
                UpdateAll(context, step);
            },
            step);
        ASSERT_TRUE(status.ok()) << status;
        if (delayed)
          status = Run([&](boa_context *context) { UpdateAll(context, step); }, step + 1);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(Tensors() == before, step == 2) << step;
        EXPECT_EQ(engine->TakeSkipped(),
                  step == 2 ? std::vector<int64_t>{2} : std::vector<int64_t>{});
      }
    }
}

// What was committed comes back, with the factors of delayed updates; what came
// after it does not.
TEST_P(EngineTest, CommitAndRestore) {
  Program with = MakeProgram();
  with.optimizer.clip = 1.5;
  Make(with, Options());
  FillWords(kData);
  FillWords(kMemory);
  WriteTensors();
  ASSERT_TRUE(Run([](boa_context *context) {
                MixEntries(context, kData, 1, 2, 0);
                MixEntries(context, kMemory, 1, 2, 0);
                TakeNorm(context, 1);
              }).ok());
  absl::Status status = CommitAll({1, 0, {{"note", "kept"}}});
  ASSERT_TRUE(status.ok()) << status;
  std::vector<uint64_t> data = Read<uint64_t>(kData, 0), memory = Read<uint64_t>(kMemory, 0);
  ASSERT_TRUE(Run(
                  [](boa_context *context) {
                    MixEntries(context, kData, 1, 2, 0);
                    MixEntries(context, kMemory, 1, 2, 0);
                  },
                  2)
                  .ok());
  ASSERT_TRUE(engine->Drain().ok());
  EXPECT_NE(Read<uint64_t>(kData, 0), data);

  Make(with, Options(), /*reopen=*/true);
  EXPECT_EQ(state->Committed().step, 1);
  EXPECT_EQ(state->Committed().extra.at("note"), "kept");
  ASSERT_TRUE(engine->Restore().ok());
  EXPECT_EQ(Read<uint64_t>(kData, 0), data);
  EXPECT_EQ(Read<uint64_t>(kMemory, 0), memory);
}

// A commit that fails among its writes, of which several are under way, leaves
// the one before; so does a kill there.
TEST_P(EngineTest, CommitThatFailsLeavesTheOneBefore) {
  const std::vector<uint64_t> before(kWords, 11), after(kWords, 22);
  for (int depth : {1, 3, 32}) {
    engine.reset();
    state.reset();
    std::filesystem::remove_all(scratch.path("state"));
    EngineOptions options = Options();
    options.io.depth = depth;
    Make(MakeProgram(), options);
    for (int64_t entry = 0; entry < kEntries; ++entry)
      Write(kMemory, entry, before);
    ASSERT_TRUE(CommitAll({1, 0, {}}).ok());

    options.io.faults.fail_at = kEntries; // half of the chunks are written
    options.io.faults.error = EIO;
    Make(MakeProgram(), options, /*reopen=*/true);
    for (int64_t entry = 0; entry < kEntries; ++entry)
      Write(kMemory, entry, after);
    absl::Status status = CommitAll({2, 0, {}});
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("state/data"), std::string::npos) << status;
    EXPECT_EQ(state->Committed().step, 1);

    options.io.faults = {};
    Make(MakeProgram(), options, /*reopen=*/true);
    EXPECT_EQ(state->Committed().step, 1);
    ASSERT_TRUE(engine->Restore().ok());
    for (int64_t entry = 0; entry < kEntries; ++entry)
      EXPECT_EQ(Read<uint64_t>(kMemory, entry), before) << entry;
  }
}

TEST_P(EngineTest, RestoreNamesADamagedChunk) {
  Make();
  FillWords(kMemory);
  ASSERT_TRUE(CommitAll({1, 0, {}}).ok());
  engine.reset();
  Extent extent = state->Current(kMemory, 5, 1);
  std::string path = Damage(extent);
  Make(MakeProgram(), Options(), /*reopen=*/true);
  absl::Status status = engine->Restore();
  EXPECT_EQ(status.message(),
            DamageMessage("memory entry 5 chunk 1", path, extent.offset, /*persistent=*/true));
}

TEST_P(EngineTest, DamagedChunkIsAnErrorThatNamesIt) {
  Make();
  for (int64_t entry = 0; entry < kEntries; ++entry)
    Write(kData, entry, std::vector<uint64_t>(kWords, 0x0123456789abcdef + entry));
  FillWords(kMemory);
  for (int64_t entry = 0; entry < 2; ++entry)
    for (int32_t storage : {kWeights, kMomentum})
      Write(storage, entry, RandomFloats(storage));
  ASSERT_TRUE(CommitAll({1, 0, {}}).ok());
  engine.reset();
  Extent extent = state->Current(kData, 3, 1);
  std::string path = Damage(extent);
  Make(MakeProgram(), Options(), /*reopen=*/true);
  ASSERT_TRUE(engine->Restore().ok());
  std::vector<char> chunk(kChunk);
  EXPECT_TRUE(ReadChunk(*engine, kData, 3, 0, chunk.data(), kChunk).ok());
  absl::Status direct = ReadChunk(*engine, kData, 3, 1, chunk.data(), kChunk);
  EXPECT_EQ(direct.code(), absl::StatusCode::kDataLoss) << direct;
  absl::Status status =
      Run([](boa_context *context) { boa_rt_release(context, Fetch(context, kData, 3), 0); });
  if (status.ok())
    status = engine->Drain();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_NE(status.message().find(path), std::string::npos) << status;
}

// What was read is compared before anybody uses it, also where the same step writes
// the chunk anew, in a storage that outlives the run and in one that does not.
TEST_P(EngineTest, DamageIsFoundBeforeUse) {
  for (bool persistent : {true, false})
    for (bool committed : {true, false}) {
      engine.reset();
      state.reset();
      std::filesystem::remove_all(scratch.path("state"));
      Make(MakeProgram(16, persistent), Options());
      FillWords(kData);
      for (int64_t entry = 0; entry < 2; ++entry)
        for (int32_t storage : {kWeights, kMomentum})
          Write(storage, entry, RandomFloats(storage));
      if (committed)
        ASSERT_TRUE(CommitAll({1, 0, {}}).ok());
      const Extent extent = state->Current(kData, 3, 1);
      const std::string path = state->Files()[extent.file].path;
      FlipBit(extent);
      absl::Status status = Run([](boa_context *context) {
        MixEntries(context, kData, 1, 2, 3);
        MixEntries(context, kData, 1, 2, 3);
      });
      if (status.ok())
        status = engine->Drain();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
      EXPECT_EQ(status.message(),
                DamageMessage("data entry 3 chunk 1", path, extent.offset, persistent));
      EXPECT_EQ(engine->TakeCounters().compute_seconds, 0) << "a kernel used what was damaged";
      EXPECT_FALSE(CommitAll({2, 0, {}}).ok());
    }
}

// Of what was written during a step, too.
TEST_P(EngineTest, DamageBetweenStepsIsFound) {
  for (bool persistent : {true, false}) {
    engine.reset();
    state.reset();
    std::filesystem::remove_all(scratch.path("state"));
    Make(MakeProgram(16, persistent), Options());
    FillWords(kData);
    auto mix = [](boa_context *context) { MixEntries(context, kData, 1, 2, 3); };
    ASSERT_TRUE(Run(mix).ok());
    ASSERT_TRUE(Run(mix).ok());
    ASSERT_TRUE(engine->Drain().ok());
    FlipBit(state->Current(kData, 3, 0));
    absl::Status status = Run(mix);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
}

// There is no checksum to compare with: a program that reads such a chunk is wrong.
TEST_P(EngineTest, ReadOfWhatWasNeverWrittenIsAnError) {
  Make();
  FillWords(kData);
  absl::Status status =
      Run([](boa_context *context) { boa_rt_release(context, Fetch(context, kWeights, 1), 0); });
  if (status.ok())
    status = engine->Drain();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "the program reads weights entry 1 chunk 0, which was never written");
}

TEST_P(EngineTest, TraceKeepsTheNewestInOrder) {
  EngineOptions options = Options();
  options.trace = true;
  options.trace_events = 10;
  Make(MakeProgram(), options);
  FillWords(kMemory);
  for (int64_t step = 1; step <= 2; ++step) {
    ASSERT_TRUE(Run(
                    [](boa_context *context) {
                      for (int i = 0; i < 33; ++i)
                        MixEntries(context, kMemory, 1, 2, 0, 0, i < 30 ? kMix : kSlowMix);
                    },
                    step)
                    .ok());
    std::vector<TraceEvent> trace = engine->TakeTrace();
    ASSERT_EQ(trace.size(), 10u);
    for (size_t i = 0; i < trace.size(); ++i) {
      EXPECT_EQ(trace[i].name, i < 7 ? "mix" : "slow_mix");
      EXPECT_LE(trace[i].begin_ns, trace[i].end_ns);
      EXPECT_TRUE(i == 0 || trace[i - 1].end_ns <= trace[i].begin_ns);
    }
  }
}

TEST_P(EngineTest, WaitsAreAttributed) {
  Program with = MakeProgram();
  Make(with, Options());
  FillWords(kData);
  ASSERT_TRUE(engine->Drain().ok());
  engine->TakeCounters();
  ASSERT_TRUE(Run([](boa_context *context) {
                for (int64_t i = 0; i + 2 < kEntries; ++i)
                  MixEntries(context, kData, i, i + 1, i + 2);
              }).ok());
  Counters counters = engine->TakeCounters();
  if (scheduled())
    return; // nobody waits while there is something to do
  EXPECT_GT(counters.waited_read, 0);
  EXPECT_EQ(counters.waited_optimizer, 0);
}

/// Threads of this process.
size_t ThreadCount() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return size_t(std::distance(begin(tasks), end(tasks)));
}

// With a scheduler a run is a function of the seed: the order of all that
// happens, too. Only results are the same for all seeds. There are no threads.
TEST(EngineSchedule, ASeedDecidesAllThatHappens) {
  Program program = MakeProgram();
  for (Storage &storage : program.storages) {
    storage.homes = {{Home::host, kChunks}};
    storage.pools.clear();
  }
  auto run = [&](uint32_t seed) {
    RandomScheduler scheduler(seed);
    EngineOptions options;
    options.scheduler = &scheduler;
    options.trace = true;
    SetThreads(1);
    ParallelFor(1, 1, [](void *, int64_t, int64_t) {}, nullptr);
    size_t threads = ThreadCount();
    auto engine = Engine::Create(program, kKernels, nullptr, options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    EXPECT_EQ(ThreadCount(), threads);
    std::vector<uint64_t> in(kWords, 3), out(kWords);
    for (int64_t entry = 0; entry < 2; ++entry)
      for (int32_t chunk = 0; chunk < kChunks; ++chunk) {
        std::vector<float> values = RandomFloats(entry);
        for (int32_t storage : {kWeights, kGradient})
          EXPECT_TRUE(WriteChunk(**engine, storage, entry, chunk, values.data(), kChunk).ok());
      }
    driver = [](boa_context *context, int64_t step, int64_t) {
      UpdateAll(context, step);
      for (int64_t entry = 0; entry < 6; ++entry)
        boa_rt_release(context,
                       boa_rt_prefetch(context, kMemory, entry, 0, kChunks, BOA_DEVICE,
                                       /*zero=*/entry > 3),
                       0);
      for (int i = 0; i < 10; ++i)
        MixEntries(context, kMemory, 6, 7, i % 4);
    };
    const int64_t bytes = kWords * 8;
    for (int64_t step = 1; step <= 3; ++step) {
      absl::Status status = (*engine)->Run(Drive, step, 0, {{kMemory, 7, in.data(), bytes}},
                                           {{kMemory, 3, out.data(), bytes}});
      EXPECT_TRUE(status.ok()) << status;
    }
    EXPECT_GT(scheduler.choices, 50);
    std::string order;
    for (const TraceEvent &event : (*engine)->TakeTrace())
      order += event.name + " ";
    return std::make_pair(order, out);
  };
  auto first = run(1);
  bool differs = false;
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    auto once = run(seed), again = run(seed);
    EXPECT_EQ(once, again) << seed;
    EXPECT_EQ(once.second, first.second) << seed;
    differs = differs || once.first != first.first;
  }
  EXPECT_TRUE(differs);
  SetThreads(0);
}

// The instruction set of kernels is said by name, or it is the processor's.
TEST(EngineCpu, IsNamedByTheEnvironment) {
  Program program = MakeProgram();
  for (Storage &storage : program.storages) {
    storage.homes = {{Home::host, kChunks}};
    storage.pools.clear();
  }
  RandomScheduler scheduler(1);
  EngineOptions options;
  options.scheduler = &scheduler;
  const Isa best = UsedIsa();
  setenv("BOA_CPU", "abacus", 1);
  EXPECT_EQ(
      Engine::Create(program, kKernels, nullptr, options).status().message(),
      "BOA_CPU=abacus: expected \"baseline\", \"avx2\", \"avx512\", \"avx512_bf16\" or \"amx\"");
  setenv("BOA_CPU", "baseline", 1);
  EXPECT_TRUE(Engine::Create(program, kKernels, nullptr, options).ok());
  EXPECT_EQ(UsedIsa(), Isa::kBaseline);
  unsetenv("BOA_CPU");
  EXPECT_TRUE(UseIsa(IsaName(best)).ok());
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BOA_SANITIZED
#endif
#endif

#ifndef BOA_SANITIZED // they need more address space than there is
/// Creates the engine in a process that may have so much more memory; exits with 0
/// if that fails with this message.
void CreateWithin(const Program &program, int64_t bytes, const char *expected) {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages;
  rlimit limit{rlim_t(pages * 4096 + bytes), RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
  absl::Status status = Engine::Create(program, kKernels, nullptr, {}).status();
  limit.rlim_cur = RLIM_INFINITY;
  setrlimit(RLIMIT_AS, &limit);
  std::cerr << status.ToString() << std::endl;
  _exit(status.message() == expected ? 0 : 1);
}

// An engine that cannot be is a status, not a crash, and leaves no thread behind.
TEST(EngineLimits, WantOfMemoryOrThreadsIsAStatus) {
  Program program = MakeProgram();
  for (Storage &storage : program.storages) {
    storage.homes = {{Home::host, kChunks}};
    storage.pools.clear();
  }
  program.machine.threads = 1;
  EXPECT_EXIT(CreateWithin(program, 6 << 20,
                           "cannot start the engine's threads: Resource temporarily unavailable: "
                           "allow the process more threads (ulimit -u) or more memory"),
              testing::ExitedWithCode(0), "");
  program.storages[kMemory].bytes = 0;
  program.storages[kMemory].chunks = 1 << 30;
  program.storages[kMemory].homes = {{Home::host, 1 << 30}};
  EXPECT_EXIT(CreateWithin(program, 64 << 20,
                           "cannot allocate what the engine needs beside its arena: give the "
                           "process more memory or the program less"),
              testing::ExitedWithCode(0), "");
}
#endif

} // namespace
} // namespace boa
