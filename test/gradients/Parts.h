//===- Parts.h - What cases are made of -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text of functions, references in plain loops, and cases of one op.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GRADIENTS_PARTS_H
#define BOA_TEST_GRADIENTS_PARTS_H

#include "test/gradients/Cases.h"

namespace boa::testing {

using Operands = const std::vector<Operand> &;
using Arguments = const std::vector<Values> &;
using Results = std::vector<Values>;

std::string tensor(std::vector<int64_t> shape, const std::string &element = "ELT");

/// func.func @f with these arguments (%a0 is the first), body and results.
std::string function(std::vector<std::string> types, const std::string &body,
                     const std::string &results, const std::string &resultTypes);

/// y[i] = f(x[i], z[i % size of z]).
Reference elementwise(std::function<double(double, double)> f);
/// The rows of x [..., width] with keys: boa.dropout, written again from its description.
Reference dropout(double probability, uint32_t site);
double geluOf(double x);
double exactGeluOf(double x);
Reference linear(bool transpose);
Results layerNorm(Operands operands, Arguments a);
Results rmsNorm(Operands operands, Arguments a);
/// `scale`, where given, is what becomes of a frequency.
Reference rotary(int64_t heads, double base, double sign,
                 std::function<double(double)> scale = nullptr);
/// With a fourth argument, the starts of documents, it is within them.
Reference attention(int64_t heads, int64_t kvHeads, bool causal, int64_t window = 0);
Results embedding(Operands operands, Arguments a);
Results crossEntropy(Operands operands, Arguments a);

// One op. `rows`, `shape` of tokens and targets: all dimensions but the last of what is
// computed on. `op` of one operand has it and its attributes in it: "scale %a0 by 0.75".
Case makeUnary(const std::string &name, const std::string &op, std::vector<int64_t> shape,
               std::function<double(double)> f);
Case makeBinary(const std::string &name, const std::string &op, std::vector<int64_t> shape,
                std::vector<int64_t> other, std::function<double(double, double)> f);
Case makeLinear(const std::string &name, std::vector<int64_t> rows, int64_t in, int64_t out,
                bool transpose, bool bias);
Case makeLayerNorm(const std::string &name, std::vector<int64_t> shape, int64_t heads = 1);
Case makeRmsNorm(const std::string &name, std::vector<int64_t> shape, int64_t heads = 1);
struct AttentionShape {
  int64_t batch, time, heads, kvHeads, d;
};
Case makeAttention(const std::string &name, const AttentionShape &shape, bool causal,
                   int64_t window = 0, int64_t documents = 0);
Case makeEmbedding(const std::string &name, int64_t vocab, int64_t width,
                   std::vector<int64_t> shape);
/// The same by two blocks of the table.
Case makeEmbeddingBlocks(const std::string &name, int64_t first, int64_t second, int64_t width,
                         std::vector<int64_t> shape);
Case makeCrossEntropy(const std::string &name, std::vector<int64_t> shape, int64_t vocab,
                      bool ignored);
/// The same by two blocks of the vocabulary, each with logits of its own.
Case makeCrossEntropyBlocks(const std::string &name, std::vector<int64_t> shape, int64_t first,
                            int64_t second, bool ignored);

/// Several threads, several blocks of attention, several ops together; sizes that are
/// less than any block; and sizes of today's models, in one dimension at a time.
void addLarge(std::vector<Case> &all);
void addLeast(std::vector<Case> &all);
void addHuge(std::vector<Case> &all);

} // namespace boa::testing

#endif // BOA_TEST_GRADIENTS_PARTS_H
