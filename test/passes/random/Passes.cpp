//===- Passes.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Passes.h"

#include "passes/Passes.h"
#include "passes/analysis/TranslationValidation.h"
#include "test/passes/random/Mutations.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/PrettyStackTrace.h"

using namespace mlir;

namespace boa::random {

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

/// Instead of a pass: changes of a program in the storage phase that leave what it means.
static constexpr const char *kShake = "changes";

/// Whether what the trainer brings and takes lives where it did: on the device, always.
static bool portsAreSame(ModuleOp module, ModuleOp changed) {
  for (auto storage : module.getOps<StorageOp>())
    if (!storage.getPersistent() && (storage.isLiveIn() || storage.isLiveOut()) &&
        changed.lookupSymbol<StorageOp>(storage.getSymName()).getHomes() != storage.getHomes())
      return false;
  return true;
}

static constexpr const char *kFirstOfStorage = "insert-offload";

/// Mutations that --boa-verify-storage accepts. Copies are retained by --boa-retain-buffers
/// alone; before it none is expected.
static void shake(ModuleOp module, Random &random) {
  std::vector<std::string> kinds = mutationKinds();
  llvm::erase(kinds, "a retain flipped");
  for (int64_t tries = random.between(1, 8); tries; --tries) {
    OwningOpRef<ModuleOp> changed = module.clone();
    std::string said;
    if (mutate(*changed, random.pick(kinds), Observations(), random) && verifies(*changed) &&
        portsAreSame(module, *changed) &&
        runPass(*changed, {"", [] { return createVerifyStorage(); }}, said))
      module.getBodyRegion().takeBody(changed->getBodyRegion());
  }
}

std::vector<Step> choosePasses(Random &random) {
  std::vector<Step> steps;
  if (random.chance(0.7)) {
    VerticalScheduleOptions options;
    options.snake = random.chance(0.7);
    steps.push_back({llvm::formatv("vertical-schedule snake={0}", bool(options.snake)),
                     [=] { return createVerticalSchedule(options); }});
  }
  if (random.chance(0.8)) {
    SplitOptimizerOptions options;
    options.delay = random.pick({0.0, 0.25, 0.5, 1.0});
    steps.push_back({llvm::formatv("split-optimizer delay={0}", double(options.delay)),
                     [=] { return createSplitOptimizer(options); }});
  }
  auto sometimes = [&](double share, const char *name, auto make) {
    if (random.chance(share))
      steps.push_back({name, [=] { return make(); }});
  };
  auto verifyStorage = [] { return createVerifyStorage(); };
  sometimes(0.8, "verify-step", [] { return createVerifyStep(); });
  sometimes(1, kFirstOfStorage, [] { return createInsertOffload(); });
  sometimes(0.1, "verify-storage", verifyStorage);
  if (random.chance(0.3))
    steps.push_back({kShake, nullptr});
  sometimes(0.85, "hoist-prefetch", [] { return createHoistPrefetch(); });
  sometimes(0.1, "verify-storage", verifyStorage);
  if (random.chance(0.1))
    steps.push_back({kShake, nullptr});
  sometimes(0.85, "elide-transfers", [] { return createElideTransfers(); });
  sometimes(0.1, "verify-storage", verifyStorage);
  sometimes(0.85, "retain-buffers", [] { return createRetainBuffers(); });
  sometimes(0.1, "verify-storage", verifyStorage);
  sometimes(0.85, "elide-offloads", [] { return createElideOffloads(); });
  sometimes(0.3, "verify-storage", verifyStorage);
  sometimes(0.7, "assign-buffers", [] { return createAssignBuffers(); });
  sometimes(1, "verify-storage", verifyStorage);
  return steps;
}

bool runPass(ModuleOp module, const Step &step, std::string &said) {
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      said += diagnostic.str() + "\n";
    return success();
  });
  PassManager pm(module.getContext());
  pm.addPass(step.make());
  return succeeded(pm.run(module));
}

/// An error without what differs from program to program.
static std::string firstWords(StringRef said) {
  std::string words;
  for (char c : said.take_until([](char c) { return c == '\n' || c == ':'; }).take_front(90))
    words += isdigit(c) ? '#' : c;
  return words;
}

std::string checkProgram(MLIRContext &context, uint64_t seed, Tally &tally,
                         OwningOpRef<ModuleOp> *left) {
  llvm::PrettyStackTraceFormat stack("the random program of BOA_RANDOM_SEED=%llu",
                                     (unsigned long long)seed);
  Program program = generate(context, seed);
  ModuleOp module = *program.module;
  Random random(seed * 2 + 2);
  std::vector<Step> steps = choosePasses(random);
  if (program.kind == Kind::buffers)
    while (steps.front().name != kFirstOfStorage)
      steps.erase(steps.begin());
  ++tally.programs[program.kind];
  std::string plain = print(module), before, passes;
  auto wrong = [&](const std::string &what) {
    std::string changes;
    for (const std::string &change : program.changes)
      changes += "; " + change;
    return llvm::formatv("BOA_RANDOM_SEED={0}, {1}{2}: {3}\nafter{4}\n=== the plain program\n{5}\n"
                         "=== before the last pass\n{6}\n=== after it\n{7}\n",
                         seed, name(program.kind), changes, what, passes, plain, before,
                         print(module))
        .str();
  };
  Observations reference = observe(module);
  bool means = reference.undefined.empty() && reference.fault.empty();
  if (!means && program.kind == Kind::plain)
    return wrong("the plain program means nothing: " + reference.undefined + reference.fault);
  tally.meaningless[program.kind] += !means;
  if (program.kind == Kind::buffers) {
    // Steps of these need not depend on one another, as boa.computes expects (RandomTest.cpp).
    llvm::erase_if(steps, [](const Step &step) {
      return step.name == kFirstOfStorage || step.name == kShake;
    });
    // As --boa-insert-offload says it.
    module->setAttr(kComputesAttr,
                    Builder(&context).getI64IntegerAttr(TracedComputation::compute(module).hash()));
  }
  for (const Step &step : steps) {
    llvm::PrettyStackTraceString inPass(step.name.c_str());
    before = print(module);
    passes += " " + step.name;
    std::string said;
    if (step.name == kShake)
      shake(module, random);
    else if (!runPass(module, step, said)) {
      if (said.empty())
        return wrong("it is refused without a word");
      ++tally.refused[step.name];
      if (const char *show = std::getenv("BOA_RANDOM_SHOW"); show && StringRef(said).contains(show))
        llvm::errs() << wrong("shown: " + said);
      ++tally.messages[StringRef(step.name).split(' ').first.str() + ": " + firstWords(said)];
      bool split = StringRef(step.name).starts_with("split-optimizer delay=0.");
      if (program.kind == Kind::plain) {
        ++tally.plainRefused;
        if (!(step.name == "assign-buffers" && program.limited) && !(split && program.clipped))
          return wrong("a plain program is refused: " + said);
      }
      return "";
    }
    Observations seen = observe(module);
    if (step.name == "verify-step" && !(seen.undefined.empty() && seen.fault.empty()))
      return wrong("it verifies, but means nothing: " + seen.undefined + seen.fault);
    // What the step phase may say and no memory can: --boa-verify-storage has to refuse it.
    if (StringRef(seen.fault).ends_with("two operands in one memory"))
      means = false;
    if (!means)
      continue;
    bool split = StringRef(step.name).starts_with("split-optimizer");
    if (std::string what = findDifference(reference, seen, !split); !what.empty())
      return wrong("it means something else: " + what + "; " + seen.undefined + seen.fault);
    if (split)
      reference = seen;
  }
  Observations last = observe(module, 2);
  if (!last.undefined.empty() || !last.fault.empty())
    return wrong("it came through, but is broken: " + last.undefined + last.fault);
  tally.mended += !means;
  tally.takenUp += last.takenUp;
  ++tally.whole[program.kind];
  if (left)
    *left = std::move(program.module);
  return "";
}

std::string checkMutants(ModuleOp module, int64_t count, Random &random, FatesByKind &fates) {
  Observations reference = observe(module);
  std::string wrong;
  std::vector<std::string> kinds = mutationKinds();
  for (int64_t i = 0; i < count && wrong.empty(); ++i) {
    const std::string &kind = random.pick(kinds);
    Fates &fate = fates[kind];
    OwningOpRef<ModuleOp> mutant = module.clone();
    if (!mutate(*mutant, kind, reference, random))
      continue;
    if (!verifies(*mutant)) {
      ++fate.byOps;
      continue;
    }
    std::string said;
    Step verify{"verify-storage", [] { return createVerifyStorage(); }};
    if (!runPass(*mutant, verify, said)) {
      ++fate.byPass;
      continue;
    }
    std::string difference;
    for (uint64_t garbage = 1; garbage <= 3 && difference.empty(); ++garbage) {
      Observations seen = observe(*mutant, garbage);
      difference = seen.fault.empty() ? seen.undefined : seen.fault;
      if (difference.empty())
        difference = findDifference(reference, seen, /*pending=*/true);
    }
    if (difference.empty()) {
      ++fate.equivalent;
      continue;
    }
    ++fate.bad;
    wrong = llvm::formatv("{0}, which --boa-verify-storage accepts: {1}\n=== the program\n{2}\n"
                          "=== the mutant\n{3}\n",
                          kind, difference, print(module), print(*mutant));
  }
  return wrong;
}

} // namespace boa::random
