//===- manifests_test.cpp - Two manifests, of which one is enough ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/sealed.h"
#include "runtime/state/manifest.h"
#include "runtime/state/manifest_files.h"
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
        renames += absl::StartsWith(line, "Rename " + Path() + "/manifest");
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

// Another version's may say what this one does not know, or less: it is not written over, even
// where its copy could be read.
TEST_F(ManifestTest, AnotherVersionIsRefused) {
  Make({Path()});
  for (const char *version : {"2", "3", "5", "null"})
    for (const std::string &path : {Manifest(), Copy()}) {
      const std::string kept = ReadWhole(path);
      Put(path, Sealed(absl::StrReplaceAll(
                    Line(kept), {{"\"version\":4", absl::StrCat("\"version\":", version)}})));
      const std::string before = Snapshot(Path());
      ExpectMessage(OpenStatus({Path()}),
                    absl::StrCat(path, " has version ", version,
                                 " and this trainer knows 4: use the trainer that made it"));
      ExpectMessage(CreateStatus({Path()}), absl::StrCat("has version ", version));
      EXPECT_EQ(Snapshot(Path()), before);
      Put(path, kept);
    }
  ExpectWhole({Path()}, 1);
}

// Sums that fit over contents that do not.
TEST_F(ManifestTest, EntriesOutOfRangeAreRefused) {
  Make({Path()});
  const std::string line = Line(ReadWhole(Manifest()));
  struct Case {
    std::string from, to, message;
  };
  for (const Case &c : std::vector<Case>{
           {"\"sequence\"", "\"sequents\"", "an entry is missing"},
           {"\"step\":1", "\"step\":-1", "an entry is missing"},
           {"\"sum\":\"", "\"sum\":\"0", "an entry is missing"},
           {"\"base\":null", "\"base\":{\"state\":\"\"}", "an entry is missing"},
           {"\"base\":null", "\"base\":null,\"colour\":1", "an entry is missing"},
           {"\"tokenizer\":\"\"", "\"tokenizer\":null", "an entry is missing"},
           {"\"host\":\"", "\"ghost\":\"", "an entry is missing"},
           {"\"id\":\"", "\"id\":\"\",\"of\":\"", "an entry is missing"},
           {"\"sequence\"", "\"model\":\"\",\"sequence\"",
            "the key `model` stands twice in one object"},
           {"\"commits\":[", "\"commits\":[" + std::string(100, '['), "nested deeper than 64"}}) {
    std::string other = line;
    const size_t at = other.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    other.replace(at, c.from.size(), c.to);
    Put(Manifest(), Sealed(other));
    Put(Copy(), Sealed(other));
    const std::string before = Snapshot(Path());
    SCOPED_TRACE(c.from + " -> " + c.to.substr(0, 80));
    ExpectMessage(OpenStatus({Path()}), c.message);
    EXPECT_EQ(Snapshot(Path()), before);
  }
}

TEST(ManifestFieldsTest, AllComeBack) {
  boa::Manifest one;
  one.state = "state";
  one.model = "model";
  one.home = "/ssd";
  one.sequence = 7;
  one.paths = {{"id", "machine\xff", "/ssd"}};
  one.tokenizer = "bpe";
  one.base = {"other", 8, "c0ffee", "/base"};
  one.commits.resize(1);
  one.commits[0].record.step = 9;
  one.commits[0].sum = std::string(32, 'a');
  absl::StatusOr<boa::Manifest> other = ParseManifest(FormatManifest(one), "manifest");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->paths[0].host, "machine\xff");
  EXPECT_EQ(other->tokenizer, "bpe");
  ASSERT_TRUE(other->base);
  EXPECT_EQ(other->base->state, "other");
  EXPECT_EQ(other->base->step, 8);
  EXPECT_EQ(other->base->hash, "c0ffee");
  EXPECT_EQ(other->base->directory, "/base");
  EXPECT_EQ(other->commits[0].record.step, 9);
  EXPECT_EQ(FormatManifest(*other), FormatManifest(one));
}

// A field that this trainer knows and cannot honour.
TEST_F(ManifestTest, ATokenizerOfANewerBoaIsRefused) {
  Make({Path()});
  boa::Manifest newer = *ParseManifest(ReadWhole(Manifest()), Manifest());
  newer.tokenizer = "bpe";
  Put(Manifest(), FormatManifest(newer));
  Put(Copy(), FormatManifest(newer));
  const std::string before = Snapshot(Path());
  ExpectMessage(OpenStatus({Path()}),
                "was made by a newer Boa: it has tokens of the tokenizer bpe");
  ExpectMessage(StateStore::Peek(disk, program, Path()).status(), "tokens of the tokenizer bpe");
  EXPECT_EQ(Snapshot(Path()), before);
}

// It may be the newer one: to go on from the other would lose a commit.
TEST_F(ManifestTest, OneThatTheDiskCannotReadEndsTheOpening) {
  Make({Path()});
  for (const std::string &path : {Manifest(), Copy()})
    for (const char *call : {"Open ", "Size ", "Read "}) {
      const std::string before = Snapshot(Path());
      disk.calls.clear();
      disk.fail_at_line = call + path;
      ExpectMessage(OpenStatus({Path()}), "made to fail: " + (call + path));
      disk.fail_at_line = "";
      EXPECT_EQ(Snapshot(Path()), before);
    }
}

// No limit of the reader is forgotten: it reads what is to be written.
TEST_F(ManifestTest, AManifestThatCannotBeReadAgainIsNotWritten) {
  OpenOptions options;
  options.base = BaseState{"other", 8, "c0ffee", "/" + std::string(kMostText, 'a')};
  ExpectMessage(StateStore::Create(disk, program, {Path()}, 1, options).status(),
                "its manifest could not be read again: ");
  EXPECT_FALSE(fs::exists(Path()));
  // Of a state that is there, the files stay.
  Make({Path()});
  boa::Manifest manifest = *ParseManifest(ReadWhole(Manifest()), Manifest());
  const std::string before = Snapshot(Path());
  manifest.model = std::string(kMostText + 1, 'a');
  ExpectMessage(ManifestWriter().Write(**disk.OpenDirectory(Path()), manifest),
                "its manifest could not be read again: ");
  EXPECT_EQ(Snapshot(Path()), before);
}

// Before the first byte, not after the days that so many commits take.
TEST_F(ManifestTest, MoreCommitsThanAManifestHoldsAreRefused) {
  disk.free_bytes = int64_t(1) << 60;
  ExpectMessage(StateStore::Create(disk, program, {Path()}, /*keep=*/1600000).status(),
                "a state can keep at most 1048576 commits, not 1600000: keep fewer commits");
  EXPECT_FALSE(fs::exists(Path()));
}

TEST_F(ManifestTest, AProgramOfChunksThatNoManifestHoldsIsRefused) {
  program.storages[kMomentum].bytes = 4 * (kMostChunkBytes + kPage);
  ExpectMessage(CreateStatus({Path()}),
                "storage `momentum.block` has chunks of 8392704 bytes: a state can hold 8388608");
}

// It would not be read again.
TEST_F(ManifestTest, ACommitThatAManifestCannotHoldIsRefused) {
  Make({Path()});
  Store store = Open({Path()});
  Write(*store, 2);
  CommitRecord record = Record(2);
  record.environment["driver"] = std::string(kMostText + 1, 'a');
  const std::string before = ReadWhole(Manifest());
  ExpectMessage(store->Commit(record), "a manifest can hold");
  EXPECT_EQ(ReadWhole(Manifest()), before);
  ASSERT_TRUE(store->Commit(Record(2)).ok());
}

} // namespace
} // namespace boa
