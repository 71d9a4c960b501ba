//===- dnn_graph.h - Descriptors of cuDNN and graphs of its ops ----*- C++ -*-===//
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
#include <memory>
#include <string>
#include <vector>

namespace boa::fake {

class DnnGraph;

struct DnnDescriptor {
  int kind;
  bool finalized = false;
  std::map<int, std::vector<int64_t>> attributes; // numbers, enumerations, addresses
  std::shared_ptr<const DnnGraph> graph;          // of a graph, and of what is made from it
  char proposal = 0;                              // of a configuration, and of its engine and plan

  /// Throws std::out_of_range if the attribute was never set.
  int64_t Get(int attribute) const { return attributes.at(attribute).at(0); }
  int64_t Get(int attribute, int64_t otherwise) const {
    return attributes.count(attribute) ? Get(attribute) : otherwise;
  }
  const DnnDescriptor &Of(int attribute) const {
    return *reinterpret_cast<const DnnDescriptor *>(Get(attribute));
  }
};

using DnnExtents = std::array<int64_t, 4>;

struct DnnTensor {
  int64_t id = 0;
  int type = 0;
  DnnExtents dims = {}, strides = {};
  int64_t alignment = 0;
  bool is_virtual = false, by_value = false;

  int64_t Elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  /// From the first to behind the last.
  int64_t Span() const;
  int64_t Bytes() const { return Span() * (type == CUDNN_DATA_BFLOAT16 ? 2 : 4); }
};

/// Computes op by op. Only IsSupported knows of attention.
class DnnGraph {
public:
  /// Throws std::out_of_range if an attribute of an op is missing.
  explicit DnnGraph(const DnnDescriptor &);

  /// Whether it is attention that cuDNN 9.19 has a kernel for
  /// (test/runtime/cuda/dnn_plan_test.cpp).
  bool IsSupported() const;
  bool IsGradient() const { return Matmuls() == 5; }
  /// As much as 9.19 takes. A plan that keeps no gradients of scores takes less.
  int64_t WorkspaceBytes(bool keeps_scores = true) const;
  /// The tensors in memory, and values.
  std::vector<DnnTensor> Bound() const;
  /// Returns the error of the graph, or nothing.
  std::string Run(const std::map<int64_t, char *> &memory) const;

private:
  using Values = std::vector<float>; // of a tensor in the order of its dimensions
  /// Of tensors by their ids; 0: none.
  struct Op {
    int kind, mode;
    int64_t axis, a, b, t, y;
  };

  int64_t Add(const DnnDescriptor &op, int attribute);
  int Matmuls() const;
  Values Compute(const Op &, const std::map<int64_t, Values> &) const;

  std::map<int64_t, DnnTensor> tensors;
  std::vector<Op> ops;
};

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_DNN_GRAPH_H
