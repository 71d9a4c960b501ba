//===- updates_test.cpp - The optimizer on the CUDA device ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fake runs the host's own loops as the image's functions: what is tested here is who
// is launched with what and when, and what becomes of it. That the compiled functions make
// the host's bits is test/driver/cuda-update.test.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/cuda_updates.h"
#include "runtime/kernels/norm.h"
#include "test/runtime/cuda/fixture.h"

#include "absl/strings/match.h"

#include <limits>

namespace boa::cuda_test {
namespace {

int64_t NumberOf(const boa_emulated_thread *thread) {
  return thread->block[0] * thread->block_dim[0] + thread->thread[0];
}
template <typename T> T *At(void *const *args, int i) { return *static_cast<T *const *>(args[i]); }

void EmulatedUpdate(boa_emulated_thread *thread, void *const *args) {
  using namespace boa::cuda;
  const float *c = At<const float>(args, 0);
  const int64_t first = NumberOf(thread) * kUpdateElements;
  for (int64_t i = first; i < first + kUpdateElements; ++i)
    if (!UpdateReference(At<float>(args, 2)[i], At<const float>(args, 5)[i] * c[kGradientScale],
                         At<float>(args, 3)[i], At<float>(args, 4)[i], c + kUpdateScalars, c[kRate],
                         kDecay))
      *At<int32_t>(args, 1) = 1;
}

/// Of one parameter in one block.
void EmulatedNorm(boa_emulated_thread *thread, void *const *args) {
  static_assert(kElements <= kSumBlock);
  if (NumberOf(thread) == 0)
    *At<double>(args, 1) = SumOfSquares(At<const float>(args, 0), kElements);
}

const boa_emulated_function kWithUpdates[] = {{"element", EmulatedElement, 0, 4},
                                              {"update_block", EmulatedUpdate, 0, 6},
                                              {"norm_block", EmulatedNorm, 0, 2}};
const boa_emulated_module kUpdatesModule = {BOA_EMULATED_MAGIC, 3, kWithUpdates};
const char *const kUpdatesNames[] = {"element", "update_block", "norm_block"};
const boa_device_image kUpdatesImage = {&kUpdatesModule, sizeof(kUpdatesModule), kUpdatesNames, 3};

class UpdatesTest : public CudaTest {
protected:
  absl::Status MakeWith(const char *device, int32_t space,
                        const std::function<void(Program &)> &change = {}) {
    Program with = MakeProgram(device);
    with.plan.update = space == BOA_DEVICE ? UpdatePlace::device : UpdatePlace::host;
    if (change)
      change(with);
    return Make(with, Kernels(kTable, &kUpdatesImage, &kReferenceAdamW));
  }
  /// With data, and so a gradient, of the second layer that is not finite.
  absl::Status TrainInfinite() {
    return Train([&](int64_t step) {
      std::vector<float> values = Random(0);
      values[77] = std::numeric_limits<float>::infinity();
      return step == 0 ? Write(kData, 1, values) : absl::OkStatus();
    });
  }
};

// Gradients that live on the host are copied back for it, and state from SSD; those that
// live on the device stay there.
TEST_F(UpdatesTest, TheOptimizerOnTheDeviceMakesTheHostsBits) {
  for (Home::Tier gradients : {Home::host, Home::device}) {
    auto place = [&](Program &program) {
      program.storages[kGradient].homes[0].homes = {{gradients, 2}};
      program.storages[kGradient].pools = {{BOA_DEVICE, 2, 2}, {BOA_HOST, 2, 2}};
    };
    ASSERT_TRUE(MakeWith("split", BOA_HOST, place).ok());
    absl::Status status = Train();
    ASSERT_TRUE(status.ok()) << status;
    const auto expected = All();
    ASSERT_TRUE(MakeWith("split", BOA_DEVICE, place).ok());
    status = Train();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(All(), expected);
    for (int seed = 1; seed <= 4; ++seed) {
      Fake(absl::StrCat("seed=", seed, " delay_us=", seed % 2 ? 300 : 0));
      status = MakeWith("cuda", BOA_DEVICE, place);
      ASSERT_TRUE(status.ok()) << status;
      status = Train();
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(All(), expected) << seed;
      const Counters counters = engine->TakeCounters();
      EXPECT_GT(counters.optimizer_seconds, 0);
      if (gradients == Home::device)
        EXPECT_EQ(counters.moved.to_host.count("gradient"), 0u);
    }
  }
}

// What is not finite is told as on the host: by the norm, and, where none is taken, by the
// update that met it.
TEST_F(UpdatesTest, WhatIsNotFiniteIsNamed) {
  for (double clip : {1.0, 0.0})
    for (const char *device : {"split", "cuda"}) {
      ASSERT_TRUE(
          MakeWith(device, BOA_DEVICE, [&](Program &program) { program.train.clip = clip; }).ok());
      const absl::Status status = TrainInfinite();
      EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
      EXPECT_THAT(std::string(status.message()),
                  StartsWith("the gradient of block.1.matrix is not finite in step 1: lower the"))
          << device << clip;
      engine.reset();
    }
}

// What is not finite is read before it is looked at, and before the memory for it goes, though the
// driver may copy later than it says, and a copy fail.
TEST_F(UpdatesTest, WhatIsNotFiniteIsWaitedFor) {
  auto train = [&](const std::string &settings) {
    Fake(settings);
    EXPECT_TRUE(
        MakeWith("cuda", BOA_DEVICE, [&](Program &program) { program.train.clip = 0; }).ok());
    return std::string(TrainInfinite().message());
  };
  for (int seed : {1, 2, 3})
    EXPECT_THAT(train(absl::StrCat("pageable=1 delay_us=500 seed=", seed)),
                StartsWith("the gradient of block.1.matrix is not finite in step 1: lower the"));
  // One of the four copies may fail, or the wait for them. How often the other threads copy and
  // wait depends on the time that they take: the call that is to fail is looked for.
  for (const char *function : {"cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"}) {
    auto failing = [&](int64_t call) {
      return train(absl::StrCat("pageable=1 delay_us=100 fail=", function, ":", call));
    };
    const std::string expected = absl::StrCat("reading what is not finite: ", function, ": CUDA_");
    bool found = false;
    for (int round = 0; round < 4 && !found; ++round) {
      failing(1000000000);
      for (int64_t call = boa_fake_cuda_calls(function) + 1; call >= 1 && !found; --call) {
        const std::string message = failing(call);
        found = absl::StrContains(message, expected);
        EXPECT_THAT(message, testing::AnyOf(HasSubstr("is not finite"), HasSubstr(function)));
      }
    }
    EXPECT_TRUE(found) << function;
  }
}

TEST_F(UpdatesTest, StepsAreLeftOut) {
  for (const char *device : {"split", "cuda"}) {
    ASSERT_TRUE(MakeWith(device, BOA_DEVICE, [](Program &program) {
                  program.train.nonfinite = Nonfinite::skip;
                }).ok());
    ASSERT_TRUE(TrainInfinite().ok());
    const std::map<int64_t, double> norms = engine->TakeNorms();
    EXPECT_EQ(norms.size(), 3u);
    for (auto [step, norm] : norms)
      EXPECT_FALSE(std::isfinite(norm)) << step;
    for (int64_t entry = 0; entry < 3; ++entry)
      EXPECT_EQ(Read(kWeights, entry), Random(kWeights * 3 + entry));
  }
}

TEST_F(UpdatesTest, AnImageWithoutItsFunctionsIsRefused) {
  Program with = MakeProgram("cuda");
  with.plan.update = UpdatePlace::device;
  EXPECT_EQ(std::string(Make(with).message()),
            "the program's optimizer runs on the device, but its image has no functions for group "
            "`block`: compile the program anew");
}

TEST_F(UpdatesTest, EachCallMayFail) {
  for (const char *function :
       {"cuMemAlloc_v2", "cuMemHostRegister_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
        "cuStreamSynchronize", "cuLaunchKernel", "cuEventRecord", "cuStreamCreate"}) {
    int failed = 0;
    for (int call : {1, 2, 3, 5, 8, 13, 21, 34}) {
      Fake(absl::StrCat("delay_us=20 fail=", function, ":", call));
      absl::Status status = MakeWith("cuda", BOA_DEVICE);
      if (status.ok())
        status = Train();
      if (status.ok()) { // only where it did not come to the call
        EXPECT_LT(boa_fake_cuda_calls(function), call) << function;
        continue;
      }
      ++failed;
      EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(function, ": CUDA_ERROR")))
          << call;
      engine.reset();
    }
    EXPECT_GT(failed, 0) << function;
  }
}

// An update that fails while it runs.
TEST_F(UpdatesTest, WhatRunsMayFail) {
  for (int call : {2, 7, 8, 12}) {
    Fake(absl::StrCat("delay_us=50 late=cuLaunchKernel:", call));
    ASSERT_TRUE(MakeWith("cuda", BOA_DEVICE).ok());
    EXPECT_THAT(std::string(Train().message()), HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
    engine.reset();
  }
}

} // namespace
} // namespace boa::cuda_test
