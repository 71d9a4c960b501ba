//===- models_test.cpp - Which programs a state is for --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/state/state_fixture.h"

namespace boa {
namespace {

class ModelTest : public StateTest {
protected:
  void ExpectAnother(const Program &other, const std::string &message) {
    const std::string before = ReadWhole(Manifest());
    const absl::Status status = StateStore::Open(disk, other, {Path()}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    ExpectMessage(status, "is the state of another model or optimizer: " + message);
    EXPECT_EQ(ReadWhole(Manifest()), before);
  }
};

TEST_F(ModelTest, AnotherModelSaysWhatDiffers) {
  Make({Path()});
  Program other = program;
  other.groups[0].parameters[0].shape = {64, 129};
  ExpectAnother(other, "block.qkv is [64, 129] in the program and [64, 128] in the state");
  other = program;
  other.groups[0].parameters[0].offset = 7;
  ExpectAnother(other, "block.qkv stands at 7 in the program and at 0 in the state; --from " +
                           Path() + " begins a new training with its weights");
  other = program;
  other.groups[0].parameters.push_back(other.groups[0].parameters[0]);
  other.groups[0].parameters[1].name = "bias";
  ExpectAnother(other, "the state has no parameter block.bias");
  other = program;
  other.groups[0].parameters.clear();
  ExpectAnother(other, "the program has no parameter block.qkv");
  other = program;
  other.storages[kWeights].name = "weights.frozen.block";
  ExpectAnother(other, "block.qkv is frozen in the program and trained in the state; --from " +
                           Path() + " begins a new training with its weights");
  other = program;
  other.storages[kWeights].entries = {4};
  ExpectAnother(other, "weights.block has 4 entries of 4 chunks of 8192 bytes in the program and "
                       "3 entries of 4 chunks of 8192 bytes in the state");
  other = program;
  other.storages[kMomentum].chunks = 2;
  ExpectAnother(other, "momentum.block has 3 entries of 2 chunks of 8192 bytes");
}

TEST_F(ModelTest, AnotherOptimizerSaysWhatDiffers) {
  Make({Path()});
  Program other = program;
  other.storages.push_back(
      MakeStorage("variance.block", "variance", Home::ssd, true, {3}, 4, kPage));
  ExpectAnother(other, "variance.block has 3 entries of 4 chunks of 4096 bytes in the program and "
                       "nothing in the state");
  other = program;
  other.storages.erase(other.storages.begin() + kMomentum);
  ExpectAnother(other, "the program has no storage momentum.block; --from " + Path() +
                           " begins a new training with its weights");
}

// Another computation of the same parameters: refused before anything is changed, also where a
// manifest waits to be mended. Where the parameters differ too, its words come first, since they
// are the cause.
TEST_F(ModelTest, AnotherComputationIsRefusedBeforeTheStateChanges) {
  program.computation = {1, "stage block\n  %1 = gelu input\n", "1"};
  Make({Path()});
  Program other = program;
  other.computation = {1, "stage block\n  %1 = silu input\n", "2"};
  const std::string differs =
      absl::StrCat("`", Path(), "` belongs to another computation:\n  block: gelu became silu\n");
  auto expect_refused = [&](const std::string &message) {
    const std::string before = Snapshot(Path());
    ExpectMessage(StateStore::Open(disk, other, {Path()}).status(), message);
    EXPECT_EQ(Snapshot(Path()), before);
  };
  expect_refused(differs + "--changed-model goes on with its weights");
  ExpectMessage(StateStore::Peek(disk, other, Path()).status(), differs);
  EXPECT_TRUE(StateStore::Peek(disk, other, Path(), /*changed_model=*/true).ok());
  std::ofstream(Copy()) << "rot";
  expect_refused(differs + "--changed-model goes on with its weights");
  std::swap(program, other);
  {
    auto store = StateStore::Open(disk, program, {Path()}, 1, std::nullopt, {true, {}});
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->ComputationChange(),
              "the computation changes, as --changed-model allows:\n  block: gelu became silu");
  }
  other = program;
  other.computation.text = "stage block repeat 4\n  %1 = gelu input\n";
  other.storages[kWeights].entries = {4};
  expect_refused(absl::StrCat("`", Path(),
                              "` belongs to another computation:\n"
                              "  block: repeat was 1 and is 4\n--changed-model does not help: ",
                              Path(), " is the state of another model or optimizer: "));
}

// Texts of two forms cannot be compared: parameters are, and the run says so.
TEST_F(ModelTest, AnotherFormOfTheTextIsAnnounced) {
  program.computation = {1, "stage block\n  %1 = gelu input\n", "1"};
  Make({Path()});
  program.computation.version = 2;
  Store store = Open({Path()});
  EXPECT_EQ(store->ComputationChange(),
            absl::StrCat("warning: the computation of `", Path(),
                         "` is of version 1 and the program's of version 2: only parameters and "
                         "storages were compared"));
  Program other = program;
  other.groups[0].parameters[0].shape = {64, 129};
  store.reset();
  ExpectAnother(other, "block.qkv is [64, 129] in the program");
}

// A commit that was kept belongs to the computation that made it, whatever came after it.
TEST_F(ModelTest, KeptCommitsKeepTheirComputation) {
  const Computation gelu = {1, "stage block\n  %1 = gelu input\n", "1"};
  const Computation silu = {1, "stage block\n  %1 = silu input\n", "2"};
  auto open = [&](const Computation &computation, std::optional<int64_t> at, bool changed = false) {
    program.computation = computation;
    return StateStore::Open(disk, program, {Path()}, 3, at, {changed, {}});
  };
  program.computation = gelu;
  Make({Path()}, {1}, 3);
  {
    auto store = open(silu, std::nullopt, /*changed=*/true);
    ASSERT_TRUE(store.ok()) << store.status();
    Write(**store, 2);
    Commit(**store, 2);
  }
  ExpectMessage(open(silu, 1).status(), "block: gelu became silu");
  ExpectMessage(open(gelu, std::nullopt).status(), "block: silu became gelu");
  {
    auto store = open(gelu, 1);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->ComputationChange(), "");
    Write(**store, 3);
    Commit(**store, 3);
  }
  ExpectMessage(open(silu, 1).status(), "block: gelu became silu");
  EXPECT_TRUE(open(gelu, 1).ok());
}

// Order, placement, scratch and the storages' order are the schedule's.
TEST_F(ModelTest, TheScheduleMayChange) {
  Make({Path()}, {1});
  program.storages[kMomentum].homes[0].homes[0].tier = Home::ssd;
  program.storages[kCheckpoints].entries = {5};
  program.storages[kCheckpoints].bytes = 3 * kPage;
  program.plan.delay = 0.5;
  program.model.name = "renamed";
  ExpectWhole({Path()}, 1);
  program.storages[kWeights].homes[0].homes[0].tier = Home::device;
  program.storages[kCheckpoints].homes[0].homes[0].tier = Home::host;
  program.storages[kWeights].entries = {3, 1};
  Store store = Open({Path()});
  ExpectHolds(*store, 1);
  Commit(*store, 2);
  store.reset();
  const uint64_t sum = Checksum(Contents(2, kWeights, 0, 0), Bytes(kWeights));
  std::swap(program.storages[kWeights], program.storages[kMomentum]);
  store = Open({Path()});
  EXPECT_EQ(store->Checksum(store->Current(kMomentum, 0, 0)), sum);
}

//===----------------------------------------------------------------------===//
// Weights in one storage, or in two halves
//===----------------------------------------------------------------------===//

class FormTest : public ModelTest {
protected:
  static Program Halves() {
    Program halves = MakeProgram();
    halves.storages[kWeights].bytes /= 2;
    halves.storages.push_back(MakeStorage("low.block", "master", Home::ssd, true, {3}, 4, kPage));
    return halves;
  }
  std::vector<std::string> Names(const StateStore &store) {
    std::vector<std::string> names;
    for (const SavedStorage &storage : store.Foreign())
      names.push_back(absl::StrCat(storage.name, " ", storage.role, " ", storage.entries, " ",
                                   storage.chunks, " ", storage.chunk_bytes));
    return names;
  }
  void ExpectForeign(StateStore &store, const Program &was, int64_t version, int32_t storage) {
    static void *buffer = std::aligned_alloc(kPage, 4 * kPage);
    std::swap(program, const_cast<Program &>(was)); // Contents asks for its sizes
    for (int64_t entry = 0; entry < 3; ++entry)
      for (int32_t chunk = 0; chunk < 4; ++chunk) {
        const absl::Status status =
            store.ReadForeign(program.storages[storage].name, entry, chunk, buffer);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(std::memcmp(buffer, Contents(version, storage, entry, chunk), Bytes(storage)), 0);
      }
    std::swap(program, const_cast<Program &>(was));
  }
};

TEST_F(FormTest, HalvesOfWhatWasOne) {
  Make({Path()});
  Program was = program;
  program = Halves();
  {
    Store store = Open({Path()});
    ASSERT_TRUE(store);
    EXPECT_EQ(Names(*store), std::vector<std::string>{"weights.block weights 3 4 8192"});
    EXPECT_EQ(store->Current(kWeights, 0, 0).file, -1);
    EXPECT_EQ(store->Current(4, 0, 0).file, -1);
    EXPECT_EQ(store->Current(kMomentum, 0, 0).file, 0);
    ExpectForeign(*store, was, 1, kWeights);
    // What was there stays until the next commit, whatever is written.
    Write(*store, 2);
    ExpectForeign(*store, was, 1, kWeights);
  }
  {
    Store store = Open({Path()});
    ExpectForeign(*store, was, 1, kWeights);
    Commit(*store, 2);
    EXPECT_EQ(Names(*store), std::vector<std::string>{});
  }
  ExpectWhole({Path()}, 2);
}

TEST_F(FormTest, OneOfWhatWasHalves) {
  program = Halves();
  Make({Path()}, {1, 2}, 2);
  Program was = program;
  program = MakeProgram();
  {
    Store store = Open({Path()}, 2);
    ASSERT_TRUE(store);
    EXPECT_EQ(Names(*store), (std::vector<std::string>{"weights.block weights 3 4 4096",
                                                       "low.block master 3 4 4096"}));
    ExpectForeign(*store, was, 2, kWeights);
    ExpectForeign(*store, was, 2, 4);
    Commit(*store, 3);
  }
  ExpectWhole({Path()}, 3);
  // Both forms are kept side by side.
  Store store = Open({Path()}, 2, 3);
  Commit(*store, 4);
  store.reset();
  program = was;
  store = Open({Path()}, 2, 3);
  EXPECT_EQ(Names(*store), std::vector<std::string>{"weights.block weights 3 4 8192"});
}

TEST_F(FormTest, ForeignBytesAreChecked) {
  Make({Path()});
  program = Halves();
  Store store = Open({Path()});
  static void *buffer = std::aligned_alloc(kPage, 4 * kPage);
  for (auto [entry, chunk] : {std::pair{3, 0}, {0, 4}, {-1, 0}, {0, -1}})
    ExpectMessage(store->ReadForeign("weights.block", entry, chunk, buffer), "has no chunk");
  ExpectMessage(store->ReadForeign("else", 0, 0, buffer), "of else");
  store.reset();
  // The chunks of an entry stand one behind another, the first of all first.
  std::string data = ReadWhole(Path() + "/data");
  data[size_t(kPage + 3 * 2 * kPage + 77)] ^= 1;
  std::ofstream(Path() + "/data", std::ios::binary) << data;
  store = Open({Path()});
  const absl::Status status = store->ReadForeign("weights.block", 0, 3, buffer);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  ExpectMessage(status, "checksum of weights.block entry 0 chunk 3 in " + Path() + "/data");
  EXPECT_EQ(store->ReadForeign("weights.block", 0, 2, buffer), absl::OkStatus());
}

// Forms that are not of the same masters.
TEST_F(FormTest, WeightsThatLackAHalfAreRefused) {
  Make({Path()});
  Program other = MakeProgram();
  other.storages[kWeights].bytes /= 2;
  ExpectAnother(other, "its weights take 98304 bytes in the state and 49152 in the program");
  other = MakeProgram();
  other.storages.push_back(MakeStorage("low.block", "master", Home::ssd, true, {3}, 4, kPage));
  ExpectAnother(other, "its weights take 98304 bytes in the state and 147456 in the program");
  other = Halves();
  other.storages[kWeights].name = "weights.blocks";
  ExpectAnother(other, "weights.blocks has");
}

} // namespace
} // namespace boa
