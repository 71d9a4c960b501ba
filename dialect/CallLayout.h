//===- CallLayout.h - How a stage's function takes packed entries -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage's function takes and returns single tensors; storages hold packed
// entries. The layout says which tensors of a function make up which operand or
// result of a boa.call, and at which offset:
//
//   - an activation is an operand (result) by itself, and so is the gradient of a side
//     input (attribute boa.sum);
//   - parameters (or gradients of parameters, among results) of one group are
//     one packed operand (result), at the offsets of boa.group;
//   - values kept for the backward pass (attribute boa.saved) are one packed
//     operand (result) for each element type among them; those that the attribute
//     names are in packs by name;
//   - caches (attribute boa.cache) are one packed result, which a launch updates in place. They are
//     arguments of the function, too, but no operands: they come with the result.
//
// Activations come first, then the packs in order of first appearance.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_CALLLAYOUT_H
#define BOA_DIALECT_CALLLAYOUT_H

#include "dialect/Boa.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace boa {

/// One operand or result of a boa.call.
struct CallSlot {
  enum class Kind { activation, sum, group, saved, cache };
  Kind kind = Kind::activation;
  std::string group;                     // its name, without the prefix; of saved values theirs
  llvm::SmallVector<unsigned> positions; // arguments (results) of the function
  llvm::SmallVector<int64_t> offsets;    // of each, in elements of the pack
  mlir::RankedTensorType type;           // of the operand: packs are rank 1
};

struct CallLayout {
  llvm::SmallVector<CallSlot> inputs, outputs;

  /// The outputs that a launch adds to (gradients of shared results and parameters, and caches),
  /// and those that it writes whole. Its buffers come in that order.
  llvm::SmallVector<CallSlot> updates() const;
  llvm::SmallVector<CallSlot> writes() const;

  /// The layout of a function for which `findFault` finds nothing.
  static CallLayout get(mlir::FunctionOpInterface func);
  /// The reason why a call of `func` has no layout: a type that is no tensor of static
  /// shape, or a parameter that does not exist. Empty if it has one.
  static std::string findFault(mlir::FunctionOpInterface func);
};

} // namespace boa

#endif // BOA_DIALECT_CALLLAYOUT_H
