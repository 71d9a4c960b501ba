//===- attention.cpp - Attention of a real model -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of a packed program (layer.boa), by its own kernels and by cuDNN.
//
//===----------------------------------------------------------------------===//
#include "test/gpu/opened.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

namespace boa::gputest {

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

} // namespace boa::gputest
