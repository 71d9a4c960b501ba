//===- main.cpp - The command line of a trainer ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/main.h"

#include "runtime/nearest.h"
#include "runtime/trainer/process.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <csignal>
#include <cstdio>
#include <filesystem>

namespace boa {
namespace {

struct Flag {
  const char *name;  // without dashes
  const char *value; // what its value is called, or null for a switch
  const char *help;
};

constexpr Flag kFlags[] = {
    {"state", "DIR", "where the training lives (default: the path of the ssd)"},
    {"resume", nullptr, "continue from the last committed step"},
    {"steps", "N", "train to step N instead of the spec's"},
    {"data", "FILE", "train on this text instead of the spec's"},
    {"weights", "FILE", "begin from these weights (safetensors), not random ones"},
    {"save", "FILE", "the trained weights (default: DIR/model.safetensors)"},
    {"metrics", "FILE", "write one JSON object for each step"},
    {"trace", "FILE", "write a timeline for ui.perfetto.dev"},
    {"quiet", nullptr, "print nothing but errors"},
};

absl::Status Assign(const Flag &flag, const std::string &value, TrainerOptions &options) {
  const std::string_view name = flag.name;
  if (name == "steps") {
    int64_t steps = 0;
    if (!absl::SimpleAtoi(value, &steps) || steps < 1)
      return absl::InvalidArgumentError(
          absl::StrCat("--steps: expected a positive number but found `", value, "`"));
    options.steps = steps;
    return absl::OkStatus();
  }
  if (name == "resume")
    options.resume = true;
  else if (name == "quiet")
    options.quiet = true;
  else if (value.empty())
    return absl::InvalidArgumentError(absl::StrCat("--", flag.name, ": expected a ", flag.value));
  else if (name == "state")
    options.state = value;
  else if (name == "data")
    options.data = value;
  else if (name == "weights")
    options.weights = value;
  else if (name == "save")
    options.save = value;
  else if (name == "metrics")
    options.metrics = value;
  else if (name == "trace")
    options.trace = value;
  return absl::OkStatus();
}

void PrintHelp(const char *executable, const Program &program) {
  const std::string name = std::filesystem::path(executable).filename().string();
  const std::string text = absl::StrFormat(
      "Trains %s for %d step%s on %s.\n\n  %s [flags]\n\n%s%s", program.name,
      program.training.steps, program.training.steps == 1 ? "" : "s", program.training.data, name,
      TrainerFlagsHelp(), FlagHelp("--help", "this text"));
  std::fputs(text.c_str(), stdout);
}

absl::StatusOr<TrainerOptions> ReadFlags(int count, char **arguments) {
  TrainerOptions options;
  for (int i = 0; i < count;) {
    absl::StatusOr<int> taken = ReadTrainerFlag(count - i, arguments + i, options);
    if (!taken.ok())
      return taken.status();
    if (*taken == 0) {
      const std::string_view argument = arguments[i];
      const std::string closest =
          NearestWord(argument.substr(0, argument.find('=')), TrainerFlagNames());
      return absl::InvalidArgumentError(
          absl::StrCat("unknown argument `", arguments[i], "`; ",
                       closest.empty() ? "--help lists the flags"
                                       : absl::StrCat("did you mean ", closest, "?")));
    }
    i += *taken;
  }
  return options;
}

} // namespace

absl::StatusOr<int> ReadTrainerFlag(int count, const char *const *arguments,
                                    TrainerOptions &options) {
  std::string_view argument = arguments[0];
  if (argument.substr(0, 2) != "--")
    return 0;
  argument.remove_prefix(2);
  const size_t equals = argument.find('=');
  const std::string_view name = argument.substr(0, equals);
  for (const Flag &flag : kFlags) {
    if (name != flag.name)
      continue;
    if (!flag.value && equals != std::string_view::npos)
      return absl::InvalidArgumentError(absl::StrCat("--", flag.name, " takes no value"));
    std::string value;
    int taken = 1;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (flag.value) {
      if (count < 2)
        return absl::InvalidArgumentError(
            absl::StrCat("--", flag.name, ": expected a ", flag.value));
      value = arguments[1];
      taken = 2;
    }
    if (absl::Status status = Assign(flag, value, options); !status.ok())
      return status;
    return taken;
  }
  return 0;
}

std::string TrainerFlagsHelp() {
  std::string help;
  for (const Flag &flag : kFlags)
    help +=
        FlagHelp(absl::StrCat("--", flag.name, flag.value ? " " : "", flag.value ? flag.value : ""),
                 flag.help);
  return help;
}

std::string FlagHelp(std::string_view flag, std::string_view help) {
  return absl::StrFormat("  %-22s %s\n", flag, help);
}

std::vector<std::string> TrainerFlagNames() {
  std::vector<std::string> names;
  for (const Flag &flag : kFlags)
    names.push_back(absl::StrCat("--", flag.name));
  return names;
}

int ExitStatus(const absl::Status &status) {
  if (status.ok())
    return 0;
  // Who read the output may be gone; the status is to be what it is.
  std::signal(SIGPIPE, SIG_IGN);
  const int signal = SignalOf(status);
  std::fflush(stdout);
  std::fprintf(stderr, "%s%s\n",
               signal != 0 ? "" : "error: ", std::string(status.message()).c_str());
  return signal != 0 ? 128 + signal : 1;
}

int TrainerMain(int argc, char **argv, std::string_view json, const boa_kernel *kernels,
                const EntryPoints &entry_points) {
  absl::StatusOr<Program> program = ParseProgram(json);
  if (!program.ok())
    return ExitStatus(program.status());
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--help" || std::string_view(argv[i]) == "-h") {
      PrintHelp(argv[0], *program);
      return 0;
    }
  absl::StatusOr<TrainerOptions> options = ReadFlags(argc - 1, argv + 1);
  if (!options.ok())
    return ExitStatus(options.status());
  return ExitStatus(Train(*program, kernels, entry_points, *options));
}

} // namespace boa
