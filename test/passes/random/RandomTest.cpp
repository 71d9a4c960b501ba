//===- RandomTest.cpp - Random programs, and mutants ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Mutations.h"
#include "test/passes/random/Passes.h"

#include "dialect/Boa.h"
#include "frontend/Frontend.h"
#include "frontend/IRGen.h"
#include "passes/Pipeline.h"
#include "passes/kernels/KernelPipeline.h"

#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace boa::random;

namespace {

/// As many as take some seconds.
constexpr int64_t kPrograms = 500;

int64_t setting(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

/// Attributes and types are never given back: a new one for every so many programs.
class Contexts {
public:
  MLIRContext &get() {
    if (uses++ % 200 == 0) {
      context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
      context->loadDialect<boa::BoaDialect, arith::ArithDialect, func::FuncDialect>();
    }
    return *context;
  }

private:
  std::unique_ptr<MLIRContext> context;
  int64_t uses = 0;
};

void report(const Tally &tally) {
  for (auto [kind, count] : tally.programs)
    llvm::outs() << name(kind) << ": " << count << " programs, of which "
                 << tally.meaningless.at(kind) << " mean nothing; "
                 << (tally.whole.count(kind) ? tally.whole.at(kind) : 0) << " came through\n";
  for (auto &[pass, count] : tally.refused)
    llvm::outs() << "refused by " << pass << ": " << count << "\n";
  if (std::getenv("BOA_RANDOM_MESSAGES"))
    for (auto &[message, count] : tally.messages)
      llvm::outs() << "  " << count << " x " << message << "\n";
  llvm::outs() << "of plain ones refused: " << tally.plainRefused
               << "; mended by a pass: " << tally.mended
               << "; retained copies taken up: " << tally.takenUp << "\n";
  llvm::outs().flush();
}

/// To refuse everything keeps the meaning, too.
void expectEnough(Tally &tally) {
  EXPECT_GT(tally.whole[Kind::plain], tally.programs[Kind::plain] * 3 / 4);
  EXPECT_GT(tally.whole[Kind::richer], tally.programs[Kind::richer] / 2);
  EXPECT_GT(tally.whole[Kind::edited], tally.programs[Kind::edited] / 6);
  EXPECT_GT(tally.meaningless[Kind::edited], tally.programs[Kind::edited] / 3);
  EXPECT_GT(tally.takenUp, 0);
  for (const char *pass : {"vertical-schedule snake=true", "vertical-schedule snake=false",
                           "split-optimizer delay=0.25", "split-optimizer delay=1.00",
                           "verify-step", "insert-offload", "assign-buffers", "verify-storage"})
    EXPECT_GT(tally.refused[pass], 0) << pass;
}

} // namespace

// Every pass keeps the meaning, or refuses.
TEST(Random, PassesKeepTheMeaningOrRefuse) {
  int64_t count = setting("BOA_RANDOM_PROGRAMS", kPrograms), only = setting("BOA_RANDOM_SEED", -1);
  int64_t most = setting("BOA_RANDOM_FAILURES", 3);
  Tally tally;
  Contexts contexts;
  int64_t failures = 0;
  for (int64_t seed = only < 0 ? 0 : only; seed < (only < 0 ? count : only + 1); ++seed) {
    std::string wrong = checkProgram(contexts.get(), seed, tally);
    if (wrong.empty())
      continue;
    ADD_FAILURE() << wrong;
    if (++failures == most)
      break;
  }
  report(tally);
  if (only < 0 && count >= 300)
    expectEnough(tally);
}

namespace {

void report(const FatesByKind &fates) {
  for (auto &[kind, fate] : fates)
    llvm::outs() << kind << ": " << fate.byOps << " refused by the verifiers of ops, "
                 << fate.byPass << " by --boa-verify-storage, " << fate.equivalent
                 << " equivalent, " << fate.bad << " accepted though different\n";
  llvm::outs().flush();
}

/// Each kind was tried, and refused where it mattered.
void expectRefused(const FatesByKind &fates) {
  for (auto &[kind, fate] : fates)
    if (fate.byOps + fate.byPass + fate.equivalent >= 20) {
      EXPECT_GT(fate.byOps + fate.byPass, 0) << kind;
    }
  EXPECT_GT(fates.at("a slot too few").byPass, 0);
  EXPECT_EQ(fates.at("a slot too few").equivalent, 0);
  EXPECT_EQ(fates.at("a release removed").equivalent, 0);
  EXPECT_GT(fates.at("a copy removed").byPass, 0);
}

} // namespace

// Faults put into what came through.
TEST(Random, MutantsAreRefused) {
  int64_t count = setting("BOA_RANDOM_PROGRAMS", kPrograms) / 4;
  int64_t only = setting("BOA_RANDOM_SEED", -1);
  int64_t most = setting("BOA_RANDOM_FAILURES", 3), failures = 0;
  Tally tally;
  FatesByKind fates;
  Contexts contexts;
  for (int64_t seed = only < 0 ? 0 : only; seed < (only < 0 ? count : only + 1); ++seed) {
    OwningOpRef<ModuleOp> compiled;
    checkProgram(contexts.get(), seed, tally, &compiled);
    // What was compiled from the step phase on: boa.computes says the state that steps come
    // to, which shows each fault where every step depends on the one before it.
    if (!compiled)
      continue;
    Random random(mix(seed, 4711));
    std::string wrong = checkMutants(*compiled, 20, random, fates);
    if (wrong.empty())
      continue;
    ADD_FAILURE() << "BOA_RANDOM_SEED=" << seed << ": " << wrong;
    if (++failures == most)
      break;
  }
  report(fates);
  if (only < 0 && count >= 100)
    expectRefused(fates);
}

// Faults put into what becomes of the examples.
class RandomExample : public testing::TestWithParam<const char *> {};

TEST_P(RandomExample, MutantsAreRefused) {
  boa::frontend::FrontendResult result = boa::frontend::compileFiles(
      {BOA_SOURCE_DIR "/examples/" + std::string(GetParam()) + ".boa"}, {"model.depth=2"});
  ASSERT_TRUE(result.spec) << result.diagnostics;
  FatesByKind fates;
  Random random(17);
  for (double delay : {0.0, 0.25, 1.0})
    for (bool vertical : {true, false})
      for (const char *memory : {"unified", "separate"}) {
        // The storage phase compiles a copy of the kernels, for their workspace.
        DialectRegistry registry;
        boa::registerKernelDialects(registry);
        MLIRContext context(registry, MLIRContext::Threading::DISABLED);
        context.loadDialect<boa::BoaDialect, arith::ArithDialect, func::FuncDialect>();
        auto module = boa::frontend::generateModel(*result.spec, context);
        NamedAttrList machine(boa::getConfig(*module, boa::kMachineConfig));
        machine.set("memory", StringAttr::get(&context, memory));
        boa::setConfig(*module, boa::kMachineConfig, machine.getDictionary(&context));
        boa::PlanSettings plan = boa::Config(*module).plan;
        plan.delay = delay;
        plan.schedule = vertical ? boa::Schedule::vertical : boa::Schedule::horizontal;
        boa::writeConfig(*module, boa::kPlanConfig, plan);
        boa::PipelineOptions options;
        options.target = boa::Target::get(boa::Config(*module).machine);
        options.stop = boa::Phase::storage;
        PassManager pm(&context);
        boa::buildPipeline(pm, options);
        ASSERT_TRUE(succeeded(pm.run(*module)));
        EXPECT_EQ(checkMutants(*module, setting("BOA_RANDOM_MUTANTS", 10), random, fates), "");
      }
  report(fates);
}

INSTANTIATE_TEST_SUITE_P(Examples, RandomExample, testing::Values("gpt", "llama", "bert"));

int main(int argc, char **argv) {
  llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  llvm::EnablePrettyStackTrace();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
