//===- simulated_io.cpp - Transfers of a simulated disk, and its faults ---===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All bytes go through Move, whoever asks for them. The backend divides and
// continues transfers by the queue that the real ones use.
//
//===----------------------------------------------------------------------===//
#include "test/simulation/simulated_impl.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace boa {

using simulated::Handle;
using simulated::Inode;
using simulated::InodeRef;
using simulated::kPageBytes;
using simulated::kRegionBytes;
using simulated::kSectorBytes;

const char *FaultName(Fault fault) {
  static constexpr const char *kNames[kFaults] = {"delay",
                                                  "short",
                                                  "eagain",
                                                  "eintr",
                                                  "io_error",
                                                  "lasting_error",
                                                  "no_space",
                                                  "failed_sync",
                                                  "flipped_read",
                                                  "misdirected_read",
                                                  "rot",
                                                  "lost_write",
                                                  "misdirected_write",
                                                  "power_loss",
                                                  "kill"};
  return kNames[size_t(fault)];
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

bool SimulatedDisk::Impl::Strikes(Fault fault, size_t device, const std::string &path) {
  if (!random.Chance(devices[device].rates[fault]))
    return false;
  ++counts[fault];
  Log("fault ", FaultName(fault), " on ", path);
  return true;
}

int SimulatedDisk::Impl::Begin(const char *what, const std::string &path, size_t device) {
  if (dead)
    return EIO;
  ++operations;
  now += devices[device].latency;
  LandLateWrites(/*all=*/false);
  Log(what, " ", path);
  if (operations == die_at)
    Die(die_how);
  for (Fault fault : {Fault::power_loss, Fault::kill})
    if (random.Chance(devices[device].rates[fault]))
      Die(fault);
  if (dead)
    return EIO;
  if (Strikes(Fault::rot, device, path))
    Rot(device);
  return 0;
}

/// Flips a bit of a page of any file of the device.
void SimulatedDisk::Impl::Rot(size_t device) {
  std::vector<std::pair<std::string, Inode *>> files;
  ForEachFile([&](const std::string &path, Inode &inode) {
    if (inode.device == device && inode.now.PagesFrom(0) > 0 && inode.size > 0)
      files.emplace_back(path, &inode);
  });
  if (files.empty())
    return;
  auto [path, inode] = files[size_t(random.Below(int64_t(files.size())))];
  const int64_t page = inode->now.NthPage(random.Below(inode->now.PagesFrom(0)));
  const int64_t bytes = std::min(kPageBytes, inode->size - page * kPageBytes);
  if (bytes <= 0)
    return;
  const int64_t offset = page * kPageBytes + random.Below(bytes);
  const uint8_t mask = uint8_t(1 << random.Below(8));
  Log("rot at offset ", offset, " of ", path);
  inode->now.Flip(offset, mask);
  inode->durable.Flip(offset, mask);
  inode->damaged.insert(page);
  inode->durable_damaged.insert(page);
}

/// A file of the device, and where `bytes` of it begin that are not those at
/// `offset` of this one; no file, if there are none.
std::pair<InodeRef, int64_t> SimulatedDisk::Impl::Elsewhere(const Handle &handle, int64_t offset,
                                                            int64_t bytes) {
  std::vector<InodeRef> files{handle.inode};
  for (const auto &[fd, other] : handles)
    if (other.inode->device == handle.inode->device && other.inode != handle.inode)
      files.push_back(other.inode);
  InodeRef inode = files[random.Chance(0.5) ? 0 : size_t(random.Below(int64_t(files.size())))];
  const int64_t places = (inode->size - bytes) / kPageBytes + 1;
  if (inode->size < bytes || places < 2)
    return {nullptr, 0};
  int64_t place = random.Below(places) * kPageBytes;
  if (inode == handle.inode && place == offset / kPageBytes * kPageBytes)
    place = place > 0 ? place - kPageBytes : kPageBytes;
  return {inode, place};
}

//===----------------------------------------------------------------------===//
// Space
//===----------------------------------------------------------------------===//

int64_t SimulatedDisk::Impl::FreePages(size_t device) const {
  int64_t pages = devices[device].bytes / kPageBytes;
  ForEachFile([&](const std::string &, Inode &inode) {
    if (inode.device == device)
      pages -= inode.AllocatedPages();
  });
  return std::max<int64_t>(pages, 0);
}

bool SimulatedDisk::Impl::HasSpace(const Inode &inode, int64_t offset, int64_t bytes) const {
  if (devices[inode.device].bytes == std::numeric_limits<int64_t>::max())
    return true;
  const int64_t end = (offset + bytes + kPageBytes - 1) / kPageBytes;
  const int64_t begin = std::max(offset, inode.reserved) / kPageBytes;
  if (end <= begin)
    return true;
  const int64_t there = inode.now.PagesFrom(begin) - inode.now.PagesFrom(end);
  return end - begin - there <= FreePages(inode.device);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

Handle *SimulatedDisk::Impl::FindHandle(int fd) {
  auto found = handles.find(fd);
  return found == handles.end() ? nullptr : &found->second;
}

/// A write that was under way when something went wrong: nothing of it is on the
/// disk, or all, or some.
void SimulatedDisk::Impl::WriteSome(Inode &inode, int64_t offset, absl::string_view data) {
  const int64_t bytes = std::min(int64_t(data.size()), inode.size - offset);
  const int64_t fate = random.Below(3);
  if (bytes <= 0 || fate == 0)
    return;
  if (fate == 1)
    return inode.Write(offset, data.substr(0, size_t(bytes)));
  for (auto [begin, count] : simulated::TornSectors(offset, bytes, random))
    inode.Write(begin, data.substr(size_t(begin - offset), size_t(count)));
}

void SimulatedDisk::Impl::LandLateWrites(bool all) {
  const auto due = std::stable_partition(
      late_writes.begin(), late_writes.end(),
      [&](const simulated::LateWrite &write) { return !all && write.due > now; });
  std::vector<simulated::LateWrite> landing(std::make_move_iterator(due),
                                            std::make_move_iterator(late_writes.end()));
  late_writes.erase(due, late_writes.end());
  for (const simulated::LateWrite &write : landing) {
    Log("late write of ", write.data.size(), " bytes at ", write.offset);
    WriteSome(*write.inode, write.offset, write.data);
    if (write.inode->lock_holder == write.fd &&
        std::none_of(late_writes.begin(), late_writes.end(),
                     [&](const simulated::LateWrite &other) { return other.fd == write.fd; }))
      write.inode->lock_holder = -1;
  }
}

void SimulatedDisk::Impl::Write(Handle &handle, int64_t offset, absl::string_view data) {
  Inode &inode = *handle.inode;
  const int64_t bytes = int64_t(data.size());
  const bool lost = Strikes(Fault::lost_write, inode.device, handle.path);
  InodeRef other;
  int64_t place = 0;
  if (!lost && Strikes(Fault::misdirected_write, inode.device, handle.path))
    std::tie(other, place) = Elsewhere(handle, offset, bytes);
  if (!lost && !other)
    return inode.Write(offset, data);
  inode.Grow(offset + bytes);
  inode.MarkDamaged(offset, bytes);
  if (other) {
    Log("  to offset ", place);
    other->Write(place, data);
    other->MarkDamaged(place, bytes);
  }
}

void SimulatedDisk::Impl::Read(Handle &handle, int64_t offset, int64_t bytes, char *data) {
  InodeRef inode = handle.inode;
  if (Strikes(Fault::misdirected_read, inode->device, handle.path)) {
    auto [other, place] = Elsewhere(handle, offset, bytes);
    if (other)
      return other->now.Read(place, bytes, data);
  }
  inode->now.Read(offset, bytes, data);
  if (Strikes(Fault::flipped_read, inode->device, handle.path))
    data[random.Below(bytes)] ^= char(1 << random.Below(8));
}

/// The errno of a transfer that fails, or 0.
int SimulatedDisk::Impl::MoveError(const Handle &handle, bool write, int64_t offset, int64_t bytes,
                                   const char *data, bool whole) {
  Inode &inode = *handle.inode;
  if (write && !handle.mode.write)
    return EBADF;
  // The queue has refused other memory already.
  const bool aligned = !whole || reinterpret_cast<uintptr_t>(data) % kPageBytes == 0;
  if (handle.mode.direct && (offset % kPageBytes != 0 || bytes % kPageBytes != 0 || !aligned))
    return EINVAL;
  const size_t device = inode.device;
  if (!whole && Strikes(Fault::eagain, device, handle.path))
    return EAGAIN;
  if (!whole && Strikes(Fault::eintr, device, handle.path))
    return EINTR;
  for (int64_t region = offset / kRegionBytes; region <= (offset + bytes - 1) / kRegionBytes;
       ++region)
    if (inode.failing.count(region) > 0)
      return EIO;
  if (Strikes(Fault::lasting_error, device, handle.path)) {
    inode.failing.insert(offset / kRegionBytes);
    return EIO;
  }
  if (Strikes(Fault::io_error, device, handle.path))
    return EIO;
  if (write && (Strikes(Fault::no_space, device, handle.path) || !HasSpace(inode, offset, bytes)))
    return ENOSPC;
  return 0;
}

int64_t SimulatedDisk::Impl::Move(int fd, const std::string &path, bool write, int64_t offset,
                                  int64_t bytes, char *data, bool whole) {
  Handle *handle = FindHandle(fd);
  const size_t device = handle ? handle->inode->device : 0;
  if (handle && handle->mode.write && write && operations + 1 == die_at)
    WriteSome(*handle->inode, offset, absl::string_view(data, size_t(bytes)));
  if (log && !dead)
    Log(write ? "write " : "read ", bytes, " bytes at ", offset, ":");
  if (int error = Begin(write ? "write" : "read", path, device))
    return -error;
  handle = FindHandle(fd);
  if (!handle)
    return -EBADF;
  if (int error = MoveError(*handle, write, offset, bytes, data, whole)) {
    if (error == EIO && write)
      WriteSome(*handle->inode, offset, absl::string_view(data, size_t(bytes)));
    return -error;
  }
  int64_t moved = bytes;
  if (!whole && bytes > kPageBytes && Strikes(Fault::short_transfer, device, path))
    moved = kPageBytes + random.Below((bytes - kPageBytes) / kSectorBytes) * kSectorBytes;
  if (write) {
    Write(*handle, offset, absl::string_view(data, size_t(moved)));
    return moved;
  }
  moved = std::clamp<int64_t>(handle->inode->size - offset, 0, moved);
  if (moved > 0)
    Read(*handle, offset, moved, data);
  return moved;
}

//===----------------------------------------------------------------------===//
// The backend
//===----------------------------------------------------------------------===//

namespace {

class SimulatedIo : public IoBackend, public simulated::InFlight {
public:
  SimulatedIo(SimulatedDisk::Impl &disk, std::vector<IoFile> files, std::vector<IoLink> links,
              const IoOptions &options)
      : disk(disk), depth(size_t(options.depth)),
        queue(std::move(files), std::move(links), options, disk.now) {
    disk.backends.insert(this);
  }
  ~SimulatedIo() override {
    while (Pending())
      Advance();
    disk.backends.erase(this);
  }

  void Submit(IoRequest request) override {
    queue.Add(std::move(request));
    TakeDone();
  }
  std::string Describe() const override { return "simulated"; }
  bool Pending() const override { return !done.empty() || !queue.Idle(); }
  void Advance() override;
  void Die() override;

private:
  struct Started {
    IoSegment segment;
    IoClock::time_point due;
    std::string early; // what a write took from memory when it began, if it did
    char *Data() { return early.empty() ? segment.data : early.data(); }
  };
  void TakeDone() {
    for (IoQueue::Completion &completion : queue.TakeDone())
      done.push_back(std::move(completion));
  }
  void Start();
  size_t Choose();

  SimulatedDisk::Impl &disk;
  const size_t depth;
  IoQueue queue;
  std::vector<Started> started;
  std::vector<IoQueue::Completion> done;
};

void SimulatedIo::Start() {
  while (started.size() < depth) {
    std::optional<IoSegment> segment = queue.Pop(disk.now);
    if (!segment)
      return;
    Started next{std::move(*segment), disk.now, ""};
    const IoFile &file = queue.File(next.segment);
    Handle *handle = disk.FindHandle(file.fd);
    const simulated::Device &device = disk.devices[handle ? handle->inode->device : 0];
    if (handle && disk.Strikes(Fault::delay, handle->inode->device, file.path))
      next.due += device.latency * (10 + disk.random.Below(1000));
    // Memory may be read or written at any time from now on.
    const bool early = disk.random.Chance(0.5);
    if (early && next.segment.transfer->request.write)
      next.early.assign(next.segment.data, size_t(next.segment.attempt));
    else if (early)
      std::memset(next.segment.data, 0x5a, size_t(next.segment.attempt));
    started.push_back(std::move(next));
  }
}

/// One of those that are due; if none is, time passes.
size_t SimulatedIo::Choose() {
  std::vector<size_t> due;
  while (due.empty()) {
    IoClock::time_point first = IoClock::time_point::max();
    for (size_t i = 0; i < started.size(); ++i) {
      first = std::min(first, started[i].due);
      if (started[i].due <= disk.now)
        due.push_back(i);
    }
    if (due.empty())
      disk.now = first;
  }
  return due[size_t(disk.random.Below(int64_t(due.size())))];
}

void SimulatedIo::Advance() {
  Start();
  if (started.empty() && done.empty()) {
    if (std::optional<IoClock::time_point> next = queue.NextStart(disk.now))
      disk.now = std::max(disk.now, *next);
    Start();
  }
  if (!started.empty()) {
    const size_t choice = Choose();
    Started ended = std::move(started[choice]);
    started.erase(started.begin() + int64_t(choice));
    IoSegment &segment = ended.segment;
    int64_t result = -int64_t(segment.error);
    if (segment.error == 0) {
      const IoFile &file = queue.File(segment);
      result = disk.Move(file.fd, file.path, segment.transfer->request.write, segment.offset,
                         segment.attempt, ended.Data(), false);
    }
    queue.Finish(std::move(segment), result, disk.now);
    TakeDone();
  }
  RunCompletions(std::exchange(done, {}));
}

/// Devices finish their writes for a dead process too, some of them long after its end.
void SimulatedIo::Die() {
  for (Started &each : started) {
    const IoSegment &segment = each.segment;
    const int fd = queue.File(segment).fd;
    Handle *handle = disk.FindHandle(fd);
    if (!handle || !handle->mode.write || !segment.transfer->request.write)
      continue;
    const absl::string_view data(each.Data(), size_t(segment.attempt));
    if (disk.random.Chance(0.5))
      disk.WriteSome(*handle->inode, segment.offset, data);
    else
      disk.late_writes.push_back(
          {handle->inode, fd, segment.offset, std::string(data),
           disk.now + disk.devices[handle->inode->device].latency * disk.random.Below(2000)});
  }
}

} // namespace

void SimulatedDisk::SetIo(const std::optional<IoOptions> &options) { impl->io_options = options; }

absl::StatusOr<std::unique_ptr<IoBackend>> SimulatedDisk::CreateIo(std::vector<IoFile> files,
                                                                   std::vector<IoLink> links,
                                                                   void *, int64_t,
                                                                   const IoOptions &asked) {
  IoOptions options = impl->io_options.value_or(asked);
  options.faults = asked.faults;
  return std::make_unique<SimulatedIo>(*impl, std::move(files), std::move(links),
                                       NormalizeIoOptions(options));
}

} // namespace boa
