//===- Commands.cpp - The commands of boa ---------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/Commands.h"

#include "frontend/Frontend.h"
#include "passes/model/CanonicalText.h"
#include "passes/target/runtime/Descriptor.h"
#include "runtime/abi/program.h"
#include "runtime/io/file_system.h"
#include "runtime/io/new_file.h"
#include "runtime/state/inspect.h"
#include "runtime/state/state.h"
#include "runtime/support/printable.h"
#include "runtime/trainer/evaluate_commit.h"
#include "runtime/trainer/main.h"
#include "runtime/trainer/output_checks.h"
#include "runtime/trainer/process.h"
#include "runtime/trainer/simulate.h"
#include "runtime/trainer/trainer.h"
#include "runtime/view/report_file.h"
#include "runtime/view/screen.h"
#include "tools/AutoMemory.h"
#include "tools/CompiledProgram.h"
#include "tools/Completion.h"
#include "tools/Generate.h"
#include "tools/HeldAdapters.h"
#include "tools/NextCommand.h"
#include "tools/Probe.h"
#include "tools/SpecData.h"
#include "tools/models/Import.h"
#include "tools/plan/ChoosePlan.h"
#include "tools/plan/PlanReport.h"
#include "tools/plan/PlanSummary.h"
#include "tools/plan/StoredPlan.h"

#include "absl/strings/str_cat.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <unistd.h>

namespace boa {
namespace {

absl::Status fromLLVM(llvm::Error error) {
  return absl::InternalError(llvm::toString(std::move(error)));
}

void defaultState(const Program &program, Invocation &invocation) {
  if (invocation.train.state.empty())
    invocation.train.state = FolderOfState(program.machine);
}

/// The adapters of the state on which a command works, or whose weights a training begins with.
absl::Status takeAdapters(Invocation &invocation) {
  TrainerOptions &train = invocation.train;
  const bool trains = invocation.command == "train";
  if (trains && !train.resume && train.from.empty())
    return absl::OkStatus();
  if (absl::Status status = NameAdapter(train); !status.ok())
    return status;
  const std::string &state = !train.from.empty()           ? train.from
                             : !invocation.weights.empty() ? invocation.weights
                                                           : train.state;
  if (train.adapter)
    return useAdapter(*train.adapter, invocation.compile);
  absl::Status status =
      useHeldAdapters(state, train.at, /*bind=*/!train.changed_model, invocation.compile);
  if (trains && !train.resume && invocation.compile.held)
    invocation.compile.held->othersBy =
        ", or begin others with --weights and the folder into which boa export merges those";
  return status;
}

/// `settings`: those of the command line, before `auto` is replaced.
absl::Status runTrain(Invocation &invocation, const std::vector<std::string> &settings) {
  CompiledProgram compiled;
  Kernels kernels = nullptr;
  EntryPoints entries;
  absl::Status status = NameCommit(invocation.train);
  if (status.ok())
    status = usePlan(invocation.stored, invocation.compile, invocation.train);
  if (status.ok())
    status = compiled.compile(invocation.compile);
  if (status.ok())
    status = compiled.find(kernels);
  if (status.ok())
    status = compiled.find("boa_step", entries.step);
  if (status.ok())
    status = compiled.find("boa_drain", entries.drain);
  if (status.ok())
    status = compiled.find("boa_evaluate", entries.evaluate);
  if (!status.ok())
    return status;
  if (!invocation.train.quiet)
    nameHeldAdapters(invocation.compile, compiled.program.train, invocation.train.out);
  defaultState(compiled.program, invocation);
  invocation.train.sources = invocation.compile.files;
  if (invocation.train.data.empty())
    invocation.train.data_place = compiled.dataPlace;
  invocation.train.next = nextCommand(invocation, settings, compiled.program);
  return Train(compiled.program, kernels, entries, invocation.train, InterruptsUntilExit());
}

absl::Status runEvaluate(Invocation &invocation) {
  CompiledProgram compiled;
  Kernels kernels = nullptr;
  EntryPoints entries;
  absl::Status status = NameCommit(invocation.train);
  if (status.ok())
    status = useStoredPlan(invocation.compile, invocation.train);
  if (status.ok())
    status = compiled.compile(invocation.compile);
  if (status.ok())
    status = compiled.find(kernels);
  if (status.ok())
    status = compiled.find("boa_evaluate", entries.evaluate);
  if (!status.ok())
    return status;
  nameHeldAdapters(invocation.compile, compiled.program.train, stderr);
  defaultState(compiled.program, invocation);
  invocation.train.sources = invocation.compile.files;
  return Evaluate(compiled.program, kernels, entries, invocation.train, InterruptsUntilExit());
}

/// Refuses a page that would replace a source or one of these files.
absl::Status checkReport(const Invocation &invocation, std::vector<FileUse> kept) {
  for (const std::string &file : invocation.compile.files)
    kept.push_back({"a source of this program", file});
  absl::Status status = CheckOutputs(ReportOutputs(invocation.report), kept);
  return status.ok() ? CheckReport(invocation.report) : status;
}

/// Colours go to a person who has not asked for none (no-color.org).
bool showsColours() { return isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR"); }

absl::Status runData(Invocation &invocation) {
  InterruptsUntilExit();
  invocation.describe.colours = showsColours();
  return describeDataOf(invocation.compile, invocation.train, invocation.describe, std::cout);
}

absl::Status runSimulate(Invocation &invocation) {
  invocation.compile.simulate = true;
  invocation.simulate.sources = invocation.compile.files;
  invocation.simulate.record = !invocation.report.empty();
  CompiledProgram compiled;
  EntryPoints entries;
  // Compiling takes longer.
  absl::Status status = CheckSimulation(invocation.simulate);
  if (status.ok())
    status = checkReport(invocation, {{"--metrics", invocation.simulate.metrics},
                                      {"--trace", invocation.simulate.trace},
                                      {"the kernel times", invocation.simulate.kernels}});
  if (status.ok())
    status = compiled.compile(invocation.compile);
  if (status.ok())
    status = compiled.find("boa_step", entries.step);
  if (status.ok())
    status = checkReport(invocation, FilesOfData(compiled.program.train));
  if (!status.ok())
    return status;
  countSteps(compiled.program);
  auto run = Simulate(compiled.program, entries, invocation.simulate);
  if (!run.ok() || invocation.report.empty())
    return run.status();
  return writeSimulationReport(invocation.report, invocation.compile, compiled.program,
                               *std::move(run),
                               /*withCurve=*/invocation.simulate.kernels.empty());
}

/// The plan block as a file that stands beside a spec.
absl::Status writePlan(const std::string &path, const std::string &block) {
  auto file = NewFile::Create(path);
  absl::Status status = file.status();
  if (status.ok())
    status = file->Append(block.data(), int64_t(block.size()));
  return status.ok() ? file->Publish() : status;
}

absl::Status runPlan(const Invocation &invocation) {
  std::vector<FileUse> sources;
  for (const std::string &file : invocation.compile.files)
    sources.push_back({"a source of this program", file});
  const FileUse output{"--write", invocation.output};
  absl::Status status = CheckOutputs({output}, sources);
  if (status.ok() && !invocation.output.empty())
    status = CheckNewFile(output, /*directory=*/true);
  // A rename would also replace a file that may not be written.
  std::error_code error;
  if (status.ok() && std::filesystem::exists(invocation.output, error) &&
      access(invocation.output.c_str(), W_OK) != 0)
    status = absl::ErrnoToStatus(errno, absl::StrCat("cannot write `", invocation.output, "`"));
  if (status.ok())
    status = checkReport(invocation, {output, {"--write", TemporaryName(invocation.output)}});
  if (!status.ok())
    return status;
  Trials trials(invocation.compile);
  if (!trials.config())
    return absl::InvalidArgumentError("");
  const Config &config = *trials.config();
  // Both names, since a file with the temporary name is removed.
  if (!invocation.output.empty())
    status = CheckOutputs({output, {"--write", TemporaryName(invocation.output)}},
                          FilesOfData(config.train));
  if (status.ok())
    status = checkReport(invocation, FilesOfData(config.train));
  if (!status.ok())
    return status;
  absl::StatusOr<FoundPlan> found = choosePlan(trials);
  if (!found.ok())
    return found.status();
  countSteps(found->trial.program);
  std::cout << Printable(formatPlanSummary(trials, *found, invocation.summary)) << std::flush;
  if (!invocation.output.empty())
    status = writePlan(invocation.output, found->block);
  return status.ok() && !invocation.report.empty()
             ? writePlanReport(invocation.report, trials, *found, invocation.summary)
             : status;
}

/// The plan as comments above the program that it is of. A module that was given may say less
/// than a trainer needs: then there is none.
void printPlan(mlir::ModuleOp module) {
  auto program = ParseProgram(describeProgram(module));
  if (!program.ok())
    return;
  countSteps(*program);
  llvm::SmallVector<llvm::StringRef> lines;
  const std::string plan = FormatPlan(*program);
  llvm::StringRef(plan).rtrim().split(lines, '\n');
  for (llvm::StringRef line : lines)
    llvm::outs() << "//" << (line.empty() ? "" : " ") << Printable(line.str()) << '\n';
}

absl::Status runEmit(const Invocation &invocation) {
  Compiler compiler;
  if (invocation.emit == "ast") {
    auto text = compiler.printSyntax(invocation.compile);
    if (!text.ok())
      return text.status();
    llvm::outs() << *text;
    return absl::OkStatus();
  }
  const bool canonical = invocation.emit == "computation";
  const Phase phase = canonical || invocation.emit == "model" ? Phase::model
                      : invocation.emit == "step"             ? Phase::step
                      : invocation.emit == "storage"          ? Phase::storage
                                                              : Phase::llvm;
  auto module = compiler.load(invocation.compile);
  if (!module.ok())
    return module.status();
  absl::Status status = compiler.lower(**module, invocation.compile, phase);
  if (!status.ok())
    return withAdvice(status, compiler, invocation.compile);
  if (canonical) {
    llvm::outs() << printCanonicalText(**module);
    return absl::OkStatus();
  }
  if (phase != Phase::llvm) {
    if (phase == Phase::storage)
      printPlan(**module);
    nameArguments(**module);
    (*module)->print(llvm::outs(), mlir::OpPrintingFlags().printNameLocAsPrefix());
    llvm::outs() << '\n';
    return absl::OkStatus();
  }
  if (invocation.emit == "ptx") {
    auto ptx = compiler.printPtx(**module);
    if (ptx.ok())
      llvm::outs() << *ptx;
    return ptx.status();
  }
  CodegenOptions codegen;
  codegen.cpu = invocation.compile.cpu;
  auto text =
      invocation.emit == "asm" ? emitAssembly(**module, codegen) : emitLLVMIR(**module, codegen);
  if (!text)
    return fromLLVM(text.takeError());
  llvm::outs() << *text;
  return absl::OkStatus();
}

absl::Status runCompile(const Invocation &invocation) {
  if (!invocation.emit.empty())
    return runEmit(invocation);
  std::vector<FileUse> sources;
  for (const std::string &file : invocation.compile.files)
    sources.push_back({"a source of this program", file});
  const FileUse output{"-o", invocation.output};
  absl::Status status = CheckOutputs({output}, sources);
  if (status.ok())
    status = CheckNewFile(output, /*directory=*/true);
  if (!status.ok())
    return status;
  Compiler compiler;
  status = compiler.writeTrainer(invocation.compile, invocation.output);
  if (status.ok())
    llvm::outs() << "wrote " << invocation.output << "\n";
  return withAdvice(status, compiler, invocation.compile);
}

absl::Status runCheck(const Invocation &invocation) {
  auto summary = Compiler().check(invocation.compile);
  if (summary.ok())
    llvm::outs() << Printable(*summary);
  return summary.status();
}

/// Replaces a spec by its layout, with the permissions that it has.
absl::Status rewrite(const std::string &path, const std::string &text) {
  std::error_code error;
  const std::string target = std::filesystem::canonical(path, error).string();
  const std::filesystem::perms mode = std::filesystem::status(path, error).permissions();
  // A rename would also replace a file that may not be written.
  if (access(path.c_str(), W_OK) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write `", path, "`"));
  auto file = NewFile::Create(target);
  absl::Status status = file.status();
  if (status.ok())
    status = file->Append(text.data(), int64_t(text.size()));
  if (status.ok())
    status = file->Publish();
  if (status.ok())
    std::filesystem::permissions(target, mode, error);
  return status;
}

absl::Status runFormat(const Invocation &invocation) {
  bool refused = false;
  size_t changed = 0;
  for (const std::string &path : invocation.operands) {
    const frontend::FormatResult result = frontend::formatFile(path);
    std::fputs(result.diagnostics.c_str(), stderr);
    refused |= !result.after;
    if (!result.after)
      continue;
    const bool differs = *result.after != result.before;
    changed += differs;
    if (path == "-" && !invocation.check)
      llvm::outs() << *result.after;
    else if (differs && invocation.check)
      llvm::outs() << Printable(path) << " would change\n";
    else if (differs)
      if (absl::Status status = rewrite(path, *result.after); !status.ok())
        return status;
  }
  // Diagnostics with their places were printed.
  if (refused)
    return absl::InvalidArgumentError("");
  if (invocation.check && changed > 0)
    return absl::FailedPreconditionError("boa fmt without --check lays them out");
  return absl::OkStatus();
}

absl::Status runImport(const Invocation &invocation) {
  if (invocation.list) {
    llvm::outs() << listFamilies();
    return absl::OkStatus();
  }
  return importFolder({invocation.operands[0], invocation.output, invocation.train.state,
                       invocation.context, invocation.train.data, invocation.lora});
}

/// Bytes of "5GB" or "512 MiB"; 0 if it is no size.
int64_t parseSize(llvm::StringRef text) {
  double value = 0;
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  if (text.substr(0, digits).getAsDouble(value))
    return 0;
  constexpr std::pair<const char *, double> units[] = {
      {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  for (auto [unit, bytes] : units)
    if (text.substr(digits).trim().equals_insensitive(unit) && value * bytes < 0x1p60)
      return int64_t(value * bytes);
  return 0;
}

absl::Status runExport(const Invocation &invocation) {
  ExportOptions options{invocation.compile, invocation.train.state, invocation.output,
                        invocation.config,  invocation.base,        {}};
  options.weights.adapters = invocation.adapter;
  options.weights.bf16 = invocation.type == "bf16";
  if (!invocation.shard.empty())
    options.weights.shard_bytes = parseSize(invocation.shard);
  if (options.weights.shard_bytes <= 0)
    return absl::InvalidArgumentError(
        absl::StrCat("--shard ", invocation.shard, ": expected a size as 5GB or 512MiB"));
  return exportFolder(options);
}

/// Whether the command makes a program of specs, which keeps to the machine's memory.
bool runsPrograms(const std::string &command) {
  static const std::set<std::string> some{"train",   "evaluate", "simulate", "plan",
                                          "compile", "sample",   "chat"};
  return some.count(command) > 0;
}

absl::Status runHelp(const Invocation &invocation) {
  if (invocation.operands.empty())
    llvm::outs() << helpText();
  else if (const DriverCommand *command = findCommand(invocation.operands[0]))
    llvm::outs() << helpText(*command);
  else
    llvm::outs() << topicText(invocation.operands[0]);
  return absl::OkStatus();
}

} // namespace

absl::Status runCommand(Invocation &invocation) {
  const std::string &command = invocation.command;
  const std::vector<std::string> settings = invocation.compile.overrides;
  if (command == "train" || command == "evaluate" || command == "sample" || command == "chat" ||
      command == "export")
    if (absl::Status status = takeAdapters(invocation); !status.ok())
      return status;
  if (runsPrograms(command) && invocation.emit != "ast")
    if (absl::Status status = replaceAutoMemory(invocation.compile); !status.ok())
      return status;
  if (command == "train")
    return runTrain(invocation, settings);
  if (command == "evaluate")
    return runEvaluate(invocation);
  if (command == "check")
    return runCheck(invocation);
  if (command == "data")
    return runData(invocation);
  if (command == "fmt")
    return runFormat(invocation);
  if (command == "simulate")
    return runSimulate(invocation);
  if (command == "plan")
    return runPlan(invocation);
  if (command == "compile")
    return runCompile(invocation);
  if (command == "sample")
    return runSample(invocation);
  if (command == "chat")
    return runChat(invocation);
  if (command == "tokenize") {
    InterruptsUntilExit();
    return Tokenize(invocation.tokenize, std::cout);
  }
  if (command == "probe")
    return runProbe(invocation.probe);
  if (command == "state")
    return DescribeState(SystemFiles(), invocation.operands[0], invocation.check, stdout);
  if (command == "import")
    return runImport(invocation);
  if (command == "export")
    return runExport(invocation);
  if (command == "help")
    return runHelp(invocation);
  llvm::outs() << completionScript(invocation.operands[0]);
  return absl::OkStatus();
}

} // namespace boa
