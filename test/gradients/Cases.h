//===- Cases.h - Every compute op, in several shapes ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GRADIENTS_CASES_H
#define BOA_TEST_GRADIENTS_CASES_H

#include "test/gradients/Values.h"

#include <functional>
#include <ostream>

namespace boa::testing {

using Reference =
    std::function<std::vector<Values>(const std::vector<Operand> &, const std::vector<Values> &)>;

struct Case {
  std::string name;
  std::string text;     // function @f; the element types are ELT and WIDE
  Reference reference;  // plain C++, in doubles; may be null
  int64_t indices = 0;  // i32 arguments are below this
  bool ignored = false; // and some of them negative
  bool differentiable = true;
  bool large = false;        // differences along one direction only
  bool huge = false;         // and what is costly is left out
  bool slowEmulated = false; // takes long where a GPU's kernels are emulated
  /// If not 0, i32 arguments are the starts of documents, [batch, time], of at most so many rows.
  int64_t documents = 0;
};

/// For test messages.
inline std::ostream &operator<<(std::ostream &stream, const Case &c) { return stream << c.name; }

const std::vector<Case> &cases();

/// The parts of a case that a kernel or a library may round once more to bf16.
struct MoreRoundings {
  /// The weights of attention, before they multiply values.
  bool attention = false;
  /// A product before its bias is added: cuBLASLt does where rows are no multiple of 16 bytes.
  /// The product may be some times the sum. An H100's errors are this arithmetic's, to the digit.
  bool products = false;
};

/// How far results, or the gradient, of a case are from those in f64 of the same arguments,
/// and may be.
struct Difference {
  double found, allowed;
};
Difference compareWithDouble(const Case &c, const std::string &element, bool gradient,
                             const Values &got, const Values &want, MoreRoundings more);

/// Seeds of a gradient, one for each result.
std::vector<Values> makeSeeds(const std::vector<Operand> &results);

/// Arguments of a case: normal values, and indices in range.
std::vector<Values> makeArguments(const Case &c, const std::vector<Operand> &operands);

} // namespace boa::testing

#endif // BOA_TEST_GRADIENTS_CASES_H
