//===- Generator.cpp ------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Generator.h"

#include "passes/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using llvm::formatv;

namespace boa::random {

const char *name(Kind kind) {
  const char *names[] = {"plain", "richer", "edited", "buffers"};
  return names[int(kind)];
}

bool verifies(ModuleOp module) {
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) { return success(); });
  return succeeded(verify(module));
}

namespace {

/// The model phase of some stages, as text: functions are declared, not defined.
class ChainWriter {
public:
  explicit ChainWriter(Random &random) : random(random) {}

  bool clipped = false, limited = false;

  std::string write() {
    saving = random.chance(0.25);
    int64_t inner = random.pick({0, 1, 1, 1, 2, 3});
    stages = {{"embed", 1, true, {}}};
    for (int64_t i = 0; i < inner; ++i)
      stages.push_back({"block" + std::to_string(i), random.between(1, 4), random.chance(0.9),
                        random.chance(0.2) ? "embed" : ""});
    stages.push_back({"head", 1, random.chance(0.8), random.chance(0.5) ? "embed" : ""});
    for (size_t i = 1; i < stages.size(); ++i)
      relate(i);
    freezeSome();
    for (Stage &stage : stages)
      addGroups(stage);
    for (size_t i = 0; i < stages.size(); ++i)
      addStage(i);
    return "module {\n" + configuration() + "\n" + groups + functions + "}\n";
  }

private:
  struct Stage {
    std::string name;
    int64_t repeat;
    bool own;                         // has parameters
    std::string shares;               // those of another stage
    int64_t elements = 0, frozen = 0; // of its parameters, by whether they are trained
    bool trains = true;               // its result depends on a trained parameter
    std::vector<size_t> sides = {};   // the stages whose results it takes besides
    std::string result = "tensor<4xf32>";
  };

  /// What a stage has of those before it: a type, side inputs, the parameters of as many layers.
  void relate(size_t index) {
    Stage &stage = stages[index];
    stage.result = stages[index - 1].result;
    if (stage.repeat == 1 && random.chance(0.3))
      stage.result = random.pick<std::string>({"tensor<4xf32>", "tensor<6xbf16>"});
    for (size_t i = 0; i < index; ++i) {
      if (random.chance(0.2))
        stage.sides.push_back(i);
      if (stages[i].own && stages[i].repeat == stage.repeat && random.chance(0.3))
        stage.shares = stages[i].name;
    }
  }

  /// Of the sum of the gradients of a side input.
  std::string sumType(size_t stage) {
    std::string type = stages[stage].result;
    return type.replace(type.rfind('x'), std::string::npos, "xf32>");
  }

  std::string place() {
    return random.pick<std::string>(
        {"\"ssd\"", "\"ssd\"", "\"ssd\"", "\"host\"", "\"device\"", "[\"host\", 0.4, \"ssd\"]",
         "[\"device\", 0.3, \"host\"]", "[\"device\", 0.3, \"host\", 0.3, \"ssd\"]",
         "[\"host\", 1, \"ssd\"]", "[\"device\", 1, \"host\", 0.4, \"ssd\"]"});
  }

  std::string configuration() {
    int64_t batches = random.between(1, 4);
    clipped = random.chance(0.25);
    limited = random.chance(0.25);
    std::string text =
        formatv("boa.config @train {{batch = {0} : i64, weights = \"{1}\", optimizer = {{kind = "
                "\"{2}\"}",
                batches, random.pick({"f32", "bf16"}), random.pick({"adamw", "sgd"}));
    std::string plan =
        formatv("boa.config @plan {{micro_batch = 1 : i64, update = \"{0}\", prefetch = {1} : i64",
                random.pick({"host", "device"}), random.between(0, 2));
    if (clipped)
      text += random.chance(0.5) ? ", clip = 1.0" : ", nonfinite = \"skip\"";
    text += "}\n" + plan;
    std::string everything = random.chance(0.5) ? "\"ssd\"" : "";
    text += ", place = {";
    const char *separator = "";
    for (const char *clause :
         {"weights", "gradients", "optimizer", "checkpoints", "boundary_gradients", "saved"}) {
      std::string where = everything.empty() ? place() : everything;
      text += separator + std::string(clause) + " = " + where;
      separator = ", ";
    }
    text +=
        "}}\nboa.config @machine {memory = " +
        std::string(random.pick({"\"unified\"", "\"separate\"", "\"separate\", direct = true"}));
    if (limited)
      for (const char *memory : {"device_memory", "host_memory"})
        text += formatv(", {0} = {1} : i64", memory, random.between(8, 512) * 4096).str();
    return text + "}";
  }

  Stage &find(StringRef name) {
    return *llvm::find_if(stages, [&](const Stage &stage) { return stage.name == name; });
  }

  /// All parameters of a stage, or some, but not those of all stages.
  void freezeSome() {
    const bool some = random.chance(0.3);
    auto size = [&] { return (random.between(1, 5) - 1) * 4096 + random.between(1, 128) * 32; };
    for (Stage &stage : stages) {
      if (!stage.own)
        continue;
      stage.elements = size();
      if (!some || random.chance(0.3))
        continue;
      stage.frozen = size();
      if (random.chance(0.6))
        stage.elements = 0;
    }
    if (llvm::all_of(stages, [](const Stage &stage) { return stage.elements == 0; }))
      stages.front().elements = size();
    bool before = llvm::none_of(stages, [](const Stage &stage) { return stage.frozen != 0; });
    for (Stage &stage : stages)
      before = stage.trains =
          before || stage.elements || (!stage.shares.empty() && find(stage.shares).elements);
  }

  void addGroups(const Stage &stage) {
    if (stage.elements)
      groups += formatv("boa.group @params.{0} repeat {1} {{ boa.param @w : tensor<{2}xf32> = "
                        "\"ones\" }\n",
                        stage.name, stage.repeat, stage.elements);
    if (stage.frozen)
      groups += formatv("boa.group @frozen.{0} repeat {1} frozen {{ boa.param @f : tensor<{2}xf32> "
                        "= \"ones\" }\n",
                        stage.name, stage.repeat, stage.frozen);
  }

  /// The trained and the frozen parameters of a stage; "" if it has none.
  std::string trainedOf(const Stage &stage) {
    return stage.elements ? formatv("tensor<{0}xf32> {{boa.param = @params.{1}::@w}",
                                    stage.elements, stage.name)
                                .str()
                          : "";
  }
  std::string frozenOf(const Stage &stage) {
    return stage.frozen
               ? formatv("tensor<{0}xf32> {{boa.param = @frozen.{1}::@f}", stage.frozen, stage.name)
                     .str()
               : "";
  }

  void addStage(size_t index) {
    const Stage &stage = stages[index];
    const bool first = index == 0, last = index + 1 == stages.size();
    std::string in = first ? "tensor<2xi32>" : stages[index - 1].result;
    std::vector<std::string> forward{in}, backward, results, sides;
    if (last)
      forward.push_back("tensor<2xi32>");
    const bool documents = random.chance(0.15);
    if (documents)
      forward.push_back("tensor<2xi32>");
    for (size_t side : stage.sides) {
      forward.push_back(stages[side].result);
      sides.push_back("@" + stages[side].name + "_forward");
    }
    backward = forward;
    backward.push_back(last ? "tensor<f32>" : stage.result);
    if (last)
      results.push_back("tensor<f32>");
    // The first stage that trains gives one between its own layers alone.
    if (!first && (stages[index - 1].trains || stage.repeat > 1))
      results.push_back(in);
    for (size_t side : stage.sides)
      if (stages[side].trains)
        results.push_back(sumType(side) + " {boa.sum}");
    std::vector<const Stage *> owners{&stage};
    if (!stage.shares.empty())
      owners.push_back(&find(stage.shares));
    // In either order: that of their first appearance decides.
    if (random.chance(0.3))
      std::reverse(owners.begin(), owners.end());
    for (const Stage *owner : owners)
      for (bool trained : {true, false})
        if (std::string pack = trained ? trainedOf(*owner) : frozenOf(*owner); !pack.empty()) {
          forward.push_back(pack);
          backward.push_back(pack);
          if (trained)
            results.push_back(pack);
        }
    std::string y = last ? "tensor<f32>" : stage.result;
    std::string name = stage.name;
    declare(name + "_forward", forward, {y});
    if (saving && !last && stage.trains) {
      std::vector<std::string> saving{y, "tensor<32xf32> {boa.saved}"};
      backward.push_back(saving.back());
      // One that lives elsewhere.
      if (random.chance(0.3)) {
        saving.push_back("tensor<32xf32> {boa.saved = \"h\", boa.place = " + place() + "}");
        backward.push_back("tensor<32xf32> {boa.saved = \"h\"}");
      }
      declare(name + "_forward_saving", forward, saving);
    }
    if (stage.trains)
      declare(name + "_backward", backward, results);
    if (stage.trains && llvm::any_of(stages, [&](const Stage &other) {
          return llvm::is_contained(other.sides, index);
        }))
      declare(name + "_sum", {stage.result, sumType(index)}, {stage.result});
    functions += formatv("boa.stage @{0}_forward repeat {1}{2}{3}\n", name, stage.repeat,
                         documents ? " documents" : "",
                         sides.empty() ? "" : " takes [" + llvm::join(sides, ", ") + "]");
  }

  void declare(const std::string &name, ArrayRef<std::string> inputs,
               ArrayRef<std::string> outputs) {
    functions += formatv("func.func private @{0}({1}) -> ({2})\n", name, llvm::join(inputs, ", "),
                         llvm::join(outputs, ", "));
  }

  Random &random;
  bool saving = false;
  std::vector<Stage> stages;
  std::string groups, functions;
};

} // namespace

Program generate(MLIRContext &context, uint64_t seed) {
  Random random(seed * 2 + 1);
  Program program;
  if (random.chance(0.25)) {
    program.kind = Kind::buffers;
    program.module = generateBuffers(context, random);
    return program;
  }
  ChainWriter chain(random);
  std::string text = chain.write();
  program.clipped = chain.clipped;
  program.limited = chain.limited;
  program.module = parseSourceString<ModuleOp>(text, &context);
  if (!program.module)
    llvm::report_fatal_error(llvm::Twine("the generator wrote what does not parse:\n") + text);
  PassManager pm(&context);
  pm.addPass(createBuildStep());
  if (failed(pm.run(*program.module)))
    llvm::report_fatal_error(llvm::Twine("no step could be built of:\n") + text);
  if (random.chance(0.1))
    findEntryPoint(*program.module, EntryPoint::evaluate).erase();
  double which = double(random.below(100));
  program.kind = which < 40 ? Kind::plain : which < 65 ? Kind::richer : Kind::edited;
  auto change = [&](auto how, int64_t times) {
    for (int64_t i = 0; i < times; ++i)
      if (std::string what; how(*program.module, random, what))
        program.changes.push_back(what);
  };
  if (program.kind == Kind::richer)
    change(addSomething, random.between(1, 3));
  if (program.kind == Kind::edited) {
    change(addSomething, random.pick({0, 0, 1}));
    change(editSomething, random.pick({1, 1, 2}));
  }
  return program;
}

} // namespace boa::random
