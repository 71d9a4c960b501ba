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
#include "dialect/Boa.h"
#include "passes/kernels/KernelGroup.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace boa::kernel;

#include "passes/kernels/KernelDialect.cpp.inc"
#include "passes/kernels/KernelEnums.cpp.inc"

namespace {

/// Makes a library op on tensors the same op on their buffers.
template <typename Op>
struct LibraryModel : bufferization::DstBufferizableOpInterfaceExternalModel<LibraryModel<Op>, Op> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const bufferization::AnalysisState &) const {
    auto library = cast<Op>(op);
    return !library.isDpsInit(&operand) || library.readsInits();
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);
    SmallVector<Value> operands, results;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> buffer = bufferization::getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      operands.push_back(*buffer);
    }
    for (OpOperand &init : cast<Op>(op).getDpsInitsMutable())
      results.push_back(operands[init.getOperandNumber()]);
    Op::create(rewriter, op->getLoc(), TypeRange(), operands, op->getAttrs());
    bufferization::replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

/// The accesses of a library op on memrefs.
void getLibraryEffects(
    DestinationStyleOpInterface op, bool readsInits,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool init = op.isDpsInit(&operand);
    if (!init || readsInits)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (init)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

template <typename... Ops> void addLibraryModels(MLIRContext *context) {
  (Ops::template attachInterface<LibraryModel<Ops>>(*context), ...);
}

} // namespace

void KernelDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "passes/kernels/KernelOps.cpp.inc"
      >();
  addLibraryModels<GemmOp, AttentionOp, CachedAttentionOp, AttentionGradOp, ScatterRowsOp>(
      getContext());
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

namespace {

using Shape = ArrayRef<int64_t>;

Shape shapeOf(Value value) { return cast<ShapedType>(value.getType()).getShape(); }

/// Checks that lowerings know all sizes, and can count them in 64 bits.
LogicalResult verifySizes(Operation *op) {
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<ShapedType>(operand.getType());
    if (!type) // an address
      continue;
    if (!isa<MemRefType, RankedTensorType>(type) || !type.hasStaticShape() ||
        !type.getElementType().isIntOrFloat() ||
        !llvm::all_of(type.getShape(), [](int64_t extent) { return extent >= 1; }) ||
        !boa::CheckedProduct(type.getShape()).AtMost(boa::kMostElements))
      return op->emitOpError("expected operands of static shape, of 1 to 2^40 elements, but found ")
             << type;
  }
  return success();
}

LogicalResult refuseShapes(Operation *op) {
  InFlightDiagnostic diag = op->emitOpError("expected shapes that fit one another but found ");
  llvm::interleaveComma(op->getOperandTypes(), diag);
  return diag;
}

/// The number of rows, all leading dimensions together, and of columns.
std::pair<int64_t, int64_t> rowsOf(Value matrix, bool transposed) {
  Shape shape = shapeOf(matrix);
  std::pair size(llvm::product_of(shape.drop_back()), shape.back());
  return transposed ? std::pair(size.second, size.first) : size;
}

/// Checks the shapes of attention: queries [batch, rows, heads * d], keys and values [batch, keys,
/// kv_heads * d].
template <typename Op> LogicalResult verifyHeads(Op op, Value q, Value k, Value v) {
  const int64_t heads = op.getHeads(), kvHeads = op.getKvHeads();
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads != 0 || op.getWindow().value_or(1) <= 0)
    return op->emitOpError("expected kv_heads to divide heads, and a window of 1 or more");
  for (Value value : {q, k, v})
    if (shapeOf(value).size() != 3)
      return refuseShapes(op);
  const int64_t width = shapeOf(q)[2];
  if (width % heads != 0 || shapeOf(k)[2] != width / heads * kvHeads || shapeOf(v) != shapeOf(k))
    return refuseShapes(op);
  return success();
}

/// Checks attention over all positions at once, and its gradient.
template <typename Op> LogicalResult verifyAttention(Op op) {
  if (failed(verifySizes(op)) || failed(verifyHeads(op, op.getQ(), op.getK(), op.getV())))
    return failure();
  Shape q = shapeOf(op.getQ()), k = shapeOf(op.getK());
  Value starts = op.getDocumentStarts();
  if (k[0] != q[0] || k[1] != q[1] || shapeOf(op.getY()) != q ||
      shapeOf(op.getLse()) != Shape({q[0], int64_t(op.getHeads()), q[1]}) ||
      (starts && shapeOf(starts) != q.take_front(2)))
    return refuseShapes(op);
  return success();
}

} // namespace

LogicalResult GemmOp::verify() {
  if (failed(verifySizes(*this)))
    return failure();
  Value addend = getAddend();
  if (addend && getAccumulate())
    return emitOpError("expected an addend or accumulate, not both");
  auto type = addend ? cast<ShapedType>(addend.getType()) : ShapedType();
  auto result = cast<ShapedType>(getC().getType());
  if (addend &&
      (type.getShape() != result.getShape() || type.getElementType() != result.getElementType()))
    return emitOpError("expected an addend of the shape and elements of c");
  for (Value matrix : {getA(), getB(), getC()})
    if (shapeOf(matrix).empty())
      return refuseShapes(*this);
  const auto [rows, inner] = rowsOf(getA(), getTransposeA());
  const auto [sameInner, columns] = rowsOf(getB(), getTransposeB());
  if (inner != sameInner || rowsOf(getC(), false) != std::pair(rows, columns) ||
      (getBias() && shapeOf(getBias()) != Shape(columns)))
    return refuseShapes(*this);
  return success();
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this); }

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  if (shapeOf(getDy()) != shapeOf(getQ()) || shapeOf(getDq()) != shapeOf(getQ()) ||
      shapeOf(getDk()) != shapeOf(getK()) || shapeOf(getDv()) != shapeOf(getV()))
    return refuseShapes(*this);
  return success();
}

LogicalResult CachedAttentionOp::verify() {
  if (failed(verifySizes(*this)) || failed(verifyHeads(*this, getQ(), getK(), getV())))
    return failure();
  Shape q = shapeOf(getQ()), k = shapeOf(getK()), keys = shapeOf(getKeys());
  if (k[0] != q[0] || k[1] != q[1] || shapeOf(getPositions()) != q.take_front(2) ||
      shapeOf(getY()) != q || keys.size() != 3 || keys[0] != q[0] || keys[1] < q[1] ||
      keys[2] != k[2] || shapeOf(getValues()) != keys)
    return refuseShapes(*this);
  return success();
}

LogicalResult ScatterRowsOp::verify() {
  if (failed(verifySizes(*this)))
    return failure();
  Shape rows = shapeOf(getRows()), table = shapeOf(getTable());
  if (rows.empty() || shapeOf(getIndices()) != rows.drop_back() || table.size() != 2 ||
      table[1] != rows.back())
    return refuseShapes(*this);
  return success();
}

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
  for (const boa::GroupMember &member : boa::getMembers(*this))
    work = std::max(work, llvm::product_of(member.extents));
  return work;
}

LogicalResult GroupOp::verify() {
  if (llvm::all_of(getSpace(), [](int64_t extent) { return extent >= 1; }) &&
      boa::CheckedProduct(getSpace()).AtMost(boa::kMostElements))
    return success();
  return emitOpError("expected a space of 1 to 2^40 parts");
}

LogicalResult GroupOp::verifyRegions() {
  for (Operation &op : getBodyRegion().front())
    if (!isMemoryOp(&op) && !GroupMember::get(&op))
      return op.emitOpError("is not expected in a group: it has no loops over static memrefs");
  SmallVector<GroupMember> members = getMembers(*this);
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

LogicalResult ParallelOp::verify() {
  const Type index = IndexType::get(getContext());
  if (getBodyRegion().front().getArgumentTypes() != ArrayRef<Type>({index, index}))
    return emitOpError("expected two arguments of its block, the indices begin and end");
  if (int64_t(getCount()) < 0 || int64_t(getGrain()) < 1)
    return emitOpError("expected a count of at least 0, and a grain of at least 1");
  return success();
}

#define GET_OP_CLASSES
#include "passes/kernels/KernelOps.cpp.inc"
