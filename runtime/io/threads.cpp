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

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <unistd.h>

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
  std::string Describe() const override;

private:
  static void *ThreadMain(void *backend);
  void Work();
  int64_t Move(IoSegment &, int fd);
  bool Step(std::unique_lock<std::mutex> &);
  void Wait(std::unique_lock<std::mutex> &);

  const std::string why;
  FarMemory *const far;
  std::mutex mutex;
  std::condition_variable changed;
  IoQueue queue;
  bool stop = false;
  std::vector<pthread_t> threads;
};

absl::Status ThreadBackend::Start() {
  for (int i = 0; i < queue.Capacity(); ++i) {
    pthread_t thread;
    int error = pthread_create(&thread, nullptr, ThreadMain, this);
    if (error != 0 && threads.empty())
      return absl::ErrnoToStatus(error, "cannot start an I/O thread");
    if (error != 0)
      break;
    threads.push_back(thread);
  }
  return absl::OkStatus();
}

ThreadBackend::~ThreadBackend() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stop = true;
  }
  changed.notify_all();
  for (pthread_t thread : threads)
    pthread_join(thread, nullptr);
}

void ThreadBackend::Submit(IoRequest request) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    queue.Add(std::move(request));
  }
  changed.notify_all(); // a transfer may have many segments
}

std::string ThreadBackend::Describe() const {
  return absl::StrCat("threads (", threads.size(), ")", why.empty() ? "" : ", ", why);
}

void *ThreadBackend::ThreadMain(void *backend) {
  static_cast<ThreadBackend *>(backend)->Work();
  return nullptr;
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
bool ThreadBackend::Step(std::unique_lock<std::mutex> &lock) {
  std::vector<IoQueue::Completion> done = queue.TakeDone();
  if (!done.empty()) {
    lock.unlock();
    RunCompletions(std::move(done));
    lock.lock();
    return true;
  }
  std::optional<IoSegment> segment = queue.Pop(IoClock::now());
  if (!segment)
    return false;
  int fd = queue.File(*segment).fd;
  lock.unlock();
  int64_t result = Move(*segment, fd);
  lock.lock();
  queue.Finish(std::move(*segment), result, IoClock::now());
  if (stop && queue.Idle())
    changed.notify_all(); // nothing else can concern a waiting thread
  return true;
}

void ThreadBackend::Wait(std::unique_lock<std::mutex> &lock) {
  if (std::optional<IoClock::time_point> next = queue.NextStart(IoClock::now()))
    changed.wait_until(lock, *next);
  else
    changed.wait(lock);
}

void ThreadBackend::Work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    if (Step(lock))
      continue;
    if (stop && queue.Idle())
      return;
    Wait(lock);
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
