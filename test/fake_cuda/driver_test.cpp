//===- driver_test.cpp - Tests of the fake driver ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/emulated.h"
#include "test/fake_cuda/fixture.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BOA_THREAD_SANITIZER 1
#endif
#endif

namespace boa::fake {
namespace {

using testing::HasSubstr;

/// Memory that is registered while it lives.
template <typename T> struct Pinned {
  explicit Pinned(size_t count, T value = {}) : values(count, value) {
    EXPECT_EQ(cuMemHostRegister_v2(values.data(), values.size() * sizeof(T), 0), CUDA_SUCCESS);
  }
  ~Pinned() { EXPECT_EQ(cuMemHostUnregister(values.data()), CUDA_SUCCESS); }
  std::vector<T> values;
};

/// With which settings a body that waits for too little goes wrong.
std::string Settings(int seed) { return "delay_us=200 seed=" + std::to_string(seed); }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

// Fresh memory is NaN; what was copied to it comes back; what was freed may be had again.
TEST_F(FakeCudaTest, MemoryHoldsWhatWasCopied) {
  Session session("memory=1MiB");
  CUstream stream = NewStream();
  size_t free = 0, total = 0;
  EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, size_t(1) << 20);
  EXPECT_EQ(total, size_t(1) << 20);
  CUdeviceptr memory = NewMemory<float>(100);
  EXPECT_EQ(memory % 256, 0u);
  EXPECT_NE(memory % 512, 0u);
  for (float value : Download<float>(memory, 100, stream))
    EXPECT_TRUE(std::isnan(value));
  std::vector<float> values(100, 3);
  Upload(memory, values, stream);
  EXPECT_EQ(Download<float>(memory, 100, stream), values);
  EXPECT_EQ(cuMemsetD8Async(memory + 4, 0, 8, stream), CUDA_SUCCESS);
  values[1] = values[2] = 0;
  EXPECT_EQ(Download<float>(memory, 100, stream), values);
  CUdeviceptr other = NewMemory<float>(100);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(other, memory, 400, stream), CUDA_SUCCESS);
  EXPECT_EQ(Download<float>(other, 100, stream), values);
  CUdeviceptr large = 0;
  EXPECT_EQ(cuMemAlloc_v2(&large, (1 << 20) - 799), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc_v2(&large, (1 << 20) - 800), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 0u);
  for (CUdeviceptr address : {memory, other, large})
    EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

// By the host it cannot be read: the kernel of the system says so.
TEST_F(FakeCudaTest, TheHostMayNotTouchDeviceMemory) {
  Session session("");
  CUdeviceptr memory = NewMemory<char>(100);
  int file = open("/dev/null", O_WRONLY), ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], reinterpret_cast<void *>(memory), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  for (int one : {file, ends[0], ends[1]})
    close(one);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

TEST_F(FakeCudaTest, CopiesOutOfBoundsAreRefused) {
  Session session("");
  CUstream stream = NewStream();
  CUdeviceptr memory = NewMemory<char>(100);
  char host[200] = {};
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(memory + 50, host, 51, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Reports(),
            "cuMemcpyHtoDAsync_v2: where to: 51 bytes from byte 50 of an allocation of 100\n");
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(host, memory + 100, 1, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("is in no allocation"));
  EXPECT_EQ(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(host), 0, 1, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("is no address of device memory"));
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(memory, reinterpret_cast<void *>(memory), 1, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("an address of device memory for the host's"));
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(memory, memory + 10, 11, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("overlap"));
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("no allocation begins there"));
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST_F(FakeCudaTest, PinnedMemoryIsPinnedOnce) {
  Session session("");
  CUstream stream = NewStream();
  CUdeviceptr memory = NewMemory<char>(100);
  std::vector<char> host(100);
  EXPECT_EQ(cuMemHostRegister_v2(host.data(), 50, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostRegister_v2(host.data() + 49, 10, 0),
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(Reports(), "cuMemHostRegister_v2: some of it is pinned already\n");
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(memory, host.data(), 51, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("some are pinned and some are not"));
  EXPECT_EQ(cuMemHostUnregister(host.data()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(host.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_THAT(Reports(), HasSubstr("cuMemHostUnregister"));
  void *allocated = nullptr;
  EXPECT_EQ(cuMemHostAlloc(&allocated, 100, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(allocated), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_THAT(Reports(), HasSubstr("cuMemHostUnregister"));
  EXPECT_EQ(cuMemFreeHost(allocated), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

// In one stream each happens after what was enqueued before it.
TEST_F(FakeCudaTest, StreamsKeepTheirOrder) {
  for (int seed = 1; seed <= 10; ++seed) {
    Session session(Settings(seed));
    CUstream stream = NewStream();
    CUdeviceptr memory = NewMemory<char>(10);
    Pinned<char> host(10);
    for (int value = 1; value <= 5; ++value)
      EXPECT_EQ(cuMemsetD8Async(memory, value, 10, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoHAsync_v2(host.values.data(), memory, 10, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_SUCCESS);
    EXPECT_EQ(host.values, std::vector<char>(10, 5));
    EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  }
}

/// Holds a stream until it is told to go on.
class Gate {
public:
  explicit Gate(CUstream stream) {
    auto wait = [](void *flag) {
      while (!*static_cast<std::atomic<bool> *>(flag))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    EXPECT_EQ(cuLaunchHostFunc(stream, wait, &open), CUDA_SUCCESS);
  }
  void Open() { open = true; }

private:
  std::atomic<bool> open{false};
};

enum class Held { none, in, out };

/// Copies a 7 to the device on one stream and back on another, which waits for the first or does
/// not. Returns what came back: before the 7 there is a 0. The stream that is `held` begins when
/// the other one is over.
int CopyOnTwoStreams(const std::string &settings, bool wait, Held held = Held::none) {
  Session session(settings);
  CUstream in = NewStream(), out = NewStream();
  CUevent event = NewEvent();
  CUdeviceptr memory = NewMemory<int>(1);
  Pinned<int> from(1, 7), to(1);
  EXPECT_EQ(cuMemsetD8Async(memory, 0, 4, in), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(in), CUDA_SUCCESS);
  std::optional<Gate> gate;
  if (held != Held::none)
    gate.emplace(held == Held::in ? in : out);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(memory, from.values.data(), 4, in), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, in), CUDA_SUCCESS);
  if (wait)
    EXPECT_EQ(cuStreamWaitEvent(out, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(to.values.data(), memory, 4, out), CUDA_SUCCESS);
  if (gate) {
    EXPECT_EQ(cuStreamSynchronize(held == Held::in ? out : in), CUDA_SUCCESS);
    gate->Open();
  }
  EXPECT_EQ(cuStreamSynchronize(out), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(in), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  for (CUstream stream : {in, out})
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  return to.values[0];
}

TEST_F(FakeCudaTest, StreamsWaitForEvents) {
  for (int seed = 1; seed <= 50; ++seed)
    EXPECT_EQ(CopyOnTwoStreams(Settings(seed), true), 7) << "seed " << seed;
}

// With `delay_us` each stream sleeps before its work, for times that follow from the seed.
TEST_F(FakeCudaTest, StreamsAreDelayedByTheSeed) {
  auto delays = [](const std::string &settings) {
    Session session(settings);
    CUstream stream = NewStream();
    CUdeviceptr memory = NewMemory<char>(1);
    boa_fake_cuda_delays(); // of streams before
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(cuMemsetD8Async(memory, i, 1, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    return boa_fake_cuda_delays();
  };
  EXPECT_EQ(delays(""), 0);
  const int64_t first = delays(Settings(1));
  EXPECT_GT(first, 0);
  EXPECT_EQ(delays(Settings(1)), first);
  EXPECT_NE(delays(Settings(2)), first);
}

#ifdef BOA_THREAD_SANITIZER
// What nothing orders is a race even where it happens to come in the right order.
TEST_F(FakeCudaTest, MissingWaitIsARace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(CopyOnTwoStreams("", false); exit(0), testing::ExitedWithCode(66), "data race");
}
#else
// Without a wait either stream may be first.
TEST_F(FakeCudaTest, MissingWaitIsSeen) {
  EXPECT_EQ(CopyOnTwoStreams("", false, Held::in), 0);
  EXPECT_EQ(CopyOnTwoStreams("", false, Held::out), 7);
}

// Pinned memory is read when the copy's turn comes; of pageable memory there is a copy.
TEST_F(FakeCudaTest, PinnedMemoryIsReadInItsTurn) {
  Session session("");
  CUstream stream = NewStream();
  CUdeviceptr pinned_memory = NewMemory<int>(1), pageable_memory = NewMemory<int>(1);
  {
    std::vector<int> pageable = {1};
    Pinned<int> pinned(1, 1);
    Gate gate(stream);
    Upload(pageable_memory, pageable, stream);
    Upload(pinned_memory, pinned.values, stream);
    pageable[0] = pinned.values[0] = 2; // too early for pinned memory
    gate.Open();
    EXPECT_EQ(Download<int>(pageable_memory, 1, stream)[0], 1);
    EXPECT_EQ(Download<int>(pinned_memory, 1, stream)[0], 2);
  }
  for (CUdeviceptr memory : {pinned_memory, pageable_memory})
    EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}
#endif

// A wait is for what was recorded last before it was called; where nothing was, for nothing.
TEST_F(FakeCudaTest, EventsAreWaitedForAsTheyWere) {
  Session session("");
  CUstream held = NewStream(), free = NewStream();
  CUevent event = NewEvent();
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(free, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, free), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
  Gate gate(held);
  EXPECT_EQ(cuStreamWaitEvent(free, event, 0), CUDA_SUCCESS); // as it was: over
  EXPECT_EQ(cuEventRecord(event, held), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(free), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamWaitEvent(free, event, 0), CUDA_SUCCESS); // what it is now
  EXPECT_EQ(cuStreamQuery(free), CUDA_ERROR_NOT_READY);
  // What waits does so for an event that is gone, too.
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  gate.Open();
  EXPECT_EQ(cuStreamSynchronize(free), CUDA_SUCCESS);
  for (CUstream stream : {held, free})
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST_F(FakeCudaTest, EventsTakeTimes) {
  Session session("");
  CUstream stream = NewStream();
  CUevent begin = NewEvent(0), end = NewEvent(0), untimed = NewEvent();
  float ms = -1;
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(cuEventElapsedTime(&ms, begin, end), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuEventElapsedTime: of an event that was never recorded\n");
  auto sleep = [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  EXPECT_EQ(cuEventRecord(begin, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchHostFunc(stream, sleep, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(end, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(untimed, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime(&ms, begin, end), CUDA_SUCCESS);
  EXPECT_GE(ms, 5);
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - before;
  EXPECT_LE(ms, all.count() * 1.001);
  EXPECT_EQ(cuEventElapsedTime(&ms, begin, untimed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuEventElapsedTime: of an event without timing\n");
  for (CUevent event : {begin, end, untimed})
    EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

template <typename T> T *Argument(void *const *args, int i) {
  return *static_cast<T *const *>(args[i]);
}

void AddVectors(boa_emulated_thread *t, void *const *args) {
  int64_t i = t->block[0] * t->block_dim[0] + t->thread[0];
  if (i >= 300)
    t->fault(t, "index past 300");
  Argument<float>(args, 2)[i] = Argument<float>(args, 0)[i] + Argument<float>(args, 1)[i];
}

void Nothing(boa_emulated_thread *, void *const *) {}

const boa_emulated_function kFunctions[] = {{"nothing", Nothing, 40 << 10, 0},
                                            {"add", AddVectors, 0, 3}};
const boa_emulated_module kModule = {BOA_EMULATED_MAGIC, 2, kFunctions};

class FakeKernelTest : public FakeCudaTest {
protected:
  void Begin(const std::string &settings) {
    session = std::make_unique<Session>(settings);
    EXPECT_EQ(cuModuleLoadDataEx(&module, &kModule, 0, nullptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&add, module, "add"), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&nothing, module, "nothing"), CUDA_SUCCESS);
    stream = NewStream();
    for (CUdeviceptr &vector : vectors)
      vector = NewMemory<float>(300);
  }
  /// Each call says the error that there is, and gives back what it is to give back.
  void End(CUresult error = CUDA_SUCCESS) {
    EXPECT_EQ(cuStreamSynchronize(stream), error);
    for (CUdeviceptr vector : vectors)
      EXPECT_EQ(cuMemFree_v2(vector), error);
    EXPECT_EQ(cuStreamDestroy_v2(stream), error);
    EXPECT_EQ(cuModuleUnload(module), error);
    session.reset();
  }
  CUresult Launch(unsigned blocks, unsigned threads, unsigned shared = 0) {
    void *arguments[] = {&vectors[0], &vectors[1], &vectors[2]};
    return cuLaunchKernel(add, blocks, 1, 1, threads, 1, 1, shared, stream, arguments, nullptr);
  }
  std::unique_ptr<Session> session;
  CUmodule module = nullptr;
  CUfunction add = nullptr, nothing = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr vectors[3] = {};
};

TEST_F(FakeKernelTest, AddsVectors) {
  Begin("delay_us=100");
  Upload(vectors[0], std::vector<float>(300, 1), stream);
  Upload(vectors[1], std::vector<float>(300, 2), stream);
  EXPECT_EQ(Launch(3, 100), CUDA_SUCCESS);
  EXPECT_EQ(Download<float>(vectors[2], 300, stream), std::vector<float>(300, 3));
  End();
}

// A launch's error is said by the next call that waits, and by each that follows; what was
// enqueued behind it does not happen, events but excepted.
TEST_F(FakeKernelTest, FaultsAreSticky) {
  Begin("delay_us=100");
  bool called = false;
  CUevent event = NewEvent();
  EXPECT_EQ(Launch(4, 100), CUDA_SUCCESS);
  auto call = [](void *flag) { *static_cast<bool *>(flag) = true; };
  CUresult host = cuLaunchHostFunc(stream, call, &called);
  EXPECT_TRUE(host == CUDA_SUCCESS || host == CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(called);
  EXPECT_THAT(Reports(), HasSubstr("kernel 'add', block (3, 0, 0), thread ("));
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Launch(3, 100), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  End(CUDA_ERROR_ILLEGAL_ADDRESS);
  Begin("");
  EXPECT_EQ(Launch(3, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  End();
}

// Who waits for an event behind the fault is told, and does not wait for ever.
TEST_F(FakeKernelTest, EventsBehindAFaultComeNevertheless) {
  Begin("");
  CUevent event = NewEvent();
  Gate gate(stream);
  EXPECT_EQ(Launch(4, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  gate.Open();
  EXPECT_EQ(cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Reports(), HasSubstr("index past 300"));
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  End(CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(FakeKernelTest, RefusesWhatNoDeviceRuns) {
  Begin("");
  EXPECT_EQ(Launch(1, 1025), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Launch(0, 32), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Reports(), "cuLaunchKernel of 'add': a grid or a block of a size that no device has\n"
                       "cuLaunchKernel of 'add': a grid or a block of a size that no device has\n");
  // More shared memory than 48 KiB must be asked for, and there are 227.
  auto launch = [&](unsigned shared) {
    return cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, shared, stream, nullptr, nullptr);
  };
  EXPECT_EQ(launch(8 << 10), CUDA_SUCCESS);
  EXPECT_EQ(launch(9 << 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Reports(),
            "cuLaunchKernel of 'nothing': more shared memory than the function may have\n");
  const int attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  EXPECT_EQ(cuFuncSetAttribute(nothing, attribute, 100 << 10), CUDA_SUCCESS);
  EXPECT_EQ(launch(100 << 10), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncSetAttribute(nothing, attribute, 188 << 10), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr kept = vectors[1];
  vectors[1] = reinterpret_cast<CUdeviceptr>(&kept);
  EXPECT_EQ(Launch(1, 32), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("cuLaunchKernel of 'add': argument 1: "));
  vectors[1] = kept;
  End();
}

TEST_F(FakeKernelTest, RefusesOtherModules) {
  Begin("");
  CUmodule other = nullptr;
  char log[100] = "";
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  EXPECT_EQ(cuModuleLoadDataEx(&other, ".version 8.0\n.target sm_90\n", 2, options, values),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(log, "the fake driver runs emulated kernels alone");
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&function, module, "subtract"), CUDA_ERROR_NOT_FOUND);
  // Who forgets the number of arguments has the next function's name in its place.
  const void *rows[] = {"add", "its body", nullptr, "next"};
  boa_emulated_module narrow = {BOA_EMULATED_MAGIC, 1,
                                reinterpret_cast<const boa_emulated_function *>(rows)};
  EXPECT_EQ(cuModuleLoadDataEx(&other, &narrow, 0, nullptr, nullptr), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(Reports(), "cuModuleLoadDataEx: function 0 of the module is not laid out as emulated.h "
                       "says\n");
  End();
}

//===----------------------------------------------------------------------===//
// Misuse
//===----------------------------------------------------------------------===//

TEST_F(FakeKernelTest, MemoryThatIsFreedWhileItIsWaitedForIsSeen) {
  Begin("");
  Gate gate(stream);
  EXPECT_EQ(Launch(3, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(vectors[1]), CUDA_SUCCESS);
  vectors[1] = NewMemory<float>(300);
  gate.Open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Reports(), HasSubstr("argument 1: freed while it waited in its stream"));
  End(CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(FakeKernelTest, MemoryThatIsUnpinnedWhileItIsWaitedForIsSeen) {
  Begin("");
  Gate gate(stream);
  {
    Pinned<float> host(300);
    EXPECT_EQ(cuMemcpyHtoDAsync_v2(vectors[0], host.values.data(), 1200, stream), CUDA_SUCCESS);
  }
  gate.Open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Reports(), HasSubstr("was unpinned while the copy waited in its stream"));
  End(CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(FakeKernelTest, ModuleThatIsUnloadedWhileItIsWaitedForIsSeen) {
  Begin("");
  Gate gate(stream);
  EXPECT_EQ(Launch(3, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_EQ(Launch(3, 100), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuLaunchKernel: of a module that was unloaded\n");
  EXPECT_EQ(cuModuleLoadDataEx(&module, &kModule, 0, nullptr, nullptr), CUDA_SUCCESS);
  gate.Open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Reports(), HasSubstr("its module was unloaded"));
  End(CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(FakeCudaTest, WhatWasDestroyedIsRefused) {
  Session session("");
  CUstream stream = NewStream(), gone = NewStream();
  CUevent event = NewEvent();
  EXPECT_EQ(cuStreamDestroy_v2(gone), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, gone), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuEventRecord: of a stream that was destroyed\n");
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(stream, event, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuStreamWaitEvent: of an event that was destroyed\n");
  EXPECT_EQ(cuEventQuery(reinterpret_cast<CUevent>(&event)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuEventQuery: of what is no event\n");
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuStreamSynchronize: on a default stream, which waits for all others\n");
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

// A stream that is destroyed ends its work.
TEST_F(FakeCudaTest, DestroyedStreamsEndTheirWork) {
  std::atomic<bool> done{false};
  {
    Session session("delay_us=2000");
    CUstream stream = NewStream();
    auto finish = [](void *flag) { *static_cast<std::atomic<bool> *>(flag) = true; };
    EXPECT_EQ(cuLaunchHostFunc(stream, finish, &done), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  }
  EXPECT_TRUE(done);
}

TEST_F(FakeCudaTest, AContextIsCurrentOnOneThread) {
  Session session("");
  std::thread other([&] {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(Reports(), "cuStreamCreate: no context is current on this thread\n");
    EXPECT_EQ(cuCtxSetCurrent(session.context), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  });
  other.join();
}

TEST_F(FakeCudaTest, HostFunctionsMayNotCallCuda) {
  Session session("");
  CUstream stream = NewStream();
  CUresult result = CUDA_SUCCESS;
  auto call = [](void *result) {
    size_t free, total;
    *static_cast<CUresult *>(result) = cuMemGetInfo_v2(&free, &total);
  };
  EXPECT_EQ(cuLaunchHostFunc(stream, call, &result), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(result, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(Reports(), "cuMemGetInfo_v2: a host function may not call CUDA\n");
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

// What was forgotten is counted, goes with the context, and is not there in the next.
TEST_F(FakeCudaTest, WhatIsLeftIsReported) {
  static char host[100];
  {
    Session session("");
    NewStream();
    NewEvent();
    NewEvent();
    NewMemory<char>(100);
    EXPECT_EQ(cuMemHostRegister_v2(host, 100, 0), CUDA_SUCCESS);
  }
  EXPECT_EQ(Reports(), "left when the context was released: 1 of cuMemAlloc, 1 of cuStreamCreate, "
                       "2 of cuEventCreate, 1 ranges of pinned memory\n");
  Session session("");
  Pinned<char> again(1);
}

// A process that forgets something does not end as if it had not.
TEST(FakeCudaDeathTest, WhatIsLeftAtExitIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto forget = [] {
    new Session("");
    NewMemory<char>(100);
    exit(0);
  };
  EXPECT_EXIT(forget(), testing::ExitedWithCode(86), "left at exit: 1 of cuMemAlloc");
}

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

TEST_F(FakeCudaTest, CallsFailAsTold) {
  {
    Session session("fail=cuMemAlloc_v2:3 error=2 fail=cuEventCreate");
    CUdeviceptr first = NewMemory<char>(1), second = NewMemory<char>(1), third = 0;
    EXPECT_EQ(cuMemAlloc_v2(&third, 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAlloc_v2(&third, 1), CUDA_SUCCESS);
    CUevent event = nullptr;
    EXPECT_EQ(cuEventCreate(&event, 0), CUDA_ERROR_OUT_OF_MEMORY);
    for (CUdeviceptr address : {first, second, third})
      EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  }
  {
    // Before cuInit, by what is said then.
    int version = 0;
    setenv("BOA_FAKE_CUDA", "fail=cuDriverGetVersion:1", 1);
    EXPECT_EQ(cuDriverGetVersion(&version), CUDA_ERROR_UNKNOWN);
    setenv("BOA_FAKE_CUDA", "fail=cuDriverGetVersion:2", 1);
    EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
    Session session("fail=cuDriverGetVersion:2");
    EXPECT_EQ(boa_fake_cuda_calls("cuDriverGetVersion"), 1);
  }
  Session session("late=cuMemsetD8Async:2");
  CUstream stream = NewStream();
  CUdeviceptr memory = NewMemory<char>(1);
  EXPECT_EQ(cuMemsetD8Async(memory, 0, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(memory, 0, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(FakeCudaTest, SettingsAreAsTheyAreWritten) {
  setenv("BOA_FAKE_CUDA", "devices=0", 1);
  EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
  int value = 0;
  EXPECT_EQ(cuDeviceGetCount(&value), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(Reports(), "cuDeviceGetCount: before cuInit\n");
  setenv("BOA_FAKE_CUDA", "driver=11080 capability=120 devices=2", 1);
  EXPECT_EQ(cuDriverGetVersion(&value), CUDA_SUCCESS);
  EXPECT_EQ(value, 11080);
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetAttribute(&value, 75, 1), CUDA_SUCCESS);
  EXPECT_EQ(value, 12);
  CUdevice device;
  EXPECT_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
  for (auto [text, words] :
       {std::pair{"sed=1", "there is no 'sed=1'"},
        std::pair{"algorithm_us=1,y", "expected microseconds or 'x', but found 'y'"},
        std::pair{"dnn_best=rx", "expected letters of 'nuar', or 'e', but found 'dnn_best=rx'"},
        std::pair{"seed=one", "expected NAME=NUMBER, but found 'seed=one'"},
        std::pair{"memory=1GB", "expected NAME=NUMBER, but found 'memory=1GB'"},
        std::pair{"fail=cuInit:0", "expected fail=FUNCTION:CALL, but found "
                                   "'fail=cuInit:0'"},
        std::pair{"fail=cuMemAlloc:1", "no call of 'cuMemAlloc' is made to fail"},
        std::pair{"late=cuMemAlloc_v2:1", "no call of 'cuMemAlloc_v2' is made to fail late"}}) {
    setenv("BOA_FAKE_CUDA", text, 1);
    EXPECT_EQ(cuInit(0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(Reports(), std::string("BOA_FAKE_CUDA: ") + words + "\n");
  }
}

// README.md: a library in which a name is another has no such function.
TEST_F(FakeCudaTest, AFunctionCanBeMissing) {
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void *>(&cuInit), &info), 0);
  std::ifstream in(info.dli_fname, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string name("\0cuEventQuery\0", 14);
  size_t at = bytes.find(name);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = 'x';
  std::string path = testing::TempDir() + "/older" + std::to_string(getpid()) + ".so";
  std::ofstream(path, std::ios::binary) << bytes;
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(path.c_str());
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, "cuEventRecord"), nullptr);
  EXPECT_EQ(dlsym(library, "cuEventQuery"), nullptr);
  dlclose(library);
}

} // namespace
} // namespace boa::fake
