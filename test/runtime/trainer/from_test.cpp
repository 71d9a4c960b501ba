//===- from_test.cpp - Trainings that begin with another state ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// --from takes the weights of a state by parameter, whatever its form, and changes nothing of it.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commit_name.h"
#include "runtime/state/checksum.h"
#include "runtime/state/commit_files.h"
#include "runtime/state/manifest_files.h"
#include "runtime/state/saved_commit.h"
#include "runtime/trainer/main.h"
#include "runtime/weights/base_weights.h"
#include "test/runtime/state/state_fixture.h"
#include "test/runtime/trainer/trainer_fixture.h"

#include <functional>

namespace boa {
namespace {

class FromTest : public TrainerTest {
protected:
  /// Trains for 20 steps in `name`, and keeps the commits of steps 10 and 20.
  std::string MakeOld(const std::string &name = "old") {
    const linear::Options kept = linear;
    const TrainerOptions before = options;
    options.state = scratch.path(name);
    options.metrics = "";
    linear.commit_every = 10;
    linear.commit_keep = 2;
    const absl::Status status = Run();
    EXPECT_TRUE(status.ok()) << status;
    linear = kept;
    options = before;
    return scratch.path(name);
  }

  /// The weights after two steps of a new training.
  std::string Tuned(const std::string &name, const std::string &from, const std::string &weights) {
    const linear::Options kept = linear;
    options.state = scratch.path(name);
    options.from = from;
    options.weights = weights;
    options.metrics = "";
    linear.steps = 2;
    linear.seed = 5;
    const absl::Status status = Run();
    EXPECT_TRUE(status.ok()) << status;
    linear = kept;
    return ReadWhole(options.state + "/model.safetensors");
  }

  std::string ErrorFrom(const std::string &from,
                        const std::function<void(Program &)> &change = nullptr) {
    options.state = scratch.path("new");
    options.from = from;
    absl::StatusOr<Program> program = ParseProgram(linear::Descriptor(linear));
    if (change)
      change(*program);
    return std::string(
        Train(*program, linear::kKernels, linear::Entries(linear), options, InterruptGuard())
            .message());
  }
};

// The same bits as from the file that the other training exported.
TEST_F(FromTest, TakesTheWeightsInAnyForm) {
  for (const char *old : {"f32", "bf16"})
    for (const char *now : {"f32", "bf16"}) {
      SCOPED_TRACE(std::string(old) + " to " + now);
      const std::string name = std::string(old) + now;
      linear.weight_type = old;
      linear.paths = {scratch.path(name), scratch.path(name + ".b")};
      linear.delayed = true;
      const std::string state = MakeOld(name);
      linear.weight_type = now;
      linear.paths = {};
      linear.delayed = false;
      const std::string before = Snapshot(state) + Snapshot(state + ".b");
      const std::string tuned = Tuned(name + ".from", state, "");
      EXPECT_EQ(Snapshot(state) + Snapshot(state + ".b"), before);
      EXPECT_EQ(tuned, Tuned(name + ".file", "", state + "/model.safetensors"));
    }
}

TEST_F(FromTest, TakesAnEarlierCommit) {
  const std::string state = MakeOld();
  linear.steps = 10;
  options.state = scratch.path("half");
  ASSERT_TRUE(Run().ok());
  const std::string at10 = Tuned("from10", state + "@10", "");
  EXPECT_EQ(at10, Tuned("file10", "", scratch.path("half/model.safetensors")));
  EXPECT_NE(at10, Tuned("from20", state + "@20", ""));
  EXPECT_EQ(ErrorFrom(state + "@15"), "--from " + state + "@15: " + state +
                                          " has no commit of step 15: it keeps those of 10, 20");
}

// As every command names a commit. Something that is there by the whole name is meant.
TEST_F(FromTest, NamesOfCommits) {
  const std::string state = MakeOld();
  const auto find = [&](const std::string &name) {
    absl::StatusOr<CommitName> found = FindCommit(SystemFiles(), name);
    EXPECT_TRUE(found.ok()) << found.status();
    return std::pair(found->directory, found->step.value_or(-1));
  };
  EXPECT_EQ(find(state), std::pair(state, int64_t{-1}));
  EXPECT_EQ(find(state + "@10"), std::pair(state, int64_t{10}));
  EXPECT_EQ(find(state + "/@10"), std::pair(state + "/", int64_t{10}));
  for (const char *other : {"@ten", "@-1", "@10x", "@", "@Best"})
    EXPECT_EQ(find(state + other), std::pair(state + other, int64_t{-1}));
  std::filesystem::create_directory(state + "@10");
  EXPECT_EQ(find(state + "@10"), std::pair(state + "@10", int64_t{-1}));
  EXPECT_EQ(FindCommit(SystemFiles(), state + "@best").status().message(),
            state + " has no best commit: none was evaluated. `evaluate = every(...)` in a train "
                    "block does");
  EXPECT_EQ(FindCommit(SystemFiles(), scratch.path("none@best")).status().message(),
            scratch.path("none") + " holds no training state");
}

TEST_F(FromTest, TakesTheBestCommit) {
  linear.evaluate_every = 10;
  const std::string state = MakeOld();
  const int64_t best = *FindCommit(SystemFiles(), state + "@best")->step;
  EXPECT_EQ(best, 20); // it learns
  EXPECT_EQ(Tuned("best", state + "@best", ""), Tuned("step", state + "@20", ""));
}

// Of --state itself: the commit to resume from.
TEST_F(FromTest, AStateNamesItsCommit) {
  const std::string state = MakeOld();
  TrainerOptions named;
  const auto error = [&] { return std::string(NameCommit(named).message()); };
  named.state = state + "@10";
  EXPECT_EQ(error(), "--state " + state +
                         "@10 names a commit to resume from: give it together "
                         "with --resume");
  named.resume = true;
  EXPECT_EQ(error(), "");
  EXPECT_EQ(named.state, state);
  EXPECT_EQ(named.at, 10);
  named.state = state + "@20";
  EXPECT_EQ(error(), "--at 10 and --state " + state + "@20 name two commits: give one of them");
  named.state = state + "@10";
  EXPECT_EQ(error(), "");
  // A new state may have such a name.
  named = TrainerOptions();
  named.state = scratch.path("run@5");
  EXPECT_EQ(error(), "");
  EXPECT_EQ(named.state, scratch.path("run@5"));
}

// Where there is no lock, none is made; and a state that cannot be written can be read.
TEST_F(FromTest, RecordsItsBaseAndMakesNoLock) {
  const std::string state = MakeOld();
  std::filesystem::remove(state + "/lock");
  const std::string before = Snapshot(state);
  Tuned("new", state, "");
  EXPECT_EQ(Snapshot(state), before);
  absl::StatusOr<ReadManifests> read = ReadManifest(SystemFiles(), options.state);
  absl::StatusOr<ReadManifests> old = ReadManifest(SystemFiles(), state);
  ASSERT_TRUE(read.ok() && old.ok());
  ASSERT_TRUE(read->manifest.base);
  EXPECT_EQ(read->manifest.base->state, old->manifest.state);
  EXPECT_EQ(read->manifest.base->step, 20);
  EXPECT_EQ(read->manifest.base->directory, std::filesystem::canonical(state).string());
  // It goes on by itself.
  options.from = "";
  options.resume = true;
  linear.steps = 4;
  linear.seed = 5;
  std::filesystem::remove_all(state);
  const absl::Status status = Run();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(FromTest, NamesTheParameterThatDoesNotFit) {
  const std::string state = MakeOld(), before = Snapshot(state);
  std::string error =
      ErrorFrom(state, [](Program &p) { p.groups[0].parameters[0].shape = {32, 64}; });
  EXPECT_EQ(error, "--from " + state + ": `" + state +
                       "` does not hold the weights of `linear`:\n"
                       "  embed.table: expected [32, 64] but found [64, 64]");
  error = ErrorFrom(state, [](Program &p) { p.groups[0].parameters[0].name = "rows"; });
  ExpectMessage(absl::UnknownError(error), "embed.rows: expected [64, 64] but found no such");
  ExpectMessage(absl::UnknownError(error), "embed.table: the model has no such parameter");
  EXPECT_EQ(Snapshot(state), before);
}

TEST_F(FromTest, RefusesWhatIsNoWholeStateOfItsOwn) {
  const std::string state = MakeOld();
  EXPECT_EQ(ErrorFrom(scratch.path()),
            "--from " + scratch.path() + ": " + scratch.path() + " holds no training state");
  ExpectMessage(absl::UnknownError(ErrorFrom(scratch.path("none"))), "none");
  EXPECT_FALSE(std::filesystem::exists(scratch.path("new")));
  // Every byte that is taken is compared with its checksum.
  std::string data = ReadWhole(state + "/data");
  for (char &byte : data)
    byte ^= 1;
  std::copy_n(ReadWhole(state + "/data").begin(), kStateBlock, data.begin()); // its head
  std::ofstream(state + "/data", std::ios::binary) << data;
  ExpectMessage(absl::UnknownError(ErrorFrom(state)), "checksum of weights.embed entry 0 chunk 0");
  // What failed can begin again.
  options.from = "";
  const absl::Status status = Run();
  EXPECT_TRUE(status.ok()) << status;
}

// A manifest of 275 KB: each of 4000 parameters in each of 4000 entries.
TEST_F(FromTest, RefusesMillionsOfParameters) {
  const std::string state = MakeOld();
  Manifest manifest = ReadManifest(SystemFiles(), state)->manifest;
  const std::shared_ptr<Directory> home = *SystemFiles().OpenDirectory(state);
  SavedCommit commit = manifest.commits.back();
  ASSERT_EQ(CommitLoader(SystemFiles(), *home, manifest).LoadTables(commit), absl::OkStatus());
  SavedTable &table = commit.tables.emplace_back();
  table.storage = {"weights.many", "weights", 4000, 1, kStateBlock};
  ChunkTable &chunks = *table.tables.emplace_back(std::make_shared<ChunkTable>());
  chunks.storage = table.storage.name;
  chunks.chunk_bytes = kStateBlock;
  chunks.chunks.assign(4000, {{0, kStateBlock}, 0});
  SavedModel model = *commit.model;
  for (int i = 0; i < 4000; ++i)
    model.parameters.push_back({absl::StrCat("many.p", i), 0, {1}, -1});
  model.sum = NameOfContents(FormatModel(model));
  commit.model = std::make_shared<const SavedModel>(model);
  ASSERT_EQ(WriteCommit(*home, manifest, commit), absl::OkStatus());
  manifest.commits = {commit};
  for (const char *name : {kManifest, kManifestCopy})
    std::ofstream(state + "/" + name, std::ios::binary) << FormatManifest(manifest);
  ExpectMessage(absl::UnknownError(ErrorFrom(state)), "it has more than 65");
  ExpectMessage(absl::UnknownError(ErrorFrom(state)), " parameters, and `linear` has ");
}

TEST_F(FromTest, IsGivenAlone) {
  options.resume = true;
  ExpectMessage(absl::UnknownError(ErrorFrom("old")), "--from begins a run");
  options.resume = false;
  options.weights = "file";
  ExpectMessage(absl::UnknownError(ErrorFrom("old")), "--from begins a run");
}

} // namespace
} // namespace boa
