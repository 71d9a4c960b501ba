//===- MachineTest.cpp - What machines and overrides refuse ---------------===//
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

using namespace boa;
using namespace boa::frontend;

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

TEST(MachineTest, NeitherASizeNorAuto) {
  EXPECT_EQ(
      refusal("256 MiB", "autoo"),
      R"(tiny.boa:25:25: error: expected memory to be a size such as 256 MiB, or auto, but found autoo
  device cpu { memory = autoo }
                        ^~~~~
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
  EXPECT_EQ(result.spec->machine.device_memory, 0);
  EXPECT_EQ(result.spec->machine.ssd[0].read, 0);
  EXPECT_EQ(result.spec->machine.ssd[0].write, 0);
  EXPECT_EQ(result.spec->train.clip, 0);
  EXPECT_EQ(result.spec->train.evaluate_every, 0);
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
      kSpec, {"machine.device.compute=312.5 TFLOP/s", "machine.device.compute.bf16=1 PFLOP/s",
              "machine.device.bandwidth=2 TB/s", "machine.device.to_device=25 GB/s",
              "machine.device.to_host=24 GB/s", "machine.host.optimizer=50 GB/s",
              "machine.host.bandwidth=200 GB/s", "machine.ssd.both=6 GB/s",
              "machine.ssd.latency=80 us", "machine.device.both=40 GB/s"});
  ASSERT_TRUE(result.spec) << result.diagnostics;
  const MachineSettings &machine = result.spec->machine;
  EXPECT_EQ(machine.compute.f32, 312500000000000);
  EXPECT_EQ(machine.compute.bf16, 1000000000000000);
  EXPECT_EQ(machine.device_bandwidth.f32, 2000000000000);
  EXPECT_EQ(machine.to_device, 25000000000);
  EXPECT_EQ(machine.to_host, 24000000000);
  EXPECT_EQ(machine.optimizer, 50000000000);
  EXPECT_EQ(machine.host_bandwidth, 200000000000);
  EXPECT_EQ(machine.ssd[0].both, 6000000000);
  EXPECT_EQ(machine.ssd[0].latency, 80000);
  EXPECT_EQ(machine.both_ways, 40000000000);
  result = compileText(kSpec);
  ASSERT_TRUE(result.spec) << result.diagnostics;
  EXPECT_EQ(result.spec->machine.compute.f32, 0);
  EXPECT_EQ(result.spec->machine.compute.bf16, 0);
  EXPECT_EQ(result.spec->machine.ssd[0].latency, 0);
  const std::pair<const char *, const char *> refusals[] = {
      {"machine.device.compute=3 TB/s", "expected compute.f32 to be a speed such as 300 TFLOP/s "
                                        "but found the unit 'TB/s'\n"},
      {"machine.device.compute=300", "expected compute.f32 with a unit, a speed such as 300 "
                                     "TFLOP/s, but found 300\n"},
      {"machine.ssd.latency=80 min", "expected latency to be a time such as 80 us but found the "
                                     "unit 'min'"},
      {"machine.host.optimizer=0", "expected optimizer of at least 1 B/s but found 0; leave "
                                   "optimizer out, or write none, for not said\n"}};
  for (auto [option, said] : refusals) {
    std::string text = overrideRefusal(option);
    EXPECT_NE(text.find(std::string("error: ") + said), std::string::npos) << text;
  }
}

// A rate by format may be in a block or have a short form, in a file and for --set.
TEST(MachineTest, FormsOfARate) {
  const std::string device = "device cpu { memory = 256 MiB }";
  auto rates = [&](const std::string &settings, const std::vector<std::string> &overrides) {
    FrontendResult result =
        compileText(edited(device, "device cpu {\n" + settings + "\n}"), overrides);
    EXPECT_TRUE(result.spec) << result.diagnostics;
    std::vector<int64_t> all;
    auto add = [&](const SettingRow &, int64_t rate) { all.push_back(rate); };
    if (result.spec) {
      result.spec->machine.compute.Visit(add);
      result.spec->machine.compute_attention.Visit(add);
      result.spec->machine.device_bandwidth.Visit(add);
    }
    return all;
  };
  const std::string form = "compute { f32 = 1 TFLOP/s  bf16 = 2 TFLOP/s }\n"
                           "compute_attention { f32 = 3 TFLOP/s  bf16 = 4 TFLOP/s }\n"
                           "bandwidth { f32 = 5 TB/s  bf16 = 6 TB/s }";
  const std::string aliases = "compute = 1 TFLOP/s  compute_bf16 = 2 TFLOP/s\n"
                              "compute_attention = 3 TFLOP/s  compute_attention_bf16 = 4 TFLOP/s\n"
                              "bandwidth = 5 TB/s  bandwidth_bf16 = 6 TB/s";
  std::vector<int64_t> all = rates(form, {});
  EXPECT_EQ(all, (std::vector<int64_t>{1000000000000, 2000000000000, 3000000000000, 4000000000000,
                                       5000000000000, 6000000000000}));
  EXPECT_EQ(rates(aliases, {}), all);
  // Each form of an option replaces each form of a file, and another option.
  for (const std::string &file : {form, aliases, std::string()}) {
    for (const char *bf16 : {"compute.bf16", "compute_bf16"}) {
      const std::string path = std::string("machine.device.") + bf16;
      all = rates(file, {});
      all[1] = 7000000000000;
      EXPECT_EQ(rates(file, {path + "=9 TFLOP/s", path + "=7 TFLOP/s"}), all);
      all[1] = 0;
      EXPECT_EQ(rates(file, {path + "=none"}), all);
    }
  }
}

TEST(MachineTest, UnknownFormat) {
  EXPECT_EQ(
      refusal("memory = 256 MiB", "compute { f32 = 1 TFLOP/s  f16 = 2 TFLOP/s }"),
      R"(tiny.boa:25:43: error: expected a format, f32 or bf16, but found 'f16', did you mean 'bf16'?
  device cpu { compute { f32 = 1 TFLOP/s  f16 = 2 TFLOP/s } }
                                          ^~~
)");
  EXPECT_EQ(
      overrideRefusal("machine.device.compute.f16=2 TFLOP/s"),
      R"(--set:1:24: error: expected a format, f32 or bf16, but found 'f16', did you mean 'bf16'?
machine.device.compute.f16=2 TFLOP/s
                       ^~~
)");
  // A short form is there only of formats that have one.
  EXPECT_EQ(
      refusal("memory = 256 MiB", "compute_f16 = 2 TFLOP/s"),
      R"(tiny.boa:25:16: error: device has no setting 'compute_f16', did you mean 'compute.bf16'?
  device cpu { compute_f16 = 2 TFLOP/s }
               ^~~~~~~~~~~
)");
}

TEST(MachineTest, MalformedRate) {
  EXPECT_EQ(refusal("memory = 256 MiB", "compute_bf16 = 1 TFLOP/s  compute { bf16 = 2 TFLOP/s }"),
            R"(tiny.boa:25:52: error: 'compute.bf16' is set twice
  device cpu { compute_bf16 = 1 TFLOP/s  compute { bf16 = 2 TFLOP/s } }
                                                   ^~~~
tiny.boa:25:16: note: first set here
  device cpu { compute_bf16 = 1 TFLOP/s  compute { bf16 = 2 TFLOP/s } }
               ^~~~~~~~~~~~
)");
  EXPECT_EQ(refusal("memory = 256 MiB", "compute fast { f32 = 1 TFLOP/s }"),
            R"(tiny.boa:25:16: error: expected 'compute { ... }'
  device cpu { compute fast { f32 = 1 TFLOP/s } }
               ^~~~~~~
)");
  EXPECT_EQ(
      refusal("memory = 256 MiB", "compute_bf16 { f32 = 1 TFLOP/s }"),
      R"(tiny.boa:25:16: error: device has no setting 'compute_bf16', did you mean 'compute.bf16'?
  device cpu { compute_bf16 { f32 = 1 TFLOP/s } }
               ^~~~~~~~~~~~
)");
  EXPECT_EQ(
      overrideRefusal("machine.device.threads.f32=1"),
      R"(--set:1:9: error: expected a path such as machine.host.memory or machine.device.memory, did you mean 'machine.device.threads'?
machine.device.threads.f32=1
        ^~~~~~
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
      R"(--set:1:1: error: expected a path that begins with model, train, plan or machine but found 'trian', did you mean 'train'?
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
      R"(--set:1:17: error: expected lr, betas, eps, weight_decay or state in adamw(...) but found 'beta', did you mean 'betas'?
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
