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

#include "runtime/abi/abi.h"
#include "runtime/abi/float32.h"
#include "runtime/abi/frozen.h"
#include "runtime/abi/sizes.h"
#include "runtime/support/checked.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"

namespace boa {
/// The verifiers of ops hold to the sizes of runtime/abi/sizes.h, and to this one of a dimension,
/// which BLAS takes in 32 bits. So a pass may multiply and add the sizes of one op. Sums over a
/// module are Checked.
inline constexpr int64_t kMostExtent = INT32_MAX;
/// The most entries of a storage, and the most iterations of a step. Passes keep each of them.
inline constexpr int64_t kMostEntries = 1 << 18, kMostIterations = 1 << 22;
/// Whether it is a tensor of static shape within these sizes, none of them 0.
bool hasSize(mlir::Type type);
/// The same, and each element is whole bytes.
bool hasByteSize(mlir::Type type);

/// The type of a sum of such tensors: f32 for bf16, else the type itself.
mlir::RankedTensorType getSumType(mlir::Type tensor);
/// Succeeds if all floating-point tensors of the op have one element type, but for
/// `sums`, which have that of getSumType.
mlir::LogicalResult verifyOneFloatType(mlir::Operation *op, mlir::ValueRange sums = {});

/// The chunks of an entry of a storage that an op touches.
struct StorageAccess {
  enum class Kind {
    read,
    write,      // the old contents do not matter
    update,     // read and written
    accumulate, // added to: a reduction, free to be reordered
  };
  Kind kind;
  mlir::FlatSymbolRefAttr storage;
  llvm::SmallVector<mlir::Value> indices; // of the entry
  mlir::Value chunk;                      // the first one; null: `first`
  int64_t first = 0, count = 0;           // chunks; 0: all of the entry
  mlir::Value fresh = {};                 // if it holds, nothing is read

  bool mayRead() const { return kind != Kind::write; }
  bool writes() const { return kind != Kind::read; }
};

/// The queue on which an op of the storage phase runs. Ops of the step phase alone have none.
enum class Queue { none, transfer, compute, optimizer };

/// The values of indices and conditions at one point of a run.
class IndexValues {
public:
  virtual ~IndexValues() = default;
  virtual int64_t get(mlir::Value value) const = 0;
  /// Whether the loop of this induction variable is in its first, and in its last iteration.
  virtual std::pair<bool, bool> getEnds(mlir::Value induction) const = 0;
};

template <typename ConcreteType>
class OneFloatType : public mlir::OpTrait::TraitBase<ConcreteType, OneFloatType> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifyOneFloatType(op); }
};
template <typename ConcreteType>
class MatrixProduct : public mlir::OpTrait::TraitBase<ConcreteType, MatrixProduct> {};
template <typename ConcreteType>
class AttentionProduct : public mlir::OpTrait::TraitBase<ConcreteType, AttentionProduct> {};
template <typename ConcreteType>
class RowByRow : public mlir::OpTrait::TraitBase<ConcreteType, RowByRow> {};
template <typename ConcreteType>
class WidensItself : public mlir::OpTrait::TraitBase<ConcreteType, WidensItself> {};
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

// Names of the attributes that one pass leaves for another. Attributes.cpp says where each may
// stand, and what it may be.

/// On arguments and results of a stage's functions: their parameter, or the parameter of their
/// gradient; or a mark that forward keeps the value for backward, which is its name if it lies in
/// a storage by itself; or that the value is added to other gradients of a result. On an argument
/// that is a cache, and with the argument's number on the result that the cache is after the call.
inline constexpr llvm::StringLiteral kParamAttr = "boa.param", kSavedAttr = "boa.saved",
                                     kSumAttr = "boa.sum", kCacheAttr = "boa.cache";
/// On an op of a stage's body: the name by which a plan finds its results, and what the plan says
/// of them (ActivationSettings).
inline constexpr llvm::StringLiteral kNameAttr = "boa.name", kActivationAttr = "boa.activation";
/// On a product in a stage's body: forward uses its result more than once.
inline constexpr llvm::StringLiteral kSharedAttr = "boa.shared";
/// On a saved result of a stage's function, and on its storage until --boa-insert-offload: a place
/// of its own, instead of that of its role.
inline constexpr llvm::StringLiteral kPlaceAttr = "boa.place";
/// On a group: it belongs to a layer, also if there is only one.
inline constexpr llvm::StringLiteral kLayerAttr = "boa.layer";
/// The functions of the host that --kernel-emit-optimizer makes (runtime/abi/optimizer.h).
inline constexpr llvm::StringLiteral kPrepareFunction = "boa_prepare_update",
                                     kUpdateFunction = "boa_update";
/// On the module: the most chunks that a group has. Simulations set it, since their time depends on
/// that number.
inline constexpr llvm::StringLiteral kMostChunksAttr = "boa.most_chunks";
/// On a module: the most bytes of workspace that a kernel needs, and those of them that only a
/// library's attention uses.
inline constexpr llvm::StringLiteral kWorkspaceAttr = "boa.workspace",
                                     kAttentionScratchAttr = "boa.attention_scratch";
/// On a module: bytes of the constants that its kernels read, tables of angles among them, which
/// are in the device's memory beside the arena.
inline constexpr llvm::StringLiteral kConstantsAttr = "boa.constants";
/// On a function of the device: the bytes of all its arguments. A launch moves at least these. On
/// one that is emulated: the bytes of shared memory of a block, and the number of its arguments.
inline constexpr llvm::StringLiteral kMemoryAttr = "boa.memory",
                                     kSharedBytesAttr = "boa.shared_bytes",
                                     kArgumentsAttr = "boa.arguments";
/// On a kernel's arguments and results: their place, index of the buffer and byte offset in it.
inline constexpr llvm::StringLiteral kBufferAttr = "boa.buffer", kOffsetAttr = "boa.offset";
/// On a kernel's argument: the result that is accumulated in its memory.
inline constexpr llvm::StringLiteral kResultAttr = "boa.result";
/// On a module: bytes of memory that the plan takes, with constants, and the device's part of it.
inline constexpr llvm::StringLiteral kArenaAttr = "boa.arena",
                                     kArenaDeviceAttr = "boa.arena_device";
/// On a module: a hash of the results of the entry points. Set at the end of the step phase,
/// and checked at the end of the storage phase.
inline constexpr llvm::StringLiteral kComputesAttr = "boa.computes";
/// On a module whose model phase is gone: its text, for the descriptor
/// (passes/model/CanonicalText.h).
inline constexpr llvm::StringLiteral kCanonicalTextAttr = "boa.computation";

/// The prefix that frontends put before the name that a user gave to a group. A user's names have
/// no '.', so none can meet another symbol of the module.
inline constexpr llvm::StringLiteral kGroupPrefix = "params.";
/// The part of a storage's name that stands behind the role: "block" of @params.block and of
/// @block, "frozen.block" of @frozen.block.
inline llvm::StringRef getGroupName(llvm::StringRef symbol) {
  symbol.consume_front(kGroupPrefix);
  return symbol;
}
/// The name that the user gave: "block" of @params.block, of @block, of @frozen.block and of
/// @blocks.block.
inline llvm::StringRef getUserName(llvm::StringRef symbol) {
  symbol = getGroupName(symbol);
  symbol.consume_front(kFrozenPrefix);
  symbol.consume_front(kPartsPrefix);
  return symbol;
}
/// Whether the entries of the group are parts of the same parameters.
inline bool isOfParts(llvm::StringRef symbol) {
  symbol.consume_front(kFrozenPrefix);
  return symbol.starts_with(kPartsPrefix);
}
/// The parameters, frozen or not, of all groups with that user's name, in the order of their
/// stage.
llvm::SmallVector<ParamOp> getParamsOf(mlir::ModuleOp module, llvm::StringRef user);
/// Names of boa.config ops, and their settings: null if the module has none.
inline constexpr llvm::StringLiteral kModelConfig = "model", kTrainConfig = "train",
                                     kPlanConfig = "plan", kMachineConfig = "machine";
mlir::DictionaryAttr getConfig(mlir::ModuleOp module, llvm::StringRef name);
/// Sets or replaces one of them.
void setConfig(mlir::ModuleOp module, llvm::StringRef name, mlir::DictionaryAttr settings);
/// Gives the arguments of each stage's functions locations that carry names: printed with
/// OpPrintingFlags::printNameLocAsPrefix, `%arg1` is `%ln1_w`.
void nameArguments(mlir::ModuleOp module);
/// Returns null if the module has none.
StepOp findEntryPoint(mlir::ModuleOp module, EntryPoint entry);

/// Inputs that passes know by name (boa.input).
inline constexpr llvm::StringLiteral kTokens = "tokens", kTargets = "targets",
                                     kDocumentStarts = "document_starts",
                                     kDropoutKeys = "dropout_keys";
/// The name of the storage for a role, of the input, group or stage `of` if each has one:
/// "checkpoints", "weights.block", "input.tokens".
std::string getStorageName(Role role, llvm::StringRef of = {});
/// Returns null if the module has none.
StorageOp findStorage(mlir::ModuleOp module, Role role, llvm::StringRef of = {});
/// The name of the storage of an optimizer's state: "momentum.block".
std::string getStateName(llvm::StringRef state, llvm::StringRef group);
/// The storages of a group that an update changes: weights, the lower halves of master weights
/// if there are any, then the states of the optimizer, in alphabetical order.
llvm::SmallVector<StorageOp, 4> getTrainedStorages(mlir::ModuleOp module, llvm::StringRef group);
/// Returns null if the module has none.
OptimizerOp findOptimizer(mlir::ModuleOp module);
/// Whether a state of this type is stored in 8 bits: si8, ui8.
bool isCode(mlir::Type state);
/// The type of the entries of a group's storage for a state of this type. For codes it is
/// tensor<...xi8>: in each chunk the codes, then the scales (runtime/abi/optimizer.h).
mlir::RankedTensorType getStateEntryType(GroupOp group, mlir::Type state);

/// The name of a function of a stage: "block_forward".
std::string getFunctionName(llvm::StringRef stage, StageFunction function);

/// The op that opened a buffer: its first access is what the buffer holds. Null for other values.
AccessOpInterface getOrigin(mlir::Value buffer);
/// Whether an op of the storage phase computes on buffers: a kernel, an update or a norm.
bool computes(mlir::Operation *op);
/// Whether an op touches the storage by name. With `writes`, whether it may write there.
bool touches(mlir::Operation *op, llvm::StringRef storage, bool writes = false);
/// The ops within a block that touch each storage. With `writes`, those that may write there.
llvm::StringMap<llvm::SmallVector<mlir::Operation *, 4>> findAccesses(mlir::Block &block,
                                                                      bool writes = false);
/// The storage of a buffer; empty for other values.
llvm::StringRef getStorageOf(mlir::Value buffer);
/// Whether two indices are one value, or equal constants.
bool isSameIndex(mlir::Value a, mlir::Value b);

/// The number of elements of which a group's chunks are multiples: whole blocks also in bf16.
inline constexpr int64_t kChunkUnit = BOA_BLOCK_BYTES / 2;

/// The number of `chunks` that are delayed into the next step: the share, rounded to whole
/// chunks.
int64_t getDelayedChunks(int64_t chunks, double delay);

} // namespace boa

#endif // BOA_DIALECT_BOA_H
