//===- dnn_graph.cpp - Attention as a graph of cuDNN ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors have four dimensions: sequence, head, time, column; of scores the last is the
// key's time. Where there are fewer heads of keys and values, each is for a group of heads.
//
//   forward    s = q k^T * scale;  masked;  m = max s;  e = exp(s - m);  l = sum e
//              lse = m + log l;    y = (e / l) v
//   gradient   delta = sum y * dy;  p = exp(masked(q k^T * scale - lse));  dv = p^T dy
//              ds = (dy v^T - delta) * p * scale;  dk = ds^T q;  dq = ds k
//
// dq is the product itself. The library also takes a graph in which dq is rounded from sums
// in f32, and then adds up parts of dq in whatever order blocks end; with this one it keeps
// ds in the workspace and each sum has one owner. Its notes on engines do not tell these
// two apart (seen with 9.19), so a plan with less workspace than ds is passed over: another
// version may have the first form for either graph. That form needs room for dq in f32,
// which is no less than ds where the time is below twice the columns; there nothing tells.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/dnn_graph.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <array>
#include <utility>

namespace boa::cuda {

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

DnnDescriptors::~DnnDescriptors() {
  while (!made.empty()) {
    api.DestroyDescriptor.address(made.back());
    made.pop_back();
  }
}

DnnDescriptor DnnDescriptors::Create(int type) {
  DnnDescriptor descriptor = nullptr;
  if (status.ok())
    status = api.Call(api.CreateDescriptor, type, &descriptor);
  if (descriptor)
    made.push_back(descriptor);
  return descriptor;
}

void DnnDescriptors::SetAll(DnnDescriptor to, int attribute, int type, int64_t count,
                            const void *values) {
  if (status.ok())
    status = api.Call(api.SetAttribute, to, attribute, type, count, values);
}

void DnnDescriptors::Finalize(DnnDescriptor descriptor) {
  if (status.ok())
    status = api.Call(api.Finalize, descriptor);
}

int64_t DnnDescriptors::Get(DnnDescriptor from, int attribute, int type, int64_t most,
                            void *values) {
  int64_t count = 0;
  if (status.ok())
    status = api.Call(api.GetAttribute, from, attribute, type, most, &count, values);
  return status.ok() ? count : 0;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

namespace {

using Extents = std::array<int64_t, 4>;

/// Pointers are aligned to it, and so is each row.
constexpr int64_t kAlignment = 16;
/// Ids of what is never in memory follow.
constexpr int64_t kFirstVirtual = 100;

class GraphBuilder {
public:
  GraphBuilder(DnnDescriptors &to, const AttentionShape &shape) : to(to), shape(shape) {}

  /// The finalized graph.
  DnnDescriptor Build(DnnHandle handle) {
    if (shape.gradient)
      AddGradient();
    else
      AddForward();
    DnnDescriptor graph = to.Create(dnn_descriptor::kGraph);
    if (handle)
      to.Set(graph, dnn_attribute::kGraphHandle, dnn_type::kHandle, handle);
    to.SetAll(graph, dnn_attribute::kGraphOps, dnn_type::kDescriptor, int64_t(ops.size()),
              ops.data());
    to.Finalize(graph);
    return graph;
  }

private:
  struct Layout {
    Extents dims, strides;
  };
  Layout Scores() const {
    const int64_t t = shape.time, h = shape.heads;
    return {{shape.batch, h, t, t}, {h * t * t, t * t, t, 1}};
  }
  /// One value for each row of each head.
  Layout Statistics() const {
    const int64_t t = shape.time, h = shape.heads;
    return {{shape.batch, h, t, 1}, {h * t, t, 1, 1}};
  }
  Layout Rows(int64_t heads, int64_t stride) const {
    return {{shape.batch, heads, shape.time, shape.columns},
            {shape.time * stride, shape.columns, stride, 1}};
  }
  /// The last two dimensions exchanged.
  static Layout Transposed(Layout layout) {
    std::swap(layout.dims[2], layout.dims[3]);
    std::swap(layout.strides[2], layout.strides[3]);
    return layout;
  }

  DnnDescriptor Tensor(int64_t id, const Layout &layout, int type, bool is_virtual, bool by_value) {
    DnnDescriptor tensor = to.Create(dnn_descriptor::kTensor);
    const int64_t alignment = by_value ? sizeof(float) : kAlignment;
    to.Set(tensor, dnn_attribute::kTensorType, dnn_type::kDataType, type);
    to.SetAll(tensor, dnn_attribute::kTensorDims, dnn_type::kInt64, 4, layout.dims.data());
    to.SetAll(tensor, dnn_attribute::kTensorStrides, dnn_type::kInt64, 4, layout.strides.data());
    to.Set(tensor, dnn_attribute::kTensorId, dnn_type::kInt64, id);
    to.Set(tensor, dnn_attribute::kTensorAlignment, dnn_type::kInt64, alignment);
    if (is_virtual)
      to.Set(tensor, dnn_attribute::kTensorIsVirtual, dnn_type::kBoolean, is_virtual);
    if (by_value)
      to.Set(tensor, dnn_attribute::kTensorIsByValue, dnn_type::kBoolean, by_value);
    to.Finalize(tensor);
    return tensor;
  }
  DnnDescriptor InMemory(AttentionTensor id, const Layout &layout, int type = kDnnBfloat16) {
    return Tensor(id, layout, type, /*is_virtual=*/false, /*by_value=*/false);
  }
  DnnDescriptor Between(const Layout &layout, int type = kDnnFloat) {
    return Tensor(next_virtual++, layout, type, /*is_virtual=*/true, /*by_value=*/false);
  }
  DnnDescriptor Number(AttentionTensor id) {
    return Tensor(id, {{1, 1, 1, 1}, {1, 1, 1, 1}}, kDnnFloat, /*is_virtual=*/false,
                  /*by_value=*/true);
  }

  void AddOp(DnnDescriptor op) {
    to.Finalize(op);
    ops.push_back(op);
  }
  static constexpr int kNoAxis = -1;
  /// y = mode(x, b), or a selection by t. Null: the mode has none.
  void Pointwise(int mode, DnnDescriptor x, DnnDescriptor b, DnnDescriptor y,
                 DnnDescriptor t = nullptr, int64_t axis = kNoAxis) {
    const int type = mode == kDnnAtLeast ? kDnnBoolean : kDnnFloat;
    DnnDescriptor pointwise = to.Create(dnn_descriptor::kPointwise);
    to.Set(pointwise, dnn_attribute::kPointwiseMode, dnn_type::kPointwiseMode, mode);
    to.Set(pointwise, dnn_attribute::kPointwiseType, dnn_type::kDataType, type);
    if (axis != kNoAxis)
      to.Set(pointwise, dnn_attribute::kPointwiseAxis, dnn_type::kInt64, axis);
    to.Finalize(pointwise);
    DnnDescriptor op = to.Create(dnn_descriptor::kPointwiseOp);
    auto set = [&](int attribute, DnnDescriptor descriptor) {
      if (descriptor)
        to.Set(op, attribute, dnn_type::kDescriptor, descriptor);
    };
    set(dnn_attribute::kPointwiseOpDesc, pointwise);
    set(dnn_attribute::kPointwiseOpX, x);
    set(dnn_attribute::kPointwiseOpB, b);
    set(dnn_attribute::kPointwiseOpT, t);
    set(dnn_attribute::kPointwiseOpY, y);
    AddOp(op);
  }
  /// c = a b, sums in f32.
  void Matmul(DnnDescriptor a, DnnDescriptor b, DnnDescriptor c) {
    DnnDescriptor matmul = to.Create(dnn_descriptor::kMatmul);
    to.Set(matmul, dnn_attribute::kMatmulType, dnn_type::kDataType, kDnnFloat);
    to.Finalize(matmul);
    DnnDescriptor op = to.Create(dnn_descriptor::kMatmulOp);
    to.Set(op, dnn_attribute::kMatmulOpDesc, dnn_type::kDescriptor, matmul);
    to.Set(op, dnn_attribute::kMatmulOpA, dnn_type::kDescriptor, a);
    to.Set(op, dnn_attribute::kMatmulOpB, dnn_type::kDescriptor, b);
    to.Set(op, dnn_attribute::kMatmulOpC, dnn_type::kDescriptor, c);
    AddOp(op);
  }
  /// Along the dimensions in which y has one and x more.
  void Reduce(int how, DnnDescriptor x, DnnDescriptor y) {
    DnnDescriptor reduction = to.Create(dnn_descriptor::kReduction);
    to.Set(reduction, dnn_attribute::kReductionType, dnn_type::kDataType, kDnnFloat);
    to.Set(reduction, dnn_attribute::kReductionOperator, dnn_type::kReduction, how);
    to.Finalize(reduction);
    DnnDescriptor op = to.Create(dnn_descriptor::kReductionOp);
    to.Set(op, dnn_attribute::kReductionOpDesc, dnn_type::kDescriptor, reduction);
    to.Set(op, dnn_attribute::kReductionOpX, dnn_type::kDescriptor, x);
    to.Set(op, dnn_attribute::kReductionOpY, dnn_type::kDescriptor, y);
    AddOp(op);
  }
  /// The same elements with dimensions in another order.
  void Reshape(DnnDescriptor x, DnnDescriptor y) {
    DnnDescriptor op = to.Create(dnn_descriptor::kReshapeOp);
    to.Set(op, dnn_attribute::kReshapeOpX, dnn_type::kDescriptor, x);
    to.Set(op, dnn_attribute::kReshapeOpY, dnn_type::kDescriptor, y);
    AddOp(op);
  }

  /// Scores of keys after their query are never seen, where attention is causal.
  DnnDescriptor Masked(DnnDescriptor scores) {
    if (!shape.causal)
      return scores;
    constexpr int64_t kQuery = 2, kKey = 3; // dimensions
    DnnDescriptor query = Between(Scores(), kDnnInt32), key = Between(Scores(), kDnnInt32);
    DnnDescriptor sees = Between(Scores(), kDnnBoolean), masked = Between(Scores());
    Pointwise(kDnnIndex, scores, nullptr, query, nullptr, kQuery);
    Pointwise(kDnnIndex, scores, nullptr, key, nullptr, kKey);
    Pointwise(kDnnAtLeast, query, key, sees);
    Pointwise(kDnnSelect, scores, Number(kTensorNever), masked, sees);
    return masked;
  }

  void AddForward() {
    DnnDescriptor q = InMemory(kTensorQ, Rows(shape.heads, shape.q));
    DnnDescriptor k = InMemory(kTensorK, Transposed(Rows(shape.kv_heads, shape.k)));
    DnnDescriptor v = InMemory(kTensorV, Rows(shape.kv_heads, shape.v));
    DnnDescriptor products = Between(Scores()), scaled = Between(Scores());
    Matmul(q, k, products);
    Pointwise(kDnnMul, products, Number(kTensorScale), scaled);
    DnnDescriptor scores = Masked(scaled);
    DnnDescriptor maxima = Between(Statistics()), below = Between(Scores());
    DnnDescriptor powers = Between(Scores()), sums = Between(Statistics());
    Reduce(kDnnReduceMax, scores, maxima);
    Pointwise(kDnnSub, scores, maxima, below);
    Pointwise(kDnnExp, below, nullptr, powers);
    Reduce(kDnnReduceAdd, powers, sums);
    DnnDescriptor logarithms = Between(Statistics());
    Pointwise(kDnnLog, sums, nullptr, logarithms);
    Pointwise(kDnnAdd, maxima, logarithms, InMemory(kTensorLse, Statistics(), kDnnFloat));
    DnnDescriptor weights = Between(Scores(), kDnnBfloat16);
    Pointwise(kDnnDiv, powers, sums, weights);
    Matmul(weights, v, InMemory(kTensorY, Rows(shape.heads, shape.y)));
  }

  /// The product of `scores`^T and `rows` of all heads, or, of a group of heads, their sum.
  void AddKeyGradient(DnnDescriptor scores, DnnDescriptor rows, AttentionTensor id,
                      int64_t stride) {
    DnnDescriptor transposed = Between(Transposed(Scores()), kDnnBfloat16);
    Reshape(scores, transposed);
    DnnDescriptor result = InMemory(id, Rows(shape.kv_heads, stride));
    if (shape.heads == shape.kv_heads)
      return Matmul(transposed, rows, result);
    const int64_t t = shape.time, h = shape.heads, d = shape.columns;
    DnnDescriptor each = Between({{shape.batch, h, t, d}, {h * t * d, t * d, d, 1}}, kDnnBfloat16);
    Matmul(transposed, rows, each);
    Reduce(kDnnReduceAdd, each, result);
  }

  void AddGradient() {
    const int64_t t = shape.time, h = shape.heads, d = shape.columns;
    DnnDescriptor q = InMemory(kTensorQ, Rows(h, shape.q));
    const Layout keys = Transposed(Rows(shape.kv_heads, shape.k));
    DnnDescriptor k = InMemory(kTensorK, keys);
    DnnDescriptor v = InMemory(kTensorV, Transposed(Rows(shape.kv_heads, shape.v)));
    DnnDescriptor y = InMemory(kTensorY, Rows(h, shape.y));
    DnnDescriptor dy = InMemory(kTensorDy, Rows(h, shape.dy));
    DnnDescriptor lse = InMemory(kTensorLse, Statistics(), kDnnFloat);
    DnnDescriptor scale = Number(kTensorScale);

    DnnDescriptor products = Between({{shape.batch, h, t, d}, {h * t * d, t * d, h * d, 1}});
    DnnDescriptor sums = Between(Statistics());
    DnnDescriptor delta = InMemory(kTensorDelta, Statistics(), kDnnFloat);
    Pointwise(kDnnMul, dy, y, products);
    Reduce(kDnnReduceAdd, products, sums);
    // Without this op the library wants three times the workspace.
    Pointwise(kDnnMul, sums, Number(kTensorOne), delta);

    DnnDescriptor unscaled = Between(Scores()), scaled = Between(Scores());
    DnnDescriptor below = Between(Scores()), p = Between(Scores());
    Matmul(q, k, unscaled);
    Pointwise(kDnnMul, unscaled, scale, scaled);
    Pointwise(kDnnSub, scaled, lse, below);
    Pointwise(kDnnExp, Masked(below), nullptr, p);
    AddKeyGradient(p, dy, kTensorDv, shape.dv);

    DnnDescriptor dp = Between(Scores()), centred = Between(Scores());
    DnnDescriptor weighted = Between(Scores()), ds = Between(Scores());
    Matmul(dy, v, dp);
    Pointwise(kDnnSub, dp, delta, centred);
    Pointwise(kDnnMul, centred, p, weighted);
    Pointwise(kDnnMul, weighted, scale, ds);
    AddKeyGradient(ds, q, kTensorDk, shape.dk);

    DnnDescriptor rows = Between(Transposed(keys), kDnnBfloat16);
    Reshape(k, rows);
    Matmul(ds, rows, InMemory(kTensorDq, Rows(h, shape.dq)));
  }

  DnnDescriptors &to;
  const AttentionShape &shape;
  std::vector<DnnDescriptor> ops;
  int64_t next_virtual = kFirstVirtual;
};

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Configurations that the library proposes, best first.
std::vector<DnnDescriptor> Propose(DnnDescriptors &all, const DnnTarget &target,
                                   DnnDescriptor graph, int mode) {
  DnnDescriptor heuristic = all.Create(dnn_descriptor::kHeuristic);
  all.Set(heuristic, dnn_attribute::kHeuristicGraph, dnn_type::kDescriptor, graph);
  all.Set(heuristic, dnn_attribute::kHeuristicMode, dnn_type::kHeurMode, mode);
  if (target.properties)
    all.Set(heuristic, dnn_attribute::kHeuristicDevice, dnn_type::kDescriptor, target.properties);
  all.Finalize(heuristic);
  const int64_t count =
      all.Get(heuristic, dnn_attribute::kHeuristicResults, dnn_type::kDescriptor, 0, nullptr);
  std::vector<DnnDescriptor> configs;
  for (int64_t i = 0; i < count; ++i)
    configs.push_back(all.Create(dnn_descriptor::kEngineConfig));
  if (all.status.ok() && count > 0)
    configs.resize(std::min(count, all.Get(heuristic, dnn_attribute::kHeuristicResults,
                                           dnn_type::kDescriptor, count, configs.data())));
  return configs;
}

/// Whether the library says of it that it does not sum in one order, or may say so: of more notes
/// than it is known to have.
bool IsNondeterministic(DnnDescriptors &all, DnnDescriptor config) {
  DnnDescriptor engine = all.Create(dnn_descriptor::kEngine);
  all.Get(config, dnn_attribute::kConfigEngine, dnn_type::kDescriptor, 1, &engine);
  int notes[kDnnNotes] = {};
  const int64_t count =
      all.Get(engine, dnn_attribute::kEngineNotes, dnn_type::kNumericalNote, kDnnNotes, notes);
  return count > kDnnNotes ||
         std::find(notes, notes + count, kDnnNondeterministic) != notes + count;
}

/// Null: the library does not support it after all. That is no error.
DnnDescriptor Finish(DnnDescriptors &all, const DnnTarget &target, DnnDescriptor config) {
  DnnDescriptor plan = all.Create(dnn_descriptor::kPlan);
  if (target.handle)
    all.Set(plan, dnn_attribute::kPlanHandle, dnn_type::kHandle, target.handle);
  if (target.properties)
    all.Set(plan, dnn_attribute::kPlanDevice, dnn_type::kDescriptor, target.properties);
  all.Set(plan, dnn_attribute::kPlanConfig, dnn_type::kDescriptor, config);
  if (!all.status.ok() || all.api.Finalize.address(plan) != 0)
    return nullptr;
  return plan;
}

} // namespace

int64_t LeastWorkspace(const AttentionShape &s) {
  constexpr int64_t kTile = 64;
  const int64_t time = (s.time + kTile - 1) / kTile * kTile;
  return s.gradient ? s.batch * s.heads * time * time * 2 : 0;
}

absl::StatusOr<std::unique_ptr<AttentionPlan>>
PlanAttention(const DnnApi &api, const DnnTarget &target, const AttentionShape &shape) {
  auto result = std::make_unique<AttentionPlan>(api);
  DnnDescriptors &all = result->descriptors;
  DnnDescriptor graph = GraphBuilder(all, shape).Build(target.handle);
  if (!all.status.ok())
    return all.status;
  absl::Status failed; // of a mode, which leaves the other
  bool is_ordered = true;
  for (int mode : {kDnnHeurBest, kDnnHeurFallback}) {
    for (DnnDescriptor config : Propose(all, target, graph, mode)) {
      if (IsNondeterministic(all, config) || !all.status.ok())
        continue;
      result->plan = Finish(all, target, config);
      if (!result->plan)
        continue;
      all.Get(result->plan, dnn_attribute::kPlanWorkspace, dnn_type::kInt64, 1,
              &result->workspace_bytes);
      is_ordered = result->workspace_bytes >= LeastWorkspace(shape);
      if (all.status.ok() && is_ordered)
        return result;
    }
    failed.Update(std::exchange(all.status, absl::OkStatus()));
  }
  if (!failed.ok())
    return failed;
  return absl::UnimplementedError(absl::StrCat("the library proposes no kernel for it",
                                               is_ordered ? "" : " that adds up in one order"));
}

} // namespace boa::cuda
