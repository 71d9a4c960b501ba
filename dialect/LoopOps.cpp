//===- LoopOps.cpp - boa.loop, its indices and conditions -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/EntryAccess.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// boa.loop
//===----------------------------------------------------------------------===//

// boa.loop layer %l = 0 to 6 forward|reverse|snake(%p + 1) [if %pending] { ... }
using MaybeOperand = std::optional<OpAsmParser::UnresolvedOperand>;
static ParseResult parseIterations(OpAsmParser &parser, Region &body, IntegerAttr &lower,
                                   IntegerAttr &upper, LoopOrderAttr &order, MaybeOperand &parity,
                                   IntegerAttr &phase, MaybeOperand &guard) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::Argument iv;
  int64_t begin, end, by = 0;
  iv.type = builder.getIndexType();
  if (parser.parseArgument(iv) || parser.parseEqual() || parser.parseInteger(begin) ||
      parser.parseKeyword("to") || parser.parseInteger(end))
    return failure();
  FailureOr<LoopOrder> word = FieldParser<LoopOrder>::parse(parser);
  if (failed(word))
    return failure();
  if (*word == LoopOrder::snake &&
      (parser.parseLParen() || parser.parseOperand(parity.emplace()) ||
       (succeeded(parser.parseOptionalPlus()) && parser.parseInteger(by)) || parser.parseRParen()))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("if")) && parser.parseOperand(guard.emplace()))
    return failure();
  lower = builder.getI64IntegerAttr(begin);
  upper = builder.getI64IntegerAttr(end);
  order = LoopOrderAttr::get(parser.getContext(), *word);
  phase = builder.getI64IntegerAttr(by);
  return parser.parseRegion(body, iv);
}

static void printIterations(OpAsmPrinter &printer, LoopOp loop, Region &body, IntegerAttr,
                            IntegerAttr, LoopOrderAttr, Value parity, IntegerAttr, Value guard) {
  printer << loop.getInductionVar() << " = " << loop.getLower() << " to " << loop.getUpper() << ' '
          << stringifyLoopOrder(loop.getOrder());
  if (parity) {
    printer << '(' << parity;
    if (loop.getPhase())
      printer << " + " << loop.getPhase();
    printer << ')';
  }
  if (guard)
    printer << " if " << guard;
  printer << ' ';
  printer.printRegion(body, /*printEntryBlockArgs=*/false);
}

/// Whether a number is an index: those of entries and chunks fit 32 bits, as in the runtime's ABI.
static bool isIndex(int64_t value) { return value >= -kMostExtent && value <= kMostExtent; }

LogicalResult LoopOp::verify() {
  if (getBlock()->getArgumentTypes() != ArrayRef<Type>(IndexType::get(getContext())))
    return emitOpError("expected one argument of its block, an index");
  const int64_t lower = getLower(), upper = getUpper(), phase = getPhase();
  if (lower >= upper)
    return emitOpError("expected at least one iteration");
  if (lower < 0 || upper > kMostExtent)
    return emitOpError("expected bounds from 0 to ")
           << kMostExtent << " but found " << lower << " to " << upper;
  if (!isIndex(phase))
    return emitOpError("expected a phase of 32 bits but found ") << phase;
  if ((getOrder() == LoopOrder::snake) != bool(getParity()))
    return emitOpError("expected a parity for order snake, and only for it");
  return success();
}

void LoopOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (!region.empty() && region.getNumArguments() > 0)
    setName(region.getArgument(0), stringifyDimension(getDimension()).take_front());
}

/// Whether an op touches `chunk` alone, and uses it for nothing else, or changes only buffers that
/// its iteration has `opened`.
static bool staysInIteration(AccessOpInterface op, Value chunk, ArrayRef<Value> opened) {
  const SmallVector<StorageAccess> accesses = op.getAccesses();
  auto isOfChunk = [&](const StorageAccess &access) {
    return access.chunk == chunk && access.count == 1;
  };
  if (op.getChunk() == chunk || (!accesses.empty() && llvm::all_of(accesses, isOfChunk)))
    return llvm::count(op->getOperands(), chunk) == 1;
  SmallVector<MemoryEffects::EffectInstance> effects;
  cast<MemoryEffectOpInterface>(*op).getEffects(effects);
  llvm::erase_if(effects, [](const MemoryEffects::EffectInstance &effect) {
    return isa<MemoryEffects::Read>(effect.getEffect());
  });
  return !effects.empty() &&
         llvm::all_of(effects, [&](const MemoryEffects::EffectInstance &effect) {
           return effect.getValue() && llvm::is_contained(opened, effect.getValue());
         });
}

bool LoopOp::canRunAsOne() {
  if (getDimension() != Dimension::chunk)
    return false;
  SmallVector<Value> opened;
  for (Operation &op : *getBlock()) {
    auto access = dyn_cast<AccessOpInterface>(op);
    if (access && staysInIteration(access, getInductionVar(), opened))
      llvm::append_range(opened, op.getResults());
    else if (!op.hasTrait<OpTrait::ConstantLike>())
      return false;
  }
  // What is open at the end of an iteration is open in the next.
  return llvm::all_of(opened, [](Value buffer) {
    return llvm::count_if(buffer.getUsers(), [&](Operation *user) {
             return hasEffect<MemoryEffects::Free>(user, buffer);
           }) == 1;
  });
}

//===----------------------------------------------------------------------===//
// Indices and conditions
//===----------------------------------------------------------------------===//

LoopOp LoopOp::of(Value induction) {
  auto arg = dyn_cast<BlockArgument>(induction);
  return arg ? dyn_cast_or_null<LoopOp>(arg.getOwner()->getParentOp()) : LoopOp();
}

bool isLayerIndex(Value index) {
  if (auto shift = index.getDefiningOp<ShiftOp>())
    index = shift.getIndex();
  LoopOp loop = LoopOp::of(index);
  return loop && loop.getDimension() == Dimension::layer;
}

LogicalResult ShiftOp::verify() {
  if (isIndex(int64_t(getBy())))
    return success();
  return emitOpError("expected a constant of 32 bits but found ") << int64_t(getBy());
}
int64_t ShiftOp::compute(const IndexValues &values) { // what overflows is out of all bounds
  return (Checked(values.get(getIndex())) + int64_t(getBy())).value_or(-1);
}
void ShiftOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  const int64_t by = getBy();
  setName(getResult(), by > 0 ? "next" : by < 0 ? "previous" : "");
}

/// Checks that `index` is the induction variable of a loop.
static LogicalResult verifyInductionVar(Operation *op, Value index) {
  if (LoopOp::of(index))
    return success();
  return op->emitOpError("expected the induction variable of a boa.loop");
}

LogicalResult AtFirstOp::verify() { return verifyInductionVar(*this, getIndex()); }
int64_t AtFirstOp::compute(const IndexValues &values) { return values.getEnds(getIndex()).first; }
void AtFirstOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), isLayerIndex(getIndex()) ? "begin" : "first");
}

LogicalResult AtLastOp::verify() { return verifyInductionVar(*this, getIndex()); }
int64_t AtLastOp::compute(const IndexValues &values) { return values.getEnds(getIndex()).second; }
void AtLastOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), isLayerIndex(getIndex()) ? "end" : "last");
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/LoopOps.cpp.inc"
