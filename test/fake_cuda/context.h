//===- context.h - Contexts, streams, events, modules -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stream is a thread that does what it is given in the order given, each after a delay
// that the seed draws. Nothing but what CUDA promises orders one thread after another, so
// ThreadSanitizer sees a wait that is missing.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_CONTEXT_H
#define BOA_TEST_FAKE_CUDA_CONTEXT_H

#include "test/fake_cuda/emulator.h"
#include "test/fake_cuda/fake.h"
#include "test/fake_cuda/memory.h"
#include "test/fake_cuda/settings.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace boa::fake {

/// Of shared memory: what a function declares itself, and with what a launch adds.
constexpr int64_t kStaticShared = 48 << 10, kMostShared = 227 << 10;
/// Of local memory, that a thread may have without more being taken; threads that have it at once.
constexpr int64_t kFirstStack = 1024, kResidentThreads = 4 * 2048;

class Stream;

/// What a stream was given while it captured, and does as often as the graph is launched.
struct Captured {
  const char *what;
  std::function<std::string()> run;
};

/// One cuEventRecord: over when its stream gets there.
class Completion {
public:
  void Finish();
  void Wait();
  bool Over(int64_t *ns = nullptr);

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  int64_t ns = 0;
};

/// The operations that run now. Stop goes before operations that have not begun. Operations that
/// run at the same time are not ordered.
class Running {
public:
  Running();
  ~Running() { pthread_rwlock_destroy(&lock); }
  Running(const Running &) = delete;
  Running &operator=(const Running &) = delete;
  void Begin() { pthread_rwlock_rdlock(&lock); }
  /// Returns when nothing runs, and nothing does until End.
  void Stop() { pthread_rwlock_wrlock(&lock); }
  void End() { pthread_rwlock_unlock(&lock); }

private:
  pthread_rwlock_t lock;
};

struct Context {
  int device = 0;
  int retained = 0; // under the driver's mutex
  std::unique_ptr<DeviceMemory> memory;
  std::atomic<int> error{0};                    // sticky
  std::atomic<int64_t> stack{kFirstStack};      // bytes of local memory of a thread
  std::mutex mutex;                             // of growing it, and of:
  std::vector<std::shared_ptr<Stream>> retired; // destroyed; some may still have work
  /// Of all events, as long as the context lives: counts of references would order who
  /// drops one after who did before.
  std::deque<Completion> completions;
  /// Of all graphs, as long, too.
  std::deque<std::vector<Captured>> captured;

  Running running; // on all streams

  /// Local memory of so many bytes a thread; false: there is not enough. It never shrinks.
  bool GrowStack(int64_t bytes);
  /// Keeps the error of an operation, and prints `words` to stderr. The operations of other streams
  /// end before anybody sees the error.
  void Fail(int code, const std::string &words);
};

struct Event {
  Context *context;
  bool timed;
  std::atomic<Completion *> last{nullptr}; // null: never recorded
};

class Stream {
public:
  struct Work {
    const char *what;
    std::function<std::string()> run; // returns what went wrong, or nothing
    bool always = false;              // after an error, too
    bool waits = false;               // for other streams
    int inject = 0;                   // an error in its place
  };
  Stream(Context *, uint64_t seed, int64_t delay_us);
  /// What it was given is over.
  ~Stream();
  void Push(Work);
  /// Until what was pushed so far is over.
  void Wait();
  bool Idle();
  /// Ends once what was pushed is over.
  void Close();
  uint64_t NextSeed() { return ++launches * 0x9e3779b97f4a7c15u ^ seed; }
  /// How much this thread, a stream's, has done so far.
  static uint64_t &Done();

  Context *const context;

private:
  struct Node {
    Work work;
    std::atomic<Node *> next{nullptr};
  };
  void Loop(Node *taken);

  const uint64_t seed;
  const int64_t delay_us;
  std::atomic<uint64_t> launches{0};
  // The thread takes without a lock, so who pushes knows nothing of what is over by then.
  sem_t ready;           // how many there are to take
  std::mutex push_mutex; // of:
  Node *newest;          // what was taken last, where there is nothing
  uint64_t pushed = 0;
  std::mutex over_mutex; // of:
  std::condition_variable changed;
  uint64_t over = 0;
  std::thread thread;
};

struct Function {
  Context *context;
  CUmodule module;
  const boa_emulated_function *emulated;
  std::atomic<int64_t> dynamic_limit; // of shared memory that a launch adds
  std::atomic<bool> on_device{false}; // asked after or launched before
};

struct Module {
  Context *context;
  const boa_emulated_module *emulated;
};

/// What was captured: the context has it.
struct Graph {
  Context *context;
  const std::vector<Captured> *nodes;
};
struct GraphExec : Graph {};

/// Between cuStreamBeginCapture and cuStreamEndCapture.
struct Capture {
  std::thread::id thread;
  int mode = 0;
  bool invalidated = false;
  std::vector<Captured> nodes;
};

/// Handles that are no addresses, and are never used again.
template <typename T, typename Handle> class Handles {
public:
  Handles(const char *name, uint64_t tag) : name(name), tag(tag << 56) {}
  Handle Add(std::shared_ptr<T> object) {
    std::unique_lock<std::shared_mutex> lock(mutex);
    objects[next] = std::move(object);
    return reinterpret_cast<Handle>(tag | next++);
  }
  std::shared_ptr<T> Find(Handle handle) const {
    std::shared_lock<std::shared_mutex> lock(mutex);
    auto it = objects.find(reinterpret_cast<uint64_t>(handle) ^ tag);
    return it == objects.end() ? nullptr : it->second;
  }
  /// For streams' threads: counts no reference, as Context::completions.
  bool Has(Handle handle) const {
    std::shared_lock<std::shared_mutex> lock(mutex);
    return objects.count(reinterpret_cast<uint64_t>(handle) ^ tag);
  }
  std::shared_ptr<T> Remove(Handle handle) {
    std::unique_lock<std::shared_mutex> lock(mutex);
    auto it = objects.find(reinterpret_cast<uint64_t>(handle) ^ tag);
    if (it == objects.end())
      return nullptr;
    std::shared_ptr<T> object = std::move(it->second);
    objects.erase(it);
    return object;
  }
  /// Why there is none.
  std::string Missing(Handle handle) const {
    std::shared_lock<std::shared_mutex> lock(mutex);
    uint64_t number = reinterpret_cast<uint64_t>(handle) ^ tag;
    return number >= 1 && number < next ? std::string(name) + " that was destroyed"
                                        : std::string("what is no") + strchr(name, ' ');
  }
  std::vector<std::shared_ptr<T>> Of(const Context *context) const {
    std::shared_lock<std::shared_mutex> lock(mutex);
    std::vector<std::shared_ptr<T>> of;
    for (const auto &[number, object] : objects)
      if (object->context == context)
        of.push_back(object);
    return of;
  }
  /// Destroys those of the context.
  void Drop(const Context *context) {
    std::vector<std::shared_ptr<T>> dropped = Of(context); // outlive the lock
    std::unique_lock<std::shared_mutex> lock(mutex);
    for (auto it = objects.begin(); it != objects.end();)
      it = it->second->context == context ? objects.erase(it) : std::next(it);
  }

private:
  const char *const name; // with its article
  const uint64_t tag;
  mutable std::shared_mutex mutex;
  std::map<uint64_t, std::shared_ptr<T>> objects;
  uint64_t next = 1;
};

/// All that there is, but for what a thread has made current.
struct Driver {
  std::mutex mutex; // of `retained` of contexts, and of cuInit
  std::atomic<bool> initialized{false};
  Settings settings; // as they were when the first context was retained
  Context contexts[kMostDevices];
  Handles<Stream, CUstream> streams{"a stream", 0xf1};
  Handles<Event, CUevent> events{"an event", 0xf2};
  Handles<Module, CUmodule> modules{"a module", 0xf3};
  Handles<Function, CUfunction> functions{"a function", 0xf4};
  Handles<Graph, CUgraph> graphs{"a graph", 0xf5};
  Handles<GraphExec, CUgraphExec> execs{"an executable graph", 0xf6};
  /// Where none captures no lock is taken: it would order threads.
  std::atomic<int> capturing{0};
  std::mutex captures_mutex; // of:
  std::map<const Stream *, Capture> captures;
  Ranges pinned;
  std::atomic<uint64_t> streams_made{0};
  std::mutex calls_mutex;
  std::map<std::string, int64_t> calls, late_calls; // of functions that are to fail
  int64_t version_calls = 0; // of cuDriverGetVersion before cuInit, which takes them over

  static Driver &Get();
};

/// The context that is current: 0, its sticky error, or, where there is none, another.
CUresult FindContext(const char *what, Context *&);
/// BeginCall, then FindContext.
CUresult BeginCallIn(const char *what, Context *&);
/// What is current on this thread; null: nothing.
Context *&CurrentContext();
/// While set, this thread may not call CUDA: it runs a host function.
bool &InHostFunction();
/// What `handle` names, of the current context; or null and `error`, which was reported.
template <typename T, typename Handle>
std::shared_ptr<T> FindIn(const char *what, const Handles<T, Handle> &handles, Handle handle,
                          Context *context, CUresult &error) {
  std::shared_ptr<T> object = handles.Find(handle);
  if (!object)
    error =
        Report(CUDA_ERROR_INVALID_HANDLE, std::string(what) + ": of " + handles.Missing(handle));
  else if (object->context != context) {
    error =
        Report(CUDA_ERROR_INVALID_HANDLE, std::string(what) + ": of a context that is not current");
    object = nullptr;
  }
  return object;
}
/// The function, of a module that is loaded and with what it takes of the device's memory; or null
/// and `error`, which was reported.
std::shared_ptr<Function> FindFunction(const char *what, CUfunction, Context *, CUresult &error);
/// The stream, or an error that was reported.
CUresult FindStream(const char *what, CUstream, Context *, std::shared_ptr<Stream> &);
/// Reports what is an address of a device's memory.
CUresult CheckHost(const char *what, const void *host);
/// BeginCallIn's error is the sticky one: what gives something back does so nevertheless.
bool GivesBack(CUresult error, const Context *);
/// An error in place of what this call of `what` will do, or 0.
int LateInjection(const char *what);
/// Gives the stream work that may fail in its turn, or, while it captures, the graph.
CUresult Give(Stream &, const char *what, std::function<std::string()> run);
/// Of what no graph can hold: where the stream captures, an error, and so ends the capture.
CUresult RefuseCapturing(const Stream &);
/// Of what could break a capture of this thread, or a global one: an error if there is one,
/// which it ends.
CUresult RefuseUnsafe();

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_CONTEXT_H
