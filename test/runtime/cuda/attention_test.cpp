//===- attention_test.cpp - Attention that the device offers to cuDNN -----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What cuDNN computes is dnn_test.cpp's. Here: what the device finds out before the first step,
// and what runs then.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/cuda/fixture.h"

#include <cmath>

namespace boa::cuda_test {
namespace {

constexpr int64_t kTime = 16, kHeads = 2, kColumns = 8, kWidth = kHeads * kColumns;
constexpr int64_t kY = 4096, kLse = 8192; // in the entry, bytes

/// What the program has of its own: it marks that it ran.
void EmulatedOwn(boa_emulated_thread *, void *const *args) {
  **static_cast<float *const *>(args[0]) = 42;
}

/// Attention of zeros, or the program's own, which wants more shared memory than is granted
/// unasked.
void Attend(void *const *buffers, void *workspace, boa_queue *queue) {
  char *const at = static_cast<char *>(buffers[0]);
  if (boa_cuda_attention(queue, 1, 1, kTime, kHeads, kHeads, kColumns, at, kWidth, at, kWidth, at,
                         kWidth, at + kY, kWidth, reinterpret_cast<float *>(at + kLse), workspace,
                         BOA_CUDA_ATTENTION_SCRATCH))
    return;
  boa_cuda_launch(queue, 0, 1, 1, 1, 1, 1, 1, 64 << 10, 1, buffers);
}

const boa_kernel kAttend[] = {Attend};
const boa_emulated_function kOwn[] = {{"own", EmulatedOwn, 0, 1}};
const boa_emulated_module kOwnModule = {BOA_EMULATED_MAGIC, 1, kOwn};
const char *const kOwnNames[] = {"own"};
const boa_device_image kOwnImage = {&kOwnModule, sizeof(kOwnModule), kOwnNames, 1};

class AttentionTest : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    setenv("BOA_CUDA_DNN", BOA_FAKE_DNN, 1);
  }
  void TearDown() override {
    CudaTest::TearDown();
    unsetenv("BOA_CUDA_DNN");
  }
  /// What became of an entry of zeros.
  std::vector<float> Run() {
    Program with = MakeProgram("cuda");
    with.kernels = {{"attend", {{true, true}}, BOA_CUDA_ATTENTION_SCRATCH}};
    absl::Status status = Make(with, Kernels(kAttend, &kOwnImage, &kReferenceAdamW));
    if (status.ok())
      status = Write(kHome, 0, std::vector<float>(kElements));
    body = [](boa_context *context, int64_t) {
      boa_buffer buffer = boa_rt_prefetch(context, kHome, 0, 0, 2, BOA_DEVICE, 0);
      boa_rt_launch(context, 0, 1, &buffer);
      boa_rt_release(context, buffer, 0);
    };
    if (status.ok())
      status = engine->Run(Drive, 1, 0);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? Read(kHome, 0) : std::vector<float>(kElements);
  }
};

TEST_F(AttentionTest, IsCudnns) {
  const std::vector<float> entry = Run();
  EXPECT_EQ(entry[0], 0);
  EXPECT_FLOAT_EQ(entry[kLse / 4 + 3], std::log(4.0f)); // of four scores that are 0
  EXPECT_THAT(engine->DescribeIo(), testing::EndsWith(", attention by cuDNN 9.19.0"));
  EXPECT_THAT(engine->Environment(),
              testing::ElementsAre(testing::Pair("attention", "by cuDNN 9.19.0"),
                                   testing::Pair("driver", HasSubstr("for CUDA 13.0")),
                                   testing::Pair("gpu", testing::StartsWith("Fake GPU 0"))));
}

// What fails when it is tried is the program's own, whose launches are planned then.
TEST_F(AttentionTest, WhatFailsWhenItIsTriedIsTheProgramsOwn) {
  Fake("fail=cudnnBackendExecute:1");
  const std::vector<float> entry = Run();
  EXPECT_EQ(entry[0], 42);
  EXPECT_EQ(entry[kLse / 4 + 3], 0);
  EXPECT_THAT(engine->DescribeIo(),
              testing::EndsWith(", attention by the program's own kernels (attention of 1 x 16, 2 "
                                "heads of 8 columns: cudnnBackendExecute: "
                                "CUDNN_STATUS_INTERNAL_ERROR (an error that was asked for))"));
}

// What ends the GPU's context ends the start.
TEST_F(AttentionTest, WhatTheGpuFailsAtIsAnError) {
  Fake("late=cudnnBackendExecute:1");
  Program with = MakeProgram("cuda");
  with.kernels = {{"attend", {{true, true}}, BOA_CUDA_ATTENTION_SCRATCH}};
  EXPECT_THAT(std::string(Make(with, Kernels(kAttend, &kOwnImage, &kReferenceAdamW)).message()),
              HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
}

// Where the host waits for each call, an error has the name of the call that failed.
TEST_F(AttentionTest, SynchronousCallsHaveTheirOwnErrors) {
  setenv("BOA_CUDA_SYNC", "1", 1);
  Fake("late=cudnnBackendExecute:2");
  Program with = MakeProgram("cuda");
  with.kernels = {{"attend", {{true, true}}, BOA_CUDA_ATTENTION_SCRATCH}};
  absl::Status status = Make(with, Kernels(kAttend, &kOwnImage, &kReferenceAdamW));
  unsetenv("BOA_CUDA_SYNC");
  ASSERT_TRUE(status.ok()) << status;
  body = [](boa_context *context, int64_t) {
    boa_buffer buffer = boa_rt_prefetch(context, kHome, 0, 0, 2, BOA_DEVICE, 0);
    boa_rt_launch(context, 0, 1, &buffer);
    boa_rt_release(context, buffer, 0);
  };
  EXPECT_THAT(std::string(engine->Run(Drive, 1, 0).message()),
              HasSubstr("attention of 1 x 16, 2 heads of 8 columns: cuStreamSynchronize: "
                        "CUDA_ERROR_LAUNCH_FAILED"));
}

} // namespace
} // namespace boa::cuda_test
