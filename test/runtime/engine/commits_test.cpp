//===- commits_test.cpp - Commits, and damage on disk ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/engine/fixture.h"

namespace boa::engine_test {
namespace {

// What was committed comes back, with the factors of delayed updates; what came
// after it does not.
TEST_P(EngineTest, CommitAndRestore) {
  Program with = MakeProgram();
  with.train.clip = 1.5;
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

// Weights in memory that no step changes are written once. All commits name that extent.
TEST_P(EngineTest, CommitsShareWhatIsFrozen) {
  Program with = MakeProgram();
  with.storages[kMemory].name = "weights.frozen.memory";
  Make(with, Options());
  FillWords(kData);
  FillWords(kMemory);
  WriteTensors();
  const std::vector<uint64_t> memory = Read<uint64_t>(kMemory, 5);
  Extent frozen, trained;
  for (int64_t step : {1, 2, 3}) {
    ASSERT_TRUE(CommitAll({step, 0, {}}).ok());
    if (step > 1) {
      EXPECT_TRUE(state->Current(kMemory, 5, 1) == frozen);
      EXPECT_FALSE(state->Current(kVariance, 1, 1) == trained);
    }
    frozen = state->Current(kMemory, 5, 1);
    trained = state->Current(kVariance, 1, 1);
  }
  Make(with, Options(), /*reopen=*/true);
  ASSERT_TRUE(engine->Restore().ok());
  EXPECT_EQ(Read<uint64_t>(kMemory, 5), memory);
}

// The first updates of a training: of moments that are absent, and of zeros that were written.
TEST_P(EngineTest, AbsentMomentsAreZero) {
  auto begin = [&](bool zeros) {
    engine.reset();
    state.reset();
    std::filesystem::remove_all(scratch.path("state"));
    Make();
    FillWords(kData);
    FillWords(kMemory);
    for (int64_t entry = 0; entry < 2; ++entry) {
      Write(kWeights, entry, RandomFloats(uint32_t(entry)));
      for (int32_t storage : {kMomentum, kVariance})
        if (zeros)
          Write(storage, entry, std::vector<float>(kElements));
    }
    ASSERT_TRUE(engine->Commit({0, 0, {}}).ok());
  };
  auto update = [&] {
    for (int64_t entry = 0; entry < 2; ++entry)
      Write(kGradient, entry, RandomFloats(uint32_t(7 + entry)));
    engine->TakeCounters();
    ASSERT_TRUE(Run([](boa_context *context) { UpdateAll(context, 1); }).ok());
    ASSERT_TRUE(engine->Drain().ok());
  };
  begin(/*zeros=*/true);
  update();
  EXPECT_EQ(engine->TakeCounters().moved.read["momentum"], 2 * kChunks * kChunk);
  const std::vector<std::vector<uint32_t>> expected = Tensors();
  begin(/*zeros=*/false);
  update();
  EXPECT_EQ(engine->TakeCounters().moved.read.count("momentum"), 0u);
  EXPECT_EQ(Tensors(), expected);
  // The next process finds them absent again, as this one committed nothing.
  Make(MakeProgram(), Options(), /*reopen=*/true);
  ASSERT_TRUE(engine->Restore().ok());
  EXPECT_EQ(Read<uint32_t>(kMomentum, 1), std::vector<uint32_t>(kElements));
  EXPECT_EQ(Read<uint32_t>(kVariance, 1), std::vector<uint32_t>(kElements));
  update();
  ASSERT_TRUE(engine->Commit({1, 0, {}}).ok());
  Make(MakeProgram(), Options(), /*reopen=*/true);
  ASSERT_TRUE(engine->Restore().ok());
  EXPECT_EQ(Tensors(), expected);
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

    options.io.faults.fail_at = kEntries / 2; // half of the chunks are written
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
  EXPECT_EQ(status.message(),
            "the program reads weights.block entry 1 chunk 0, which was never written");
}

} // namespace
} // namespace boa::engine_test
