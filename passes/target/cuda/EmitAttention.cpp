//===- EmitAttention.cpp - Attention as blocked kernels of a GPU ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The program's own kernels for attention that cuDNN does not compute. That is all of f32. Of bf16
// it is attention that --cuda-offer-attention does not offer, or the runtime does not take. Of bf16
// they use tensor cores (NarrowAttention.cpp), of f32 multiply-adds. After Dao, FlashAttention-2
// (2023). Each launch is of one shape. Of f32:
//
//   A block of four warps owns a tile of rows, in shared memory, and streams tiles of 32
//   other rows past it. A warp has some of the own rows, a lane one row of the stream:
//   so a dot product of two rows is the lane's (`dots`), and a sum over the stream's
//   rows, weighted by what the lanes have, goes column by column, each lane some of
//   them (`spread`), the weights handed round by shuffles.
//
//   forward    own q, stream k and v         running maximum and sum of each row
//   delta      a warp a row                  sum of y * dy, for the next two
//   queries    own q and dy, stream k and v  dq
//   keys       own k and v, stream q and dy  dk and dv, all heads of the group in order
//
// Tiles that no own row sees, after the diagonal, before the window or of other documents, are
// not streamed.
// Nothing of time x time is in memory; each result has one owner and one order of sums.
// Assumes static memrefs of f32 or bf16 with contiguous rows.
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/AttentionLaunch.h"
#include "passes/target/cuda/CudaPasses.h"
#include "passes/target/cuda/NarrowAttention.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace boa {
#define GEN_PASS_DEF_CUDAEMITATTENTION
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

using Values = ThreadBuilder::Values;

void emitForward(OpBuilder &builder, kernel::AttentionOp op) {
  const AttentionShape shape(op);
  AttentionLaunch l(builder, op.getLoc(), shape, shape.heads, {op.getQ()});
  // Of each row the maximum, the lane's part of the sum, the lane's columns of y.
  const int64_t rows = l.warpRows, columns = l.laneColumns();
  Values carried(rows, l.number(kNever));
  carried.append(rows, l.zero());
  carried.append(l.zeroSums());
  const Values starts = l.ownStarts();
  auto addKeys = [&](Value row, Values &state) {
    Values scores = l.dots(l.own[0], l.streamed[0]), weights;
    Value key = l.add(row, l.lane), keyStart = l.startOf(key);
    for (int64_t i = 0; i < rows; ++i) {
      Value is = l.sees(l.ownTime(i), key, key, starts[i], keyStart);
      Value score = l.select(is, l.mulf(scores[i], l.number(shape.scale())), l.number(kNever));
      Value &maximum = state[i], &sum = state[rows + i];
      Value most = l.max(maximum, l.reduceMax(score));
      weights.push_back(l.select(is, l.exp(l.subf(score, most)), l.zero()));
      Value fade = l.exp(l.subf(maximum, most));
      // Before its window or its document a row has no maximum.
      if (l.hidesEarlierKeys())
        fade = l.select(l.reaches(l.ownTime(i), starts[i], row), fade, l.number(1));
      maximum = most;
      sum = l.fma(sum, fade, weights.back());
      for (int64_t j = 0; j < columns; ++j) {
        Value &y = state[2 * rows + i * columns + j];
        y = l.mulf(y, fade);
      }
    }
    Values after = l.spread(weights, l.streamed[1], ArrayRef(state).drop_front(2 * rows));
    llvm::copy(after, state.begin() + 2 * rows);
  };
  Value kvHead = l.div(l.head, shape.group()), end = l.endOfKeys();
  Values results = l.stream(op.getK(), op.getV(), kvHead, l.firstOfKeys(), end, carried, addKeys);

  Values factors;
  for (int64_t i = 0; i < rows; ++i) {
    Value total = l.reduceSum(results[rows + i]), time = l.ownTime(i);
    factors.push_back(l.divf(l.number(1), total));
    Value lse = l.addf(results[i], l.make<math::LogOp>(total));
    l.storeIf(l.isFirstLane(time), lse, op.getLse(), {l.batch, l.head, time});
  }
  l.storeRows(ArrayRef(results).drop_front(2 * rows), factors, op.getY());
}

/// Emits delta[b, h, t], the sum of y * dy over a row of a head.
Value emitDelta(OpBuilder &builder, kernel::AttentionGradOp op) {
  const AttentionShape shape(op);
  auto type = MemRefType::get({shape.batch, shape.heads, shape.time}, builder.getF32Type());
  Value delta;
  {
    // Where temporaries have their place in the workspace: at the top of the kernel.
    OpBuilder::InsertionGuard guard(builder);
    Block &top = op->getParentOfType<KernelOp>().getBody().front();
    builder.setInsertionPoint(top.findAncestorOpInBlock(*op));
    delta = memref::AllocOp::create(builder, op.getLoc(), type);
  }
  AttentionLaunch l(builder, op.getLoc(), shape, shape.heads, {});
  Value time = l.ownTime(0), sum = l.zero();
  for (int64_t j = 0; j < l.laneColumns(); ++j) {
    Value in = l.least(l.column(j), shape.d - 1);
    Values at{l.batch, l.inSequence(time), l.addTimes(in, l.head, shape.d)};
    Value product = l.mulf(l.loadWide(op.getY(), at), l.loadWide(op.getDy(), at));
    sum = l.addf(sum, l.select(l.isLess(l.column(j), shape.d), product, l.zero()));
  }
  l.storeIf(l.isFirstLane(time), l.reduceSum(sum), delta, {l.batch, l.head, time});
  return delta;
}

/// The probabilities, and gradients of scores, of own rows and the lane's row of the stream.
struct Scores {
  Values p, ds;
};

/// Computes scores. The operands are q and dy, or k and v: those that the block owns. `lse` and
/// `delta` have a value for each own row, or that of the lane's row for all. `is` says whether a
/// row and the lane's row see one another.
Scores computeScores(AttentionLaunch &l, ArrayRef<Value> lse, ArrayRef<Value> delta,
                     ArrayRef<Value> is) {
  Value scale = l.number(l.shape.scale());
  Values s = l.dots(l.own[0], l.streamed[0]), dp = l.dots(l.own[1], l.streamed[1]);
  Scores result;
  for (int64_t i = 0; i < l.warpRows; ++i) {
    Value p = l.exp(l.subf(l.mulf(s[i], scale), lse[i]));
    result.p.push_back(l.select(is[i], p, l.zero()));
    result.ds.push_back(l.mulf(l.mulf(result.p[i], l.subf(dp[i], delta[i])), scale));
  }
  return result;
}

void emitQueries(OpBuilder &builder, kernel::AttentionGradOp op, Value delta) {
  const AttentionShape shape(op);
  AttentionLaunch l(builder, op.getLoc(), shape, shape.heads, {op.getQ(), op.getDy()});
  Values lse, deltas;
  for (int64_t i = 0; i < l.warpRows; ++i) {
    Values at{l.batch, l.head, l.inSequence(l.ownTime(i))};
    lse.push_back(l.load(op.getLse(), at));
    deltas.push_back(l.load(delta, at));
  }
  const Values starts = l.ownStarts();
  auto addKeys = [&](Value row, Values &sums) {
    Value key = l.add(row, l.lane), keyStart = l.startOf(key);
    Values is;
    for (int64_t i = 0; i < l.warpRows; ++i)
      is.push_back(l.sees(l.ownTime(i), key, key, starts[i], keyStart));
    Scores scores = computeScores(l, lse, deltas, is);
    sums = l.spread(scores.ds, l.streamed[0], sums);
  };
  Value kvHead = l.div(l.head, shape.group()), end = l.endOfKeys();
  Values dq = l.stream(op.getK(), op.getV(), kvHead, l.firstOfKeys(), end, l.zeroSums(), addKeys);
  l.storeRows(dq, Values(l.warpRows, l.number(1)), op.getDq());
}

void emitKeys(OpBuilder &builder, kernel::AttentionGradOp op, Value delta) {
  const AttentionShape shape(op);
  AttentionLaunch l(builder, op.getLoc(), shape, shape.kvHeads, {op.getK(), op.getV()});
  const size_t count = l.zeroSums().size();
  const Values starts = l.ownStarts();
  auto addQueries = [&](Value head, Value row, Values &sums) {
    Value query = l.add(row, l.lane), queryStart = l.startOf(query);
    Values at{l.batch, head, l.inSequence(query)};
    Values lse(l.warpRows, l.load(op.getLse(), at)), deltas(l.warpRows, l.load(delta, at)), is;
    for (int64_t i = 0; i < l.warpRows; ++i)
      is.push_back(l.sees(query, l.ownTime(i), query, queryStart, starts[i]));
    Scores scores = computeScores(l, lse, deltas, is);
    Values dk = l.spread(scores.ds, l.streamed[0], ArrayRef(sums).take_front(count));
    Values dv = l.spread(scores.p, l.streamed[1], ArrayRef(sums).drop_front(count));
    sums = dk;
    sums.append(dv);
  };
  Value from = l.firstOfQueries(), end = l.endOfQueries();
  auto addHead = [&](Value number, Values &sums) {
    Value head = l.addTimes(number, l.head, shape.group());
    sums = l.stream(op.getQ(), op.getDy(), head, from, end, sums,
                    [&](Value row, Values &inside) { addQueries(head, row, inside); });
  };
  Values zeros = l.zeroSums();
  zeros.append(l.zeroSums());
  Values sums = l.loop(l.index(0), l.index(shape.group()), 1, zeros, addHead);
  Values ones(l.warpRows, l.number(1));
  l.storeRows(ArrayRef(sums).take_front(count), ones, op.getDk());
  l.storeRows(ArrayRef(sums).drop_front(count), ones, op.getDv());
}

template <typename Op> LogicalResult check(Op op, int64_t ownTiles) {
  const AttentionShape shape(op);
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (operand == op.getDocumentStarts() && type && type.hasStaticShape())
      continue;
    if (!type || !type.hasStaticShape() ||
        !(type.getElementType().isF32() || type.getElementType().isBF16()))
      return op.emitOpError("expected memrefs of f32 or bf16 and of static shape, not ")
             << operand.getType();
  }
  if (ownTileRows(shape, ownTiles) == 0)
    return op.emitOpError("expected heads of at most 160 columns, not ") << shape.d;
  return success();
}

struct CudaEmitAttention : boa::impl::CudaEmitAttentionBase<CudaEmitAttention> {
  void runOnOperation() override {
    KernelOp func = getOperation();
    OpBuilder builder(func);
    SmallVector<Operation *> ops;
    func.walk([&](Operation *op) {
      if (isa<kernel::AttentionOp, kernel::AttentionGradOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      builder.setInsertionPoint(op);
      if (auto forward = dyn_cast<kernel::AttentionOp>(op)) {
        if (failed(check(forward, 1)))
          return signalPassFailure();
        if (isNarrow(op))
          emitNarrowForward(builder, forward);
        else
          emitForward(builder, forward);
        op->erase();
      } else {
        auto grad = cast<kernel::AttentionGradOp>(op);
        if (failed(check(grad, 2)))
          return signalPassFailure();
        Value delta = emitDelta(builder, grad);
        if (isNarrow(op)) {
          emitNarrowQueries(builder, grad, delta);
          emitNarrowKeys(builder, grad, delta);
        } else {
          emitQueries(builder, grad, delta);
          emitKeys(builder, grad, delta);
        }
        op->erase();
      }
    }
  }
};

} // namespace
