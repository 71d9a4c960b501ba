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
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// What ops touch of storages
//===----------------------------------------------------------------------===//

using Kind = StorageAccess::Kind;

SmallVector<StorageAccess> ReadOp::getAccesses(ModuleOp) {
  return {{Kind::read, getStorageAttr(), getIndices(), Value()}};
}
SmallVector<StorageAccess> WriteOp::getAccesses(ModuleOp) {
  return {{Kind::write, getStorageAttr(), getIndices(), Value()}};
}
SmallVector<StorageAccess> AccumulateOp::getAccesses(ModuleOp) {
  return {{Kind::accumulate, getStorageAttr(), getIndices(), Value(), 0, 0, getInitial()}};
}

static FlatSymbolRefAttr storageOfGroup(Operation *op, Role role, StringRef group) {
  return FlatSymbolRefAttr::get(op->getContext(), getStorageName(role, group));
}

SmallVector<StorageAccess> OptimizerUpdateOp::getAccesses(ModuleOp module) {
  int64_t first = getFirst(), count = int64_t(getLast()) - first;
  SmallVector<StorageAccess> accesses{{Kind::read,
                                       storageOfGroup(*this, Role::gradients, getGroup()),
                                       {getLayer()},
                                       Value(),
                                       first,
                                       count}};
  for (StorageOp storage : getTrainedStorages(module, getGroup()))
    accesses.push_back({Kind::update,
                        FlatSymbolRefAttr::get(storage.getSymNameAttr()),
                        {getLayer()},
                        Value(),
                        first,
                        count});
  return accesses;
}
SmallVector<StorageAccess> GradientNormOp::getAccesses(ModuleOp) {
  return {{Kind::read, storageOfGroup(*this, Role::gradients, getGroup()), {getLayer()}, Value()}};
}

template <typename OpTy> static StorageAccess accessOf(OpTy op, Kind kind) {
  return {kind, op.getStorageAttr(), op.getIndices(), op.getFirst(), 0, int64_t(op.getCount())};
}
SmallVector<StorageAccess> PrefetchOp::getAccesses(ModuleOp) {
  StorageAccess access = accessOf(*this, Kind::read);
  access.fresh = getZero();
  return {access};
}
SmallVector<StorageAccess> CreateOp::getAccesses(ModuleOp) {
  return {accessOf(*this, Kind::write)};
}
SmallVector<StorageAccess> OffloadOp::getAccesses(ModuleOp) {
  return {accessOf(*this, Kind::write)};
}

Operation *getOrigin(Value buffer) {
  Operation *op = buffer.getDefiningOp();
  return isa_and_nonnull<PrefetchOp, CreateOp>(op) ? op : nullptr;
}

//===----------------------------------------------------------------------===//
// boa.step
//===----------------------------------------------------------------------===//

void StepOp::build(OpBuilder &builder, OperationState &state, EntryPoint entry) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(stringifyEntryPoint(entry)));
  Block &block = state.addRegion()->emplaceBlock();
  block.addArguments({builder.getIndexType(), builder.getIndexType()},
                     {state.location, state.location});
}

// boa.step @step(%step, %pending) [traffic { ... }] { ... }
ParseResult StepOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> args;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parser.parseArgumentList(args, OpAsmParser::Delimiter::Paren) ||
      parseTraffic(parser, result.attributes) ||
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
  SmallVector<StringRef> elided = {getSymNameAttrName()};
  printTraffic(printer, *this, elided);
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), elided);
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

bool isIndexOp(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return constant.getType().isIntOrIndex();
  if (auto both = dyn_cast<arith::AndIOp>(op))
    return both.getType().isInteger(1);
  return isa<ShiftOp, AtFirstOp, AtLastOp>(op);
}
static bool isStepOp(Operation *op) {
  return isa<LoopOp, ReadOp, WriteOp, AccumulateOp, CallOp, OptimizerUpdateOp, GradientNormOp,
             FinishNormOp, PrefetchOp, CreateOp, CopyOp, OffloadOp, ReleaseOp, LaunchOp, UpdateOp,
             NormOp>(op);
}

/// The numbers of steps grow without end: they say which update it is, whether one
/// is pending and in what direction a loop runs, but index nothing.
static LogicalResult verifyStepNumbers(StepOp step) {
  for (Value number : {step.getStep(), step.getPending()})
    for (OpOperand &use : number.getUses()) {
      Operation *op = use.getOwner();
      auto loop = dyn_cast<LoopOp>(op);
      if (isa<FinishNormOp>(op) || (loop && loop.getParity() == number) ||
          (loop && loop.getGuard() == number))
        continue;
      if (auto update = dyn_cast<UpdateOp>(op); update && update.getChunk() != number)
        continue;
      if (auto update = dyn_cast<OptimizerUpdateOp>(op); update && update.getLayer() != number)
        continue;
      return op->emitOpError("uses the number of a step as an index");
    }
  return success();
}

LogicalResult StepOp::verify() {
  if (symbolizeEntryPoint(getSymName()))
    return success();
  return emitOpError("expected @step, @drain, @evaluate, @predict, @prefill or @generate but "
                     "found @")
         << getSymName();
}

// Passes enumerate the program: they must know every op, and be able to compute
// every index.
LogicalResult StepOp::verifyRegions() {
  WalkResult walked = getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<LoopOp>(op);
        loop && loop.getGuard() && loop.getGuard() != getPending()) {
      op->emitOpError("expected the pending step of the boa.step as its guard");
      return WalkResult::interrupt();
    }
    if (isIndexOp(op) || isStepOp(op))
      return WalkResult::advance();
    if (llvm::any_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndex(); }))
      op->emitOpError("computes an index or a condition in a boa.step: expected boa.shift, "
                      "boa.at_first, boa.at_last, arith.andi or a constant");
    else
      op->emitOpError("is unknown in a boa.step: expected boa.loop, or an op of the step or of the "
                      "storage phase");
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted() || failed(verifyStepNumbers(*this)));
}

StepOp findEntryPoint(ModuleOp module, EntryPoint entry) {
  return module.lookupSymbol<StepOp>(stringifyEntryPoint(entry));
}

//===----------------------------------------------------------------------===//
// boa.loop
//===----------------------------------------------------------------------===//

void LoopOp::build(OpBuilder &builder, OperationState &state, Dimension dimension, int64_t lower,
                   int64_t upper, LoopOrder order) {
  state.addAttribute(getDimensionAttrName(state.name),
                     DimensionAttr::get(builder.getContext(), dimension));
  state.addAttribute(getLowerAttrName(state.name), builder.getI64IntegerAttr(lower));
  state.addAttribute(getUpperAttrName(state.name), builder.getI64IntegerAttr(upper));
  state.addAttribute(getOrderAttrName(state.name), LoopOrderAttr::get(builder.getContext(), order));
  state.addAttribute(getOperandSegmentSizesAttrName(state.name),
                     builder.getDenseI32ArrayAttr({0, 0}));
  Block &block = state.addRegion()->emplaceBlock();
  block.addArgument(builder.getIndexType(), state.location);
}

// boa.loop layer %l = 0 to 6 forward|reverse|snake(%p + 1) [if %pending] { ... }
ParseResult LoopOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::Argument iv;
  int64_t lower, upper, phase = 0;
  int32_t parities = 0, guards = 0;
  iv.type = builder.getIndexType();
  FailureOr<Dimension> dimension = FieldParser<Dimension>::parse(parser);
  if (failed(dimension))
    return failure();
  result.addAttribute(getDimensionAttrName(result.name),
                      DimensionAttr::get(builder.getContext(), *dimension));
  if (parser.parseArgument(iv) || parser.parseEqual() || parser.parseInteger(lower) ||
      parser.parseKeyword("to") || parser.parseInteger(upper))
    return failure();
  LoopOrder order = LoopOrder::forward;
  if (succeeded(parser.parseOptionalKeyword("reverse"))) {
    order = LoopOrder::reverse;
  } else if (succeeded(parser.parseOptionalKeyword("snake"))) {
    order = LoopOrder::snake;
    OpAsmParser::UnresolvedOperand parity;
    parities = 1;
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
  if (succeeded(parser.parseOptionalKeyword("if"))) {
    OpAsmParser::UnresolvedOperand guard;
    guards = 1;
    if (parser.parseOperand(guard) ||
        parser.resolveOperand(guard, builder.getIndexType(), result.operands))
      return failure();
  }
  result.addAttribute(getOperandSegmentSizesAttrName(result.name),
                      builder.getDenseI32ArrayAttr({parities, guards}));
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
  printer << ' ' << stringifyDimension(getDimension()) << ' ' << getInductionVar() << " = "
          << getLower() << " to " << getUpper() << ' ';
  if (getOrder() == LoopOrder::snake) {
    printer << "snake(" << getParity();
    if (getPhase())
      printer << " + " << getPhase();
    printer << ')';
  } else {
    printer << stringifyLoopOrder(getOrder());
  }
  if (getGuard())
    printer << " if " << getGuard();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getDimensionAttrName(), getLowerAttrName(),
                                            getUpperAttrName(), getOrderAttrName(),
                                            getPhaseAttrName(), getOperandSegmentSizesAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult LoopOp::verify() {
  if (int64_t(getLower()) >= int64_t(getUpper()))
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

} // namespace boa
