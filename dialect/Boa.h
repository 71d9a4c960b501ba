//===- Boa.h - The boa dialect ----------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialect, its types, ops and interfaces. Begin at BoaDialect.td.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_BOA_H
#define BOA_DIALECT_BOA_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace boa {
/// Succeeds if all floating-point tensors of the op have one element type.
mlir::LogicalResult verifyOneFloatType(mlir::Operation *op);

/// Some chunks of an entry of a storage that an op touches.
struct StorageAccess {
  enum class Kind {
    read,
    write,      // what was there is of no matter
    update,     // read and written
    accumulate, // added to: a reduction, free to be reordered
  };
  Kind kind;
  mlir::FlatSymbolRefAttr storage;
  llvm::SmallVector<mlir::Value> indices; // of the entry
  mlir::Value chunk;                      // the first one; null: `first`
  int64_t first = 0, count = 0;           // chunks; 0: all of the entry
  mlir::Value fresh = {};                 // where it holds, nothing is read
  bool ifDeclared = false;                // f32 weights have no lower halves, SGD no variance

  bool reads() const { return kind != Kind::write; }
  bool writes() const { return kind != Kind::read; }
};

template <typename ConcreteType>
class OneFloatType : public mlir::OpTrait::TraitBase<ConcreteType, OneFloatType> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifyOneFloatType(op); }
};
} // namespace boa

#include "dialect/BoaDialect.h.inc"
#include "dialect/BoaEnums.h.inc"
#include "dialect/BoaInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/BoaAttributes.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/BoaTypes.h.inc"
#define GET_OP_CLASSES
#include "dialect/BoaOps.h.inc"

namespace boa {

/// Names of the attributes that phases read off functions and modules.
inline constexpr llvm::StringLiteral kParamAttr = "boa.param";
inline constexpr llvm::StringLiteral kKernelAttr = "boa.kernel";
/// The types of what a kernel's buffers hold, in their order.
inline constexpr llvm::StringLiteral kContentsAttr = "boa.contents";
/// What the entry points compute, in one number: set when the step phase ends, and
/// checked when the storage phase does.
inline constexpr llvm::StringLiteral kComputesAttr = "boa.computes";

/// Frontends put it before the name that a user gave to a group: a user's names have
/// no '.', so none can meet another symbol of the module.
inline constexpr llvm::StringLiteral kGroupPrefix = "params.";
/// The name that the user gave: "block" of @params.block, and of @block.
inline llvm::StringRef getGroupName(llvm::StringRef symbol) {
  symbol.consume_front(kGroupPrefix);
  return symbol;
}
/// Names of boa.config ops, and what they hold: null where there is none.
inline constexpr llvm::StringLiteral kTrainConfig = "train", kMachineConfig = "machine";
mlir::DictionaryAttr getConfig(mlir::ModuleOp module, llvm::StringRef name);
/// Sets or replaces one.
void setConfig(mlir::ModuleOp module, llvm::StringRef name, mlir::DictionaryAttr settings);
/// Null where the module has none.
StepOp findEntryPoint(mlir::ModuleOp module, EntryPoint entry);
/// Computes an index or a condition that a pass can compute, too.
bool isIndexOp(mlir::Operation *op);
/// The storage that holds a part of the trained state of a group, or its gradient.
inline std::string getStorageName(llvm::StringRef part, llvm::StringRef group) {
  return (part + "." + getGroupName(group)).str();
}

/// What an update changes of a group, by the first part of the storage's name.
inline constexpr llvm::StringLiteral kTrainedParts[] = {"weights", "low", "momentum", "variance"};

/// The storage whose chunks a buffer holds, and which entry and chunks, are said by the
/// prefetch or create that it comes from; null for a buffer from anywhere else.
mlir::Operation *getOrigin(mlir::Value buffer);

/// A share of the step's chunks, rounded to whole chunks: how many of `chunks`
/// are delayed into the next step.
int64_t getDelayedChunks(int64_t chunks, double delay);

} // namespace boa

#endif // BOA_DIALECT_BOA_H
