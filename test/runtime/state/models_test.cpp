//===- models_test.cpp - Which programs a state is for --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/manifest.h"
#include "test/runtime/state/state_fixture.h"

namespace boa {
namespace {

class ModelTest : public StateTest {
protected:
  ModelTest() { program.optimizer.name = "adamw"; }

  void ExpectAnother(const Program &other, const std::string &message) {
    const std::string before = ReadWhole(Manifest());
    const absl::Status status = StateStore::Open(disk, other, {Path()}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    ExpectMessage(status, "is the state of another model or optimizer: " + message);
    EXPECT_EQ(ReadWhole(Manifest()), before);
  }
};

// A program that only reads weights, to continue a text, takes a state with moments.
TEST_F(ModelTest, AProgramWithoutUpdatesNeedsNoMoments) {
  Make({Path()});
  Program other = program;
  other.optimizer = {};
  other.storages.erase(other.storages.begin() + kMomentum);
  const absl::Status status = StateStore::Open(disk, other, {Path()}).status();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ModelTest, AnotherModelSaysWhatDiffers) {
  Make({Path()});
  Program other = program;
  other.groups[0].parameters[0].shape = {64, 129};
  ExpectAnother(other, "block.qkv is [64, 129] in the program and [64, 128] in the state");
  other = program;
  other.groups[0].parameters.push_back(other.groups[0].parameters[0]);
  other.groups[0].parameters[1].name = "bias";
  ExpectAnother(other, "the state has no parameter block.bias; --changed-model begins with its "
                       "initial values");
  other = program;
  other.groups[0].parameters.clear();
  ExpectAnother(other, "the program has no parameter block.qkv");
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
// Parameters in other places
//===----------------------------------------------------------------------===//

class PlacesTest : public ModelTest {
protected:
  PlacesTest() {
    program.groups[0].states = {kMomentum};
    program.optimizer.states = {{"momentum", "bf16"}};
    program.groups[0].parameters[0].shape = {16, 128};
    Parameter bias = program.groups[0].parameters[0];
    bias.name = "bias";
    bias.offset = 32 * 128;
    program.groups[0].parameters.push_back(bias);
  }

  /// With one of its parameters frozen, each group in two chunks.
  static Program Frozen(Program of) {
    Group frozen = of.groups[0];
    for (int32_t storage : {kWeights, kMomentum}) {
      of.storages[storage].chunks = 2;
      of.storages[storage].bytes /= 2;
    }
    of.groups[0].chunks = frozen.chunks = 2;
    of.storages.push_back(of.storages[kWeights]);
    of.storages.back().name = "weights.frozen.block";
    frozen.weights = int32_t(of.storages.size()) - 1;
    frozen.states = {};
    frozen.parameters.erase(frozen.parameters.begin());
    frozen.parameters[0].offset = 0;
    of.groups[0].parameters.pop_back();
    of.groups.push_back(frozen);
    return of;
  }
  Store OpenAs(const Program &other, bool changed_model = false) {
    auto store = StateStore::Open(disk, other, {Path()}, 1, std::nullopt, {changed_model, {}, {}});
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
};

// What stands in other chunks or at another offset has no place until it is restored, and what
// the commit names stays.
TEST_F(PlacesTest, OtherPlacesAreFilledAnew) {
  Make({Path()}, {1, 2}, 2);
  Program offset = program, chunks = program;
  offset.groups[0].parameters[1].offset += 64;
  chunks.groups[0].chunks = 2;
  chunks.groups[0].chunk_elements *= 2;
  for (int32_t storage : {kWeights, kMomentum})
    chunks.storages[storage].chunks = 2;
  Program others[] = {offset, chunks};
  for (Program &other : others) {
    Store store = OpenAs(other);
    for (int32_t storage : {kWeights, kMomentum}) {
      EXPECT_FALSE(store->Stands(storage));
      EXPECT_EQ(store->Current(storage, 1, 1).file, -1);
    }
    std::swap(program, other);
    Write(*store, 5);
    std::swap(program, other);
  }
  ExpectWhole({Path()}, 2);
  // Each commit has its own places.
  {
    auto store = StateStore::Open(disk, offset, {Path()}, 3);
    ASSERT_TRUE(store.ok());
    EXPECT_EQ(Notes(**store), "");
    std::swap(program, offset);
    Commit(**store, 3);
  }
  EXPECT_FALSE(Open({Path()}, 3, 1)->Stands(kWeights));
  ExpectHolds(*Open({Path()}, 3), 3);
  std::swap(program, offset);
  EXPECT_FALSE(Open({Path()}, 3)->Stands(kWeights));
  for (int64_t step : {1, 2})
    ExpectHolds(*Open({Path()}, 3, step), step);
}

TEST_F(PlacesTest, WhatIsFrozenAndTrainedIsSaid) {
  Make({Path()});
  const Program trained = program, frozen = Frozen(program);
  {
    Store store = OpenAs(frozen);
    EXPECT_EQ(Notes(*store), "block.bias: frozen from here on, without the optimizer's state");
    EXPECT_FALSE(store->Stands(kWeights) || store->Stands(frozen.groups[1].weights));
    program = frozen;
    Commit(*store, 2);
  }
  ExpectWhole({Path()}, 2);
  {
    Store store = OpenAs(frozen);
    EXPECT_EQ(Notes(*store), "");
    EXPECT_TRUE(store->Stands(kWeights) && store->Stands(frozen.groups[1].weights));
  }
  Store store = OpenAs(trained);
  EXPECT_EQ(Notes(*store),
            "block.bias: trained from here on; the optimizer's state begins at zero; "
            "until adamw's moments fill, updates are larger than the rate says");
}

// Only with the user's word, since another computation takes it.
TEST_F(PlacesTest, ANewParameterIsSaid) {
  Make({Path()});
  Program other = program;
  other.groups[0].parameters[1].name = "gain";
  other.groups[0].parameters.insert(other.groups[0].parameters.begin(),
                                    program.groups[0].parameters[1]);
  ExpectAnother(other, "the state has no parameter block.gain; --changed-model begins with its "
                       "initial values");
  EXPECT_EQ(Notes(*OpenAs(other, /*changed_model=*/true)),
            "block.gain: new, with initial values; until adamw's moments fill, updates are larger "
            "than the rate says");
}

// A scale of an 8-bit state is that of a whole block.
TEST_F(PlacesTest, StatesInEightBitsStayWhereTheyAre) {
  program.optimizer.states[0].type = "ui8";
  Make({Path()});
  EXPECT_NE(OpenAs(program), nullptr);
  Program other = program;
  other.groups[0].parameters[1].offset += 64;
  ExpectAnother(other, "momentum in 8 bits cannot move to other places, as those of block.qkv "
                       "would; --from " +
                           Path());
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
    halves.groups[0].weight_type = "bf16";
    halves.groups[0].low = 4;
    return halves;
  }
  /// The persistent storages of the program that do not stand.
  std::vector<std::string> Names(const StateStore &store) {
    std::vector<std::string> names;
    for (size_t s = 0; s < program.storages.size(); ++s)
      if (program.storages[s].persistent && !store.Stands(int32_t(s)))
        names.push_back(program.storages[s].name);
    return names;
  }
  static absl::Status ReadOpened(const StateStore &store, const std::string &name, int64_t entry,
                                 int32_t chunk, void *data) {
    const SavedTable *table = FindTable(*store.Opened(), name);
    return table ? store.ReadOpened(*table, size_t(entry * table->storage.chunks + chunk), data)
                 : absl::NotFoundError(name);
  }
  void ExpectForeign(StateStore &store, const Program &was, int64_t version, int32_t storage) {
    static void *buffer = std::aligned_alloc(kPage, 4 * kPage);
    std::swap(program, const_cast<Program &>(was)); // Contents asks for its sizes
    for (int64_t entry = 0; entry < 3; ++entry)
      for (int32_t chunk = 0; chunk < 4; ++chunk) {
        const absl::Status status =
            ReadOpened(store, program.storages[storage].name, entry, chunk, buffer);
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
    EXPECT_EQ(Names(*store), (std::vector<std::string>{"weights.block", "low.block"}));
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
  }
  EXPECT_EQ(Names(*Open({Path()})), std::vector<std::string>{});
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
    EXPECT_EQ(Names(*store), std::vector<std::string>{"weights.block"});
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
  EXPECT_EQ(Names(*store), (std::vector<std::string>{"weights.block", "low.block"}));
}

TEST_F(FormTest, ForeignBytesAreChecked) {
  Make({Path()});
  program = Halves();
  Store store = Open({Path()});
  static void *buffer = std::aligned_alloc(kPage, 4 * kPage);
  store.reset();
  // The chunks of an entry stand one behind another, the first of all first.
  std::string data = ReadWhole(Path() + "/data");
  data[size_t(kPage + 3 * 2 * kPage + 77)] ^= 1;
  std::ofstream(Path() + "/data", std::ios::binary) << data;
  store = Open({Path()});
  const absl::Status status = ReadOpened(*store, "weights.block", 0, 3, buffer);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  ExpectMessage(status, "checksum of weights.block entry 0 chunk 3 in " + Path() + "/data");
  EXPECT_EQ(ReadOpened(*store, "weights.block", 0, 2, buffer), absl::OkStatus());
}

// Forms that are not of the same masters.
TEST_F(FormTest, WeightsThatLackAHalfAreRefused) {
  // Without halves, weights of two bytes look like fewer of four.
  Program halves = Halves();
  program = halves;
  program.storages.pop_back();
  program.groups[0].low = -1;
  Make({Path()});
  ExpectAnother(halves, "block.qkv is beyond the chunks of its weights");
  ExpectAnother(MakeProgram(), "block.qkv is beyond the chunks of its weights");
  // Halves of another group.
  program = halves;
  program.storages[4].name = "low.else";
  std::filesystem::remove_all(Path());
  Make({Path()});
  ExpectAnother(MakeProgram(), "it lacks the lower halves of weights.block");
  halves.storages[kWeights].name = "weights.blocks";
  ExpectAnother(halves, "it lacks the lower halves of weights.block");
}

} // namespace
} // namespace boa
