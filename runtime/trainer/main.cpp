//===- main.cpp - The command line of a trainer ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/main.h"

#include "runtime/state/commit_name.h"
#include "runtime/support/printable.h"
#include "runtime/trainer/process.h"
#include "runtime/weights/peft_adapter.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <unistd.h>
#include <utility>

namespace boa {
namespace {

std::string HelpText(const char *executable, const Program &program, const FlagTable &flags) {
  const std::string name = std::filesystem::path(executable).filename().string();
  return absl::StrFormat("Trains %s for %s on %s.\n\n  %s [flags]\n\n%s%s", program.model.name,
                         DescribeSteps(program.train), program.train.data, name,
                         FlagsHelp(flags, ""),
                         FlagHelp("--help", "this text") +
                             FlagHelp("--version", "the version of boa that made this trainer"));
}

/// Prints an error. A name in it comes from a file and may be as long as that.
void PrintError(const char *prefix, const absl::Status &status) {
  constexpr size_t kLongest = 8192;
  // The reader of the output may be gone. That must not change the exit status.
  std::signal(SIGPIPE, SIG_IGN);
  std::fflush(stdout);
  std::string message(status.message().substr(0, kLongest));
  if (status.message().size() > kLongest)
    absl::StrAppend(&message, "... (", status.message().size() - kLongest, " bytes more)");
  std::fprintf(stderr, "%s%s\n", prefix, Printable(message).c_str());
}

} // namespace

const char *Version() { return BOA_VERSION; }

FlagTable TrainerFlags(TrainerOptions &o) {
  const std::vector<std::string> train = {"train"};
  return {
      {{"train", "data", "sample", "chat", "evaluate", "export"},
       "state",
       0,
       "DIR[@COMMIT]",
       "a training, its commit STEP or `best` (default: ssd)",
       DirectoryValue{&o.state}},
      {{"train", "sample", "chat", "evaluate"},
       "changed-model",
       0,
       "",
       "use weights that were trained for another computation",
       &o.changed_model},
      {{"train", "data", "evaluate"},
       "tokens",
       0,
       "DIR",
       "where tokens of texts go (default: beside the state)",
       DirectoryValue{&o.tokens}},
      {train, "resume", 0, "", "continue from the last committed step", &o.resume},
      {{"train", "evaluate"},
       "at",
       0,
       "STEP",
       "the commit of this step (train: with --resume)",
       WholeValue{&o.at}},
      {train, "steps", 0, "N", "train to step N instead of the spec's",
       WholeValue{&o.steps, 1, "leave it out for the steps of the spec"}},
      {train, "epochs", 0, "E", "train for E epochs of the data instead",
       RealValue{&o.epochs, 1e-6, kMostEpochs}},
      {{"train", "data", "sample", "chat", "evaluate"},
       "data",
       0,
       "DATA",
       "this text or these tokens(...), not the spec's",
       FileValue{&o.data}},
      {train, "changed-data", 0, "", "with --resume: files of tokens may have changed",
       &o.changed_data},
      {train, "weights", 0, "FILE", "begin from these weights: safetensors, folder or GGUF",
       FileValue{&o.weights}},
      {train, "from", 0, "DIR[@COMMIT]", "begin with the weights of a state, or adapters of PEFT",
       DirectoryValue{&o.from}},
      {train, "save", 0, "FILE", "the trained weights (default: DIR/model.safetensors)",
       FileValue{&o.save}},
      {train, "metrics", 0, "FILE", "write one JSON object for each step", FileValue{&o.metrics}},
      {train, "tensorboard", 0, "DIR", "write the events of steps for TensorBoard",
       DirectoryValue{&o.tensorboard}},
      {train, "log", 0, "FILE", "add settings, messages and the end of this run",
       FileValue{&o.log}},
      {train, "trace", 0, "FILE", "write a timeline for ui.perfetto.dev", FileValue{&o.trace}},
      {train, "report", 0, "FILE", "write a page: the run beside its prediction (HTML)",
       FileValue{&o.report}},
      {train, "quiet", 0, "", "print nothing but errors", &o.quiet},
      {train, "verbose", 0, "", "print tables of memory and traffic, too", &o.verbose},
  };
}

absl::Status CheckTrainerOptions(const TrainerOptions &options) {
  if (options.at && !options.resume)
    return absl::InvalidArgumentError(
        "--at names the commit to resume from: give it together with --resume");
  if (options.quiet && options.verbose)
    return absl::InvalidArgumentError(
        "--quiet prints nothing and --verbose prints tables: only one of them can be given");
  if (options.steps && options.epochs > 0)
    return absl::InvalidArgumentError(
        "--steps and --epochs each say how long to train: only one of them can be given");
  if (options.changed_model && !options.resume)
    return absl::InvalidArgumentError("--changed-model lets another model go on with a state: "
                                      "give it together with --resume");
  if (options.changed_data && !options.resume)
    return absl::InvalidArgumentError("--changed-data lets a commit go on with other files of "
                                      "tokens: give it together with --resume");
  if (options.resume && !options.weights.empty())
    return absl::InvalidArgumentError(
        "--weights begins a run and --resume continues one: only one of them can be given");
  if (options.resume && !options.from.empty())
    return absl::InvalidArgumentError(
        "--from begins a run and --resume continues one: only one of them can be given");
  return absl::OkStatus();
}

absl::Status NameCommit(TrainerOptions &options) {
  FileSystem &disk = options.disk ? *options.disk : SystemFiles();
  absl::StatusOr<CommitName> named = FindCommit(disk, options.state);
  if (!named.ok())
    return absl::Status(named.status().code(),
                        absl::StrCat("--state ", options.state, ": ", named.status().message()));
  if (!named->step)
    return absl::OkStatus();
  if (!options.resume) {
    absl::StatusOr<bool> exists = StateStore::Exists(disk, named->directory);
    if (!exists.ok() || !*exists) // a new state of this name
      return exists.status();
    return absl::InvalidArgumentError(
        absl::StrCat("--state ", options.state,
                     " names a commit to resume from: give it together with --resume"));
  }
  if (options.at && options.at != named->step)
    return absl::InvalidArgumentError(absl::StrCat("--at ", *options.at, " and --state ",
                                                   options.state,
                                                   " name two commits: give one of them"));
  options.state = named->directory;
  options.at = named->step;
  return absl::OkStatus();
}

absl::Status NameAdapter(TrainerOptions &options) {
  std::error_code error;
  if (std::filesystem::is_regular_file(options.from, error))
    return absl::InvalidArgumentError(
        absl::StrCat("--from ", options.from,
                     ": it is a file: expected the folder of a state, or of "
                     "an adapter; --weights names a file"));
  if (!PeftAdapter::Is(options.from))
    return options.weights.empty() || options.from.empty()
               ? absl::OkStatus()
               : absl::InvalidArgumentError("--weights and --from each name the weights to begin "
                                            "with: only one of them can be given");
  const std::string folder = std::exchange(options.from, "");
  absl::StatusOr<std::unique_ptr<PeftAdapter>> adapter = PeftAdapter::Open(folder);
  if (!adapter.ok())
    return adapter.status();
  options.adapter = *std::move(adapter);
  if (!options.weights.empty())
    return absl::OkStatus();
  options.weights = options.adapter->base();
  if (!options.weights.empty() && std::filesystem::exists(options.weights, error))
    return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("--from ", folder, ": the adapters are of ",
                   options.weights.empty()
                       ? "a model that it does not name"
                       : absl::StrCat("`", options.weights, "`, and no folder has this name"),
                   ": --weights MODEL names its folder"));
}

absl::Status FlushOutput() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
    return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot write to standard output: ",
                   errno != 0 ? std::strerror(errno) : "a part of it was lost"));
}

int ExitStatus(const absl::Status &status) {
  if (status.ok())
    return 0;
  const int signal = SignalOf(status);
  PrintError(signal != 0 ? "" : "error: ", status);
  return signal != 0 ? 128 + signal : 1;
}

int UsageStatus(const absl::Status &status) {
  PrintError("error: ", status);
  return 2;
}

constexpr char kNoMemory[] =
    "there is not enough memory: end other programs, or raise the limit of this process "
    "(`ulimit -v`, its cgroup)";

static std::terminate_handler previous_terminate;

/// For exceptions that nobody can catch: on another thread, or below compiled code. A state is
/// whole at any instant, so the process ends here. Allocates nothing.
static void EndForMemory() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc &) {
      for (const char *part : {"error: ", kNoMemory, "\n"})
        (void)!write(STDERR_FILENO, part, std::strlen(part));
      _exit(1);
    } catch (...) {
    }
  }
  previous_terminate();
}

int RunWithinMemory(const std::function<int()> &run) {
  if (std::get_terminate() != EndForMemory)
    previous_terminate = std::set_terminate(EndForMemory);
  try {
    return run();
  } catch (const std::bad_alloc &) {
  } catch (const std::length_error &) { // of a container: more than any machine has
  }
  return ExitStatus(absl::ResourceExhaustedError(kNoMemory));
}

int TrainerMain(int argc, char **argv, std::string_view json, const Kernels &kernels,
                const EntryPoints &entry_points) {
  PrepareProcess();
  absl::StatusOr<Program> program = ParseProgram(json);
  if (!program.ok())
    return ExitStatus(program.status());
  TrainerOptions options;
  FlagTable flags = TrainerFlags(options);
  // There is but one command here, which has no name.
  for (Flag &flag : flags)
    flag.commands.clear();
  if (AsksForHelp(argc - 1, argv + 1)) {
    std::fputs(HelpText(argv[0], *program, flags).c_str(), stdout);
    return ExitStatus(FlushOutput());
  }
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::printf("%s, a trainer made by boa %s\n", program->model.name.c_str(), Version());
    return ExitStatus(FlushOutput());
  }
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  absl::StatusOr<std::vector<std::string>> rest = ReadFlags(flags, name, "", argc - 1, argv + 1);
  if (!rest.ok())
    return UsageStatus(rest.status());
  if (!rest->empty())
    return UsageStatus(absl::InvalidArgumentError(
        absl::StrCat("unexpected argument `", rest->front(), "`: ", name, " takes flags only")));
  absl::Status status = CheckTrainerOptions(options);
  if (status.ok())
    status = NameCommit(options);
  if (status.ok())
    status = NameAdapter(options);
  if (!status.ok())
    return UsageStatus(status);
  return ExitStatus(Train(*program, kernels, entry_points, options, InterruptsUntilExit()));
}

} // namespace boa
