//===- resume_test.cpp - A run that goes on as something else -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state belongs to a model and its optimizer. All else may change between two
// runs: what belongs to the schedule changes no bit, what changes the training
// does so from that step on, the same wherever the model lives, and is said.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/checksum.h"
#include "runtime/trainer/loss_settings.h"
#include "runtime/trainer/trainer.h"
#include "test/runtime/scratch.h"
#include "test/runtime/trainer/linear.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "gtest/gtest.h"

#include <functional>

namespace boa {
namespace {

using nlohmann::json;

/// A training in a state of its own, in as many runs as it takes.
class Training {
public:
  Training(const Scratch &scratch, const std::string &name) : scratch(scratch), name(name) {
    linear.data = scratch.path("text");
    options.state = Directory("home");
    options.metrics = scratch.path(name + ".metrics");
    options.save = scratch.path(name + ".safetensors");
  }

  std::string Directory(const std::string &path) const { return scratch.path(name + "." + path); }
  /// The machine's paths: the home and these.
  void SetPaths(const std::vector<std::string> &others) {
    linear.paths = {"home"};
    for (const std::string &other : others)
      linear.paths.push_back(Directory(other));
  }

  absl::Status Run(int64_t steps) {
    const std::string output = scratch.path("output");
    options.out = std::fopen(output.c_str(), "w");
    options.resume = began;
    linear.steps = steps;
    absl::StatusOr<Program> program = ParseProgram(linear::Descriptor(linear));
    absl::Status status = program.ok() ? Train(*program, linear::kKernels, linear::Entries(linear),
                                               options, InterruptGuard())
                                       : program.status();
    std::fclose(options.out);
    said = ReadWhole(output);
    began |= status.ok();
    return status;
  }
  /// To this step, or the test fails.
  void To(int64_t steps) {
    absl::Status status = Run(steps);
    EXPECT_TRUE(status.ok()) << name << " to step " << steps << ": " << status;
  }

  /// By step.
  std::vector<double> Losses() const { return Read("loss"); }
  /// Of the last step.
  double ValidationLoss() const { return Read("validation_loss").back(); }
  std::vector<double> Read(const char *what) const {
    std::vector<double> losses;
    std::ifstream file(options.metrics);
    int64_t step = 0;
    for (std::string line; std::getline(file, line);) {
      const json record = json::parse(line, nullptr, /*allow_exceptions=*/false);
      EXPECT_TRUE(record.is_object()) << line;
      EXPECT_EQ(record["step"].get<int64_t>(), ++step);
      if (record.contains(what))
        losses.push_back(record[what].get<double>());
    }
    return losses;
  }
  /// A sum of those that were saved.
  uint64_t Weights() const {
    const std::string saved = ReadWhole(options.save);
    EXPECT_GT(saved.size(), 16384u);
    return Checksum(saved.data(), int64_t(saved.size()));
  }
  /// How many manifests have been written.
  int64_t Manifests() const {
    std::ifstream file(options.state + "/manifest.json");
    std::string line;
    std::getline(file, line);
    return json::parse(line, nullptr, false)["sequence"].get<int64_t>();
  }

  linear::Options linear;
  TrainerOptions options;
  std::string said;
  bool began = false;

private:
  const Scratch &scratch;
  const std::string name;
};

class ResumeTest : public testing::Test {
protected:
  ResumeTest() : scratch(FastDirectory()) { scratch.Write("text", linear::Text(20000)); }
  Scratch scratch;
};

/// What belongs to the schedule.
struct Schedule {
  const char *tier;
  bool delayed;
  std::vector<std::string> paths;
  void Set(Training &training) const {
    training.linear.tier = tier;
    training.linear.delayed = delayed;
    training.SetPaths(paths);
  }
};

std::vector<Schedule> Schedules() {
  std::vector<Schedule> schedules;
  for (const char *tier : {"ssd", "device"})
    for (bool delayed : {false, true})
      for (const std::vector<std::string> &paths :
           {std::vector<std::string>{}, {"b"}, {"b", "c"}, {"c", "b"}})
        schedules.push_back({tier, delayed, paths});
  return schedules;
}

/// A closed way that takes each edge between `count` nodes once, in each direction.
std::vector<size_t> AllChanges(size_t count) {
  std::vector<std::vector<bool>> taken(count, std::vector<bool>(count));
  std::vector<size_t> stack = {0}, way;
  while (!stack.empty()) {
    const size_t from = stack.back();
    size_t to = 0;
    while (to < count && (to == from || taken[from][to]))
      ++to;
    if (to < count) {
      taken[from][to] = true;
      stack.push_back(to);
    } else {
      way.push_back(from);
      stack.pop_back();
    }
  }
  return way;
}

// One training, resumed after every step or two, goes from each schedule to each
// other one. It is the run that was never touched, to the bit.
TEST_F(ResumeTest, EveryChangeOfScheduleChangesNoBit) {
  const std::vector<Schedule> schedules = Schedules();
  const std::vector<size_t> way = AllChanges(schedules.size());
  ASSERT_EQ(way.size(), schedules.size() * (schedules.size() - 1) + 1);
  for (double clip : {0.0, 0.05}) {
    Training changed(scratch, absl::StrCat("changed", clip));
    Training plain(scratch, absl::StrCat("plain", clip));
    changed.linear.clip = plain.linear.clip = clip;
    changed.linear.evaluate_every = plain.linear.evaluate_every = 9;
    plain.linear.tier = "device";
    int64_t step = 0;
    // With clipping a part is enough: every kind of change comes early.
    const size_t count = clip > 0 ? way.size() / 4 : way.size();
    for (size_t i = 0; i < count && !HasFailure(); ++i) {
      schedules[way[i]].Set(changed);
      changed.linear.commit_keep = 1 + int64_t(i % 3);
      changed.linear.commit_every = int64_t(i % 4);
      step += 1 + int64_t(i % 2);
      // Said is nothing: nothing of the training has changed.
      changed.To(step);
      EXPECT_FALSE(absl::StrContains(changed.said, "another training")) << changed.said;
    }
    plain.To(step);
    EXPECT_EQ(changed.Losses(), plain.Losses());
    EXPECT_EQ(changed.ValidationLoss(), plain.ValidationLoss());
    EXPECT_EQ(changed.Weights(), plain.Weights());
  }
}

// The paths of a training, one after another taken into use and away again.
TEST_F(ResumeTest, PathsComeAndGo) {
  Training plain(scratch, "plain"), changed(scratch, "changed");
  plain.linear.tier = "device";
  const std::vector<std::vector<std::string>> paths = {{}, {"b"}, {"b", "c"}, {}, {"b"}};
  int64_t step = 0;
  for (const std::vector<std::string> &others : paths) {
    changed.SetPaths(others);
    // The first run after a path was taken away empties it; then it is not needed.
    changed.To(step += 4);
    changed.To(step += 1);
    for (const char *other : {"b", "c"})
      if (step > 15 && std::count(others.begin(), others.end(), other) == 0)
        std::filesystem::remove_all(changed.Directory(other));
  }
  plain.To(step);
  EXPECT_EQ(changed.Losses(), plain.Losses());
  EXPECT_EQ(changed.Weights(), plain.Weights());
}

// Weights in one storage or in two halves are the same weights.
TEST_F(ResumeTest, TheFormOfTheWeightsLosesNothing) {
  for (const char *tier : {"ssd", "device"}) {
    Training plain(scratch, absl::StrCat("plain.", tier));
    Training changed(scratch, absl::StrCat("changed.", tier));
    plain.linear.tier = changed.linear.tier = tier;
    changed.SetPaths({"b"});
    plain.To(10);
    changed.To(10);
    for (int i = 0; i < 3; ++i)
      for (const char *type : {"bf16", "f32"}) {
        changed.linear.weight_type = type;
        changed.linear.commit_keep = 1 + i;
        // Not a step: the weights are missing, and all is committed in the new form.
        std::filesystem::remove(changed.options.save);
        changed.To(10);
        EXPECT_EQ(changed.Weights(), plain.Weights());
        EXPECT_TRUE(absl::StrContains(changed.said, absl::StrCat("`weights` was ",
                                                                 type[0] == 'b' ? "f32" : "bf16",
                                                                 " and is ", type, " now")))
            << changed.said;
      }
    plain.To(20);
    changed.To(20);
    EXPECT_EQ(changed.Losses(), plain.Losses());
    EXPECT_EQ(changed.Weights(), plain.Weights());
  }
}

// The parameters are the same in other chunks, in memory and on SSD. Earlier commits stay.
TEST_F(ResumeTest, ChunksMayBeOthers) {
  for (const char *type : {"f32", "bf16"}) {
    Training plain(scratch, absl::StrCat("plain.", type));
    plain.linear.tier = "device";
    plain.linear.weight_type = type;
    plain.To(24);
    Training changed(scratch, absl::StrCat("changed.", type));
    changed.linear.weight_type = type;
    changed.linear.commit_keep = 3;
    changed.SetPaths({"b"});
    const std::vector<Schedule> schedules = {
        {"ssd", false, {"b"}}, {"ssd", true, {}}, {"device", false, {"b", "c"}}};
    int64_t step = 0;
    for (int64_t elements : {2048, 4096, 6144, 2048, 6144, 4096, 2048, 4096}) {
      schedules[size_t(step / 3) % schedules.size()].Set(changed);
      changed.linear.chunk_elements = elements;
      changed.To(step += 3);
      EXPECT_FALSE(absl::StrContains(changed.said, "another training")) << changed.said;
    }
    EXPECT_EQ(changed.Losses(), plain.Losses());
    EXPECT_EQ(changed.Weights(), plain.Weights());
    changed.options.at = 21;
    changed.To(24);
    EXPECT_EQ(changed.Losses(), plain.Losses());
    EXPECT_EQ(changed.Weights(), plain.Weights());
  }
}

/// What changes the training, at some step.
struct Change {
  const char *what, *note;
  std::function<void(Training &)> make;
};

// From the step of the change on it is the run that had the new setting from that
// step on, wherever the model lives; and it is said.
TEST_F(ResumeTest, AChangeOfTheTrainingIsSaidAndDoesTheSameEverywhere) {
  const std::string other = scratch.Write("other", linear::Text(20001));
  const std::vector<Change> changes = {
      {"seed", "`seed` was 1 and is 2 now", [](Training &t) { t.linear.seed = 2; }},
      {"data", "`data` was text with fingerprint ", [&](Training &t) { t.linear.data = other; }},
      {"type", "`weights` was f32 and is bf16 now",
       [](Training &t) { t.linear.weight_type = "bf16"; }},
      {"clip", "`clip` was 0 and is 0.05", [](Training &t) { t.linear.clip = 0.05; }},
  };
  Training never(scratch, "never");
  never.linear.tier = "device";
  never.To(24);
  for (const Change &change : changes) {
    SCOPED_TRACE(change.what);
    Training plain(scratch, absl::StrCat("plain.", change.what));
    plain.linear.tier = "device";
    plain.To(8);
    change.make(plain);
    plain.To(24);
    EXPECT_NE(plain.Losses(), never.Losses());
    for (bool delayed : {false, true}) {
      Training changed(scratch, absl::StrCat("changed.", change.what, delayed));
      changed.linear.delayed = delayed;
      changed.SetPaths({"b"});
      changed.To(8);
      change.make(changed);
      changed.SetPaths({"b", "c"});
      changed.linear.delayed = !delayed;
      changed.To(13);
      EXPECT_TRUE(absl::StrContains(changed.said, "this is another training")) << changed.said;
      EXPECT_TRUE(absl::StrContains(changed.said, change.note)) << changed.said;
      changed.SetPaths({});
      changed.linear.tier = "device";
      changed.To(24);
      // Only once: the commit is of the new training.
      EXPECT_FALSE(absl::StrContains(changed.said, "another training")) << changed.said;
      EXPECT_EQ(changed.Losses(), plain.Losses());
      EXPECT_EQ(changed.Weights(), plain.Weights());
    }
  }
}

// In any parts, from any commit, the samples of each source go on.
TEST_F(ResumeTest, AMixGoesOnWhereItStopped) {
  const std::string more = scratch.Write("more", linear::Text(9000).substr(1000));
  auto call = [&](const std::string &file) {
    return absl::StrCat("tokens(\"", scratch.path(file), "\", uint8)");
  };
  const std::string mix = absl::StrCat("mix(0.7 ", call("text"), ", 0.3 ", call("more*"), ")");
  Training plain(scratch, "plain"), parts(scratch, "parts");
  plain.linear.data = parts.linear.data = mix;
  plain.To(24);
  parts.linear.commit_every = 3;
  parts.linear.commit_keep = 3;
  parts.To(5);
  parts.To(11);
  parts.options.at = 9;
  parts.To(24);
  EXPECT_FALSE(absl::StrContains(parts.said, "another training")) << parts.said;
  EXPECT_EQ(parts.Losses(), plain.Losses());
  EXPECT_EQ(parts.Weights(), plain.Weights());
  // Another mix is told. Other files under the same pattern are refused, and nothing is lost.
  parts.options.at.reset();
  parts.linear.data = absl::StrCat("mix(1 ", call("text"), ", 1 ", call("more*"), ")");
  parts.To(28);
  EXPECT_TRUE(absl::StrContains(parts.said, "`data` was 0.7 of tokens with fingerprint "))
      << parts.said;
  scratch.Write("more2", linear::Text(500));
  const absl::Status status = parts.Run(32);
  EXPECT_TRUE(absl::StrContains(status.message(), "more* have changed since the commit: they were "
                                                  "1 file of 8.00 k tokens with fingerprint "))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "more2` is new")) << status;
  EXPECT_EQ(parts.Losses().size(), 28u);
  parts.options.changed_data = true;
  parts.To(32);
  EXPECT_TRUE(absl::StrContains(parts.said, "this is another training")) << parts.said;
}

TEST_F(ResumeTest, AnotherModelOrOptimizerIsRefused) {
  Training training(scratch, "run");
  training.To(4);
  absl::StatusOr<Program> program = ParseProgram(linear::Descriptor(training.linear));
  ASSERT_TRUE(program.ok());
  program->groups[0].parameters[0].name = "tables";
  training.options.resume = true;
  const std::string before = ReadWhole(training.options.state + "/manifest.json");
  const absl::Status status = Train(*program, linear::kKernels, linear::Entries(training.linear),
                                    training.options, InterruptGuard());
  EXPECT_TRUE(absl::StrContains(status.message(), "another model or optimizer")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "embed.tables")) << status;
  EXPECT_EQ(ReadWhole(training.options.state + "/manifest.json"), before);
  training.To(8);
}

//===----------------------------------------------------------------------===//
// Commits
//===----------------------------------------------------------------------===//

TEST_F(ResumeTest, ReturnsToAnEarlierCommit) {
  for (bool delayed : {false, true}) {
    Training plain(scratch, absl::StrCat("plain", delayed));
    Training training(scratch, absl::StrCat("run", delayed));
    plain.linear.tier = "device";
    plain.To(14);
    training.linear.delayed = delayed;
    training.linear.commit_every = 3;
    training.linear.commit_keep = 4;
    training.SetPaths({"b"});
    training.To(12);
    training.options.at = 6;
    training.To(8);
    EXPECT_TRUE(absl::StrContains(training.said, "resuming after step 6")) << training.said;
    EXPECT_TRUE(absl::StrContains(training.said, "the commit of step 12 goes when the next"))
        << training.said;
    EXPECT_EQ(training.Losses().size(), 8u);
    training.options.at = 9;
    const absl::Status status = training.Run(14);
    EXPECT_TRUE(absl::StrContains(status.message(), "no commit of step 9: it keeps those of 3, 6, "
                                                    "8"))
        << status;
    // What was refused has cost nothing.
    EXPECT_EQ(training.Losses().size(), 8u);
    training.options.at.reset();
    training.To(14);
    EXPECT_EQ(training.Losses(), plain.Losses());
    EXPECT_EQ(training.Weights(), plain.Weights());
  }
}

// From each of them the rest is the same.
TEST_F(ResumeTest, EveryCommitThatIsKeptGoesOn) {
  Training plain(scratch, "plain");
  plain.linear.tier = "device";
  plain.To(12);
  for (int64_t at : {4, 6, 8, 10}) {
    Training training(scratch, absl::StrCat("run", at));
    training.linear.commit_every = 2;
    training.linear.commit_keep = 4;
    training.To(10);
    training.options.at = at;
    training.To(12);
    EXPECT_EQ(training.Losses(), plain.Losses()) << at;
    EXPECT_EQ(training.Weights(), plain.Weights()) << at;
  }
}

TEST_F(ResumeTest, CommitsChangeNoBit) {
  for (double clip : {0.0, 0.05}) {
    Training plain(scratch, absl::StrCat("plain", clip));
    plain.linear.tier = "device";
    plain.linear.clip = clip;
    plain.linear.evaluate_every = 6;
    plain.To(20);
    for (bool delayed : {false, true})
      for (bool by_time : {false, true}) {
        SCOPED_TRACE(absl::StrCat("clip ", clip, " delayed ", delayed, " by time ", by_time));
        Training training(scratch, absl::StrCat("run", clip, delayed, by_time));
        training.linear = plain.linear;
        training.linear.tier = "ssd";
        training.linear.delayed = delayed;
        training.linear.commit_every = by_time ? 0 : 1;
        training.linear.commit_seconds = by_time ? 1e-9 : 0;
        training.linear.commit_keep = 2;
        training.To(20);
        EXPECT_EQ(training.Losses(), plain.Losses());
        EXPECT_EQ(training.Weights(), plain.Weights());
        // One by one, each with its delayed update applied.
        EXPECT_GE(training.Manifests(), 20);
      }
    EXPECT_LT(plain.Manifests(), 5);
  }
}

TEST_F(ResumeTest, NoCommitByTimeBeforeItsTime) {
  Training training(scratch, "run");
  training.linear.commit_seconds = 3600;
  training.To(20);
  EXPECT_LT(training.Manifests(), 5);
}

// An earlier trainer did not say what the optimizer's code was.
TEST(SettingsTest, AnotherCodeOfTheOptimizerIsTold) {
  EXPECT_TRUE(
      absl::StrContains(DescribeChanges({{"optimizer_code", "1"}}, {{"optimizer_code", "2"}}),
                        "`optimizer_code` was 1 and is 2 now"));
  EXPECT_EQ(DescribeChanges({}, {{"optimizer_code", "2"}}), "");
  // No dropout is not recorded.
  EXPECT_TRUE(
      absl::StrContains(DescribeChanges({{"seed", "1"}, {kAdapterDropout, "0.5"}}, {{"seed", "1"}}),
                        "`adapter_dropout` was 0.5 and is 0 now"));
}

} // namespace
} // namespace boa
