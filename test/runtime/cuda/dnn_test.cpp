//===- dnn_test.cpp - Attention by cuDNN, on a fake of it -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fake computes what the graph says, op by op: what comes back is compared with
// attention in f64. What cuDNN does not do, or fails at before the first step, is left to
// the program.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/cuda_calls.h"
#include "runtime/device/cuda/queue.h"
#include "runtime/kernels/attention.h"
#include "test/fake_cuda/fake.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

namespace boa::cuda {
namespace {

using testing::HasSubstr;

float Widen(uint16_t high) {
  const uint32_t bits = uint32_t(high) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

uint16_t Narrow(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// q, k and v beside each other in one row, and dq, dk and dv in another.
struct Shape {
  bool causal;
  int64_t batch, time, heads, kv_heads, columns;

  int64_t Rows() const { return batch * time; }
  int64_t Width() const { return heads * columns; }
  int64_t KvWidth() const { return kv_heads * columns; }
  int64_t Stride() const { return Width() + 2 * KvWidth(); }
  int64_t Statistics() const { return batch * heads * time; }
};

class DnnTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("BOA_CUDA_DRIVER", BOA_FAKE_DRIVER, 1);
    setenv("BOA_CUDA_DNN", BOA_FAKE_DNN, 1);
    setenv("BOA_CUDA_BLAS", BOA_FAKE_BLAS, 1);
    Begin("");
  }
  void TearDown() override {
    End();
    EXPECT_STREQ(boa_fake_cuda_reports(), "");
  }
  void Begin(const std::string &settings) {
    End();
    setenv("BOA_FAKE_CUDA", settings.c_str(), 1);
    auto opened = Gpu::Open();
    ASSERT_TRUE(opened.ok()) << opened.status();
    gpu = *std::move(opened);
    queue = std::make_unique<boa_queue>();
    queue->gpu = gpu.get();
    queue->driver = &gpu->driver();
    Check(gpu->driver().StreamCreate.address(&queue->stream, kNonBlocking));
  }
  void End() {
    if (!gpu)
      return;
    gpu->driver().StreamSynchronize.address(queue->stream);
    for (Pointer address : allocated)
      Check(gpu->driver().MemFree.address(address));
    allocated.clear();
    queue->dnn = nullptr;
    Check(gpu->driver().StreamDestroy.address(queue->stream));
    gpu = nullptr;
  }
  static void Check(Result result) { EXPECT_EQ(result, kSuccess); }

  template <typename T> T *Put(const std::vector<T> &values) {
    Pointer address = 0;
    Check(gpu->driver().MemAlloc.address(&address, values.size() * sizeof(T)));
    allocated.push_back(address);
    Check(gpu->driver().MemcpyHtoDAsync.address(address, values.data(), values.size() * sizeof(T),
                                                queue->stream));
    return reinterpret_cast<T *>(address);
  }
  template <typename T> std::vector<T> Take(const T *from, int64_t count) {
    std::vector<T> values(count);
    Check(gpu->driver().MemcpyDtoHAsync.address(values.data(), reinterpret_cast<Pointer>(from),
                                                count * sizeof(T), queue->stream));
    Check(gpu->driver().StreamSynchronize.address(queue->stream));
    return values;
  }
  static std::vector<uint16_t> Random(int64_t count, uint32_t seed) {
    std::minstd_rand random(seed);
    std::vector<uint16_t> values(count);
    for (uint16_t &value : values)
      value = Narrow(float(int64_t(random() % 2001) - 1000) / 500);
    return values;
  }

  /// What is on the device.
  struct Operands {
    uint16_t *qkv, *y, *dy, *dqkv;
    float *lse, *delta;
    char *scratch;
  };
  Operands Make(const Shape &s, int64_t scratch_bytes) {
    return {
        Put(Random(s.Rows() * s.Stride(), 1)),        Put(Random(s.Rows() * s.Width(), 2)),
        Put(Random(s.Rows() * s.Width(), 3)),         Put(Random(s.Rows() * s.Stride(), 4)),
        Put(std::vector<float>(s.Statistics(), NAN)), Put(std::vector<float>(s.Statistics(), NAN)),
        Put(std::vector<char>(scratch_bytes))};
  }
  int32_t Forward(const Shape &s, const Operands &o, int64_t scratch_bytes) {
    return boa_cuda_attention(queue.get(), s.causal, s.batch, s.time, s.heads, s.kv_heads,
                              s.columns, o.qkv, s.Stride(), o.qkv + s.Width(), s.Stride(),
                              o.qkv + s.Width() + s.KvWidth(), s.Stride(), o.y, s.Width(), o.lse,
                              o.scratch, scratch_bytes);
  }
  int32_t Gradient(const Shape &s, const Operands &o, int64_t scratch_bytes) {
    return boa_cuda_attention_grad(
        queue.get(), s.causal, s.batch, s.time, s.heads, s.kv_heads, s.columns, o.qkv, s.Stride(),
        o.qkv + s.Width(), s.Stride(), o.qkv + s.Width() + s.KvWidth(), s.Stride(), o.y, s.Width(),
        o.lse, o.dy, s.Width(), o.dqkv, s.Stride(), o.dqkv + s.Width(), s.Stride(),
        o.dqkv + s.Width() + s.KvWidth(), s.Stride(), o.delta, o.scratch, scratch_bytes);
  }
  /// Both, planned and then enqueued. Whether cuDNN took both.
  bool Run(const Shape &s, const Operands &o, int64_t scratch_bytes) {
    for (bool plans : {true, false}) {
      queue->plans = plans;
      const int32_t forward = Forward(s, o, scratch_bytes);
      const int32_t gradient = Gradient(s, o, scratch_bytes);
      EXPECT_TRUE(queue->status.ok()) << queue->status;
      if (!forward || !gradient)
        return false;
    }
    return true;
  }
  std::string Describe() const { return queue->dnn->Describe(); }

  std::unique_ptr<Gpu> gpu;
  std::unique_ptr<boa_queue> queue;
  std::vector<Pointer> allocated;
};

int64_t ScratchOf(const Shape &s) {
  return std::max(BOA_CUDA_ATTENTION_SCRATCH,
                  boa_cuda_attention_grad_scratch(s.batch, s.time, s.heads, s.kv_heads, s.columns));
}

double LargestDifference(const std::vector<uint16_t> &got, const std::vector<double> &want) {
  double most = 0;
  for (size_t i = 0; i < want.size(); ++i) // NaN is no less than any
    most = std::fabs(Widen(got[i]) - want[i]) <= most ? most : std::fabs(Widen(got[i]) - want[i]);
  return most;
}

// Against f64. The gradient is of y as it was rounded.
TEST_F(DnnTest, ComputesAttention) {
  for (const Shape &s : {Shape{true, 2, 20, 4, 4, 16}, Shape{false, 2, 20, 4, 4, 16},
                         Shape{true, 1, 33, 4, 2, 8}, Shape{false, 3, 7, 6, 1, 24}}) {
    SCOPED_TRACE(absl::StrCat(s.causal, " ", s.time, " ", s.heads, " ", s.kv_heads));
    const int64_t scratch = ScratchOf(s), w = s.Width(), kw = s.KvWidth(), ld = s.Stride();
    const Operands o = Make(s, scratch);
    ASSERT_TRUE(Run(s, o, scratch));
    EXPECT_EQ(Describe(), "attention by cuDNN 9.19.0");

    auto widen = [](const std::vector<uint16_t> &values) {
      std::vector<double> wide;
      for (uint16_t value : values)
        wide.push_back(Widen(value));
      return wide;
    };
    const std::vector<double> qkv = widen(Random(s.Rows() * ld, 1)),
                              dy = widen(Random(s.Rows() * w, 3));
    std::vector<double> y(s.Rows() * w), lse(s.Statistics()), dqkv(s.Rows() * ld);
    boa_attention_f64(s.batch, s.time, s.heads, s.kv_heads, s.columns, s.causal, /*window=*/0,
                      nullptr, qkv.data(), ld, &qkv[w], ld, &qkv[w + kw], ld, y.data(), w,
                      lse.data());
    const std::vector<uint16_t> got = Take(o.y, s.Rows() * w);
    EXPECT_LT(LargestDifference(got, y), 0.02);
    const std::vector<float> statistics = Take(o.lse, s.Statistics());
    for (int64_t i = 0; i < s.Statistics(); ++i)
      EXPECT_NEAR(statistics[i], lse[i], 1e-4);
    y = widen(got);
    boa_attention_grad_f64(s.batch, s.time, s.heads, s.kv_heads, s.columns, s.causal, /*window=*/0,
                           nullptr, qkv.data(), ld, &qkv[w], ld, &qkv[w + kw], ld, y.data(), w,
                           lse.data(), dy.data(), w, dqkv.data(), ld, &dqkv[w], ld, &dqkv[w + kw],
                           ld);
    EXPECT_LT(LargestDifference(Take(o.dqkv, s.Rows() * ld), dqkv), 0.1);
  }
}

// With less scratch, sequence by sequence, and head by head, to the same bits.
TEST_F(DnnTest, IsExecutedInPartsThatFit) {
  const Shape s{true, 4, 20, 4, 2, 8};
  const int64_t whole = ScratchOf(s);
  const Operands o = Make(s, whole);
  ASSERT_TRUE(Run(s, o, whole));
  const std::vector<uint16_t> y = Take(o.y, s.Rows() * s.Width());
  const std::vector<uint16_t> dqkv = Take(o.dqkv, s.Rows() * s.Stride());
  // Of a head 64 x 128 in bf16, of a group two.
  const int64_t group = 2 * 64 * 128 * 2 + 4096;
  for (int64_t scratch : {2 * 2 * group, 2 * group, group}) {
    const Operands again = Make(s, scratch);
    ASSERT_TRUE(Run(s, again, scratch)) << Describe();
    EXPECT_EQ(Take(again.y, s.Rows() * s.Width()), y);
    EXPECT_EQ(Take(again.dqkv, s.Rows() * s.Stride()), dqkv);
  }
  EXPECT_EQ(Describe(), "attention by cuDNN 9.19.0");
  EXPECT_FALSE(Run(s, o, group / 2));
  EXPECT_EQ(
      Describe(),
      absl::StrCat("attention by cuDNN 9.19.0, but not the gradient of attention of 4 x 20, 4 "
                   "heads of 8 columns: it takes more than the ",
                   group / 2, " bytes that there are"));
}

// What keeps no gradients of scores adds up gradients as its blocks end: the next plan is taken, or
// none.
TEST_F(DnnTest, PassesOverPlansWithoutAnOrderOfSums) {
  const Shape s{true, 2, 20, 4, 4, 16};
  Begin("dnn_best=a dnn_fallback=ar");
  EXPECT_TRUE(Run(s, Make(s, ScratchOf(s)), ScratchOf(s)));
  EXPECT_EQ(Describe(), "attention by cuDNN 9.19.0");
  Begin("dnn_best=nua dnn_fallback=a");
  const Operands o = Make(s, ScratchOf(s));
  queue->plans = true;
  EXPECT_EQ(Forward(s, o, ScratchOf(s)), 1);
  EXPECT_EQ(Gradient(s, o, ScratchOf(s)), 0);
  EXPECT_EQ(Describe(),
            "attention by cuDNN 9.19.0, but not the gradient of attention of 2 x 20, 4 heads of 16 "
            "columns: the library proposes no kernel for it that adds up in one order");
}

// Statistics of a part begin at 16 bytes: at an odd time some parts are none.
TEST_F(DnnTest, PartsAreAligned) {
  const Shape s{true, 4, 21, 2, 2, 8};
  const Operands o = Make(s, ScratchOf(s));
  ASSERT_TRUE(Run(s, o, ScratchOf(s)));
  const std::vector<uint16_t> dqkv = Take(o.dqkv, s.Rows() * s.Stride());
  const int64_t head = 64 * 128 * 2, sequence = 2 * head, aside = 4096;
  // Two sequences are 2 x 2 x 21 values of 4 bytes; where one would fit, they do not.
  const Operands again = Make(s, 2 * sequence + aside);
  ASSERT_TRUE(Run(s, again, 2 * sequence + aside)) << Describe();
  EXPECT_EQ(Take(again.dqkv, s.Rows() * s.Stride()), dqkv);
  EXPECT_FALSE(Run(s, again, sequence + aside));
  EXPECT_EQ(Describe(), absl::StrCat("attention by cuDNN 9.19.0, but not the gradient of attention "
                                     "of 4 x 21, 2 heads of 8 columns: it takes more than the ",
                                     sequence + aside,
                                     " bytes that there are, or parts that are not aligned to 16 "
                                     "bytes"));
  // Nor has a program room for parts that it could not be executed in.
  constexpr int64_t kScores = int64_t{2} * 5120 * 5120;
  EXPECT_EQ(boa_cuda_attention_grad_scratch(1, 5001, 14, 14, 64), 0);
  EXPECT_EQ(boa_cuda_attention_grad_scratch(1, 5002, 14, 14, 64), 2 * kScores + aside);
  EXPECT_EQ(boa_cuda_attention_grad_scratch(4, 5001, 4, 4, 64), 8 * kScores + aside);
}

// Popular models have room for at least one head of keys, and as much as it takes for few parts.
TEST_F(DnnTest, PopularModelsHaveRoom) {
  const struct {
    const char *name;
    int64_t time, heads, kv_heads, columns, parts;
  } models[] = {
      {"Llama 2 7B at 4k", 4096, 32, 32, 128, 2},  {"Llama 2 7B at 8k", 8192, 32, 32, 128, 8},
      {"Llama 3 8B at 4k", 4096, 32, 8, 128, 2},   {"Llama 3 8B at 8k", 8192, 32, 8, 128, 8},
      {"Llama 3 70B at 4k", 4096, 64, 8, 128, 4},  {"Llama 3 70B at 8k", 8192, 64, 8, 128, 8},
      {"Qwen 2.5 7B at 4k", 4096, 28, 4, 128, 2},  {"Qwen 2.5 7B at 8k", 8192, 28, 4, 128, 4},
      {"Qwen 2.5 72B at 8k", 8192, 64, 8, 128, 8}, {"Mistral 7B at 8k", 8192, 32, 8, 128, 8},
  };
  for (const auto &m : models) {
    const int64_t group = m.heads / m.kv_heads;
    const int64_t head = m.time * m.time * 2 + (group > 1 ? m.time * m.columns * 4 : 0);
    EXPECT_EQ(boa_cuda_attention_grad_scratch(1, m.time, m.heads, m.kv_heads, m.columns),
              m.heads / m.parts * head + 4096)
        << m.name;
  }
  EXPECT_EQ(boa_cuda_attention_grad_scratch(1, 32768, 8, 4, 128), 0);
}

// Before 9.18 the order of sums is promised on none of Blackwell's.
TEST_F(DnnTest, GradientsOnBlackwellNeedANewLibrary) {
  const Shape s{true, 1, 128, 2, 2, 8};
  for (int capability : {90, 100, 103, 120, 121})
    for (int version : {91700, 91800}) {
      Begin(absl::StrCat("capability=", capability, " dnn_version=", version));
      const Operands o = Make(s, ScratchOf(s));
      queue->plans = true;
      EXPECT_EQ(Forward(s, o, ScratchOf(s)), 1);
      EXPECT_EQ(Gradient(s, o, ScratchOf(s)), capability == 90 || version == 91800)
          << capability << " " << version;
      if (version == 91700 && capability > 90)
        EXPECT_THAT(Describe(), HasSubstr("before 9.18 no order of sums is promised on this GPU"));
    }
}

// Where the better heuristics fail, the others are asked; of both, the first error is told.
TEST_F(DnnTest, HeuristicsMayFail) {
  const Shape s{true, 1, 16, 2, 2, 8};
  Begin("dnn_best=e");
  EXPECT_TRUE(Run(s, Make(s, ScratchOf(s)), ScratchOf(s)));
  EXPECT_EQ(Describe(), "attention by cuDNN 9.19.0");
  Begin("dnn_best=e dnn_fallback=e");
  EXPECT_FALSE(Run(s, Make(s, ScratchOf(s)), ScratchOf(s)));
  EXPECT_THAT(Describe(), HasSubstr("cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED (heuristics "
                                    "that fail)"));
}

// Of more notes than are known the library may say anything.
TEST_F(DnnTest, NotesThatAreNotKnown) {
  const Shape s{true, 1, 16, 2, 2, 8};
  for (int notes : {kDnnNotes, kDnnNotes + 1}) {
    Begin(absl::StrCat("dnn_notes=", notes));
    EXPECT_EQ(Run(s, Make(s, ScratchOf(s)), ScratchOf(s)), notes == kDnnNotes);
  }
  EXPECT_THAT(Describe(), HasSubstr("the library proposes no kernel for it"));
}

// Nothing is written where the answer is no.
TEST_F(DnnTest, LeavesWhatCudnnHasNoKernelFor) {
  const Shape odd{true, 2, 20, 4, 4, 12}, wide{true, 2, 20, 1, 1, 264};
  const Operands o = Make(wide, ScratchOf(wide));
  EXPECT_FALSE(Run(odd, o, ScratchOf(odd)));
  EXPECT_FALSE(Run(wide, o, ScratchOf(wide)));
  EXPECT_EQ(Take(o.y, 20), Random(20, 2));
  EXPECT_EQ(Take(o.dqkv, 20), Random(20, 4));
  EXPECT_THAT(Describe(), HasSubstr("attention of 2 x 20, 4 heads of 12 columns: rows are not of "
                                    "whole 16 bytes"));
  EXPECT_THAT(Describe(), HasSubstr("attention of 2 x 20, 1 heads of 264 columns: the library "
                                    "proposes no kernel for it"));
}

TEST_F(DnnTest, IsNotMissed) {
  const Shape s{true, 1, 16, 2, 2, 8};
  const Operands o = Make(s, ScratchOf(s));
  setenv("BOA_CUDA_DNN", "none", 1);
  EXPECT_FALSE(Run(s, o, ScratchOf(s)));
  EXPECT_EQ(Describe(), "attention by the program's own kernels (BOA_CUDA_DNN=none)");
}

// One that is named must be there.
TEST_F(DnnTest, IsMissedWhereItIsNamed) {
  const Shape s{true, 1, 16, 2, 2, 8};
  const Operands o = Make(s, ScratchOf(s));
  setenv("BOA_CUDA_DNN", "/nowhere/libcudnn.so", 1);
  queue->plans = true;
  Forward(s, o, ScratchOf(s));
  EXPECT_THAT(std::string(queue->status.message()),
              HasSubstr("BOA_CUDA_DNN=/nowhere/libcudnn.so: "));
}

TEST_F(DnnTest, PlansBeforeTheFirstStep) {
  const Shape s{true, 1, 16, 2, 2, 8};
  const Operands o = Make(s, ScratchOf(s));
  Forward(s, o, ScratchOf(s));
  EXPECT_EQ(queue->status.message(),
            "attention of 1 x 16, 2 heads of 8 columns: it was not planned before the first step, "
            "which is an error of the compiler; go on from the last commit");
}

// Whatever call fails while it plans, the program does it itself, and says why, unless other
// heuristics have a plan. Calls of each function, until one is no longer reached.
TEST_F(DnnTest, FailuresBeforeTheFirstStepAreNone) {
  const Shape s{true, 1, 16, 4, 2, 8};
  for (const char *function : {"cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
                               "cudnnBackendFinalize", "cudnnBackendGetAttribute"}) {
    const int64_t step = std::strcmp(function, "cudnnBackendSetAttribute") == 0 ? 13 : 3;
    int64_t call = 1, refused = 0;
    for (bool reached = true; reached; call += step) {
      Begin(absl::StrCat("fail=", function, ":", call));
      const Operands o = Make(s, ScratchOf(s));
      queue->plans = true;
      const bool forward = Forward(s, o, ScratchOf(s)), gradient = Gradient(s, o, ScratchOf(s));
      EXPECT_TRUE(queue->status.ok()) << queue->status;
      reached = boa_fake_cuda_calls(function) >= call;
      if (forward && gradient)
        continue;
      ++refused;
      EXPECT_THAT(Describe(), HasSubstr("CUDNN_STATUS_INTERNAL_ERROR")) << function << " " << call;
    }
    EXPECT_GT(call, 15) << function;
    // Attributes are got of heuristics, and what they propose: one mode that fails leaves the
    // other.
    EXPECT_EQ(refused > 0, std::strcmp(function, "cudnnBackendGetAttribute") != 0) << function;
  }
}

// A library that does not begin is none, unless it was named; here it is.
TEST_F(DnnTest, LibraryThatDoesNotBegin) {
  const Shape s{true, 1, 16, 2, 2, 8};
  for (const char *function : {"cudnnCreate", "cudnnSetStream"}) {
    Begin(absl::StrCat("fail=", function, ":1"));
    const Operands o = Make(s, ScratchOf(s));
    queue->plans = true;
    Forward(s, o, ScratchOf(s));
    EXPECT_THAT(std::string(queue->status.message()),
                HasSubstr(absl::StrCat(function, ": CUDNN_STATUS_INTERNAL_ERROR")));
  }
}

// cuDNN ends the process where cuBLASLt of its own CUDA version is missing: it is not begun there.
TEST_F(DnnTest, IsNotUsedWithoutItsCublas) {
  const Shape s{true, 1, 16, 2, 2, 8};
  const struct {
    const char *settings, *blas, *message;
  } cases[] = {
      {"dnn_cuda=12080", BOA_FAKE_BLAS,
       "cuDNN 9.19.0 is built for CUDA 12 and needs its cuBLASLt, but " BOA_FAKE_BLAS
       " is for CUDA 13"},
      {"", "/nowhere/libcublasLt.so.13", "BOA_CUDA_BLAS=/nowhere/libcublasLt.so.13: "},
  };
  for (const auto &c : cases) {
    Begin(absl::StrCat(c.settings, " fail=cudnnCreate:1000"));
    setenv("BOA_CUDA_BLAS", c.blas, 1);
    const Operands o = Make(s, ScratchOf(s));
    queue->plans = true;
    Forward(s, o, ScratchOf(s));
    EXPECT_THAT(std::string(queue->status.message()), testing::StartsWith(c.message));
    EXPECT_EQ(boa_fake_cuda_calls("cudnnCreate"), 0);
  }
}

// Later there is no other way: it is an error.
TEST_F(DnnTest, FailuresOfCallsAreErrors) {
  const Shape s{true, 1, 16, 2, 2, 8};
  Begin("fail=cudnnBackendExecute:2");
  const Operands o = Make(s, ScratchOf(s));
  queue->plans = true;
  Forward(s, o, ScratchOf(s));
  Gradient(s, o, ScratchOf(s));
  queue->plans = false;
  EXPECT_EQ(Forward(s, o, ScratchOf(s)), 1);
  EXPECT_TRUE(queue->status.ok()) << queue->status;
  EXPECT_EQ(Gradient(s, o, ScratchOf(s)), 1);
  EXPECT_EQ(queue->status.message(),
            "the gradient of attention of 1 x 16, 2 heads of 8 columns: cudnnBackendExecute: "
            "CUDNN_STATUS_INTERNAL_ERROR (an error that was asked for)");
}

// What is loaded when a plan first runs is loaded before the program's memory is taken. It takes
// no more than the program: slices of one product are there once, buffers, which are all planned
// at one address, each.
TEST_F(DnnTest, IsTriedOnMemoryForAWhile) {
  const Shape s{true, 2, 16, 4, 2, 8};
  const Operands o = Make(s, ScratchOf(s));
  auto bytes = [](int64_t count, int64_t each) { return (count * each + 255) / 256 * 256; };
  const int64_t q = bytes(s.Rows() * s.Width(), 2), kv = bytes(s.Rows() * s.KvWidth(), 2);
  const int64_t statistics = bytes(s.Statistics(), 4);
  queue->plans = true;
  boa_cuda_attention(queue.get(), s.causal, s.batch, s.time, s.heads, s.kv_heads, s.columns, o.qkv,
                     s.Width(), o.qkv, s.KvWidth(), o.qkv, s.KvWidth(), o.qkv, s.Width(), o.lse,
                     o.scratch, ScratchOf(s));
  EXPECT_EQ(queue->dnn->TrialBytes(), 2 * q + 2 * kv + statistics + bytes(ScratchOf(s), 1));
  Forward(s, o, ScratchOf(s));
  Gradient(s, o, ScratchOf(s));
  const int64_t slices = bytes(s.Rows() * s.Stride(), 2);
  EXPECT_EQ(queue->dnn->TrialBytes(), 2 * slices + 2 * q + 2 * statistics + bytes(ScratchOf(s), 1));
  char *const memory = Put(std::vector<char>(queue->dnn->TrialBytes()));
  EXPECT_TRUE(queue->dnn->Try(memory));
  EXPECT_EQ(Take(o.y, 20), Random(20, 2));
}

// What cannot be run then is done without, and said.
TEST_F(DnnTest, WhatFailsWhenItIsTriedIsDoneWithout) {
  const Shape s{true, 2, 16, 2, 2, 8};
  Begin("fail=cudnnBackendExecute:1");
  const Operands o = Make(s, ScratchOf(s));
  queue->plans = true;
  EXPECT_EQ(Forward(s, o, ScratchOf(s)), 1);
  EXPECT_EQ(Gradient(s, o, ScratchOf(s)), 1);
  char *const memory = Put(std::vector<char>(queue->dnn->TrialBytes()));
  EXPECT_FALSE(queue->dnn->Try(memory));
  EXPECT_EQ(Forward(s, o, ScratchOf(s)), 0);
  EXPECT_EQ(Gradient(s, o, ScratchOf(s)), 1);
  EXPECT_TRUE(queue->dnn->Try(memory));
  EXPECT_EQ(Describe(),
            "attention by cuDNN 9.19.0, but not attention of 2 x 16, 2 heads of 8 columns: "
            "cudnnBackendExecute: CUDNN_STATUS_INTERNAL_ERROR (an error that was asked for)");
}

} // namespace
} // namespace boa::cuda
