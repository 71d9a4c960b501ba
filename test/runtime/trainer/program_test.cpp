//===- program_test.cpp - Descriptors and learning rates ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/trainer/linear.h"

#include "runtime/abi/abi.h"
#include "runtime/abi/program.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace boa {
namespace {

using nlohmann::json;

json Descriptor() { return json::parse(linear::Descriptor({})); }

std::string Error(const json &descriptor) {
  return std::string(ParseProgram(descriptor.dump()).status().message());
}

TEST(ParseProgram, ReadsWhatIsThere) {
  absl::StatusOr<Program> program = ParseProgram(Descriptor().dump());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->model.name, "linear");
  EXPECT_EQ(program->groups[0].parameters[0].name, "table");
  EXPECT_EQ(program->groups[0].weights, 0);
  EXPECT_EQ(program->model.context, 16);
  EXPECT_EQ(program->storages[0].entry_count(), 1);
}

TEST(ParseProgram, RefusesWhatIsNotJson) {
  EXPECT_EQ(ParseProgram("{\"abi\": ").status().message(), "program descriptor: not valid JSON");
  EXPECT_EQ(Error(json::array()), "program descriptor: expected an object but found array");
}

TEST(ParseProgram, NamesTheMissingField) {
  json descriptor = Descriptor();
  descriptor["train"].erase("seed");
  EXPECT_EQ(Error(descriptor), "program descriptor: train: missing field `seed`");
}

TEST(ParseProgram, NamesTheUnknownField) {
  json descriptor = Descriptor();
  descriptor["storages"][1]["colour"] = "green";
  EXPECT_EQ(Error(descriptor), "program descriptor: storages[1]: unknown field `colour`");
}

TEST(ParseProgram, NamesTheFieldOfAnotherType) {
  json descriptor = Descriptor();
  descriptor["groups"][0]["parameters"][0]["shape"][0] = "wide";
  EXPECT_EQ(Error(descriptor), "program descriptor: groups[0].parameters[0]: field `shape`: "
                               "expected integers but found string");
  descriptor = Descriptor();
  descriptor["plan"]["delay"] = "much";
  EXPECT_EQ(Error(descriptor), "program descriptor: plan: field `delay`: expected a "
                               "number but found string");
}

TEST(ParseProgram, BoundsVocabularyAndContext) {
  for (const char *field : {"vocab", "context"}) {
    json descriptor = Descriptor();
    descriptor["model"][field] = (1 << 24) + 1;
    EXPECT_EQ(Error(descriptor), absl::StrCat("program descriptor: model: field `", field,
                                              "`: expected at most 16777216 but found 16777217"));
  }
}

// The costs of a kernel and the rates of a device are by format.
TEST(ParseProgram, ReadsFormats) {
  json descriptor = Descriptor();
  descriptor["kernels"][0]["costs"]["bf16"] = {{"flops", 9},
                                               {"bytes", 8},
                                               {"product_flops", 5},
                                               {"attention_flops", 4},
                                               {"elementwise_bytes", 3}};
  descriptor["machine"]["compute"] = {{"f32", 7}};
  absl::StatusOr<Program> program = ParseProgram(descriptor.dump());
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->kernels[0].costs.size(), 1u);
  const KernelCost &cost = program->kernels[0].costs[NumberFormat::bf16];
  EXPECT_EQ(cost.flops, 9);
  EXPECT_EQ(cost.bytes, 8);
  EXPECT_EQ(cost.product_flops, 5);
  EXPECT_EQ(cost.attention_flops, 4);
  EXPECT_EQ(cost.elementwise_bytes, 3);
  EXPECT_EQ(program->machine.compute.f32, 7);
  EXPECT_EQ(program->machine.compute.bf16, 0);
}

TEST(ParseProgram, NamesTheUnknownFormat) {
  json descriptor = Descriptor();
  descriptor["machine"]["compute"]["f7"] = 1;
  EXPECT_EQ(Error(descriptor), "program descriptor: machine.compute: unknown field `f7`");
  descriptor = Descriptor();
  descriptor["kernels"][0]["costs"]["f7"] = {{"flops", 9},
                                             {"bytes", 8},
                                             {"product_flops", 5},
                                             {"attention_flops", 4},
                                             {"elementwise_bytes", 3}};
  EXPECT_EQ(Error(descriptor),
            "program descriptor: kernels[0]: field `costs`: there is no format `f7`");
}

/// A descriptor with a table of sines of three positions, which a kernel reads.
json WithTable() {
  json descriptor = Descriptor();
  descriptor["tables"] = {{{"function", "sine"}, {"rows", 3}, {"frequencies", {1, 0.25}}}};
  descriptor["kernels"][1]["tables"] = {0};
  descriptor["constants"] = 256;
  return descriptor;
}

TEST(ParseProgram, ReadsTables) {
  absl::StatusOr<Program> program = ParseProgram(WithTable().dump());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->kernels[0].tables, std::vector<int64_t>());
  EXPECT_EQ(program->kernels[1].tables, std::vector<int64_t>{0});
  ASSERT_EQ(program->tables.size(), 1u);
  EXPECT_EQ(program->tables[0].frequencies, (std::vector<double>{1, 0.25}));
}

TEST(ParseProgram, ChecksTables) {
  json descriptor = WithTable();
  descriptor["kernels"][1]["tables"] = {0, 1};
  EXPECT_EQ(Error(descriptor), "program descriptor: kernel `train_bf16`: no table 1");
  descriptor = WithTable();
  descriptor["kernels"][1]["tables"] = {-1};
  EXPECT_EQ(Error(descriptor), "program descriptor: kernel `train_bf16`: no table -1");
  descriptor = WithTable();
  descriptor["constants"] = 255;
  EXPECT_EQ(Error(descriptor), "program descriptor: field `constants`: expected the 256 bytes of "
                               "the tables but found 255");
  descriptor = WithTable();
  descriptor["tables"][0]["function"] = "tangent";
  EXPECT_EQ(Error(descriptor), "program descriptor: tables[0]: field `function`: expected one of "
                               "cosine, sine but found `tangent`");
  descriptor = WithTable();
  descriptor["tables"][0]["frequencies"] = {1, "high"};
  EXPECT_EQ(Error(descriptor), "program descriptor: tables[0]: field `frequencies`: expected "
                               "numbers but found string");
  descriptor = WithTable();
  descriptor["tables"][0]["rows"] = 0;
  EXPECT_EQ(Error(descriptor),
            "program descriptor: tables[0]: field `rows`: expected at least 1 but found 0");
}

// Tables are computed from the program's frequencies in f64, and rounded once.
TEST(Tables, HoldAnglesOfRows) {
  const std::vector<AngleTable> tables = {{"cosine", 70, {1, 0.1}}, {"sine", 40000, {1 / 3.0}}};
  const std::vector<int64_t> offsets = TableOffsets(tables);
  EXPECT_EQ(offsets, (std::vector<int64_t>{0, 768, 768 + 160000}));
  std::vector<char> memory(size_t(offsets.back()));
  FillTables(tables, memory.data());
  const auto *cosines = reinterpret_cast<const float *>(memory.data());
  const auto *sines = reinterpret_cast<const float *>(memory.data() + offsets[1]);
  EXPECT_EQ(cosines[0], 1);
  EXPECT_EQ(cosines[2 * 69 + 1], float(std::cos(69 * 0.1)));
  EXPECT_EQ(sines[0], 0);
  EXPECT_EQ(sines[39999], float(std::sin(39999 * (1 / 3.0))));
}

TEST(ParseProgram, ListsTheWordsItKnows) {
  json descriptor = Descriptor();
  descriptor["storages"][0]["homes"][0]["homes"][0]["tier"] = "tape";
  EXPECT_EQ(Error(descriptor), "program descriptor: storages[0].homes[0].homes[0]: field `tier`: "
                               "expected one of device, host, ssd but found `tape`");
  descriptor = Descriptor();
  descriptor["machine"]["memory"] = "shared";
  EXPECT_EQ(Error(descriptor), "program descriptor: machine: field `memory`: expected one of "
                               "unified, separate but found `shared`");
}

// SSDs reach a device's memory where it has one of its own.
TEST(ParseProgram, ReadsWhatSsdsReach) {
  json descriptor = Descriptor();
  descriptor["machine"]["direct"] = true;
  EXPECT_EQ(Error(descriptor), "program descriptor: machine: field `direct`: expected separate "
                               "memories where SSDs reach the device's");
  descriptor["machine"]["memory"] = "separate";
  absl::StatusOr<Program> program = ParseProgram(descriptor.dump());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->machine.direct);
}

// Homes are for all entries and all their chunks, and slots hold no more than one.
TEST(ParseProgram, ChecksHomesAndPools) {
  json descriptor = Descriptor();
  json &tokens = descriptor["storages"][4];
  tokens["entries"] = {2, 2};
  tokens["bytes"] = 8192;
  tokens["chunks"] = 2;
  json &homes = tokens["homes"];
  homes = {{{"entries", 3},
            {"homes", {{{"tier", "ssd"}, {"chunks", 1}}, {{"tier", "host"}, {"chunks", 1}}}}},
           {{"entries", 1}, {"homes", {{{"tier", "host"}, {"chunks", 2}}}}}};
  absl::StatusOr<Program> program = ParseProgram(descriptor.dump());
  ASSERT_TRUE(program.ok()) << program.status();
  const Storage &storage = program->storages[4];
  EXPECT_EQ(storage.TierOf(2, 0), Home::ssd);
  EXPECT_EQ(storage.TierOf(2, 1), Home::host);
  EXPECT_EQ(storage.TierOf(3, 0), Home::host);
  EXPECT_EQ(storage.ChunksOn(Home::host), 5);
  EXPECT_FALSE(storage.LivesOn(Home::device));
  homes[1]["homes"][0]["chunks"] = 3;
  EXPECT_EQ(Error(descriptor), "program descriptor: storages[4]: field `homes`: expected homes for "
                               "2 chunks but found them for 3");
  homes[1]["homes"][0]["chunks"] = 2;
  homes[0]["entries"] = 2;
  EXPECT_EQ(Error(descriptor), "program descriptor: storages[4]: field `homes`: expected homes for "
                               "4 entries but found them for 3");
  homes[0]["entries"] = INT64_MAX;
  EXPECT_EQ(Error(descriptor), "program descriptor: storages[4]: field `homes`: expected homes for "
                               "4 entries but found them for more");
  homes[0]["entries"] = 3;
  tokens["pools"] = {{{"space", "host"}, {"chunks", 3}, {"slots", 1}}};
  EXPECT_EQ(Error(descriptor), "program descriptor: storages[4]: field `pools`: slots of 3 chunks "
                               "but an entry has 2");
  tokens["pools"] = {{{"space", "host"}, {"chunks", 1}, {"slots", 1}, {"shared", 7}},
                     {{"space", "host"}, {"chunks", 2}, {"slots", 2}, {"shared", 7}}};
  EXPECT_EQ(Error(descriptor), "program descriptor: storage `" + tokens["name"].get<std::string>() +
                                   "`: expected 1 slots in pool 7, in the same space, but found 2");
}

TEST(ParseProgram, ReadsWhereTheOptimizerRuns) {
  json descriptor = Descriptor();
  absl::StatusOr<Program> program = ParseProgram(descriptor.dump());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->UpdateSpace(), BOA_HOST);
  descriptor["plan"]["update"] = "device";
  program = ParseProgram(descriptor.dump());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->UpdateSpace(), BOA_DEVICE);
  // Of one memory it says nothing.
  EXPECT_FALSE(program->UpdatesOnDevice());
  program->machine.memory = MemoryKind::separate;
  EXPECT_TRUE(program->UpdatesOnDevice());
  descriptor["plan"]["update"] = "ssd";
  EXPECT_EQ(Error(descriptor), "program descriptor: plan: field `update`: expected one of "
                               "host, device but found `ssd`");
}

// A descriptor of another version has other fields: only the version counts.
TEST(ParseProgram, ReadsWhenToCommitWhatToSkipAndWhatToComputeIn) {
  json descriptor = Descriptor();
  json &training = descriptor["train"];
  training["commit_seconds"] = 1.5;
  training["commit_keep"] = 3;
  training["nonfinite"] = "skip";
  absl::StatusOr<Program> program = ParseProgram(descriptor.dump());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->train.commit_seconds, 1.5);
  EXPECT_EQ(program->train.commit_keep, 3);
  EXPECT_EQ(program->train.nonfinite, Nonfinite::skip);
  training["nonfinite"] = "ignore";
  EXPECT_EQ(Error(descriptor), "program descriptor: train: field `nonfinite`: expected one of "
                               "stop, skip but found `ignore`");
  training["nonfinite"] = "stop";
  training["compute"] = "f16";
  EXPECT_EQ(Error(descriptor), "program descriptor: train: field `compute`: expected one of "
                               "f32, bf16 but found `f16`");
  training["compute"] = "bf16";
  training["commit_keep"] = 0;
  EXPECT_EQ(Error(descriptor), "program descriptor: train: field `commit_keep`: 0 is out of "
                               "range");
}

// A program without one computes something unknown.
TEST(ParseProgram, ReadsWhatIsComputed) {
  json descriptor = Descriptor();
  EXPECT_EQ(ParseProgram(descriptor.dump())->computation.version, 0);
  json &computation = descriptor["computation"];
  computation = {{"version", 1}, {"text", "block: gelu"}, {"hash", "0123"}};
  absl::StatusOr<Program> program = ParseProgram(descriptor.dump());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->computation.version, 1);
  EXPECT_EQ(program->computation.text, "block: gelu");
  EXPECT_EQ(program->computation.hash, "0123");
  computation["version"] = 0;
  EXPECT_EQ(Error(descriptor), "program descriptor: computation: field `version`: expected at "
                               "least 1 but found 0");
  computation["version"] = 1;
  computation["hash"] = "";
  EXPECT_EQ(Error(descriptor), "program descriptor: computation: field `hash`: expected 1 to 128 "
                               "bytes but found 0");
  computation.erase("hash");
  EXPECT_EQ(Error(descriptor), "program descriptor: computation: missing field `hash`");
}

// An export adds it to its weight, so it must fit.
TEST(ParseProgram, ChecksAdapters) {
  json descriptor = Descriptor();
  json &parameters = descriptor["groups"][0]["parameters"];
  auto add = [&](const char *name, json shape, int64_t offset) {
    parameters.push_back(parameters[0]);
    parameters.back().erase("adapter");
    parameters.back()["name"] = name;
    parameters.back()["shape"] = std::move(shape);
    parameters.back()["offset"] = offset;
  };
  parameters[0]["shape"] = {16, 8};
  parameters[0]["adapter"] = {{"down", "a"}, {"up", "b"}, {"alpha", 4}, {"transposed", false}};
  const std::string group = descriptor["groups"][0]["name"],
                    where = "program descriptor: group `" + group + "`: parameter `table`: ";
  EXPECT_EQ(Error(descriptor), where + "no parameter `a` for its adapter");
  add("a", {2, 16}, 128);
  add("b", {8, 2}, 160);
  absl::StatusOr<Program> program = ParseProgram(descriptor.dump());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(HasAdapters(*program));
  EXPECT_EQ(PartsOfAdapters(*program)[0], (std::vector<bool>{false, true, true}));
  parameters[0]["adapter"]["transposed"] = true;
  EXPECT_EQ(Error(descriptor), where + "expected an adapter of [rank, 8] and [16, rank]");
  parameters[0]["adapter"]["alpha"] = 0;
  EXPECT_EQ(Error(descriptor),
            "program descriptor: groups[0].parameters[0].adapter: field `alpha`: expected a number "
            "above 0 and at most 1e6 but found 0");
}

// What the fuzzer begins with is a program of today; what stands beside it differs in
// one field, which is refused.
TEST(ParseProgram, TheFuzzersCorpusIsOfThisVersion) {
  for (const auto &file : std::filesystem::directory_iterator(BOA_FUZZ_CORPUS "/program")) {
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    const std::string name = file.path().stem();
    const absl::Status status = ParseProgram(text.str()).status();
    EXPECT_EQ(status.ok(), name == "f32" || name == "bf16") << name << ": " << status;
    EXPECT_EQ(status.message().find("`abi`"), std::string::npos) << name << ": " << status;
  }
}

TEST(ParseProgram, ChecksTheVersionFirst) {
  json descriptor = Descriptor();
  descriptor["abi"] = 99;
  descriptor.erase("storages");
  EXPECT_EQ(Error(descriptor),
            absl::StrCat("program descriptor: field `abi`: the program was compiled for version 99 "
                         "but this runtime is version ",
                         BOA_ABI_VERSION, "; compile it again with the `boa` of this runtime"));
}

TEST(ParseProgram, ChecksWhatGroupsReferTo) {
  json descriptor = Descriptor();
  descriptor["groups"][0]["states"][0] = 77;
  EXPECT_EQ(Error(descriptor), "program descriptor: group `embed`: momentum: no storage 77");
  descriptor = Descriptor();
  descriptor["groups"][0]["gradient"] = 77;
  EXPECT_EQ(Error(descriptor), "program descriptor: group `embed`: gradient: no storage 77");
  descriptor = Descriptor();
  descriptor["groups"][0]["parameters"][0]["offset"] = 1 << 20;
  EXPECT_NE(Error(descriptor).find("parameter `table` ends at"), std::string::npos)
      << Error(descriptor);
}

// What the runtime counts with does not overflow later.
TEST(ParseProgram, RefusesSizesThatCannotBeCounted) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  json descriptor = Descriptor();
  descriptor["storages"][0]["entries"] = {kHuge, kHuge};
  EXPECT_NE(Error(descriptor).find("bytes than any machine holds"), std::string::npos)
      << Error(descriptor);
  descriptor = Descriptor();
  descriptor["groups"][0]["chunks"] = 1 << 30;
  descriptor["groups"][0]["chunk_elements"] = kHuge;
  EXPECT_EQ(Error(descriptor), "program descriptor: groups[0]: field `chunk_elements`: more than "
                               "any machine holds");
  descriptor = Descriptor();
  // The product is 0 in 64 bits.
  descriptor["groups"][0]["parameters"][0]["shape"] = {kHuge, kHuge};
  EXPECT_EQ(Error(descriptor), "program descriptor: group `embed`: parameter `table` has more "
                               "elements than any machine holds");
  descriptor["groups"][0]["parameters"][0]["shape"] = {1};
  descriptor["groups"][0]["parameters"][0]["offset"] = INT64_MAX;
  EXPECT_EQ(Error(descriptor), "program descriptor: group `embed`: parameter `table` has more "
                               "elements than any machine holds");
  descriptor = Descriptor();
  descriptor["model"]["context"] = INT64_MAX;
  EXPECT_EQ(Error(descriptor), "program descriptor: model: field `context`: 9223372036854775807 "
                               "is out of range");
  descriptor = Descriptor();
  descriptor["plan"]["micro_batch"] = 3;
  EXPECT_EQ(Error(descriptor), "program descriptor: expected batch to be a multiple of micro_batch "
                               "but found 8 and 3");
}

TEST(ParseProgram, RefusesIntegersThatWouldReadAsNegative) {
  json descriptor = Descriptor();
  descriptor["groups"][0]["low"] = UINT64_MAX; // -1, of none
  EXPECT_EQ(Error(descriptor), "program descriptor: groups[0]: field `low`: 18446744073709551615 "
                               "does not fit in 64 bits");
}

TEST(ParseProgram, ChecksThatChunksAreWholeBlocks) {
  json descriptor = Descriptor();
  descriptor["storages"][0]["bytes"] = 5000;
  EXPECT_NE(Error(descriptor).find("5000 is no multiple of 4096"), std::string::npos)
      << Error(descriptor);
}

OptimizerSettings Rate(const char *rate, int64_t warmup) {
  OptimizerSettings optimizer;
  optimizer.rate = *ParseWord<RateKind>(rate);
  optimizer.peak = 1.0;
  optimizer.floor = 0.1;
  optimizer.warmup = warmup;
  return optimizer;
}

TEST(LearningRate, WarmsUpLinearly) {
  for (const char *rate : {"constant", "linear", "cosine"}) {
    EXPECT_DOUBLE_EQ(LearningRate(Rate(rate, 10), 1, 100), 0.1);
    EXPECT_DOUBLE_EQ(LearningRate(Rate(rate, 10), 5, 100), 0.5);
    EXPECT_DOUBLE_EQ(LearningRate(Rate(rate, 10), 10, 100), 1.0);
  }
}

TEST(LearningRate, DecaysToTheFloorAtTheLastStep) {
  EXPECT_DOUBLE_EQ(LearningRate(Rate("constant", 10), 100, 100), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(Rate("linear", 10), 55, 100), 0.55);
  EXPECT_DOUBLE_EQ(LearningRate(Rate("linear", 10), 100, 100), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(Rate("cosine", 10), 55, 100), 0.55);
  EXPECT_NEAR(LearningRate(Rate("cosine", 10), 40, 100), 0.1 + 0.45 * 1.5, 1e-12);
  EXPECT_DOUBLE_EQ(LearningRate(Rate("cosine", 10), 100, 100), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(Rate("cosine", 10), 200, 100), 0.1);
}

TEST(LearningRate, NeedsNoWarmup) {
  EXPECT_DOUBLE_EQ(LearningRate(Rate("constant", 0), 1, 1), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(Rate("linear", 0), 50, 100), 0.55);
  // Warm-up longer than the run: it just does not end.
  EXPECT_DOUBLE_EQ(LearningRate(Rate("cosine", 20), 10, 10), 0.5);
}

} // namespace
} // namespace boa
