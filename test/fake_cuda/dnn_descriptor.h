//===- dnn_descriptor.h - What descriptors of cuDNN may be told -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_DNN_DESCRIPTOR_H
#define BOA_TEST_FAKE_CUDA_DNN_DESCRIPTOR_H

#include "test/fake_cuda/dnn_graph.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boa::fake {

struct DnnDescriptor {
  int kind;
  bool finalized = false;
  struct Attribute {
    std::vector<int64_t> values; // pointers, numbers, enumerations
    std::vector<std::shared_ptr<DnnDescriptor>> of;
  };
  std::map<int, Attribute> attributes;
  std::shared_ptr<DnnGraph> graph; // of a graph, and of what is made of it
  char proposal = 0;               // of a configuration, and of what is made of it

  bool Has(int attribute) const { return attributes.count(attribute); }
  int64_t Number(int attribute, int64_t otherwise = 0) const {
    return Has(attribute) ? attributes.at(attribute).values[0] : otherwise;
  }
  const std::shared_ptr<DnnDescriptor> &Of(int attribute) const {
    return attributes.at(attribute).of[0];
  }
};

/// What a descriptor of this kind may be told.
struct DnnRule {
  int kind, attribute, type;
  bool required;
  int64_t least = 1, most = 1;
  int of = -1; // the kind of a descriptor; -1: an operation
};

constexpr int kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR,
              kTensor = CUDNN_BACKEND_TENSOR_DESCRIPTOR,
              kPointwise = CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
              kMatmul = CUDNN_BACKEND_MATMUL_DESCRIPTOR,
              kReduction = CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
              kPointwiseOp = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
              kMatmulOp = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
              kReductionOp = CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
              kReshapeOp = CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
              kGraph = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
              kHeuristic = CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
              kConfig = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
              kEngine = CUDNN_BACKEND_ENGINE_DESCRIPTOR,
              kPlan = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
              kPack = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;

/// Null: it may not be told.
const DnnRule *FindRule(int kind, int attribute);
bool IsKind(int kind);
bool IsOp(int kind);
/// "attribute 801 of descriptor 15"
std::string Name(int kind, int attribute);
/// What is wrong with one that is to be finalized, or nothing. It has its graph then.
std::string Complete(DnnDescriptor &);

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_DNN_DESCRIPTOR_H
