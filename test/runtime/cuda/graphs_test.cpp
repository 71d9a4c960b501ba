//===- graphs_test.cpp - Kernels of the CUDA device as graphs -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of several launches leave the same bits as graphs and without them, in fewer calls;
// what goes wrong with a graph goes on without it, or ends with a status.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/graphs.h"
#include "test/runtime/cuda/fixture.h"

#include <utility>

namespace boa::cuda_test {
namespace {

constexpr int kLaunches = 5; // of a kernel

/// What a kernel does between its launches, where it has a queue.
std::function<void(boa_queue *)> meddle;
bool meddled = false;

/// The fixture's kernel, again and again.
void TrainOften(void *const *buffers, void *, boa_queue *queue) {
  for (int i = 0; i < kLaunches - 1; ++i)
    Train(buffers, nullptr, queue);
  if (queue && !queue->plans && meddle)
    meddle(queue);
  Train(buffers, nullptr, queue);
}

const boa_kernel kOften[] = {TrainOften};
const Kernels kGraphed(kOften, &kImage, &kReferenceAdamW);

class CudaGraphsTest : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    meddle = nullptr;
    meddled = false;
  }
  static Program Named(const char *device) {
    Program program = MakeProgram(device);
    program.kernels[0].name = "often";
    return program;
  }
  absl::Status MakeOften(const char *device = "cuda") { return Make(Named(device), kGraphed); }
  /// Ten steps; the counters of each.
  absl::Status TrainLong(std::vector<Counters> *counters = nullptr) {
    if (absl::Status status = Train(); !status.ok())
      return status;
    engine->TakeCounters();
    for (int64_t step = 4; step <= 10; ++step) {
      if (absl::Status status = TakeStep(step); !status.ok())
        return status;
      if (counters)
        counters->push_back(engine->TakeCounters());
    }
    return engine->Drain();
  }
  std::vector<std::vector<float>> Expected() {
    EXPECT_TRUE(MakeOften("split").ok());
    EXPECT_TRUE(TrainLong().ok());
    return All();
  }
};

// The bits are those without graphs, whatever waits for what; and the calls are fewer.
TEST_F(CudaGraphsTest, ComputeTheSameInFewerCalls) {
  const auto expected = Expected();
  int64_t calls[2] = {};
  for (int seed = 1; seed <= 10; ++seed)
    for (const char *graphs : {"none", ""}) {
      setenv("BOA_CUDA_GRAPHS", graphs, 1);
      Fake(absl::StrCat("seed=", seed, " delay_us=", seed % 4 * 40,
                        " fail=cuLaunchKernel:1000000000 fail=cuGraphLaunch:1000000000"));
      absl::Status status = MakeOften();
      ASSERT_TRUE(status.ok()) << status;
      std::vector<Counters> counters;
      status = TrainLong(&counters);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(All(), expected) << seed << " " << graphs;
      EXPECT_EQ(engine->TakeRemark(), "");
      const bool none = *graphs;
      for (const Counters &of : counters) {
        // Three layers, the kernel twice in each.
        EXPECT_EQ(of.launches, 6 * kLaunches);
        if (none)
          EXPECT_EQ(of.launch_calls, of.launches);
      }
      EXPECT_EQ(boa_fake_cuda_calls("cuGraphLaunch") > 0, !none);
      calls[none] += boa_fake_cuda_calls("cuLaunchKernel") + boa_fake_cuda_calls("cuGraphLaunch");
    }
  EXPECT_LT(calls[0], calls[1] * 3 / 4);
}

// A few launches are no graph.
TEST_F(CudaGraphsTest, ShortKernelsAreLaunched) {
  Fake("fail=cuStreamBeginCapture_v2:1000000000");
  ASSERT_TRUE(Make().ok());
  ASSERT_TRUE(TrainLong().ok());
  EXPECT_EQ(boa_fake_cuda_calls("cuStreamBeginCapture_v2"), 0);
}

// Each call on the way to a graph may fail: the kernel is launched, the bits are the same, and it
// is said, once.
TEST_F(CudaGraphsTest, MakingOneMayFail) {
  const auto expected = Expected();
  for (const char *function : {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
                               "cuGraphInstantiateWithFlags", "cuGraphUpload"})
    for (int call : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(function, ":", call));
      Fake(absl::StrCat("delay_us=20 fail=", function, ":", call));
      ASSERT_TRUE(MakeOften().ok());
      absl::Status status = TrainLong();
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(All(), expected);
      EXPECT_EQ(
          engine->TakeRemark(),
          absl::StrCat("no more kernels become CUDA graphs: kernel often: capturing it: ", function,
                       ": CUDA_ERROR_UNKNOWN (an error of the fake driver): its "
                       "work is launched piece by piece"));
      EXPECT_EQ(engine->TakeRemark(), "");
      EXPECT_EQ(boa_fake_cuda_calls(function), call);
    }
}

// So may a launch while it is captured, of which nothing has run; and what no capture allows.
TEST_F(CudaGraphsTest, WhatIsCapturedMayFail) {
  const auto expected = Expected();
  // Of the first kernel's second call, which is captured.
  Fake(absl::StrCat("fail=cuLaunchKernel:", kLaunches + 3));
  ASSERT_TRUE(MakeOften().ok());
  ASSERT_TRUE(TrainLong().ok());
  EXPECT_EQ(All(), expected);
  EXPECT_THAT(engine->TakeRemark(), HasSubstr("kernel often: element: cuLaunchKernel: "));
  Fake("fail=cuStreamBeginCapture_v2:1000000000");
  ASSERT_TRUE(MakeOften().ok());
  meddle = [](boa_queue *) {
    const bool captures = boa_fake_cuda_calls("cuStreamBeginCapture_v2") > 0;
    if (!std::exchange(meddled, meddled || captures) && captures)
      EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  };
  ASSERT_TRUE(TrainLong().ok());
  EXPECT_EQ(All(), expected);
  EXPECT_THAT(engine->TakeRemark(),
              HasSubstr("cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
}

// Launching one that there is must not fail: the run ends.
TEST_F(CudaGraphsTest, LaunchingOneMustNotFail) {
  Fake("fail=cuGraphLaunch:3");
  ASSERT_TRUE(MakeOften().ok());
  EXPECT_EQ(std::string(TrainLong().message()),
            "kernel often: launching a graph: cuGraphLaunch: CUDA_ERROR_UNKNOWN (an error of the "
            "fake driver): the system's log (dmesg) may say more; go on from the last commit");
  Fake("delay_us=50 late=cuLaunchKernel:80");
  ASSERT_TRUE(MakeOften().ok());
  EXPECT_THAT(std::string(TrainLong().message()), HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
}

// Making the stream to capture on may fail as any other may.
TEST_F(CudaGraphsTest, ItsStreamIsNeeded) {
  Fake("fail=cuStreamCreate:4");
  EXPECT_EQ(std::string(MakeOften().message()),
            "making a stream to capture on: cuStreamCreate: CUDA_ERROR_UNKNOWN (an error of the "
            "fake driver): the system's log (dmesg) may say more; go on from the last commit");
}

// In the first runs alone.
TEST_F(CudaGraphsTest, NoneIsMadeLater) {
  static constexpr int64_t kLast = cuda::KernelGraphs::kRuns + 5;
  Fake("fail=cuStreamBeginCapture_v2:1000000000 fail=cuGraphLaunch:1000000000");
  ASSERT_TRUE(MakeOften().ok());
  body = [](boa_context *c, int64_t step) {
    auto home = [&](int64_t entry) {
      return boa_rt_prefetch(c, kHome, entry, 0, 2, BOA_DEVICE, 0);
    };
    // Others at the last step.
    boa_buffer of[] = {home(step == kLast ? 1 : 0), home(step == kLast ? 0 : 1), home(2),
                       boa_rt_create(c, kGradient, 0, 0, 2, BOA_DEVICE)};
    for (int i = 0; i < 3; ++i)
      boa_rt_launch(c, 0, 4, of);
    for (boa_buffer buffer : of)
      boa_rt_release(c, buffer, 0);
  };
  for (int64_t step = 1; step <= kLast; ++step)
    ASSERT_TRUE(engine->Run(Drive, step, 0).ok());
  EXPECT_EQ(boa_fake_cuda_calls("cuStreamBeginCapture_v2"), 1);
  EXPECT_EQ(boa_fake_cuda_calls("cuGraphLaunch"), (kLast - 1) * 3 - 1);
}

// Where the program leaves little of the device's memory there are none.
TEST_F(CudaGraphsTest, SomeMemoryStaysFree) {
  const auto expected = Expected();
  Fake("memory=60MiB fail=cuGraphInstantiateWithFlags:1000000000");
  ASSERT_TRUE(MakeOften().ok());
  ASSERT_TRUE(TrainLong().ok());
  EXPECT_EQ(All(), expected);
  EXPECT_THAT(engine->TakeRemark(), HasSubstr("MiB are free"));
  EXPECT_EQ(boa_fake_cuda_calls("cuGraphInstantiateWithFlags"), 0);
}

//===----------------------------------------------------------------------===//
// By themselves
//===----------------------------------------------------------------------===//

/// Kernels of so many launches each, which do the same whatever addresses they are said to have.
class KernelGraphsTest : public CudaTest {
protected:
  void Make(std::vector<int64_t> launches) {
    launches_of = launches;
    for (size_t k = 0; k < launches.size(); ++k)
      program.kernels.emplace_back().name = absl::StrCat("kernel", k);
    gpu = *cuda::Gpu::Open();
    ASSERT_TRUE(gpu->Load(kImage).ok());
    const cuda::Driver &driver = gpu->driver();
    ASSERT_EQ(driver.StreamCreate.address(&queue.stream, 1), 0);
    ASSERT_EQ(driver.MemAlloc.address(&memory, 4 * kChunk), 0);
    queue.gpu = gpu.get();
    queue.driver = &driver;
    queue.plans = true;
    Launch(1);
    queue.plans = false;
    graphs = std::make_unique<cuda::KernelGraphs>(program, *gpu);
    ASSERT_TRUE(graphs->Create(std::move(launches)).ok());
  }
  void TearDown() override {
    ASSERT_EQ(gpu->driver().StreamSynchronize.address(queue.stream), 0);
    graphs.reset();
    gpu->driver().StreamDestroy.address(queue.stream);
    gpu->driver().MemFree.address(memory);
    gpu.reset();
    CudaTest::TearDown();
  }
  void Launch(int64_t times) {
    void *buffers[4];
    for (int i = 0; i < 4; ++i)
      buffers[i] = reinterpret_cast<void *>(memory + i * kChunk);
    for (int64_t i = 0; i < times; ++i)
      boa_cuda_launch(&queue, 0, 1, 1, 1, 1, 1, 1, 0, 4, buffers);
  }
  /// In how many calls, with a buffer at that address.
  int32_t Calls(int32_t kernel, uintptr_t address) {
    Work work;
    work.index = kernel;
    work.buffers.resize(1);
    absl::Status status = graphs->Enqueue(work, {reinterpret_cast<void *>(address)}, queue,
                                          [&] { Launch(launches_of[kernel]); });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(work.launches, launches_of[kernel]);
    return work.launch_calls;
  }
  /// At the third time.
  int32_t ThirdCalls(int32_t kernel, uintptr_t address) {
    Calls(kernel, address);
    Calls(kernel, address);
    return Calls(kernel, address);
  }

  std::vector<int64_t> launches_of;
  std::unique_ptr<cuda::Gpu> gpu;
  cuda::Pointer memory = 0;
  boa_queue queue;
  std::unique_ptr<cuda::KernelGraphs> graphs;
};

using Graphs = cuda::KernelGraphs;

TEST_F(KernelGraphsTest, AreOfSeveralLaunches) {
  Make({Graphs::kLeastLaunches - 1, Graphs::kLeastLaunches});
  EXPECT_EQ(ThirdCalls(0, 1), Graphs::kLeastLaunches - 1);
  EXPECT_EQ(ThirdCalls(1, 1), 1);
}

TEST_F(KernelGraphsTest, AreSoMany) {
  Make({4});
  for (size_t i = 0; i < Graphs::kMostGraphs; ++i)
    ASSERT_EQ(ThirdCalls(0, i), 1) << i;
  EXPECT_EQ(ThirdCalls(0, Graphs::kMostGraphs), 4);
  EXPECT_EQ(Calls(0, 0), 1);
}

TEST_F(KernelGraphsTest, AreOfSoManyLaunches) {
  constexpr int64_t kOne = Graphs::kMostLaunches / 16;
  Make({kOne});
  for (uintptr_t i = 0; i < 16; ++i)
    ASSERT_EQ(ThirdCalls(0, i), 1) << i;
  EXPECT_EQ(ThirdCalls(0, 16), kOne);
}

TEST_F(KernelGraphsTest, SoManyAddressesAreNoted) {
  Make({4});
  for (size_t i = 0; i < Graphs::kMostKeys; ++i)
    Calls(0, i);
  EXPECT_EQ(ThirdCalls(0, Graphs::kMostKeys), 4);
  EXPECT_EQ(ThirdCalls(0, 0), 1);
}

TEST_F(KernelGraphsTest, OtherWordsThanNoneAreRefused) {
  Make({4});
  setenv("BOA_CUDA_GRAPHS", "off", 1);
  EXPECT_EQ(Graphs(program, *gpu).Create({4}).message(),
            "BOA_CUDA_GRAPHS=off: it is `none`, or not set");
}

} // namespace
} // namespace boa::cuda_test
