//===- mutex.h - Locks that the compiler checks -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The locks of the standard library with annotations. A member says which mutex guards it, and a
// function says which mutex its caller holds:
//
//   Mutex mutex;
//   std::deque<Item> items ABSL_GUARDED_BY(mutex);
//   void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
//
// With clang an access without the lock is an error of the build. Other compilers ignore the
// annotations. The analysis does not look into constructors and destructors, nor through callbacks:
// a lambda that runs under a lock has an annotation of its own.
//
// A condition is a loop around Wait, because the analysis treats a predicate as another function:
//
//   MutexLock lock(mutex);
//   while (items.empty())
//     added.Wait(mutex);
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_MUTEX_H
#define BOA_RUNTIME_SUPPORT_MUTEX_H

#include "absl/base/thread_annotations.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

/// Of a constructor: the object releases a mutex that the caller holds. Abseil's macro is for
/// functions alone.
#if defined(__clang__)
#define BOA_SCOPED_UNLOCK(mutex) __attribute__((release_capability(mutex)))
#else
#define BOA_SCOPED_UNLOCK(mutex)
#endif

namespace boa {

class ABSL_LOCKABLE Mutex {
public:
  Mutex() = default;
  Mutex(const Mutex &) = delete;
  Mutex &operator=(const Mutex &) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex.unlock(); }
  /// Tells the analysis that the caller holds it, where the analysis cannot see that. Checks
  /// nothing.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

private:
  friend class CondVar;
  std::mutex mutex;
};

/// Holds a mutex until the end of a scope. Other locks than Mutex have the same two functions.
template <typename Lockable = Mutex> class ABSL_SCOPED_LOCKABLE MutexLock {
public:
  explicit MutexLock(Lockable &mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex(mutex) {
    mutex.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex.Unlock(); }
  MutexLock(const MutexLock &) = delete;
  MutexLock &operator=(const MutexLock &) = delete;

private:
  Lockable &mutex;
};

/// Releases a mutex that the caller holds, and takes it again at the end of a scope.
class ABSL_SCOPED_LOCKABLE MutexUnlock {
public:
  explicit MutexUnlock(Mutex &mutex) BOA_SCOPED_UNLOCK(mutex) : mutex(mutex) { mutex.Unlock(); }
  ~MutexUnlock() ABSL_UNLOCK_FUNCTION() { mutex.Lock(); } // the end of its release
  MutexUnlock(const MutexUnlock &) = delete;
  MutexUnlock &operator=(const MutexUnlock &) = delete;

private:
  Mutex &mutex;
};

/// Wakes threads whose condition may have changed. They may also wake without reason.
class CondVar {
public:
  void Wait(Mutex &mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex, std::adopt_lock);
    changed.wait(held);
    held.release();
  }
  /// Until this time at the latest.
  template <typename Clock, typename Duration>
  void WaitUntil(Mutex &mutex, const std::chrono::time_point<Clock, Duration> &time)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex, std::adopt_lock);
    changed.wait_until(held, time);
    held.release();
  }
  void NotifyOne() { changed.notify_one(); }
  void NotifyAll() { changed.notify_all(); }

private:
  std::condition_variable changed;
};

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_MUTEX_H
