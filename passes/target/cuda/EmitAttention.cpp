//===- EmitAttention.cpp - Attention as blocked kernels of a GPU ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a program computes attention with that cuDNN does not: all of f32, and of bf16
// what --cuda-offer-attention does not offer or the runtime does not take. After Dao,
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
// Tiles that no own row sees, after the diagonal or before the window, are not streamed.
// Nothing of time x time is in memory; each result has one owner and one order of sums.
// Assumes static memrefs of f32 or bf16 with contiguous rows.
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/CudaPasses.h"
#include "passes/target/cuda/ThreadBuilder.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

namespace boa {
#define GEN_PASS_DEF_EMITCUDAATTENTION
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

using Values = ThreadBuilder::Values;

constexpr int64_t kWarps = 4, kThreads = kWarpSize * kWarps;
/// Rows of the stream's tiles: one a lane.
constexpr int64_t kStreamRows = kWarpSize;
/// The score of what is not seen. A row of which all scores are that has no maximum to be
/// subtracted: what comes of it is NaN, as on a CPU.
constexpr double kNever = -std::numeric_limits<double>::infinity();

/// What a kind of op is given; the same of forward and gradient.
struct Shape {
  template <typename Op>
  explicit Shape(Op op)
      : batch(dim(op.getQ(), 0)), time(dim(op.getQ(), 1)), heads(op.getHeads()),
        kvHeads(op.getKvHeads()), d(dim(op.getQ(), 2) / heads), causal(op.getCausal()),
        window(op.getWindow().value_or(0)) {}
  static int64_t dim(Value value, unsigned i) {
    return cast<MemRefType>(value.getType()).getDimSize(i);
  }
  /// Heads of queries that share one of keys.
  int64_t group() const { return heads / kvHeads; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(d)); }
  /// Columns of a tile: whole warps, the last ones zeros.
  int64_t columns() const { return llvm::alignTo(d, kWarpSize); }
  /// Elements from one row of a tile to the next: lanes that read one column of all rows
  /// meet no bank twice.
  int64_t stride() const { return columns() + 1; }
  /// Rows of the own tile where `own` tiles are owned and two are streamed; 0: none fits.
  /// Where none is owned, a row for each warp.
  int64_t ownRows(int64_t own) const {
    if (own == 0)
      return kWarps;
    for (int64_t rows : {32, 16, 8, 4})
      if ((own * rows + 2 * kStreamRows) * stride() * 4 <= kMaxWorkgroupBytes)
        return rows;
    return 0;
  }

  int64_t batch, time, heads, kvHeads, d;
  bool causal;
  int64_t window; // keys that a row sees; 0: all, or all up to its own
};

/// Builds one launch.
class AttentionLaunch : public ThreadBuilder {
public:
  /// A block for each tile of own rows of each of `heads` of each sequence, which are loaded
  /// from `owned`.
  AttentionLaunch(OpBuilder &outside, Location loc, const Shape &shape, int64_t heads,
                  ArrayRef<Value> owned)
      : ThreadBuilder(outside, loc), shape(shape), ownRows(shape.ownRows(owned.size())),
        warpRows(ownRows / kWarps) {
    const int64_t blocks = llvm::divideCeil(shape.time, ownRows);
    auto launch = createLaunch(*this, {blocks, heads, shape.batch}, kThreads, 1);
    thread = launch.getThreadIds().x;
    lane = rem(thread, kWarpSize);
    warp = div(thread, kWarpSize);
    first = mul(launch.getBlockIds().x, ownRows);
    head = launch.getBlockIds().y;
    batch = launch.getBlockIds().z;
    auto addTile = [&](int64_t rows) {
      return addWorkgroupMemory(launch, {rows, shape.stride()}, getF32Type());
    };
    for (size_t i = 0; i < owned.size(); ++i)
      own.push_back(addTile(ownRows));
    for (Value &tile : streamed)
      tile = owned.empty() ? Value() : addTile(kStreamRows);
    for (auto [tile, memory] : llvm::zip(own, owned))
      loadTile(tile, memory, first, head);
  }

  Value addTimes(Value x, Value y, int64_t times) { return add(x, mul(y, times)); }
  Value exp(Value x) { return make<math::ExpOp>(x); }
  Value max(Value x, Value y) { return make<arith::MaximumFOp>(x, y); }
  Value reduceSum(Value value) {
    return combineLanes(value, 1, kWarpSize, [&](Value x, Value y) { return addf(x, y); });
  }
  Value reduceMax(Value value) {
    return combineLanes(value, 1, kWarpSize, [&](Value x, Value y) { return max(x, y); });
  }

  /// In f32, whatever it is stored as.
  Value loadWide(Value memory, ValueRange at) {
    Value value = load(memory, at);
    return value.getType().isF32() ? value : make<arith::ExtFOp>(getF32Type(), value);
  }
  void storeIf(Value is, Value value, Value memory, ValueRange at) {
    when(is, [&] {
      Type element = cast<MemRefType>(memory.getType()).getElementType();
      store(element.isF32() ? value : make<arith::TruncFOp>(element, value), memory, at);
    });
  }

  /// Of this warp's own row i: in the tile, and in the sequence.
  Value ownRow(int64_t i) { return addTimes(index(i), warp, warpRows); }
  Value ownTime(int64_t i) { return add(first, ownRow(i)); }
  /// Of a row in the sequence the nearest that there is.
  Value inSequence(Value time) { return least(time, shape.time - 1); }
  /// Where a number of an own row is stored, and whether this lane does it.
  Value isFirstLane(Value time) { return both(isZero(lane), isLess(time, shape.time)); }

  /// The first key that own queries see.
  Value firstOfKeys() {
    if (shape.window == 0)
      return index(0);
    Value from = make<arith::SubIOp>(first, index(shape.window - 1));
    return select(isLess(first, shape.window), index(0), from);
  }
  /// One past the last query that sees own keys.
  Value endOfQueries() {
    if (shape.window == 0)
      return index(shape.time);
    return least(add(first, ownRows + shape.window - 1), shape.time);
  }
  /// Whether a query sees any key of the tile of the stream that begins at `row`, or of one
  /// before it.
  Value reaches(Value query, Value row) {
    Value end = add(row, kStreamRows + shape.window - 1);
    return compare(arith::CmpIPredicate::ult, query, end);
  }
  /// One past the last key that own queries see.
  Value endOfKeys() {
    return shape.causal ? least(add(first, ownRows), shape.time) : index(shape.time);
  }
  /// Whether a query and a key see one another, of which `streamed` may be past the end.
  Value sees(Value query, Value key, Value streamed) {
    Value is = isLess(streamed, shape.time);
    if (shape.causal)
      is = both(is, compare(arith::CmpIPredicate::ule, key, query));
    if (shape.window != 0)
      is = both(is, compare(arith::CmpIPredicate::ult, query, add(key, shape.window)));
    return is;
  }

  /// Rows [from, from + rows of the tile) of a head of `memory` to shared memory, as f32;
  /// zeros past the end of the sequence and of the head.
  void loadTile(Value tile, Value memory, Value from, Value ofHead) {
    const int64_t columns = shape.columns(), rows = Shape::dim(tile, 0);
    auto pass = [&](Value number, Values &) {
      Value at = addTimes(thread, number, kThreads);
      Value row = div(at, columns), column = rem(at, columns);
      Value time = add(from, row);
      Value inHead = least(column, shape.d - 1);
      Value value = loadWide(memory, {batch, inSequence(time), addTimes(inHead, ofHead, shape.d)});
      Value is = both(isLess(time, shape.time), isLess(column, shape.d));
      store(select(is, value, zero()), tile, {row, column});
    };
    loop(index(0), index(rows * columns / kThreads), 1, {}, pass);
  }

  /// Of each of the warp's own rows with the lane's row of the stream.
  Values dots(Value own, Value stream) {
    return loop(index(0), index(shape.d), 1, Values(warpRows, zero()),
                [&](Value column, Values &sums) {
                  Value theirs = load(stream, {lane, column});
                  for (auto [i, sum] : llvm::enumerate(sums))
                    sum = fma(load(own, {ownRow(i), column}), theirs, sum);
                });
  }

  /// sums[i, column] += the weight of own row i in lane k, times row k of the stream, in
  /// order of k. Of a row's columns the lane has lane, lane + 32 and so on; `sums` are
  /// those of all the warp's rows, one row's beside each other.
  Values spread(ArrayRef<Value> weights, Value stream, ValueRange sums) {
    return loop(index(0), index(kStreamRows), 1, Values(sums), [&](Value k, Values &sums) {
      Values theirs;
      for (int64_t j = 0; j < laneColumns(); ++j)
        theirs.push_back(load(stream, {k, column(j)}));
      Value from = make<arith::IndexCastOp>(getI32Type(), k);
      Value *sum = sums.begin();
      for (Value weight : weights) {
        Value handed = shuffle(gpu::ShuffleMode::IDX, weight, from);
        for (Value value : theirs) {
          *sum = fma(handed, value, *sum);
          ++sum;
        }
      }
    });
  }
  int64_t laneColumns() const { return shape.columns() / kWarpSize; }
  Value column(int64_t j) { return add(lane, j * kWarpSize); }
  Value zero() { return number(0); }
  Values zeroSums() { return Values(warpRows * laneColumns(), zero()); }

  /// Sums of own rows to their head of `memory`, times `factors` of the rows.
  void storeRows(ValueRange sums, ArrayRef<Value> factors, Value memory) {
    for (int64_t i = 0; i < warpRows; ++i) {
      Value time = ownTime(i), in = isLess(time, shape.time);
      for (int64_t j = 0; j < laneColumns(); ++j) {
        Value value = mulf(sums[i * laneColumns() + j], factors[i]);
        storeIf(both(in, isLess(column(j), shape.d)), value, memory,
                {batch, time, addTimes(column(j), head, shape.d)});
      }
    }
  }

  /// Streams tiles of two operands past the own ones: from the tile of row `from` to the one
  /// before row `to`. `body` is given the tile's first row and changes what is carried.
  Values stream(Value operand, Value other, Value ofHead, Value from, Value to, Values carried,
                function_ref<void(Value, Values &)> body) {
    Value end = div(add(to, kStreamRows - 1), kStreamRows);
    return loop(div(from, kStreamRows), end, 1, std::move(carried),
                [&](Value number, Values &inside) {
                  Value row = mul(number, kStreamRows);
                  barrier(); // who still reads the tiles before
                  loadTile(streamed[0], operand, row, ofHead);
                  loadTile(streamed[1], other, row, ofHead);
                  barrier();
                  body(row, inside);
                });
  }

  const Shape shape;
  const int64_t ownRows, warpRows;
  Value thread, lane, warp;
  Value first, head, batch; // of the own rows
  Values own;
  Value streamed[2];
};

void emitForward(OpBuilder &builder, kernel::AttentionOp op) {
  const Shape shape(op);
  AttentionLaunch l(builder, op.getLoc(), shape, shape.heads, {op.getQ()});
  // Of each row the maximum, the lane's part of the sum, the lane's columns of y.
  const int64_t rows = l.warpRows, columns = l.laneColumns();
  Values carried(rows, l.number(kNever));
  carried.append(rows, l.zero());
  carried.append(l.zeroSums());
  auto addKeys = [&](Value row, Values &state) {
    Values scores = l.dots(l.own[0], l.streamed[0]), weights;
    Value key = l.add(row, l.lane);
    for (int64_t i = 0; i < rows; ++i) {
      Value is = l.sees(l.ownTime(i), key, key);
      Value score = l.select(is, l.mulf(scores[i], l.number(shape.scale())), l.number(kNever));
      Value &maximum = state[i], &sum = state[rows + i];
      Value most = l.max(maximum, l.reduceMax(score));
      weights.push_back(l.select(is, l.exp(l.subf(score, most)), l.zero()));
      Value fade = l.exp(l.subf(maximum, most));
      // Before its window a row has no maximum.
      if (shape.window != 0)
        fade = l.select(l.reaches(l.ownTime(i), row), fade, l.number(1));
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
    factors.push_back(l.make<arith::DivFOp>(l.number(1), total));
    Value lse = l.addf(results[i], l.make<math::LogOp>(total));
    l.storeIf(l.isFirstLane(time), lse, op.getLse(), {l.batch, l.head, time});
  }
  l.storeRows(ArrayRef(results).drop_front(2 * rows), factors, op.getY());
}

/// delta[b, h, t] = the sum of y * dy over a row of a head.
Value emitDelta(OpBuilder &builder, kernel::AttentionGradOp op) {
  const Shape shape(op);
  auto type = MemRefType::get({shape.batch, shape.heads, shape.time}, builder.getF32Type());
  Value delta;
  {
    // Where temporaries have their place in the workspace: at the top of the kernel.
    OpBuilder::InsertionGuard guard(builder);
    Block &top = op->getParentOfType<func::FuncOp>().getBody().front();
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

/// Probabilities, and gradients of scores, of own rows and the lane's row of the stream.
struct Scores {
  Values p, ds;
};

/// Operands are q and dy, k and v, whichever are owned. `lse` and `delta`, one for each own row
/// or the lane's, repeated; `is`: whether a row and the lane's see one another.
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
  const Shape shape(op);
  AttentionLaunch l(builder, op.getLoc(), shape, shape.heads, {op.getQ(), op.getDy()});
  Values lse, deltas;
  for (int64_t i = 0; i < l.warpRows; ++i) {
    Values at{l.batch, l.head, l.inSequence(l.ownTime(i))};
    lse.push_back(l.load(op.getLse(), at));
    deltas.push_back(l.load(delta, at));
  }
  auto addKeys = [&](Value row, Values &sums) {
    Value key = l.add(row, l.lane);
    Values is;
    for (int64_t i = 0; i < l.warpRows; ++i)
      is.push_back(l.sees(l.ownTime(i), key, key));
    Scores scores = computeScores(l, lse, deltas, is);
    sums = l.spread(scores.ds, l.streamed[0], sums);
  };
  Value kvHead = l.div(l.head, shape.group()), end = l.endOfKeys();
  Values dq = l.stream(op.getK(), op.getV(), kvHead, l.firstOfKeys(), end, l.zeroSums(), addKeys);
  l.storeRows(dq, Values(l.warpRows, l.number(1)), op.getDq());
}

void emitKeys(OpBuilder &builder, kernel::AttentionGradOp op, Value delta) {
  const Shape shape(op);
  AttentionLaunch l(builder, op.getLoc(), shape, shape.kvHeads, {op.getK(), op.getV()});
  const size_t count = l.zeroSums().size();
  auto addQueries = [&](Value head, Value row, Values &sums) {
    Value query = l.add(row, l.lane);
    Values at{l.batch, head, l.inSequence(query)};
    Values lse(l.warpRows, l.load(op.getLse(), at)), deltas(l.warpRows, l.load(delta, at)), is;
    for (int64_t i = 0; i < l.warpRows; ++i)
      is.push_back(l.sees(query, l.ownTime(i), query));
    Scores scores = computeScores(l, lse, deltas, is);
    Values dk = l.spread(scores.ds, l.streamed[0], ArrayRef(sums).take_front(count));
    Values dv = l.spread(scores.p, l.streamed[1], ArrayRef(sums).drop_front(count));
    sums = dk;
    sums.append(dv);
  };
  auto addHead = [&](Value number, Values &sums) {
    Value head = l.addTimes(number, l.head, shape.group());
    // Queries before the first own key see none of them.
    Value from = shape.causal ? l.first : l.index(0);
    sums = l.stream(op.getQ(), op.getDy(), head, from, l.endOfQueries(), sums,
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
        emitForward(builder, forward);
        op->erase();
      } else {
        auto grad = cast<kernel::AttentionGradOp>(op);
        if (failed(check(grad, 2)))
          return signalPassFailure();
        Value delta = emitDelta(builder, grad);
        emitQueries(builder, grad, delta);
        emitKeys(builder, grad, delta);
        op->erase();
      }
    }
  }
};

} // namespace
