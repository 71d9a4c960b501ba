//===- create_state.cpp - A state that no step has trained ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/create_state.h"

#include "runtime/state/manifest_files.h"
#include "runtime/state/undo.h"
#include "runtime/trainer/loss_settings.h"
#include "runtime/trainer/opening.h"
#include "runtime/trainer/request.h"
#include "runtime/trainer/run_report.h"

#include "absl/strings/str_cat.h"

#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

namespace boa {

/// The program with the memory of its state alone. Chunks are written from the caller's memory, so
/// storages have no slots. Storages of a step, which nobody uses here, are as small as possible.
static Program WithoutSteps(Program program) {
  for (Storage &storage : program.storages) {
    storage.pools.clear();
    if (!storage.persistent && !storage.LivesOn(Home::ssd))
      storage.bytes = int64_t(BOA_BLOCK_BYTES) * storage.chunks;
  }
  for (Kernel &kernel : program.kernels)
    kernel.workspace = 0;
  program.arena_device = program.arena_host = 0;
  return program;
}

namespace {

/// Which files and directories of a state are not there yet.
class Absent {
public:
  Absent(FileSystem &disk, const std::vector<std::string> &directories)
      : disk(disk), home(directories[0]) {
    for (const std::string &directory : directories) {
      // With all parents that lack.
      for (size_t end = directory.find('/', 1);; end = directory.find('/', end + 1)) {
        if (Is(directory.substr(0, end)))
          lacking.push_back(directory.substr(0, end));
        if (end == std::string::npos)
          break;
      }
      for (const char *name : {"lock", kManifest, kManifestCopy, "data"})
        if (Is(absl::StrCat(directory, "/", name)))
          files.push_back({directory, name});
    }
  }
  /// Has them removed, now that the state is made.
  void AddTo(Undo &undo) const {
    for (const std::string &directory : lacking)
      undo.AddDirectory(directory);
    for (const auto &[directory, name] : files)
      if (absl::StatusOr<std::shared_ptr<Directory>> folder = disk.OpenDirectory(directory);
          folder.ok()) {
        undo.AddFile(*folder, name);
        if (directory == home && name == kManifest)
          undo.AddCommits(*folder);
      }
  }

private:
  bool Is(const std::string &path) const {
    absl::StatusOr<PathKind> kind = disk.Kind(path);
    return kind.ok() && *kind == PathKind::nothing;
  }

  FileSystem &disk;
  const std::string home;
  std::vector<std::string> lacking;                       // directories
  std::vector<std::pair<std::string, std::string>> files; // directory, name
};

} // namespace

absl::Status CreateState(const Program &compiled, const Kernels &kernels,
                         const TrainerOptions &options, const InterruptGuard &interrupt) {
  TrainRequest request(compiled, options);
  if (absl::Status status = request.Check(); !status.ok())
    return status;
  absl::StatusOr<std::unique_ptr<GivenWeights>> given = OpenGiven(request);
  if (!given.ok())
    return given.status();
  const Absent absent(request.disk(), request.directories());
  absl::StatusOr<std::unique_ptr<StateStore>> state =
      OpenState(request, /*base=*/nullptr, interrupt);
  if (!state.ok())
    return state.status();
  // While the state is locked, so that no other process has it by then.
  Undo undo(request.disk());
  absent.AddTo(undo);
  const Program program = WithoutSteps(request.program());
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(program, kernels, state->get(), {});
  const std::string nothing_kept = absl::StrCat("interrupted; `", request.directories()[0],
                                                "` holds no commit, the same command begins again");
  if (!engine.ok())
    return IfInterrupted(engine.status(), nothing_kept);
  (*engine)->SetEndsOnSignal(std::chrono::seconds(0));
  RunReport report(request, EntryPoints(), /*first=*/0, (*state)->Identity());
  if (absl::Status status =
          FillParameters(request, /*base=*/nullptr, given->get(), **engine, report);
      !status.ok())
    return IfInterrupted(status, nothing_kept);
  // Other settings belong to steps, and no step was taken.
  CommitRecord record;
  for (auto &[key, value] : CollectSettings(program, {}))
    if (key == kAdapters || key == kAdapterDropout)
      record.extra[key] = value;
  record.time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  record.plan = request.program().ScheduleInWords();
  record.environment = (*engine)->Environment();
  absl::Status status = IfInterrupted((*engine)->Commit(std::move(record)), nothing_kept);
  if (status.ok())
    undo.Keep();
  return status;
}

} // namespace boa
