//===- thread_pool.cpp - One pool for kernels and optimizer -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop is cut into one part per thread, fixed by count, grain and Threads().
// Which thread runs a part is not fixed: workers and the caller claim parts
// from `ticket`, so that a worker that wakes late costs nothing, and the loop
// ends even where the system gives fewer workers than asked for.
//
// ticket = generation << 16 | parts not yet claimed. A loop's fields may be
// read only by who claimed one of its parts: until that part is done the caller
// does not return, hence the fields do not change. That holds for a body that
// throws, too: its exception waits until all parts are done or left out.
//
//===----------------------------------------------------------------------===//
#include "runtime/support/thread_pool.h"

#include "runtime/abi/abi.h"
#include "runtime/support/limits.h"
#include "runtime/support/mutex.h"
#include "runtime/support/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace boa {
namespace {

constexpr int kTicketBits = 16;
constexpr uint64_t kTicketMask = (uint64_t(1) << kTicketBits) - 1;
constexpr int64_t kMaxThreads = 4096;
// A loop has more parts than threads: a thread that is held up takes fewer of them.
constexpr int64_t kPartsPerThread = 4;
// A thread that finds no work looks again so often before it sleeps: between two loops that follow
// each other nobody sleeps. To wake many threads takes longer than to wake one. About 40
// microseconds a thread of the pool, at most 200.
constexpr int64_t kSpinsPerThread = 1000, kMaxSpins = 5000;

thread_local bool inside_body = false;
std::atomic<int64_t> configured_threads{0};

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// A mutex that is taken in the order of asking. The compute thread runs one loop after another. It
/// would win a plain mutex over a thread that must first wake. The optimizer would then get no turn
/// for hundreds of milliseconds.
class ABSL_LOCKABLE FairMutex {
public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    MutexLock lock(mutex);
    uint64_t ticket = next++;
    while (serving != ticket)
      turn.Wait(mutex);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    MutexLock lock(mutex);
    if (++serving != next)
      turn.NotifyAll();
  }

private:
  Mutex mutex;
  CondVar turn;
  uint64_t next ABSL_GUARDED_BY(mutex) = 0, serving ABSL_GUARDED_BY(mutex) = 0;
};

class Pool {
public:
  void Run(int64_t count, int64_t grain, void (*body)(void *, int64_t, int64_t), void *data);

private:
  struct Loop {
    int64_t count = 0, grain = 1, blocks = 0, parts = 0;
    void (*body)(void *, int64_t, int64_t) = nullptr;
    void *data = nullptr;
  };

  void Work();
  bool RunOnePart();
  void RunPart(int64_t part);
  void ThrowError() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn);
  void Publish(int64_t parts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn);
  void WaitForParts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn);
  void Resize(int64_t threads) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn);
  bool Unclaimed() const { return (ticket.load() & kTicketMask) != 0; }
  int64_t Spins() const { return std::min(kSpinsPerThread * threads, kMaxSpins); }

  FairMutex turn; // one caller at a time
  std::vector<std::thread> workers ABSL_GUARDED_BY(turn);
  // Workers read both without `turn`. `threads` changes while there are none, and the ticket
  // protects `loop`.
  int64_t threads = 1;
  Loop loop;
  std::atomic<uint64_t> ticket{0};
  std::atomic<int64_t> unfinished{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> failed{false}; // a body threw

  // A thread that makes a sleeper's condition true wakes the sleeper under this mutex.
  Mutex sleep;
  std::exception_ptr error ABSL_GUARDED_BY(sleep); // the first one of the loop
  CondVar wake, finished;
  std::atomic<int> sleepers{0};
  std::atomic<bool> caller_sleeps{false};
};

/// Leaves the part out if a body has thrown.
void Pool::RunPart(int64_t part) {
  if (failed.load())
    return;
  int64_t begin = loop.blocks * part / loop.parts * loop.grain;
  int64_t end = loop.blocks * (part + 1) / loop.parts * loop.grain;
  inside_body = true;
  try {
    loop.body(loop.data, begin, std::min(end, loop.count));
  } catch (...) {
    MutexLock lock(sleep);
    if (!failed.exchange(true))
      error = std::current_exception();
  }
  inside_body = false;
}

/// Throws the first exception of a body. By then no thread may use the loop.
void Pool::ThrowError() {
  if (!failed.exchange(false))
    return;
  std::exception_ptr thrown;
  {
    MutexLock lock(sleep);
    thrown = std::exchange(error, nullptr);
  }
  std::rethrow_exception(std::move(thrown));
}

/// Claims a part and runs it; false if none is left.
bool Pool::RunOnePart() {
  uint64_t seen = ticket.load();
  do {
    if ((seen & kTicketMask) == 0)
      return false;
  } while (!ticket.compare_exchange_weak(seen, seen - 1));
  RunPart(int64_t(seen & kTicketMask) - 1);
  if (unfinished.fetch_sub(1) == 1 && caller_sleeps.load()) {
    MutexLock lock(sleep);
    finished.NotifyOne();
  }
  return true;
}

void Pool::Work() {
  while (!stop.load()) {
    while (RunOnePart()) {
    }
    for (int64_t spin = Spins(); spin > 0 && !Unclaimed() && !stop.load(); --spin)
      Pause();
    if (Unclaimed())
      continue;
    MutexLock lock(sleep);
    sleepers.fetch_add(1);
    while (!Unclaimed() && !stop.load())
      wake.Wait(sleep);
    sleepers.fetch_sub(1);
  }
}

void Pool::Publish(int64_t parts) {
  unfinished.store(parts);
  uint64_t generation = (ticket.load() >> kTicketBits) + 1;
  ticket.store(generation << kTicketBits | uint64_t(parts));
  // Either a worker about to sleep sees the ticket, or it is seen here.
  if (sleepers.load() > 0) {
    MutexLock lock(sleep);
    wake.NotifyAll();
  }
}

void Pool::WaitForParts() {
  for (int64_t spin = Spins(); spin > 0; --spin) {
    if (unfinished.load() == 0)
      return;
    Pause();
  }
  MutexLock lock(sleep);
  caller_sleeps.store(true);
  while (unfinished.load() != 0)
    finished.Wait(sleep);
  caller_sleeps.store(false);
}

void Pool::Resize(int64_t wanted) {
  if (wanted == threads)
    return;
  {
    MutexLock lock(sleep);
    stop.store(true);
    wake.NotifyAll();
  }
  for (std::thread &worker : workers)
    worker.join();
  workers.clear();
  stop.store(false);
  threads = wanted;
  workers.reserve(size_t(wanted)); // no thread runs if this throws
  for (int64_t i = 1; i < wanted; ++i) {
    std::thread worker;
    if (!StartThread("a worker", worker, [this] { Work(); }).ok())
      break; // the others claim its parts
    workers.push_back(std::move(worker));
  }
}

void Pool::Run(int64_t count, int64_t grain, void (*body)(void *, int64_t, int64_t), void *data) {
  MutexLock lock(turn);
  Resize(Threads());
  int64_t blocks = (count - 1) / grain + 1;
  int64_t parts = threads == 1 ? 1 : std::min(kPartsPerThread * threads, blocks);
  loop = {count, grain, blocks, parts, body, data};
  if (parts == 1) {
    RunPart(0);
  } else {
    Publish(parts);
    while (RunOnePart()) {
    }
    WaitForParts();
  }
  ThrowError();
}

Pool &SharedPool() {
  // Never destroyed: workers may outlive main's statics.
  static Pool *pool = new Pool;
  return *pool;
}

} // namespace

void SetThreads(int64_t threads) {
  configured_threads.store(std::clamp<int64_t>(threads, 0, kMaxThreads));
}

int64_t Threads() {
  static const int64_t processors = std::min(CountProcessors(), kMaxThreads);
  int64_t threads = configured_threads.load();
  return threads > 0 ? threads : processors;
}

void ParallelFor(int64_t count, int64_t grain, void (*body)(void *, int64_t, int64_t), void *data) {
  if (count <= 0)
    return;
  if (inside_body)
    return body(data, 0, count);
  SharedPool().Run(count, std::max<int64_t>(grain, 1), body, data);
}

} // namespace boa

extern "C" void boa_rt_parallel_for(int64_t count, int64_t grain,
                                    void (*body)(void *, int64_t, int64_t), void *data) {
  boa::ParallelFor(count, grain, body, data);
}
