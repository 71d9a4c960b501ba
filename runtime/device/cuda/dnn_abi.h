//===- dnn_abi.h - cuDNN's graph interface ------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of cuDNN 9's backend interface that Boa uses: descriptors with attributes. It is
// declared here, so the build needs no headers of cuDNN. If they are installed,
// test/runtime/cuda/abi_test.cpp compares them.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_DNN_ABI_H
#define BOA_RUNTIME_DEVICE_CUDA_DNN_ABI_H

#include "runtime/device/cuda/driver.h"

// The library's own name for an opaque type.
struct cudnnContext;

namespace boa::cuda {

using DnnResult = int; // cudnnStatus_t
using DnnHandle = cudnnContext *;
using DnnDescriptor = void *; // cudnnBackendDescriptor_t

/// cudnnBackendDescriptorType_t
namespace dnn_descriptor {
constexpr int kPointwise = 0, kEngine = 2, kEngineConfig = 3, kHeuristic = 4, kPlan = 5,
              kPointwiseOp = 13, kGraph = 15, kVariantPack = 16, kTensor = 17, kMatmul = 18,
              kMatmulOp = 19, kReduction = 21, kReductionOp = 22, kReshapeOp = 31, kDevice = 38;
} // namespace dnn_descriptor

/// cudnnBackendAttributeName_t
namespace dnn_attribute {
constexpr int kPointwiseMode = 0, kPointwiseType = 1, kPointwiseAxis = 9;
constexpr int kHeuristicMode = 200, kHeuristicGraph = 201, kHeuristicResults = 202,
              kHeuristicDevice = 204;
constexpr int kConfigEngine = 300;
constexpr int kPlanHandle = 400, kPlanConfig = 401, kPlanWorkspace = 402, kPlanDevice = 407;
constexpr int kPointwiseOpDesc = 750, kPointwiseOpX = 751, kPointwiseOpB = 752, kPointwiseOpY = 753,
              kPointwiseOpT = 758;
constexpr int kGraphHandle = 800, kGraphOps = 801;
constexpr int kTensorAlignment = 900, kTensorType = 901, kTensorDims = 902, kTensorStrides = 903,
              kTensorId = 906, kTensorIsVirtual = 907, kTensorIsByValue = 908;
constexpr int kPackIds = 1000, kPackPointers = 1001, kPackWorkspace = 1003;
constexpr int kEngineNotes = 1303;
constexpr int kMatmulType = 1500, kMatmulOpA = 1520, kMatmulOpB = 1521, kMatmulOpC = 1522,
              kMatmulOpDesc = 1523;
constexpr int kReductionOperator = 1600, kReductionType = 1601, kReductionOpX = 1610,
              kReductionOpY = 1611, kReductionOpDesc = 1612;
constexpr int kReshapeOpX = 2200, kReshapeOpY = 2201;
constexpr int kDeviceJson = 2702;
} // namespace dnn_attribute

/// cudnnBackendAttributeType_t
namespace dnn_type {
constexpr int kHandle = 0, kDataType = 1, kBoolean = 2, kInt64 = 3, kPointer = 6, kHeurMode = 8,
              kNumericalNote = 11, kPointwiseMode = 14, kDescriptor = 15, kReduction = 18,
              kChar = 24;
} // namespace dnn_type

/// cudnnDataType_t
constexpr int kDnnFloat = 0, kDnnInt32 = 4, kDnnBfloat16 = 9, kDnnBoolean = 11;
/// cudnnPointwiseMode_t
constexpr int kDnnAdd = 0, kDnnMul = 1, kDnnDiv = 6, kDnnSub = 9, kDnnExp = 13, kDnnLog = 15,
              kDnnAtLeast = 303, kDnnIndex = 501, kDnnSelect = 601;
/// cudnnReduceTensorOp_t
constexpr int kDnnReduceAdd = 0, kDnnReduceMax = 3;
/// cudnnBackendHeurMode_t
constexpr int kDnnHeurFallback = 2, kDnnHeurBest = 3;
/// cudnnBackendNumericalNote_t
constexpr int kDnnNondeterministic = 4, kDnnNotes = 10;

/// F(name, symbol, result, arguments).
#define BOA_CUDA_DNN_FUNCTIONS(F)                                                                  \
  F(GetVersion, cudnnGetVersion, size_t, ())                                                       \
  F(GetCudartVersion, cudnnGetCudartVersion, size_t, ())                                           \
  F(GetErrorString, cudnnGetErrorString, const char *, (DnnResult))                                \
  F(GetLastErrorString, cudnnGetLastErrorString, void, (char *message, size_t most))               \
  F(Create, cudnnCreate, DnnResult, (DnnHandle *))                                                 \
  F(Destroy, cudnnDestroy, DnnResult, (DnnHandle))                                                 \
  F(SetStream, cudnnSetStream, DnnResult, (DnnHandle, Stream))                                     \
  F(CreateDescriptor, cudnnBackendCreateDescriptor, DnnResult, (int type, DnnDescriptor *))        \
  F(DestroyDescriptor, cudnnBackendDestroyDescriptor, DnnResult, (DnnDescriptor))                  \
  F(Finalize, cudnnBackendFinalize, DnnResult, (DnnDescriptor))                                    \
  F(SetAttribute, cudnnBackendSetAttribute, DnnResult,                                             \
    (DnnDescriptor, int attribute, int type, int64_t count, const void *))                         \
  F(GetAttribute, cudnnBackendGetAttribute, DnnResult,                                             \
    (DnnDescriptor, int attribute, int type, int64_t most, int64_t *count, void *))                \
  F(Execute, cudnnBackendExecute, DnnResult, (DnnHandle, DnnDescriptor plan, DnnDescriptor pack))

/// The table of an opened library.
struct DnnApi {
  /// Opens the library that BOA_CUDA_DNN names, or libcudnn.so.9. It must be version 9.
  static absl::StatusOr<std::unique_ptr<DnnApi>> Open();

#define BOA_FUNCTION(name, symbol, result, arguments) EntryOf<result arguments>::type name;
  BOA_CUDA_DNN_FUNCTIONS(BOA_FUNCTION)
#undef BOA_FUNCTION

  template <typename... P, typename... A>
  absl::Status Call(const Entry<DnnResult, P...> &entry, A... arguments) const {
    const DnnResult result = entry.address(arguments...);
    return result == 0 ? absl::OkStatus() : Error(result, entry.symbol);
  }
  /// In the library's words.
  absl::Status Error(DnnResult, const char *symbol) const;
  std::string Describe() const; // "cuDNN 9.19.0"

  Library library;
  int version = 0; // 91900 is 9.19.0
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_DNN_ABI_H
