//===- step_queue.h - Steps on the engine -----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls the program's entry points with their micro-batches. Steps are enqueued one behind
// the other and finish in that order. With delayed updates, it also knows the step whose
// updates are not applied yet.
//
// Ownership: it owns the engine, and the micro-batches of enqueued steps while the engine
// uses them. Program, entry points and text must outlive it.
// Threads: one, the driver, and that of ReadAhead.
// Errors: those of the text and of the engine. After one, the engine runs nothing more.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_STEP_QUEUE_H
#define BOA_RUNTIME_TRAINER_STEP_QUEUE_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"
#include "runtime/data/data.h"
#include "runtime/trainer/micro_batches.h"
#include "runtime/trainer/read_ahead.h"
#include "runtime/trainer/request.h"
#include "runtime/trainer/trainer.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace boa {

struct FinishedStep {
  int64_t step = 0;
  int64_t run = 0; // of the engine
  double loss = 0;
  double seconds = 0;
  double waited_for_data = 0;               // seconds that the device had no data
  std::map<std::string, int64_t> tokens_of; // by source, of a mix
  int64_t end_ns = 0;                       // on the engine's clock
  std::optional<double> gradient_norm;      // before clipping, if the program computes it
};

class StepQueue {
public:
  StepQueue(const TrainRequest &, const EntryPoints &, const Data &, std::unique_ptr<Engine>);

  Engine &engine() { return *owned; }
  bool IsEmpty() const { return steps.empty(); }
  /// The oldest enqueued step.
  int64_t oldest() const { return steps.front().step; }

  /// Takes the micro-batches of a step, which a thread has read, and enqueues it behind the others.
  /// Steps come in order.
  absl::Status Enqueue(int64_t step);
  /// Waits until so much of the oldest step is done that the next should be enqueued.
  absl::Status WaitToEnqueue();
  /// Waits for the oldest step.
  absl::StatusOr<FinishedStep> Finish();

  /// Applies the delayed updates. `step`: the newest step that finished.
  absl::Status ApplyUpdates(int64_t step);
  /// Computes losses with the weights after this step. No step may be enqueued.
  absl::Status Evaluate(int64_t step, MicroBatches &);

  /// The traffic of all calls so far, according to the plan.
  const Traffic &predicted() const { return planned; }

private:
  struct EnqueuedStep {
    int64_t step = 0, run = 0;
    int64_t start_ns = 0;  // of the engine's clock
    int64_t waited_ns = 0; // for its data
    std::unique_ptr<MicroBatches> batches;
  };

  int64_t Call(boa_entry_point, int64_t step, MicroBatches &);

  const Program &program;
  const Data &data;
  const Ports ports;
  const EntryPoints entries;
  ReadAhead reader;
  bool fresh = true;   // no step was enqueued
  int64_t follows = 0; // steps that ran one behind the other until now
  int64_t pending = 0; // the step whose updates are not applied yet; 0: none
  Traffic planned;
  std::map<int64_t, double> norms; // of gradients, by step
  std::deque<EnqueuedStep> steps;
  std::unique_ptr<Engine> owned; // last: it uses the batches until it is gone
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_STEP_QUEUE_H
