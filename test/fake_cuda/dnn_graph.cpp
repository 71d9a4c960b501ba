//===- dnn_graph.cpp - Graphs of cuDNN's ops -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums are of f64. The result of each op is rounded to the type of its tensor. Accesses are
// checked: an op of sizes that do not fit is an error, and so is one that reads too early.
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/dnn_graph.h"
#include "test/fake_cuda/numbers.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace boa::fake {
namespace {

constexpr int kNone = -1;
/// The attributes of an op that name its tensors.
constexpr struct {
  int kind, a, b, t, y;
} kOperands[] = {
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
     CUDNN_ATTR_OPERATION_POINTWISE_YDESC},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC,
     CUDNN_ATTR_OPERATION_MATMUL_BDESC, kNone, CUDNN_ATTR_OPERATION_MATMUL_CDESC},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kNone,
     kNone, CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kNone, kNone,
     CUDNN_ATTR_OPERATION_RESHAPE_YDESC},
};

/// Calls f with each place in these dimensions, and its number.
template <typename F> void ForEach(const DnnExtents &dims, F &&f) {
  DnnExtents at;
  int64_t i = 0;
  for (at[0] = 0; at[0] < dims[0]; ++at[0])
    for (at[1] = 0; at[1] < dims[1]; ++at[1])
      for (at[2] = 0; at[2] < dims[2]; ++at[2])
        for (at[3] = 0; at[3] < dims[3]; ++at[3])
          f(at, i++);
}

int64_t Offset(const DnnExtents &at, const DnnExtents &strides) {
  return at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2] + at[3] * strides[3];
}

/// The element of a smaller tensor for a place in a larger one: of a dimension of one the only
/// element, of heads the one of the group.
int64_t Index(const DnnExtents &at, const DnnExtents &large, const DnnExtents &small) {
  int64_t index = 0;
  for (int i = 0; i < 4; ++i) {
    if (small[i] == 0 || large[i] % small[i] != 0)
      throw std::out_of_range("broadcast");
    index = index * small[i] + at[i] / (large[i] / small[i]);
  }
  return index;
}

float Apply(int mode, float x, float b, float t) {
  switch (mode) {
  case CUDNN_POINTWISE_ADD:
    return x + b;
  case CUDNN_POINTWISE_SUB:
    return x - b;
  case CUDNN_POINTWISE_MUL:
    return x * b;
  case CUDNN_POINTWISE_DIV:
    return x / b;
  case CUDNN_POINTWISE_EXP:
    return std::exp(x);
  case CUDNN_POINTWISE_LOG:
    return std::log(x);
  case CUDNN_POINTWISE_CMP_GE:
    return x >= b;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return t != 0 ? x : b;
  }
  throw std::out_of_range("mode");
}

} // namespace

int64_t DnnTensor::Span() const {
  int64_t span = 1;
  for (int i = 0; i < 4; ++i)
    span += (dims[i] - 1) * strides[i];
  return span;
}

DnnGraph::DnnGraph(const DnnDescriptor &graph) {
  for (int64_t address : graph.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    const auto &d = *reinterpret_cast<const DnnDescriptor *>(address);
    const auto *operands = std::find_if(std::begin(kOperands), std::end(kOperands),
                                        [&](const auto &of) { return of.kind == d.kind; });
    if (operands == std::end(kOperands))
      throw std::out_of_range("op");
    Op op = {d.kind, 0, kNone, 0, 0, 0, 0};
    if (d.kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
      const DnnDescriptor &pointwise = d.Of(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
      op.mode = int(pointwise.Get(CUDNN_ATTR_POINTWISE_MODE));
      op.axis = pointwise.Get(CUDNN_ATTR_POINTWISE_AXIS, kNone);
    } else if (d.kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
      const DnnDescriptor &reduction = d.Of(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
      op.mode = int(reduction.Get(CUDNN_ATTR_REDUCTION_OPERATOR));
    }
    op.a = Add(d, operands->a);
    op.b = d.attributes.count(operands->b) ? Add(d, operands->b) : 0;
    op.t = d.attributes.count(operands->t) ? Add(d, operands->t) : 0;
    op.y = Add(d, operands->y);
    ops.push_back(op);
  }
}

int64_t DnnGraph::Add(const DnnDescriptor &op, int attribute) {
  const DnnDescriptor &d = op.Of(attribute);
  DnnTensor tensor;
  tensor.id = d.Get(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  tensor.type = int(d.Get(CUDNN_ATTR_TENSOR_DATA_TYPE));
  tensor.alignment = d.Get(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  tensor.is_virtual = d.Get(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false);
  tensor.by_value = d.Get(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false);
  for (int i = 0; i < 4; ++i) {
    tensor.dims[i] = d.attributes.at(CUDNN_ATTR_TENSOR_DIMENSIONS).at(i);
    tensor.strides[i] = d.attributes.at(CUDNN_ATTR_TENSOR_STRIDES).at(i);
  }
  tensors.emplace(tensor.id, tensor);
  return tensor.id;
}

std::vector<DnnTensor> DnnGraph::Bound() const {
  std::vector<DnnTensor> bound;
  for (const auto &[id, tensor] : tensors)
    if (!tensor.is_virtual)
      bound.push_back(tensor);
  return bound;
}

int DnnGraph::Matmuls() const {
  return int(std::count_if(ops.begin(), ops.end(), [](const Op &op) {
    return op.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
  }));
}

bool DnnGraph::IsSupported() const {
  const bool gradient = IsGradient();
  if (Matmuls() != 2 && !gradient)
    return false;
  for (const DnnTensor &tensor : Bound()) {
    if (tensor.by_value || tensor.dims[3] == 1) // numbers and statistics
      continue;
    const bool transposed = tensor.strides[2] == 1;
    const int64_t columns = tensor.dims[transposed ? 2 : 3];
    if (tensor.type != CUDNN_DATA_BFLOAT16 || columns % 8 != 0 || columns > (gradient ? 128 : 256))
      return false;
  }
  return true;
}

int64_t DnnGraph::WorkspaceBytes(bool keeps_scores) const {
  constexpr int64_t kAlways = 256;
  if (!IsGradient() || !keeps_scores)
    return kAlways;
  auto round = [](int64_t value, int64_t to) { return (value + to - 1) / to * to; };
  int64_t bytes = kAlways;
  bool first = true;
  for (const Op &op : ops) {
    const DnnTensor &y = tensors.at(op.y);
    if (op.kind != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
      continue;
    if (std::exchange(first, false)) // scores
      bytes += y.dims[0] * y.dims[1] * round(y.dims[2], 64) * round(y.dims[3], 128) * 2;
    else if (y.type == CUDNN_DATA_BFLOAT16 && y.is_virtual) // before the sum over a group
      bytes += y.Elements() * 2;
  }
  return bytes;
}

DnnGraph::Values DnnGraph::Compute(const Op &op, const std::map<int64_t, Values> &known) const {
  const DnnTensor &x = tensors.at(op.a), &y = tensors.at(op.y);
  const Values &a = known.at(op.a);
  Values result(y.Elements());
  if (op.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
    const Values &b = known.at(op.b);
    const DnnExtents &bd = tensors.at(op.b).dims;
    ForEach(y.dims, [&](const DnnExtents &at, int64_t i) {
      const int64_t head = at[1] / (x.dims[1] / bd[1]);
      double sum = 0;
      for (int64_t k = 0; k < bd[2]; ++k)
        sum += double(a.at(((at[0] * x.dims[1] + at[1]) * x.dims[2] + at[2]) * x.dims[3] + k)) *
               b.at(((at[0] * bd[1] + head) * bd[2] + k) * bd[3] + at[3]);
      result[i] = float(sum);
    });
  } else if (op.kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
    const bool max = op.mode == CUDNN_REDUCE_TENSOR_MAX;
    std::vector<double> sums(result.size(), max ? -INFINITY : 0);
    ForEach(x.dims, [&](const DnnExtents &at, int64_t i) {
      double &sum = sums[Index(at, x.dims, y.dims)];
      sum = max ? std::max(sum, double(a[i])) : sum + a[i];
    });
    std::copy(sums.begin(), sums.end(), result.begin());
  } else if (op.kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
    Values image(x.Span());
    ForEach(x.dims, [&](const DnnExtents &at, int64_t i) { image[Offset(at, x.strides)] = a[i]; });
    ForEach(y.dims,
            [&](const DnnExtents &at, int64_t i) { result[i] = image.at(Offset(at, y.strides)); });
  } else if (op.mode == CUDNN_POINTWISE_GEN_INDEX) {
    ForEach(y.dims, [&](const DnnExtents &at, int64_t i) { result[i] = float(at.at(op.axis)); });
  } else {
    auto element = [&](int64_t id, const DnnExtents &at) {
      return id ? known.at(id)[Index(at, y.dims, tensors.at(id).dims)] : 0;
    };
    ForEach(y.dims, [&](const DnnExtents &at, int64_t i) {
      result[i] = Apply(op.mode, element(op.a, at), element(op.b, at), element(op.t, at));
    });
  }
  if (y.type == CUDNN_DATA_BFLOAT16)
    for (float &value : result) {
      char rounded[2];
      Store(value, rounded, 0, /*bf16=*/true);
      value = Load(rounded, 0, /*bf16=*/true);
    }
  return result;
}

std::string DnnGraph::Run(const std::map<int64_t, char *> &memory) const try {
  std::map<int64_t, Values> known;
  for (const DnnTensor &tensor : Bound())
    ForEach(tensor.dims, [&, &values = known[tensor.id]](const DnnExtents &at, int64_t) {
      values.push_back(Load(memory.at(tensor.id), Offset(at, tensor.strides),
                            tensor.type == CUDNN_DATA_BFLOAT16));
    });
  for (const Op &op : ops)
    known[op.y] = Compute(op, known);
  for (const Op &op : ops)
    if (const DnnTensor &y = tensors.at(op.y); !y.is_virtual)
      ForEach(y.dims, [&](const DnnExtents &at, int64_t i) {
        Store(known[op.y][i], memory.at(op.y), Offset(at, y.strides),
              y.type == CUDNN_DATA_BFLOAT16);
      });
  return "";
} catch (const std::out_of_range &) {
  return "a graph of sizes that do not fit, or that reads a tensor before it is written";
}

} // namespace boa::fake
