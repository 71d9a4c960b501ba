//===- step_queue.cpp - Steps on the engine -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/step_queue.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace boa {

MicroBatches::MicroBatches(const Program &program)
    : tokens(program.MicroBatches(),
             std::vector<int32_t>(program.MicroBatch() * program.model.context)),
      targets(tokens), counts(tokens.size()), loss_gradients(tokens.size()), losses(tokens.size()) {
}

int64_t MicroBatches::counted() const {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

void MicroBatches::CountTargets() {
  for (size_t m = 0; m < counts.size(); ++m)
    counts[m] = std::count_if(targets[m].begin(), targets[m].end(),
                              [](int32_t target) { return target >= 0; });
  const double all = double(std::max<int64_t>(counted(), 1));
  for (size_t m = 0; m < counts.size(); ++m)
    loss_gradients[m] = float(double(counts[m]) / all);
}

double MicroBatches::TotalLoss() const {
  double sum = 0;
  for (size_t m = 0; m < counts.size(); ++m)
    sum += double(counts[m]) * losses[m];
  return sum;
}

double MicroBatches::MeanLoss() const {
  return TotalLoss() / double(std::max<int64_t>(counted(), 1));
}

StepQueue::StepQueue(const TrainRequest &request, const EntryPoints &entries, const Data &data,
                     std::unique_ptr<Engine> engine)
    : program(request.program()), ports(request.ports()), entries(entries), data(data),
      owned(std::move(engine)) {}

int64_t StepQueue::Call(boa_entry_point entry, int64_t step, MicroBatches &batches) {
  std::vector<Port> in, out;
  for (size_t m = 0; m < batches.losses.size(); ++m) {
    const int64_t bytes = batches.tokens[m].size() * sizeof(int32_t);
    in.push_back({ports.tokens, int64_t(m), batches.tokens[m].data(), bytes});
    in.push_back({ports.targets, int64_t(m), batches.targets[m].data(), bytes});
    in.push_back({ports.loss_gradients, int64_t(m), &batches.loss_gradients[m], sizeof(float)});
    out.push_back({ports.losses, int64_t(m), &batches.losses[m], sizeof(float)});
  }
  if (entry != entries.step)
    follows = 0;
  return owned->Enqueue(entry, step, entry == entries.step ? pending : 0, in, out);
}

absl::Status StepQueue::Enqueue(int64_t step) {
  EnqueuedStep next;
  next.step = step;
  next.batches = std::make_unique<MicroBatches>(program);
  for (size_t m = 0; m < next.batches->losses.size(); ++m)
    if (absl::Status status = data.FillTraining(step, int64_t(m), next.batches->tokens[m].data(),
                                                next.batches->targets[m].data());
        !status.ok())
      return status;
  next.batches->CountTargets();
  // The plan takes these to be read once, before their first update is written.
  if (std::exchange(fresh, false))
    for (const auto &[role, bytes] : owned->AbsentBytes())
      planned.read[role] -= bytes;
  next.start_ns = owned->Now();
  next.run = Call(entries.step, step, *next.batches);
  // A step behind another one applies that step's updates, and finds in memory the storages that
  // the step before kept there.
  planned.Add(program.TrafficOfStep(follows++));
  pending = program.plan.delay > 0 ? step : 0;
  steps.push_back(std::move(next));
  return absl::OkStatus();
}

absl::Status StepQueue::WaitToEnqueue() { return owned->Wait(steps.front().run, kEnqueueAhead); }

absl::StatusOr<FinishedStep> StepQueue::Finish() {
  if (absl::Status status = owned->Wait(steps.front().run); !status.ok())
    return status;
  const EnqueuedStep done = std::move(steps.front());
  steps.pop_front();
  const int64_t end_ns = owned->EndOf(done.run);
  // From then on, the engine worked on the next step.
  for (EnqueuedStep &next : steps)
    next.start_ns = end_ns;
  FinishedStep finished;
  finished.step = done.step;
  finished.run = done.run;
  finished.loss = done.batches->MeanLoss();
  finished.seconds = double(end_ns - done.start_ns) * 1e-9;
  norms.merge(owned->TakeNorms());
  if (auto it = norms.find(done.step); it != norms.end())
    finished.gradient_norm = it->second;
  norms.erase(norms.begin(), norms.upper_bound(done.step));
  return finished;
}

absl::Status StepQueue::ApplyUpdates(int64_t step) {
  if (pending == 0)
    return absl::OkStatus();
  if (absl::Status status = owned->Run(entries.drain, step, pending); !status.ok())
    return status;
  pending = 0;
  follows = 0;
  if (auto it = program.traffic.find("drain"); it != program.traffic.end())
    planned.Add(it->second);
  return absl::OkStatus();
}

absl::Status StepQueue::Evaluate(int64_t step, MicroBatches &batches) {
  return owned->Wait(Call(entries.evaluate, step, batches));
}

} // namespace boa
