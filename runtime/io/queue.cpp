//===- queue.cpp - Choice of the backend, and the queue they share -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A transfer completes when all of its bytes were handed out and none of its segments is in
// flight. It also completes when a segment has failed and the others in flight are back. So its
// memory is never in use once `done` runs.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/queue.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/abi/abi.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace boa {
namespace {

constexpr int64_t kAlignment = BOA_BLOCK_BYTES;
constexpr int kMaxDepth = 1024; // of all links together, but for one each
// A late wake-up of the I/O thread is made up for, up to this.
constexpr IoClock::duration kBurst = std::chrono::milliseconds(20);
// A transfer may move part of a block, for instance where a device fails halfway. The block is
// tried again this often.
constexpr int kMostFractions = 8;
// Between attempts of a segment that was interrupted.
constexpr IoClock::duration kFirstPause = std::chrono::microseconds(100);
constexpr IoClock::duration kLongestPause = std::chrono::milliseconds(100);

absl::Status TransferError(const IoSegment &segment, const IoFile &file, int error) {
  const std::string what = absl::StrFormat("cannot %s %s at offset %d (%d bytes)",
                                           segment.transfer->request.write ? "write" : "read",
                                           file.path, segment.offset, segment.bytes);
  if (!segment.words.empty())
    return absl::Status(absl::ErrnoToStatusCode(error), absl::StrCat(what, ": ", segment.words));
  return absl::ErrnoToStatus(error, what);
}

/// Of a transfer that moved less than a block.
absl::Status ShortError(const IoSegment &segment, const IoFile &file, int64_t moved) {
  if (moved > 0)
    return absl::DataLossError(absl::StrFormat(
        "%s %s only %d of %d bytes at offset %d, %d times in a row: it is truncated, or its "
        "disk fails",
        file.path, segment.transfer->request.write ? "takes" : "gives", moved, segment.bytes,
        segment.offset, segment.fractions));
  if (segment.transfer->request.write)
    return absl::DataLossError(
        absl::StrFormat("%s takes no bytes at offset %d", file.path, segment.offset));
  return absl::DataLossError(absl::StrFormat("%s ends before offset %d: it is truncated", file.path,
                                             segment.offset + segment.bytes));
}

bool Aligned(int64_t value) { return value % kAlignment == 0; }

} // namespace

//===----------------------------------------------------------------------===//
// IoLimiter
//===----------------------------------------------------------------------===//

IoLimiter::IoLimiter(int64_t limit, int64_t segment_bytes, IoClock::time_point now)
    : rate(double(std::max<int64_t>(limit, 0))), empty(now) {
  window = std::max(kBurst, Cost(segment_bytes));
}

IoClock::duration IoLimiter::Cost(int64_t bytes) const {
  if (rate == 0)
    return IoClock::duration(0);
  return std::chrono::duration_cast<IoClock::duration>(
      std::chrono::duration<double>(double(bytes) / rate));
}

IoClock::time_point IoLimiter::ReadyAt(int64_t bytes, IoClock::time_point now) {
  if (rate == 0)
    return now;
  empty = std::max(empty, now - window);
  return empty + Cost(bytes);
}

void IoLimiter::Take(int64_t bytes) { empty += Cost(bytes); }

//===----------------------------------------------------------------------===//
// IoQueue
//===----------------------------------------------------------------------===//

IoQueue::IoQueue(std::vector<IoFile> the_files, std::vector<IoLink> links, const IoOptions &options,
                 IoClock::time_point now)
    : files(std::move(the_files)), patience(options.patience), segment_bytes(options.segment_bytes),
      faults(options.faults) {
  for (const IoFile &file : files)
    if (file.link >= int32_t(links.size()))
      links.resize(file.link + 1);
  in_flight.resize(links.size());
  depth = std::clamp(kMaxDepth / std::max(1, int(links.size())), 1, options.depth);
  for (const IoLink &link : links)
    for (int64_t limit : {link.read, link.write})
      lanes.push_back({IoLimiter(limit, segment_bytes, now), {}, {}, true});
}

absl::Status IoQueue::Validate(const IoRequest &request) const {
  if (request.file < 0 || request.file >= int32_t(files.size()))
    return absl::InvalidArgumentError(
        absl::StrCat("transfer to file ", request.file, " of ", files.size()));
  if (request.bytes < 0 || request.offset < 0 || !Aligned(request.offset) ||
      !Aligned(request.bytes) || !Aligned(reinterpret_cast<intptr_t>(request.data)))
    return absl::InvalidArgumentError(
        absl::StrFormat("transfer of %d bytes at offset %d of %s is not aligned to %d",
                        request.bytes, request.offset, files[request.file].path, kAlignment));
  return absl::OkStatus();
}

IoQueue::Lane &IoQueue::LaneOf(const IoTransfer &transfer) {
  const IoRequest &request = transfer.request;
  return lanes[size_t(files[request.file].link) * 2 + request.write];
}

void IoQueue::Add(IoRequest request) {
  absl::Status status = aborted.ok() ? Validate(request) : aborted;
  if (!status.ok() || request.bytes == 0) {
    done.emplace_back(std::move(request.done), std::move(status));
    return;
  }
  auto transfer = std::make_shared<IoTransfer>();
  transfer->request = std::move(request);
  auto &waiting = LaneOf(*transfer).waiting;
  auto later = [](int64_t deadline, const std::shared_ptr<IoTransfer> &other) {
    return deadline < other->request.deadline;
  };
  waiting.insert(
      std::upper_bound(waiting.begin(), waiting.end(), transfer->request.deadline, later),
      transfer);
  ++live;
}

/// Size of the segment that NextSegment would hand out.
int64_t IoQueue::NextBytes(const Lane &lane) const {
  const IoTransfer &transfer = *lane.waiting.front();
  return std::min(segment_bytes, transfer.request.bytes - transfer.issued);
}

IoSegment IoQueue::NextSegment(Lane &lane) {
  std::shared_ptr<IoTransfer> transfer = lane.waiting.front();
  IoSegment segment;
  segment.bytes = NextBytes(lane);
  segment.offset = transfer->request.offset + transfer->issued;
  segment.data = static_cast<char *>(transfer->request.data) + transfer->issued;
  transfer->issued += segment.bytes;
  ++transfer->in_flight;
  if (transfer->issued == transfer->request.bytes)
    lane.waiting.pop_front();
  segment.transfer = std::move(transfer);
  return segment;
}

/// When the next segment of a lane where some wait may start.
IoClock::time_point IoQueue::ReadyAt(Lane &lane, IoClock::time_point now) {
  if (std::exchange(lane.idle, false))
    lane.limiter.Resume(now);
  return lane.limiter.ReadyAt(NextBytes(lane), now);
}

std::optional<IoSegment> IoQueue::PopFrom(Lane &lane, IoClock::time_point now) {
  IoSegment segment;
  auto requeued = std::find_if(lane.requeued.begin(), lane.requeued.end(),
                               [&](const IoSegment &segment) { return segment.again <= now; });
  if (requeued != lane.requeued.end()) {
    segment = std::move(*requeued);
    lane.requeued.erase(requeued);
  } else {
    if (lane.waiting.empty() || ReadyAt(lane, now) > now)
      return std::nullopt;
    lane.limiter.Take(NextBytes(lane));
    segment = NextSegment(lane);
    lane.idle = lane.waiting.empty();
  }
  InjectFaults(segment);
  return segment;
}

std::optional<IoSegment> IoQueue::Pop(IoClock::time_point now) {
  for (size_t i = 0; i < lanes.size(); ++i) {
    size_t lane = (turn + i) % lanes.size();
    if (in_flight[lane / 2] == depth)
      continue;
    if (std::optional<IoSegment> segment = PopFrom(lanes[lane], now)) {
      turn = lane + 1;
      ++in_flight[lane / 2];
      return segment;
    }
  }
  return std::nullopt;
}

std::optional<IoClock::time_point> IoQueue::NextStart(IoClock::time_point now) {
  std::optional<IoClock::time_point> first;
  for (size_t i = 0; i < lanes.size(); ++i) {
    Lane &lane = lanes[i];
    if (in_flight[i / 2] == depth)
      continue;
    auto consider = [&](IoClock::time_point ready) {
      first = first ? std::min(*first, ready) : ready;
    };
    for (const IoSegment &segment : lane.requeued)
      consider(segment.again);
    if (!lane.waiting.empty())
      consider(ReadyAt(lane, now));
  }
  return first;
}

void IoQueue::InjectFaults(IoSegment &segment) {
  int64_t attempt = attempts++;
  segment.attempt = segment.bytes;
  bool fails = attempt >= faults.fail_at && attempt - faults.fail_at < faults.fails;
  segment.error = faults.fail_at >= 0 && fails ? faults.error : 0;
  if (faults.short_every > 0 && (attempt + 1) % faults.short_every == 0)
    segment.attempt = std::max(kAlignment, segment.bytes / 2 / kAlignment * kAlignment);
}

/// Whether an interrupted segment may be tried again, and from when on.
bool IoQueue::TryAgain(IoSegment &segment, IoClock::time_point now) {
  if (segment.pause == IoClock::duration(0))
    segment.stalled = now;
  if (now - segment.stalled >= patience)
    return false;
  segment.pause = std::clamp(2 * segment.pause, kFirstPause, kLongestPause);
  segment.again = now + segment.pause;
  return true;
}

void IoQueue::Finish(IoSegment segment, int64_t result, IoClock::time_point now) {
  std::shared_ptr<IoTransfer> transfer = segment.transfer;
  const IoFile &file = File(segment);
  --in_flight[file.link];
  bool again = (result == -EINTR || result == -EAGAIN) && TryAgain(segment, now);
  // O_DIRECT continues at aligned offsets only.
  int64_t moved = result > 0 ? result / kAlignment * kAlignment : 0;
  if (result > 0 && moved == 0 && segment.fractions++ < kMostFractions)
    again = TryAgain(segment, now);
  if (result < 0 && !again)
    Fail(*transfer, TransferError(segment, file, int(-result)));
  else if (moved == 0 && !again)
    Fail(*transfer, ShortError(segment, file, result));
  else if (moved < segment.bytes && !aborted.ok())
    Fail(*transfer, aborted);
  else if (moved < segment.bytes && transfer->status.ok()) {
    segment.offset += moved;
    segment.data += moved;
    segment.bytes -= moved;
    if (moved > 0) {
      segment.pause = {};
      segment.fractions = 0;
      segment.again = now;
    }
    LaneOf(*transfer).requeued.push_back(std::move(segment));
    return;
  }
  --transfer->in_flight;
  CompleteIfDone(transfer);
}

/// Keeps the first error and hands out no more of the transfer.
void IoQueue::Fail(IoTransfer &transfer, const absl::Status &status) {
  if (!transfer.status.ok())
    return;
  transfer.status = status;
  Lane &lane = LaneOf(transfer);
  auto is_transfer = [&](const std::shared_ptr<IoTransfer> &other) {
    return other.get() == &transfer;
  };
  auto waiting = std::find_if(lane.waiting.begin(), lane.waiting.end(), is_transfer);
  if (waiting != lane.waiting.end())
    lane.waiting.erase(waiting);
  auto requeued =
      std::remove_if(lane.requeued.begin(), lane.requeued.end(),
                     [&](const IoSegment &segment) { return is_transfer(segment.transfer); });
  transfer.in_flight -= int32_t(lane.requeued.end() - requeued);
  lane.requeued.erase(requeued, lane.requeued.end());
}

void IoQueue::CompleteIfDone(const std::shared_ptr<IoTransfer> &transfer) {
  if (transfer->in_flight > 0 ||
      (transfer->status.ok() && transfer->issued < transfer->request.bytes))
    return;
  done.emplace_back(std::move(transfer->request.done), transfer->status);
  --live;
}

void IoQueue::Abort(const absl::Status &status) {
  aborted = status;
  for (Lane &lane : lanes) {
    std::vector<std::shared_ptr<IoTransfer>> transfers(lane.waiting.begin(), lane.waiting.end());
    for (const IoSegment &segment : lane.requeued)
      if (std::find(transfers.begin(), transfers.end(), segment.transfer) == transfers.end())
        transfers.push_back(segment.transfer);
    for (const std::shared_ptr<IoTransfer> &transfer : transfers) {
      Fail(*transfer, status);
      CompleteIfDone(transfer);
    }
  }
}

//===----------------------------------------------------------------------===//
// Factory
//===----------------------------------------------------------------------===//

IoOptions NormalizeIoOptions(IoOptions options) {
  options.depth = std::clamp(options.depth, 1, kMaxDepth);
  int64_t bytes = std::clamp<int64_t>(options.segment_bytes, kAlignment, 1 << 30);
  options.segment_bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return options;
}

void RunCompletions(std::vector<IoQueue::Completion> completions) {
  for (IoQueue::Completion &completion : completions)
    if (completion.first)
      completion.first(std::move(completion.second));
}

absl::StatusOr<std::unique_ptr<IoBackend>> CreateIoBackend(std::vector<IoFile> files,
                                                           std::vector<IoLink> links, void *arena,
                                                           int64_t arena_bytes,
                                                           const IoOptions &options) {
  const char *given = std::getenv("BOA_IO");
  const std::string wanted = given ? given : "";
  if (options.far && wanted == "io_uring")
    return absl::InvalidArgumentError(
        absl::StrCat("BOA_IO=io_uring, but ", options.far->Describe(),
                     " needs threads: unset it, or compile the program without `direct`"));
  if (options.far || options.prefer_threads || wanted == "threads")
    return CreateThreadBackend(std::move(files), std::move(links), options,
                               options.far ? options.far->Describe() : "");
  if (!wanted.empty() && wanted != "io_uring")
    return absl::InvalidArgumentError(
        absl::StrCat("BOA_IO=", wanted, ": expected \"io_uring\" or \"threads\""));
  auto uring = CreateUringBackend(files, links, arena, arena_bytes, options);
  if (uring.ok() || !wanted.empty())
    return uring;
  return CreateThreadBackend(std::move(files), std::move(links), options,
                             std::string(uring.status().message()));
}

} // namespace boa
