//===- dnn.h - Attention by cuDNN, where there is one -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention in bf16 and its gradients through cuDNN's fused kernels. Not to have cuDNN, or
// not for some shape, is no error: the program has kernels of its own for all of it, and
// what is used is said once (`Describe`).
//
// BOA_CUDA_DNN names other libraries than libcudnn.so.9, separated by colons; `none`: none
// is used.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_DNN_H
#define BOA_RUNTIME_DEVICE_CUDA_DNN_H

#include "runtime/device/cuda/dnn_graph.h"

#include <array>
#include <map>
#include <string>
#include <tuple>

namespace boa::cuda {

/// One call: the shape, and where everything is. Of a gradient y, lse and the rest are read and
/// dq, dk, dv and delta are written.
struct Attention {
  AttentionShape shape;
  void *q, *k, *v, *y, *lse;
  void *dy, *dq, *dk, *dv, *delta; // of a gradient
  void *scratch;
  int64_t scratch_bytes;
};

class Dnn {
public:
  Dnn() = default;
  ~Dnn();

  /// Looks for the library when it is first asked, and for a plan, unless one is known, or known
  /// not to be. With the context current, as for all that follows. An error: the library that
  /// BOA_CUDA_DNN names does not begin.
  absl::Status Plan(const Attention &, int capability, Stream);
  /// Of what was planned: whether cuDNN does it.
  absl::StatusOr<bool> Takes(const Attention &) const;
  absl::Status Enqueue(const Attention &);
  /// Where what follows is enqueued, in place of the stream that it was planned with.
  absl::Status SetStream(Stream);
  /// As of products (blas.h), but that what cannot be run is done without: whether all was. If not,
  /// kernels are to be planned anew.
  int64_t TrialBytes() const;
  bool Try(void *memory);
  /// "attention by cuDNN 9.19.0"; empty: there is none.
  std::string Describe() const;

private:
  using Key = std::tuple<bool, bool, std::array<int64_t, 5>, std::array<int64_t, 8>, int64_t>;
  /// What one execution is of: so many sequences, so many heads of keys.
  struct Part {
    int64_t sequences, kv_heads;
  };
  struct Planned {
    Attention first; // that was planned
    Part part = {};
    std::unique_ptr<AttentionPlan> plan; // null: there is none
    bool is_taken = false;               // cuDNN does it
  };

  static Key KeyOf(const Attention &);
  absl::Status Open(Stream);
  absl::Status PlanParts(const Attention &, Planned &);
  void Decline(Planned &, const absl::Status &why);
  absl::Status Run(const Attention &, const Planned &);
  absl::Status Execute(const Attention &, const Planned &, int64_t sequence, int64_t kv_head);

  std::unique_ptr<DnnApi> api; // null: there is none
  DnnHandle handle = nullptr;
  bool looked = false;
  std::string lacking; // why not, or why not always; empty: it does all
  std::map<Key, Planned> plans;
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_DNN_H
