//===- KernelDialect.cpp - What a compute kernel is made of ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel dialect's ops: which operands are written, memory effects, and how
// a library call on tensors becomes one on memrefs (itself, on the buffers).
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelDialect.h"
#include "passes/kernels/KernelGroup.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace boa::kernel;

#include "passes/kernels/KernelDialect.cpp.inc"
#include "passes/kernels/KernelEnums.cpp.inc"

void KernelDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "passes/kernels/KernelOps.cpp.inc"
      >();
}

Value boa::kernel::isWithin(OpBuilder &builder, Location loc, Value integer, int64_t end) {
  Value limit =
      arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(integer.getType(), end));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, integer, limit);
}

Value boa::kernel::offsetPointer(OpBuilder &builder, Location loc, Value base, Type element,
                                 int64_t offset) {
  if (offset == 0)
    return base;
  Value index = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                         builder.getI64IntegerAttr(offset));
  return LLVM::GEPOp::create(builder, loc, base.getType(), element, base,
                             ArrayRef<LLVM::GEPArg>(index));
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

LogicalResult AnglesOp::verify() {
  auto type = cast<RankedTensorType>(getTable().getType());
  if (type.getRank() != 2 || (!type.getElementType().isF32() && !type.getElementType().isF64()))
    return emitOpError("expected a table of f32 or f64 of rank 2 but found ") << type;
  if (type.getDimSize(1) != static_cast<int64_t>(getFrequencies().size()))
    return emitOpError("expected a frequency for each of ")
           << type.getDimSize(1) << " columns but found " << getFrequencies().size();
  return success();
}

//===----------------------------------------------------------------------===//
// Library calls
//===----------------------------------------------------------------------===//

LogicalResult GemmOp::verify() {
  Value addend = getAddend();
  if (addend && getAccumulate())
    return emitOpError("expected an addend or accumulate, not both");
  auto type = addend ? cast<ShapedType>(addend.getType()) : ShapedType();
  auto result = cast<ShapedType>(getC().getType());
  if (addend &&
      (type.getShape() != result.getShape() || type.getElementType() != result.getElementType()))
    return emitOpError("expected an addend of the shape and elements of c");
  return success();
}

MutableOperandRange GemmOp::getDpsInitsMutable() { return getCMutable(); }
MutableOperandRange AttentionOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, getNumOperands() - 2, 2);
}
MutableOperandRange CachedAttentionOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, 4, 3);
}
MutableOperandRange AttentionGradOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, getNumOperands() - 3, 3);
}
MutableOperandRange ScatterRowsOp::getDpsInitsMutable() { return getTableMutable(); }

bool GemmOp::readsInits() { return getAccumulate(); }
bool AttentionOp::readsInits() { return false; }
bool CachedAttentionOp::readsInits() { return true; }
bool AttentionGradOp::readsInits() { return false; }
bool ScatterRowsOp::readsInits() { return true; }

namespace {

template <typename Op>
void getLibraryEffects(
    Op op, SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool init = op.isDpsInit(&operand);
    if (!init || op.readsInits())
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (init)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

template <typename Op>
bufferization::AliasingValueList getLibraryAliases(Op op, OpOperand &operand) {
  if (!op.isDpsInit(&operand))
    return {};
  return {{op.getTiedOpResult(&operand), bufferization::BufferRelation::Equivalent}};
}

template <typename Op>
LogicalResult bufferizeLibrary(Op op, RewriterBase &rewriter,
                               const bufferization::BufferizationOptions &options,
                               bufferization::BufferizationState &state) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    FailureOr<Value> buffer = bufferization::getBuffer(rewriter, operand.get(), options, state);
    if (failed(buffer))
      return failure();
    operands.push_back(*buffer);
  }
  SmallVector<Value> results;
  for (OpOperand &init : op.getDpsInitsMutable())
    results.push_back(operands[init.getOperandNumber()]);
  Op::create(rewriter, op.getLoc(), TypeRange(), operands, op->getAttrs());
  bufferization::replaceOpWithBufferizedValues(rewriter, op, results);
  return success();
}

} // namespace

#define BOA_LIBRARY_OP(Op)                                                                         \
  void Op::getEffects(                                                                             \
      SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {              \
    getLibraryEffects(*this, effects);                                                             \
  }                                                                                                \
  bool Op::bufferizesToMemoryRead(OpOperand &operand, const bufferization::AnalysisState &) {      \
    return !isDpsInit(&operand) || readsInits();                                                   \
  }                                                                                                \
  bool Op::bufferizesToMemoryWrite(OpOperand &operand, const bufferization::AnalysisState &) {     \
    return isDpsInit(&operand);                                                                    \
  }                                                                                                \
  bufferization::AliasingValueList Op::getAliasingValues(OpOperand &operand,                       \
                                                         const bufferization::AnalysisState &) {   \
    return getLibraryAliases(*this, operand);                                                      \
  }                                                                                                \
  LogicalResult Op::bufferize(RewriterBase &rewriter,                                              \
                              const bufferization::BufferizationOptions &o,                        \
                              bufferization::BufferizationState &state) {                          \
    return bufferizeLibrary(*this, rewriter, o, state);                                            \
  }

BOA_LIBRARY_OP(GemmOp)
BOA_LIBRARY_OP(AttentionOp)
BOA_LIBRARY_OP(CachedAttentionOp)
BOA_LIBRARY_OP(AttentionGradOp)
BOA_LIBRARY_OP(ScatterRowsOp)

//===----------------------------------------------------------------------===//
// kernel.scatter_rows as loops
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> ScatterRowsOp::getLoopIteratorTypes() {
  unsigned rank = cast<ShapedType>(getRows().getType()).getRank();
  SmallVector<utils::IteratorType> types(rank, utils::IteratorType::reduction);
  types.back() = utils::IteratorType::parallel;
  return types;
}

SmallVector<Range> ScatterRowsOp::getIterationDomain(OpBuilder &builder) {
  SmallVector<Range> domain;
  for (int64_t extent : cast<ShapedType>(getRows().getType()).getShape())
    domain.push_back(
        {builder.getIndexAttr(0), builder.getIndexAttr(extent), builder.getIndexAttr(1)});
  return domain;
}

LogicalResult ScatterRowsOp::generateScalarImplementation(OpBuilder &builder, Location loc,
                                                          ValueRange ivs) {
  Value index = memref::LoadOp::create(builder, loc, getIndices(), ivs.drop_back());
  Value add = memref::LoadOp::create(builder, loc, getRows(), ivs), there;
  if (getSome()) { // what is left out adds -0 to row 0, which changes no bit
    there = isWithin(builder, loc, index, cast<ShapedType>(getTable().getType()).getDimSize(0));
    Type type = add.getType();
    Value none = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, -0.0));
    add = arith::SelectOp::create(builder, loc, there, add, none);
    Value zero =
        arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(index.getType(), 0));
    index = arith::SelectOp::create(builder, loc, there, index, zero);
  }
  Value row = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), index);
  SmallVector<Value> at{row, ivs.back()};
  Value sum = memref::LoadOp::create(builder, loc, getTable(), at);
  sum = arith::AddFOp::create(builder, loc, sum, add);
  memref::StoreOp::create(builder, loc, sum, getTable(), at);
  return success();
}

//===----------------------------------------------------------------------===//
// kernel.group
//===----------------------------------------------------------------------===//

int64_t GroupOp::getCount() { return llvm::product_of(getSpace()); }

int64_t GroupOp::getWork() {
  int64_t work = 0;
  for (Operation &op : getBodyRegion().front())
    if (auto member = GroupMember::get(&op))
      work = std::max(work, llvm::product_of(member->extents));
  return work;
}

LogicalResult GroupOp::verifyRegions() {
  SmallVector<GroupMember> members;
  for (Operation &op : getBodyRegion().front()) {
    if (isMemoryOp(&op))
      continue;
    std::optional<GroupMember> member = GroupMember::get(&op);
    if (!member)
      return op.emitOpError("is not expected in a group: it has no loops over static memrefs");
    members.push_back(std::move(*member));
  }
  if (members.empty())
    return emitOpError("expected an op to compute");
  if (std::optional<GroupFault> fault =
          findFault({getAxis(), llvm::to_vector(getSpace())}, members))
    return fault->op->emitOpError("does not fit its group: ") << fault->reason;
  return success();
}

//===----------------------------------------------------------------------===//
// kernel.parallel
//===----------------------------------------------------------------------===//

void ParallelOp::build(OpBuilder &builder, OperationState &state, int64_t count, int64_t grain) {
  state.getOrAddProperties<Properties>().count = builder.getI64IntegerAttr(count);
  state.getOrAddProperties<Properties>().grain = builder.getI64IntegerAttr(grain);
  Block &body = state.addRegion()->emplaceBlock();
  Type index = builder.getIndexType();
  body.addArguments({index, index}, {state.location, state.location});
}

// kernel.parallel (%begin, %end) of COUNT grain GRAIN attr-dict { ... }
ParseResult ParallelOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument begin, end;
  IntegerAttr count, grain;
  Type i64 = parser.getBuilder().getI64Type();
  if (parser.parseLParen() || parser.parseArgument(begin) || parser.parseComma() ||
      parser.parseArgument(end) || parser.parseRParen() || parser.parseKeyword("of") ||
      parser.parseAttribute(count, i64) || parser.parseKeyword("grain") ||
      parser.parseAttribute(grain, i64) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  auto &properties = result.getOrAddProperties<Properties>();
  properties.count = count;
  properties.grain = grain;
  begin.type = end.type = parser.getBuilder().getIndexType();
  return parser.parseRegion(*result.addRegion(), {begin, end});
}

void ParallelOp::print(OpAsmPrinter &printer) {
  printer << " (" << getBegin() << ", " << getEnd() << ") of " << getCount() << " grain "
          << getGrain();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"count", "grain"});
  printer << ' ';
  printer.printRegion(getBodyRegion(), /*printEntryBlockArgs=*/false);
}

#define GET_OP_CLASSES
#include "passes/kernels/KernelOps.cpp.inc"
