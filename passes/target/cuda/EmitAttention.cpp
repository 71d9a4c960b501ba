//===- EmitAttention.cpp - Attention as blocked kernels of a GPU ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a program computes attention with where there is no cuDNN: after Dao,
// FlashAttention-2 (2023), on multiply-adds of f32. Each launch is of one shape:
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
// Nothing of time x time is in memory; each result has one owner and one order of sums.
// Assumes static memrefs of f32 or bf16 with contiguous rows.
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/CudaPasses.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

namespace boa {
#define GEN_PASS_DEF_EMITCUDAATTENTION
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

constexpr int64_t kLanes = 32, kWarps = 4, kThreads = kLanes * kWarps;
/// Rows of the stream's tiles: one a lane.
constexpr int64_t kStreamRows = kLanes;
constexpr int64_t kSharedBytes = 48 << 10;
/// Less than any score, and a number: differences of it are numbers too.
constexpr double kNever = -1e30;

/// What a kind of op is given; the same of forward and gradient.
struct Shape {
  template <typename Op>
  explicit Shape(Op op)
      : batch(dim(op.getQ(), 0)), time(dim(op.getQ(), 1)), heads(op.getHeads()),
        kvHeads(op.getKvHeads()), d(dim(op.getQ(), 2) / heads), causal(op.getCausal()) {}
  static int64_t dim(Value value, unsigned i) {
    return cast<MemRefType>(value.getType()).getDimSize(i);
  }
  /// Columns of a tile: whole warps, the last ones zeros.
  int64_t columns() const { return llvm::alignTo(d, kLanes); }
  /// Elements from one row of a tile to the next: lanes that read one column of all rows
  /// meet no bank twice.
  int64_t stride() const { return columns() + 1; }
  /// Rows of the own tile where `own` tiles are owned and two are streamed; 0: none fits.
  int64_t ownRows(int64_t own) const {
    for (int64_t rows : {32, 16, 8, 4})
      if ((own * rows + 2 * kStreamRows) * stride() * 4 <= kSharedBytes)
        return rows;
    return 0;
  }

  int64_t batch, time, heads, kvHeads, d;
  bool causal;
};

/// Builds one launch.
class AttentionLaunch {
public:
  using Values = SmallVector<Value>;

  /// `blocks` along x, one for each tile of own rows; y is the head, z the sequence.
  AttentionLaunch(OpBuilder &outside, Location loc, const Shape &shape, int64_t blocks,
                  int64_t heads, int64_t ownTiles)
      : b(loc, outside), shape(shape), ownRows(shape.ownRows(ownTiles)),
        warpRows(ownRows / kWarps) {
    SmallVector<Type> tiles(ownTiles, tileType(ownRows));
    if (ownTiles > 0)
      tiles.append(2, tileType(kStreamRows));
    launch =
        gpu::LaunchOp::create(b, index(blocks), index(heads), index(shape.batch), index(kThreads),
                              index(1), index(1), Value(), Type(), ValueRange(), tiles);
    b.setInsertionPointToStart(&launch.getBody().front());
    Value thread = launch.getThreadIds().x;
    lane = arith::RemUIOp::create(b, thread, index(kLanes));
    warp = arith::DivUIOp::create(b, thread, index(kLanes));
  }
  void finish() { gpu::TerminatorOp::create(b); }

  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, value); }
  Value number(double value) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(static_cast<float>(value)));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value addTimes(Value x, Value y, int64_t times) {
    return add(x, arith::MulIOp::create(b, y, index(times)));
  }
  Value less(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value lesser(Value x, Value y) { return arith::MinUIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value sum(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
  Value exp(Value x) { return math::ExpOp::create(b, x); }
  Value max(Value x, Value y) { return arith::MaximumFOp::create(b, x, y); }
  Value select(Value is, Value x, Value y) { return arith::SelectOp::create(b, is, x, y); }
  void barrier() { gpu::BarrierOp::create(b); }

  /// In f32, whatever it is stored as.
  Value load(Value memory, ValueRange at) {
    Value value = memref::LoadOp::create(b, memory, at);
    return value.getType().isF32() ? value : arith::ExtFOp::create(b, b.getF32Type(), value);
  }
  void store(Value value, Value memory, ValueRange at) {
    Type element = cast<MemRefType>(memory.getType()).getElementType();
    if (!element.isF32())
      value = arith::TruncFOp::create(b, element, value);
    memref::StoreOp::create(b, value, memory, at);
  }
  void storeIf(Value is, Value value, Value memory, ValueRange at) {
    auto then = scf::IfOp::create(b, is);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(then.thenBlock());
    store(value, memory, at);
  }

  /// The same operation of all lanes' values, in all lanes.
  Value reduce(Value value, llvm::function_ref<Value(Value, Value)> how) {
    for (int32_t offset = kLanes / 2; offset > 0; offset /= 2) {
      auto other = gpu::ShuffleOp::create(b, value, offset, kLanes, gpu::ShuffleMode::XOR);
      value = how(value, other.getShuffleResult());
    }
    return value;
  }
  Value reduceSum(Value value) {
    return reduce(value, [&](Value x, Value y) { return sum(x, y); });
  }
  Value reduceMax(Value value) {
    return reduce(value, [&](Value x, Value y) { return max(x, y); });
  }

  Value ownTile(unsigned i) { return launch.getWorkgroupAttributions()[i]; }
  Value streamTile(unsigned i) {
    return launch.getWorkgroupAttributions()[launch.getNumWorkgroupAttributions() - 2 + i];
  }
  /// Of this warp's own row i: in the tile, and in the sequence.
  Value ownRow(int64_t i) { return addTimes(index(i), warp, warpRows); }
  Value ownTime(int64_t i) { return addTimes(ownRow(i), launch.getBlockIds().x, ownRows); }

  /// Rows [first, first + rows of the tile) of a head of `memory` to shared memory, as f32;
  /// zeros past the end of the sequence and of the head.
  void loadTile(Value tile, Value memory, Value first, Value head) {
    const int64_t columns = shape.columns(), rows = Shape::dim(tile, 0);
    Value thread = launch.getThreadIds().x, batch = launch.getBlockIds().z;
    auto loop = scf::ForOp::create(b, index(0), index(rows * columns / kThreads), index(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value at = addTimes(thread, loop.getInductionVar(), kThreads);
    Value row = arith::DivUIOp::create(b, at, index(columns));
    Value column = arith::RemUIOp::create(b, at, index(columns));
    Value time = add(first, row);
    Value last = lesser(time, index(shape.time - 1));
    Value inHead = lesser(column, index(shape.d - 1));
    Value value = load(memory, {batch, last, addTimes(inHead, head, shape.d)});
    Value is = both(less(time, index(shape.time)), less(column, index(shape.d)));
    memref::StoreOp::create(b, select(is, value, number(0)), tile, ValueRange{row, column});
  }

  /// Of each of the warp's own rows with the lane's row of the stream.
  Values dots(Value own, Value stream) {
    Values zeros(warpRows, number(0));
    auto loop = scf::ForOp::create(b, index(0), index(shape.d), index(1), zeros);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value column = loop.getInductionVar();
    Value theirs = memref::LoadOp::create(b, stream, ValueRange{lane, column});
    Values sums;
    for (int64_t i = 0; i < warpRows; ++i) {
      Value mine = memref::LoadOp::create(b, own, ValueRange{ownRow(i), column});
      sums.push_back(fma(mine, theirs, loop.getRegionIterArg(i)));
    }
    scf::YieldOp::create(b, sums);
    return loop.getResults();
  }

  /// sums[i, column] += the weight of own row i in lane k, times row k of the stream, in
  /// order of k. Of a row's columns the lane has lane, lane + 32 and so on; `sums` are
  /// those of all the warp's rows, one row's beside each other.
  Values spread(ArrayRef<Value> weights, Value stream, ValueRange sums) {
    auto loop = scf::ForOp::create(b, index(0), index(kStreamRows), index(1), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value k = loop.getInductionVar();
    Values theirs;
    for (int64_t j = 0; j < laneColumns(); ++j)
      theirs.push_back(memref::LoadOp::create(b, stream, ValueRange{k, column(j)}));
    Value from = arith::IndexCastOp::create(b, b.getI32Type(), k);
    Value width = arith::ConstantOp::create(b, b.getI32IntegerAttr(kLanes));
    Values results;
    for (auto [i, weight] : llvm::enumerate(weights)) {
      auto handed = gpu::ShuffleOp::create(b, weight, from, width, gpu::ShuffleMode::IDX);
      for (auto [j, value] : llvm::enumerate(theirs))
        results.push_back(
            fma(handed.getShuffleResult(), value, loop.getRegionIterArg(i * laneColumns() + j)));
    }
    scf::YieldOp::create(b, results);
    return loop.getResults();
  }
  int64_t laneColumns() const { return shape.columns() / kLanes; }
  Value column(int64_t j) { return add(lane, index(j * kLanes)); }
  Values zeroSums() { return Values(warpRows * laneColumns(), number(0)); }

  /// Sums of own rows to a head of `memory`, times `factors` of the rows.
  void storeRows(ValueRange sums, ArrayRef<Value> factors, Value memory, Value head) {
    for (int64_t i = 0; i < warpRows; ++i) {
      Value time = ownTime(i), in = less(time, index(shape.time));
      for (int64_t j = 0; j < laneColumns(); ++j) {
        Value value = mul(sums[i * laneColumns() + j], factors[i]);
        storeIf(both(in, less(column(j), index(shape.d))), value, memory,
                {launch.getBlockIds().z, time, addTimes(column(j), head, shape.d)});
      }
    }
  }

  /// Streams tiles of two operands past the own ones: from the tile of row `from` to the one
  /// before row `to`. `body` is given the tile's first row and what is carried.
  Values stream(Value first, Value second, Value head, Value from, Value to, ValueRange carried,
                llvm::function_ref<Values(Value, ValueRange)> body) {
    auto tiles = [&](Value rows) {
      return arith::CeilDivUIOp::create(b, rows, index(kStreamRows));
    };
    Value begin = arith::DivUIOp::create(b, from, index(kStreamRows));
    auto loop = scf::ForOp::create(b, begin, tiles(to), index(1), carried);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value row = arith::MulIOp::create(b, loop.getInductionVar(), index(kStreamRows));
    barrier(); // who still reads the tiles before
    loadTile(streamTile(0), first, row, head);
    loadTile(streamTile(1), second, row, head);
    barrier();
    scf::YieldOp::create(b, body(row, loop.getRegionIterArgs()));
    return loop.getResults();
  }

  ImplicitLocOpBuilder b;
  const Shape shape;
  const int64_t ownRows, warpRows;
  gpu::LaunchOp launch;
  Value lane, warp;

private:
  MemRefType tileType(int64_t rows) {
    auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
    return MemRefType::get({rows, shape.stride()}, b.getF32Type(), AffineMap(), space);
  }
};

using Values = AttentionLaunch::Values;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

void emitForward(OpBuilder &builder, kernel::AttentionOp op) {
  const Shape shape(op);
  const double scale = 1 / std::sqrt(static_cast<double>(shape.d));
  AttentionLaunch l(builder, op.getLoc(), shape, ceilDiv(shape.time, shape.ownRows(1)), shape.heads,
                    1);
  gpu::KernelDim3 block = l.launch.getBlockIds();
  Value head = block.y;
  Value kvHead = arith::DivUIOp::create(l.b, head, l.index(shape.heads / shape.kvHeads));
  Value first = arith::MulIOp::create(l.b, block.x, l.index(l.ownRows));
  l.loadTile(l.ownTile(0), op.getQ(), first, head);
  Value end = l.index(shape.time);
  if (shape.causal)
    end = l.lesser(end, l.add(first, l.index(l.ownRows)));

  // Of each row the maximum, the lane's part of the sum, the lane's columns of y.
  const int64_t rows = l.warpRows, columns = l.laneColumns();
  Values carried(rows, l.number(kNever));
  carried.append(rows, l.number(0));
  carried.append(l.zeroSums());
  Values results = l.stream(
      op.getK(), op.getV(), kvHead, l.index(0), end, carried, [&](Value row, ValueRange before) {
        Values scores = l.dots(l.ownTile(0), l.streamTile(0));
        Value key = l.add(row, l.lane);
        Values maxima, sums, weights, scaled;
        for (int64_t i = 0; i < rows; ++i) {
          Value is = l.less(key, l.index(shape.time));
          if (shape.causal)
            is = l.both(is, l.less(key, l.add(l.ownTime(i), l.index(1))));
          Value score = l.select(is, l.mul(scores[i], l.number(scale)), l.number(kNever));
          Value most = l.max(before[i], l.reduceMax(score));
          Value weight = l.select(is, l.exp(l.sub(score, most)), l.number(0));
          Value fade = l.exp(l.sub(before[i], most));
          maxima.push_back(most);
          sums.push_back(l.fma(before[rows + i], fade, weight));
          weights.push_back(weight);
          for (int64_t j = 0; j < columns; ++j)
            scaled.push_back(l.mul(before[2 * rows + i * columns + j], fade));
        }
        Values after = maxima;
        after.append(sums);
        after.append(l.spread(weights, l.streamTile(1), scaled));
        return after;
      });

  Values factors;
  for (int64_t i = 0; i < rows; ++i) {
    Value total = l.reduceSum(results[rows + i]);
    factors.push_back(arith::DivFOp::create(l.b, l.number(1), total));
    Value time = l.ownTime(i);
    Value lse = l.sum(results[i], math::LogOp::create(l.b, total));
    Value one = arith::CmpIOp::create(l.b, arith::CmpIPredicate::eq, l.lane, l.index(0));
    l.storeIf(l.both(one, l.less(time, l.index(shape.time))), lse, op.getLse(),
              {block.z, head, time});
  }
  l.storeRows(ValueRange(results).drop_front(2 * rows), factors, op.getY(), head);
  l.finish();
}

/// delta[b, h, t] = the sum of y * dy over a row of a head.
Value emitDelta(OpBuilder &builder, kernel::AttentionGradOp op) {
  const Shape shape(op);
  auto type = MemRefType::get({shape.batch, shape.heads, shape.time}, builder.getF32Type());
  Value delta = memref::AllocOp::create(builder, op.getLoc(), type, builder.getI64IntegerAttr(64));
  AttentionLaunch l(builder, op.getLoc(), shape, ceilDiv(shape.time, kWarps), shape.heads, 0);
  gpu::KernelDim3 block = l.launch.getBlockIds();
  Value time = l.addTimes(l.warp, block.x, kWarps);
  Value last = l.lesser(time, l.index(shape.time - 1));
  Value sum = l.number(0);
  for (int64_t j = 0; j < l.laneColumns(); ++j) {
    Value in = l.lesser(l.column(j), l.index(shape.d - 1));
    SmallVector<Value> at{block.z, last, l.addTimes(in, block.y, shape.d)};
    Value product = l.mul(l.load(op.getY(), at), l.load(op.getDy(), at));
    sum = l.sum(sum, l.select(l.less(l.column(j), l.index(shape.d)), product, l.number(0)));
  }
  sum = l.reduceSum(sum);
  Value one = arith::CmpIOp::create(l.b, arith::CmpIPredicate::eq, l.lane, l.index(0));
  l.storeIf(l.both(one, l.less(time, l.index(shape.time))), sum, delta, {block.z, block.y, time});
  l.finish();
  return delta;
}

/// Probabilities, and gradients of scores, of own rows and the lane's row of the stream.
struct Scores {
  Values p, ds;
};

/// Operands are q and dy, k and v, whichever are owned. `lse` and `delta`, one for each own row
/// or the lane's, repeated; `is`: whether a row and the lane's see one another.
Scores computeScores(AttentionLaunch &l, ArrayRef<Value> lse, ArrayRef<Value> delta,
                     ArrayRef<Value> is) {
  Value scale = l.number(1 / std::sqrt(static_cast<double>(l.shape.d)));
  Values s = l.dots(l.ownTile(0), l.streamTile(0)), dp = l.dots(l.ownTile(1), l.streamTile(1));
  Scores result;
  for (int64_t i = 0; i < l.warpRows; ++i) {
    Value p = l.exp(l.sub(l.mul(s[i], scale), lse[i]));
    result.p.push_back(l.select(is[i], p, l.number(0)));
    result.ds.push_back(l.mul(l.mul(result.p[i], l.sub(dp[i], delta[i])), scale));
  }
  return result;
}

void emitQueries(OpBuilder &builder, kernel::AttentionGradOp op, Value delta) {
  const Shape shape(op);
  AttentionLaunch l(builder, op.getLoc(), shape, ceilDiv(shape.time, shape.ownRows(2)), shape.heads,
                    2);
  gpu::KernelDim3 block = l.launch.getBlockIds();
  Value head = block.y;
  Value kvHead = arith::DivUIOp::create(l.b, head, l.index(shape.heads / shape.kvHeads));
  Value first = arith::MulIOp::create(l.b, block.x, l.index(l.ownRows));
  l.loadTile(l.ownTile(0), op.getQ(), first, head);
  l.loadTile(l.ownTile(1), op.getDy(), first, head);
  Values lse, deltas;
  for (int64_t i = 0; i < l.warpRows; ++i) {
    SmallVector<Value> at{block.z, head, l.lesser(l.ownTime(i), l.index(shape.time - 1))};
    lse.push_back(l.load(op.getLse(), at));
    deltas.push_back(l.load(delta, at));
  }
  Value end = l.index(shape.time);
  if (shape.causal)
    end = l.lesser(end, l.add(first, l.index(l.ownRows)));
  Values dq = l.stream(op.getK(), op.getV(), kvHead, l.index(0), end, l.zeroSums(),
                       [&](Value row, ValueRange before) {
                         Value key = l.add(row, l.lane);
                         Values is(l.warpRows, l.less(key, l.index(shape.time)));
                         for (int64_t i = 0; shape.causal && i < l.warpRows; ++i)
                           is[i] = l.both(is[i], l.less(key, l.add(l.ownTime(i), l.index(1))));
                         Scores scores = computeScores(l, lse, deltas, is);
                         return l.spread(scores.ds, l.streamTile(0), before);
                       });
  l.storeRows(dq, Values(l.warpRows, l.number(1)), op.getDq(), head);
  l.finish();
}

void emitKeys(OpBuilder &builder, kernel::AttentionGradOp op, Value delta) {
  const Shape shape(op);
  AttentionLaunch l(builder, op.getLoc(), shape, ceilDiv(shape.time, shape.ownRows(2)),
                    shape.kvHeads, 2);
  gpu::KernelDim3 block = l.launch.getBlockIds();
  Value kvHead = block.y;
  const int64_t group = shape.heads / shape.kvHeads;
  Value first = arith::MulIOp::create(l.b, block.x, l.index(l.ownRows));
  l.loadTile(l.ownTile(0), op.getK(), first, kvHead);
  l.loadTile(l.ownTile(1), op.getV(), first, kvHead);
  const size_t sums = l.zeroSums().size();
  Values carried = l.zeroSums();
  carried.append(l.zeroSums());
  auto heads = scf::ForOp::create(l.b, l.index(0), l.index(group), l.index(1), carried);
  {
    OpBuilder::InsertionGuard guard(l.b);
    l.b.setInsertionPointToStart(heads.getBody());
    Value head = l.addTimes(heads.getInductionVar(), kvHead, group);
    // Queries before the first own key see none of them.
    Value from = shape.causal ? first : l.index(0);
    Values results =
        l.stream(op.getQ(), op.getDy(), head, from, l.index(shape.time), heads.getRegionIterArgs(),
                 [&](Value row, ValueRange before) {
                   Value query = l.add(row, l.lane);
                   SmallVector<Value> at{block.z, head, l.lesser(query, l.index(shape.time - 1))};
                   Values lse(l.warpRows, l.load(op.getLse(), at));
                   Values deltas(l.warpRows, l.load(delta, at));
                   Values is(l.warpRows, l.less(query, l.index(shape.time)));
                   for (int64_t i = 0; shape.causal && i < l.warpRows; ++i)
                     is[i] = l.both(is[i], l.less(l.ownTime(i), l.add(query, l.index(1))));
                   Scores scores = computeScores(l, lse, deltas, is);
                   Values after = l.spread(scores.ds, l.streamTile(0), before.take_front(sums));
                   after.append(l.spread(scores.p, l.streamTile(1), before.drop_front(sums)));
                   return after;
                 });
    scf::YieldOp::create(l.b, results);
  }
  Values ones(l.warpRows, l.number(1));
  l.storeRows(heads.getResults().take_front(sums), ones, op.getDk(), kvHead);
  l.storeRows(heads.getResults().drop_front(sums), ones, op.getDv(), kvHead);
  l.finish();
}

template <typename Op> LogicalResult check(Op op, int64_t ownTiles) {
  const Shape shape(op);
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (!type || !type.hasStaticShape() ||
        !(type.getElementType().isF32() || type.getElementType().isBF16()))
      return op.emitOpError("expected memrefs of f32 or bf16 and of static shape, not ")
             << operand.getType();
  }
  if (shape.ownRows(ownTiles) == 0)
    return op.emitOpError("expected heads of at most 160 columns, not ") << shape.d;
  return success();
}

struct EmitCudaAttention : boa::impl::EmitCudaAttentionBase<EmitCudaAttention> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr))
      return;
    OpBuilder builder(func);
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
      builder.setInsertionPoint(&op);
      if (auto forward = dyn_cast<kernel::AttentionOp>(op)) {
        if (failed(check(forward, 1)))
          return signalPassFailure();
        emitForward(builder, forward);
        op.erase();
      } else if (auto grad = dyn_cast<kernel::AttentionGradOp>(op)) {
        if (failed(check(grad, 2)))
          return signalPassFailure();
        Value delta = emitDelta(builder, grad);
        emitQueries(builder, grad, delta);
        emitKeys(builder, grad, delta);
        op.erase();
      }
    }
  }
};

} // namespace
