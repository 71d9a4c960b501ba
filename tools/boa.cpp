//===- boa.cpp - The driver -----------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Flags and nothing else: what a command does is below (Compiler, Train, Sample).
//
//===----------------------------------------------------------------------===//
#include "runtime/nearest.h"
#include "runtime/program.h"
#include "runtime/trainer/main.h"
#include "runtime/trainer/sample.h"
#include "runtime/trainer/trainer.h"
#include "tools/Compiler.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

namespace boa {
namespace {

struct Command {
  const char *name, *usage, *summary;
};
constexpr Command kCommands[] = {
    {"train", "boa train SPEC...", "compile, then train"},
    {"compile", "boa compile SPEC... -o TRAINER", "a stand-alone trainer"},
    {"compile", "boa compile SPEC... --emit=KIND", "one stage of the program, on stdout"},
    {"sample", "boa sample SPEC...", "text from trained weights"},
};

/// The driver's own flags; those of training are the runtime's.
struct DriverFlag {
  const char *command; // empty: every one
  const char *name, *value, *help;
};
constexpr DriverFlag kFlags[] = {
    {"", "--set", "KEY=VALUE", "override a value of the spec: train.steps=50"},
    {"", "--dump-after-each", "DIR", "write the program after every pass"},
    {"compile", "--output", "FILE", "where the trainer goes; also -o FILE"},
    {"compile", "--emit", "KIND", "ast, model, step, storage, llvm or asm"},
    {"compile", "--cpu", "NAME", "processor to compile for (default: this one)"},
    {"sample", "--weights", "FILE", "default: model.safetensors in the state"},
    {"sample", "--prompt", "TEXT", "text to continue (default: a new line)"},
    {"sample", "--length", "N", "bytes to add (default: 256)"},
    {"sample", "--temperature", "T", "0: always the likeliest byte (default: 0.8)"},
    {"sample", "--top-k", "K", "draw from the K likeliest bytes (default: all)"},
    {"sample", "--seed", "N", "another seed, another text (default: 1)"},
};

std::string usageLine(const Command &command) {
  return llvm::formatv("{0,-33} {1}\n", command.usage, command.summary);
}

/// Flags of one command, or of every one where `command` is empty.
std::string flagLines(llvm::StringRef command) {
  std::string text;
  for (const DriverFlag &flag : kFlags)
    if (command == flag.command)
      text += FlagHelp(absl::StrCat(flag.name, " ", flag.value), flag.help);
  if (command == "train")
    text += TrainerFlagsHelp();
  if (command == "sample")
    text += FlagHelp("--state DIR", "where the training lives (default: the path of the ssd)");
  return text;
}

std::string help() {
  std::string text = "usage: boa COMMAND SPEC... [FLAGS]\n\n";
  for (const Command &command : kCommands)
    text += "  " + usageLine(command);
  return absl::StrCat(text, "\nflags of every command:\n", flagLines(""),
                      FlagHelp("--help", "this text"), "\nflags of compile:\n",
                      flagLines("compile"), "\nflags of sample:\n", flagLines("sample"),
                      "\nflags of train:\n", flagLines("train"));
}

std::string helpOf(const std::string &command) {
  std::string text;
  for (const Command &entry : kCommands)
    if (command == entry.name)
      text += (text.empty() ? "usage: " : "       ") + usageLine(entry);
  return absl::StrCat(text, "\n", flagLines(command), flagLines(""),
                      FlagHelp("--help", "this text"));
}

struct Invocation {
  std::string command;
  CompileRequest compile;
  TrainerOptions train;
  SampleOptions sample;
  std::string output, emit, weights;
  bool stateGiven = false, help = false;
};

/// The value of `--name VALUE` or `--name=VALUE` at `i`, which then moves on.
absl::StatusOr<std::string> valueOf(int count, char **arguments, int &i, llvm::StringRef name) {
  llvm::StringRef argument = arguments[i];
  if (argument.consume_front(name) && argument.consume_front("="))
    return argument.str();
  if (i + 1 >= count)
    return absl::InvalidArgumentError(absl::StrCat(name.str(), ": expected a value"));
  return std::string(arguments[++i]);
}

absl::Status number(const std::string &text, llvm::StringRef name, int64_t &value) {
  if (absl::SimpleAtoi(text, &value) && value >= 0)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name.str(), ": expected a number but found `", text, "`"));
}

/// Reads one of the driver's own flags. False: it is none.
absl::StatusOr<bool> readFlag(int count, char **arguments, int &i, Invocation &invocation) {
  llvm::StringRef name = llvm::StringRef(arguments[i]).split('=').first;
  bool known = llvm::any_of(kFlags, [&](const DriverFlag &flag) { return name == flag.name; });
  // Training has --weights too, and says itself what they are.
  if (name == "--weights")
    known = invocation.command == "sample";
  if (!known && name != "-o")
    return false;
  auto value = valueOf(count, arguments, i, name);
  if (!value.ok())
    return value.status();
  absl::Status status;
  if (name == "--set")
    invocation.compile.overrides.push_back(*value);
  else if (name == "--dump-after-each")
    invocation.compile.dump = *value;
  else if (name == "-o" || name == "--output")
    invocation.output = *value;
  else if (name == "--emit")
    invocation.emit = *value;
  else if (name == "--cpu")
    invocation.compile.cpu = *value;
  else if (name == "--weights")
    invocation.weights = *value;
  else if (name == "--prompt")
    invocation.sample.prompt = *value;
  else if (name == "--length")
    status = number(*value, name, invocation.sample.length);
  else if (name == "--top-k")
    status = number(*value, name, invocation.sample.top_k);
  else if (name == "--seed")
    status = number(*value, name, invocation.sample.seed);
  else if (!absl::SimpleAtod(*value, &invocation.sample.temperature))
    status = absl::InvalidArgumentError("--temperature: expected a number");
  if (!status.ok())
    return status;
  return true;
}

std::vector<std::string> flagNames() {
  std::vector<std::string> names = TrainerFlagNames();
  for (const DriverFlag &flag : kFlags)
    names.push_back(flag.name);
  names.push_back("--help");
  return names;
}

bool isHelp(llvm::StringRef argument) { return argument == "--help" || argument == "-h"; }

absl::StatusOr<Invocation> parse(int argc, char **argv) {
  Invocation invocation;
  invocation.command = argv[1];
  std::vector<std::string> commands{"train", "compile", "sample"};
  if (llvm::find(commands, invocation.command) == commands.end()) {
    std::string guess = NearestWord(invocation.command, commands);
    return absl::InvalidArgumentError(
        absl::StrCat("no command `", invocation.command, "`",
                     guess.empty() ? "" : absl::StrCat(": did you mean `", guess, "`?"),
                     "\n  commands: ", absl::StrJoin(commands, ", "), "; `boa --help` explains"));
  }
  for (int i = 2; i < argc; ++i) {
    if (isHelp(argv[i])) {
      invocation.help = true;
      return invocation;
    }
    auto own = readFlag(argc, argv, i, invocation);
    if (!own.ok())
      return own.status();
    if (*own)
      continue;
    auto taken = ReadTrainerFlag(argc - i, argv + i, invocation.train);
    if (!taken.ok())
      return taken.status();
    if (*taken > 0) {
      invocation.stateGiven |= llvm::StringRef(argv[i]).starts_with("--state");
      i += *taken - 1;
    } else if (argv[i][0] == '-') {
      std::string guess = NearestWord(argv[i], flagNames());
      return absl::InvalidArgumentError(
          absl::StrCat("no flag `", argv[i], "`",
                       guess.empty() ? "" : absl::StrCat(": did you mean `", guess, "`?")));
    } else {
      invocation.compile.files.push_back(argv[i]);
    }
  }
  if (invocation.compile.files.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        "boa ", invocation.command, ": expected a spec file, for example examples/gpt.boa"));
  return invocation;
}

absl::Status fromLLVM(llvm::Error error) {
  return absl::InternalError(llvm::toString(std::move(error)));
}

/// Looks up what a program exports; keeps the first error.
struct Symbols {
  explicit Symbols(const JitProgram &program) : program(program) {}

  template <typename T> T get(llvm::StringRef name) {
    auto address = program.lookupAs<T>(name);
    if (address)
      return *address;
    status = fromLLVM(address.takeError());
    return nullptr;
  }

  const JitProgram &program;
  absl::Status status;
};

/// Where the state lives if the user does not say: the first ssd's path.
void defaultState(const Program &program, Invocation &invocation) {
  if (!invocation.stateGiven && !program.machine.ssd.empty())
    invocation.train.state = program.machine.ssd[0].path;
}

absl::Status runTrain(Invocation &invocation) {
  Compiler compiler;
  auto jit = compiler.jit(invocation.compile);
  if (!jit.ok())
    return jit.status();
  Symbols symbols(**jit);
  auto *text = symbols.get<const char *>("boa_program");
  auto *kernels = symbols.get<const boa_kernel *>("boa_kernel_table");
  EntryPoints entries{symbols.get<boa_entry_point>("boa_step"),
                      symbols.get<boa_entry_point>("boa_drain"),
                      symbols.get<boa_entry_point>("boa_evaluate")};
  if (!symbols.status.ok())
    return symbols.status;
  auto program = ParseProgram(text);
  if (!program.ok())
    return program.status();
  defaultState(*program, invocation);
  return Train(*program, kernels, entries, invocation.train);
}

absl::Status runSample(Invocation &invocation) {
  invocation.compile.predict = true;
  Compiler compiler;
  auto jit = compiler.jit(invocation.compile);
  if (!jit.ok())
    return jit.status();
  Symbols symbols(**jit);
  auto *text = symbols.get<const char *>("boa_program");
  auto *kernels = symbols.get<const boa_kernel *>("boa_kernel_table");
  auto predict = symbols.get<boa_entry_point>("boa_predict");
  if (!symbols.status.ok())
    return symbols.status;
  auto program = ParseProgram(text);
  if (!program.ok())
    return program.status();
  defaultState(*program, invocation);
  std::string weights = invocation.weights.empty() ? invocation.train.state + "/model.safetensors"
                                                   : invocation.weights;
  absl::Status status = Sample(*program, kernels, predict, weights, invocation.sample, std::cout);
  // The prompt of a shell should not stand behind the text.
  if (isatty(STDOUT_FILENO))
    std::cout << std::endl;
  return status;
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
  std::vector<std::pair<std::string, Phase>> kinds{{"model", Phase::model},
                                                   {"step", Phase::step},
                                                   {"storage", Phase::storage},
                                                   {"llvm", Phase::llvm},
                                                   {"asm", Phase::llvm}};
  auto kind = llvm::find_if(kinds, [&](auto &kind) { return kind.first == invocation.emit; });
  if (kind == kinds.end())
    return absl::InvalidArgumentError(absl::StrCat(
        "--emit=", invocation.emit, ": expected ast, model, step, storage, llvm or asm"));
  auto module = compiler.load(invocation.compile);
  if (!module.ok())
    return module.status();
  absl::Status status = compiler.lower(**module, invocation.compile, kind->second);
  if (!status.ok())
    return status;
  if (kind->second != Phase::llvm) {
    (*module)->print(llvm::outs());
    llvm::outs() << '\n';
    return absl::OkStatus();
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
  if (invocation.output.empty())
    return absl::InvalidArgumentError("boa compile: expected -o TRAINER or --emit=KIND");
  Compiler compiler;
  absl::Status status = compiler.writeTrainer(invocation.compile, invocation.output);
  if (status.ok())
    llvm::outs() << "wrote " << invocation.output << "\n";
  return status;
}

int run(int argc, char **argv) {
  llvm::StringRef first = argc > 1 ? argv[1] : "--help";
  if (isHelp(first) || first == "help") {
    llvm::outs() << help();
    return argc > 1 ? 0 : 1;
  }
  auto invocation = parse(argc, argv);
  if (!invocation.ok())
    return ExitStatus(invocation.status());
  if (invocation->help) {
    llvm::outs() << helpOf(invocation->command);
    return 0;
  }
  absl::Status status = invocation->command == "train"    ? runTrain(*invocation)
                        : invocation->command == "sample" ? runSample(*invocation)
                                                          : runCompile(*invocation);
  llvm::outs().flush();
  // An empty message: diagnostics with their places were printed already.
  if (!status.ok() && status.message().empty())
    return 1;
  return ExitStatus(status);
}

} // namespace
} // namespace boa

int main(int argc, char **argv) { return boa::run(argc, argv); }
