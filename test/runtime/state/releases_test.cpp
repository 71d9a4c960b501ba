//===- releases_test.cpp - States of every version that was released ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// releases/VERSION holds a state that a trainer of that version wrote, of the
// program below, with the commits of steps 1 and 2. releases/README.md says how one is
// made.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/manifest.h"
#include "test/runtime/state/state_fixture.h"

#include <cstdlib>

namespace boa {
namespace {

namespace fs = std::filesystem;

class ReleaseTest : public StateTest {
protected:
  ReleaseTest() : StateTest(FastDirectory()) {
    disk.through_cache = true;
    program.storages = {MakeStorage("weights.block", "weights", Home::ssd, true, {1}, 1, kPage),
                        MakeStorage("momentum.block", "momentum", Home::host, true, {1}, 1, kPage)};
    program.groups[0].count = 1;
    program.groups[0].parameters[0].shape = {8, 128};
    program.computation = {1, "block: qkv", "c0ffee"};
  }

  static CommitRecord FullRecord(int64_t step) {
    CommitRecord record = Record(step);
    record.extra["data"] = "a \"text\"\n\xff";
    record.plan = "vertical";
    record.environment = {{"driver", "1.2"}};
    record.samples = {{"text", 8 * step}};
    return record;
  }
  /// The state that was released with a version, to write to.
  Paths Released(int32_t version) const {
    fs::copy(absl::StrCat(BOA_RELEASES, "/", version), Path(), fs::copy_options::recursive);
    return {Path()};
  }
  int32_t VersionOnDisk() const {
    return ParseManifest(ReadWhole(Manifest()), Manifest())->version;
  }

  /// Nearly all of it is zero, so that the repository stays small.
  static std::string Page(int64_t step, int32_t storage) {
    std::string page = absl::StrCat("storage ", storage, " at step ", step);
    page.resize(size_t(kPage), '\0');
    return page;
  }
  void WritePages(StateStore &store, int64_t step) {
    for (int32_t storage : {0, 1}) {
      const std::string page = Page(step, storage);
      const Extent extent = store.Next(storage, 0, 0);
      ASSERT_GE(extent.file, 0) << store.status();
      ASSERT_EQ(pwrite(store.Files()[extent.file].fd, page.data(), page.size(), extent.offset),
                kPage);
      store.SetChecksum(extent, Checksum(page.data(), kPage));
    }
  }
  void ExpectPages(StateStore &store, int64_t step) {
    for (int32_t storage : {0, 1}) {
      const Extent extent = store.Current(storage, 0, 0);
      std::string page(size_t(kPage), '\0');
      ASSERT_EQ(pread(store.Files()[extent.file].fd, page.data(), page.size(), extent.offset),
                kPage);
      EXPECT_EQ(page, Page(step, storage));
      EXPECT_EQ(store.Checksum(extent), Checksum(page.data(), kPage));
    }
  }
};

TEST_F(ReleaseTest, DISABLED_WritesOne) {
  const char *directory = std::getenv("BOA_RELEASE");
  ASSERT_TRUE(directory);
  Store store = Create({directory}, 2);
  for (int64_t step : {1, 2}) {
    WritePages(*store, step);
    ASSERT_TRUE(store->Commit(FullRecord(step)).ok());
  }
}

TEST_F(ReleaseTest, Version2IsUpgradedAtTheFirstCommit) {
  const Paths paths = Released(2);
  {
    Store store = Open(paths, 3);
    ASSERT_TRUE(store);
    EXPECT_EQ(store->Committed().step, 2);
    EXPECT_EQ(store->Committed().extra, FullRecord(2).extra);
    EXPECT_EQ(store->Committed().samples.size(), 0u);
    EXPECT_EQ(store->SavedComputation().version, 0);
    EXPECT_TRUE(absl::StrContains(Notes(*store), "does not say what its program computes"));
    ExpectPages(*store, 2);
    // Until then the trainer that made it can go on.
    EXPECT_EQ(VersionOnDisk(), 2);
    WritePages(*store, 3);
    ASSERT_TRUE(store->Commit(FullRecord(3)).ok());
    EXPECT_EQ(VersionOnDisk(), 3);
  }
  for (int64_t step : {1, 2, 3}) {
    Store store = Open(paths, 3, step);
    ASSERT_TRUE(store);
    EXPECT_EQ(store->SavedComputation().text, "block: qkv");
    EXPECT_EQ(store->Committed().samples,
              step == 3 ? FullRecord(3).samples : decltype(FullRecord(3).samples)());
    EXPECT_EQ(absl::StrContains(Notes(*store), "computes"), step != 3);
    ExpectPages(*store, step);
  }
}

// A program of which nothing is known does not make it known.
TEST_F(ReleaseTest, Version2SaysThatItsComputationIsUnknown) {
  program.computation = {};
  Store store = Open(Released(2));
  EXPECT_TRUE(absl::StrContains(Notes(*store), "does not say what its program computes"));
}

TEST_F(ReleaseTest, Version3) {
  const Paths paths = Released(3);
  for (int64_t step : {1, 2}) {
    Store store = Open(paths, 2, step);
    ASSERT_TRUE(store);
    EXPECT_EQ(store->Committed().extra, FullRecord(step).extra);
    EXPECT_EQ(store->Committed().plan, "vertical");
    EXPECT_EQ(store->Committed().environment, FullRecord(step).environment);
    EXPECT_EQ(store->Committed().samples, FullRecord(step).samples);
    EXPECT_EQ(store->SavedComputation().version, 1);
    EXPECT_EQ(store->SavedComputation().text, "block: qkv");
    EXPECT_EQ(store->SavedComputation().hash, "c0ffee");
    ExpectPages(*store, step);
  }
}

} // namespace
} // namespace boa
