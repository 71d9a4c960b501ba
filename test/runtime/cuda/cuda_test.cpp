//===- cuda_test.cpp - The CUDA device, on a fake of the driver -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a small program leaves in its storages is compared, bit for bit, with what it
// leaves on the CPU with two memories, whatever the fake's timing is.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/cuda/fixture.h"

#include <cstring>

namespace boa::cuda_test {
namespace {

//===----------------------------------------------------------------------===//
// What it computes
//===----------------------------------------------------------------------===//

TEST_F(CudaTest, TrainsAsTheCpuDoes) {
  ASSERT_TRUE(Make("split").ok());
  absl::Status status = Train();
  ASSERT_TRUE(status.ok()) << status;
  const auto expected = All();
  const auto moved = engine->TakeCounters().moved;
  int64_t waits = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    Fake(absl::StrCat("seed=", seed, " delay_us=", seed % 4 * 100,
                      " fail=cuStreamWaitEvent:1000000000"));
    status = Make();
    ASSERT_TRUE(status.ok()) << status;
    status = Train();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(All(), expected) << seed;
    const Counters counters = engine->TakeCounters();
    EXPECT_EQ(counters.moved.to_device, moved.to_device);
    EXPECT_EQ(counters.moved.to_host, moved.to_host);
    EXPECT_GT(counters.compute_seconds, 0);
    waits += boa_fake_cuda_calls("cuStreamWaitEvent");
  }
  // Kernels are given to the GPU before the copies that they need are over, unless those are quick.
  EXPECT_GT(waits, 0);
}

TEST_F(CudaTest, MemoryIsZeroAtFirst) {
  ASSERT_TRUE(Make().ok());
  for (int32_t storage : {kHome, kWeights})
    EXPECT_EQ(Read(storage, 2), std::vector<float>(kElements, 0));
}

TEST_F(CudaTest, ACommitHasWhatTheDeviceHas) {
  ASSERT_TRUE(Make().ok());
  ASSERT_TRUE(Train().ok());
  const auto expected = All();
  ASSERT_TRUE(engine->Commit({3, 0, {}}).ok());
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(All(), expected);
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// Kernels on the home of an entry, one after another.
void Launches(boa_context *c, int count) {
  boa_buffer of[] = {boa_rt_prefetch(c, kWeights, 0, 0, 2, BOA_DEVICE, 0),
                     boa_rt_prefetch(c, kHome, 0, 0, 2, BOA_DEVICE, 0),
                     boa_rt_create(c, kGradient, 0, 0, 2, BOA_DEVICE),
                     boa_rt_prefetch(c, kHome, 1, 0, 2, BOA_DEVICE, 0)};
  for (int i = 0; i < count; ++i)
    boa_rt_launch(c, kTrain, 4, of);
  for (boa_buffer buffer : of)
    boa_rt_release(c, buffer, 0);
}

// How long kernels took is told by the GPU, however late the host wakes: none of them is shorter
// than it was, nor all of them longer than the time that they had.
TEST_F(CudaTest, LateWaitsShortenNothing) {
  constexpr int kCount = 100;
  Fake("wake_us=400");
  EngineOptions options;
  options.trace = true;
  ASSERT_TRUE(Make(MakeProgram("cuda"), kKernels, options).ok());
  slowness = std::chrono::microseconds(500);
  body = [](boa_context *context, int64_t) { Launches(context, kCount); };
  const int64_t begin = engine->Now();
  absl::Status status = engine->Run(Drive, 1, 0);
  const int64_t end = engine->Now();
  slowness = std::chrono::microseconds(0);
  ASSERT_TRUE(status.ok()) << status;
  int kernels = 0;
  int64_t sum = 0;
  for (const TraceEvent &event : engine->TakeTrace())
    if (event.row == TraceEvent::Row::compute) {
      ++kernels;
      sum += event.end_ns - event.begin_ns;
      EXPECT_GE(event.end_ns - event.begin_ns, 499000);
      EXPECT_LE(event.end_ns, end);
    }
  EXPECT_EQ(kernels, kCount);
  EXPECT_LE(sum, end - begin);
  EXPECT_NEAR(engine->TakeCounters().compute_seconds, double(sum) * 1e-9, 1e-6);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

float Narrow(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// Values of a type in a quarter of an entry.
void Put(char *to, int32_t type, const std::vector<float> &values) {
  for (float value : values) {
    const size_t size = type == 0 ? 4 : 2;
    std::memcpy(to, reinterpret_cast<const char *>(&value) + 4 - size, size);
    to += size;
  }
}
std::vector<float> Get(const char *from, int32_t type, int64_t count) {
  std::vector<float> values(count);
  for (float &value : values) {
    const size_t size = type == 0 ? 4 : 2;
    std::memcpy(reinterpret_cast<char *>(&value) + 4 - size, from, size);
    from += size;
  }
  return values;
}

// Whole numbers, of which all sums are exact.
TEST_F(CudaTest, ProductsAreRowMajor) {
  for (int variant = 0; variant < 96; ++variant) {
    const int types = variant / 16 % 3;
    Program with = MakeProgram("cuda");
    use_scratch = variant % 16 == 15;
    with.kernels.push_back(
        {"multiply", {{true, true}}, use_scratch ? BOA_CUDA_LIBRARY_WORKSPACE : 0});
    wanted = {bool(variant & 1), bool(variant & 2), bool(variant & 4), bool(variant & 8),
              types > 0,         types > 1,         variant >= 48};
    if (wanted.apart && !wanted.accumulate)
      continue;
    absl::Status status = Make(with);
    ASSERT_TRUE(status.ok()) << status;
    std::minstd_rand random(variant + 1);
    auto whole = [&](int64_t count) {
      std::vector<float> values(count);
      for (float &value : values)
        value = float(random() % 5) - 2;
      return values;
    };
    const std::vector<float> a = whole(kM * kK), b = whole(kK * kN), c = whole(kM * kN),
                             bias = whole(kN);
    std::vector<float> entry(kElements);
    auto quarter = [&](int64_t i) {
      return reinterpret_cast<char *>(entry.data()) + i * kQuarter + kBeyond;
    };
    Put(quarter(0), wanted.type_ab, a);
    Put(quarter(1), wanted.type_ab, b);
    Put(wanted.apart ? quarter(3) + kApart : quarter(2), wanted.type_c, c);
    Put(quarter(3), wanted.type_c, bias);
    ASSERT_TRUE(Write(kHome, 0, entry).ok());
    body = [](boa_context *context, int64_t) {
      boa_buffer buffer = boa_rt_prefetch(context, kHome, 0, 0, 2, BOA_DEVICE, 0);
      boa_rt_launch(context, kMultiply, 1, &buffer);
      boa_rt_release(context, buffer, 0);
    };
    status = engine->Run(Drive, 1, 0);
    ASSERT_TRUE(status.ok()) << status;
    entry = Read(kHome, 0);
    std::vector<float> expected(kM * kN);
    for (int64_t i = 0; i < kM; ++i)
      for (int64_t j = 0; j < kN; ++j) {
        float sum = (wanted.accumulate ? c[i * kN + j] : 0) + (wanted.bias ? bias[j] : 0);
        for (int64_t l = 0; l < kK; ++l)
          sum += a[wanted.transpose_a ? l * kM + i : i * kK + l] *
                 b[wanted.transpose_b ? j * kK + l : l * kN + j];
        expected[i * kN + j] = Narrow(sum);
      }
    EXPECT_EQ(Get(quarter(2), wanted.type_c, kM * kN), expected) << variant;
    if (wanted.apart)
      EXPECT_EQ(Get(quarter(3) + kApart, wanted.type_c, kM * kN), c) << "is only read";
  }
}

// A program takes the library's first proposal, or the fastest where it is told to measure. A
// commit records the choice, and a trainer that resumes repeats it, so sums have the same bits.
// With another library it chooses anew.
TEST_F(CudaTest, AlgorithmsMayBeMeasured) {
  struct Restore {
    ~Restore() {
      unsetenv("BOA_CUDA_PRODUCTS");
      wanted = {};
    }
  } restore;
  wanted = {};
  wanted.type_ab = wanted.type_c = 0;
  use_scratch = false;
  Program with = MakeProgram("cuda");
  with.kernels.push_back({"multiply", {{true, true}}});
  auto algorithms = [&] {
    const auto now = engine->Environment();
    auto found = now.find("algorithms");
    return found == now.end() ? "" : found->second;
  };
  body = [](boa_context *context, int64_t) {
    boa_buffer buffer = boa_rt_prefetch(context, kHome, 0, 0, 2, BOA_DEVICE, 0);
    boa_rt_launch(context, kMultiply, 1, &buffer);
    boa_rt_release(context, buffer, 0);
  };
  auto multiply = [&] {
    EXPECT_TRUE(Write(kHome, 0, Random(7)).ok());
    absl::Status status = engine->Run(Drive, 1, 0);
    EXPECT_TRUE(status.ok()) << status;
    return Read(kHome, 0);
  };

  Fake("algorithm_us=2000,x,0,2000");
  ASSERT_TRUE(Make(with).ok());
  EXPECT_EQ(algorithms(), "");
  const std::vector<float> first = multiply();

  setenv("BOA_CUDA_PRODUCTS", "best", 1);
  EXPECT_EQ(std::string(Make(with).message()),
            "BOA_CUDA_PRODUCTS=best: it is `measured`, or not set");
  setenv("BOA_CUDA_PRODUCTS", "measured", 1);
  ASSERT_TRUE(Make(with).ok());
  const std::string measured = algorithms();
  EXPECT_THAT(measured, testing::MatchesRegex("2 of products [0-9a-f]{16}"));
  const std::vector<float> fastest = multiply();
  EXPECT_NE(fastest, first);
  for (int32_t storage = 0; storage <= kGradient; ++storage)
    for (int64_t entry = 0; entry < 3; ++entry)
      ASSERT_TRUE(Write(storage, entry, Random(1)).ok());
  CommitRecord record;
  record.step = 1;
  record.environment = engine->Environment();
  absl::Status status = engine->Commit(record);
  ASSERT_TRUE(status.ok()) << status;

  for (bool wished : {true, false}) {
    if (!wished)
      unsetenv("BOA_CUDA_PRODUCTS");
    Fake("algorithm_us=0,x,2000,1000");
    status = Reopen(with, kKernels);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(algorithms(), measured);
    EXPECT_EQ(multiply(), fastest);
  }
  // Fewer algorithms than were recorded, other products, another driver.
  Fake("algorithm_us=0");
  ASSERT_TRUE(Reopen(with, kKernels).ok());
  EXPECT_EQ(algorithms(), "");
  Fake("algorithm_us=0,0,0 driver=13010");
  ASSERT_TRUE(Reopen(with, kKernels).ok());
  EXPECT_EQ(algorithms(), "");
  Fake("algorithm_us=0,0,0");
  wanted.bias = true;
  ASSERT_TRUE(Reopen(with, kKernels).ok());
  EXPECT_EQ(algorithms(), "");
}

// An algorithm that fails when it is measured is not chosen, unless it is the first.
TEST_F(CudaTest, MeasuringMayFail) {
  struct Restore {
    ~Restore() { unsetenv("BOA_CUDA_PRODUCTS"); }
  } restore;
  setenv("BOA_CUDA_PRODUCTS", "measured", 1);
  wanted = {};
  use_scratch = false;
  Program with = MakeProgram("cuda");
  with.kernels.push_back({"multiply", {{true, true}}});
  Fake("algorithm_us=2000,0 fail=cublasLtMatmul:1");
  EXPECT_THAT(std::string(Make(with).message()),
              StartsWith("product of 24 x 16 and 16 x 40, f32 to f32: cublasLtMatmul: "));
  // The first one runs twice.
  Fake("algorithm_us=2000,0 fail=cublasLtMatmul:3");
  ASSERT_TRUE(Make(with).ok());
  EXPECT_THAT(engine->Environment()["algorithms"], StartsWith("0 of products "));
  for (const char *function : {"cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime"}) {
    Fake(absl::StrCat("fail=", function, ":1000000000"));
    ASSERT_TRUE(Make(with).ok());
    const int64_t calls = boa_fake_cuda_calls(function);
    for (int64_t call = 1; call <= calls; ++call) {
      SCOPED_TRACE(absl::StrCat("call ", call, " of ", function));
      Fake(absl::StrCat("fail=", function, ":", call));
      EXPECT_THAT(std::string(Make(with).message()), HasSubstr(function));
    }
  }
}

} // namespace
} // namespace boa::cuda_test
