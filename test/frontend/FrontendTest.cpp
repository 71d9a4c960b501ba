//===- FrontendTest.cpp - What the frontend understands -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Correct specifications, overrides, several files together, and inputs that
// nobody would write: none may crash the frontend or keep it busy.
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Fixture.h"

using namespace boa;
using namespace boa::frontend;

namespace {

/// The checked specification; fails the test where there is none.
Spec accepted(const std::string &text, const std::vector<std::string> &overrides = {}) {
  FrontendResult result = compileText(text, overrides);
  EXPECT_EQ(result.diagnostics, "");
  return result.spec.value_or(Spec());
}

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

} // namespace

// Settings that are absent have the defaults that frontend/README.md lists.
TEST(FrontendTest, Defaults) {
  Spec spec = accepted(kSpec);
  EXPECT_EQ(spec.model.name, "tiny");
  ASSERT_EQ(spec.model.stages.size(), 3u);
  EXPECT_EQ(spec.model.stages[1].repeat, 2);
  EXPECT_EQ(spec.train.data, "corpus.txt");
  EXPECT_EQ(spec.train.batch, 8);
  EXPECT_EQ(spec.plan.micro_batch, 2);
  EXPECT_EQ(spec.train.objective, Objective::next_token);
  EXPECT_EQ(spec.train.weights, WeightType::f32);
  EXPECT_EQ(spec.plan.schedule, Schedule::vertical);
  EXPECT_EQ(spec.plan.delay, 0);
  EXPECT_EQ(spec.plan.prefetch, 1);
  EXPECT_TRUE(spec.plan.recompute);
  EXPECT_EQ(spec.train.clip, 0);
  EXPECT_EQ(spec.train.optimizer.beta2, 0.999);
  EXPECT_EQ(spec.plan.place.weights.parts.front().tier, HomeTier::device);
  EXPECT_EQ(spec.machine.device_memory, 256 << 20);
  EXPECT_EQ(spec.machine.host_memory, 0);
  ASSERT_EQ(spec.machine.ssd.size(), 1u);
  EXPECT_EQ(spec.machine.ssd[0].read, 200000000);
}

// Without a machine there is no limit, and state goes to one folder.
TEST(FrontendTest, NoMachine) {
  std::string text = kSpec;
  Spec spec = accepted(text.substr(0, text.find("machine")));
  EXPECT_EQ(spec.machine.name, "default");
  ASSERT_EQ(spec.machine.ssd.size(), 1u);
  EXPECT_EQ(spec.machine.ssd[0].path, "state");
}

// Without micro_batch the batch is one micro-batch.
TEST(FrontendTest, MicroBatchIsTheBatch) {
  Spec spec = accepted(edited("  micro_batch = 2\n", ""));
  EXPECT_EQ(SequencesOfMicroBatch(spec.train, spec.plan), 8);
}

// Clipping needs the norm of all gradients: vertical order then delays the whole
// optimizer, unless a delay is given.
TEST(FrontendTest, ClippingDelays) {
  EXPECT_EQ(accepted(kSpec, {"train.clip=1"}).plan.delay, 1);
  EXPECT_EQ(accepted(kSpec, {"train.clip=1", "train.schedule=horizontal"}).plan.delay, 0);
  EXPECT_EQ(accepted(kSpec, {"train.clip=1", "train.schedule=vertical(delay=0)"}).plan.delay, 0);
}

TEST(FrontendTest, Overrides) {
  Spec spec = accepted(kSpec, {"train.steps=50", "model.depth = 5", "machine.host.memory=1GiB",
                               "train.schedule=horizontal(delay = 0.5)", "train.place=ssd",
                               "train.place.saved=host", "train.optimizer.weight_decay=0.1",
                               "machine.ssd.read=1.5 GB/s", "train.data=\"other.txt\""});
  EXPECT_EQ(spec.train.steps, 50);
  EXPECT_EQ(spec.model.stages[1].repeat, 5);
  EXPECT_EQ(spec.machine.host_memory, int64_t(1) << 30);
  EXPECT_EQ(spec.plan.schedule, Schedule::horizontal);
  EXPECT_EQ(spec.plan.delay, 0.5);
  EXPECT_EQ(spec.plan.place.weights.parts.front().tier, HomeTier::ssd);
  EXPECT_EQ(spec.plan.place.saved.parts.front().tier, HomeTier::host);
  EXPECT_EQ(spec.train.optimizer.weight_decay, 0.1);
  EXPECT_EQ(spec.machine.ssd[0].read, 1500000000);
  EXPECT_EQ(spec.train.data, "other.txt");
}

// Shares, in order. The last place has the rest.
TEST(FrontendTest, Shares) {
  Spec spec = accepted(edited("steps = 10", "steps = 10\n  place = device 10%, host 40%, ssd"),
                       {"train.steps=20"});
  const PlaceSettings &place = spec.plan.place;
  ASSERT_EQ(place.optimizer.parts.size(), 3u);
  EXPECT_EQ(place.optimizer.parts[1].tier, HomeTier::host);
  EXPECT_EQ(place.optimizer.parts[1].share, 0.4);
  EXPECT_EQ(place.optimizer.parts[2].tier, HomeTier::ssd);
  EXPECT_EQ(place.saved.parts.size(), 3u);
  spec = accepted(
      edited("steps = 10", "steps = 10\n  place { optimizer = host 40%, ssd, weights = ssd }"),
      {"train.place.gradients=host 12.5%, ssd"});
  EXPECT_EQ(place.optimizer.parts.size(), 2u);
  EXPECT_EQ(place.weights.parts.size(), 1u);
  EXPECT_EQ(place.gradients.parts[0].share, 0.125);
  FrontendResult result =
      compileText(edited("steps = 10", "steps = 10\n  place = host 12.5%, ssd"));
  EXPECT_EQ(compileText(result.ast).ast, result.ast);
}

// Layers by their number, then shares of those behind them.
TEST(FrontendTest, Layers) {
  std::string text = edited("steps = 10", "steps = 10\n  place { weights = device 1 layer, host 2 "
                                          "layers, host 40%, ssd, saved = ssd }");
  Spec spec = accepted(text, {"model.depth=3", "train.place.optimizer=host 3 layers, ssd"});
  const PlaceSettings &place = spec.plan.place;
  ASSERT_EQ(place.weights.parts.size(), 4u);
  EXPECT_EQ(place.weights.parts[0].layers, 1);
  EXPECT_EQ(place.weights.parts[1].layers, 2);
  EXPECT_EQ(place.weights.parts[2].layers, 0);
  EXPECT_EQ(place.weights.parts[2].share, 0.4);
  EXPECT_EQ(place.optimizer.parts[0].layers, 3);
  FrontendResult result = compileText(text, {"model.depth=3"});
  EXPECT_EQ(compileText(result.ast).ast, result.ast);
}

// Settings of a plan mean the same in the train block, and in --set.
TEST(FrontendTest, PlanSettingsMayStandInTheTrainBlock) {
  std::string text = edited("  micro_batch = 2\n", "  schedule = vertical(delay = 0.5)\n");
  std::string plan = edited("  micro_batch = 2\n", "");
  plan.insert(plan.find("machine laptop"), "plan { schedule = vertical(delay = 0.5) }\n\n");
  FrontendResult old = compileText(text, {"train.micro_batch=4", "train.place.saved=ssd"});
  FrontendResult now = compileText(plan, {"plan.micro_batch=4", "plan.place.saved=ssd"});
  ASSERT_EQ(old.diagnostics + now.diagnostics, "");
  EXPECT_EQ(old.ast, now.ast);
  EXPECT_EQ(now.spec->plan.delay, 0.5);
  EXPECT_EQ(now.spec->plan.micro_batch, 4);
  EXPECT_EQ(now.spec->plan.place.saved.parts[0].tier, HomeTier::ssd);
  // An option adds a plan where there is none.
  EXPECT_EQ(accepted(edited("  micro_batch = 2\n", ""), {"plan.update=device"}).plan.update,
            UpdatePlace::device);
}

TEST(FrontendTest, APlanIsSetOnce) {
  std::string text = edited("machine laptop", "plan { micro_batch = 4 }\n\nmachine laptop");
  EXPECT_NE(compileText(text).diagnostics.find("'micro_batch' is set twice"), std::string::npos);
  EXPECT_NE(compileText(edited("machine laptop", "plan { }\nplan { }\nmachine laptop"))
                .diagnostics.find("expected one plan but found another"),
            std::string::npos);
}

// An argument without a name is overridden by the name of its place.
TEST(FrontendTest, OverridesOfPlacedArguments) {
  std::string text =
      edited("adamw(lr = 1e-3)", "adamw(cosine(1e-3, 4))\n  evaluate = every(50, 3)");
  Spec spec = accepted(text, {"train.evaluate.steps=10", "train.optimizer.lr.peak=0.5",
                              "train.optimizer.lr.floor=0.25"});
  EXPECT_EQ(spec.train.evaluate_every, 10);
  EXPECT_EQ(spec.train.evaluate_batches, 3);
  EXPECT_EQ(spec.train.optimizer.peak, 0.5);
  EXPECT_EQ(spec.train.optimizer.floor, 0.25);
  EXPECT_EQ(spec.train.optimizer.warmup, 4);
  EXPECT_EQ(accepted(text, {"train.optimizer.lr=0.125"}).train.optimizer.peak, 0.125);
}

// A shell takes the quotes away.
TEST(FrontendTest, PathsWithoutQuotes) {
  FrontendResult result =
      compileText(kSpec, {"train.data= data/my x-1.txt ", "machine.ssd.path=/mnt/state#2"});
  EXPECT_EQ(result.diagnostics, "");
  ASSERT_TRUE(result.spec);
  EXPECT_EQ(result.spec->train.data, "data/my x-1.txt");
  ASSERT_EQ(result.spec->machine.ssd.size(), 1u);
  EXPECT_EQ(result.spec->machine.ssd[0].path, "/mnt/state#2");
  EXPECT_EQ(result.spec->machine.ssd[0].read, 200000000);
  EXPECT_EQ(compileText(result.ast).ast, result.ast);
  EXPECT_EQ(accepted(kSpec, {"machine.ssd.path=\"b\""}).machine.ssd[0].path, "b");
}

// A name before '{', '=' or a string is no unit, and a '{' that nothing stands
// before closes with its own '}'.
TEST(FrontendTest, SettingsOnOneLine) {
  Spec spec = accepted(edited("  batch = 8 sequences\n", "  batch = 32 place { weights = ssd }\n"));
  EXPECT_EQ(spec.train.batch, 32);
  EXPECT_EQ(spec.plan.place.weights.parts.front().tier, HomeTier::ssd);
  EXPECT_EQ(refusal("steps = 10", "steps = 10 { weights = ssd }"),
            "tiny.boa:21:14: error: expected a setting, 'name = value', but found '{'\n"
            "  steps = 10 { weights = ssd }\n"
            "             ^\n");
}

// Model, training and machine in files of their own; data beside its file.
TEST(FrontendTest, SeveralFiles) {
  std::string text = kSpec;
  size_t train = text.find("train tiny"), machine = text.find("machine");
  FrontendResult result = compileTexts({{"specs/run.boa", text.substr(train, machine - train)},
                                        {"laptop.boa", text.substr(machine)},
                                        {"models/tiny.boa", text.substr(0, train)}});
  EXPECT_EQ(result.diagnostics, "");
  ASSERT_TRUE(result.spec);
  EXPECT_EQ(result.spec->train.data, "specs/corpus.txt");
  EXPECT_EQ(result.spec->machine.name, "laptop");
}

// A file of a machine alone replaces the machine that a spec has; there can be one such file.
TEST(FrontendTest, MachineFile) {
  const InputText other{"other.boa", "machine other { host { memory = 3 GiB } }"};
  for (const std::vector<InputText> &inputs :
       {std::vector<InputText>{{"tiny.boa", kSpec}, other}, {other, {"tiny.boa", kSpec}}}) {
    FrontendResult result = compileTexts(inputs, {"machine.device.threads=2"});
    EXPECT_EQ(result.diagnostics, "");
    ASSERT_TRUE(result.spec);
    EXPECT_EQ(result.spec->machine.name, "other");
    EXPECT_EQ(result.spec->machine.host_memory, int64_t(3) << 30);
    EXPECT_EQ(result.spec->machine.device_memory, 0);
    EXPECT_EQ(result.spec->machine.threads, 2);
  }
  EXPECT_NE(compileTexts({{"tiny.boa", kSpec}, other, {"third.boa", "machine third { }"}})
                .diagnostics.find("third.boa:1:1: error: expected one machine but found another"),
            std::string::npos);
}

// So does a file of a plan alone, also where the train block has settings of the plan.
TEST(FrontendTest, PlanFile) {
  const InputText plan{"plan.boa", "plan { place = host }"};
  for (const std::vector<InputText> &inputs :
       {std::vector<InputText>{{"tiny.boa", kSpec}, plan}, {plan, {"tiny.boa", kSpec}}}) {
    FrontendResult result = compileTexts(inputs, {"plan.update=device"});
    EXPECT_EQ(result.diagnostics, "");
    ASSERT_TRUE(result.spec);
    EXPECT_EQ(result.spec->plan.micro_batch, 0);
    EXPECT_EQ(result.spec->plan.place.weights.parts[0].tier, HomeTier::host);
    EXPECT_EQ(result.spec->plan.update, UpdatePlace::device);
  }
  const std::string both = std::string(kSpec) + "plan { place = ssd }\n";
  EXPECT_EQ(compileTexts({{"tiny.boa", both}, plan}).diagnostics, "");
  EXPECT_NE(compileTexts({{"tiny.boa", both}, plan, {"third.boa", "plan { place = ssd }"}})
                .diagnostics.find("third.boa:1:1: error: expected one plan but found another"),
            std::string::npos);
}

// A path in an option is the user's, not the file's.
TEST(FrontendTest, DataOfAnOption) {
  FrontendResult result = compileTexts({{"specs/tiny.boa", kSpec}}, {"train.data=\"a.txt\""});
  ASSERT_TRUE(result.spec);
  EXPECT_EQ(result.spec->train.data, "a.txt");
}

// What --emit=ast prints is the language again, with the overrides in it.
TEST(FrontendTest, PrintedTreeParses) {
  FrontendResult first = compileText(kSpec, {"model.depth=1 + 2 * (heads - 1)"});
  EXPECT_EQ(first.diagnostics, "");
  EXPECT_EQ(count(first.ast, "depth = 1 + 2 * (heads - 1)"), 1u);
  EXPECT_EQ(compileText(first.ast).ast, first.ast);
}

TEST(FrontendTest, Examples) {
  for (const char *name : {"gpt", "llama", "bert"}) {
    FrontendResult result =
        compileFiles({std::string(BOA_SOURCE_DIR) + "/examples/" + name + ".boa"});
    EXPECT_EQ(result.diagnostics, "") << name;
    ASSERT_TRUE(result.spec) << name;
    EXPECT_EQ(result.spec->train.data, std::string(BOA_SOURCE_DIR) + "/examples/data/kjv.txt");
  }
}

TEST(FrontendTest, FileThatIsNotThere) {
  EXPECT_EQ(compileFiles({"no/such.boa"}).diagnostics,
            "error: cannot read 'no/such.boa': No such file or directory\n");
  EXPECT_EQ(compileFiles({}).diagnostics, "error: expected at least one spec file\n");
}

TEST(FrontendTest, EmptyText) {
  EXPECT_EQ(compileText("").diagnostics,
            "error: expected a model, 'model NAME(...) { ... }', but found none\n"
            "error: expected a train block, 'train MODEL { ... }', but found none\n");
}

// Columns count characters, not bytes; what is no UTF-8 is shown as '?'.
TEST(FrontendTest, OddCharacters) {
  EXPECT_EQ(compileText("ä\xff\x01 model").diagnostics,
            "tiny.boa:1:1: error: unexpected character 'ä'\nä?? model\n^~~\n"
            "tiny.boa:1:10: error: expected the name of the model but found the end of the "
            "text\nä?? model\n         ^\n");
}

// What editors and web pages put where a plain character was meant.
TEST(FrontendTest, TypographicCharacters) {
  EXPECT_EQ(refusal("\"corpus.txt\"", "“corpus.txt”"),
            "tiny.boa:18:10: error: unexpected character '“', a typographic quote: a string stands "
            "between two \"\n  data = “corpus.txt”\n         ^\n");
  EXPECT_EQ(refusal("lr = 1e-3", "lr = 1e–3"),
            "tiny.boa:22:28: error: unexpected character '–', a dash: a minus is written -\n"
            "  optimizer = adamw(lr = 1e–3)\n                           ^\n");
  std::string said = refusal("steps = 10", "steps\u00a0= 10");
  EXPECT_NE(said.find("a space of another kind: write a plain one"), std::string::npos) << said;
  said = compileText("\xff model").diagnostics;
  EXPECT_NE(said.find("unexpected byte \\xff, which is no UTF-8"), std::string::npos) << said;
}

// A byte order mark at the start is no character of the first line.
TEST(FrontendTest, ByteOrderMark) {
  std::string text = edited("model tiny", "modle tiny");
  EXPECT_EQ(compileText("\xef\xbb\xbf" + text).diagnostics, compileText(text).diagnostics);
  EXPECT_TRUE(compileText("\xef\xbb\xbf" + std::string(kSpec)).spec);
  std::string said = refusal("steps = 10", "steps = \xef\xbb\xbf 10");
  EXPECT_NE(said.find("a byte order mark, which can stand only at the start: delete it"),
            std::string::npos)
      << said;
}

// A spec from elsewhere cannot make the terminal do anything.
TEST(FrontendTest, ControlCharactersReachNoTerminal) {
  const std::string evil = "\x1b]0;owned\x07\x1b[2J\x7f\xc2\x9b"
                           "31m";
  std::string said = refusal("ssd \"state\" {", "ssd \"" + evil + "\" { } ssd \"" + evil + "\" {");
  EXPECT_NE(said.find("error: ssd \"\\x1b]0;owned\\x07\\x1b[2J\\x7f\\xc2\\x9b31m\" is given twice"),
            std::string::npos)
      << said;
  said += refusal("micro_batch = 2", "micro_batch = \"" + evil + "\"");
  said += compileTexts({{"na" + evil + "me.boa", "model"}}).diagnostics;
  said += compileFiles({"no" + evil + "where.boa"}).diagnostics;
  for (char c : said)
    EXPECT_TRUE(c == '\n' || (c != 0x7f && (unsigned char)(c) >= 0x20)) << said;
  EXPECT_EQ(said.find("\xc2\x9b"), std::string::npos) << said;
}

// Of many errors the first 20 are shown.
TEST(FrontendTest, ErrorsAreCapped) {
  std::string lines;
  for (int i = 0; i < 50; ++i)
    lines += "    let = 1\n";
  std::string text = compileText(edited("    return embedding(wte, tokens)\n", lines)).diagnostics;
  EXPECT_EQ(count(text, ": error: "), 20u);
  EXPECT_EQ(count(text, "error: too many errors, only the first 20 are shown\n"), 1u);
}

TEST(FrontendTest, NestingIsBounded) {
  for (const char *open : {"(", "-", "gelu(", "1 + ", "1 * ("}) {
    std::string value;
    for (int i = 0; i < 100000; ++i)
      value += open;
    std::string text = refusal("heads = 4", "heads = " + value + "1");
    EXPECT_EQ(count(text, "error: the expression nests more than 200 deep"), 1u) << open;
  }
  std::string blocks;
  for (int i = 0; i < 100000; ++i)
    blocks += "place { ";
  EXPECT_EQ(count(refusal("steps = 10", blocks), "error: settings nest more than 3 deep"), 1u);
}

// What an option puts into a call is as deep as if it had been written there.
TEST(FrontendTest, NestingOfAnOptionIsBounded) {
  auto nested = [](int calls) {
    std::string value = "1";
    for (int i = 0; i < calls; ++i)
      value = "sqrt(" + value + ")";
    return value;
  };
  std::string text = edited("steps = 10", "steps = 10\n  evaluate = every(50)");
  FrontendResult fits = compileText(text, {"train.evaluate.x=" + nested(198)});
  EXPECT_NE(fits.ast, "");
  EXPECT_EQ(compileText(fits.ast).ast, fits.ast);
  for (const char *path : {"train.evaluate.x=", "train.evaluate.steps="}) {
    FrontendResult deep = compileText(text, {path + nested(199)});
    EXPECT_EQ(count(deep.diagnostics, "error: the expression nests more than 200 deep"), 1u);
    EXPECT_EQ(deep.ast, "");
  }
  text = edited("adamw(lr = 1e-3)", "adamw(lr = constant(1))");
  EXPECT_EQ(compileText(text, {"train.optimizer.lr.peak=" + nested(197)}).diagnostics, "");
  EXPECT_EQ(count(compileText(text, {"train.optimizer.lr.peak=" + nested(198)}).diagnostics,
                  "error: the expression nests more than 200 deep"),
            1u);
}

TEST(FrontendTest, LongLineIsCut) {
  std::string text = refusal("heads = 4", std::string(100000, ' ') + "heads = @");
  EXPECT_LT(text.size(), 2000u);
}

TEST(FrontendTest, HugeText) {
  std::string text = compileText(std::string(5 << 20, '#')).diagnostics;
  EXPECT_EQ(count(text, "error: expected a text of at most 4 MiB but found 5242880 bytes"), 1u);
}

// Time and memory grow with the text and not faster, also where it is at the
// limit and full of errors.
TEST(FrontendTest, ManyOfEach) {
  auto repeated = [](int count, auto line) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += line(std::to_string(i));
    return text;
  };
  std::string head = "    return embedding(wte, tokens)\n";
  auto params = [](std::string i) { return "    param p" + i + ": [width] = ones\n"; };
  auto lets = [](std::string i) { return "    let v" + i + " = embedding(wte, tokens) + wpe\n"; };
  auto ssds = [](std::string i) { return "  ssd \"" + i + "\" { }\n"; };
  auto steps = [](std::string) { return "steps = 0 "; };
  auto stages = [](std::string i) { return "  stage s" + i + "() -> loss { }\n"; };
  EXPECT_EQ(count(refusal(head, repeated(60000, params) + head),
                  "a stage has at most 4096 parameters, 'embed' has more"),
            1u);
  EXPECT_EQ(count(refusal(head, repeated(60000, lets) + head), "too many errors"), 1u);
  EXPECT_EQ(count(refusal("  ssd \"state\"", repeated(60000, ssds) + "  ssd \"state\""),
                  "a machine has at most 64 ssds"),
            1u);
  EXPECT_EQ(count(refusal("  steps = 10", repeated(200000, steps)), "too many errors"), 1u);
  EXPECT_EQ(count(refusal("  layer block", repeated(60000, stages) + "  layer block"),
                  "expected at most 64 stages but found 60003"),
            1u);
}
