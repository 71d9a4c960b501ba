//===- accounting.cpp - Counters, waits and the ends of runs --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/accounting.h"

#include <algorithm>

namespace boa {

using Kind = Work::Kind;

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

int64_t Accounting::BeginRun(int64_t at) {
  now = std::max(now, at);
  issuing = true;
  Run &fresh = runs[++newest];
  fresh.begin_ns = fresh.end_ns = at;
  return newest;
}

bool Accounting::IsDone(int64_t which, double share) {
  constexpr size_t kEnds = 64;
  while (!runs.empty() && runs.begin()->first <= which && runs.begin()->second.IsOver() &&
         !(issuing && runs.begin()->first == newest)) {
    ends[runs.begin()->first] = runs.begin()->second.end_ns;
    runs.erase(runs.begin());
    if (ends.size() > kEnds)
      ends.erase(ends.begin());
  }
  if (runs.empty() || runs.begin()->first > which)
    return true;
  const auto &[oldest, of] = *runs.begin();
  return oldest == which && double(of.kernels_left) <= share * double(of.kernels) && share > 0;
}

int64_t Accounting::EndOf(int64_t which) const {
  auto found = ends.find(which);
  return found == ends.end() ? now : found->second;
}

//===----------------------------------------------------------------------===//
// A command's life
//===----------------------------------------------------------------------===//

/// The number that a run waits for to become 0. It waits neither for transfers nor for slots.
int64_t *Accounting::LeftOf(const Work &work) {
  if (work.run == kNoRun || work.IsTransfer() || work.kind == Kind::create ||
      work.kind == Kind::release)
    return nullptr;
  Run &of = runs[work.run];
  return work.kind == Kind::kernel ? &of.kernels_left : &of.others_left;
}

/// The command with its lists. A chunk has an extent, and in a buffer a reader in its hazard or
/// a dependent in another command.
static int64_t BytesOf(const Command &command) {
  constexpr int64_t kCommand = 416, kChunk = 64, kFollowed = 4 * sizeof(CommandRef);
  return kCommand + kChunk * command.touched + kFollowed * int64_t(command.after.size());
}

void Accounting::Issued(const Command &command) {
  const Work &work = command.work;
  if (int64_t *left = LeftOf(work))
    ++*left;
  incomplete_bytes += BytesOf(command);
  if (work.kind == Kind::kernel)
    ++runs[work.run].kernels;
}

void Accounting::Finished(const Command &command) {
  --incomplete;
  incomplete_bytes -= BytesOf(command);
  if (int64_t *left = LeftOf(command.work)) {
    --*left;
    runs[command.work.run].end_ns = now;
  }
}

void Accounting::Completed(const Work &work, const Command &command, int64_t begin_ns,
                           int64_t end_ns) {
  --under_way;
  now = std::max(now, end_ns);
  if (work.run != kNoRun)
    Count(work, command, begin_ns, end_ns);
}

/// Adds what compute waited for.
static void AddWait(Counters &counted, Cause cause, double seconds) {
  if (cause == Cause::read)
    counted.waited_read += seconds;
  else if (cause == Cause::write)
    counted.waited_write += seconds;
  else if (cause == Cause::copy)
    counted.waited_copy += seconds;
  else if (cause == Cause::optimizer)
    counted.waited_optimizer += seconds;
}

/// Adds the command's own time and bytes, and, of a kernel, the wait of compute before it.
void Accounting::Count(const Work &work, const Command &command, int64_t begin_ns, int64_t end_ns) {
  Counters &counted = counters[work.run];
  const double seconds = double(end_ns - begin_ns) * 1e-9;
  if (work.kind == Kind::kernel) {
    counted.compute_seconds += seconds;
    counted.flops += program.kernels[work.index].flops();
    counted.launches += work.launches;
    counted.launch_calls += work.launch_calls;
    const int64_t from = std::max(compute_free_ns, runs[work.run].begin_ns);
    const double waited = double(std::min(begin_ns, command.ready_ns) - from) * 1e-9;
    const int64_t late_ns = begin_ns - std::max(from, command.ready_ns);
    counted.waited_launch += double(std::max<int64_t>(late_ns, 0)) * 1e-9;
    compute_free_ns = end_ns;
    if (waited <= 0)
      return;
    const Reason &reason = command.reason;
    const double before = reason.before == Cause::none || reason.before == Cause::compute
                              ? 0
                              : std::clamp(double(reason.since_ns - from) * 1e-9, 0.0, waited);
    AddWait(counted, reason.before, before);
    AddWait(counted, reason.cause, waited - before);
  } else if (IsSeparate(program.machine) && (work.ToDevice() || work.ToHost())) {
    if (work.kind == Kind::copy && work.buffers[0].space != work.buffers[1].space) {
      auto &bytes = work.ToDevice() ? counted.moved.to_device : counted.moved.to_host;
      bytes[program.storages[work.storage].role] += work.bytes;
    }
  } else if (!work.IsTransfer()) {
    counted.optimizer_seconds += seconds;
  }
}

//===----------------------------------------------------------------------===//
// Totals
//===----------------------------------------------------------------------===//

Counters Accounting::TakeCounters(int64_t of) {
  Counters taken;
  for (; !counters.empty() && counters.begin()->first <= of; counters.erase(counters.begin()))
    taken.Add(counters.begin()->second);
  return taken;
}

void Counters::Add(const Counters &other) {
  moved.Add(other.moved);
  for (const auto &[path, bytes] : other.written_to)
    written_to[path] += bytes;
  compute_seconds += other.compute_seconds;
  flops += other.flops;
  launches += other.launches;
  launch_calls += other.launch_calls;
  optimizer_seconds += other.optimizer_seconds;
  waited_read += other.waited_read;
  waited_write += other.waited_write;
  waited_copy += other.waited_copy;
  waited_optimizer += other.waited_optimizer;
  waited_launch += other.waited_launch;
}

} // namespace boa
