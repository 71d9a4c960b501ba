//===- dnn_descriptor.cpp - What descriptors of cuDNN may be told *- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/dnn_descriptor.h"

#include <algorithm>
#include <iterator>

namespace boa::fake {
namespace {

constexpr int64_t kMany = 1000;

const DnnRule kRules[] = {
    {kTensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, true},
    {kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, true, 4, 4},
    {kTensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, true, 4, 4},
    {kTensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, true},
    {kTensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, true},
    {kTensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, false},
    {kTensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, false},
    {kPointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, true},
    {kPointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, true},
    {kPointwise, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, false},
    {kMatmul, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, true},
    {kReduction, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, true},
    {kReduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, true},
    {kPointwiseOp, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kDescriptor, true, 1, 1,
     kPointwise},
    {kPointwiseOp, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kDescriptor, true, 1, 1, kTensor},
    {kPointwiseOp, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kDescriptor, false, 1, 1, kTensor},
    {kPointwiseOp, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, kDescriptor, false, 1, 1, kTensor},
    {kPointwiseOp, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kDescriptor, true, 1, 1, kTensor},
    {kMatmulOp, CUDNN_ATTR_OPERATION_MATMUL_DESC, kDescriptor, true, 1, 1, kMatmul},
    {kMatmulOp, CUDNN_ATTR_OPERATION_MATMUL_ADESC, kDescriptor, true, 1, 1, kTensor},
    {kMatmulOp, CUDNN_ATTR_OPERATION_MATMUL_BDESC, kDescriptor, true, 1, 1, kTensor},
    {kMatmulOp, CUDNN_ATTR_OPERATION_MATMUL_CDESC, kDescriptor, true, 1, 1, kTensor},
    {kReductionOp, CUDNN_ATTR_OPERATION_REDUCTION_DESC, kDescriptor, true, 1, 1, kReduction},
    {kReductionOp, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kDescriptor, true, 1, 1, kTensor},
    {kReductionOp, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kDescriptor, true, 1, 1, kTensor},
    {kReshapeOp, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kDescriptor, true, 1, 1, kTensor},
    {kReshapeOp, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, kDescriptor, true, 1, 1, kTensor},
    {kGraph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, false},
    {kGraph, CUDNN_ATTR_OPERATIONGRAPH_OPS, kDescriptor, true, 1, kMany},
    {kHeuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kDescriptor, true, 1, 1, kGraph},
    {kHeuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, true},
    {kPlan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, true},
    {kPlan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kDescriptor, true, 1, 1, kConfig},
    {kPack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, true, 1, kMany},
    {kPack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, true, 1, kMany},
    {kPack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, true},
};

DnnTensor ToTensor(const DnnDescriptor &d) {
  DnnTensor tensor;
  tensor.id = d.Number(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  tensor.type = int(d.Number(CUDNN_ATTR_TENSOR_DATA_TYPE));
  tensor.alignment = d.Number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  tensor.is_virtual = d.Number(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  tensor.by_value = d.Number(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  for (int i = 0; i < 4; ++i) {
    tensor.dims[i] = d.attributes.at(CUDNN_ATTR_TENSOR_DIMENSIONS).values[i];
    tensor.strides[i] = d.attributes.at(CUDNN_ATTR_TENSOR_STRIDES).values[i];
  }
  return tensor;
}

/// Why it is none; or nothing.
std::string FindFault(const DnnTensor &tensor) {
  const bool known =
      tensor.type == CUDNN_DATA_FLOAT || tensor.type == CUDNN_DATA_BFLOAT16 ||
      (tensor.is_virtual && (tensor.type == CUDNN_DATA_INT32 || tensor.type == CUDNN_DATA_BOOLEAN));
  if (!known)
    return "a tensor of type " + std::to_string(tensor.type);
  if (tensor.id == 0 || (tensor.is_virtual && tensor.by_value))
    return "a tensor without an id, or one that is virtual and a value";
  for (int i = 0; i < 4; ++i) {
    const int64_t bytes = tensor.strides[i] * tensor.ElementBytes();
    if (tensor.dims[i] < 1 || tensor.strides[i] < 1)
      return "a tensor with dimensions or strides below one";
    // The real one does not look, and computes something else.
    if (!tensor.is_virtual && tensor.type == CUDNN_DATA_BFLOAT16 && tensor.strides[i] != 1 &&
        bytes % tensor.alignment != 0)
      return "a tensor whose rows are not as aligned as it says";
  }
  return "";
}

std::string AddOp(DnnGraph &graph, const DnnDescriptor &d) {
  auto add = [&](int attribute, int64_t &id) -> std::string {
    if (!d.Has(attribute))
      return "";
    const DnnTensor tensor = ToTensor(*d.Of(attribute));
    id = tensor.id;
    return graph.Add(tensor);
  };
  DnnOp op;
  op.descriptor = d.kind;
  std::string fault;
  auto all = [&](int a, int b, int t, int y) {
    int64_t *const ids[] = {&op.a, &op.b, &op.t, &op.y};
    const int attributes[] = {a, b, t, y};
    for (int i = 0; i < 4 && fault.empty(); ++i)
      fault = add(attributes[i], *ids[i]);
  };
  constexpr int kNone = -1;
  if (d.kind == kPointwiseOp) {
    const DnnDescriptor &pointwise = *d.Of(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    op.mode = int(pointwise.Number(CUDNN_ATTR_POINTWISE_MODE));
    op.axis = pointwise.Number(CUDNN_ATTR_POINTWISE_AXIS, -1);
    all(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  } else if (d.kind == kMatmulOp) {
    all(CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC, kNone,
        CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  } else if (d.kind == kReductionOp) {
    op.mode = int(d.Of(CUDNN_ATTR_OPERATION_REDUCTION_DESC)->Number(CUDNN_ATTR_REDUCTION_OPERATOR));
    all(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kNone, kNone, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  } else {
    all(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kNone, kNone, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  }
  return fault.empty() ? graph.Add(op) : fault;
}

} // namespace

const DnnRule *FindRule(int kind, int attribute) {
  const DnnRule *rule =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const DnnRule &rule) {
        return rule.kind == kind && rule.attribute == attribute;
      });
  return rule == std::end(kRules) ? nullptr : rule;
}

bool IsKind(int kind) {
  return kind == kConfig || kind == kEngine ||
         std::any_of(std::begin(kRules), std::end(kRules),
                     [&](const DnnRule &rule) { return rule.kind == kind; });
}

bool IsOp(int kind) {
  return kind == kPointwiseOp || kind == kMatmulOp || kind == kReductionOp || kind == kReshapeOp;
}

std::string Name(int kind, int attribute) {
  return "attribute " + std::to_string(attribute) + " of descriptor " + std::to_string(kind);
}

std::string Complete(DnnDescriptor &d) {
  for (const DnnRule &rule : kRules)
    if (rule.kind == d.kind && rule.required && !d.Has(rule.attribute))
      return "no " + Name(d.kind, rule.attribute);
  switch (d.kind) {
  case kTensor:
    return FindFault(ToTensor(d));
  case kPointwise: {
    const int modes[] = {
        CUDNN_POINTWISE_ADD,    CUDNN_POINTWISE_MUL,       CUDNN_POINTWISE_DIV,
        CUDNN_POINTWISE_SUB,    CUDNN_POINTWISE_EXP,       CUDNN_POINTWISE_LOG,
        CUDNN_POINTWISE_CMP_GE, CUDNN_POINTWISE_GEN_INDEX, CUDNN_POINTWISE_BINARY_SELECT};
    const int64_t mode = d.Number(CUDNN_ATTR_POINTWISE_MODE);
    return std::count(std::begin(modes), std::end(modes), mode)
               ? ""
               : "the fake has no mode " + std::to_string(mode);
  }
  case kGraph: {
    d.graph = std::make_shared<DnnGraph>();
    for (const auto &op : d.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).of)
      if (std::string fault = AddOp(*d.graph, *op); !fault.empty())
        return fault;
    return d.graph->Finish();
  }
  case kHeuristic:
    d.graph = d.Of(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->graph;
    return "";
  case kPlan:
    d.graph = d.Of(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->graph;
    d.proposal = d.Of(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->proposal;
    return "";
  case kPack:
    return d.attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).values.size() ==
                   d.attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).values.size()
               ? ""
               : "not as many pointers as ids";
  case kConfig:
  case kEngine:
    return "the fake has those alone that its heuristics give";
  }
  return "";
}

} // namespace boa::fake
