//===- layer.cpp - Products, attention and a layer of a real model --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of a packed program (layer.boa), as the compiler laid it out.
//
//===----------------------------------------------------------------------===//
#include "test/gpu/measures.h"
#include "test/gpu/proposals.h"
#include "test/gpu/step.h"
#include "test/gpu/timing.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>

namespace boa::gputest {
namespace {

/// "41.2%" of a rate in operations a second; "-" where that is not known.
std::string FormatShare(double operations, double milliseconds, double peak) {
  return peak > 0 && milliseconds > 0
             ? absl::StrFormat("%.1f%%", 100 * operations / milliseconds * 1e3 / peak)
             : "-";
}

/// Opens the GPU and the program, or says why not; null: it did.
struct Opened {
  std::unique_ptr<Session> session;
  std::unique_ptr<Step> step;

  bool Open(const char *what, const std::string &file) {
    auto made = Session::Open();
    absl::Status status = made.status();
    if (made.ok()) {
      session = *std::move(made);
      auto opened = Step::Open(*session, file);
      status = opened.status();
      if (opened.ok())
        step = *std::move(opened);
    }
    if (!status.ok())
      NotMeasured(what, status);
    return status.ok();
  }
  /// What is on the GPU goes before the context does.
  ~Opened() { step.reset(); }
};

/// After an error of what ran, nothing more can: a launch of it is no use to those behind.
bool IsUsable(const Session &session) { return session.Wait().ok(); }

} // namespace

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Of what the library proposes for a product.
static constexpr int kProposals = 8;

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
// Attention
//===----------------------------------------------------------------------===//

namespace {

/// Attention that a kernel offers, and what the program has for it.
struct Offer {
  const KernelRun *run = nullptr;
  cuda::Attention attention;
  std::vector<Call> own;
};

/// All of a step.
std::vector<Offer> FindOffers(Step &step) {
  std::vector<Offer> offers;
  std::set<std::string> seen;
  for (const KernelRun &run : step.packed->runs) {
    const std::vector<bool> everything(64, true);
    const std::vector<Call> taken = step.Record(run, &everything);
    int64_t index = 0;
    for (size_t at = 0; at < taken.size(); ++at) {
      auto *attention = std::get_if<cuda::Attention>(&taken[at]);
      if (!attention)
        continue;
      std::vector<bool> others = everything;
      others[size_t(index++)] = false;
      // All but this one are taken: there are the launches for it in its place.
      const std::vector<Call> without = step.Record(run, &others);
      const size_t more = without.size() - (taken.size() - 1);
      if (seen.insert(step.Format(*attention)).second)
        offers.push_back(
            {&run, *attention, {without.begin() + long(at), without.begin() + long(at + more)}});
    }
  }
  return offers;
}

/// What attention writes.
struct Written {
  const char *name;
  const void *address;
  int64_t rows, stride, width; // of bf16
};

std::vector<Written> FindWritten(const cuda::Attention &a) {
  const cuda::AttentionShape &s = a.shape;
  const int64_t rows = s.batch * s.time, heads = s.heads * s.columns,
                kv_heads = s.kv_heads * s.columns;
  if (!s.gradient)
    return {{"y", a.y, rows, s.y, heads}};
  return {{"dq", a.dq, rows, s.dq, heads},
          {"dk", a.dk, rows, s.dk, kv_heads},
          {"dv", a.dv, rows, s.dv, kv_heads}};
}

class AttentionMeasure {
public:
  AttentionMeasure(Step &step, double peak) : step(step), session(step.session), peak(peak) {}

  int Run() {
    const std::vector<Offer> offers = FindOffers(step);
    if (offers.empty())
      return NotMeasured("attention", absl::NotFoundError("the program offers none to a library"));
    // What attention reads is there once the step has run up to it.
    int failed = 0;
    for (const KernelRun &run : step.packed->runs) {
      for (const Offer &offer : offers)
        if (offer.run == &run)
          Measure(offer, failed);
      if (!IsUsable(session))
        return 1;
    }
    return failed;
  }

private:
  /// Runs all of the kernel up to the attention, or without the library for products as far as it
  /// goes: then what is read is whatever is there.
  void Feed(const Offer &offer) {
    for (const KernelRun &run : step.packed->runs) {
      for (const Call &call : step.Record(run)) {
        // Later calls may overwrite its operands in the workspace.
        if (&run == offer.run && Begins(offer, call))
          return;
        if (step.Prepare(call).ok())
          step.Enqueue(call).IgnoreError();
      }
      if (&run == offer.run)
        return;
    }
  }

  /// Whether the call is the attention, or the first of the launches in its place.
  static bool Begins(const Offer &offer, const Call &call) {
    if (auto *attention = std::get_if<cuda::Attention>(&call))
      return attention->shape.gradient == offer.attention.shape.gradient &&
             attention->y == offer.attention.y && attention->dq == offer.attention.dq;
    auto *launch = std::get_if<cuda::LaunchCall>(&call);
    auto *first = offer.own.empty() ? nullptr : std::get_if<cuda::LaunchCall>(&offer.own.front());
    return launch && first && launch->function == first->function &&
           launch->arguments == first->arguments;
  }

  void Measure(const Offer &offer, int &failed) {
    const std::string name = step.Format(offer.attention);
    Feed(offer);
    std::vector<Call> own = offer.own;
    const std::vector<std::vector<char>> by_own = Time(name + ", own kernels", own, offer, failed);
    cuda::Attention given = offer.attention;
    const auto by_library = Time(name + ", cuDNN, as the program has it", {given}, offer, failed);
    Compare(by_own, by_library);
    // Room for all of it at once, and for a quarter of what the program has.
    const int64_t heads = given.shape.batch * given.shape.heads, tiles = given.shape.time;
    const int64_t whole = given.scratch_bytes + heads * (tiles + 128) * (tiles + 128) * 2;
    if (!given.shape.gradient)
      return;
    for (auto [words, bytes] : {std::pair<const char *, int64_t>{", cuDNN, in one piece", whole},
                                {", cuDNN, in smaller parts", given.scratch_bytes / 4}}) {
      DeviceMemory scratch(session);
      cuda::Attention other = given;
      if (absl::Status status = scratch.Allocate(size_t(bytes)); !status.ok()) {
        failed = NotMeasured(name + words, status);
        continue;
      }
      other.scratch = scratch.at(0);
      other.scratch_bytes = bytes;
      Time(name + words, {other}, offer, failed);
    }
  }

  /// Times the calls, and runs them twice for the same bits. What they wrote.
  std::vector<std::vector<char>> Time(const std::string &name, const std::vector<Call> &calls,
                                      const Offer &offer, int &failed) {
    absl::Status status;
    for (const Call &call : calls) {
      if (status.ok())
        status = step.Prepare(call);
      if (auto *attention = std::get_if<cuda::Attention>(&call); attention && status.ok()) {
        auto takes = step.queue.dnn->Takes(*attention);
        status = takes.status();
        if (takes.ok() && !*takes)
          status = absl::UnimplementedError(step.queue.dnn->Describe());
      }
    }
    auto enqueue = [&] {
      absl::Status all;
      for (const Call &call : calls)
        if (all.ok())
          all = step.Enqueue(call);
      return all;
    };
    absl::StatusOr<double> time = MeasureIf(status, session, enqueue);
    std::vector<std::vector<char>> once, again;
    for (auto *to : {&once, &again})
      if (time.ok()) {
        status = enqueue();
        if (status.ok())
          status = Fetch(offer.attention, *to);
        if (!status.ok())
          time = status;
      }
    if (!time.ok()) {
      failed = NotMeasured(name, time.status());
      return {};
    }
    const double operations = Step::Operations(offer.attention);
    std::printf("%s: %s, %s, %s of peak; again: %s\n", name.c_str(), FormatMs(*time).c_str(),
                FormatOperations(operations, *time).c_str(),
                FormatShare(operations, *time, peak).c_str(),
                once == again ? "the same bits" : "OTHER BITS");
    failed |= once != again;
    return once;
  }

  absl::Status Fetch(const cuda::Attention &attention, std::vector<std::vector<char>> &to) {
    to.clear();
    for (const Written &one : FindWritten(attention)) {
      std::vector<char> all(size_t(((one.rows - 1) * one.stride + one.width) * 2)), rows;
      const cuda::Driver &driver = session.driver();
      absl::Status status = driver.Call(
          "copying from the device", driver.MemcpyDtoHAsync, static_cast<void *>(all.data()),
          reinterpret_cast<cuda::Pointer>(one.address), all.size(), session.stream());
      if (status.ok())
        status = session.Wait();
      if (!status.ok())
        return status;
      // Between its rows may be what others write.
      for (int64_t row = 0; row < one.rows; ++row) {
        const char *const from = all.data() + row * one.stride * 2;
        rows.insert(rows.end(), from, from + one.width * 2);
      }
      to.push_back(std::move(rows));
    }
    return absl::OkStatus();
  }

  /// The norm of the difference over that of what it is from.
  static void Compare(const std::vector<std::vector<char>> &own,
                      const std::vector<std::vector<char>> &library) {
    for (size_t i = 0; i < own.size() && i < library.size(); ++i) {
      double squares = 0, apart = 0;
      for (size_t at = 0; at + 1 < own[i].size(); at += 2) {
        auto value = [&](const std::vector<char> &from) {
          uint16_t high;
          std::memcpy(&high, &from[at], 2);
          const uint32_t bits = uint32_t(high) << 16;
          float single;
          std::memcpy(&single, &bits, 4);
          return double(single);
        };
        const double x = value(own[i]), y = value(library[i]);
        squares += x * x;
        apart += (x - y) * (x - y);
      }
      std::printf("  result %d: cuDNN's is off the own kernels' by %.2g of its norm\n", int(i),
                  squares > 0 ? std::sqrt(apart / squares) : std::sqrt(apart));
    }
  }

  Step &step;
  const Session &session;
  const double peak;
};

} // namespace

int MeasureAttention(const std::string &file, double peak) {
  Opened opened;
  return opened.Open("attention", file) ? AttentionMeasure(*opened.step, peak).Run() : 1;
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
absl::StatusOr<double> MeasureGraph(Step &step, const std::vector<Call> &calls) {
  const Session &session = step.session;
  const cuda::Driver &driver = session.driver();
  constexpr int kThreadLocal = 1;
  cuda::CapturedGraph captured = nullptr;
  cuda::GraphExec exec = nullptr;
  absl::Status status =
      driver.Call("capturing", driver.StreamBeginCapture, session.stream(), kThreadLocal);
  if (!status.ok())
    return status;
  const absl::Status enqueued = EnqueueAll(step, calls);
  status = driver.Call("capturing", driver.StreamEndCapture, session.stream(), &captured);
  if (status.ok())
    status = enqueued;
  if (status.ok())
    status = driver.Call("capturing", driver.GraphInstantiate, &exec, captured, 0ull);
  absl::StatusOr<double> time = MeasureIf(status, session, [&] {
    return driver.Call("launching a graph", driver.GraphLaunch, exec, session.stream());
  });
  session.Wait().IgnoreError();
  if (exec)
    driver.GraphExecDestroy.address(exec);
  if (captured)
    driver.GraphDestroy.address(captured);
  return time;
}

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
    kernel_flops += kernel.flops;
    if (absl::StartsWith(kernel.name, "block_forward")) { // one that saves has another name
      forward.insert(forward.end(), one.calls.begin(), one.calls.end());
      forward_flops += kernel.flops;
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
  print("layer forward and backward as one CUDA graph", MeasureGraph(step, layer),
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

} // namespace boa::gputest
