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
      absl::StrReplaceAll(Line(ReadWhole(Manifest())), {{"\"version\":3", "\"version\":4"}}));
  for (const std::string &path : {Manifest(), Copy()}) {
    const std::string kept = ReadWhole(path);
    Put(path, other);
    const std::string before = Snapshot(Path());
    ExpectMessage(OpenStatus({Path()}), "has version 4 and this trainer knows 2 to 3");
    ExpectMessage(CreateStatus({Path()}), "has version 4");
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
           {"{\"absent\":[]", "{\"absent\":[{}]", "an entry is missing"},
           {"\"base\":null", "\"base\":{\"state\":\"\"}", "an entry is missing"},
           {"\"base\":null", "\"base\":null,\"colour\":1", "an entry is missing"},
           {"\"plan\":", "\"plan\":\"\",\"planet\":", "an entry is missing"},
           {"\"plan\":\"\"", "\"plan\":\"" + std::string(kMostPlan + 1, 'a') + "\"",
            "an entry is missing"},
           {"\"samples\":{", "\"samples\":{\"text\":-1", "an entry is missing"},
           {"\"samples\":{", "\"validation_loss\":\"1\",\"samples\":{", "an entry is missing"},
           {"\"environment\":{", "\"environment\":{\"driver\":1", "an entry is missing"},
           {"\"hash\":\"\"", "\"hash\":\"half\"", "an entry is missing"},
           {"\"tokenizer\":\"\"", "\"tokenizer\":null", "an entry is missing"},
           {"\"bytes\":4096", absl::StrCat("\"bytes\":", kMostChunkBytes + kPage),
            "an entry is missing"},
           {"\"extra\":{", R"("extra":{"\\x76ersion":"1",)", "an entry is missing"},
           {"\"shape\":[64,128]", "\"shape\":[4294967296,4294967296]", "an entry is missing"},
           {"\"parameters\":[", R"("parameters":[{"name":"block.qkv","offset":0,"shape":[1]},)",
            "an entry is missing"},
           {"\"sequence\"", "\"model\":\"\",\"sequence\"",
            "the key `model` stands twice in one object"},
           {"\"former\":[", "\"former\":[" + std::string(100, '['), "nested deeper than 64"},
           {first, "01" + first.substr(2), "an entry is missing"},
           {first, "000000000000", "an entry is missing"},
           {first, "00" + std::string(7, '0') + "fff", "is truncated"},
           {first, second, "have one place"}}) {
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

/// All that a manifest has a field for.
boa::Manifest Everything() {
  boa::Manifest manifest;
  manifest.state = "state";
  manifest.model = "model";
  manifest.home = "/ssd";
  manifest.sequence = 7;
  manifest.paths = {{"id", "/ssd"}};
  manifest.computation = {2, "block: gelu\n\xff", "c0ffee"};
  manifest.tokenizer = "bpe";
  manifest.base = {"other", 8, "c0ffee", "/base"};
  SavedCommit &commit = manifest.commits.emplace_back();
  commit.record.step = 9;
  commit.record.time = 10;
  commit.record.extra = {{"data", "\xff"}};
  commit.record.plan = "vertical\n";
  commit.record.environment = {{"driver", "1"}};
  commit.record.samples = {{"text \xff", 11}};
  commit.record.validation_loss = 0.1;
  commit.record.validated_on = "data";
  commit.absent = {{"momentum", "momentum", 3, 4, kPage}};
  return manifest;
}

TEST(ManifestFieldsTest, AllComeBack) {
  const boa::Manifest one = Everything();
  absl::StatusOr<boa::Manifest> other = ParseManifest(FormatManifest(one), "manifest");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->computation.version, 2);
  EXPECT_EQ(other->computation.text, one.computation.text);
  EXPECT_EQ(other->computation.hash, "c0ffee");
  EXPECT_EQ(other->tokenizer, "bpe");
  ASSERT_TRUE(other->base);
  EXPECT_EQ(other->base->state, "other");
  EXPECT_EQ(other->base->step, 8);
  EXPECT_EQ(other->base->hash, "c0ffee");
  EXPECT_EQ(other->base->directory, "/base");
  const CommitRecord &record = other->commits[0].record;
  EXPECT_EQ(record.extra, one.commits[0].record.extra);
  EXPECT_EQ(record.plan, "vertical\n");
  EXPECT_EQ(record.environment, one.commits[0].record.environment);
  EXPECT_EQ(record.samples, one.commits[0].record.samples);
  EXPECT_EQ(record.validation_loss, 0.1);
  EXPECT_EQ(record.validated_on, "data");
  ASSERT_EQ(other->commits[0].absent.size(), 1u);
  EXPECT_EQ(other->commits[0].absent[0].name, "momentum");
  EXPECT_EQ(FormatManifest(*other), FormatManifest(one));
}

// Fields that this trainer knows and cannot honour: it ignores none of them.
TEST_F(ManifestTest, PartsOfANewerBoaAreRefused) {
  Make({Path()});
  const boa::Manifest whole = *ParseManifest(ReadWhole(Manifest()), Manifest());
  const boa::Manifest all = Everything();
  struct Case {
    std::function<void(boa::Manifest &)> change;
    std::string message;
  };
  for (const Case &c : std::vector<Case>{
           {[&](boa::Manifest &m) { m.commits[0].absent = {{"low.block", "master", 3, 4, kPage}}; },
            "lacks the chunks of low.block, which are zero"},
           {[&](boa::Manifest &m) { m.tokenizer = "bpe"; }, "tokens of the tokenizer bpe"}}) {
    boa::Manifest newer = whole;
    c.change(newer);
    Put(Manifest(), FormatManifest(newer));
    Put(Copy(), FormatManifest(newer));
    const std::string before = Snapshot(Path());
    ExpectMessage(OpenStatus({Path()}), "was made by a newer Boa: it ");
    ExpectMessage(OpenStatus({Path()}), c.message);
    ExpectMessage(StateStore::Peek(disk, program, Path()).status(), c.message);
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
                "1600000 commits of 24 chunks need a manifest of more than 1073741824 bytes, which "
                "could not be read again: keep fewer commits");
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
