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

//===----------------------------------------------------------------------===//
// Indices and conditions
//===----------------------------------------------------------------------===//

bool isLayerIndex(Value index) {
  if (auto shift = index.getDefiningOp<ShiftOp>())
    index = shift.getIndex();
  auto arg = dyn_cast<BlockArgument>(index);
  auto loop = arg ? dyn_cast_or_null<LoopOp>(arg.getOwner()->getParentOp()) : LoopOp();
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
  auto arg = dyn_cast<BlockArgument>(index);
  if (!arg || !isa_and_nonnull<LoopOp>(arg.getOwner()->getParentOp()))
    return op->emitOpError("expected the induction variable of a boa.loop");
  return success();
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
