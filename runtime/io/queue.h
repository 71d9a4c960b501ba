//===- queue.h - The common queue of the I/O backends -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A queue that divides transfers into segments and decides which may start. A lane is a link
// and a direction. Within a lane the earliest deadline goes first; among lanes it is round robin.
// Each lane has a limit, and each link a depth of its own, so that a slow link does not take the
// slots of the others.
//
// Backends pop segments, move their bytes and report the result. The queue requeues the rest of a
// short segment and collects the completed transfers. It reads no clock: the backend passes the
// time. It is not thread safe: a backend guards it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_IO_QUEUE_H
#define BOA_RUNTIME_IO_QUEUE_H

#include "runtime/io/io.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace boa {

using IoClock = std::chrono::steady_clock;

/// Moves bytes as a disk of `rate` bytes a second would. They accrue while transfers wait, and a
/// caller that comes late finds at most those of a short time. Rate 0: no limit.
class IoLimiter {
public:
  IoLimiter(int64_t rate, int64_t segment_bytes, IoClock::time_point now);
  /// Transfers wait again. None did before, so nothing has accrued.
  void Resume(IoClock::time_point now) { empty = std::max(empty, now); }
  /// When `bytes` (at most a segment) will have accrued.
  IoClock::time_point ReadyAt(int64_t bytes, IoClock::time_point now);
  void Take(int64_t bytes);

private:
  IoClock::duration Cost(int64_t bytes) const;
  double rate = 0;
  IoClock::duration window{0}; // in which the most that may accrue does
  IoClock::time_point empty;   // nothing had accrued then
};

/// A transfer in progress.
struct IoTransfer {
  IoRequest request;
  int64_t issued = 0;    // bytes handed out in segments
  int32_t in_flight = 0; // segments popped or requeued, not finished
  absl::Status status;
};

/// Part of a transfer that one system call moves. After a signal or a shortage it is tried again,
/// up to `IoOptions::patience` without progress.
struct IoSegment {
  std::shared_ptr<IoTransfer> transfer;
  int64_t offset = 0, bytes = 0;
  char *data = nullptr;
  int64_t attempt = 0; // bytes to ask for now: fewer under injected faults
  int error = 0;       // injected: report this instead of moving anything
  std::string words;   // the cause of its error, if more is known than the number
  // After an interruption: tried again then, and the pause grows until some of its
  // bytes move.
  IoClock::duration pause{0};
  IoClock::time_point again, stalled;
  int fractions = 0; // attempts in a row that moved part of a block
};

class IoQueue {
public:
  using Completion = std::pair<std::function<void(absl::Status)>, absl::Status>;

  IoQueue(std::vector<IoFile> files, std::vector<IoLink> links, const IoOptions &,
          IoClock::time_point now);

  void Add(IoRequest);
  /// The next segment that may start by `now`.
  std::optional<IoSegment> Pop(IoClock::time_point now);
  /// The time to try Pop again. Nothing if only Add or Finish can help.
  std::optional<IoClock::time_point> NextStart(IoClock::time_point now);
  /// `result`: bytes moved, or a negated errno.
  void Finish(IoSegment, int64_t result, IoClock::time_point now);
  /// Fails every transfer that has no segment in flight, and all that follow. A transfer in
  /// flight still succeeds if its last segments do; nothing is tried again.
  void Abort(const absl::Status &);

  /// The most segments that are popped and not finished at any time.
  int Capacity() const { return depth * int(in_flight.size()); }
  /// Callbacks to run, without any lock held.
  std::vector<Completion> TakeDone() { return std::exchange(done, {}); }
  /// Nothing waits and nothing is in flight.
  bool Idle() const { return live == 0; }
  const IoFile &File(const IoSegment &segment) const {
    return files[segment.transfer->request.file];
  }

private:
  struct Lane {
    IoLimiter limiter;
    std::deque<IoSegment> requeued; // already paid for; each has its time
    // With bytes to hand out, by deadline.
    std::deque<std::shared_ptr<IoTransfer>> waiting;
    bool idle = true; // nothing waited when it was asked last
  };

  absl::Status Validate(const IoRequest &) const;
  Lane &LaneOf(const IoTransfer &);
  IoClock::time_point ReadyAt(Lane &, IoClock::time_point now);
  std::optional<IoSegment> PopFrom(Lane &, IoClock::time_point now);
  bool TryAgain(IoSegment &, IoClock::time_point now);
  IoSegment NextSegment(Lane &);
  void InjectFaults(IoSegment &);
  void Fail(IoTransfer &, const absl::Status &);
  void CompleteIfDone(const std::shared_ptr<IoTransfer> &);
  int64_t NextBytes(const Lane &) const;

  std::vector<IoFile> files;
  std::vector<Lane> lanes;    // link * 2 + write
  std::vector<int> in_flight; // segments popped and not finished, by link
  int depth;                  // the most of them
  size_t turn = 0;            // lane to ask first
  IoClock::duration patience; // without progress of a segment
  int64_t segment_bytes;
  IoFaults faults;
  int64_t attempts = 0;
  int64_t live = 0;
  absl::Status aborted;
  std::vector<Completion> done;
};

/// Options with the bounds that backends rely on.
IoOptions NormalizeIoOptions(IoOptions);

/// Runs callbacks taken from a queue.
void RunCompletions(std::vector<IoQueue::Completion>);

} // namespace boa

#endif // BOA_RUNTIME_IO_QUEUE_H
