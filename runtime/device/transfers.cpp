//===- transfers.cpp - To and from SSD ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A transfer is complete when its bytes are moved and summed: whatever is read is
// compared with the checksum of the extent that it stood in before anybody uses it.
// Sums are made on threads of their own, so that no disk waits for them.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/host.h"

#include "runtime/state/checksum.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

namespace boa {

/// Where an SSD reaches the device's memory it is the device's address.
char *Host::TransferAddress(const Work &work, int32_t c) const {
  char *base = static_cast<char *>(work.outside);
  if (!base) {
    const bool there = program.machine.direct && work.buffers[0].space == BOA_DEVICE;
    base = memory->Address(there ? Memory::Side::device : Memory::Side::host, work.buffers[0]);
  }
  return base + c * program.storages[work.storage].chunk_bytes();
}

/// One request for each run of chunks that lie one behind another in a file. What
/// is written is summed while it is under way: it does not change until then.
void Host::Transfer(Work &work) {
  const int64_t bytes = program.storages[work.storage].chunk_bytes();
  work.begin_ns = Now();
  if (listener->IsLeftOut(work))
    return listener->Done(work, work.begin_ns, work.begin_ns, absl::OkStatus());
  std::vector<std::pair<int32_t, int32_t>> runs; // first, count, relative
  for (int32_t c = 0; c < work.count; ++c) {
    const Extent &extent = work.extents[c];
    if (c > 0 && extent.file == work.extents[c - 1].file &&
        extent.offset == work.extents[c - 1].offset + bytes)
      ++runs.back().second;
    else
      runs.push_back({c, 1});
  }
  const bool write = work.kind == Work::Kind::write;
  {
    MutexLock lock(mutex);
    work.parts = int32_t(runs.size());
    if (write)
      AddSums(work, 0, work.count);
  }
  // The last request may complete before Submit returns, and the work with it.
  const std::vector<Extent> extents = work.extents;
  char *const data = TransferAddress(work, 0);
  const int64_t priority = work.priority;
  for (auto [first, count] : runs) {
    IoRequest request;
    request.write = write;
    request.file = extents[first].file;
    request.offset = extents[first].offset;
    request.bytes = count * bytes;
    request.data = data + first * bytes;
    request.deadline = priority;
    request.done = [this, &work, first = first, count = count](absl::Status status) {
      TransferDone(work, first, count, std::move(status));
    };
    io->Submit(std::move(request));
  }
}

/// On the thread that completes I/O, which must not be kept: no byte is touched.
void Host::TransferDone(Work &work, int32_t first, int32_t count, absl::Status status) {
  listener->Moved(work, state->Files()[work.extents[first].file].link,
                  count * program.storages[work.storage].chunk_bytes(), work.begin_ns, Now());
  if (work.kind == Work::Kind::read && status.ok()) {
    MutexLock lock(mutex);
    AddSums(work, first, count);
  }
  PartDone(work, std::move(status));
  if (options.scheduler)
    listener->Wake(); // this is a thread of the backend's, or it is Advance itself
}

/// A request or a sum of a transfer is done.
void Host::PartDone(Work &work, absl::Status status) {
  bool last = false;
  {
    MutexLock lock(mutex);
    last = --work.parts == 0;
    // The last part reports the first error.
    if (!status.ok() && !last)
      failed.emplace(work.id, std::move(status));
    if (auto it = last ? failed.find(work.id) : failed.end(); it != failed.end()) {
      status = std::move(it->second);
      failed.erase(it);
    }
  }
  if (last)
    listener->Done(work, work.begin_ns, Now(), std::move(status));
}

//===----------------------------------------------------------------------===//
// Checksums
//===----------------------------------------------------------------------===//

// What one thread sums at a time: 0.1 ms.
static constexpr int64_t kSumBytes = 1 << 20;

/// Chunks, counted from the work's first, that are to be summed.
void Host::AddSums(Work &work, int32_t first, int32_t count) {
  if (far && !work.outside && work.buffers[0].space == BOA_DEVICE)
    return AddFarSums(work, first, count);
  const int64_t bytes = program.storages[work.storage].chunk_bytes();
  const int32_t most = std::max<int64_t>(1, kSumBytes / bytes);
  for (int32_t c = 0; c < count; c += most) {
    sums.items.push_back({&work, first + c, std::min(most, count - c)});
    ++work.parts;
    sums.added.NotifyOne();
  }
}

/// The same of what lies where the device alone reaches it.
void Host::AddFarSums(Work &work, int32_t first, int32_t count) {
  for (int32_t c = first, end = first + count; c < end; c += far->Most()) {
    ++work.parts;
    far->Make(work, c, std::min(far->Most(), end - c),
              [this, &work, c](absl::StatusOr<std::vector<uint64_t>> made) {
                absl::Status status = made.status();
                for (size_t i = 0; status.ok() && i < made->size(); ++i)
                  status = UseSum(work, c + int32_t(i), (*made)[i]);
                PartDone(work, std::move(status));
              });
  }
}

void Host::SumLoop() {
  MutexLock lock(mutex);
  while (true) {
    while (!stopping && sums.items.empty())
      sums.added.Wait(mutex);
    if (stopping)
      return;
    const Sum sum = sums.Take();
    MutexUnlock unlocked(mutex);
    MakeSum(sum);
  }
}

void Host::MakeSum(const Sum &sum) {
  absl::Status status;
  const int64_t bytes = program.storages[sum.work->storage].chunk_bytes();
  for (int32_t c = sum.first; c < sum.first + sum.count && status.ok(); ++c)
    status = UseSum(*sum.work, c, boa::Checksum(TransferAddress(*sum.work, c), bytes));
  PartDone(*sum.work, std::move(status));
}

/// Notes the checksum of a chunk that is being written: nobody reads its extent
/// until the work is complete. Or compares what was read with what was noted.
absl::Status Host::UseSum(const Work &work, int32_t c, uint64_t sum) {
  const Extent &extent = work.extents[c];
  const Storage &storage = program.storages[work.storage];
  if (work.kind == Work::Kind::write) {
    state->SetChecksum(extent, sum);
    return absl::OkStatus();
  }
  const std::optional<uint64_t> expected = state->Checksum(extent);
  if (expected == sum)
    return absl::OkStatus();
  if (!expected)
    return NeverWritten(storage, work.entry, work.first + c);
  return DamagedChunk(storage.name, work.entry, work.first + c, state->Files()[extent.file].path,
                      extent.offset, storage.persistent);
}

} // namespace boa
