//===- kernel_bench_block.h - A transformer block's kernels --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_BENCH_KERNEL_BENCH_BLOCK_H
#define BOA_TEST_BENCH_KERNEL_BENCH_BLOCK_H

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Shape {
  int64_t width, heads, context, batch;
};

/// Text of @block_forward or @block_backward, with places in buffers:
/// 0 x, 1 parameters, 2 y (forward) or dy, 3 gradients, 4 dx.
class Block {
public:
  Block(Shape, bool bf16);

  int64_t parameterBytes() const { return bytes; }

  std::string forward();

  std::string backward();

private:
  struct Parameter {
    std::string name, type, stored;
    int64_t offset; // of the gradient
    int64_t storedOffset;
  };

  static std::string tensor(std::vector<int64_t> shape);
  static std::string place(int64_t buffer, int64_t offset);
  /// All parameters, as they are stored or as their gradients.
  std::string packed(bool narrow) const {
    return narrow ? "tensor<" + std::to_string(storedBytes / 2) + "xbf16>" : tensor({bytes / 4});
  }
  void add(const std::string &name, std::vector<int64_t> shape);
  std::string parameters() const;
  const std::string &type(const std::string &name) const;
  std::string heads() const {
    return std::to_string(s.heads) + ", " + std::to_string(s.heads) + " causal";
  }
  void op(const std::string &line) { text += "  %" + line + "\n"; }
  void linear(const std::string &y, const std::string &in, const std::string &inType,
              const std::string &name, const std::string &outType);
  void linearGrad(const std::string &dy, const std::string &dyType, const std::string &name,
                  const std::string &in, const std::string &inType, const std::string &dx);
  void norm(const std::string &y, const std::string &in, const std::string &name);
  void normGrad(const std::string &dy, const std::string &name, const std::string &in,
                const std::string &dx);
  /// Everything up to the activation of the feed-forward part.
  void body();

  Shape s;
  bool bf16;
  std::vector<Parameter> all;
  int64_t bytes = 0, storedBytes = 0;
  std::string x, qkv, hidden, lse, text;
};

} // namespace bench

#endif // BOA_TEST_BENCH_KERNEL_BENCH_BLOCK_H
