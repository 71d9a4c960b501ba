//===- dnn.h - Attention by cuDNN, where there is one -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention in bf16 and its gradients through cuDNN's fused kernels. A missing cuDNN or an
// unsupported shape is no error, since the program has kernels of its own for every case.
// `Describe` says once which are used.
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

/// One call: the shape and the addresses. A gradient reads y, lse and the rest, and writes dq,
/// dk, dv and delta.
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

  /// Opens the library at the first call. Makes a plan, unless one is known or known to be
  /// impossible. Needs the context current, as do all functions below. Fails if the library that
  /// BOA_CUDA_DNN names does not start.
  absl::Status Plan(const Attention &, int capability, Stream);
  /// Whether cuDNN computes this attention, which was planned.
  absl::StatusOr<bool> Takes(const Attention &) const;
  absl::Status Enqueue(const Attention &);
  /// Enqueues later work on this stream, in place of the one it was planned with.
  absl::Status SetStream(Stream);
  /// As for products (blas.h), but attention that cannot run is done without. Try returns whether
  /// all ran. If not, plan the kernels anew.
  int64_t TrialBytes() const;
  bool Try(void *memory);
  /// "attention by cuDNN 9.19.0"; empty: there is none.
  std::string Describe() const;

private:
  using Key = std::tuple<bool, bool, std::array<int64_t, 5>, std::array<int64_t, 8>, int64_t>;
  /// The part of a call that one execution computes: sequences, and heads of keys.
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
