//===- CommandLine.h - The commands of boa and their flags ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table of commands and a table of flags. Parsing, --help and the completion of shells
// come from them. A flag that its command would ignore is refused here, before anything runs.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_COMMANDLINE_H
#define BOA_TOOLS_COMMANDLINE_H

#include "runtime/generate/sample.h"
#include "runtime/support/flags.h"
#include "runtime/trainer/describe_data.h"
#include "runtime/trainer/simulate.h"
#include "runtime/trainer/tokenize.h"
#include "runtime/trainer/trainer.h"
#include "tools/Compiler.h"
#include "tools/Probe.h"
#include "tools/plan/PlanSummary.h"
#include "tools/plan/StoredPlan.h"

#include <optional>
#include <string>
#include <vector>

namespace boa {

struct DriverCommand {
  const char *name;
  /// One or two ways to use it: the words behind its name, and their effect.
  std::vector<std::pair<const char *, const char *>> uses;
  /// The number of operands, arguments that are no flags. `expected` describes them in errors;
  /// completion offers specs, directories, files or `words`.
  int least, most;
  const char *expected;
  enum class Operand { spec, directory, word, text } operand;
  std::vector<std::string> words = {};
  /// Whole command lines, and the effect of each.
  std::vector<std::pair<const char *, const char *>> examples = {};
};

const std::vector<DriverCommand> &commands();
const DriverCommand *findCommand(std::string_view name);

/// A parsed command line.
struct Invocation {
  std::string command;
  std::vector<std::string> operands;
  CompileRequest compile; // with the operands as its files, where they are specs
  TrainerOptions train;
  SampleOptions sample;
  SimulateOptions simulate;
  TokenizeOptions tokenize;
  ProbeOptions probe;
  DescribeDataOptions describe;
  PlanSummaryOptions summary;
  StoredPlanOptions stored;
  std::string output, emit, cpu, weights, report;
  std::string system;                    // of chat
  std::string type, shard, config, base; // of export
  bool adapter = false;                  // of export
  bool lora = false, list = false;       // of import
  std::optional<int64_t> topK, seed, context, answerLength;
  bool check = false;
  bool noCache = false; // of sample and chat
};

/// The flags of all commands; values go into `invocation`.
FlagTable flagsOf(Invocation &invocation);

/// Reads what follows `invocation.command`.
absl::Status readCommandLine(int count, char **arguments, Invocation &invocation);

/// The texts of `boa --help` and `boa COMMAND --help`.
std::string helpText();
std::string helpText(const DriverCommand &command);
/// The text of `boa help TOPIC` for a topic that is no command.
std::string topicText(const std::string &topic);

} // namespace boa

#endif // BOA_TOOLS_COMMANDLINE_H
