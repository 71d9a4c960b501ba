//===- moves_test.cpp - Chunks between homes and slots --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/engine/fixture.h"

#include <algorithm>
#include <limits>

namespace boa::engine_test {
namespace {

// A chain through one entry: every prefetch sees the offload before it.
TEST_P(EngineTest, PrefetchAfterOffloadSeesIt) {
  Make();
  program.kernels[kMix].costs[NumberFormat::f32].flops = 5;
  program.kernels[kSlowMix].costs = {{NumberFormat::f32, {1}}, {NumberFormat::bf16, {2}}};
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
    boa_rt_update(context, 0, 0, /*step=*/0, null, null, null, 0, nullptr);
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
      names.emplace_back(event.name);
  ASSERT_EQ(names.size(), size_t(kEntries + 1));
  EXPECT_EQ(names[0], "weights.block");
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
      [](boa_context *context) { boa_rt_update(context, 0, 0, 1, 0, 0, 0, 0, nullptr); },
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
  // Tables of kernels are part of what was planned.
  small.arena_device = 1 << 20;
  small.constants = 896 << 10;
  refused = Engine::Create(small, kKernels, state.get(), Options());
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

} // namespace
} // namespace boa::engine_test
