//===- dnn_graph.h - Graphs of ops, and what they compute --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_DNN_GRAPH_H
#define BOA_TEST_FAKE_CUDA_DNN_GRAPH_H

#include "test/fake_cuda/dnn_abi.h"

#include <array>
#include <map>
#include <string>
#include <vector>

namespace boa::fake {

struct DnnTensor {
  using Extents = std::array<int64_t, 4>;
  int64_t id = 0;
  int type = 0;
  Extents dims = {}, strides = {};
  int64_t alignment = 0;
  bool is_virtual = false, by_value = false;

  int64_t ElementBytes() const { return type == CUDNN_DATA_BFLOAT16 ? 2 : 4; }
  int64_t Elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  /// From the first to behind the last.
  int64_t Span() const;
};

/// Of tensors by their ids.
struct DnnOp {
  int descriptor; // CUDNN_BACKEND_OPERATION_*
  int mode = 0;   // of pointwise and reduction
  int64_t axis = -1;
  int64_t a = 0, b = 0, t = 0, y = 0; // 0: none
};

class DnnGraph {
public:
  /// Why it is none: sizes that do not fit, what is read before it is written, and so on; or
  /// nothing. A tensor may be named twice, if it is the same.
  std::string Add(const DnnTensor &);
  std::string Add(const DnnOp &);
  std::string Finish() const;

  /// Whether the fake has a kernel for it: for attention as cuDNN 9.19 has, by its own word
  /// (test/runtime/cuda/dnn_plan_test.cpp).
  bool IsSupported() const;
  bool IsGradient() const { return Matmuls() == 5; }
  /// As 9.19's; of a form that keeps no gradients of scores it is smaller.
  int64_t WorkspaceBytes(bool keeps_scores = true) const;
  /// Those in memory, and values.
  std::vector<DnnTensor> Bound() const;
  /// Where the bound tensors lie.
  void Run(const std::map<int64_t, char *> &memory) const;

private:
  const DnnTensor &Of(int64_t id) const { return tensors.at(id); }
  int Matmuls() const;
  bool IsWritten(int64_t id) const;
  std::map<int64_t, DnnTensor> tensors;
  std::vector<DnnOp> ops;
};

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_DNN_GRAPH_H
