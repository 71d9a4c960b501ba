//===- dnn_graph.cpp - Graphs of ops, and what they compute ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Op by op, each on whole tensors, whatever the graph is: nothing here knows what attention
// is but `IsSupported`. Sums are of f64; what is between ops is rounded to the type that
// its tensor says.
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/dnn_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace boa::fake {
namespace {

using Extents = DnnTensor::Extents;

/// The elements of a tensor in order of its dimensions.
using Values = std::vector<float>;

template <typename F> void ForEach(const Extents &dims, F &&f) {
  Extents at;
  int64_t i = 0;
  for (at[0] = 0; at[0] < dims[0]; ++at[0])
    for (at[1] = 0; at[1] < dims[1]; ++at[1])
      for (at[2] = 0; at[2] < dims[2]; ++at[2])
        for (at[3] = 0; at[3] < dims[3]; ++at[3])
          f(at, i++);
}

int64_t Offset(const Extents &at, const Extents &strides) {
  int64_t offset = 0;
  for (int i = 0; i < 4; ++i)
    offset += at[i] * strides[i];
  return offset;
}

/// Where the element of another tensor is that belongs to one at `at` of `from`: the only one
/// in a dimension of one, or that of a group.
int64_t Index(const Extents &at, const Extents &from, const Extents &to) {
  int64_t index = 0;
  for (int i = 0; i < 4; ++i)
    index = index * to[i] + at[i] / (from[i] / to[i]);
  return index;
}

bool Divides(const Extents &small, const Extents &large) {
  for (int i = 0; i < 4; ++i)
    if (large[i] % small[i] != 0)
      return false;
  return true;
}

float Round(float value, int type) {
  if (type != CUDNN_DATA_BFLOAT16)
    return value;
  uint32_t bits;
  memcpy(&bits, &value, 4);
  bits = value != value ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
  bits &= 0xffff0000;
  memcpy(&value, &bits, 4);
  return value;
}

float Load(const char *memory, int64_t index, int type) {
  uint32_t bits = 0;
  if (type == CUDNN_DATA_BFLOAT16)
    memcpy(reinterpret_cast<char *>(&bits) + 2, memory + index * 2, 2);
  else
    memcpy(&bits, memory + index * 4, 4);
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

void Store(float value, char *memory, int64_t index, int type) {
  value = Round(value, type);
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (type == CUDNN_DATA_BFLOAT16)
    memcpy(memory + index * 2, reinterpret_cast<char *>(&bits) + 2, 2);
  else
    memcpy(memory + index * 4, &bits, 4);
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
  default: // CUDNN_POINTWISE_BINARY_SELECT
    return t != 0 ? x : b;
  }
}

constexpr int kMatmul = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
              kReduction = CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
              kReshape = CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR;

} // namespace

int64_t DnnTensor::Span() const {
  int64_t span = 1;
  for (int i = 0; i < 4; ++i)
    span += (dims[i] - 1) * strides[i];
  return span;
}

//===----------------------------------------------------------------------===//
// What a graph is
//===----------------------------------------------------------------------===//

std::string DnnGraph::Add(const DnnTensor &tensor) {
  auto [at, fresh] = tensors.try_emplace(tensor.id, tensor);
  const DnnTensor &known = at->second;
  if (!fresh && (known.dims != tensor.dims || known.strides != tensor.strides ||
                 known.type != tensor.type || known.is_virtual != tensor.is_virtual))
    return "two tensors with the id " + std::to_string(tensor.id);
  return "";
}

bool DnnGraph::IsWritten(int64_t id) const {
  return std::any_of(ops.begin(), ops.end(), [&](const DnnOp &op) { return op.y == id; });
}

std::string DnnGraph::Add(const DnnOp &op) {
  for (int64_t id : {op.a, op.b, op.t})
    if (id && Of(id).is_virtual && !IsWritten(id))
      return "tensor " + std::to_string(id) + " is virtual and read before it is written";
  const DnnTensor &a = Of(op.a), &y = Of(op.y);
  if (IsWritten(op.y) || y.by_value)
    return "tensor " + std::to_string(op.y) + " is written twice, or a value";
  bool fits = true;
  if (op.descriptor == kMatmul) {
    const DnnTensor &b = Of(op.b);
    fits = a.dims[0] == b.dims[0] && a.dims[0] == y.dims[0] && a.dims[1] == y.dims[1] &&
           a.dims[1] % b.dims[1] == 0 && a.dims[2] == y.dims[2] && a.dims[3] == b.dims[2] &&
           b.dims[3] == y.dims[3];
  } else if (op.descriptor == kReduction) {
    fits = Divides(y.dims, a.dims);
  } else if (op.descriptor == kReshape) {
    fits = a.Elements() == y.Elements() && a.Span() == y.Span();
  } else if (op.mode == CUDNN_POINTWISE_GEN_INDEX) {
    fits = a.dims == y.dims && op.axis >= 0 && op.axis < 4 && y.type == CUDNN_DATA_INT32;
  } else {
    for (int64_t id : {op.a, op.b, op.t})
      fits &= !id || Divides(Of(id).dims, y.dims);
    const bool unary = op.mode == CUDNN_POINTWISE_EXP || op.mode == CUDNN_POINTWISE_LOG;
    fits &= unary == !op.b && (op.mode == CUDNN_POINTWISE_BINARY_SELECT) == (op.t != 0);
  }
  if (!fits)
    return "sizes that do not fit, or operands that are not the mode's, at the op that writes "
           "tensor " +
           std::to_string(op.y);
  ops.push_back(op);
  return "";
}

std::string DnnGraph::Finish() const {
  for (const auto &[id, tensor] : tensors) {
    auto reads = [id = id](const DnnOp &op) { return op.a == id || op.b == id || op.t == id; };
    if (tensor.is_virtual && std::none_of(ops.begin(), ops.end(), reads))
      return "tensor " + std::to_string(id) + " is virtual and never read";
  }
  return "";
}

std::vector<DnnTensor> DnnGraph::Bound() const {
  std::vector<DnnTensor> bound;
  for (const auto &[id, tensor] : tensors)
    if (!tensor.is_virtual)
      bound.push_back(tensor);
  return bound;
}

int DnnGraph::Matmuls() const {
  return int(std::count_if(ops.begin(), ops.end(),
                           [](const DnnOp &op) { return op.descriptor == kMatmul; }));
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
  auto round = [](int64_t value, int64_t to) { return (value + to - 1) / to * to; };
  if (!IsGradient() || !keeps_scores)
    return kAlways;
  int64_t bytes = kAlways;
  bool first = true;
  for (const DnnOp &op : ops) {
    const Extents &dims = Of(op.y).dims;
    if (op.descriptor == kMatmul && std::exchange(first, false)) // scores
      bytes += dims[0] * dims[1] * round(dims[2], 64) * round(dims[3], 128) * 2;
    else if (op.descriptor == kMatmul && Of(op.y).type == CUDNN_DATA_BFLOAT16 &&
             Of(op.y).is_virtual) // before the sum over a group
      bytes += Of(op.y).Elements() * 2;
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// What it computes
//===----------------------------------------------------------------------===//

void DnnGraph::Run(const std::map<int64_t, char *> &memory) const {
  std::map<int64_t, Values> between;
  auto read = [&](int64_t id) -> Values {
    if (id == 0)
      return {};
    const DnnTensor &tensor = Of(id);
    if (tensor.is_virtual)
      return between.at(id);
    Values values(tensor.Elements());
    ForEach(tensor.dims, [&](const Extents &at, int64_t i) {
      values[i] = Load(memory.at(id), Offset(at, tensor.strides), tensor.type);
    });
    return values;
  };
  for (const DnnOp &op : ops) {
    const DnnTensor &x = Of(op.a), &y = Of(op.y);
    const Values a = read(op.a), b = read(op.b), t = read(op.t);
    Values result(y.Elements());
    if (op.descriptor == kMatmul) {
      const Extents &bd = Of(op.b).dims;
      ForEach(y.dims, [&](const Extents &at, int64_t i) {
        const int64_t head = at[1] / (x.dims[1] / bd[1]);
        double sum = 0;
        for (int64_t k = 0; k < bd[2]; ++k)
          sum += double(a[((at[0] * x.dims[1] + at[1]) * x.dims[2] + at[2]) * x.dims[3] + k]) *
                 b[((at[0] * bd[1] + head) * bd[2] + k) * bd[3] + at[3]];
        result[i] = float(sum);
      });
    } else if (op.descriptor == kReduction) {
      const bool max = op.mode == CUDNN_REDUCE_TENSOR_MAX;
      std::vector<double> sums(result.size(), max ? -INFINITY : 0);
      ForEach(x.dims, [&](const Extents &at, int64_t i) {
        double &sum = sums[Index(at, x.dims, y.dims)];
        sum = max ? std::max(sum, double(a[i])) : sum + a[i];
      });
      std::copy(sums.begin(), sums.end(), result.begin());
    } else if (op.descriptor == kReshape) {
      Values image(x.Span());
      ForEach(x.dims, [&](const Extents &at, int64_t i) { image[Offset(at, x.strides)] = a[i]; });
      ForEach(y.dims,
              [&](const Extents &at, int64_t i) { result[i] = image[Offset(at, y.strides)]; });
    } else if (op.mode == CUDNN_POINTWISE_GEN_INDEX) {
      ForEach(y.dims, [&](const Extents &at, int64_t i) { result[i] = float(at[op.axis]); });
    } else {
      auto element = [&](const Values &values, int64_t id, const Extents &at) {
        return id ? values[Index(at, y.dims, Of(id).dims)] : 0;
      };
      ForEach(y.dims, [&](const Extents &at, int64_t i) {
        result[i] =
            Apply(op.mode, element(a, op.a, at), element(b, op.b, at), element(t, op.t, at));
      });
    }
    for (float &value : result)
      value = Round(value, y.type);
    if (!y.is_virtual)
      ForEach(y.dims, [&](const Extents &at, int64_t i) {
        Store(result[i], memory.at(op.y), Offset(at, y.strides), y.type);
      });
    else
      between[op.y] = std::move(result);
  }
}

} // namespace boa::fake
