//===- boa.cpp - The driver -----------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the command line and carries the command out (Commands.h).
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/main.h"
#include "runtime/trainer/process.h"
#include "tools/Commands.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace boa {
namespace {

/// What was printed must have arrived: on a full disk half a program is none.
absl::Status flushOutput(absl::Status status) {
  llvm::outs().flush();
  std::string reason;
  if (llvm::outs().has_error())
    reason = llvm::outs().error().message();
  llvm::outs().clear_error();
  const absl::Status flushed = FlushOutput();
  if (!status.ok())
    return status;
  return reason.empty() ? flushed
                        : absl::UnavailableError("cannot write to standard output: " + reason);
}

int run(int argc, char **argv) {
  llvm::StringRef first = argc > 1 ? argv[1] : "";
  if (first.empty()) {
    llvm::errs() << helpText();
    return 2;
  }
  if (first == "--help" || first == "-h") {
    llvm::outs() << helpText();
    return ExitStatus(flushOutput(absl::OkStatus()));
  }
  if (first == "--version") {
    llvm::outs() << "boa " << Version() << " (LLVM " << LLVM_VERSION_STRING << ")\n";
    return ExitStatus(flushOutput(absl::OkStatus()));
  }
  Invocation invocation;
  invocation.command = first.str();
  const DriverCommand *command = findCommand(invocation.command);
  if (command && AsksForHelp(argc - 2, argv + 2)) {
    llvm::outs() << helpText(*command);
    return ExitStatus(flushOutput(absl::OkStatus()));
  }
  if (absl::Status status = readCommandLine(argc - 2, argv + 2, invocation); !status.ok())
    return UsageStatus(status);
  absl::Status status = runCommand(invocation);
  // A training may lose its progress lines: its results are in the state.
  if (invocation.command != "train")
    status = flushOutput(status);
  // An empty message: diagnostics with their places were printed already.
  if (!status.ok() && status.message().empty())
    return 1;
  return ExitStatus(status);
}

} // namespace
} // namespace boa

int main(int argc, char **argv) {
  boa::PrepareProcess();
  return boa::RunWithinMemory([&] { return boa::run(argc, argv); });
}
