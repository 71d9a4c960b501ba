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
#include "llvm/ADT/StringSet.h"
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
    for (size_t i = 0; i < stages.size(); ++i)
      relate(i);
    freezeSome();
    findGradients();
    for (Stage &stage : stages)
      addGroups(stage);
    for (size_t i = 0; i < stages.size(); ++i)
      addStage(i);
    return "module {\n" + configuration() + "\n" + groups + functions + "}\n";
  }

private:
  struct Taken {
    std::string input; // of the model; else a result of a stage
    size_t from = 0, result = 0;
    bool carried = false, gradient = false, given = false;
  };
  struct Result {
    std::string type;
    int64_t given = 0;   // uses that write its gradient
    bool summed = false; // others add to it
    bool gradient = false;
  };
  struct Stage {
    std::string name;
    int64_t repeat;
    bool own;                         // has parameters
    std::string shares;               // those of another stage
    int64_t elements = 0, frozen = 0; // of its parameters, by whether they are trained
    bool trains = true;               // its results depend on a trained parameter
    std::vector<Taken> takes = {};
    std::vector<Result> results = {};
  };

  /// What a stage has of those before it: arguments, the parameters of as many layers.
  void relate(size_t index) {
    Stage &stage = stages[index];
    const bool last = index + 1 == stages.size();
    const int64_t count = last ? 1 : random.pick({1, 1, 1, 2, 3});
    if (index == 0) {
      stage.takes.push_back({"tokens"});
    } else if (stage.repeat == 1) {
      stage.takes.push_back(pickResult(index));
    } else {
      for (int64_t i = 0; i < count; ++i)
        stage.takes.push_back(pickResult(index));
      for (Taken &taken : stage.takes)
        taken.carried = true;
    }
    for (int64_t i = 0; i < count; ++i) {
      std::string type = index == 0
                             ? "tensor<4xf32>"
                             : typeOf(stage.takes[std::min(size_t(i), stage.takes.size() - 1)]);
      if (stage.repeat == 1 && random.chance(i == 0 ? 0.3 : 0.7))
        type = random.pick<std::string>(
            {"tensor<4xf32>", "tensor<6xbf16>", "tensor<2xi32>", "tensor<8xi8>"});
      stage.results.push_back({last ? "tensor<f32>" : type});
    }
    if (last)
      stage.takes.push_back({"targets"});
    if (random.chance(0.15))
      stage.takes.push_back({"document_starts"});
    const size_t begin = stage.takes.size();
    for (size_t i = 0; i < index; ++i) {
      for (size_t k = 0; k < stages[i].results.size(); ++k)
        if (random.chance(0.2) && !(stage.repeat == 1 && takes(stage, i, k)))
          stage.takes.push_back({"", i, k});
      if (stages[i].own && stages[i].repeat == stage.repeat && random.chance(0.3))
        stage.shares = stages[i].name;
    }
    if (begin == stage.takes.size() && random.chance(0.1))
      if (!llvm::any_of(stage.takes, [](const Taken &taken) { return taken.input == "tokens"; }))
        stage.takes.push_back({"tokens"});
  }

  static bool takes(const Stage &stage, size_t from, size_t result) {
    return llvm::any_of(stage.takes, [&](const Taken &taken) {
      return taken.input.empty() && taken.from == from && taken.result == result;
    });
  }

  /// Mostly the first result of the stage before, or any other.
  Taken pickResult(size_t index) {
    const size_t from = random.chance(0.8) ? index - 1 : size_t(random.below(index));
    const size_t results = stages[from].results.size();
    return {"", from, random.chance(0.6) ? 0 : size_t(random.below(results))};
  }

  std::string typeOf(const Taken &taken) {
    return taken.input.empty() ? stages[taken.from].results[taken.result].type : "tensor<2xi32>";
  }
  static bool isFloat(StringRef type) { return type.contains('f'); }

  /// Which uses write the gradients of a result, and which add to it: the rules of
  /// passes/model/Stages.h again.
  void findGradients() {
    for (Stage &stage : stages) {
      stage.trains = stage.elements || (!stage.shares.empty() && find(stage.shares).elements);
      for (const Taken &taken : stage.takes)
        stage.trains |= taken.input.empty() && isFloat(typeOf(taken)) && stages[taken.from].trains;
      for (Taken &taken : stage.takes) {
        taken.gradient = taken.input.empty() && isFloat(typeOf(taken)) &&
                         (stages[taken.from].trains || (taken.carried && stage.trains));
        if (!taken.gradient)
          continue;
        Result &result = stages[taken.from].results[taken.result];
        taken.given = taken.carried || (stage.repeat == 1 && result.given == 0 && !result.summed);
        result.given += taken.given;
        result.summed |= !taken.given;
      }
    }
    // The loss depends on a trained parameter.
    if (Stage &head = stages.back(); !head.trains) {
      head.elements = random.between(1, 128) * 32;
      head.trains = true;
    }
    for (Stage &stage : stages)
      for (Result &result : stage.results)
        result.gradient =
            stage.trains && isFloat(result.type) &&
            (stage.repeat > 1 || result.given > 0 || result.summed || &stage == &stages.back());
  }

  /// Of a sum of gradients.
  static std::string sumType(std::string type) {
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
    const bool last = index + 1 == stages.size();
    std::vector<std::string> forward, backward, results, returned, takes;
    for (const Taken &taken : stage.takes) {
      forward.push_back(typeOf(taken));
      if (taken.input.empty())
        takes.push_back(formatv("@{0}_forward[{1}]", stages[taken.from].name, taken.result).str());
      else
        takes.push_back("@" + taken.input);
      if (!taken.input.empty() && inputs.insert(taken.input).second)
        functions += formatv("boa.input @{0} from data : {1}\n", taken.input, typeOf(taken));
    }
    backward = forward;
    if (last)
      results.push_back("tensor<f32>");
    for (const Result &result : stage.results) {
      returned.push_back(result.type);
      if (result.gradient)
        backward.push_back(result.type);
    }
    for (bool given : {true, false})
      for (const Taken &taken : stage.takes)
        if (taken.gradient && taken.given == given)
          results.push_back(given ? typeOf(taken) : sumType(typeOf(taken)) + " {boa.sum}");
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
    std::string name = stage.name;
    declare(name + "_forward", forward, returned);
    if (saving && !last && stage.trains) {
      std::vector<std::string> saving = returned;
      saving.push_back("tensor<32xf32> {boa.saved}");
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
    for (auto [i, result] : llvm::enumerate(stage.results)) {
      if (last || !result.gradient || (!result.summed && result.given == 1))
        continue;
      std::vector<std::string> parts(size_t(result.given), result.type);
      if (result.summed)
        parts.push_back(sumType(result.type));
      declare(name + (i == 0 ? "" : "." + std::to_string(i)) + "_sum", parts, {result.type});
    }
    functions += formatv("boa.stage @{0}_forward({1}) repeat {2}\n", name, llvm::join(takes, ", "),
                         stage.repeat);
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
  llvm::StringSet<> inputs; // that functions declare
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
