//===- SettingsTest.cpp - What settings and overrides refuse -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One case a rule, each the whole text that a user sees.
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Fixture.h"

using namespace boa::frontend;

TEST(TrainTest, MissingData) {
  EXPECT_EQ(refusal("  data = \"corpus.txt\"\n", ""),
            R"(tiny.boa:17:7: error: expected the setting 'data' in the train block
train tiny {
      ^~~~
)");
}

TEST(TrainTest, UnknownModel) {
  EXPECT_EQ(refusal("train tiny", "train tny"),
            R"(tiny.boa:17:7: error: no model is named 'tny', did you mean 'tiny'?
train tny {
      ^~~
tiny.boa:1:7: note: the model is 'tiny'
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2) {
      ^~~~
)");
}

TEST(TrainTest, UnknownSetting) {
  EXPECT_EQ(
      refusal("micro_batch = 2", "microbatch = 2"),
      R"(tiny.boa:20:3: error: a train block has no setting 'microbatch', did you mean 'micro_batch'?
  microbatch = 2
  ^~~~~~~~~~
)");
}

TEST(TrainTest, RepeatedSetting) {
  EXPECT_EQ(refusal("  micro_batch = 2", "  micro_batch = 2\n  micro_batch = 4"),
            R"(tiny.boa:21:3: error: 'micro_batch' is set twice
  micro_batch = 4
  ^~~~~~~~~~~
tiny.boa:20:3: note: first set here
  micro_batch = 2
  ^~~~~~~~~~~
)");
}

TEST(TrainTest, MicroBatchDividesBatch) {
  EXPECT_EQ(refusal("micro_batch = 2", "micro_batch = 3"),
            R"(tiny.boa:20:17: error: expected micro_batch = 3 to divide batch = 8
  micro_batch = 3
                ^
)");
}

TEST(TrainTest, WrongUnit) {
  EXPECT_EQ(refusal("8 sequences", "8 MiB"),
            R"(tiny.boa:19:13: error: expected batch in sequences but found 'MiB'
  batch = 8 MiB
            ^~~
)");
}

TEST(TrainTest, StepsOutOfRange) {
  EXPECT_EQ(refusal("steps = 10", "steps = 0"),
            R"(tiny.boa:21:11: error: expected steps between 1 and 1099511627776 but found 0
  steps = 0
          ^
)");
}

TEST(TrainTest, StepsNotWhole) {
  EXPECT_EQ(refusal("steps = 10", "steps = 1.5"),
            R"(tiny.boa:21:11: error: expected steps to be a whole number but found 1.5
  steps = 1.5
          ^~~
)");
}

TEST(TrainTest, DataIsNoString) {
  EXPECT_EQ(
      refusal("\"corpus.txt\"", "corpus"),
      R"(tiny.boa:18:10: error: expected data to be the path of a file, "...", but found corpus
  data = corpus
         ^~~~~~
)");
}

TEST(TrainTest, UnknownOptimizer) {
  EXPECT_EQ(
      refusal("adamw(", "adam("),
      R"(tiny.boa:22:15: error: expected optimizer to be adamw(...) or sgd(...) but found adam(lr = 0.001), did you mean 'adamw'?
  optimizer = adam(lr = 1e-3)
              ^~~~~~~~~~~~~~~
)");
}

TEST(TrainTest, OptimizerArgument) {
  EXPECT_EQ(
      refusal("lr = 1e-3", "rate = 1e-3"),
      R"(tiny.boa:22:21: error: expected lr, betas, eps or weight_decay in adamw(...) but found 'rate'
  optimizer = adamw(rate = 1e-3)
                    ^~~~
)");
}

TEST(TrainTest, OptimizerWithoutRate) {
  EXPECT_EQ(refusal("lr = 1e-3", "eps = 1e-8"),
            R"(tiny.boa:22:15: error: expected the argument 'lr' of adamw
  optimizer = adamw(eps = 1e-8)
              ^~~~~~~~~~~~~~~~~
)");
}

TEST(TrainTest, Betas) {
  EXPECT_EQ(refusal("lr = 1e-3", "lr = 1e-3, betas = (0.9, 1)"),
            R"(tiny.boa:22:46: error: expected a beta of at least 0 and less than 1 but found 1
  optimizer = adamw(lr = 1e-3, betas = (0.9, 1))
                                             ^
)");
}

TEST(TrainTest, BetasAreTwo) {
  EXPECT_EQ(refusal("lr = 1e-3", "lr = 1e-3, betas = 0.9"),
            R"(tiny.boa:22:40: error: expected betas to be two numbers, (a, b), but found 0.9
  optimizer = adamw(lr = 1e-3, betas = 0.9)
                                       ^~~
)");
}

TEST(TrainTest, RateOutOfRange) {
  EXPECT_EQ(refusal("lr = 1e-3", "lr = -1"),
            R"(tiny.boa:22:26: error: expected lr above 0 and at most 1000000 but found -1
  optimizer = adamw(lr = -1)
                         ^~
)");
}

TEST(TrainTest, UnknownRate) {
  EXPECT_EQ(
      refusal("lr = 1e-3", "lr = cosin(1e-3, 10)"),
      R"(tiny.boa:22:26: error: expected lr to be constant(...), linear(...) or cosine(...) but found cosin(0.001, 10), did you mean 'cosine'?
  optimizer = adamw(lr = cosin(1e-3, 10))
                         ^~~~~~~~~~~~~~~
)");
}

TEST(TrainTest, FloorOverPeak) {
  EXPECT_EQ(refusal("lr = 1e-3", "lr = cosine(1e-3, 10, 1e-2)"),
            R"(tiny.boa:22:43: error: expected floor to be at most peak
  optimizer = adamw(lr = cosine(1e-3, 10, 1e-2))
                                          ^~~~
)");
}

TEST(TrainTest, MaskToken) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  objective = masked(token = 64)"),
            R"(tiny.boa:22:30: error: expected token between 0 and 63 but found 64
  objective = masked(token = 64)
                             ^~
)");
}

TEST(TrainTest, Weights) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  weights = f16"),
      R"(tiny.boa:22:13: error: expected weights to be f32 or bf16 but found f16, did you mean 'bf16'?
  weights = f16
            ^~~
)");
}

// A word that stands for itself has nothing to do with arguments.
TEST(TrainTest, WordsTakeNoArguments) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  weights = f32(x = 3)"),
            R"(tiny.boa:22:13: error: 'f32' takes no arguments, but found f32(x = 3)
  weights = f32(x = 3)
            ^~~~~~~~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place = ssd(0)"),
            R"(tiny.boa:22:11: error: 'ssd' takes no arguments, but found ssd(0)
  place = ssd(0)
          ^~~~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place { saved = host() }"),
            R"(tiny.boa:22:19: error: 'host' takes no arguments, but found host()
  place { saved = host() }
                  ^~~~~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  objective = next_token(token = 3)"),
      R"(tiny.boa:22:15: error: 'next_token' takes no arguments, but found next_token(token = 3)
  objective = next_token(token = 3)
              ^~~~~~~~~~~~~~~~~~~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  schedule = vertical(recompute = true(1))"),
            R"(tiny.boa:22:35: error: 'true' takes no arguments, but found true(1)
  schedule = vertical(recompute = true(1))
                                  ^~~~~~~
)");
}

// Names of optimizers, rates and orders take the arguments that they have.
TEST(TrainTest, WordsTakeTheirOwnArguments) {
  EXPECT_EQ(refusal("adamw(lr = 1e-3)", "sgd(lr = 1e-3, betas = (0.9, 0.95))"),
            R"(tiny.boa:22:30: error: expected lr or momentum in sgd(...) but found 'betas'
  optimizer = sgd(lr = 1e-3, betas = (0.9, 0.95))
                             ^~~~~
)");
  EXPECT_EQ(refusal("lr = 1e-3", "lr = constant(peak = 1e-3, floor = 1e-4)"),
            R"(tiny.boa:22:48: error: expected peak or warmup in constant(...) but found 'floor'
  optimizer = adamw(lr = constant(peak = 1e-3, floor = 1e-4))
                                               ^~~~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  schedule = horizontal(snake = 1)"),
      R"(tiny.boa:22:25: error: expected delay, prefetch or recompute in horizontal(...) but found 'snake'
  schedule = horizontal(snake = 1)
                        ^~~~~
)");
}

TEST(TrainTest, ClipIsAboveZero) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  clip = 0"),
      R"(tiny.boa:22:10: error: expected clip above 0 and at most 1000000000000 but found 0; leave clip out, or write none, for no clipping
  clip = 0
         ^
)");
  EXPECT_EQ(
      overrideRefusal("train.clip=-1.5"),
      R"(--set:1:12: error: expected clip above 0 and at most 1000000000000 but found -1.5; leave clip out, or write none, for no clipping
train.clip=-1.5
           ^~~~
)");
}

TEST(TrainTest, Delay) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  schedule = vertical(delay = 1.5)"),
            R"(tiny.boa:22:31: error: expected delay between 0 and 1 but found 1.5
  schedule = vertical(delay = 1.5)
                              ^~~
)");
}

TEST(TrainTest, Recompute) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  schedule = vertical(recompute = 1)"),
            R"(tiny.boa:22:35: error: expected recompute to be true or false but found 1
  schedule = vertical(recompute = 1)
                                  ^
)");
}

TEST(TrainTest, Schedule) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  schedule = diagonal"),
      R"(tiny.boa:22:14: error: expected schedule to be vertical or horizontal but found diagonal
  schedule = diagonal
             ^~~~~~~~
)");
}

TEST(TrainTest, Evaluate) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  evaluate = 50"),
            R"(tiny.boa:22:14: error: expected evaluate to be every(...) but found 50
  evaluate = 50
             ^~
)");
}

TEST(TrainTest, Commit) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  commit = 50"),
            R"(tiny.boa:22:12: error: expected commit to be every(...) or end but found 50
  commit = 50
           ^~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  commit = end(3)"),
            R"(tiny.boa:22:12: error: 'end' takes no arguments, but found end(3)
  commit = end(3)
           ^~~~~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  commit = every(0)"),
      R"(tiny.boa:22:18: error: expected the interval of commit between 1 and 1099511627776 but found 0
  commit = every(0)
                 ^
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  commit = every(0 s)"),
      R"(tiny.boa:22:18: error: expected the interval of commit above 0 s and at most 1000000000 s but found 0 s
  commit = every(0 s)
                 ^~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  commit = every(5 mins)"),
      R"(tiny.boa:22:20: error: expected the interval of commit to be steps, such as 200, or a time, such as 5 min, but found the unit 'mins', did you mean 'min'?
  commit = every(5 mins)
                   ^~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  commit = every(200, keep = 0)"),
            R"(tiny.boa:22:30: error: expected keep between 1 and 1000 but found 0
  commit = every(200, keep = 0)
                             ^
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  commit = every(200, batches = 2)"),
            R"(tiny.boa:22:23: error: expected interval or keep in every(...) but found 'batches'
  commit = every(200, batches = 2)
                      ^~~~~~~
)");
}

// Where nothing is said a commit is made every five minutes.
TEST(TrainTest, CommitIsByStepsOrByTime) {
  struct {
    std::vector<std::string> overrides;
    int64_t every;
    double seconds;
    int64_t keep;
  } cases[] = {
      {{}, 0, 300, 1},
      {{"train.commit=end"}, 0, 0, 1},
      {{"train.commit=every(200)"}, 200, 0, 1},
      {{"train.commit=every(200 steps, 3)"}, 200, 0, 3},
      {{"train.commit=every(5 min)"}, 0, 300, 1},
      {{"train.commit=every(0.5s)"}, 0, 0.5, 1},
      {{"train.commit=every(2 h)"}, 0, 7200, 1},
      {{"train.commit=every(30 s, keep = 2)"}, 0, 30, 2},
      {{"train.commit=every(200)", "train.commit.interval=1min", "train.commit.keep=4"}, 0, 60, 4}};
  for (const auto &wanted : cases) {
    FrontendResult result = compileText(kSpec, wanted.overrides);
    ASSERT_TRUE(result.spec) << result.diagnostics;
    EXPECT_EQ(result.spec->train.commitEvery, wanted.every);
    EXPECT_EQ(result.spec->train.commitSeconds, wanted.seconds);
    EXPECT_EQ(result.spec->train.commitKeep, wanted.keep);
    // What is printed says the same again.
    FrontendResult again = compileText(result.ast);
    ASSERT_TRUE(again.spec) << again.diagnostics;
    EXPECT_EQ(again.spec->train.commitSeconds, wanted.seconds);
  }
}

TEST(TrainTest, Nonfinite) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  nonfinite = skp"),
      R"(tiny.boa:22:15: error: expected nonfinite to be stop or skip but found skp, did you mean 'skip'?
  nonfinite = skp
              ^~~
)");
  EXPECT_FALSE(compileText(kSpec).spec->train.skipNonfinite);
  // As with clipping, vertical order then updates in the next step.
  FrontendResult skips = compileText(kSpec, {"train.nonfinite=skip"});
  ASSERT_TRUE(skips.spec);
  EXPECT_TRUE(skips.spec->train.skipNonfinite);
  EXPECT_EQ(skips.spec->train.delay, 1);
  EXPECT_EQ(skips.spec->train.clip, 0);
}

TEST(TrainTest, Update) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  update = ssd"),
            R"(tiny.boa:22:12: error: expected update to be host or device but found ssd
  update = ssd
           ^~~
)");
  EXPECT_FALSE(compileText(kSpec).spec->train.updateOnDevice);
  FrontendResult device = compileText(kSpec, {"train.update=device"});
  ASSERT_TRUE(device.spec);
  EXPECT_TRUE(device.spec->train.updateOnDevice);
}

TEST(TrainTest, SkippingAndDelay) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  nonfinite = skip\n  schedule = vertical(delay = 0.5)"),
      R"(tiny.boa:23:31: error: to leave out a step, nonfinite = skip needs all gradients before the first update: delay must be 0 or 1
  schedule = vertical(delay = 0.5)
                              ^~~
tiny.boa:22:15: note: skipping is set here
  nonfinite = skip
              ^~~~
)");
}

TEST(TrainTest, Tier) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place = disk"),
            R"(tiny.boa:22:11: error: expected place to be device, host or ssd but found disk
  place = disk
          ^~~~
)");
}

TEST(TrainTest, Role) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place { optimizer = host 40% }"),
            R"(tiny.boa:22:32: error: expected ',' and another place after a share but found '}'
  place { optimizer = host 40% }
                               ^
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  place { optimizer = host 40%, ssd 60%, device }"),
      R"(tiny.boa:22:37: error: expected a share above 0% that leaves something for the rest but found 60% of 60%
  place { optimizer = host 40%, ssd 60%, device }
                                    ^~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  place { saved = host 40%, ssd }"),
      R"(tiny.boa:22:19: error: an activation is moved in one piece: expected one place for saved, not shares
  place { saved = host 40%, ssd }
                  ^~~~~~~~~~~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place { weight = ssd }"),
            R"(tiny.boa:22:11: error: place has no setting 'weight', did you mean 'weights'?
  place { weight = ssd }
          ^~~~~~
)");
}

TEST(TrainTest, SecondModel) {
  EXPECT_EQ(refusal("train tiny", "model other { }\ntrain tiny"),
            R"(tiny.boa:17:1: error: expected one model but found another
model other { }
^~~~~
tiny.boa:1:1: note: the first is here
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2) {
^~~~~
)");
}

TEST(MachineTest, SizeWithoutUnit) {
  EXPECT_EQ(
      refusal("256 MiB", "256"),
      R"(tiny.boa:25:25: error: expected memory with a unit, a size such as 256 MiB, but found 256
  device cpu { memory = 256 }
                        ^~~
)");
}

TEST(MachineTest, UnknownUnit) {
  EXPECT_EQ(
      refusal("256 MiB", "256 MIB"),
      R"(tiny.boa:25:29: error: expected memory to be a size such as 256 MiB but found the unit 'MIB', did you mean 'MiB'?
  device cpu { memory = 256 MIB }
                            ^~~
)");
}

TEST(MachineTest, SizeTooLarge) {
  EXPECT_EQ(refusal("256 MiB", "9000000000 GiB"),
            R"(tiny.boa:25:25: error: memory does not fit 64 bits
  device cpu { memory = 9000000000 GiB }
                        ^~~~~~~~~~~~~~
)");
}

TEST(MachineTest, SpeedWithoutSecond) {
  EXPECT_EQ(
      refusal("200 MB/s", "200 MB"),
      R"(tiny.boa:26:28: error: expected read to be a speed such as 200 MB/s but found the unit 'MB'
  ssd "state" { read = 200 MB  write = 100 MB/s }
                           ^~
)");
}

TEST(MachineTest, UnknownDevice) {
  EXPECT_EQ(
      refusal("device cpu", "device tpu"),
      R"(tiny.boa:25:10: error: expected 'device cpu', 'device split' or 'device cuda' but found 'device tpu'
  device tpu { memory = 256 MiB }
         ^~~
)");
}

TEST(MachineTest, UnknownMachineSetting) {
  EXPECT_EQ(refusal("  ssd \"state\"", "  sdd \"state\""),
            R"(tiny.boa:26:3: error: a machine has no setting 'sdd', did you mean 'ssd'?
  sdd "state" { read = 200 MB/s  write = 100 MB/s }
  ^~~
)");
}

TEST(MachineTest, SsdWithoutPath) {
  EXPECT_EQ(refusal("ssd \"state\"", "ssd"),
            R"(tiny.boa:26:3: error: expected the path of a folder after 'ssd', ssd "..."
  ssd { read = 200 MB/s  write = 100 MB/s }
  ^~~
)");
}

TEST(MachineTest, SameSsdTwice) {
  EXPECT_EQ(refusal("  ssd \"state\"", "  ssd \"state\" { }\n  ssd \"state\""),
            R"(tiny.boa:27:7: error: ssd "state" is given twice
  ssd "state" { read = 200 MB/s  write = 100 MB/s }
      ^~~~~~~
)");
}

TEST(OverrideTest, NoEquals) {
  EXPECT_EQ(overrideRefusal("train.steps"),
            R"(--set:1:1: error: expected PATH=VALUE, such as train.steps=50, but found no '='
train.steps
^~~~~~~~~~~
)");
}

TEST(OverrideTest, UnknownRoot) {
  EXPECT_EQ(
      overrideRefusal("trian.steps=5"),
      R"(--set:1:1: error: expected a path that begins with model, train or machine but found 'trian', did you mean 'train'?
trian.steps=5
^~~~~
)");
}

TEST(OverrideTest, UnknownConstantOverride) {
  EXPECT_EQ(overrideRefusal("model.dept=5"),
            R"(--set:1:7: error: model 'tiny' has no constant 'dept', did you mean 'depth'?
model.dept=5
      ^~~~
)");
}

TEST(OverrideTest, ShortPath) {
  EXPECT_EQ(
      overrideRefusal("steps=5"),
      R"(--set:1:1: error: expected a path of two to four names, such as train.steps, did you mean 'train.steps'?
steps=5
^~~~~
)");
}

// A setting is found by its own name, wherever it belongs.
TEST(OverrideTest, SettingsAreFoundByTheirLastName) {
  EXPECT_EQ(
      overrideRefusal("train.lr=1"),
      R"(--set:1:7: error: a train block has no setting 'lr', did you mean 'train.optimizer.lr'?
train.lr=1
      ^~
)");
  EXPECT_EQ(
      overrideRefusal("machine.memory=1GiB"),
      R"(--set:1:9: error: expected a path such as machine.host.memory or machine.device.memory, did you mean 'machine.device.memory' or 'machine.host.memory'?
machine.memory=1GiB
        ^~~~~~
)");
  EXPECT_EQ(
      overrideRefusal("machine.cpu.threads=2"),
      R"(--set:1:9: error: a machine has no setting 'cpu', did you mean 'machine.device.threads'?
machine.cpu.threads=2
        ^~~
)");
}

// A limit that is given is one: none is said by leaving it out, or by the word.
TEST(MachineTest, ZeroIsNoLimit) {
  const struct {
    const char *option, *said;
  } cases[] = {
      {"machine.device.memory=0",
       "expected memory of at least 1 B but found 0; leave memory out, or write none, for no "
       "limit\n"},
      {"machine.host.memory=0 GiB",
       "expected memory of at least 1 B but found 0 GiB; leave memory out, or write none, for no "
       "limit\n"},
      {"machine.host.memory=0.3 B",
       "expected memory of at least 1 B but found 0.3 B; leave memory out, or write none, for no "
       "limit\n"},
      {"machine.ssd.read=0", "expected read of at least 1 B/s but found 0; leave read out, or "
                             "write none, for no limit\n"},
      {"machine.ssd.write=0 MB/s",
       "expected write of at least 1 B/s but found 0 MB/s; leave write out, or write none, for no "
       "limit\n"},
      {"machine.device.threads=0",
       "expected threads between 1 and 4096 but found 0; leave threads out, or write none, for "
       "all\n"},
      {"train.evaluate=every(0)", "expected steps between 1 and 1099511627776 but found 0\n"},
      {"train.evaluate=every(1, batches = 0)",
       "expected batches between 1 and 1048576 but found 0\n"}};
  for (const auto &wanted : cases) {
    std::string said = overrideRefusal(wanted.option);
    EXPECT_NE(said.find(std::string("error: ") + wanted.said), std::string::npos) << said;
  }
}

TEST(MachineTest, NoneLiftsALimit) {
  std::vector<std::string> lifted;
  for (const char *path :
       {"machine.device.memory", "machine.host.memory", "machine.ssd.read", "machine.ssd.write",
        "machine.device.threads", "train.clip", "train.evaluate"})
    lifted.push_back(std::string(path) + "=none");
  FrontendResult result =
      compileText(edited("steps = 10", "steps = 10\n  clip = 2\n  evaluate = every(5)"), lifted);
  ASSERT_TRUE(result.spec) << result.diagnostics;
  EXPECT_EQ(result.spec->machine.deviceMemory, 0);
  EXPECT_EQ(result.spec->machine.ssds[0].read, 0);
  EXPECT_EQ(result.spec->machine.ssds[0].write, 0);
  EXPECT_EQ(result.spec->train.clip, 0);
  EXPECT_EQ(result.spec->train.evaluateEvery, 0);
  // What has a default cannot be absent.
  EXPECT_EQ(overrideRefusal("train.weights=none"),
            R"(--set:1:15: error: expected weights to be f32 or bf16 but found none
train.weights=none
              ^~~~
)");
}

// What a machine does in a second, for who simulates it: not said unless given.
TEST(MachineTest, Rates) {
  FrontendResult result = compileText(
      kSpec,
      {"machine.device.compute=312.5 TFLOP/s", "machine.device.compute_bf16=1 PFLOP/s",
       "machine.device.bandwidth=2 TB/s", "machine.device.to_device=25 GB/s",
       "machine.device.to_host=24 GB/s", "machine.host.optimizer=50 GB/s",
       "machine.host.bandwidth=200 GB/s", "machine.ssd.both=6 GB/s", "machine.ssd.latency=80 us"});
  ASSERT_TRUE(result.spec) << result.diagnostics;
  const MachineSpec &machine = result.spec->machine;
  EXPECT_EQ(machine.compute, 312500000000000);
  EXPECT_EQ(machine.computeBf16, 1000000000000000);
  EXPECT_EQ(machine.deviceBandwidth, 2000000000000);
  EXPECT_EQ(machine.toDevice, 25000000000);
  EXPECT_EQ(machine.toHost, 24000000000);
  EXPECT_EQ(machine.optimizer, 50000000000);
  EXPECT_EQ(machine.hostBandwidth, 200000000000);
  EXPECT_EQ(machine.ssds[0].both, 6000000000);
  EXPECT_EQ(machine.ssds[0].latency, 80000);
  result = compileText(kSpec);
  ASSERT_TRUE(result.spec) << result.diagnostics;
  EXPECT_EQ(result.spec->machine.compute, 0);
  EXPECT_EQ(result.spec->machine.computeBf16, 0);
  EXPECT_EQ(result.spec->machine.ssds[0].latency, 0);
  const std::pair<const char *, const char *> refusals[] = {
      {"machine.device.compute=3 TB/s", "expected compute to be a speed such as 300 TFLOP/s but "
                                        "found the unit 'TB/s'\n"},
      {"machine.device.compute=300", "expected compute with a unit, a speed such as 300 TFLOP/s, "
                                     "but found 300\n"},
      {"machine.ssd.latency=80 min", "expected latency to be a time such as 80 us but found the "
                                     "unit 'min'"},
      {"machine.host.optimizer=0", "expected optimizer of at least 1 B/s but found 0; leave "
                                   "optimizer out, or write none, for not said\n"}};
  for (auto [option, said] : refusals) {
    std::string text = overrideRefusal(option);
    EXPECT_NE(text.find(std::string("error: ") + said), std::string::npos) << text;
  }
}

TEST(OverrideTest, BadValue) {
  EXPECT_EQ(overrideRefusal("train.steps=5 6"),
            R"(--set:1:15: error: expected the end of the value but found '6'
train.steps=5 6
              ^
)");
}

TEST(OverrideTest, OutOfRange) {
  EXPECT_EQ(overrideRefusal("train.steps=-5"),
            R"(--set:1:13: error: expected steps between 1 and 1099511627776 but found -5
train.steps=-5
            ^~
)");
}

TEST(OverrideTest, OptionPointsAtItself) {
  EXPECT_EQ(overrideRefusal("model.heads=5"),
            R"(tiny.boa:11:35: error: expected heads = 5 to divide width = 32
    return x + attention(q, k, v, heads, causal)
                                  ^~~~~
--set:1:13: note: 'heads' is set here
model.heads=5
            ^
)");
}

TEST(OverrideTest, UnknownArgumentOverride) {
  EXPECT_EQ(
      overrideRefusal("train.optimizer.beta=5"),
      R"(--set:1:17: error: expected lr, betas, eps or weight_decay in adamw(...) but found 'beta', did you mean 'betas'?
train.optimizer.beta=5
                ^~~~
)");
}

TEST(OverrideTest, MachineUnit) {
  EXPECT_EQ(
      overrideRefusal("machine.host.memory=1GB/s"),
      R"(--set:1:22: error: expected memory to be a size such as 256 MiB but found the unit 'GB/s'
machine.host.memory=1GB/s
                     ^~~~
)");
}

TEST(OverrideTest, NoPart) {
  EXPECT_EQ(overrideRefusal("train.steps.x=5"),
            R"(--set:1:13: error: 'steps' has no part 'x'
train.steps.x=5
            ^
)");
}

TEST(TrainTest, RateIsNotZero) {
  EXPECT_EQ(refusal("lr = 1e-3", "lr = 0"),
            R"(tiny.boa:22:26: error: expected lr above 0 and at most 1000000 but found 0
  optimizer = adamw(lr = 0)
                         ^
)");
  EXPECT_EQ(refusal("lr = 1e-3", "lr = linear(0, 10)"),
            R"(tiny.boa:22:33: error: expected peak above 0 and at most 1000000 but found 0
  optimizer = adamw(lr = linear(0, 10))
                                ^
)");
}

TEST(TrainTest, ClippingAndDelay) {
  for (const char *order : {"vertical  ", "horizontal"})
    EXPECT_EQ(
        refusal("steps = 10",
                "steps = 10\n  clip = 1.5\n  schedule = " + std::string(order) + "(delay = 0.5)"),
        R"(tiny.boa:23:33: error: clipping by the global norm needs all gradients before the first update: delay must be 0 or 1
  schedule = )" +
            std::string(order) + R"((delay = 0.5)
                                ^~~
tiny.boa:22:10: note: clipping is set here
  clip = 1.5
         ^~~
)");
}

// Also where the other setting has its default, or another mistake.
TEST(OverrideTest, BatchUnitIsOneError) {
  const char *const said = R"(--set:1:16: error: expected batch in sequences but found 'MiB'
train.batch=32 MiB
               ^~~
)";
  EXPECT_EQ(overrideRefusal("train.batch=32 MiB"), said);
  EXPECT_EQ(compileText(kSpec, {"train.micro_batch=3", "train.batch=32 MiB"}).diagnostics, said);
}

TEST(OverrideTest, ConstantIsAtLeastOne) {
  EXPECT_EQ(overrideRefusal("model.width=0"),
            R"(--set:1:13: error: expected constant 'width' to be at least 1 but found 0
model.width=0
            ^
)");
  EXPECT_EQ(refusal("depth = 2", "depth = 2 - 4"),
            R"(tiny.boa:1:69: error: expected constant 'depth' to be at least 1 but found -2
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2 - 4) {
                                                                    ^~~~~
)");
}

// One error for all dimensions that a bad constant is part of.
TEST(OverrideTest, ConstantIsNoDimension) {
  EXPECT_EQ(overrideRefusal("model.width=1.5"),
            R"(tiny.boa:2:53: error: expected a dimension to be a whole number but found width
  stage embed(tokens: [context] token) -> [context, width] {
                                                    ^~~~~
--set:1:13: note: 'width' is set here
model.width=1.5
            ^~~
)");
}

TEST(OverrideTest, NoName) {
  EXPECT_EQ(overrideRefusal("train.a b=5"),
            R"(--set:1:7: error: expected a name in the path of the option
train.a b=5
      ^~~
)");
  EXPECT_EQ(overrideRefusal("train.let=5"),
            R"(--set:1:7: error: expected a name in the path of the option
train.let=5
      ^~~
)");
}

TEST(OverrideTest, NoPartOfAPart) {
  EXPECT_EQ(overrideRefusal("train.optimizer.lr.peak=5"),
            R"(--set:1:20: error: 'lr' has no part 'peak'
train.optimizer.lr.peak=5
                   ^~~~
)");
  EXPECT_EQ(overrideRefusal("train.optimizer.eps.x=5"),
            R"(--set:1:17: error: 'adamw' sets no 'eps' of which 'x' could be changed
train.optimizer.eps.x=5
                ^~~
)");
  EXPECT_EQ(overrideRefusal("train.place.saved.x=5"),
            R"(--set:1:19: error: 'saved' has no part 'x'
train.place.saved.x=5
                  ^
)");
}

TEST(OverrideTest, PathOfSeveralSsds) {
  EXPECT_EQ(compileText(edited("  ssd \"state\"", "  ssd \"a\" { }\n  ssd \"state\""),
                        {"machine.ssd.path=b"})
                .diagnostics,
            R"(--set:1:13: error: the machine has 2 ssds, of which each needs a path of its own
machine.ssd.path=b
            ^~~~
)");
}
