//===- dnn_plan_test.cpp - What cuDNN itself says of our graphs -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where there is a cuDNN (9.8 or newer), and no GPU is needed: it plans for a device that is
// described to it, down to the code of its kernels. The driver that it would load them with
// is no_gpu.cpp. So what it takes, for which devices and with how much workspace, is its
// own word.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/cuda_calls.h"
#include "runtime/device/cuda/dnn_graph.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <dlfcn.h>

namespace boa::cuda {
namespace {

/// As much of a device as cuDNN wants to know; 90 is sm_90.
std::string FormatDevice(int capability) {
  const int shared = capability == 80 ? 166912 : capability / 10 == 12 ? 101376 : 232448;
  return absl::StrCat(
      R"({"deviceName":"described","cudaDeviceId":0,"deviceVer":)", capability * 10,
      R"(,"driverVer":13000,"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)",
      R"("regsPerBlock":65536,"multiProcessorCount":132,"smClockRateKHz":1980000,)",
      R"("memClockRateKHz":3201000,"l2CacheSize":52428800,"warpSize":32,)",
      R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":)", shared,
      R"(,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)",
      R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)",
      R"("supportCoopLaunch":1,"totalGlobalMem":85899345920,"memoryBusWidth":5120})");
}

/// Slices of one product, as kernels have them.
AttentionShape MakeShape(bool gradient, bool causal, int64_t batch, int64_t time, int64_t heads,
                         int64_t kv_heads, int64_t columns) {
  const int64_t slices = (heads + 2 * kv_heads) * columns, rows = heads * columns;
  AttentionShape shape = {gradient, causal, batch, time, heads, kv_heads, columns, 0,
                          0,        0,      0,     0,    0,     0,        0};
  shape.q = shape.k = shape.v = slices;
  shape.y = rows;
  if (gradient) {
    shape.dy = rows;
    shape.dq = shape.dk = shape.dv = slices;
  }
  return shape;
}

class DnnPlanTest : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
    ASSERT_TRUE(dlopen(BOA_NO_GPU, RTLD_NOW | RTLD_GLOBAL)) << dlerror();
    setenv("BOA_CUDA_DNN", BOA_DNN, 1);
    auto opened = DnnApi::Open();
    ASSERT_TRUE(opened.ok()) << opened.status();
    api = *std::move(opened);
    constexpr int kDescribes = 90800;
    if (api->version < kDescribes)
      GTEST_SKIP() << api->Describe() << " plans for no device but its own";
    device = std::make_unique<DnnDescriptors>(*api);
    target.properties = device->Create(dnn_descriptor::kDevice);
    const std::string json = FormatDevice(GetParam());
    device->SetAll(target.properties, dnn_attribute::kDeviceJson, dnn_type::kChar,
                   int64_t(json.size()), json.data());
    device->Finalize(target.properties);
    ASSERT_TRUE(device->status.ok()) << device->status;
  }
  /// -1: not planned.
  int64_t Workspace(const AttentionShape &shape) {
    auto plan = PlanAttention(*api, target, shape);
    return plan.ok() ? (*plan)->workspace_bytes : -1;
  }

  std::unique_ptr<DnnApi> api;
  std::unique_ptr<DnnDescriptors> device;
  DnnTarget target;
};

TEST_P(DnnPlanTest, TakesWhatTransformersHave) {
  struct {
    bool causal;
    int64_t batch, time, heads, kv_heads, columns;
  } const shapes[] = {
      {true, 2, 1024, 12, 12, 64}, // GPT-2's
      {true, 1, 2048, 8, 2, 128},  // Llama's
      {false, 2, 100, 4, 4, 40},
  };
  for (const auto &s : shapes) {
    auto make = [&](bool gradient) {
      return MakeShape(gradient, s.causal, s.batch, s.time, s.heads, s.kv_heads, s.columns);
    };
    SCOPED_TRACE(absl::StrCat(s.batch, " x ", s.time, ", ", s.heads, " of ", s.columns));
    const int64_t forward = Workspace(make(false)), gradient = Workspace(make(true));
    EXPECT_GE(forward, 0);
    EXPECT_LE(forward, BOA_CUDA_ATTENTION_SCRATCH);
    ASSERT_GE(gradient, 0);
    // What a program has for it (passes/target/cuda/OfferAttention.cpp).
    EXPECT_LE(gradient,
              boa_cuda_attention_grad_scratch(s.batch, s.time, s.heads, s.kv_heads, s.columns));
    // One order of sums: gradients of scores are kept.
    EXPECT_GE(gradient, s.batch * s.heads * s.time * s.time * 2);
  }
}

TEST_P(DnnPlanTest, RefusesWhatItHasNoKernelsFor) {
  EXPECT_EQ(Workspace(MakeShape(false, true, 2, 128, 4, 4, 20)), -1);
  EXPECT_EQ(Workspace(MakeShape(true, true, 2, 128, 4, 4, 20)), -1);
}

INSTANTIATE_TEST_SUITE_P(Devices, DnnPlanTest, testing::Values(80, 90, 100),
                         [](const auto &info) { return absl::StrCat("sm_", info.param); });

} // namespace
} // namespace boa::cuda
