//===- BoaStep.cpp - Step and storage ops: syntax and verifiers -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// boa.storage
//===----------------------------------------------------------------------===//

LogicalResult StorageOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError("expected entries of a static tensor type but found ") << getType();
  for (int64_t dim : getDims())
    if (dim <= 0)
      return emitOpError("expected positive dimensions");
  if (getChunks() < 1 || type.getNumElements() % getChunks() != 0)
    return emitOpError("expected a number of chunks that divides ")
           << type.getNumElements() << " elements but found " << getChunks();
  return success();
}

int64_t StorageOp::getEntryBytes() {
  RankedTensorType type = getEntryType();
  int64_t bytes = type.getNumElements() * (type.getElementTypeBitWidth() / 8);
  return llvm::alignTo(bytes / getChunks(), 4096) * getChunks();
}

//===----------------------------------------------------------------------===//
// boa.step
//===----------------------------------------------------------------------===//

void StepOp::build(OpBuilder &builder, OperationState &state, StringRef name) {
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  Block &block = state.addRegion()->emplaceBlock();
  block.addArguments({builder.getIndexType(), builder.getIndexType()},
                     {state.location, state.location});
}

// boa.step @step(%step, %pending) { ... }
ParseResult StepOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> args;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parser.parseArgumentList(args, OpAsmParser::Delimiter::Paren) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  if (args.size() != 2)
    return parser.emitError(parser.getNameLoc(), "expected two arguments: step, pending");
  for (auto &arg : args)
    arg.type = parser.getBuilder().getIndexType();
  return parser.parseRegion(*result.addRegion(), args);
}

void StepOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(' << getStep() << ", " << getPending() << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getSymNameAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

// Passes enumerate the program, so they must be able to compute every index.
LogicalResult StepOp::verifyRegions() {
  WalkResult walked = getBody().walk([](Operation *op) {
    if (isa<arith::ConstantOp, ShiftOp, AtFirstOp, AtLastOp, arith::AndIOp>(op) ||
        llvm::none_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndex(); }))
      return WalkResult::advance();
    op->emitOpError("computes an index or a condition in a boa.step: expected boa.shift, "
                    "boa.at_first, boa.at_last, arith.andi or a constant");
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// boa.loop
//===----------------------------------------------------------------------===//

void LoopOp::build(OpBuilder &builder, OperationState &state, StringRef dimension, int64_t lower,
                   int64_t upper, LoopOrder order) {
  state.addAttribute(getDimensionAttrName(state.name), builder.getStringAttr(dimension));
  state.addAttribute(getLowerAttrName(state.name), builder.getI64IntegerAttr(lower));
  state.addAttribute(getUpperAttrName(state.name), builder.getI64IntegerAttr(upper));
  state.addAttribute(getOrderAttrName(state.name), LoopOrderAttr::get(builder.getContext(), order));
  Block &block = state.addRegion()->emplaceBlock();
  block.addArgument(builder.getIndexType(), state.location);
}

// boa.loop "layer" %l = 0 to 6 forward|reverse|snake(%p + 1) { ... }
ParseResult LoopOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::Argument iv;
  StringAttr dimension;
  int64_t lower, upper, phase = 0;
  iv.type = builder.getIndexType();
  if (parser.parseAttribute(dimension, getDimensionAttrName(result.name), result.attributes) ||
      parser.parseArgument(iv) || parser.parseEqual() || parser.parseInteger(lower) ||
      parser.parseKeyword("to") || parser.parseInteger(upper))
    return failure();
  LoopOrder order = LoopOrder::forward;
  if (succeeded(parser.parseOptionalKeyword("reverse"))) {
    order = LoopOrder::reverse;
  } else if (succeeded(parser.parseOptionalKeyword("snake"))) {
    order = LoopOrder::snake;
    OpAsmParser::UnresolvedOperand parity;
    if (parser.parseLParen() || parser.parseOperand(parity) ||
        parser.resolveOperand(parity, builder.getIndexType(), result.operands))
      return failure();
    if (succeeded(parser.parseOptionalPlus()) && parser.parseInteger(phase))
      return failure();
    if (parser.parseRParen())
      return failure();
  } else if (parser.parseKeyword("forward")) {
    return failure();
  }
  result.addAttribute(getLowerAttrName(result.name), builder.getI64IntegerAttr(lower));
  result.addAttribute(getUpperAttrName(result.name), builder.getI64IntegerAttr(upper));
  result.addAttribute(getOrderAttrName(result.name),
                      LoopOrderAttr::get(builder.getContext(), order));
  if (phase)
    result.addAttribute(getPhaseAttrName(result.name), builder.getI64IntegerAttr(phase));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return parser.parseRegion(*result.addRegion(), iv);
}

void LoopOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getDimensionAttr() << ' ' << getInductionVar() << " = " << getLower() << " to "
          << getUpper() << ' ';
  if (getOrder() == LoopOrder::snake) {
    printer << "snake(" << getParity();
    if (getPhase())
      printer << " + " << getPhase();
    printer << ')';
  } else {
    printer << stringifyLoopOrder(getOrder());
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getDimensionAttrName(), getLowerAttrName(), getUpperAttrName(),
                            getOrderAttrName(), getPhaseAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult LoopOp::verify() {
  if (getLower() >= getUpper())
    return emitOpError("expected at least one iteration");
  if ((getOrder() == LoopOrder::snake) != bool(getParity()))
    return emitOpError("expected a parity for order snake, and only for it");
  return success();
}

/// `index` must be the induction variable of a loop.
static LogicalResult verifyInductionVar(Operation *op, Value index) {
  auto arg = dyn_cast<BlockArgument>(index);
  if (!arg || !isa<LoopOp>(arg.getOwner()->getParentOp()))
    return op->emitOpError("expected the induction variable of a boa.loop");
  return success();
}
LogicalResult AtFirstOp::verify() { return verifyInductionVar(*this, getIndex()); }
LogicalResult AtLastOp::verify() { return verifyInductionVar(*this, getIndex()); }

//===----------------------------------------------------------------------===//
// Symbols: storages, groups, functions
//===----------------------------------------------------------------------===//

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (!tables.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getCalleeAttr()))
    return emitOpError("expected a function named @") << getCallee();
  return success();
}

static LogicalResult verifyGroup(Operation *op, FlatSymbolRefAttr name,
                                 SymbolTableCollection &tables) {
  if (!tables.lookupNearestSymbolFrom<GroupOp>(op, name))
    return op->emitOpError("names a group that does not exist: ") << name;
  return success();
}
LogicalResult OptimizerUpdateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyGroup(*this, getGroupAttr(), tables);
}
LogicalResult GradientNormOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyGroup(*this, getGroupAttr(), tables);
}

/// The storage must exist, be indexed in all its dimensions and, where `value`
/// is given, have entries of that type.
static LogicalResult verifyAccess(Operation *op, FlatSymbolRefAttr name, OperandRange indices,
                                  Type value, SymbolTableCollection &tables) {
  auto storage = tables.lookupNearestSymbolFrom<StorageOp>(op, name);
  if (!storage)
    return op->emitOpError("names a storage that does not exist: ") << name;
  if (indices.size() != storage.getDims().size())
    return op->emitOpError("expected ") << storage.getDims().size() << " indices of " << name;
  if (value && value != storage.getType()) {
    InFlightDiagnostic diag = op->emitOpError("expected an entry of ")
                              << name << ", " << storage.getType() << ", but found " << value;
    diag.attachNote(storage.getLoc()) << "the storage is declared here";
    return diag;
  }
  return success();
}
LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getValue().getType(), tables);
}
LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getValue().getType(), tables);
}
LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getValue().getType(), tables);
}
LogicalResult PrefetchOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), Type(), tables);
}
LogicalResult CreateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getBuffer().getType().getContents(),
                      tables);
}
LogicalResult OffloadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getBuffer().getType().getContents(),
                      tables);
}
LogicalResult AwaitOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto prefetch = getToken().getDefiningOp<PrefetchOp>();
  if (!prefetch)
    return emitOpError("expected the token of a boa.prefetch: nothing else fills a buffer");
  return verifyAccess(*this, prefetch.getStorageAttr(), prefetch.getIndices(),
                      getBuffer().getType().getContents(), tables);
}

} // namespace boa
