//===- ProductLaunch.cpp --------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/target/cuda/ProductLaunch.h"

#include "passes/kernels/MemoryAccess.h"
#include "passes/target/cuda/TensorCores.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace boa;

/// Views the memref as one of rank 2; null if that cannot be.
static Value asMatrix(OpBuilder &builder, Value memref) {
  const int64_t rank = memrefOf(memref).getRank();
  if (rank <= 2)
    return rank == 2 ? memref : Value();
  SmallVector<ReassociationIndices> dims(2);
  for (int64_t d = 0; d + 1 < rank; ++d)
    dims[0].push_back(d);
  dims[1].push_back(rank - 1);
  if (!memref::CollapseShapeOp::isGuaranteedCollapsible(memrefOf(memref), dims))
    return {};
  return memref::CollapseShapeOp::create(builder, memref.getLoc(), memref, dims);
}

ProductShape::ProductShape(OpBuilder &builder, kernel::GemmOp op)
    : a(asMatrix(builder, op.getA())), b(asMatrix(builder, op.getB())),
      c(asMatrix(builder, op.getC())), bias(op.getBias()), transposeA(op.getTransposeA()),
      transposeB(op.getTransposeB()), isAdded(op.getAddend() || op.getAccumulate()),
      loc(op.getLoc()) {
  if (op.getAddend())
    addend = asMatrix(builder, op.getAddend());
  else if (op.getAccumulate())
    addend = c;
  if (!isValid())
    return;
  m = memrefOf(c).getDimSize(0);
  n = memrefOf(c).getDimSize(1);
  k = memrefOf(a).getDimSize(transposeA ? 0 : 1);
}

Type ProductShape::getElement() const { return memrefOf(a).getElementType(); }

OperandStrips::OperandStrips(ThreadBuilder &builder, gpu::LaunchOp launch, Value operand,
                             bool isDeep, int64_t side)
    : isDeep(isDeep), b(builder), operand(operand), isAligned(hasAlignedRows(operand)) {
  Type element = memrefOf(operand).getElementType();
  const int64_t bytes = getElementBytes(memrefOf(operand)), depth = kStripBytes / bytes;
  rows = isDeep ? depth : side;
  columns = isDeep ? side : depth;
  chunk = kChunkBytes / bytes;
  memory = addWorkgroupMemory(launch, {kStrips * rows, columns}, element);
}

Value OperandStrips::permute(Value row, Value chunk) {
  // Rows of 64 bytes: two of them are 32 banks. Longer rows are whole turns of the banks.
  Value by = isDeep ? b.rem(row, 8) : b.rem(b.div(row, 2), 4);
  return b.exclusive(chunk, by);
}

std::array<Value, 2> OperandStrips::find(Value strip, Value side, Value deep) {
  Value row = isDeep ? deep : side, column = isDeep ? side : deep;
  Value to = b.mul(permute(row, b.div(column, chunk)), chunk);
  return {b.add(b.mul(strip, rows), row), b.add(to, b.rem(column, chunk))};
}

void OperandStrips::copy(Value thread, int64_t threads, Value first, Value deep, Value strip) {
  const int64_t perRow = columns / chunk, chunks = rows * perRow;
  for (int64_t i = 0; i * threads < chunks; ++i) {
    Value number = b.add(thread, i * threads);
    Value isPart = chunks % threads == 0 ? Value() : b.isLess(number, chunks);
    b.when(isPart, [&] {
      Value row = b.div(number, perRow), inRow = b.rem(number, perRow);
      Value begin = b.mul(inRow, chunk);
      std::array<Value, 2> to{b.add(b.mul(strip, rows), row), b.mul(permute(row, inRow), chunk)};
      copyChunk({b.add(isDeep ? deep : first, row), b.add(isDeep ? first : deep, begin)}, to);
    });
  }
}

void OperandStrips::copyChunk(ValueRange from, ValueRange to) {
  MemRefType type = memrefOf(operand);
  const int64_t allRows = type.getDimSize(0), allColumns = type.getDimSize(1);
  // Strips are within the operand or not at compile time, but for the last ones.
  const bool rowsFit = allRows % rows == 0, columnsFit = allColumns % columns == 0;
  Value row = rowsFit ? from[0] : b.least(from[0], allRows - 1);
  Value isRow = rowsFit ? Value() : b.isLess(from[0], allRows);
  if (isAligned) {
    Value column = from[1], count; // of elements that are there; null: all
    if (!columnsFit) {
      Value begun = b.least(column, allColumns);
      count = b.least(b.sub(b.index(allColumns), begun), chunk);
      column = b.select(b.isLess(column, allColumns), column, b.index(0));
    }
    if (isRow)
      count = b.select(isRow, count ? count : b.index(chunk), b.index(0));
    boa::copyChunk(b, operand, {row, column}, memory, to, count);
    return;
  }
  Value zero = b.make<arith::ConstantOp>(b.getZeroAttr(type.getElementType()));
  for (int64_t e = 0; e < chunk; ++e) {
    Value column = b.add(from[1], e), is = isRow;
    Value value = b.load(operand, {row, columnsFit ? column : b.least(column, allColumns - 1)});
    if (!columnsFit) {
      Value isColumn = b.isLess(column, allColumns);
      is = is ? b.both(is, isColumn) : isColumn;
    }
    b.store(is ? b.select(is, value, zero) : value, memory, {to[0], b.add(to[1], e)});
  }
}

static int64_t countBlocks(int64_t size, int64_t side) { return llvm::divideCeil(size, side); }

/// Whether blocks along x are by columns. By default they are by rows along x, and by columns along
/// y. If there are more columns than may be along y, as in the gradient of a large table, the two
/// change places.
static bool hasColumnsAlongX(const ProductShape &shape, int64_t side) {
  return countBlocks(shape.n, side) > kMaxGrid[1];
}

static gpu::LaunchOp createProductLaunch(ThreadBuilder &builder, const ProductShape &shape,
                                         int64_t side, int64_t threads) {
  int64_t alongX = countBlocks(shape.m, side), alongY = countBlocks(shape.n, side);
  if (hasColumnsAlongX(shape, side))
    std::swap(alongX, alongY);
  return createLaunch(builder, {alongX, alongY, 1}, threads, 1);
}

ProductLaunch::ProductLaunch(OpBuilder &outside, const ProductShape &shape, int64_t side,
                             int64_t threads)
    : ThreadBuilder(outside, shape.loc), shape(shape), side(side), threads(threads),
      launch(createProductLaunch(*this, shape, side, threads)), thread(launch.getThreadIds().x),
      row(mul(hasColumnsAlongX(shape, side) ? launch.getBlockIds().y : launch.getBlockIds().x,
              side)),
      column(mul(hasColumnsAlongX(shape, side) ? launch.getBlockIds().x : launch.getBlockIds().y,
                 side)),
      a(*this, launch, shape.a, shape.transposeA, side),
      b(*this, launch, shape.b, !shape.transposeB, side) {}

int64_t ProductLaunch::depth() const { return kStripBytes / getElementBytes(memrefOf(shape.a)); }

SmallVector<Value> ProductLaunch::stream(Values sums,
                                         function_ref<void(Value, Values &)> multiply) {
  const int64_t strips = llvm::divideCeil(shape.k, depth());
  // Each turn begins a strip. Past the last one that is the last one again, which nobody reads.
  auto begin = [&](Value number) {
    Value deep = mul(least(number, strips - 1), depth()), strip = rem(number, kStrips);
    a.copy(thread, threads, row, deep, strip);
    b.copy(thread, threads, column, deep, strip);
    return endCopies(*this);
  };
  Value group;
  for (int64_t i = 0; i + 1 < kStrips; ++i)
    group = begin(index(i));
  sums = loop(index(0), index(strips), 1, std::move(sums), [&](Value number, Values &inside) {
    // All but the latest group are there, for all threads. None reads the strip before any more.
    waitForCopies(*this, group, kStrips - 2);
    barrier();
    begin(add(number, kStrips - 1));
    multiply(rem(number, kStrips), inside);
  });
  waitForCopies(*this, group); // for what nobody reads
  return sums;
}

Value ProductLaunch::widen(Value value) {
  return value.getType().isF32() ? value : make<arith::ExtFOp>(getF32Type(), value);
}

void ProductLaunch::storeRow(Value row, ArrayRef<Value> columns, ValueRange sums) {
  auto inside = [&](Value at, int64_t size) {
    return size % side == 0 ? Value() : isLess(at, size);
  };
  Type element = memrefOf(shape.c).getElementType();
  auto storeOne = [&](Value column, Value value) {
    if (shape.bias)
      value = addf(value, widen(load(shape.bias, column)));
    if (shape.addend)
      value = addf(value, widen(load(shape.addend, {row, column})));
    if (!element.isF32())
      value = make<arith::TruncFOp>(element, value);
    store(value, shape.c, {row, column});
  };
  when(inside(row, shape.m), [&] {
    for (size_t i = 0; i < columns.size(); ++i)
      when(inside(columns[i], shape.n), [&] { storeOne(columns[i], sums[i]); });
  });
}
