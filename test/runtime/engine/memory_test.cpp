//===- memory_test.cpp - Homes, spaces and slots --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model of memory of runtime/abi/abi.h, rule by rule, where device and host are one
// memory, where they are two, and where SSDs reach both: of a CPU, and, where this is compiled
// for the fake of CUDA's driver, of a GPU. Entries have six chunks; in `mixed` the first two live
// on SSD, the next two on the host, the last two on the device.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/cuda_calls.h"
#include "runtime/engine/engine.h"
#include "test/fake_cuda/emulated.h"
#include "test/runtime/chunks.h"
#include "test/runtime/cuda/emulated_sums.h"
#include "test/runtime/trainer/scratch.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <functional>

namespace boa {
namespace {

constexpr int64_t kChunk = 4096, kWords = kChunk / 8, kEntries = 2;
constexpr int32_t kChunks = 6;
enum StorageId : int32_t { kMixed, kDisk, kOnHost, kOnDevice };
enum KernelId : int32_t { kDouble, kDoubleTwo };

/// Twice what was there, and 1 where it was 0.
void DoubleWord(uint64_t &word) { word = word ? 2 * word : 1; }
void EmulatedWord(boa_emulated_thread *thread, void *const *args) {
  DoubleWord((*static_cast<uint64_t *const *>(args[0]))[thread->block[0] * 64 + thread->thread[0]]);
}

/// In so many chunks.
template <int kCount> void Double(void *const *buffers, void *, boa_queue *queue) {
  if (queue)
    return boa_cuda_launch(queue, 0, kCount * kWords / 64, 1, 1, 64, 1, 1, 0, 1, buffers);
  auto *words = static_cast<uint64_t *>(buffers[0]);
  for (int64_t i = 0; i < kCount * kWords; ++i)
    DoubleWord(words[i]);
}
const boa_kernel kTable[] = {Double<kChunks>, Double<2>};
const boa_emulated_function kFunctions[] = {{"double", EmulatedWord, 0, 1},
                                            {"sums_4096", EmulatedSums<kChunk>, 0, 3}};
const boa_emulated_module kModule = {BOA_EMULATED_MAGIC, 2, kFunctions};
const char *const kNames[] = {"double", "sums_4096"};
const boa_device_image kImage = {&kModule, sizeof(kModule), kNames, 2};
const Kernels kKernels(kTable, &kImage);

enum class Memories { unified, separate, direct, cuda, cuda_direct };
bool IsCuda(Memories memories) { return memories >= Memories::cuda; }
bool IsDirect(Memories memories) {
  return memories == Memories::direct || memories == Memories::cuda_direct;
}

std::function<void(boa_context *)> body;
void Drive(boa_context *context, int64_t, int64_t) { body(context); }

Program MakeProgram(Memories memories) {
  Program program;
  program.abi = BOA_ABI_VERSION;
  program.model.name = "memory";
  program.machine.memory =
      memories != Memories::unified ? MemoryKind::separate : MemoryKind::unified;
  program.machine.direct = IsDirect(memories);
  program.machine.device = IsCuda(memories) ? DeviceKind::cuda : DeviceKind::cpu;
  auto add = [&](const char *name, std::vector<Home> homes, bool persistent) {
    Storage &storage = program.storages.emplace_back();
    storage.name = storage.role = name;
    storage.entries = {kEntries};
    storage.chunks = kChunks;
    storage.bytes = kChunks * kChunk;
    storage.persistent = persistent;
    storage.homes = std::move(homes);
    storage.pools = {{BOA_DEVICE, kChunks, 2}, {BOA_HOST, kChunks, 1}, {BOA_HOST, 1, 3}};
  };
  add("mixed", {{Home::ssd, 2}, {Home::host, 2}, {Home::device, 2}}, true);
  add("disk", {{Home::ssd, kChunks}}, false);
  add("on_host", {{Home::host, kChunks}}, true);
  add("on_device", {{Home::device, kChunks}}, true);
  program.kernels = {{"double", {{true, true}}, 0, 0, 0}, {"double_two", {{true, true}}, 0, 0, 0}};
  return program;
}

class MemoryTest : public testing::TestWithParam<Memories> {
protected:
#ifdef BOA_FAKE_DRIVER
  void SetUp() override {
    setenv("BOA_CUDA_DRIVER", BOA_FAKE_DRIVER, 1);
    setenv("BOA_CUDA_FILE", BOA_FAKE_FILE, 1);
    setenv("BOA_FAKE_CUDA", "delay_us=100", 1);
    setenv("BOA_FAKE_CUFILE", "delay_us=100", 1);
  }
#endif
  bool separate() const { return GetParam() != Memories::unified; }
  /// Whether what passes between SSD and the device passes the host.
  bool staged() const { return separate() && !IsDirect(GetParam()); }

  void Make(Program with, bool reopen = false) {
    engine.reset();
    state.reset();
    program = std::move(with);
    program.machine.ssd = {{scratch.path("state")}};
    auto opened = reopen ? StateStore::Open(SystemFiles(), program, {scratch.path("state")})
                         : StateStore::Create(SystemFiles(), program, {scratch.path("state")});
    ASSERT_TRUE(opened.ok()) << opened.status();
    state = *std::move(opened);
    auto made = Engine::Create(program, kKernels, state.get(), {});
    ASSERT_TRUE(made.ok()) << made.status();
    engine = *std::move(made);
  }
  void Make() {
    Make(MakeProgram(GetParam()));
    for (int32_t storage : {kMixed, kDisk, kOnHost, kOnDevice})
      for (int64_t entry = 0; entry < kEntries; ++entry)
        Fill(storage, entry, 100 * (entry + 1));
    ASSERT_TRUE(engine->Drain().ok());
    engine->TakeCounters();
  }

  absl::Status Run(std::function<void(boa_context *)> run) {
    body = std::move(run);
    absl::Status status = engine->Run(Drive, 1, 0);
    return status.ok() ? engine->Drain() : status;
  }
  /// Chunk c of the entry: base + c.
  void Fill(int32_t storage, int64_t entry, uint64_t base) {
    for (int32_t chunk = 0; chunk < kChunks; ++chunk) {
      std::vector<uint64_t> words(kWords, base + chunk);
      absl::Status status = WriteChunk(*engine, storage, entry, chunk, words.data(), kChunk);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  /// The first word of each chunk; all of a chunk are the same.
  std::vector<uint64_t> Read(int32_t storage, int64_t entry) {
    std::vector<uint64_t> firsts;
    for (int32_t chunk = 0; chunk < kChunks; ++chunk) {
      std::vector<uint64_t> words(kWords);
      absl::Status status = ReadChunk(*engine, storage, entry, chunk, words.data(), kChunk);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(words, std::vector<uint64_t>(kWords, words[0]));
      firsts.push_back(words[0]);
    }
    return firsts;
  }
  static std::vector<uint64_t> Times(uint64_t factor, uint64_t base) {
    std::vector<uint64_t> words;
    for (int32_t chunk = 0; chunk < kChunks; ++chunk)
      words.push_back(factor * (base + chunk));
    return words;
  }

  Scratch scratch;
  Program program;
  std::unique_ptr<StateStore> state;
  std::unique_ptr<Engine> engine;
};

std::string NameOf(const testing::TestParamInfo<Memories> &info) {
  const char *const names[] = {"unified", "separate", "direct", "cuda", "cuda_direct"};
  return names[int(info.param)];
}
#ifdef BOA_FAKE_DRIVER
INSTANTIATE_TEST_SUITE_P(Memories, MemoryTest,
                         testing::Values(Memories::cuda, Memories::cuda_direct), NameOf);
#else
INSTANTIATE_TEST_SUITE_P(Memories, MemoryTest,
                         testing::Values(Memories::unified, Memories::separate, Memories::direct),
                         NameOf);
#endif

/// The device's copy of an entry: chunks on SSD by way of host slots where no SSD
/// reaches the device, the rest straight from where they live.
boa_buffer Gather(boa_context *context, bool separate, int32_t storage, int64_t entry) {
  if (!separate)
    return boa_rt_prefetch(context, storage, entry, 0, kChunks, BOA_DEVICE, 0);
  boa_buffer whole = boa_rt_create(context, storage, entry, 0, kChunks, BOA_DEVICE);
  for (int32_t chunk = 0; chunk < kChunks; ++chunk) {
    boa_buffer one = boa_rt_prefetch(context, storage, entry, chunk, 1,
                                     storage == kMixed && chunk > 3 ? BOA_DEVICE : BOA_HOST, 0);
    boa_rt_copy(context, one, whole, chunk, 1);
    boa_rt_release(context, one, 0);
  }
  return whole;
}

void Scatter(boa_context *context, bool separate, boa_buffer whole, int32_t storage,
             int64_t entry) {
  if (!separate)
    return boa_rt_offload(context, whole, storage, entry, 0, kChunks);
  const int32_t on_disk = storage == kMixed ? 2 : kChunks;
  for (int32_t chunk = 0; chunk < on_disk; ++chunk) {
    boa_buffer one = boa_rt_create(context, storage, entry, chunk, 1, BOA_HOST);
    boa_rt_copy(context, whole, one, chunk, 1);
    boa_rt_offload(context, one, storage, entry, chunk, 1);
    boa_rt_release(context, one, 0);
  }
  if (storage == kMixed)
    boa_rt_offload(context, whole, storage, entry, 2, 4);
}

// A kernel sees whole entries, wherever their chunks live; all of them come home.
TEST_P(MemoryTest, MixedHomesAreGatheredAndScattered) {
  Make();
  for (int32_t storage : {kMixed, kDisk}) {
    absl::Status status = Run([&](boa_context *context) {
      for (int i = 0; i < 3; ++i)
        for (int64_t entry = 0; entry < kEntries; ++entry) {
          boa_buffer whole = Gather(context, staged(), storage, entry);
          boa_rt_launch(context, kDouble, 1, &whole);
          Scatter(context, staged(), whole, storage, entry);
          boa_rt_release(context, whole, 0);
        }
    });
    ASSERT_TRUE(status.ok()) << status;
    for (int64_t entry = 0; entry < kEntries; ++entry)
      EXPECT_EQ(Read(storage, entry), Times(8, 100 * (entry + 1)));
  }
  Counters counters = engine->TakeCounters();
  EXPECT_EQ(counters.moved.read["mixed"], 6 * 2 * kChunk);
  EXPECT_EQ(counters.moved.written["mixed"], 6 * 2 * kChunk);
  EXPECT_EQ(counters.moved.read["disk"], 6 * 6 * kChunk);
  // Chunks that live on the device cross nothing.
  const int64_t copied = staged() ? 4 : separate() ? 2 : 0;
  EXPECT_EQ(counters.moved.to_device["mixed"], 6 * copied * kChunk);
  EXPECT_EQ(counters.moved.to_host["mixed"], 6 * copied * kChunk);
  EXPECT_EQ(counters.moved.to_device["disk"], staged() ? 6 * 6 * kChunk : 0);
}

// What lives in a memory is brought to the other in one command, and taken home.
TEST_P(MemoryTest, PrefetchAndOffloadGoBetweenMemories) {
  Make();
  absl::Status status = Run([](boa_context *context) {
    for (int i = 0; i < 2; ++i) {
      boa_buffer whole = boa_rt_prefetch(context, kOnHost, 1, 0, kChunks, BOA_DEVICE, 0);
      boa_rt_launch(context, kDouble, 1, &whole);
      boa_rt_offload(context, whole, kOnHost, 1, 0, kChunks);
      boa_rt_release(context, whole, 0);
    }
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Read(kOnHost, 1), Times(4, 200));
  EXPECT_EQ(Read(kOnHost, 0), Times(1, 100));
  Counters counters = engine->TakeCounters();
  EXPECT_EQ(counters.moved.to_device["on_host"], separate() ? 2 * kChunks * kChunk : 0);
  EXPECT_EQ(counters.moved.to_host["on_host"], separate() ? 2 * kChunks * kChunk : 0);
  EXPECT_TRUE(counters.moved.read.empty() && counters.moved.written.empty());
}

// A buffer of chunks that live where they are wanted is their home, from its first
// chunk on: nothing moves.
TEST_P(MemoryTest, HomesAreUsedWhereTheyAre) {
  Make();
  const int64_t before = engine->PeakBytes();
  absl::Status status = Run([](boa_context *context) {
    boa_buffer part = boa_rt_prefetch(context, kOnDevice, 0, 3, 2, BOA_DEVICE, 0);
    boa_rt_launch(context, kDoubleTwo, 1, &part);
    boa_rt_offload(context, part, kOnDevice, 0, 3, 2);
    boa_rt_release(context, part, 0);
    part = boa_rt_prefetch(context, kMixed, 0, 4, 2, BOA_DEVICE, 0);
    boa_rt_launch(context, kDoubleTwo, 1, &part);
    boa_rt_release(context, part, 0);
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Read(kOnDevice, 0), (std::vector<uint64_t>{100, 101, 102, 206, 208, 105}));
  EXPECT_EQ(Read(kMixed, 0), (std::vector<uint64_t>{100, 101, 102, 103, 208, 210}));
  EXPECT_EQ(engine->PeakBytes(), before);
  EXPECT_TRUE(engine->TakeCounters().moved.to_device.empty());
}

// Side by side in one memory, what lives on the host and what lives on the device is
// one piece; between two memories it is not.
TEST_P(MemoryTest, NeighboursInOneMemoryAreOnePiece) {
  Make();
  const int64_t before = engine->PeakBytes();
  absl::Status status = Run([](boa_context *context) {
    boa_buffer part = boa_rt_prefetch(context, kMixed, 0, 3, 2, BOA_DEVICE, 0);
    boa_rt_launch(context, kDoubleTwo, 1, &part);
    boa_rt_offload(context, part, kMixed, 0, 3, 2);
    boa_rt_release(context, part, 0);
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Read(kMixed, 0), (std::vector<uint64_t>{100, 101, 102, 206, 208, 105}));
  EXPECT_EQ(engine->PeakBytes() == before, !separate());
  EXPECT_EQ(engine->TakeCounters().moved.to_device["mixed"], separate() ? kChunk : 0);
}

TEST_P(MemoryTest, ZerosWhereverChunksLive) {
  Make();
  for (int32_t storage : {kMixed, kOnHost, kOnDevice}) {
    absl::Status status = Run([&](boa_context *context) {
      boa_buffer whole = boa_rt_prefetch(context, storage, 1, 0, kChunks, BOA_DEVICE, /*zero=*/1);
      boa_rt_launch(context, kDouble, 1, &whole);
      Scatter(context, staged() && storage == kMixed, whole, storage, 1);
      boa_rt_release(context, whole, 0);
    });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Read(storage, 1), std::vector<uint64_t>(kChunks, 1));
  }
}

// Of the pools of a space, the smallest that can hold it: single chunks take no slot of
// a whole entry, and when they are out the next size is not taken.
TEST_P(MemoryTest, SlotsAreOfTheirSize) {
  Make();
  const int64_t before = engine->PeakBytes();
  auto hold = [](int32_t space, std::vector<int32_t> counts) {
    return [=](boa_context *context) {
      std::vector<boa_buffer> buffers;
      for (int32_t count : counts)
        buffers.push_back(boa_rt_create(context, kDisk, int64_t(buffers.size()) % kEntries,
                                        int32_t(buffers.size()) / 2, count, space));
      for (boa_buffer buffer : buffers)
        boa_rt_release(context, buffer, 0);
    };
  };
  const int64_t one = boa_slot_stride(kChunk), all = boa_slot_stride(kChunks * kChunk);
  ASSERT_TRUE(Run(hold(BOA_HOST, {1, 1})).ok());
  EXPECT_EQ(engine->PeakBytes(), before + 2 * one);
  ASSERT_TRUE(Run(hold(BOA_HOST, {2, 1, 1, 1})).ok());
  EXPECT_EQ(engine->PeakBytes(), before + 3 * one + all);
  ASSERT_TRUE(Run(hold(BOA_DEVICE, {1, 1})).ok());
  EXPECT_EQ(engine->PeakBytes(), before + 3 * one + 3 * all);
  EXPECT_EQ(engine->PeakBytes(BOA_HOST) > 0, separate());
  ASSERT_TRUE(Run(hold(BOA_HOST, {1, 1, 1, 1})).ok());
  EXPECT_EQ(engine->PeakBytes(), before + 3 * one + 3 * all);
}

TEST_P(MemoryTest, WithoutASlotOfThatSizeNothingOpens) {
  Program with = MakeProgram(GetParam());
  with.storages[kDisk].pools = {{BOA_HOST, 2, 1}};
  Make(with);
  auto create = [](int32_t space, int32_t count) {
    return [=](boa_context *context) {
      boa_rt_release(context, boa_rt_create(context, kDisk, 0, 0, count, space), 0);
    };
  };
  EXPECT_TRUE(Run(create(BOA_HOST, 2)).ok());
  // Of one memory the other space's slots are as good.
  absl::Status status = Run(create(BOA_DEVICE, 2));
  EXPECT_EQ(status.message(),
            separate() ? "the program asks for chunks that no slot can hold" : "");
  EXPECT_EQ(Run(create(BOA_HOST, 3)).message(),
            "the program asks for chunks that no slot can hold");
}

TEST_P(MemoryTest, CopiesAreOfChunksThatBothHold) {
  for (auto [first, count] : {std::pair<int32_t, int32_t>{1, 2}, {0, 1}, {2, 1}, {1, 0}}) {
    std::filesystem::remove_all(scratch.path("state"));
    Make();
    absl::Status status = Run([first = first, count = count](boa_context *context) {
      boa_buffer from = boa_rt_prefetch(context, kOnDevice, 0, 0, 2, BOA_DEVICE, 0);
      boa_buffer to = boa_rt_create(context, kOnDevice, 1, 1, 3, BOA_HOST);
      boa_rt_copy(context, from, to, first, count);
    });
    EXPECT_EQ(status.message(), "the program copies chunks that a buffer does not hold");
  }
  std::filesystem::remove_all(scratch.path("state"));
  Make();
  absl::Status status = Run([](boa_context *context) {
    boa_buffer from = boa_rt_prefetch(context, kOnDevice, 0, 0, 2, BOA_DEVICE, 0);
    boa_buffer to = boa_rt_prefetch(context, kOnHost, 0, 0, 2, BOA_HOST, 0);
    boa_rt_copy(context, from, to, 0, 1);
  });
  EXPECT_FALSE(status.ok()) << "of two storages";
}

// Between SSD and a device of its own memory each chunk passes through a slot of the
// host's, of which one is enough; where the SSD reaches the device's memory it needs none.
TEST_P(MemoryTest, ChunksPassThroughTheHost) {
  auto doubled = [](boa_context *context) {
    for (int32_t storage : {kDisk, kMixed}) {
      boa_buffer whole = boa_rt_prefetch(context, storage, 1, 0, kChunks, BOA_DEVICE, 0);
      boa_rt_launch(context, kDouble, 1, &whole);
      boa_rt_offload(context, whole, storage, 1, 0, kChunks);
      boa_rt_release(context, whole, 0);
    }
  };
  for (int32_t slots : {1, 3}) {
    std::filesystem::remove_all(scratch.path("state"));
    Program with = MakeProgram(GetParam());
    for (Storage &storage : with.storages)
      storage.pools = {{BOA_DEVICE, kChunks, 2}, {BOA_HOST, 1, slots}};
    Make(with);
    for (int32_t storage : {kDisk, kMixed})
      Fill(storage, 1, 200);
    ASSERT_TRUE(engine->Drain().ok());
    engine->TakeCounters();
    absl::Status status = Run(doubled);
    ASSERT_TRUE(status.ok()) << status;
    Counters counters = engine->TakeCounters();
    EXPECT_EQ(counters.moved.read["disk"], kChunks * kChunk);
    EXPECT_EQ(counters.moved.written["mixed"], 2 * kChunk);
    EXPECT_EQ(counters.moved.to_device["disk"], staged() ? kChunks * kChunk : 0);
    EXPECT_EQ(counters.moved.to_host["mixed"], (staged() ? 4 : separate() ? 2 : 0) * kChunk);
    EXPECT_EQ(Read(kDisk, 1), Times(2, 200));
    EXPECT_EQ(Read(kMixed, 1), Times(2, 200));
  }
  std::filesystem::remove_all(scratch.path("state"));
  Program without = MakeProgram(GetParam());
  for (Storage &storage : without.storages)
    storage.pools = {{BOA_DEVICE, kChunks, 2}};
  Make(without);
  for (int32_t storage : {kDisk, kMixed})
    Fill(storage, 1, 200);
  EXPECT_EQ(Run(doubled).message(),
            staged()
                ? "the program moves chunks between SSD and device without a slot in host memory"
                : "");
}

// Of two memories, kernels reach one, the optimizer that in which it runs.
TEST_P(MemoryTest, TheWrongSpaceIsRefused) {
  Program with = MakeProgram(GetParam());
  Group group;
  group.name = "block";
  group.count = kEntries;
  group.chunks = kChunks;
  group.chunk_elements = kChunk / 4;
  group.elements = kChunks * group.chunk_elements;
  group.weight_type = "f32";
  group.weights = kOnHost;
  with.groups = {group};
  with.train.optimizer.kind = OptimizerKind::sgd;
  with.train.optimizer.rate = RateKind::constant;
  struct Case {
    const char *message;
    std::function<void(boa_context *)> run;
    int32_t space = BOA_HOST; // of the optimizer
  };
  const Case cases[] = {
      {"the program runs a kernel on a buffer in host memory",
       [](boa_context *context) {
         boa_buffer whole = boa_rt_prefetch(context, kOnHost, 0, 0, kChunks, BOA_HOST, 0);
         boa_rt_launch(context, kDouble, 1, &whole);
       }},
      {"the program updates a buffer in device memory",
       [](boa_context *context) {
         boa_buffer weights = boa_rt_prefetch(context, kOnHost, 0, 0, kChunks, BOA_HOST, 0);
         boa_buffer gradient = boa_rt_prefetch(context, kOnDevice, 0, 0, kChunks, BOA_DEVICE, 0);
         boa_rt_update(context, 0, 0, 1, weights, 0, 0, 0, gradient);
       }},
      {"the program takes the norm of a buffer in device memory",
       [](boa_context *context) {
         boa_rt_norm(context, 0, boa_rt_prefetch(context, kOnDevice, 0, 0, 1, BOA_DEVICE, 0));
       }},
      {"the program updates a buffer in host memory",
       [](boa_context *context) {
         boa_buffer weights = boa_rt_prefetch(context, kOnHost, 0, 0, kChunks, BOA_HOST, 0);
         boa_buffer gradient = boa_rt_prefetch(context, kOnDevice, 0, 0, kChunks, BOA_DEVICE, 0);
         boa_rt_update(context, 0, 0, 1, weights, 0, 0, 0, gradient);
       },
       BOA_DEVICE},
      {"the program takes the norm of a buffer in host memory",
       [](boa_context *context) {
         boa_rt_norm(context, 0, boa_rt_prefetch(context, kOnHost, 0, 0, 1, BOA_HOST, 0));
       },
       BOA_DEVICE},
  };
  for (const auto &[message, run, space] : cases) {
    with.plan.update = space == BOA_DEVICE ? UpdatePlace::device : UpdatePlace::host;
    std::filesystem::remove_all(scratch.path("state"));
    Make(with);
    for (int32_t storage : {kMixed, kOnHost, kOnDevice})
      Fill(storage, 0, 0);
    absl::Status status = Run(run);
    EXPECT_EQ(status.message(), separate() ? message : "");
  }
}

// A retained copy is found again, in its space; where memory is one, from either.
TEST_P(MemoryTest, RetainedCopiesAreOfTheirSpace) {
  Make();
  absl::Status status = Run([](boa_context *context) {
    boa_rt_release(context, boa_rt_prefetch(context, kDisk, 0, 1, 1, BOA_HOST, 0), /*retain=*/1);
    boa_rt_release(context, boa_rt_prefetch(context, kDisk, 0, 1, 1, BOA_HOST, 0), 1);
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(engine->TakeCounters().moved.read["disk"], kChunk);
  // Written home from elsewhere it is stale in every space.
  status = Run([](boa_context *context) {
    boa_buffer host = boa_rt_prefetch(context, kOnHost, 0, 0, 1, BOA_HOST, 0);
    boa_buffer device = boa_rt_create(context, kOnHost, 0, 0, kChunks, BOA_DEVICE);
    boa_rt_launch(context, kDouble, 1, &device);
    boa_rt_release(context, device, /*retain=*/1);
    boa_rt_offload(context, host, kOnHost, 0, 0, 1);
    boa_rt_release(context, host, 0);
    boa_buffer again = boa_rt_prefetch(context, kOnHost, 0, 0, kChunks, BOA_DEVICE, 0);
    boa_rt_launch(context, kDouble, 1, &again);
    boa_rt_offload(context, again, kOnHost, 0, 0, kChunks);
    boa_rt_release(context, again, 0);
  });
  ASSERT_TRUE(status.ok()) << status;
  // Unified, all of that is in one place.
  EXPECT_EQ(Read(kOnHost, 0), Times(separate() ? 2 : 4, 100));
}

// What lives in memory, in whichever, is part of a commit and comes back.
TEST_P(MemoryTest, CommitAndRestore) {
  Make();
  ASSERT_TRUE(engine->Commit({1, 0, {}}).ok());
  for (int32_t storage : {kMixed, kOnHost, kOnDevice})
    Fill(storage, 1, 7);
  Make(MakeProgram(GetParam()), /*reopen=*/true);
  absl::Status status = engine->Restore();
  ASSERT_TRUE(status.ok()) << status;
  for (int32_t storage : {kMixed, kOnHost, kOnDevice})
    for (int64_t entry = 0; entry < kEntries; ++entry)
      EXPECT_EQ(Read(storage, entry), Times(1, 100 * (entry + 1))) << storage;
}

} // namespace
} // namespace boa
