//===- layer.cpp - Products and a layer of a real model -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of a packed program (layer.boa), as the compiler laid it out.
//
//===----------------------------------------------------------------------===//
#include "test/gpu/opened.h"
#include "test/gpu/proposals.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

namespace boa::gputest {
//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Of what the library proposes for a product.
static constexpr int kProposals = 8;
/// Under load, before kernels are timed as in a training.
static constexpr std::chrono::milliseconds kHeating{1500}, kTiming{2000};

/// "best of 8: #3, 0.21 ms, 650 TFLOP/s, 1.07 x the first".
static std::string FormatBest(const std::vector<double> &times, double operations) {
  size_t best = 0;
  for (size_t i = 0; i < times.size(); ++i)
    if (times[i] > 0 && (times[best] <= 0 || times[i] < times[best]))
      best = i;
  if (times.empty() || times[best] <= 0)
    return "of what is proposed none runs";
  return absl::StrFormat("best of %d: #%d, %s, %s, %.2f x as fast as the first", times.size(),
                         best + 1, FormatMs(times[best]), FormatOperations(operations, times[best]),
                         times[0] / times[best]);
}

int MeasureProducts(const std::string &file, double peak) {
  Opened opened;
  if (!opened.Open("products of a layer", file))
    return 1;
  Step &step = *opened.step;
  struct Distinct {
    cuda::Product product;
    std::string name, kernel;
    int count = 0;
  };
  std::vector<Distinct> all;
  for (const KernelRun &run : step.packed->runs)
    for (const Call &call : step.Record(run))
      if (auto *product = std::get_if<cuda::Product>(&call)) {
        const std::string name = step.Format(call);
        auto same = std::find_if(all.begin(), all.end(),
                                 [&](const Distinct &one) { return one.name == name; });
        if (same == all.end())
          same = all.insert(all.end(), {*product, name, step.KernelOf(run).name});
        ++same->count;
      }
  int failed = 0;
  auto proposals = Proposals::Open(opened.session->driver().version());
  for (const Distinct &one : all) {
    absl::Status status = step.Prepare(one.product);
    const absl::StatusOr<double> first =
        MeasureIf(status, *opened.session, [&] { return step.Enqueue(one.product); });
    if (!first.ok()) {
      failed = NotMeasured("product " + one.name, first.status());
      if (!step.blas() || !IsUsable(*opened.session))
        return failed;
      continue;
    }
    const double operations = Step::Operations(one.product);
    // The first is what a training takes.
    std::string best = proposals.ok() ? "" : std::string(proposals.status().message());
    if (proposals.ok()) {
      const auto times = (*proposals)->Measure(*opened.session, one.product, kProposals);
      if (times.ok())
        best = FormatBest(*times, operations);
      else
        best = std::string(times.status().message());
    }
    std::printf("%s, %d x in a step, first in %s: %s, %s, %s of peak; %s\n", one.name.c_str(),
                one.count, one.kernel.c_str(), FormatMs(*first).c_str(),
                FormatOperations(operations, *first).c_str(),
                FormatShare(operations, *first, peak).c_str(), best.c_str());
  }
  return failed;
}

//===----------------------------------------------------------------------===//
// The layer
//===----------------------------------------------------------------------===//

namespace {

/// Enqueues calls; all were prepared.
absl::Status EnqueueAll(Step &step, const std::vector<Call> &calls) {
  absl::Status status;
  for (const Call &call : calls)
    if (status.ok())
      status = step.Enqueue(call);
  return status;
}

/// The same as one CUDA graph.
class StepGraph {
public:
  StepGraph(Step &step, const std::vector<Call> &calls) : session(step.session) {
    constexpr int kThreadLocal = 1;
    const cuda::Driver &driver = session.driver();
    status = driver.Call("capturing", driver.StreamBeginCapture, session.stream(), kThreadLocal);
    if (!status.ok())
      return;
    const absl::Status enqueued = EnqueueAll(step, calls);
    status = driver.Call("capturing", driver.StreamEndCapture, session.stream(), &captured);
    if (status.ok())
      status = enqueued;
    if (status.ok())
      status = driver.Call("capturing", driver.GraphInstantiate, &exec, captured, 0ull);
  }
  StepGraph(const StepGraph &) = delete;
  ~StepGraph() {
    session.Wait().IgnoreError();
    if (exec)
      session.driver().GraphExecDestroy.address(exec);
    if (captured)
      session.driver().GraphDestroy.address(captured);
  }

  absl::Status Launch() const {
    const cuda::Driver &driver = session.driver();
    return status.ok()
               ? driver.Call("launching a graph", driver.GraphLaunch, exec, session.stream())
               : status;
  }
  absl::StatusOr<double> Measure() const {
    return MeasureIf(status, session, [&] { return Launch(); });
  }

private:
  const Session &session;
  cuda::CapturedGraph captured = nullptr;
  cuda::GraphExec exec = nullptr;
  absl::Status status;
};

} // namespace

int MeasureLayer(const std::string &file, double peak) {
  Opened opened;
  if (!opened.Open("a layer", file))
    return 1;
  Step &step = *opened.step;
  const Session &session = *opened.session;
  int failed = 0;
  // Of the layer: forward alone, and forward and backward.
  std::vector<Call> layer, forward;
  double forward_flops = 0, kernel_flops = 0;
  bool whole = true;
  struct Made {
    const Kernel *kernel;
    std::vector<Call> calls;
  };
  std::vector<Made> made;
  for (const KernelRun &run : step.packed->runs) {
    Made one{&step.KernelOf(run), step.Record(run)};
    std::set<std::string> refused;
    for (const Call &call : one.calls)
      if (absl::Status status = step.Prepare(call); !status.ok()) {
        whole = false;
        const bool same = !refused.insert(std::string(status.message())).second;
        if (!same)
          failed = NotMeasured(absl::StrCat(one.kernel->name, ": ", step.Format(call)), status);
      }
    auto gone = [&](const Call &call) {
      return std::holds_alternative<cuda::Product>(call) && !step.blas();
    };
    one.calls.erase(std::remove_if(one.calls.begin(), one.calls.end(), gone), one.calls.end());
    // Once, so that what comes after has what it reads.
    absl::Status status = EnqueueAll(step, one.calls);
    if (status.ok())
      status = session.Wait();
    if (!status.ok())
      return NotMeasured(one.kernel->name, status);
    // Its layers are alike: one stands for all.
    if (std::none_of(made.begin(), made.end(),
                     [&](const Made &other) { return other.kernel == one.kernel; }))
      made.push_back(std::move(one));
  }
  for (const Made &one : made) {
    const Kernel &kernel = *one.kernel;
    if (!absl::StartsWith(kernel.name, "block_"))
      continue;
    layer.insert(layer.end(), one.calls.begin(), one.calls.end());
    kernel_flops += kernel.flops();
    if (absl::StartsWith(kernel.name, "block_forward")) { // one that saves has another name
      forward.insert(forward.end(), one.calls.begin(), one.calls.end());
      forward_flops += kernel.flops();
    }
  }
  if (step.queue.dnn)
    std::printf("%s\n", step.queue.dnn->Describe().c_str());
  auto print = [&](const char *what, const absl::StatusOr<double> &time, double flops) {
    if (!time.ok()) {
      failed = NotMeasured(what, time.status());
      return;
    }
    std::printf("%s%s: %s, %s, %s of peak\n", what, whole ? "" : ", without what is missing",
                FormatMs(*time).c_str(), whole ? FormatOperations(flops, *time).c_str() : "-",
                whole ? FormatShare(flops, *time, peak).c_str() : "-");
  };
  const auto all = MeasureMs(session, [&] { return EnqueueAll(step, layer); });
  // What a model's own operations are, whatever is computed again: three times those forward.
  print("layer forward and backward", all, 3 * forward_flops);
  if (kernel_flops > 3 * forward_flops)
    print("the same, with what it computes again counted", all, kernel_flops);
  print("layer forward", MeasureMs(session, [&] { return EnqueueAll(step, forward); }),
        forward_flops);
  print("layer forward and backward as one CUDA graph", StepGraph(step, layer).Measure(),
        3 * forward_flops);
  for (const Made &one : made) {
    const auto together = MeasureMs(session, [&] { return EnqueueAll(step, one.calls); });
    if (!together.ok())
      return NotMeasured(one.kernel->name, together.status());
    std::printf("kernel %s: %s, %d calls\n", one.kernel->name.c_str(), FormatMs(*together).c_str(),
                int(one.calls.size()));
    double sum = 0;
    for (const Call &call : one.calls) {
      const auto time = MeasureMs(session, [&] { return step.Enqueue(call); });
      if (!time.ok())
        return NotMeasured(step.Format(call), time.status());
      sum += *time;
      const double operations = Step::Operations(call), bytes = step.Bytes(call);
      std::printf("  %10s %4.1f%%  %s  %s\n", FormatMs(*time).c_str(), 100 * *time / *together,
                  operations > 0 ? FormatOperations(operations, *time).c_str()
                                 : FormatBandwidth(bytes, *time).c_str(),
                  step.Format(call).c_str());
    }
    std::printf("  one by one they take %s\n", FormatMs(sum).c_str());
  }
  return failed;
}

int MeasureTimes(const std::string &file) {
  Opened opened;
  if (!opened.Open("kernels", file))
    return 1;
  Step &step = *opened.step;
  std::map<std::string, std::unique_ptr<StepGraph>> graphs;
  for (const KernelRun &run : step.packed->runs) {
    const std::string &name = step.KernelOf(run).name;
    const std::vector<Call> calls = step.Record(run);
    absl::Status status;
    for (const Call &call : calls)
      if (status.ok())
        status = step.Prepare(call);
    // Each run: later kernels read its results.
    if (status.ok())
      status = EnqueueAll(step, calls);
    if (status.ok())
      status = opened.session->Wait();
    if (!status.ok())
      return NotMeasured(name, status);
    if (std::unique_ptr<StepGraph> &graph = graphs[name]; !graph)
      graph = std::make_unique<StepGraph>(step, calls);
  }
  // In a training's order: power and caches are those of a training, too. The first seconds are
  // not counted, until the clock has fallen.
  std::map<std::string, std::vector<double>> milliseconds;
  std::vector<std::unique_ptr<Timer>> timers;
  absl::Status status;
  for (size_t i = 0; i < step.packed->runs.size(); ++i)
    status.Update(timers.emplace_back(std::make_unique<Timer>(*opened.session))->Create());
  const auto begin = std::chrono::steady_clock::now();
  auto is_past = [&](std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() - begin > time;
  };
  while (status.ok() && (milliseconds.empty() || !is_past(kHeating + kTiming))) {
    const bool counts = is_past(kHeating);
    auto timer = timers.begin();
    for (const KernelRun &run : step.packed->runs) {
      status.Update((*timer)->Record(0));
      status.Update(graphs[step.KernelOf(run).name]->Launch());
      status.Update((*timer++)->Record(1));
    }
    timer = timers.begin();
    for (const KernelRun &run : step.packed->runs) {
      const auto time = (*timer++)->Read();
      status.Update(time.status());
      if (time.ok() && counts)
        milliseconds[step.KernelOf(run).name].push_back(*time);
    }
  }
  if (!status.ok())
    return NotMeasured("kernels", status);
  for (auto &[name, all] : milliseconds) {
    std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
    std::printf("%s %.9g\n", name.c_str(), all[all.size() / 2] / 1e3);
  }
  return 0;
}

} // namespace boa::gputest
