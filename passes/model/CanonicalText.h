//===- CanonicalText.h - The computation that a state belongs to -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state may be continued by another program of the same computation. This prints the
// computation of a module in the model phase: the same text for the same computation.
//
//   stage block repeat 4
//     param ln1_w [192]
//     input [64, 192]
//     %1 = layer_norm input, @ln1_w, @ln1_b {eps = 1e-05} : [64, 192]
//     return %1
//
// The text holds ops, attributes, shapes and parameters in their order. It leaves out
// the dimension of sequences, element types and casts, initialisers, names of values and
// source locations. An op stands behind its operands, and equal ops stand once. The operands of a
// sum or product of one shape are sorted by what they compute.
//
// An argument has the name of what it takes: `tokens`, `targets`, `result(embed)`,
// `result(embed#1)`. The first argument is `input` if it takes the result of the stage before, or
// in the first stage the tokens. Of several others that take the same, the second is
// `result(embed)'2`.
//
// The runtime stores the text and compares it by line (runtime/state/computation.h):
// a change of the form is a new version.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_MODEL_CANONICALTEXT_H
#define BOA_PASSES_MODEL_CANONICALTEXT_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>

namespace boa {

/// The version of the form of the text; 0 is no version.
inline constexpr int32_t kCanonicalVersion = 1;

/// Prints the text of a model that --boa-verify-model accepts.
std::string printCanonicalText(mlir::ModuleOp module);

/// The XXH3 of 128 bits, in hexadecimal.
std::string hashCanonicalText(llvm::StringRef text);

} // namespace boa

#endif // BOA_PASSES_MODEL_CANONICALTEXT_H
