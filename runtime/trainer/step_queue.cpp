//===- step_queue.cpp - Steps on the engine -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/step_queue.h"

#include <algorithm>
#include <utility>

namespace boa {

StepQueue::StepQueue(const TrainRequest &request, const EntryPoints &entries, const Data &data,
                     std::unique_ptr<Engine> engine)
    : program(request.program()), data(data), ports(request.ports()), entries(entries),
      reader(program, data), owned(std::move(engine)) {}

int64_t StepQueue::Call(boa_entry_point entry, int64_t step, MicroBatches &batches) {
  std::vector<Port> in, out;
  for (auto [port, entries] : {std::pair(ports.tokens, &batches.tokens),
                               {ports.targets, &batches.targets},
                               {ports.document_starts, &batches.document_starts},
                               {ports.dropout_keys, &batches.dropout_keys}})
    for (size_t i = 0; i < entries->size(); ++i)
      in.push_back({port, int64_t(i), (*entries)[i].data(),
                    int64_t((*entries)[i].size() * sizeof(int32_t))});
  for (size_t m = 0; m < batches.losses.size(); ++m) {
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
  const int64_t asked_ns = owned->Now();
  absl::StatusOr<std::unique_ptr<MicroBatches>> batches = reader.Take(step);
  if (!batches.ok())
    return batches.status();
  next.batches = *std::move(batches);
  // The plan takes these to be read once, before their first update is written.
  if (std::exchange(fresh, false))
    for (const auto &[role, bytes] : owned->AbsentBytes())
      planned.read[role] -= bytes;
  const int64_t ready_ns = owned->Now();
  next.waited_ns = ready_ns - asked_ns;
  // Where no step runs, the wait for the data is a part of this one.
  next.start_ns = steps.empty() ? asked_ns : ready_ns;
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
  for (EnqueuedStep &next : steps) {
    // While the step before ran, compute did not wait for the data of this one.
    next.waited_ns = std::clamp<int64_t>(next.start_ns - end_ns, 0, next.waited_ns);
    next.start_ns = end_ns;
  }
  FinishedStep finished;
  finished.step = done.step;
  finished.run = done.run;
  finished.loss = done.batches->MeanLoss();
  finished.end_ns = end_ns;
  finished.seconds = double(end_ns - done.start_ns) * 1e-9;
  finished.waited_for_data = double(done.waited_ns) * 1e-9;
  finished.tokens_of = data.TokensOf(done.step);
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
