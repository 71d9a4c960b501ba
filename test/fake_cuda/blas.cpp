//===- blas.cpp - Matrix products, as cuBLASLt has them ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One algorithm, or as many as BOA_FAKE_CUDA says: sums of f32 over 128 values of k, in later ones
// over 8 and fewer, which are summed in f64. It wants a workspace where it may have one, and
// leaves nothing in it as it was.
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/blas_product.h"
#include "test/fake_cuda/fake.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

struct cublasLtContext {
  uint64_t alive;
  std::mutex mutex;             // of:
  std::set<uint64_t> on_device; // products that ran
};

using namespace boa::fake;

namespace {

constexpr uint64_t kAlive = 0xb1a5b1a5b1a5b1a5u;
constexpr uint64_t kWorkspace = 1 << 20; // what the algorithm takes of what it may have

struct Preference {
  uint64_t workspace, alive;
  uint32_t alignments[4];
};

/// What an algorithm was found for.
struct Algorithm {
  uint64_t alive, workspace, problem;
  uint32_t alignments[4], bias_alignment, number;
};

static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t) &&
                  sizeof(Desc) <= sizeof(cublasLtMatmulDescOpaque_t) &&
                  sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t) &&
                  sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t),
              "programs may hold them in place");

template <typename T, typename Opaque>
cublasStatus_t Create(const char *what, Opaque **made, T value) {
  if (BeginCall(what))
    return CUBLAS_STATUS_ALLOC_FAILED;
  value.alive = kAlive;
  *made = new Opaque();
  memcpy(*made, &value, sizeof value);
  return CUBLAS_STATUS_SUCCESS;
}

/// The T within; false: there is none, which was reported.
template <typename T, typename Opaque> bool Read(const char *what, const Opaque *opaque, T &value) {
  if (opaque)
    memcpy(&value, opaque, sizeof value);
  if (opaque && value.alive == kAlive)
    return true;
  Report(CUBLAS_STATUS_INVALID_VALUE,
         std::string(what) + ": of what was destroyed, or never created");
  return false;
}

/// An error of it leaves nothing behind.
template <typename T, typename Opaque> cublasStatus_t Destroy(const char *what, Opaque *opaque) {
  const bool fails = BeginCall(what);
  T value;
  if (!Read(what, opaque, value))
    return CUBLAS_STATUS_INVALID_VALUE;
  *opaque = {};
  delete opaque;
  return fails ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

/// Sets what `pick` points to in the T within, of exactly that size.
template <typename T, typename Opaque, typename Pick>
cublasStatus_t Set(const char *what, Opaque *opaque, int attribute, const void *value, size_t bytes,
                   Pick pick) {
  if (BeginCall(what))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  T object;
  if (!Read(what, opaque, object))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::pair<void *, size_t> place = pick(object);
  if (!place.first || place.second != bytes || !value)
    return Report(CUBLAS_STATUS_INVALID_VALUE, std::string(what) + ": the fake has no attribute " +
                                                   std::to_string(attribute) + " of " +
                                                   std::to_string(bytes) + " bytes");
  memcpy(place.first, value, bytes);
  memcpy(opaque, &object, sizeof object);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T> std::pair<void *, size_t> Place(T &member) {
  return {&member, sizeof member};
}

/// Reads and checks it as far as no pointers are needed.
cublasStatus_t ReadProblem(const char *what, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                           cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                           cublasLtMatrixLayout_t d, Problem &p) {
  if (!Read(what, desc, p.desc) || !Read(what, a, p.a) || !Read(what, b, p.b) ||
      !Read(what, c, p.c) || !Read(what, d, p.d))
    return CUBLAS_STATUS_INVALID_VALUE;
  p.m = p.desc.transpose[0] ? p.a.cols : p.a.rows;
  p.k = p.desc.transpose[0] ? p.a.rows : p.a.cols;
  p.n = p.desc.transpose[1] ? p.b.rows : p.b.cols;
  uint64_t other_k = p.desc.transpose[1] ? p.b.cols : p.b.rows;
  for (const Layout *layout : {&p.a, &p.b, &p.c, &p.d})
    if (!layout->Valid())
      return Report(CUBLAS_STATUS_INVALID_VALUE,
                    std::string(what) + ": a leading dimension below what it leads");
  if (p.k != other_k || p.d.rows != p.m || p.d.cols != p.n || p.c.rows != p.m || p.c.cols != p.n)
    return Report(CUBLAS_STATUS_INVALID_VALUE,
                  std::string(what) + ": sizes that do not fit: " + std::to_string(p.m) + " x " +
                      std::to_string(p.k) + " times " + std::to_string(other_k) + " x " +
                      std::to_string(p.n));
  // Of the types that cuBLASLt multiplies, those with f32 sums of f32 and of bf16.
  bool types = p.a.type == p.b.type && p.c.type == p.d.type && p.c.order == p.d.order &&
               (p.a.type == CUDA_R_32F ? p.d.type == CUDA_R_32F
                                       : p.a.type == CUDA_R_16BF &&
                                             (p.d.type == CUDA_R_32F || p.d.type == CUDA_R_16BF));
  bool compute =
      (p.desc.compute == CUBLAS_COMPUTE_32F || p.desc.compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
       p.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32) &&
      p.desc.scale == CUDA_R_32F;
  // A bias is of the result's type, and along its columns.
  bool epilogue = p.desc.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
                  (p.desc.epilogue == CUBLASLT_EPILOGUE_BIAS && p.d.order == CUBLASLT_ORDER_COL &&
                   (p.desc.bias_type == -1 || p.desc.bias_type == p.d.type));
  return types && compute && epilogue ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

CUdeviceptr Address(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

bool Overlap(const DeviceRange &x, const DeviceRange &y) {
  return x.address < y.address + y.bytes && y.address < x.address + x.bytes;
}

} // namespace

extern "C" {

BOA_FAKE_API cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  if (BeginCall(__func__))
    return CUBLAS_STATUS_NOT_INITIALIZED;
  CUcontext context = nullptr;
  if (cuCtxGetCurrent(&context) || !context) {
    Report(CUDA_ERROR_INVALID_CONTEXT, "cublasLtCreate: no context is current on this thread");
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  if (TakeOverhead())
    return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = new cublasLtContext{kAlive, {}, {}};
  return CUBLAS_STATUS_SUCCESS;
}

BOA_FAKE_API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  const bool fails = BeginCall(__func__);
  if (!handle || handle->alive != kAlive)
    return Report(CUBLAS_STATUS_INVALID_VALUE, "cublasLtDestroy: of what is no handle");
  handle->alive = 0;
  delete handle;
  return fails ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

BOA_FAKE_API size_t cublasLtGetVersion(void) { return 130000; }

BOA_FAKE_API const char *cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_ALLOC_FAILED:
    return "CUBLAS_STATUS_ALLOC_FAILED";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "CUBLAS_STATUS_UNKNOWN";
}

BOA_FAKE_API const char *cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "an error of the fake cuBLASLt";
}

BOA_FAKE_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, int compute,
                                                     int scale) {
  return Create(__func__, desc, Desc{compute, scale, {}, -1, CUBLASLT_EPILOGUE_DEFAULT, 0, 0});
}

BOA_FAKE_API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return Destroy<Desc>(__func__, desc);
}

BOA_FAKE_API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, int attribute,
                                                           const void *value, size_t bytes) {
  return Set<Desc>(__func__, desc, attribute, value, bytes,
                   [&](Desc &d) -> std::pair<void *, size_t> {
                     switch (attribute) {
                     case CUBLASLT_MATMUL_DESC_TRANSA:
                       return Place(d.transpose[0]);
                     case CUBLASLT_MATMUL_DESC_TRANSB:
                       return Place(d.transpose[1]);
                     case CUBLASLT_MATMUL_DESC_EPILOGUE:
                       return Place(d.epilogue);
                     case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
                       return Place(d.bias);
                     case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
                       return Place(d.bias_type);
                     }
                     return {};
                   });
}

BOA_FAKE_API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, int type,
                                                       uint64_t rows, uint64_t cols, int64_t ld) {
  if (type != CUDA_R_32F && type != CUDA_R_16BF)
    return Report(CUBLAS_STATUS_INVALID_VALUE,
                  "cublasLtMatrixLayoutCreate: the fake has no type " + std::to_string(type));
  return Create(__func__, layout, Layout{type, CUBLASLT_ORDER_COL, rows, cols, ld, 0});
}

BOA_FAKE_API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return Destroy<Layout>(__func__, layout);
}

BOA_FAKE_API cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                             int attribute, const void *value,
                                                             size_t bytes) {
  return Set<Layout>(__func__, layout, attribute, value, bytes,
                     [&](Layout &l) -> std::pair<void *, size_t> {
                       switch (attribute) {
                       case CUBLASLT_MATRIX_LAYOUT_ORDER:
                         return Place(l.order);
                       case CUBLASLT_MATRIX_LAYOUT_ROWS:
                         return Place(l.rows);
                       case CUBLASLT_MATRIX_LAYOUT_COLS:
                         return Place(l.cols);
                       case CUBLASLT_MATRIX_LAYOUT_LD:
                         return Place(l.ld);
                       }
                       return {};
                     });
}

BOA_FAKE_API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  return Create(__func__, preference, Preference{0, 0, {256, 256, 256, 256}});
}

BOA_FAKE_API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return Destroy<Preference>(__func__, preference);
}

BOA_FAKE_API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference, int attribute, const void *value, size_t bytes) {
  uint32_t unused; // the one algorithm is what it is
  return Set<Preference>(__func__, preference, attribute, value, bytes,
                         [&](Preference &p) -> std::pair<void *, size_t> {
                           const int first = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
                           if (attribute >= first && attribute < first + 4)
                             return Place(p.alignments[attribute - first]);
                           switch (attribute) {
                           case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
                             return Place(p.workspace);
                           case CUBLASLT_MATMUL_PREF_SEARCH_MODE:
                           case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
                             return Place(unused);
                           }
                           return {};
                         });
}

BOA_FAKE_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference_handle, int most,
    cublasLtMatmulHeuristicResult_t *results, int *found) {
  if (BeginCall(__func__))
    return CUBLAS_STATUS_NOT_INITIALIZED;
  Problem problem;
  Preference preference;
  *found = 0;
  if (!handle || handle->alive != kAlive || most < 1 ||
      !Read(__func__, preference_handle, preference))
    return Report(CUBLAS_STATUS_INVALID_VALUE,
                  "cublasLtMatmulAlgoGetHeuristic: no handle, no preference or no results");
  if (cublasStatus_t status = ReadProblem(__func__, desc, a, b, c, d, problem))
    return status;
  Algorithm algorithm = {};
  algorithm.alive = kAlive;
  algorithm.workspace = preference.workspace < kWorkspace ? 0 : kWorkspace;
  algorithm.problem = problem.Hash();
  memcpy(algorithm.alignments, preference.alignments, sizeof algorithm.alignments);
  // The bias must be aligned as well later on as now.
  CUdeviceptr bias = problem.desc.bias;
  algorithm.bias_alignment = bias ? uint32_t(std::min<CUdeviceptr>(bias & -bias, 16)) : 16;
  const std::vector<int64_t> &algorithms = GetAlgorithms();
  for (; *found < std::min(most, int(algorithms.size())); ++*found) {
    cublasLtMatmulHeuristicResult_t &result = results[*found];
    result = {};
    algorithm.number = *found;
    memcpy(&result.algo, &algorithm, sizeof algorithm);
    result.workspaceSize = algorithm.workspace;
    result.wavesCount = 1;
    if (algorithms[*found] < 0)
      result.state = CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

BOA_FAKE_API cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                           const void *alpha, const void *a,
                                           cublasLtMatrixLayout_t a_layout, const void *b,
                                           cublasLtMatrixLayout_t b_layout, const void *beta,
                                           const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                                           cublasLtMatrixLayout_t d_layout,
                                           const cublasLtMatmulAlgo_t *algo, void *workspace,
                                           size_t workspace_bytes, CUstream stream) {
  if (BeginCall(__func__))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  auto refuse = [](const std::string &words) {
    return Report(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmul: " + words);
  };
  Problem p;
  if (!handle || handle->alive != kAlive || !alpha || !beta)
    return refuse("no handle, alpha or beta");
  if (cublasStatus_t status =
          ReadProblem(__func__, desc, a_layout, b_layout, c_layout, d_layout, p))
    return status;
  // Without one it looks for an algorithm itself.
  Algorithm algorithm = {};
  if (algo) {
    memcpy(&algorithm, algo, sizeof algorithm);
    if (algorithm.alive != kAlive || algorithm.problem != p.Hash())
      return refuse("an algorithm that was found for another product");
    if (workspace_bytes < algorithm.workspace || (algorithm.workspace && !workspace))
      return refuse("a workspace of " + std::to_string(workspace_bytes) + " bytes, where " +
                    std::to_string(algorithm.workspace) + " are needed");
  }
  const bool biased = p.desc.epilogue == CUBLASLT_EPILOGUE_BIAS;
  float scales[2];
  memcpy(&scales[0], alpha, 4);
  memcpy(&scales[1], beta, 4);
  std::vector<DeviceRange> ranges = {{Address(a), p.a.Bytes(), "a"},
                                     {Address(b), p.b.Bytes(), "b"},
                                     {Address(c), p.c.Bytes(), "c"},
                                     {Address(d), p.d.Bytes(), "d"}};
  for (int i = 0; i < 4; ++i) {
    uint32_t alignment = std::max<uint32_t>(algorithm.alignments[i], 2);
    if (ranges[i].address % alignment)
      return refuse(ranges[i].name + " is not aligned to the " + std::to_string(alignment) +
                    " bytes that the preference promised");
  }
  if (Overlap(ranges[3], ranges[0]) || Overlap(ranges[3], ranges[1]))
    return refuse("the result overlaps an operand");
  if (c != d ? Overlap(ranges[2], ranges[3]) : p.c.ld != p.d.ld)
    return refuse("c and d overlap, but are not the same");
  if (biased) {
    if (!p.desc.bias || p.desc.bias % std::max<uint32_t>(algorithm.bias_alignment, 2))
      return refuse("the bias is null, or less aligned than when the algorithm was found");
    ranges.push_back({p.desc.bias, p.m * p.d.Size(), "the bias"});
  }
  if (algorithm.workspace) {
    DeviceRange scratch = {Address(workspace), algorithm.workspace, "the workspace"};
    for (const DeviceRange &range : ranges)
      if (Overlap(scratch, range))
        return refuse("the workspace overlaps " + range.name);
    if (scratch.address % 256)
      return refuse("the workspace is not aligned to 256 bytes");
    ranges.push_back(scratch);
  }
  {
    std::lock_guard<std::mutex> lock(handle->mutex);
    if (handle->on_device.insert(p.Hash()).second && TakeOverhead())
      return CUBLAS_STATUS_ALLOC_FAILED;
  }
  const std::vector<int64_t> &algorithms = GetAlgorithms();
  if (algorithm.number >= algorithms.size() || algorithms[algorithm.number] < 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const int64_t micros = algorithms[algorithm.number];
  CUresult error =
      Enqueue(__func__, stream, std::move(ranges), [=](const std::vector<char *> &data) {
        if (algorithm.workspace)
          memset(data.back(), 0xff, algorithm.workspace);
        std::this_thread::sleep_for(std::chrono::microseconds(micros));
        Multiply(p, algorithm.number ? std::max(16 >> algorithm.number, 1) : 128, scales[0],
                 scales[1], data[0], data[1], data[2], data[3], biased ? data[4] : nullptr);
        return std::string();
      });
  return error ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

} // extern "C"
