//===- memory_test.cpp - Homes, spaces and slots --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/engine/memory_fixture.h"

namespace boa::memory_tests {
namespace {

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

// An entry may live elsewhere than the others: it takes no slot and does not move. A commit saves
// it.
TEST_P(MemoryTest, EntriesLiveApart) {
  Program apart = MakeProgram(GetParam());
  apart.storages[kMixed].homes = {{1, {{Home::ssd, kChunks}}}, {1, {{Home::device, kChunks}}}};
  Make(apart);
  for (int32_t storage : {kMixed, kOnHost, kOnDevice})
    for (int64_t entry = 0; entry < kEntries; ++entry)
      Fill(storage, entry, 100 * (entry + 1));
  ASSERT_TRUE(engine->Drain().ok());
  engine->TakeCounters();
  absl::Status status = Run([](boa_context *context) {
    for (int64_t entry = 0; entry < kEntries; ++entry) {
      boa_buffer whole = boa_rt_prefetch(context, kMixed, entry, 0, kChunks, BOA_DEVICE, 0);
      boa_rt_launch(context, kDouble, 1, &whole);
      boa_rt_offload(context, whole, kMixed, entry, 0, kChunks);
      boa_rt_release(context, whole, 0);
    }
  });
  ASSERT_TRUE(status.ok()) << status;
  Counters counters = engine->TakeCounters();
  EXPECT_EQ(counters.moved.read["mixed"], kChunks * kChunk);
  EXPECT_EQ(counters.moved.written["mixed"], kChunks * kChunk);
  EXPECT_EQ(counters.moved.to_device["mixed"], staged() ? kChunks * kChunk : 0);
  ASSERT_TRUE(engine->Commit({1, 0, {}}).ok());
  std::swap(apart.storages[kMixed].homes[0], apart.storages[kMixed].homes[1]);
  Make(apart, /*reopen=*/true);
  ASSERT_TRUE(engine->Restore().ok());
  for (int64_t entry = 0; entry < kEntries; ++entry)
    EXPECT_EQ(Read(kMixed, entry), Times(2, 100 * (entry + 1)));
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

/// With the storage as the state of an optimizer.
Program WithState(Memories memories, int32_t storage) {
  Program program = MakeProgram(memories);
  program.storages[storage].persistent = true;
  Group &group = program.groups.emplace_back();
  group.weights = kOnHost;
  group.states = {storage};
  program.optimizer.states = {{program.storages[storage].role, "f32"}};
  return program;
}

// A state that nobody has written is zero wherever its chunks live. It is not read, and a commit
// does not write it.
TEST_P(MemoryTest, AbsentStatesAreZero) {
  const Program with = WithState(GetParam(), kMixed);
  const std::vector<uint64_t> zeros(kChunks), ones(kChunks, 1);
  Make(with);
  for (int64_t entry = 0; entry < kEntries; ++entry)
    for (int32_t storage : {kOnHost, kOnDevice})
      Fill(storage, entry, 100);
  ASSERT_TRUE(engine->Commit({0, 0, {}}).ok());
  for (bool reopened : {false, true}) {
    SCOPED_TRACE(reopened);
    if (reopened) {
      Make(with, /*reopen=*/true);
      ASSERT_TRUE(engine->Restore().ok());
    }
    for (int64_t entry = 0; entry < kEntries; ++entry) {
      for (int32_t chunk = 0; chunk < kChunks; ++chunk)
        EXPECT_EQ(state->Current(kMixed, entry, chunk).file, -1);
      EXPECT_EQ(Read(kMixed, entry), zeros);
    }
    EXPECT_EQ(engine->AbsentBytes(),
              (std::map<std::string, int64_t>{{"mixed", kEntries * 2 * kChunk}}));
    engine->TakeCounters();
    absl::Status status = Run([&](boa_context *context) {
      for (int64_t entry = 0; entry < kEntries; ++entry) {
        boa_buffer whole = Gather(context, staged(), kMixed, entry);
        boa_rt_launch(context, kDouble, 1, &whole);
        Scatter(context, staged(), whole, kMixed, entry);
        boa_rt_release(context, whole, 0);
      }
    });
    ASSERT_TRUE(status.ok()) << status;
    Counters counters = engine->TakeCounters();
    EXPECT_TRUE(counters.moved.read.empty());
    EXPECT_EQ(counters.moved.written["mixed"], kEntries * 2 * kChunk);
    for (int64_t entry = 0; entry < kEntries; ++entry)
      EXPECT_EQ(Read(kMixed, entry), ones);
  }
  ASSERT_TRUE(engine->Commit({1, 0, {}}).ok());
  EXPECT_TRUE(engine->AbsentBytes().empty());
  Make(with, /*reopen=*/true);
  ASSERT_TRUE(engine->Restore().ok());
  for (int64_t entry = 0; entry < kEntries; ++entry)
    EXPECT_EQ(Read(kMixed, entry), ones);
}

// In one buffer, chunks that were written and others that are absent.
TEST_P(MemoryTest, AbsentChunksBesideWrittenOnes) {
  Make(WithState(GetParam(), kDisk));
  absl::Status status = Run([&](boa_context *context) {
    boa_buffer part = boa_rt_prefetch(context, kDisk, 1, 2, 2, BOA_DEVICE, 0);
    boa_rt_launch(context, kDoubleTwo, 1, &part);
    boa_rt_offload(context, part, kDisk, 1, 2, 2);
    boa_rt_release(context, part, 0);
    boa_buffer whole = boa_rt_prefetch(context, kDisk, 1, 0, kChunks, BOA_DEVICE, 0);
    boa_rt_launch(context, kDouble, 1, &whole);
    boa_rt_offload(context, whole, kDisk, 1, 0, kChunks);
    boa_rt_release(context, whole, 0);
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(engine->TakeCounters().moved.read["disk"], 2 * kChunk);
  EXPECT_EQ(Read(kDisk, 1), (std::vector<uint64_t>{1, 1, 2, 2, 1, 1}));
  EXPECT_EQ(Read(kDisk, 0), std::vector<uint64_t>(kChunks));
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

// One slot, of the larger storage's size, holds the buffers of both one after another.
TEST_P(MemoryTest, StoragesShareSlots) {
  Program with = MakeProgram(GetParam());
  with.storages[kDisk].pools = {{BOA_DEVICE, kChunks, 1, /*shared=*/1}, {BOA_HOST, 1, 1}};
  with.storages[kMixed].pools = {{BOA_DEVICE, 3, 1, /*shared=*/1}, {BOA_HOST, 1, 1}};
  Make(with);
  for (int32_t storage : {kDisk, kMixed})
    Fill(storage, 1, 200);
  ASSERT_TRUE(engine->Drain().ok());
  const int64_t before = engine->PeakBytes(BOA_DEVICE);
  absl::Status status = Run([&](boa_context *context) {
    for (int32_t round = 0; round < 4; ++round)
      for (auto [storage, count] : {std::pair(kDisk, kChunks), {kMixed, 3}}) {
        boa_buffer buffer = boa_rt_prefetch(context, storage, 1, 0, count, BOA_DEVICE, 0);
        boa_rt_launch(context, kDouble, 1, &buffer);
        boa_rt_offload(context, buffer, storage, 1, 0, count);
        boa_rt_release(context, buffer, 0);
      }
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Read(kDisk, 1), Times(16, 200));
  std::vector<uint64_t> mixed = Times(1, 200);
  for (size_t chunk = 0; chunk < 3; ++chunk)
    mixed[chunk] *= 16;
  EXPECT_EQ(Read(kMixed, 1), mixed);
  EXPECT_EQ(engine->PeakBytes(BOA_DEVICE), before + boa_slot_stride(kChunks * kChunk));
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
} // namespace boa::memory_tests
