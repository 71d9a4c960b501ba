//===- GenericTest.cpp - Mutants of IR in generic form --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs of every phase, changed as text, and sent through the rest of the pipeline. A mutant
// may be refused, with an error, or come through. It may not crash, nor take more processor time
// or memory than the limits below. So mutants run in processes of their own, some in each.
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/GenericText.h"
#include "test/passes/random/Phases.h"

#include "frontend/Frontend.h"
#include "frontend/IRGen.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/target/Target.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassRegistry.h"

#include "gtest/gtest.h"

#include <csignal>
#include <cstring>
#include <fstream>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace boa::random;

namespace {

/// As many as take some seconds.
constexpr int64_t kMutants = 500;
constexpr int64_t kSecondsOfMutant = 20, kBytesOfMutant = int64_t(2) << 30;
/// Attributes and types are never given back: a process has so many mutants.
constexpr int64_t kMutantsOfProcess = 40;

int64_t setting(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

//===----------------------------------------------------------------------===//
// Programs, by phase
//===----------------------------------------------------------------------===//

/// A module before the pass `next` of a pipeline.
struct Program {
  std::string name, text;
  boa::Purpose purpose;
  boa::DeviceKind device;
  size_t next;
};

struct Source {
  const char *example;
  boa::Purpose purpose;
  std::vector<std::string> settings;
  boa::DeviceKind device = boa::DeviceKind::cpu;
};

const std::vector<Source> &sources() {
  const std::string tiny[] = {"model.depth=2", "model.context=4", "model.width=8"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), std::begin(tiny), std::end(tiny));
    return more;
  };
  static const std::vector<Source> all = {
      {"gpt", boa::Purpose::train,
       with({"model.heads=2", "model.vocab=16", "train.batch=2", "plan.micro_batch=1",
             "train.clip=1", "plan.place=host", "plan.schedule=horizontal"})},
      {"llama", boa::Purpose::train,
       with({"model.heads=2", "model.kv_heads=1", "model.hidden=8", "model.vocab=16",
             "train.batch=4", "plan.micro_batch=2", "plan.vocabulary_blocks=2"})},
      {"bert", boa::Purpose::train,
       with({"model.heads=2", "train.batch=4", "plan.micro_batch=2",
             "plan.schedule.recompute=false", "plan.place.saved=ssd"})},
      {"llama", boa::Purpose::generate,
       with({"model.heads=2", "model.kv_heads=1", "model.hidden=8", "model.vocab=16"})},
      {"gpt", boa::Purpose::predict, with({"model.heads=2", "model.vocab=16"})},
      {"llama", boa::Purpose::train,
       with({"model.heads=2", "model.kv_heads=1", "model.hidden=8", "model.vocab=16",
             "train.batch=4", "plan.micro_batch=2", "train.weights=bf16", "train.compute=bf16"}),
       boa::DeviceKind::cuda},
  };
  return all;
}

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry.insert<boa::BoaDialect>();
  boa::registerKernelDialects(registry);
  boa::registerCudaDialects(registry);
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

std::string printGeneric(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags().printGenericOpForm());
  return text;
}

/// Of all sources, each before those passes that begin a phase.
std::vector<Program> makePrograms() {
  std::vector<Program> programs;
  for (const Source &source : sources()) {
    const std::string examples = BOA_SOURCE_DIR "/examples/";
    std::vector<std::string> files{examples + source.example + ".boa"};
    if (source.device == boa::DeviceKind::cuda)
      files.push_back(examples + "machines/rtx-4090.boa");
    boa::frontend::FrontendResult result = boa::frontend::compileFiles(files, source.settings);
    EXPECT_TRUE(result.spec) << result.diagnostics;
    if (!result.spec)
      continue;
    boa::frontend::IRGenOptions options;
    if (source.purpose != boa::Purpose::train)
      options.batch = options.microBatch = 1;
    auto context = makeContext();
    auto module = boa::frontend::generateModel(*result.spec, *context, options);
    for (auto [i, pass] : llvm::enumerate(passesOf(source.purpose, source.device))) {
      if (pass.beginsPhase)
        programs.push_back({llvm::formatv("{0} before {1}", source.example, pass.text),
                            printGeneric(*module), source.purpose, source.device, i});
      PassManager pm(context.get());
      EXPECT_TRUE(succeeded(parsePassPipeline(pass.text, pm))) << pass.text;
      EXPECT_TRUE(succeeded(pm.run(*module))) << source.example << ", " << pass.text;
    }
  }
  return programs;
}

//===----------------------------------------------------------------------===//
// One mutant
//===----------------------------------------------------------------------===//

struct Mutant {
  const Program *program;
  std::string text, changes;
  bool closes; // the verifiers that close phases run
};

Mutant makeMutant(const std::vector<Program> &programs, uint64_t seed) {
  Random random(seed * 2 + 1);
  random.next();
  Mutant mutant;
  mutant.program = &random.pick(programs);
  mutant.closes = random.chance(0.75);
  mutant.text = mutateText(mutant.program->text, random, mutant.changes);
  return mutant;
}

/// The passes that it goes through, as one pipeline.
std::string pipelineFrom(const Mutant &mutant) {
  std::vector<PhasePass> passes;
  for (const PhasePass &pass : llvm::drop_begin(
           passesOf(mutant.program->purpose, mutant.program->device), mutant.program->next))
    if (mutant.closes || !pass.closesPhase)
      passes.push_back(pass);
  return pipelineOf(passes);
}

enum Fate { unparsed, refused, through, silent, kFates };

Fate run(const Mutant &mutant, MLIRContext &context, std::string &said) {
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said += diagnostic.str() + "\n";
    for (Diagnostic &note : diagnostic.getNotes())
      said += "  " + note.str() + "\n";
    return success();
  });
  auto module = parseSourceString<ModuleOp>(mutant.text, &context);
  if (!module)
    return said.empty() ? silent : unparsed;
  // What verifies has a custom form.
  std::string custom;
  llvm::raw_string_ostream stream(custom);
  module->print(stream);
  PassManager pm(&context);
  if (succeeded(parsePassPipeline(pipelineFrom(mutant), pm)) && succeeded(pm.run(*module)))
    return through;
  return said.empty() ? silent : refused;
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

/// What a process and the one that started it both see.
struct Progress {
  int64_t seed;
  int64_t fates[kFates];
};

int64_t addressSpace() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

void setLimits() {
  const rlim_t bytes = rlim_t(addressSpace() + kBytesOfMutant);
  const rlimit memory{bytes, bytes}, core{0, 0};
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &core);
  for (int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
    std::signal(number, SIG_DFL);
}
void startClock() {
  const itimerval limit{{0, 0}, {kSecondsOfMutant, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

/// The mutant, with the passes of boa-opt that it was made for.
std::string keep(const Mutant &mutant, const std::string &folder, int64_t seed) {
  const std::string path = llvm::formatv("{0}/mutant-{1}.mlir", folder, seed);
  std::ofstream file(path);
  file << "// boa-opt --pass-pipeline='builtin.module(" << pipelineFrom(mutant) << ")'\n"
       << mutant.text;
  return path;
}

/// Mutants from `seed` on, below `end`, as far as one process comes.
[[noreturn]] void runSome(const std::vector<Program> &programs, MLIRContext &context, int64_t seed,
                          int64_t end, Progress &progress) {
  setLimits();
  end = std::min(seed + kMutantsOfProcess, end);
  for (; seed < end; ++seed) {
    progress.seed = seed;
    startClock();
    std::string said;
    const Mutant mutant = makeMutant(programs, uint64_t(seed));
    if (const char *folder = std::getenv("BOA_RANDOM_KEEP"))
      keep(mutant, folder, seed);
    const Fate fate = run(mutant, context, said);
    ++progress.fates[fate];
    if (std::getenv("BOA_RANDOM_MESSAGES"))
      llvm::errs() << "  " << StringRef(said).take_until([](char c) { return c == '\n'; }) << "\n";
    if (fate == silent)
      _exit(1);
  }
  progress.seed = seed;
  _exit(0);
}

std::string describeEnd(int status) {
  if (WIFEXITED(status))
    return "was refused without a word";
  if (WTERMSIG(status) == SIGPROF)
    return llvm::formatv("took more than {0} seconds", kSecondsOfMutant);
  return llvm::formatv("ended by signal {0} ({1})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

std::string describe(const Mutant &mutant, int64_t seed) {
  return llvm::formatv("BOA_RANDOM_SEED={0}, {1}{2}: {3}", seed, mutant.program->name,
                       mutant.closes ? "" : " without verifiers of phases", mutant.changes);
}

} // namespace

// A name that is no longer in the pipeline would begin nothing.
TEST(Phases, AllBegin) {
  for (StringRef name : beginnings())
    EXPECT_TRUE(llvm::any_of(sources(), [&](const Source &source) {
      return llvm::any_of(passesOf(source.purpose, source.device), [&](const PhasePass &pass) {
        return StringRef(pass.text).contains(name);
      });
    })) << name.str();
}

// A seed alone runs in this process, where a debugger and a stack trace see it. Its text is kept.
TEST(Generic, MutantsEndWell) {
  const std::vector<Program> programs = makePrograms();
  ASSERT_FALSE(programs.empty());
  const auto context = makeContext();
  if (const int64_t only = setting("BOA_RANDOM_SEED", -1); only >= 0) {
    const Mutant mutant = makeMutant(programs, uint64_t(only));
    llvm::errs() << describe(mutant, only) << "\n"
                 << keep(mutant, testing::TempDir(), only) << "\n";
    std::string said;
    startClock();
    EXPECT_NE(run(mutant, *context, said), silent);
    llvm::errs() << said;
    return;
  }
  const int64_t count = setting("BOA_RANDOM_GENERIC", kMutants);
  const int64_t most = setting("BOA_RANDOM_FAILURES", 3);
  auto *progress = static_cast<Progress *>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(progress, MAP_FAILED);
  new (progress) Progress{};
  int64_t failures = 0;
  const int64_t first = setting("BOA_RANDOM_FIRST", 0);
  progress->seed = first;
  while (progress->seed < first + count && failures < most) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      runSome(programs, *context, progress->seed, first + count, *progress);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
      continue;
    const int64_t seed = progress->seed++;
    ADD_FAILURE() << describe(makeMutant(programs, uint64_t(seed)), seed) << "\n"
                  << describeEnd(status);
    ++failures;
  }
  llvm::outs() << "of " << progress->seed - first << " mutants " << progress->fates[unparsed]
               << " were refused by verifiers of ops, " << progress->fates[refused]
               << " by passes; " << progress->fates[through] << " came through\n";
  llvm::outs().flush();
  // To refuse everything by the parser would be no test of the passes.
  if (failures == 0 && count >= 200) {
    EXPECT_GT(progress->fates[refused], count / 50);
    EXPECT_GT(progress->fates[through], count / 10);
  }
}

int main(int argc, char **argv) {
  llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  llvm::EnablePrettyStackTrace();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
