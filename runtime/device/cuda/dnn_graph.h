//===- dnn_graph.h - Attention as a graph of cuDNN ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes attention and its gradients to cuDNN op by op, in the form in which it finds its
// fused kernels. The plan is the first proposed configuration that cuDNN supports and whose sums
// have one order.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_DNN_GRAPH_H
#define BOA_RUNTIME_DEVICE_CUDA_DNN_GRAPH_H

#include "runtime/device/cuda/dnn_abi.h"

#include <vector>

namespace boa::cuda {

/// The descriptors of one plan, which are destroyed with it. The first error is kept, and makes
/// all later calls do nothing.
class DnnDescriptors {
public:
  explicit DnnDescriptors(const DnnApi &api) : api(api) {}
  DnnDescriptors(const DnnDescriptors &) = delete;
  ~DnnDescriptors();

  DnnDescriptor Create(int type);
  template <typename T> void Set(DnnDescriptor to, int attribute, int type, const T &value) {
    SetAll(to, attribute, type, 1, &value);
  }
  void SetAll(DnnDescriptor to, int attribute, int type, int64_t count, const void *values);
  void Finalize(DnnDescriptor);
  /// Writes at most `most` values, and returns how many there are.
  int64_t Get(DnnDescriptor from, int attribute, int type, int64_t most, void *values);

  const DnnApi &api;
  absl::Status status;

private:
  std::vector<DnnDescriptor> made;
};

/// The properties that decide a plan. A row holds all heads; rows have strides in elements. The
/// statistics of rows are ordered by sequence, by head, by time.
struct AttentionShape {
  bool gradient, causal;
  int64_t batch, time, heads, kv_heads, columns;
  int64_t q, k, v, y;                     // strides of rows
  int64_t dy = 0, dq = 0, dk = 0, dv = 0; // of a gradient alone
};

/// In words, for messages.
std::string Format(const AttentionShape &);

/// Which tensor a pointer is of: the ids that plans know them by.
enum AttentionTensor : int64_t {
  kTensorQ = 1,
  kTensorK,
  kTensorV,
  kTensorY,
  kTensorLse,
  kTensorDy,
  kTensorDq,
  kTensorDk,
  kTensorDv,
  kTensorDelta, // sums of y * dy by row
  kTensorScale, // these three are values on the host
  kTensorNever,
  kTensorOne,
};

/// The device to plan for.
struct DnnTarget {
  DnnHandle handle = nullptr;         // with its device; or, to plan without one:
  DnnDescriptor properties = nullptr; // a finalized descriptor of a device
};

/// The plan for one shape.
struct AttentionPlan {
  explicit AttentionPlan(const DnnApi &api) : descriptors(api) {}
  DnnDescriptors descriptors;
  DnnDescriptor plan = nullptr;
  int64_t workspace_bytes = 0;
};

/// A lower bound of the workspace of a plan whose sums have one order. For a gradient, it is the
/// size of the gradients of scores in bf16.
int64_t LeastWorkspace(const AttentionShape &);

/// Unimplemented: the library has no kernel for it.
absl::StatusOr<std::unique_ptr<AttentionPlan>> PlanAttention(const DnnApi &, const DnnTarget &,
                                                             const AttentionShape &);

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_DNN_GRAPH_H
