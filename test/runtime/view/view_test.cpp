//===- view_test.cpp - Units, metrics, tables, wear and traces ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/units.h"
#include "runtime/view/metrics.h"
#include "runtime/view/outcome.h"
#include "runtime/view/progress.h"
#include "runtime/view/screen.h"
#include "runtime/view/svg.h"
#include "runtime/view/trace.h"
#include "runtime/view/wear.h"

#include "test/runtime/scratch.h"
#include "test/runtime/trainer/linear.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace boa {
namespace {

TEST(Units, HaveThreeDigits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1023), "1.00 KiB");
  EXPECT_EQ(FormatBytes(4096), "4.00 KiB");
  EXPECT_EQ(FormatBytes(12.34 * 1024 * 1024), "12.3 MiB");
  EXPECT_EQ(FormatBytes(345.0 * (1 << 30)), "345 GiB");
  EXPECT_EQ(FormatCount(950), "950");
  EXPECT_EQ(FormatCount(21700), "21.7 k");
  EXPECT_EQ(FormatCount(999999), "1.00 M");
  EXPECT_EQ(FormatSeconds(0.4249), "0.42 s");
  EXPECT_EQ(FormatSeconds(12.34), "12.3 s");
  EXPECT_EQ(FormatSeconds(185), "3 m 05 s");
  EXPECT_EQ(FormatSeconds(3599.7), "1 h 00 m");
  EXPECT_EQ(FormatSeconds(3720), "1 h 02 m");
  EXPECT_EQ(FormatSeconds(99 * 3600), "99 h 00 m");
  EXPECT_EQ(FormatSeconds(12.34 * 86400), "12.3 days");
  EXPECT_EQ(FormatSeconds(8.2 * 365.25 * 86400), "8.2 years");
  EXPECT_EQ(FormatSeconds(1500.0 * 365.25 * 86400), "1.50 k years");
  EXPECT_EQ(FormatWatts(1150), "1.15 kW");
  EXPECT_EQ(FormatEnergy(3.6e6 * 86.4), "86.4 kWh");
  EXPECT_EQ(FormatEnergy(231.75), "232 J");
}

StepRecord Record(int64_t step) {
  StepRecord record;
  record.step = step;
  record.loss = 1.0 / 3;
  record.rate = 1e-3;
  record.tokens = 1000;
  record.seconds = 0.5;
  record.read["ssd"]["weights"] = 4096;
  record.waited["ssd read"] = 0.1;
  return record;
}

TEST(Metrics, NumbersReadBackToTheSameBits) {
  StepRecord record = Record(7);
  auto line = nlohmann::json::parse(FormatMetrics(record));
  EXPECT_EQ(line["loss"].get<double>(), 1.0 / 3);
  EXPECT_EQ(line["lr"], 1e-3);
  EXPECT_EQ(line["tokens_per_s"], 2000);
  EXPECT_EQ(line["read"]["ssd"]["weights"], 4096);
  EXPECT_FALSE(line.contains("validation_loss"));
  record.validation_loss = 2.5;
  EXPECT_EQ(nlohmann::json::parse(FormatMetrics(record))["validation_loss"], 2.5);
}

// A killed run has written lines of steps that were not committed, the last one
// perhaps in part.
TEST(Metrics, ResumingCutsWhatWasLost) {
  Scratch scratch;
  const std::string path = scratch.path("metrics");
  std::string expected;
  {
    auto metrics = Metrics::Create(path);
    ASSERT_TRUE(metrics.ok()) << metrics.status();
    for (int64_t step = 1; step <= 4; ++step) {
      ASSERT_TRUE(metrics->Write(Record(step)).ok());
      if (step <= 3)
        expected += FormatMetrics(Record(step)) + "\n";
    }
  }
  std::ofstream(path, std::ios::app) << "{\"step\": 5, \"lo";
  auto metrics = Metrics::Continue(path, 2, "a");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  ASSERT_TRUE(metrics->Write(Record(3)).ok());
  EXPECT_EQ(ReadWhole(path), expected);
}

// What refuses to begin, or is killed before its first step ends, loses no line.
TEST(Metrics, OpeningChangesNothing) {
  Scratch scratch;
  const std::string lines =
      FormatMetrics(Record(1)) + "\n" + FormatMetrics(Record(2)) + "\n{\"step\": 3, \"lo";
  const std::string path = scratch.Write("metrics", lines);
  for (int64_t after : {0, 1, 2}) {
    ASSERT_TRUE(Metrics::Continue(path, after, "a").ok());
    EXPECT_EQ(ReadWhole(path), lines) << after;
  }
}

// A new run takes no file that holds something; a resumed one takes its own, and an older
// version's.
TEST(Metrics, AnotherRunsFileStays) {
  Scratch scratch;
  StepRecord record = Record(1);
  record.run = "a";
  const std::string whole = FormatMetrics(record) + "\n" + FormatMetrics(Record(2)) + "\n";
  const std::string path = scratch.Write("metrics", whole);
  EXPECT_EQ(Metrics::Create(path).status().message(),
            "--metrics: `" + path +
                "` holds another run's steps or other text; name a new file, or remove it");
  EXPECT_EQ(Metrics::Continue(path, 1, "b").status().message(),
            "--metrics: `" + path +
                "` is not of the run that is resumed; name its file, or a new one");
  EXPECT_TRUE(Metrics::Continue(path, 1, "a").ok());
  EXPECT_EQ(ReadWhole(path), whole);
  for (const char *foreign :
       {"a poem\n", "{\"step\": []\n", "{\"loss\":1}\n", "{\"step\":1,\"run\":[]}\n", "x"})
    EXPECT_FALSE(Metrics::Continue(scratch.Write("foreign", foreign), 1, "a").ok()) << foreign;
  for (const char *torn : {"", "{\"st", "{\"step\":1,\"lo"})
    EXPECT_TRUE(Metrics::Continue(scratch.Write("torn", torn), 1, "a").ok()) << torn;
  EXPECT_TRUE(Metrics::Create(scratch.Write("empty", "")).ok());
}

// A line that lacks nothing but its end is whole.
TEST(Metrics, TheLastLineMayLackItsNewline) {
  Scratch scratch;
  const std::string line = FormatMetrics(Record(1));
  const std::string path = scratch.Write("metrics", line);
  auto metrics = Metrics::Continue(path, 1, "a");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  ASSERT_TRUE(metrics->Write(Record(2)).ok());
  ASSERT_TRUE(metrics->Write(Record(3)).ok());
  EXPECT_EQ(ReadWhole(path),
            line + "\n" + FormatMetrics(Record(2)) + "\n" + FormatMetrics(Record(3)) + "\n");
}

// A long training of a small model has so many lines; the end of this file is a hole.
TEST(Metrics, ResumingReadsAFileOfAnySize) {
  Scratch scratch;
  std::string lines;
  for (int64_t step = 1; step <= 5000; ++step)
    lines += FormatMetrics(Record(step)) + "\n";
  ASSERT_GT(lines.size(), size_t(1) << 20);
  const std::string path = scratch.Write("metrics", lines);
  std::filesystem::resize_file(path, (uint64_t(1) << 30) + 1);
  auto metrics = Metrics::Continue(path, 4999, "a");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  ASSERT_TRUE(metrics->Write(Record(5000)).ok());
  EXPECT_EQ(ReadWhole(path), lines);
}

TEST(Metrics, SaysWhereItCannotWrite) {
  EXPECT_EQ(Metrics::Create("/nowhere/metrics").status().message(),
            "cannot create `/nowhere/metrics`: No such file or directory");
}

TEST(Progress, TellsAStepInALine) {
  StepRecord record = Record(12);
  EXPECT_EQ(FormatStep(record, 300, 185),
            "step  12/300  loss 0.3333  lr 1.0e-03  2.00 k tok/s  3 m 05 s left  20% wait, "
            "ssd read");
  record.waited["ssd read"] = 7 * record.seconds; // some of it before the step
  EXPECT_EQ(FormatStep(record, 300, 185),
            "step  12/300  loss 0.3333  lr 1.0e-03  2.00 k tok/s  3 m 05 s left  100% wait, "
            "ssd read");
  record.waited.clear();
  EXPECT_EQ(FormatStep(record, 300, -1),
            "step  12/300  loss 0.3333  lr 1.0e-03  2.00 k tok/s       "
            "          compute-bound");
  record.gradient_norm = 0.5;
  EXPECT_EQ(FormatStep(record, 1, -1),
            "step 12/1  loss 0.3333  lr 1.0e-03  2.00 k tok/s  norm 0.5   compute-bound");
}

TEST(Progress, LosesWholePartsWhereALineIsTooLong) {
  const std::string line = "step 1/2  loss 0.3333            compute-bound";
  EXPECT_EQ(FitLine(line, 80), line);
  EXPECT_EQ(FitLine(line, line.size()), line);
  EXPECT_EQ(FitLine(line, line.size() - 1), "step 1/2  loss 0.3333  compute-bound");
  EXPECT_EQ(FitLine(line, 36), "step 1/2  loss 0.3333  compute-bound");
  EXPECT_EQ(FitLine(line, 35), "step 1/2  loss 0.3333");
  EXPECT_EQ(FitLine(line, 20), "step 1/2");
  EXPECT_EQ(FitLine(line, 5), "step ");
  // A long run says all of it on a terminal of 100 columns, and how long it takes on one of 80.
  StepRecord record = Record(9999);
  record.gradient_norm = 1.234;
  const std::string whole = FormatStep(record, 9999, 12345);
  EXPECT_EQ(FitLine(whole, 99), whole);
  EXPECT_EQ(FitLine(whole, 79), "step 9999/9999  loss 0.3333  lr 1.0e-03  2.00 k tok/s  3 h 25 m "
                                "left  norm 1.23");
}

TEST(Screen, HasARowForEachFact) {
  linear::Options options;
  options.device_memory = 1 << 20;
  auto program = ParseProgram(linear::Descriptor(options));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(FormatScreen(*program, {"text: 8.79 KiB to train on\nnote: it is short\nmore: 9 KiB\n",
                                    "state: 112 KiB on SSD", "about 2 s a step"}),
            R"(model   linear: 4.10 k parameters
data    text: 8.79 KiB to train on
        more: 9 KiB
steps   20 of 8 sequences (2 x 4) of 16 tokens
plan    vertical, 2 micro-batches of 4 sequences, delay 0.00
memory  device 288 KiB of 1.00 MiB, host 0 B (no limit)
state   state: 112 KiB on SSD
speed   about 2 s a step
note: it is short
)");
  EXPECT_EQ(FormatPlaces(*program), R"(
  what                   home      in memory      on SSD
  weights                SSD        64.0 KiB    32.0 KiB
  momentum               SSD        64.0 KiB    32.0 KiB
  variance               SSD        64.0 KiB    32.0 KiB
  gradients              SSD        64.0 KiB    16.0 KiB
  tokens                 device     8.00 KiB           -
  targets                device     8.00 KiB           -
  loss_gradients         device     8.00 KiB           -
  loss                   device     8.00 KiB           -
  total                              288 KiB     112 KiB

  beside the memory at most 1.00 MiB of commands that wait
)");
}

// Bytes cannot fill a larger vocabulary; only a mask is one more token.
TEST(Screen, NamesTokensThatNeverOccur) {
  auto program = ParseProgram(linear::Descriptor({}));
  ASSERT_TRUE(program.ok()) << program.status();
  auto noted = [&](int64_t vocab, const char *objective) {
    program->model.vocab = vocab;
    program->train.objective = *ParseWord<Objective>(objective);
    program->train.mask_token = 256;
    const std::string text = FormatScreen(*program, {"text: 9 B\n", "", ""});
    const size_t begin = text.find("note: ");
    return begin == text.npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(noted(256, "next_token"), "");
  EXPECT_EQ(noted(257, "next_token"),
            "note: the vocabulary has 257 tokens, but the data fills only 256: each byte is a "
            "token; the others never occur and are never sampled");
  EXPECT_EQ(noted(257, "masked"), "");
  EXPECT_EQ(noted(258, "masked"),
            "note: the vocabulary has 258 tokens, but the data fills only 257: each byte is a "
            "token, and the mask is one; the others never occur and are never sampled");
}

TEST(Outcome, SumsUpMeasuredBesidePlanned) {
  auto program = ParseProgram(linear::Descriptor({}));
  ASSERT_TRUE(program.ok()) << program.status();
  Outcome outcome;
  outcome.steps = outcome.last_step = 20;
  outcome.tokens = 2560;
  outcome.seconds = 2;
  outcome.loss = 1.5;
  outcome.Validated(10, 1.5);
  outcome.Validated(20, 1.75);
  outcome.moved.read["weights"] = 1 << 20;
  outcome.predicted.read["weights"] = 1 << 20;
  outcome.moved.written["momentum"] = 1 << 19;
  outcome.disk_read = 1 << 20;
  outcome.resident_bytes = 1 << 20;
  outcome.state = "state";
  outcome.saved = "state/model.safetensors";
  outcome.memories = {{"", 96 << 10, 128 << 10}};
  outcome.run_ahead_bytes = 48 << 10;
  EXPECT_EQ(
      FormatSummary(outcome),
      R"(20 steps in 2.00 s, 1.28 k tokens/s; 1.00 MiB read from SSD, 512 KiB written; resident at most 1.00 MiB
step 20: loss 1.5000, validation loss 1.7500, at best 1.5000 after step 10
step 20 is committed in state
weights saved to state/model.safetensors
)");
  outcome.Validated(19, 1.25);
  EXPECT_THAT(FormatSummary(outcome),
              testing::HasSubstr("\nstep 20: loss 1.5000, validation loss 1.2500 after step 19\n"));
  EXPECT_EQ(FormatMeasures(*program, outcome), R"(
  SSD traffic                   read     planned     written     planned
  weights                   1.00 MiB    1.00 MiB         0 B         0 B
  momentum                       0 B         0 B     512 KiB         0 B
  total                     1.00 MiB    1.00 MiB     512 KiB         0 B
  as the system counts      1.00 MiB                     0 B

  memory in use at most 96.0 KiB of 128 KiB allocated
  commands that waited took at most 48.0 KiB of 1.00 MiB
)");
}

/// One layer of two entries, all on SSD: weights and momentum in f32.
Program LayersOnSsd() {
  Program program;
  SsdSettings first, second;
  first.path = "a";
  first.endurance = 1000000000000;
  second.path = "b";
  program.machine.ssd = {first, second};
  program.optimizer.states = {{"momentum", "f32"}};
  for (const char *role : {"weights", "momentum", "gradients"}) {
    Storage storage;
    storage.name = storage.role = role;
    storage.entries = {2};
    storage.bytes = 16384;
    storage.homes = {{2, {{Home::ssd, 1}}}};
    program.storages.push_back(storage);
  }
  Group group;
  group.name = "block";
  group.layer = true;
  group.count = 2;
  group.chunk_elements = 4096;
  group.weights = 0;
  group.gradient = 2; // written by no step
  group.states = {1};
  program.groups = {group};
  return program;
}

// A step a day: the first drive takes three quarters of it.
TEST(Wear, SaysHowLongADriveLastsAndWhatWouldSaveIt) {
  const Program program = LayersOnSsd();
  Writes writes;
  writes.steps = 2;
  writes.seconds = 2 * 86400;
  writes.by_role = {{"weights", 8000000000}, {"momentum", 8000000000}, {"loss", 0}};
  writes.by_path = {{0, 12000000000}, {1, 4000000000}};
  const std::vector<PathWear> wears = WearOf(program, writes);
  ASSERT_EQ(wears.size(), 2u);
  EXPECT_EQ(wears[0].step, 6e9);
  EXPECT_DOUBLE_EQ(wears[0].day, 6e9);
  EXPECT_NEAR(wears[0].life, 1e12 / 6e9 * 86400, 1);
  EXPECT_EQ(wears[1].life, 0);
  EXPECT_EQ(FindWornOut(wears, 166 * 86400), "");
  EXPECT_EQ(FindWornOut(wears, 200 * 86400), "the run takes 200 days and wears `a` out after "
                                             "167 days: 1.00 TB may be written to it");

  // 4096 codes with their scales take two blocks of 4096 bytes, numbers four.
  std::map<std::string, double> saved;
  for (const Saving &saving : SavingsOf(program, writes))
    saved[saving.what] = saving.bytes;
  EXPECT_EQ(saved, (std::map<std::string, double>{
                       {"moments in 8 bits: optimizer state = int8", 2e9},
                       {"frozen layers: freeze = \"block.*\"", 8e9},
                       {"32.0 KiB more of host memory: place { weights = host }", 4e9},
                       {"32.0 KiB more of host memory: place { optimizer = host }", 4e9}}));

  // Nothing is advised that is so already.
  Program saving = program;
  saving.optimizer.states[0].type = "si8";
  saving.groups[0].gradient = -1;
  saving.storages[0].homes = {{2, {{Home::host, 1}}}};
  writes.by_role = {{"momentum", 8000000000}};
  ASSERT_EQ(SavingsOf(saving, writes).size(), 1u);
  EXPECT_THAT(SavingsOf(saving, writes)[0].what, testing::HasSubstr("optimizer = host"));
}

TEST(Report, EscapesTextAndBytes) {
  EXPECT_EQ(Escape("<a href=\"x\">&'\x01\xff"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\\x01\\xff");
}

// Transfers that overlap go to further rows: events of one row must nest.
TEST(Trace, GivesOverlappingTransfersRowsOfTheirOwn) {
  using Row = TraceEvent::Row;
  Scratch scratch;
  auto file = OutputFile::Open(scratch.path("trace"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(WriteTrace(*file, "a \"model\"",
                         {{Row::compute, 0, "forward", 5000, 9000, 0},
                          {Row::read, 1, "weights", 2000, 6000, 4096},
                          {Row::read, 1, "weights", 4000, 8000, 4096},
                          {Row::read, 1, "momentum", 6000, 7000, 4096}})
                  .ok());
  auto trace = nlohmann::json::parse(ReadWhole(scratch.path("trace")), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::map<int, std::string> rows;
  for (const auto &event : trace["traceEvents"])
    if (event["name"] == "thread_name")
      rows[event["tid"].get<int>()] = event["args"]["name"].get<std::string>();
  std::vector<std::string> seen;
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "X")
      seen.push_back(event["name"].get<std::string>() + " in " + rows[event["tid"].get<int>()] +
                     " at " + event["ts"].dump());
  EXPECT_EQ(seen, (std::vector<std::string>{
                      "weights in SSD 1 reads at 0.0", "weights in SSD 1 reads +1 at 2.0",
                      "forward in compute at 3.0", "momentum in SSD 1 reads at 4.0"}));
}

} // namespace
} // namespace boa
