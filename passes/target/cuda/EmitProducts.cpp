//===- EmitProducts.cpp - Products as blocked kernels of a GPU ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products without cuBLASLt: a program that has them needs no library but the driver. Each launch
// is of one shape. ProductLaunch.h has the common part of both kinds:
//
//   bf16   Each of four warps has a quarter of the block's square. It multiplies fragments of
//          16 x 8 x 16 (TensorCores.h).
//   f32    Each of 256 threads has a grid of elements 16 apart, and uses multiply-adds.
//
// Sums are in f32 and in the order of k: by strips, and of a strip in that of the instruction. The
// bias and the addend are added last. Assumes operands as --cuda-legalize-products leaves them.
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/CudaPasses.h"
#include "passes/target/cuda/ProductLaunch.h"
#include "passes/target/cuda/TensorCores.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

namespace boa {
#define GEN_PASS_DEF_CUDAEMITPRODUCTS
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

using Values = ThreadBuilder::Values;

/// The number of blocks below which multiprocessors are idle: then squares are smaller.
constexpr int64_t kManyBlocks = 128;

/// Chooses the rows and columns of the result that a block owns.
int64_t chooseSide(const ProductShape &shape) {
  const int64_t side = 128;
  const int64_t blocks = llvm::divideCeil(shape.m, side) * llvm::divideCeil(shape.n, side);
  return blocks >= kManyBlocks ? side : side / 2;
}

/// A product on tensor cores.
class NarrowProduct {
public:
  NarrowProduct(OpBuilder &outside, const ProductShape &shape, int64_t side)
      : l(outside, shape, side, kWarps * boa::kWarpLanes), half(side / 2),
        lane(l.rem(l.thread, boa::kWarpLanes)), warp(l.div(l.thread, boa::kWarpLanes)),
        rows(l.mul(l.div(warp, 2), half)), columns(l.mul(l.rem(warp, 2), half)) {}

  void emit() {
    const int64_t tiles = half / kTileRows * (half / kTileColumns);
    Values sums(tiles * kTilePart, l.number(0));
    sums = l.stream(std::move(sums), [&](Value strip, Values &inside) { multiply(strip, inside); });
    // Of a tile a lane has two neighbours of one row, and those eight rows below.
    Value group = l.div(lane, 4), pair = l.mul(l.rem(lane, 4), 2);
    for (int64_t i = 0; i < half / kTileRows; ++i)
      for (int64_t below : {0, 1}) {
        Values at, of;
        for (int64_t j = 0; j < half / kTileColumns; ++j)
          for (int64_t e : {0, 1}) {
            Value column = l.add(l.add(l.column, columns), l.add(pair, j * kTileColumns + e));
            at.push_back(column);
            of.push_back(sums[(i * (half / kTileColumns) + j) * kTilePart + 2 * below + e]);
          }
        Value row = l.add(l.add(l.row, rows), l.add(group, i * kTileRows + 8 * below));
        l.storeRow(row, at, of);
      }
  }

private:
  static constexpr int64_t kWarps = 4;

  void multiply(Value strip, Values &sums) {
    for (int64_t deep = 0; deep < l.depth(); deep += kTileDepth) {
      SmallVector<Values> a, b;
      for (int64_t i = 0; i < half; i += kTileRows)
        a.push_back(loadMatrices(l.a, strip, l.add(rows, i), deep, /*isFirst=*/true));
      // Two tiles beside each other at once.
      for (int64_t j = 0; j < half; j += 2 * kTileColumns) {
        Values both = loadMatrices(l.b, strip, l.add(columns, j), deep, /*isFirst=*/false);
        b.push_back({both[0], both[1]});
        b.push_back({both[2], both[3]});
      }
      for (size_t i = 0; i < a.size(); ++i)
        for (size_t j = 0; j < b.size(); ++j)
          multiplyTile(
              l, a[i], b[j],
              MutableArrayRef<Value>(sums).slice((i * b.size() + j) * kTilePart, kTilePart));
    }
  }

  Values loadMatrices(OperandStrips &operand, Value strip, Value side, int64_t deep, bool isFirst) {
    auto find = [&](Value along, Value sum) { return operand.find(strip, along, sum); };
    return boa::loadMatrices(l, lane, {operand.memory, operand.isDeep, find}, side, l.index(deep),
                             isFirst);
  }

  ProductLaunch l;
  const int64_t half;
  Value lane, warp, rows, columns; // the last two: the first of the warp in the block's square
};

/// A product by multiply-adds.
class WideProduct {
public:
  WideProduct(OpBuilder &outside, const ProductShape &shape, int64_t side)
      : l(outside, shape, side, kEdge * kEdge), count(side / kEdge), row(l.div(l.thread, kEdge)),
        column(l.rem(l.thread, kEdge)) {}

  void emit() {
    Values sums(count * count, l.number(0));
    sums = l.stream(std::move(sums), [&](Value strip, Values &inside) { multiply(strip, inside); });
    Values at;
    for (int64_t j = 0; j < count; ++j)
      at.push_back(l.add(l.column, l.add(column, j * kEdge)));
    for (int64_t i = 0; i < count; ++i)
      l.storeRow(l.add(l.row, l.add(row, i * kEdge)), at, ArrayRef(sums).slice(i * count, count));
  }

private:
  static constexpr int64_t kEdge = 16; // threads, of their square

  void multiply(Value strip, Values &sums) {
    constexpr int64_t kTogether = 4;
    sums = l.loop(l.index(0), l.index(l.depth()), kTogether, sums, [&](Value from, Values &inside) {
      for (int64_t deep = 0; deep < kTogether; ++deep) {
        Values a = load(l.a, strip, row, l.add(from, deep));
        Values b = load(l.b, strip, column, l.add(from, deep));
        for (int64_t i = 0; i < count; ++i)
          for (int64_t j = 0; j < count; ++j) {
            Value &sum = inside[i * count + j];
            sum = l.fma(a[i], b[j], sum);
          }
      }
    });
  }

  Values load(OperandStrips &operand, Value strip, Value first, Value deep) {
    Values values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(l.load(operand.memory, operand.find(strip, l.add(first, i * kEdge), deep)));
    return values;
  }

  ProductLaunch l;
  const int64_t count; // elements of a thread along a side
  Value row, column;   // of the thread in the square of threads
};

struct CudaEmitProducts : boa::impl::CudaEmitProductsBase<CudaEmitProducts> {
  void runOnOperation() override {
    SmallVector<kernel::GemmOp> products;
    getOperation().walk([&](kernel::GemmOp product) { products.push_back(product); });
    for (kernel::GemmOp product : products) {
      OpBuilder builder(product);
      const ProductShape shape(builder, product);
      if (!shape.isValid()) {
        product.emitOpError("expected rows of its operands to be evenly apart");
        return signalPassFailure();
      }
      if (shape.getElement().isBF16())
        NarrowProduct(builder, shape, chooseSide(shape)).emit();
      else
        WideProduct(builder, shape, chooseSide(shape)).emit();
      product.erase();
    }
  }
};

} // namespace
