//===- graphs_test.cpp - Tests of captures and graphs -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/emulated.h"
#include "test/fake_cuda/fixture.h"

#include <functional>
#include <memory>
#include <thread>
#include <utility>

namespace boa::fake {
namespace {

using testing::HasSubstr;

constexpr int kCount = 64;

void Increment(boa_emulated_thread *thread, void *const *args) {
  ++(*static_cast<float *const *>(args[0]))[thread->thread[0]];
}

const boa_emulated_function kFunctions[] = {{"increment", Increment, 0, 1}};
const boa_emulated_module kModule = {BOA_EMULATED_MAGIC, 1, kFunctions};

class FakeGraphTest : public FakeCudaTest {
protected:
  void Begin(const std::string &settings) {
    session = std::make_unique<Session>(settings);
    EXPECT_EQ(cuModuleLoadDataEx(&module, &kModule, 0, nullptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&increment, module, "increment"), CUDA_SUCCESS);
    stream = NewStream();
    recording = NewStream();
    memory = NewMemory<float>(kCount);
    Upload(memory, std::vector<float>(kCount, 1), stream);
    EXPECT_EQ(Launch(stream), CUDA_SUCCESS); // what was never on the device is loaded then
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  }
  void End(CUresult error = CUDA_SUCCESS) {
    EXPECT_EQ(cuStreamSynchronize(stream), error);
    if (memory)
      EXPECT_EQ(cuMemFree_v2(memory), error);
    EXPECT_EQ(cuStreamDestroy_v2(stream), error);
    EXPECT_EQ(cuStreamDestroy_v2(recording), error);
    EXPECT_EQ(cuModuleUnload(module), error);
    session = nullptr;
  }
  CUresult Launch(CUstream on) {
    void *arguments[] = {&memory};
    return cuLaunchKernel(increment, 1, 1, 1, kCount, 1, 1, 0, on, arguments, nullptr);
  }
  /// Of `body`, captured on a stream of its own.
  CUresult Capture(const std::function<void()> &body, CUgraphExec &exec,
                   int mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamBeginCapture_v2(recording, mode), CUDA_SUCCESS);
    body();
    CUresult error = cuStreamEndCapture(recording, &graph);
    EXPECT_EQ(graph == nullptr, error != CUDA_SUCCESS);
    if (error)
      return error;
    error = cuGraphInstantiateWithFlags(&exec, graph, 0);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    return error;
  }
  void TwoLaunches() {
    EXPECT_EQ(Launch(recording), CUDA_SUCCESS);
    EXPECT_EQ(Launch(recording), CUDA_SUCCESS);
  }

  std::unique_ptr<Session> session;
  CUmodule module = nullptr;
  CUfunction increment = nullptr;
  CUstream stream = nullptr, recording = nullptr;
  CUdeviceptr memory = 0;
};

// What is captured does not run; what is launched runs as often, in its turn.
TEST_F(FakeGraphTest, RunsWhenItIsLaunched) {
  for (int seed = 1; seed <= 10; ++seed) {
    Begin("delay_us=100 seed=" + std::to_string(seed));
    CUgraphExec exec = nullptr;
    EXPECT_EQ(Capture([&] { TwoLaunches(); }, exec), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphUpload(exec, stream), CUDA_SUCCESS);
    EXPECT_EQ(Download<float>(memory, kCount, stream), std::vector<float>(kCount, 2));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
      EXPECT_EQ(Launch(stream), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS); // it runs nevertheless
    EXPECT_EQ(Download<float>(memory, kCount, stream), std::vector<float>(kCount, 11));
    End();
  }
}

// What could not be in a graph, or allocates, or waits, is an error and ends the capture, of which
// nothing has run.
TEST_F(FakeGraphTest, WhatIsForbiddenEndsACapture) {
  Begin("");
  CUevent event = NewEvent(), recorded = NewEvent();
  EXPECT_EQ(cuEventRecord(recorded, stream), CUDA_SUCCESS);
  float pageable = 0;
  CUdeviceptr none = 0;
  const std::pair<const char *, std::function<CUresult()>> calls[] = {
      {"its stream is waited for", [&] { return cuStreamSynchronize(recording); }},
      {"its stream is asked", [&] { return cuStreamQuery(recording); }},
      {"another is waited for", [&] { return cuStreamSynchronize(stream); }},
      {"the device is waited for", [&] { return cuCtxSynchronize(); }},
      {"an event is waited for", [&] { return cuEventSynchronize(recorded); }},
      {"memory is allocated", [&] { return cuMemAlloc_v2(&none, 16); }},
      {"memory is freed", [&] { return cuMemFree_v2(memory); }},
      {"an event is recorded", [&] { return cuEventRecord(event, recording); }},
      {"an event outside is waited for", [&] { return cuStreamWaitEvent(recording, recorded, 0); }},
      {"pageable memory is copied",
       [&] { return cuMemcpyHtoDAsync_v2(memory, &pageable, 4, recording); }},
  };
  for (const auto &forbidden : calls) {
    SCOPED_TRACE(forbidden.first);
    CUgraphExec exec = nullptr;
    EXPECT_EQ(Capture(
                  [&] {
                    TwoLaunches();
                    EXPECT_EQ(forbidden.second(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
                    EXPECT_EQ(Launch(recording), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
                  },
                  exec),
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  EXPECT_EQ(Launch(recording), CUDA_SUCCESS); // the stream is as before
  EXPECT_EQ(Download<float>(memory, kCount, recording), std::vector<float>(kCount, 3));
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy_v2(recorded), CUDA_SUCCESS);
  End();
}

// What another thread does matters to a capture of all threads alone.
TEST_F(FakeGraphTest, OtherThreadsMayWait) {
  Begin("");
  for (int mode : {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_GLOBAL}) {
    const bool global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    CUgraphExec exec = nullptr;
    auto body = [&] {
      std::thread([&] {
        EXPECT_EQ(cuCtxSetCurrent(session->context), CUDA_SUCCESS);
        EXPECT_EQ(cuStreamSynchronize(stream),
                  global ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
      }).join();
    };
    EXPECT_EQ(Capture(body, exec, mode),
              global ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
    if (!global)
      EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  }
  End();
}

TEST_F(FakeGraphTest, CapturesAreInPairs) {
  Begin("");
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(recording, &graph), CUDA_ERROR_ILLEGAL_STATE);
  const int mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  EXPECT_EQ(cuStreamBeginCapture_v2(recording, mode), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamBeginCapture_v2(recording, mode), CUDA_ERROR_ILLEGAL_STATE);
  std::thread([&] {
    EXPECT_EQ(cuCtxSetCurrent(session->context), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamEndCapture(recording, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }).join();
  EXPECT_EQ(cuStreamEndCapture(recording, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  End();
}

// A function that nobody asked after or launched would be put on the device meanwhile.
TEST_F(FakeGraphTest, NothingIsLoadedWhileAStreamCaptures) {
  Begin("");
  CUfunction fresh = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&fresh, module, "increment"), CUDA_SUCCESS);
  std::swap(increment, fresh);
  CUgraphExec exec = nullptr;
  EXPECT_EQ(
      Capture([&] { EXPECT_EQ(Launch(recording), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); }, exec),
      CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  End();
}

// A graph knows addresses: what was there must be there when it runs.
TEST_F(FakeGraphTest, MemoryOfAGraphStays) {
  Begin("");
  CUgraphExec exec = nullptr;
  EXPECT_EQ(Capture([&] { TwoLaunches(); }, exec), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(std::exchange(memory, 0)), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Reports(), HasSubstr("argument 0: freed while it waited in its stream"));
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_ERROR_ILLEGAL_ADDRESS);
  End(CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(FakeGraphTest, WhatIsLeftIsSaid) {
  Begin("");
  CUgraphExec exec = nullptr;
  EXPECT_EQ(Capture([&] { TwoLaunches(); }, exec), CUDA_SUCCESS);
  End();
  EXPECT_EQ(Reports(), "left when the context was released: 1 of cuGraphInstantiateWithFlags\n");
}

} // namespace
} // namespace boa::fake
