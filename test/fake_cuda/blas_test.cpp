//===- blas_test.cpp - Tests of the fake of cuBLASLt ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/blas_abi.h"
#include "test/fake_cuda/fixture.h"

#include <cmath>
#include <cstring>
#include <vector>

namespace boa::fake {
namespace {

using testing::HasSubstr;

uint16_t Narrow(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float Widen(uint16_t high) {
  uint32_t bits = uint32_t(high) << 16;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

/// Values that bf16 holds, as bytes of a type.
std::vector<char> Encode(const std::vector<float> &values, int type) {
  std::vector<char> bytes(values.size() * (type == CUDA_R_32F ? 4 : 2));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t narrow = Narrow(values[i]);
    if (type == CUDA_R_32F)
      memcpy(&bytes[4 * i], &values[i], 4);
    else
      memcpy(&bytes[2 * i], &narrow, 2);
  }
  return bytes;
}

std::vector<float> Decode(const std::vector<char> &bytes, int type) {
  std::vector<float> values(bytes.size() / (type == CUDA_R_32F ? 4 : 2));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t narrow;
    if (type == CUDA_R_32F) {
      memcpy(&values[i], &bytes[4 * i], 4);
    } else {
      memcpy(&narrow, &bytes[2 * i], 2);
      values[i] = Widen(narrow);
    }
  }
  return values;
}

/// A product by columns, with leading dimensions that are larger than need be.
struct Product {
  int64_t m = 70, n = 9, k = 200;
  int32_t transpose_a = 0, transpose_b = 0, type_ab = CUDA_R_32F, type_d = CUDA_R_32F;
  bool bias = false;
  float beta = 0;
  int32_t bias_type = -1;
  uint32_t alignment = 256; // that is promised
  uint64_t workspace = 0;   // that is allowed

  int64_t RowsA() const { return transpose_a ? k : m; }
  int64_t ColsA() const { return transpose_a ? m : k; }
  int64_t RowsB() const { return transpose_b ? n : k; }
  int64_t ColsB() const { return transpose_b ? k : n; }
};

class FakeBlasTest : public FakeCudaTest {
protected:
  void SetUp() override {
    session = std::make_unique<Session>("");
    stream = NewStream();
    EXPECT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
    for (CUdeviceptr address : allocated)
      EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    session.reset();
    FakeCudaTest::TearDown();
  }
  CUdeviceptr Put(const std::vector<char> &bytes) {
    CUdeviceptr address = NewMemory<char>(bytes.size());
    allocated.push_back(address);
    Upload(address, bytes, stream);
    return address;
  }
  static const void *Pointer(CUdeviceptr address) { return reinterpret_cast<void *>(address); }

  void Describe(const Product &p, CUdeviceptr bias) {
    EXPECT_EQ(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), 0);
    auto set = [&](int attribute, auto value) {
      EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value), 0);
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b);
    if (p.bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(CUBLASLT_EPILOGUE_BIAS));
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, p.bias_type);
    }
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&a, p.type_ab, p.RowsA(), p.ColsA(), p.RowsA() + 3), 0);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&b, p.type_ab, p.RowsB(), p.ColsB(), p.RowsB() + 1), 0);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&d, p.type_d, p.m, p.n, p.m + 2), 0);
    EXPECT_EQ(cublasLtMatmulPreferenceCreate(&preference), 0);
    auto prefer = [&](int attribute, auto value) {
      EXPECT_EQ(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
                0);
    };
    for (int i = 0; i < 4; ++i)
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i, p.alignment);
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, p.workspace);
  }
  void Forget() {
    EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), 0);
    for (cublasLtMatrixLayout_t layout : {a, b, d})
      EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), 0);
    EXPECT_EQ(cublasLtMatmulDescDestroy(desc), 0);
  }
  cublasStatus_t Find() {
    int found = -1;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, d, d, preference, 1, &result, &found);
    EXPECT_EQ(found, status ? 0 : 1);
    return status;
  }
  cublasStatus_t Multiply(const Product &p, CUdeviceptr a_data, CUdeviceptr b_data,
                          CUdeviceptr d_data, CUdeviceptr workspace = 0) {
    const float alpha = 0.5f;
    return cublasLtMatmul(handle, desc, &alpha, Pointer(a_data), a, Pointer(b_data), b, &p.beta,
                          Pointer(d_data), d, const_cast<void *>(Pointer(d_data)), d, &result.algo,
                          const_cast<void *>(Pointer(workspace)), result.workspaceSize, stream);
  }

  std::unique_ptr<Session> session;
  CUstream stream = nullptr;
  cublasLtHandle_t handle = nullptr;
  std::vector<CUdeviceptr> allocated;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t result = {};
};

std::vector<float> SmallValues(size_t count, int step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = float(int(i * step % 17) - 8) / 8;
  return values;
}

// All transposes and types, with and without a bias and what was there, against sums in
// f64; what lies between columns stays as it was.
TEST_F(FakeBlasTest, Multiplies) {
  for (int variant = 0; variant < 48; ++variant) {
    Product p;
    p.transpose_a = variant & 1;
    p.transpose_b = variant >> 1 & 1;
    p.bias = variant >> 2 & 1;
    p.beta = variant >> 3 & 1;
    p.type_ab = variant < 16 ? CUDA_R_32F : CUDA_R_16BF;
    p.type_d = variant < 32 ? CUDA_R_32F : CUDA_R_16BF;
    p.bias_type = p.type_d;
    p.workspace = variant & 1 ? 32 << 20 : 0;
    SCOPED_TRACE(variant);
    std::vector<float> left = SmallValues((p.RowsA() + 3) * p.ColsA(), 5);
    std::vector<float> right = SmallValues((p.RowsB() + 1) * p.ColsB(), 7);
    std::vector<float> before = SmallValues((p.m + 2) * p.n, 3), bias = SmallValues(p.m, 11);
    CUdeviceptr left_data = Put(Encode(left, p.type_ab)),
                right_data = Put(Encode(right, p.type_ab)), data = Put(Encode(before, p.type_d)),
                bias_data = Put(Encode(bias, p.type_d));
    Describe(p, bias_data);
    ASSERT_EQ(Find(), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(result.workspaceSize > 0, p.workspace > 0);
    CUdeviceptr workspace =
        result.workspaceSize ? Put(std::vector<char>(result.workspaceSize)) : CUdeviceptr(0);
    EXPECT_EQ(Multiply(p, left_data, right_data, data, workspace), CUBLAS_STATUS_SUCCESS);
    size_t bytes = before.size() * (p.type_d == CUDA_R_32F ? 4 : 2);
    std::vector<float> got = Decode(Download<char>(data, bytes, stream), p.type_d);
    for (int64_t j = 0; j < p.n; ++j)
      for (int64_t i = 0; i < p.m + 2; ++i) {
        size_t at = i + j * (p.m + 2);
        if (i >= p.m) {
          ASSERT_EQ(got[at], before[at]);
          continue;
        }
        double sum = 0;
        for (int64_t l = 0; l < p.k; ++l)
          sum += double(left[p.transpose_a ? l + i * (p.k + 3) : i + l * (p.m + 3)]) *
                 right[p.transpose_b ? j + l * (p.n + 1) : l + j * (p.k + 1)];
        double want = 0.5 * sum + p.beta * before[at] + (p.bias ? bias[i] : 0);
        ASSERT_NEAR(got[at], want, p.type_d == CUDA_R_32F ? 1e-4 : std::abs(want) / 256)
            << i << ", " << j;
      }
    Forget();
  }
}

// The addend may lie apart from the result: it is read and not changed.
TEST_F(FakeBlasTest, AddsWhatLiesApart) {
  Product p;
  p.beta = 1;
  std::vector<float> before = SmallValues((p.m + 2) * p.n, 3);
  CUdeviceptr left = Put(Encode(SmallValues((p.m + 3) * p.k, 5), p.type_ab)),
              right = Put(Encode(SmallValues((p.k + 1) * p.n, 7), p.type_ab)),
              data = Put(Encode(before, p.type_d)), apart = Put(Encode(before, p.type_d));
  Describe(p, 0);
  ASSERT_EQ(Find(), CUBLAS_STATUS_SUCCESS);
  const float alpha = 0.5f;
  auto multiply = [&](CUdeviceptr c, CUdeviceptr to) {
    return cublasLtMatmul(handle, desc, &alpha, Pointer(left), a, Pointer(right), b, &p.beta,
                          Pointer(c), d, const_cast<void *>(Pointer(to)), d, &result.algo, nullptr,
                          0, stream);
  };
  EXPECT_EQ(multiply(apart, data), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Download<float>(apart, before.size(), stream), before);
  const std::vector<float> sums = Download<float>(data, before.size(), stream);
  EXPECT_EQ(multiply(apart, apart), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Download<float>(apart, before.size(), stream), sums);
  EXPECT_EQ(multiply(apart, apart + 256), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Reports(), "cublasLtMatmul: c and d overlap, but are not the same\n");
  Forget();
}

// What was there is not read where beta is 0: it may be NaN.
TEST_F(FakeBlasTest, BetaOfZeroReadsNothing) {
  Product p;
  CUdeviceptr left = Put(Encode(SmallValues((p.m + 3) * p.k, 5), p.type_ab)),
              right = Put(Encode(SmallValues((p.k + 1) * p.n, 5), p.type_ab)),
              data = NewMemory<float>((p.m + 2) * p.n);
  allocated.push_back(data);
  Describe(p, 0);
  ASSERT_EQ(Find(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(p, left, right, data), CUBLAS_STATUS_SUCCESS);
  EXPECT_FALSE(std::isnan(Download<float>(data, 1, stream)[0]));
  Forget();
}

// The heuristic knows no algorithm for a bias of another type than the result's, nor for
// products of bf16 and f32.
TEST_F(FakeBlasTest, HeuristicRefusesTypes) {
  Product p;
  p.type_ab = CUDA_R_16BF;
  p.bias = true;
  p.bias_type = CUDA_R_16BF;
  Describe(p, Put(std::vector<char>(1000)));
  EXPECT_EQ(Find(), CUBLAS_STATUS_NOT_SUPPORTED);
  cublasLtMatrixLayout_t kept = b;
  EXPECT_EQ(cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, p.RowsB(), p.ColsB(), p.RowsB()), 0);
  int32_t type = -1;
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, 4), 0);
  EXPECT_EQ(Find(), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cublasLtMatrixLayoutDestroy(b), 0);
  b = kept;
  EXPECT_EQ(Find(), CUBLAS_STATUS_SUCCESS);
  Forget();
}

// Pointers that are less aligned than promised, operands past their allocation, a workspace
// that is none or somebody else's, an algorithm of another product.
TEST_F(FakeBlasTest, RefusesWhatTheLibraryWouldNotSee) {
  Product p;
  p.workspace = 32 << 20;
  size_t bytes_a = (p.k - 1) * (p.m + 3) * 4 + p.m * 4;
  CUdeviceptr left = Put(std::vector<char>(bytes_a)), data = Put(std::vector<char>(1 << 20)),
              right = Put(std::vector<char>(1 << 20)), work = Put(std::vector<char>(1 << 20));
  Describe(p, 0);
  ASSERT_EQ(Find(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(p, left, right, data, work), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(p, left, right + 128, data, work), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Reports(),
            "cublasLtMatmul: b is not aligned to the 256 bytes that the preference promised\n");
  EXPECT_EQ(Multiply(p, left + 256, right, data, work), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_THAT(Reports(), HasSubstr("cublasLtMatmul: a: "));
  EXPECT_EQ(Multiply(p, left, right, right + 256, work), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Reports(), "cublasLtMatmul: the result overlaps an operand\n");
  EXPECT_EQ(Multiply(p, left, right, data), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Reports(), "cublasLtMatmul: a workspace of 1048576 bytes, where 1048576 are needed\n");
  EXPECT_EQ(Multiply(p, left, right, data, data + 256), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Reports(), "cublasLtMatmul: the workspace overlaps c\n");
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  Forget();
  p.n = 8;
  Describe(p, 0);
  EXPECT_EQ(Multiply(p, left, right, data, work), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Reports(), "cublasLtMatmul: an algorithm that was found for another product\n");
  Forget();
}

TEST_F(FakeBlasTest, RefusesWhatWasDestroyed) {
  Product p;
  p.transpose_a = 1;
  Describe(p, 0);
  cublasLtMatrixLayout_t none = nullptr;
  EXPECT_EQ(cublasLtMatrixLayoutDestroy(none), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Reports(), "cublasLtMatrixLayoutDestroy: of what was destroyed, or never created\n");
  uint64_t wide = 0;
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &wide, 8),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Reports(), "cublasLtMatmulDescSetAttribute: the fake has no attribute 3 of 8 bytes\n");
  Forget();
}

} // namespace
} // namespace boa::fake
