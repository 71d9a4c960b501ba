//===- request.h - A checked request for a training run ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The program of a run, with the command line's changes, and the files of the run. The
// checks here open nothing to write, so a refusal leaves all files as they were.
//
// Ownership: it owns its program, to which the engine and the state refer. So it must
// outlive them, and it cannot be copied.
// Threads: one, the driver.
// Errors: each names the rule and, if there is one, the way out.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_REQUEST_H
#define BOA_RUNTIME_TRAINER_REQUEST_H

#include "runtime/abi/program.h"
#include "runtime/data/data.h"
#include "runtime/io/file_system.h"
#include "runtime/trainer/trainer.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

/// The storages through which the data of a step enter and its losses leave.
struct Ports {
  int32_t tokens = -1, targets = -1, loss_gradients = -1, losses = -1;
  int32_t document_starts = -1, dropout_keys = -1; // of a program that takes them
};

class TrainRequest {
public:
  TrainRequest(const Program &compiled, const TrainerOptions &);
  TrainRequest(const TrainRequest &) = delete;
  TrainRequest &operator=(const TrainRequest &) = delete;

  /// Refuses plans that need too much memory, options that contradict each other, programs
  /// without ports, and outputs that would replace a file in use. Comes before all other calls.
  absl::Status Check();

  /// Counts the steps of a program that says epochs. Nothing refers to the program yet. The data
  /// go on behind the commit that was opened.
  absl::Status CountSteps(const Data &);

  /// Whether an earlier process has trained to the last step and saved the weights. Says so.
  absl::StatusOr<bool> IsFinished() const;

  /// The refusal of a state at step `at`, beyond the last step.
  absl::Status BeyondSteps(int64_t at) const;

  /// The flag that says how long to train, as the program says it.
  const char *FlagOfSteps() const { return changed.train.epochs > 0 ? "--epochs" : "--steps"; }

  const Program &program() const { return changed; }
  const TrainerOptions &options() const { return given; }
  const Ports &ports() const { return found; }
  /// The directories of the state, by SSD path. The first one names the state.
  const std::vector<std::string> &directories() const { return state; }
  /// The path of the trained weights.
  const std::string &save() const { return weights; }
  FileSystem &disk() const;

private:
  absl::Status FindPorts();
  absl::Status CheckFiles() const;

  Program changed;
  const TrainerOptions given;
  Ports found;
  std::vector<std::string> state;
  std::string weights;
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_REQUEST_H
