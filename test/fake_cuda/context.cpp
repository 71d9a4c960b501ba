//===- context.cpp - Contexts, streams, events, modules ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/context.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <unistd.h>

namespace boa::fake {
namespace {

std::mutex report_mutex;
std::string &Reports() {
  static auto *reports = new std::string;
  return *reports;
}

} // namespace

CUresult Report(CUresult error, const std::string &words) {
  std::lock_guard<std::mutex> lock(report_mutex);
  fprintf(stderr, "fake CUDA: %s\n", words.c_str());
  Reports() += words + "\n";
  return error;
}

Driver &Driver::Get() {
  static auto *driver = new Driver;
  return *driver;
}

Context *&CurrentContext() {
  static thread_local Context *context = nullptr;
  return context;
}

bool &InHostFunction() {
  static thread_local bool inside = false;
  return inside;
}

CUresult BeginCall(const char *what) {
  Driver &driver = Driver::Get();
  if (InHostFunction())
    return Report(CUDA_ERROR_NOT_PERMITTED,
                  std::string(what) + ": a host function may not call CUDA");
  if (!driver.initialized)
    return Report(CUDA_ERROR_NOT_INITIALIZED, std::string(what) + ": before cuInit");
  if (!MayFail(what))
    return Report(CUDA_ERROR_UNKNOWN, std::string(what) + ": settings.cpp does not have it");
  auto it = driver.settings.fail.find(what);
  if (it == driver.settings.fail.end())
    return CUDA_SUCCESS;
  std::lock_guard<std::mutex> lock(driver.calls_mutex);
  return ++driver.calls[what] == it->second.call ? it->second.error : CUDA_SUCCESS;
}

/// What a thread may not do while it captures: it allocates, or waits for the device.
static bool IsUnsafe(const std::string &what) {
  static const std::set<std::string> unsafe = {
      "cuMemAlloc_v2",        "cuMemFree_v2",        "cuMemHostAlloc",     "cuMemFreeHost",
      "cuMemHostRegister_v2", "cuMemHostUnregister", "cuModuleLoadDataEx", "cuModuleUnload",
      "cuCtxSynchronize",     "cuStreamSynchronize", "cuStreamQuery",      "cuEventSynchronize",
      "cuEventQuery"};
  return unsafe.count(what) > 0;
}

int LateInjection(const char *what) {
  Driver &driver = Driver::Get();
  if (!MayFailLate(what))
    return Report(CUDA_ERROR_UNKNOWN, std::string(what) + ": settings.cpp does not have it");
  auto it = driver.settings.late.find(what);
  if (it == driver.settings.late.end())
    return 0;
  std::lock_guard<std::mutex> lock(driver.calls_mutex);
  return ++driver.late_calls[what] == it->second.call ? it->second.error : 0;
}

CUresult BeginCallIn(const char *what, Context *&context) {
  CUresult error = BeginCall(what);
  if (!error)
    error = FindContext(what, context);
  return !error && IsUnsafe(what) ? RefuseUnsafe() : error;
}

CUresult FindContext(const char *what, Context *&context) {
  context = CurrentContext();
  if (!context || !context->memory)
    return Report(CUDA_ERROR_INVALID_CONTEXT,
                  std::string(what) + ": no context is current on this thread");
  return context->error;
}

const DnnSettings &GetDnnSettings() { return Driver::Get().settings.dnn; }

const std::vector<int64_t> &GetAlgorithms() { return Driver::Get().settings.algorithm_us; }

CUresult TakeOverhead() {
  if (CUresult error = RefuseUnsafe()) // it allocates
    return error;
  DeviceMemory &memory = *CurrentContext()->memory;
  return memory.Take(Driver::Get().settings.overhead) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult FindStream(const char *what, CUstream handle, Context *context,
                    std::shared_ptr<Stream> &stream) {
  if (reinterpret_cast<uint64_t>(handle) <= 2)
    return Report(CUDA_ERROR_INVALID_HANDLE,
                  std::string(what) + ": on a default stream, which waits for all others");
  CUresult error = CUDA_SUCCESS;
  stream = FindIn(what, Driver::Get().streams, handle, context, error);
  return error;
}

std::shared_ptr<Function> FindFunction(const char *what, CUfunction handle, Context *context,
                                       CUresult &error) {
  auto function = FindIn(what, Driver::Get().functions, handle, context, error);
  if (function && !Driver::Get().modules.Has(function->module)) {
    error =
        Report(CUDA_ERROR_INVALID_HANDLE, what + std::string(": of a module that was unloaded"));
    return nullptr;
  }
  if (function && !function->on_device.exchange(true, std::memory_order_relaxed))
    error = TakeOverhead();
  return error ? nullptr : function;
}

CUresult CheckHost(const char *what, const void *host) {
  for (Context &context : Driver::Get().contexts)
    if (context.memory && context.memory->Holds(reinterpret_cast<uint64_t>(host)))
      return Report(CUDA_ERROR_INVALID_VALUE,
                    what + std::string(": an address of device memory for the host's"));
  return CUDA_SUCCESS;
}

bool GivesBack(CUresult error, const Context *context) {
  return context && context->error && error == context->error;
}

CUresult Enqueue(const char *what, CUstream handle, std::vector<DeviceRange> ranges,
                 Operation operation) {
  std::shared_ptr<Stream> stream;
  Context *context = nullptr;
  CUresult error = FindContext(what, context);
  if (error || (error = FindStream(what, handle, context, stream)))
    return error;
  DeviceMemory *memory = context->memory.get();
  std::vector<uint64_t> numbers;
  std::vector<char *> data;
  for (const DeviceRange &range : ranges) {
    numbers.push_back(memory->ranges.Find(range.address, range.bytes).number);
    if (!numbers.back())
      return Report(CUDA_ERROR_INVALID_VALUE, std::string(what) + ": " + range.name + ": " +
                                                  memory->Outside(range.address, range.bytes));
    data.push_back(memory->Data(range.address));
  }
  auto freed = [what, memory, ranges = std::move(ranges),
                numbers = std::move(numbers)](const char *when) -> std::string {
    for (size_t i = 0; i < numbers.size(); ++i)
      if (!memory->ranges.Has(numbers[i]))
        return std::string(what) + ": " + ranges[i].name + ": freed " + when;
    return {};
  };
  return Give(*stream, what, [freed, data = std::move(data), operation = std::move(operation)] {
    std::string error = freed("while it waited in its stream");
    if (error.empty())
      error = operation(data);
    if (error.empty())
      error = freed("while it ran");
    return error;
  });
}

bool Context::GrowStack(int64_t bytes) {
  if (bytes <= stack.load(std::memory_order_relaxed))
    return true;
  std::lock_guard<std::mutex> lock(mutex);
  if (bytes > stack && !memory->Take((bytes - stack) * kResidentThreads))
    return false;
  stack = std::max(stack.load(), bytes);
  return true;
}

Running::Running() {
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&lock, &attributes);
  pthread_rwlockattr_destroy(&attributes);
}

void Context::Fail(int code, const std::string &words) {
  running.Stop();
  int none = 0;
  error.compare_exchange_strong(none, code);
  running.End();
  if (!words.empty())
    Report(code, words);
}

void Completion::Finish() {
  std::lock_guard<std::mutex> lock(mutex);
  over = true;
  ns = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  changed.notify_all();
}

void Completion::Wait() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return over; });
}

bool Completion::Over(int64_t *when) {
  std::lock_guard<std::mutex> lock(mutex);
  if (when)
    *when = ns;
  return over;
}

Stream::Stream(Context *context, uint64_t seed, int64_t delay_us)
    : context(context), seed(seed), delay_us(delay_us), newest(new Node) {
  sem_init(&ready, 0, 0);
  thread = std::thread([this, first = newest] { Loop(first); });
}

Stream::~Stream() {
  Close();
  thread.join();
  delete newest;
  sem_destroy(&ready);
}

void Stream::Push(Work work) {
  auto *node = new Node;
  node->work = std::move(work);
  {
    std::lock_guard<std::mutex> lock(push_mutex);
    newest->next = node;
    newest = node;
    ++pushed;
  }
  sem_post(&ready);
}

uint64_t &Stream::Done() {
  static thread_local uint64_t done = 0;
  return done;
}

void Stream::Wait() {
  uint64_t last;
  {
    std::lock_guard<std::mutex> lock(push_mutex);
    last = pushed;
  }
  std::unique_lock<std::mutex> lock(over_mutex);
  changed.wait(lock, [&] { return over >= last; });
}

bool Stream::Idle() {
  std::lock_guard<std::mutex> push_lock(push_mutex);
  std::lock_guard<std::mutex> lock(over_mutex);
  return over == pushed;
}

// By one post for which there is nothing to take.
void Stream::Close() { sem_post(&ready); }

/// See boa_fake_cuda_delays.
static std::atomic<int64_t> delays{0};

void Stream::Loop(Node *taken) {
  Random random(seed);
  for (;;) {
    while (sem_wait(&ready) != 0) // interrupted
      ;
    Node *node = taken->next;
    if (!node)
      return;
    delete std::exchange(taken, node);
    if (delay_us) {
      // Now and then much longer: what follows on other streams overtakes it.
      int64_t most = random.Below(16) ? 2 * delay_us : 16 * delay_us;
      const int64_t delay = random.Below(most);
      delays += delay;
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
    }
    Work work = std::move(node->work);
    std::string words;
    if (!work.waits)
      context->running.Begin();
    const bool runs = work.always || !context->error;
    if (runs && !work.inject)
      words = work.run();
    if (!work.waits)
      context->running.End();
    if (runs && (work.inject || !words.empty()))
      context->Fail(work.inject ? work.inject : int(CUDA_ERROR_ILLEGAL_ADDRESS), words);
    ++Done();
    work.run = nullptr; // what it holds, before anybody hears that it is over
    std::lock_guard<std::mutex> lock(over_mutex);
    ++over;
    changed.notify_all();
  }
}

} // namespace boa::fake

extern "C" int64_t boa_fake_cuda_delays(void) { return boa::fake::delays.exchange(0); }

extern "C" const char *boa_fake_cuda_reports(void) {
  static auto *taken = new std::string;
  std::lock_guard<std::mutex> lock(boa::fake::report_mutex);
  *taken = std::exchange(boa::fake::Reports(), {});
  return taken->c_str();
}

extern "C" int64_t boa_fake_cuda_calls(const char *function) {
  boa::fake::Driver &driver = boa::fake::Driver::Get();
  std::lock_guard<std::mutex> lock(driver.calls_mutex);
  auto it = driver.calls.find(function);
  return it == driver.calls.end() ? 0 : it->second;
}
