//===- failures_test.cpp - What goes wrong on the CUDA device -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function of the driver fails at its calls: what comes back is a status, and nothing
// is used after it was given back.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/cuda/fixture.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

namespace boa::cuda_test {
namespace {

/// Of so many calls those that fail in their turn: the first ones, some, the last.
std::vector<int64_t> Sample(int64_t calls) {
  constexpr int64_t kFirst = 5, kOthers = 5;
  std::vector<int64_t> sampled;
  for (int64_t call = 1; call <= std::min(calls, kFirst); ++call)
    sampled.push_back(call);
  for (int64_t i = 1; i <= kOthers && calls > kFirst; ++i)
    if (int64_t call = kFirst + (calls - kFirst) * i / kOthers; call > sampled.back())
      sampled.push_back(call);
  return sampled;
}

// Calls of each function fail in turn, all or ten from the first to the last: the run ends with a
// status that names it, nothing is used after it was given back, and the state holds its last
// commit, whole.
TEST_F(CudaTest, EachCallMayFail) {
  const char *const functions[] = {"cuInit",
                                   "cuDeviceGetCount",
                                   "cuDeviceGet",
                                   "cuDeviceGetName",
                                   "cuDeviceGetAttribute",
                                   "cuCtxSetCurrent",
                                   "cuDevicePrimaryCtxRetain",
                                   "cuCtxGetLimit",
                                   "cuMemGetInfo_v2",
                                   "cuMemAlloc_v2",
                                   "cuMemHostRegister_v2",
                                   "cuMemcpyHtoDAsync_v2",
                                   "cuMemcpyDtoHAsync_v2",
                                   "cuMemsetD8Async",
                                   "cuStreamCreate",
                                   "cuStreamSynchronize",
                                   "cuStreamWaitEvent",
                                   "cuEventCreate",
                                   "cuEventRecord",
                                   "cuEventSynchronize",
                                   "cuEventElapsedTime",
                                   "cuModuleLoadDataEx",
                                   "cuModuleGetFunction",
                                   "cuFuncGetAttribute",
                                   "cuFuncSetAttribute",
                                   "cuLaunchKernel"};
  shared_bytes = 64 << 10;
  // What each commit holds, and how often each function is called.
  std::map<int64_t, std::vector<std::vector<float>>> expected;
  std::map<std::string, int64_t> calls;
  std::string all;
  for (const char *function : functions)
    absl::StrAppend(&all, "fail=", function, ":1000000000 ");
  ASSERT_TRUE(Make("split").ok());
  ASSERT_TRUE(TrainAndCommit(&expected).ok());
  Fake(all);
  ASSERT_TRUE(Make().ok());
  ASSERT_TRUE(TrainAndCommit().ok());
  for (const char *function : functions)
    EXPECT_GT(calls[function] = boa_fake_cuda_calls(function), 0) << function;
  for (const char *function : functions)
    for (int64_t call : Sample(calls[function])) {
      SCOPED_TRACE(absl::StrCat("call ", call, " of ", calls[function], " of ", function));
      Fake(absl::StrCat("delay_us=20 fail=", function, ":", call));
      absl::Status status = Make();
      if (status.ok())
        status = TrainAndCommit();
      if (status.ok()) { // only where it did not come to the call, whose number may be the timing's
        EXPECT_LT(boa_fake_cuda_calls(function), call);
        continue;
      }
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(absl::StrCat(function, ": CUDA_ERROR_UNKNOWN")));
      ExpectLastCommit(expected, MakeProgram("split"));
    }
  shared_bytes = 0;
}

// So do those of cuBLASLt: before the first step where that is found out then.
TEST_F(CudaTest, ProductsMayFail) {
  wanted = {};
  use_scratch = false;
  Program with = MakeProgram("cuda");
  with.kernels.push_back({"multiply", {{true, true}}});
  Fake("fail=cublasLtCreate:1");
  EXPECT_THAT(std::string(Make(with).message()),
              StartsWith(BOA_FAKE_BLAS ": cublasLtCreate: CUBLAS_STATUS_"));
  Fake("fail=cublasLtMatmulAlgoGetHeuristic:1");
  EXPECT_THAT(std::string(Make(with).message()),
              StartsWith("product of 24 x 16 and 16 x 40, f32 to f32: "
                         "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_"));
  Fake("fail=cublasLtMatmul:1");
  EXPECT_THAT(
      std::string(Make(with).message()),
      StartsWith("product of 24 x 16 and 16 x 40, f32 to f32: cublasLtMatmul: CUBLAS_STATUS_"));
  Fake("fail=cublasLtMatmul:2");
  ASSERT_TRUE(Make(with).ok());
  body = [](boa_context *context, int64_t) {
    boa_buffer buffer = boa_rt_prefetch(context, kHome, 0, 0, 2, BOA_DEVICE, 0);
    for (int i = 0; i < 3; ++i)
      boa_rt_launch(context, kMultiply, 1, &buffer);
    boa_rt_release(context, buffer, 0);
  };
  EXPECT_THAT(std::string(engine->Run(Drive, 1, 0).message()),
              StartsWith("kernel multiply: product of 24 x 16 and 16 x 40, f32 to f32: "
                         "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED"));
}

// A product of which nothing was known before the first step ends the run: its algorithm would be
// looked for while the GPU waits.
TEST_F(CudaTest, ProductsArePlanned) {
  wanted = {};
  use_scratch = false;
  Program with = MakeProgram("cuda");
  with.kernels.push_back({"multiply", {{true, true}}});
  ASSERT_TRUE(Make(with).ok());
  wanted.accumulate = true;
  body = [](boa_context *context, int64_t) {
    boa_buffer buffer = boa_rt_prefetch(context, kHome, 0, 0, 2, BOA_DEVICE, 0);
    boa_rt_launch(context, kMultiply, 1, &buffer);
    boa_rt_release(context, buffer, 0);
  };
  EXPECT_EQ(
      std::string(engine->Run(Drive, 1, 0).message()),
      "kernel multiply: product of 24 x 16 and 16 x 40, f32 to f32: it was not planned before "
      "the first step, which is an error of the compiler; go on from the last commit");
  wanted = {};
}

// What is given back at the end may fail, too: it is the end, and no more.
TEST_F(CudaTest, GivingBackMayFail) {
  for (const char *function : {"cuMemFree_v2", "cuMemHostUnregister", "cuStreamDestroy_v2",
                               "cuEventDestroy_v2", "cuModuleUnload"}) {
    Fake(absl::StrCat("fail=", function, ":1"));
    ASSERT_TRUE(Make().ok());
    engine.reset();
    EXPECT_THAT(boa_fake_cuda_reports(), HasSubstr("left when the context was released"));
  }
}

// An engine that is dropped in the middle of a step gives nothing back that the GPU uses.
TEST_F(CudaTest, WhatIsUnderWayEndsFirst) {
  for (int wait_us : {0, 300, 2000}) {
    Fake("delay_us=500");
    ASSERT_TRUE(Make().ok());
    ASSERT_TRUE(Write(kData, 0, Random(1)).ok());
    body = [](boa_context *c, int64_t) {
      for (int i = 0; i < 10; ++i) {
        boa_buffer of[] = {boa_rt_prefetch(c, kWeights, 0, 0, 2, BOA_DEVICE, 0),
                           boa_rt_prefetch(c, kData, 0, 0, 2, BOA_DEVICE, 0),
                           boa_rt_create(c, kGradient, 0, 0, 2, BOA_DEVICE),
                           boa_rt_prefetch(c, kHome, 0, 0, 2, BOA_DEVICE, 0)};
        boa_rt_launch(c, kTrain, 4, of);
        boa_rt_offload(c, of[2], kGradient, 0, 0, 2);
        for (boa_buffer buffer : of)
          boa_rt_release(c, buffer, 0);
      }
    };
    engine->Enqueue(Drive, 1, 0);
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us));
    engine.reset();
  }
}

void TrainTwice(void *const *buffers, void *, boa_queue *queue) {
  for (int i = 0; i < 2; ++i)
    Train(buffers, nullptr, queue);
}

// A call of a kernel failed. What was enqueued of it runs on: the kernel is not over before that
// is.
TEST_F(CudaTest, WhatWasEnqueuedBeforeAnErrorEndsFirst) {
  const boa_kernel twice[] = {TrainTwice, Multiply};
  Fake("fail=cuLaunchKernel:2");
  ASSERT_TRUE(Make(MakeProgram("cuda"), Kernels(twice, &kImage, &kReferenceAdamW)).ok());
  body = [](boa_context *c, int64_t) {
    auto home = [&](int64_t entry) {
      return boa_rt_prefetch(c, kHome, entry, 0, 2, BOA_DEVICE, 0);
    };
    boa_buffer of[] = {home(0), home(1), home(2), boa_rt_create(c, kGradient, 0, 0, 2, BOA_DEVICE)};
    boa_rt_launch(c, kTrain, 4, of);
    for (boa_buffer buffer : of)
      boa_rt_release(c, buffer, 0);
  };
  elements_made = 0;
  slowness = std::chrono::milliseconds(50);
  absl::Status status = engine->Run(Drive, 1, 0);
  const int64_t made = elements_made;
  slowness = std::chrono::microseconds(0);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuLaunchKernel: CUDA_ERROR_UNKNOWN"));
  EXPECT_EQ(made, kElements);
}

// What runs fails later: whose turn it was is said, with what is kept.
TEST_F(CudaTest, WhatRunsMayFail) {
  std::map<int64_t, std::vector<std::vector<float>>> expected;
  ASSERT_TRUE(Make("split").ok());
  ASSERT_TRUE(TrainAndCommit(&expected).ok());
  for (int call : {1, 2, 7}) {
    Fake(absl::StrCat("delay_us=50 late=cuLaunchKernel:", call));
    ASSERT_TRUE(Make().ok());
    const absl::Status status = TrainAndCommit();
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure): a "
                          "kernel went wrong, which is an error of the compiler"));
    ExpectLastCommit(expected, MakeProgram("split"));
  }
  for (const char *function : {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"})
    for (int call : {1, 15, 25}) {
      Fake(absl::StrCat("delay_us=50 late=", function, ":", call, " error=214"));
      ASSERT_TRUE(Make().ok());
      const absl::Status status = TrainAndCommit();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
      ExpectLastCommit(expected, MakeProgram("split"));
    }
}

} // namespace
} // namespace boa::cuda_test
