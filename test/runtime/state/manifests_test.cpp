//===- manifests_test.cpp - Two manifests, of which one is enough ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/state/state_fixture.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace boa {
namespace {

namespace fs = std::filesystem;

/// Two manifests that differ in how many commits they know: the copy is as a
/// death between the two writes leaves it.
class ManifestTest : public StateTest {
protected:
  ManifestTest() : StateTest(FastDirectory()) { disk.through_cache = true; }

  void Put(const std::string &path, const std::string &text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  /// With a checksum that fits.
  static std::string Sealed(std::string line) {
    line += "\n";
    return absl::StrFormat("%sxxh3 %016x\n", line, Checksum(line.data(), int64_t(line.size())));
  }
  static std::string Line(const std::string &text) { return text.substr(0, text.find('\n')); }
  /// Opens it at `step`, which leaves both manifests whole.
  void ExpectMended(int64_t step, const std::string &note) {
    {
      Store store = Open({Path()});
      ASSERT_TRUE(store);
      EXPECT_EQ(store->Committed().step, step);
      ExpectHolds(*store, step);
      EXPECT_TRUE(absl::StrContains(Notes(*store), note)) << Notes(*store) << "\nexpected " << note;
    }
    EXPECT_EQ(ReadWhole(Manifest()), ReadWhole(Copy()));
    Store store = Open({Path()});
    EXPECT_EQ(Notes(*store), "");
  }
};

TEST_F(ManifestTest, BothAreTheSame) {
  Make({Path()});
  EXPECT_EQ(ReadWhole(Manifest()), ReadWhole(Copy()));
  ExpectMended(1, "");
}

TEST_F(ManifestTest, OneMayBeMissing) {
  Make({Path()});
  for (const std::string &path : {Manifest(), Copy()}) {
    fs::remove(path);
    EXPECT_TRUE(Exists(Path()));
    ExpectMessage(CreateStatus({Path()}), "already");
    ExpectMended(1, path + " is missing");
  }
  fs::remove(Manifest());
  fs::remove(Copy());
  EXPECT_FALSE(Exists(Path()));
  ExpectMessage(OpenStatus({Path()}), "holds no training state");
}

TEST_F(ManifestTest, OneMayBeTruncated) {
  Make({Path()});
  for (const std::string &path : {Manifest(), Copy()})
    for (size_t part = 0; part < 40; ++part) {
      const std::string whole = ReadWhole(path);
      SCOPED_TRACE(absl::StrCat(path, " of part ", part));
      Put(path, whole.substr(0, part == 39 ? whole.size() - 1 : whole.size() * part / 39));
      ExpectMended(1, path + " is damaged");
    }
}

TEST_F(ManifestTest, OneMayBeOfZerosOrOfAnything) {
  Make({Path()});
  for (const std::string &path : {Manifest(), Copy()})
    for (const std::string &text : {std::string(5000, '\0'), std::string("{}"),
                                    std::string("thesis"), std::string("[1, 2]\n")}) {
      Put(path, text);
      ExpectMended(1, path);
    }
}

// Every byte of either: never another state, never nothing, and the other one
// always serves.
TEST_F(ManifestTest, OneMayBeRottenAnywhere) {
  Make({Path()}, {1, 2}, 2);
  for (const std::string &path : {Manifest(), Copy()}) {
    const size_t size = ReadWhole(path).size();
    for (size_t at = 0; at < size; ++at) {
      std::string rotten = ReadWhole(path);
      rotten[at] = char(rotten[at] ^ 1 << at % 8);
      Put(path, rotten);
      SCOPED_TRACE(absl::StrCat(path, " at byte ", at, ": ", rotten.substr(at, 20)));
      auto store = StateStore::Open(disk, program, {Path()}, 2);
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_EQ((*store)->Committed().step, 2);
      EXPECT_TRUE(absl::StartsWith(Notes(**store), path + " is damaged")) << Notes(**store);
      store->reset();
      ASSERT_EQ(ReadWhole(Manifest()), ReadWhole(Copy()));
    }
  }
}

TEST_F(ManifestTest, BothRottenIsToldAndNothingIsTouched) {
  Make({Path()});
  const std::string whole = ReadWhole(Manifest());
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string rotten = whole;
    rotten[at] = char(rotten[at] ^ 1 << at % 8);
    Put(Manifest(), rotten);
    Put(Copy(), rotten);
    const std::string before = Snapshot(Path());
    for (const absl::Status &status : {OpenStatus({Path()}), CreateStatus({Path()}),
                                       StateStore::Exists(disk, Path()).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << at << ": " << status;
      ExpectMessage(status, "and so is its copy");
    }
    EXPECT_EQ(Snapshot(Path()), before);
  }
  Put(Manifest(), "");
  fs::remove(Copy());
  ExpectMessage(OpenStatus({Path()}), "restore " + Path() + " from a copy");
}

// A death between the two writes of a commit.
TEST_F(ManifestTest, TheNewerOneCounts) {
  Make({Path()}, {1});
  const std::string old = ReadWhole(Copy());
  {
    Store store = Open({Path()});
    Commit(*store, 2);
  }
  Put(Copy(), old);
  ExpectMended(2, Copy() + " is older");
  // The order in which they are written is no promise.
  Put(Manifest(), old);
  ExpectMended(2, Manifest() + " is older");
}

// What a death between the two writes left is mended before an extent that only
// the older one names can be given away.
TEST_F(ManifestTest, TheOlderOneIsWholeUntilBothAreWritten) {
  for (const std::string &victim : {Manifest(), Copy()}) {
    // The second rename of a commit is that of the copy.
    int renames = 0;
    for (int64_t call = 1; renames < 2; ++call) {
      fs::remove_all(Path());
      Make({Path()}, {1});
      Store store = Open({Path()});
      Write(*store, 2);
      disk.calls.clear();
      disk.FailAt(call, FaultyFiles::kDead);
      ASSERT_FALSE(store->Commit(Record(2)).ok());
      renames = 0;
      for (const std::string &line : disk.calls)
        renames += absl::StartsWith(line, "Rename");
      store.reset();
      disk.Heal();
    }
    ASSERT_NE(ReadWhole(Manifest()), ReadWhole(Copy()));
    // Now one of them rots: what the other names is all there.
    fs::remove(victim);
    ExpectWhole({Path()}, victim == Manifest() ? 1 : 2);
  }
}

TEST_F(ManifestTest, OfTwoStates) {
  Make({Path("a")});
  Make({Path("b")}, {1, 2, 3});
  fs::copy(Copy("b"), Copy("a"), fs::copy_options::overwrite_existing);
  const std::string before = Snapshot(Path("a"));
  ExpectMessage(OpenStatus({Path("a")}), "are of two states");
  ExpectMessage(CreateStatus({Path("a")}), "are of two states");
  EXPECT_EQ(Snapshot(Path("a")), before);
}

TEST_F(ManifestTest, ForeignOnesAreLeftAlone) {
  fs::create_directory(Path());
  for (const char *text : {"{}", "[1, 2]\n", "{\"format\": \"else\"}\n", "thesis"}) {
    Put(Manifest(), text);
    const std::string before = Snapshot(Path());
    ExpectMessage(OpenStatus({Path()}), Manifest() + " is not of a training state");
    ExpectMessage(CreateStatus({Path()}), Manifest() + " is not of a training state");
    EXPECT_EQ(Snapshot(Path()), before);
  }
  Put(Manifest(), Sealed("{\"format\":\"boa-data\",\"version\":2}"));
  ExpectMessage(OpenStatus({Path()}), "is not of a training state");
}

// Another version's may say what this one does not know: it is not written over,
// even where its copy could be read.
TEST_F(ManifestTest, AnotherVersionIsRefused) {
  Make({Path()});
  const std::string other = Sealed(
      absl::StrReplaceAll(Line(ReadWhole(Manifest())), {{"\"version\":2", "\"version\":3"}}));
  for (const std::string &path : {Manifest(), Copy()}) {
    const std::string kept = ReadWhole(path);
    Put(path, other);
    const std::string before = Snapshot(Path());
    ExpectMessage(OpenStatus({Path()}), "has version 3 and this trainer knows 2");
    ExpectMessage(CreateStatus({Path()}), "has version 3");
    EXPECT_EQ(Snapshot(Path()), before);
    Put(path, kept);
  }
  ExpectWhole({Path()}, 1);
}

// Sums that fit over contents that do not.
TEST_F(ManifestTest, EntriesOutOfRangeAreRefused) {
  Make({Path()});
  const std::string line = Line(ReadWhole(Manifest()));
  const size_t place = line.find("\"places\":\"") + 10;
  const std::string first = line.substr(place, 12), second = line.substr(place + 28, 12);
  struct Case {
    std::string from, to, message;
  };
  for (const Case &c : std::vector<Case>{
           {"\"sequence\"", "\"sequents\"", "an entry is missing"},
           {"\"step\":1", "\"step\":-1", "an entry is missing"},
           {"\"entries\":3", "\"entries\":4", "an entry is missing"},
           {"\"bytes\":4096", "\"bytes\":4097", "an entry is missing"},
           {"\"name\":\"weights.block\"", "\"name\":\"momentum.block\"", "an entry is missing"},
           {first, "01" + first.substr(2), "an entry is missing"},
           {first, "000000000000", "an entry is missing"},
           {first, "00" + std::string(7, '0') + "fff", "is truncated"},
           {first, second, "stand in one place"}}) {
    std::string other = line;
    const size_t at = other.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    other.replace(at, c.from.size(), c.to);
    Put(Manifest(), Sealed(other));
    Put(Copy(), Sealed(other));
    const std::string before = Snapshot(Path());
    SCOPED_TRACE(c.from + " -> " + c.to);
    ExpectMessage(OpenStatus({Path()}), c.message);
    EXPECT_EQ(Snapshot(Path()), before);
  }
}

} // namespace
} // namespace boa
