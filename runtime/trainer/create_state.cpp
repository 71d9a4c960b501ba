//===- create_state.cpp - A state that no step has trained ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/create_state.h"

#include "runtime/trainer/opening.h"
#include "runtime/trainer/request.h"
#include "runtime/trainer/run_report.h"

#include "absl/strings/str_cat.h"

#include <chrono>
#include <utility>

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

absl::Status CreateState(const Program &compiled, const Kernels &kernels,
                         const TrainerOptions &options, const InterruptGuard &interrupt) {
  TrainRequest request(compiled, options);
  if (absl::Status status = request.Check(); !status.ok())
    return status;
  absl::StatusOr<std::unique_ptr<GivenWeights>> given = OpenGiven(request);
  if (!given.ok())
    return given.status();
  absl::StatusOr<std::unique_ptr<StateStore>> state =
      OpenState(request, /*base=*/nullptr, interrupt);
  if (!state.ok())
    return state.status();
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
  // Settings belong to steps, and no step was taken.
  CommitRecord record;
  record.time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  record.plan = request.program().ScheduleInWords();
  record.environment = (*engine)->Environment();
  return IfInterrupted((*engine)->Commit(std::move(record)), nothing_kept);
}

} // namespace boa
