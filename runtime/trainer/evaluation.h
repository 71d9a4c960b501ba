//===- evaluation.h - The validation loss -----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computes the loss of the validation text with the weights after a step. It applies
// delayed updates first. To apply them early changes no update.
//
// Ownership: none. All parts that it gets must outlive it.
// Threads: one, the driver.
// Errors: those of the text and of the engine.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_EVALUATION_H
#define BOA_RUNTIME_TRAINER_EVALUATION_H

#include "runtime/abi/program.h"
#include "runtime/data/data.h"
#include "runtime/trainer/process.h"
#include "runtime/trainer/step_queue.h"
#include "runtime/trainer/step_traffic.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <optional>

namespace boa {

class Evaluation {
public:
  /// `possible`: the program has an entry point for it.
  Evaluation(const Program &program, bool possible, const Data &data, StepQueue &steps,
             StepTraffic &traffic, const InterruptGuard &interrupt)
      : program(program), possible(possible), data(data), steps(steps), traffic(traffic),
        interrupt(interrupt) {}

  /// Whether an evaluation follows this step.
  bool IsDue(int64_t step) const;
  /// The mean loss, or nothing if a signal came. Then the evaluation leaves out the work that has
  /// not begun. The caller has no step enqueued.
  absl::StatusOr<std::optional<double>> Run(int64_t step);

private:
  absl::StatusOr<std::optional<double>> MeanLoss(int64_t step);

  const Program &program;
  const bool possible;
  const Data &data;
  StepQueue &steps;
  StepTraffic &traffic;
  const InterruptGuard &interrupt;
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_EVALUATION_H
