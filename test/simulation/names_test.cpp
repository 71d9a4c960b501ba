//===- names_test.cpp - Names that a dead process left unsynced ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A process is killed at each operation while it adds a path. It may have renamed a file and not
// synced its directory. The next process finds the file and commits. Then the power fails: the
// commit must survive, so the next process must have synced that directory.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/state/state_fixture.h"
#include "test/simulation/simulated_disk.h"

namespace boa {
namespace {

/// Every chunk gets a checksum, as a write would give it.
absl::Status CommitAll(StateStore &store, int64_t step) {
  for (int32_t storage : {kWeights, kMomentum})
    for (int64_t entry = 0; entry < 3; ++entry)
      for (int32_t chunk = 0; chunk < 4; ++chunk)
        store.SetChecksum(store.Next(storage, entry, chunk), 1);
  CommitRecord record;
  record.step = step;
  return store.Commit(record);
}

TEST(NamesTest, ACommitSurvivesAPowerLossAfterAKill) {
  const Program program = MakeProgram();
  int64_t operation = 0;
  for (bool died = true; died; ++operation)
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(absl::StrCat("operation ", operation + 1, ", seed ", seed));
      SimulatedDisk disk(seed);
      auto store = StateStore::Create(disk, program, {"/a"});
      ASSERT_TRUE(store.ok()) << store.status();
      ASSERT_TRUE(CommitAll(**store, 1).ok());
      store->reset();

      disk.DieAt(operation + 1, Fault::kill);
      StateStore::Open(disk, program, {"/a", "/new/b"}).status().IgnoreError();
      died = disk.Dead();
      disk.DieAt(0, Fault::kill);
      disk.Restart();

      store = StateStore::Open(disk, program, {"/a", "/new/b"});
      ASSERT_TRUE(store.ok()) << store.status();
      ASSERT_TRUE(CommitAll(**store, 2).ok());
      disk.PowerLoss();
      store->reset();
      disk.Restart();

      store = StateStore::Open(disk, program, {"/a", "/new/b"});
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_EQ((*store)->Committed().step, 2);
    }
  EXPECT_GT(operation, 30);
}

} // namespace
} // namespace boa
