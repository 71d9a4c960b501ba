//===- threads.cpp - Transfers by pread and pwrite -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A few threads share one queue. Each moves one segment at a time; FarMemory moves those of a
// device's memory. The destructor waits for all transfers that were submitted.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/queue.h"
#include "runtime/support/mutex.h"
#include "runtime/support/threads.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <unistd.h>
#include <utility>

namespace boa {
namespace {

// Of one link: a virtual or flash disk saturates with fewer outstanding transfers.
constexpr int kMaxIoThreads = 8;

class ThreadBackend : public IoBackend {
public:
  ThreadBackend(std::vector<IoFile> files, std::vector<IoLink> links, const IoOptions &options,
                std::string why)
      : why(std::move(why)), far(options.far),
        queue(std::move(files), std::move(links), options, IoClock::now()) {}
  ~ThreadBackend() override;

  absl::Status Start();
  void Submit(IoRequest) override;
  void Cancel() override;
  std::string Describe() const override;

private:
  void Work();
  int64_t Move(IoSegment &, int fd);
  bool Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const std::string why;
  FarMemory *const far;
  Mutex mutex;
  CondVar changed;
  IoQueue queue ABSL_GUARDED_BY(mutex);
  bool stop ABSL_GUARDED_BY(mutex) = false;
  std::vector<std::thread> threads;
};

absl::Status ThreadBackend::Start() {
  int most = 0;
  {
    MutexLock lock(mutex);
    most = queue.Capacity();
  }
  for (int i = 0; i < most; ++i) {
    std::thread thread;
    absl::Status status = StartThread("an I/O thread", thread, [this] { Work(); });
    if (!status.ok() && threads.empty())
      return status;
    if (!status.ok())
      break;
    threads.push_back(std::move(thread));
  }
  return absl::OkStatus();
}

ThreadBackend::~ThreadBackend() {
  {
    MutexLock lock(mutex);
    stop = true;
  }
  changed.NotifyAll();
  for (std::thread &thread : threads)
    thread.join();
}

void ThreadBackend::Submit(IoRequest request) {
  {
    MutexLock lock(mutex);
    queue.Add(std::move(request));
  }
  changed.NotifyAll(); // a transfer may have many segments
}

void ThreadBackend::Cancel() {
  {
    MutexLock lock(mutex);
    queue.Abort(absl::CancelledError("not begun"));
  }
  changed.NotifyAll();
}

std::string ThreadBackend::Describe() const {
  return absl::StrCat("threads (", threads.size(), ")", why.empty() ? "" : ", ", why);
}

int64_t ThreadBackend::Move(IoSegment &segment, int fd) {
  if (segment.error != 0)
    return -int64_t(segment.error);
  const bool write = segment.transfer->request.write;
  if (far && far->Holds(segment.data))
    return far->Move(write, segment.transfer->request.file, segment.offset, segment.data,
                     segment.attempt, segment.words);
  ssize_t moved = write ? pwrite(fd, segment.data, size_t(segment.attempt), segment.offset)
                        : pread(fd, segment.data, size_t(segment.attempt), segment.offset);
  return moved >= 0 ? moved : -int64_t(errno);
}

/// Runs finished callbacks or moves one segment; false if there is neither.
bool ThreadBackend::Step() {
  std::vector<IoQueue::Completion> done = queue.TakeDone();
  if (!done.empty()) {
    MutexUnlock unlocked(mutex);
    RunCompletions(std::move(done));
    return true;
  }
  std::optional<IoSegment> segment = queue.Pop(IoClock::now());
  if (!segment)
    return false;
  int fd = queue.File(*segment).fd;
  int64_t result = 0;
  {
    MutexUnlock unlocked(mutex);
    result = Move(*segment, fd);
  }
  queue.Finish(std::move(*segment), result, IoClock::now());
  if (stop && queue.Idle())
    changed.NotifyAll(); // nothing else can concern a waiting thread
  return true;
}

void ThreadBackend::Wait() {
  if (std::optional<IoClock::time_point> next = queue.NextStart(IoClock::now()))
    changed.WaitUntil(mutex, *next);
  else
    changed.Wait(mutex);
}

void ThreadBackend::Work() {
  MutexLock lock(mutex);
  while (true) {
    if (Step())
      continue;
    if (stop && queue.Idle())
      return;
    Wait();
  }
}

} // namespace

absl::StatusOr<std::unique_ptr<IoBackend>> CreateThreadBackend(std::vector<IoFile> files,
                                                               std::vector<IoLink> links,
                                                               const IoOptions &given,
                                                               std::string why) {
  IoOptions options = NormalizeIoOptions(given);
  options.depth = std::min(options.depth, kMaxIoThreads);
  auto backend =
      std::make_unique<ThreadBackend>(std::move(files), std::move(links), options, std::move(why));
  if (absl::Status status = backend->Start(); !status.ok())
    return status;
  return backend;
}

} // namespace boa
