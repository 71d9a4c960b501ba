//===- AttentionLaunch.h - One launch of blocked attention ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the launches of EmitAttention.cpp have in common: a block of four warps owns a tile of rows
// and streams tiles of other rows past it. Which rows see one another is decided here.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_ATTENTIONLAUNCH_H
#define BOA_PASSES_TARGET_CUDA_ATTENTIONLAUNCH_H

#include "passes/kernels/KernelDialect.h"
#include "passes/target/cuda/ThreadBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

namespace boa {

constexpr int64_t kWarps = 4, kThreads = kWarpSize * kWarps;
/// Rows of the stream's tiles: one a lane.
constexpr int64_t kStreamRows = kWarpSize;

/// What a kind of op is given; the same of forward and gradient.
struct AttentionShape {
  template <typename Op>
  explicit AttentionShape(Op op)
      : batch(dim(op.getQ(), 0)), time(dim(op.getQ(), 1)), heads(op.getHeads()),
        kvHeads(op.getKvHeads()), d(dim(op.getQ(), 2) / heads), causal(op.getCausal()),
        window(op.getWindow().value_or(0)), documents(op.getDocumentStarts()) {}
  static int64_t dim(mlir::Value value, unsigned i) {
    return mlir::cast<mlir::MemRefType>(value.getType()).getDimSize(i);
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
  int64_t window;        // keys that a row sees; 0: all, or all up to its own
  mlir::Value documents; // their starts, or null
};

/// Builds one launch.
class AttentionLaunch : public ThreadBuilder {
public:
  /// A block for each tile of own rows of each of `heads` of each sequence, which are loaded
  /// from `owned`.
  AttentionLaunch(mlir::OpBuilder &outside, mlir::Location loc, const AttentionShape &shape,
                  int64_t heads, llvm::ArrayRef<mlir::Value> owned)
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
    for (mlir::Value &tile : streamed)
      tile = owned.empty() ? mlir::Value() : addTile(kStreamRows);
    for (auto [tile, memory] : llvm::zip(own, owned))
      loadTile(tile, memory, first, head);
  }

  mlir::Value addTimes(mlir::Value x, mlir::Value y, int64_t times) {
    return add(x, mul(y, times));
  }
  mlir::Value exp(mlir::Value x) { return make<mlir::math::ExpOp>(x); }
  mlir::Value max(mlir::Value x, mlir::Value y) { return make<mlir::arith::MaximumFOp>(x, y); }
  mlir::Value reduceSum(mlir::Value value) {
    return combineLanes(value, 1, kWarpSize,
                        [&](mlir::Value x, mlir::Value y) { return addf(x, y); });
  }
  mlir::Value reduceMax(mlir::Value value) {
    return combineLanes(value, 1, kWarpSize,
                        [&](mlir::Value x, mlir::Value y) { return max(x, y); });
  }

  /// In f32, whatever it is stored as.
  mlir::Value loadWide(mlir::Value memory, mlir::ValueRange at) {
    mlir::Value value = load(memory, at);
    return value.getType().isF32() ? value : make<mlir::arith::ExtFOp>(getF32Type(), value);
  }
  void storeIf(mlir::Value is, mlir::Value value, mlir::Value memory, mlir::ValueRange at) {
    when(is, [&] {
      mlir::Type element = mlir::cast<mlir::MemRefType>(memory.getType()).getElementType();
      store(element.isF32() ? value : make<mlir::arith::TruncFOp>(element, value), memory, at);
    });
  }

  /// Of this warp's own row i: in the tile, and in the sequence.
  mlir::Value ownRow(int64_t i) { return addTimes(index(i), warp, warpRows); }
  mlir::Value ownTime(int64_t i) { return add(first, ownRow(i)); }
  /// Of a row in the sequence the nearest that there is.
  mlir::Value inSequence(mlir::Value time) { return least(time, shape.time - 1); }
  /// Where a number of an own row is stored, and whether this lane does it.
  mlir::Value isFirstLane(mlir::Value time) { return both(isZero(lane), isLess(time, shape.time)); }

  /// Where the document of a row begins, or of the row nearest to it; null: a sequence is one.
  mlir::Value startOf(mlir::Value time) {
    if (!shape.documents)
      return {};
    return make<mlir::arith::IndexCastOp>(getIndexType(),
                                          load(shape.documents, {batch, inSequence(time)}));
  }
  /// Of this warp's own rows.
  Values ownStarts() {
    Values starts;
    for (int64_t i = 0; i < warpRows; ++i)
      starts.push_back(startOf(ownTime(i)));
    return starts;
  }
  mlir::Value endOfOwn() { return least(add(first, ownRows), shape.time); }
  /// One past the last row of the document of the last own row: the first row whose document
  /// begins behind that one, by bisection.
  mlir::Value endOfDocument() {
    if (!shape.documents)
      return index(shape.time);
    mlir::Value end = endOfOwn();
    auto halve = [&](mlir::Value, Values &bounds) {
      mlir::Value middle = div(add(bounds[0], bounds[1]), 2);
      mlir::Value isOpen = compare(mlir::arith::CmpIPredicate::ult, bounds[0], bounds[1]);
      mlir::Value isLater = compare(mlir::arith::CmpIPredicate::uge, startOf(middle), end);
      isLater = select(isOpen, isLater, make<mlir::arith::ConstantIntOp>(true, 1));
      bounds[0] = select(isLater, bounds[0], add(middle, 1));
      bounds[1] = select(isLater, middle, bounds[1]);
    };
    const int64_t turns = llvm::Log2_64_Ceil(uint64_t(shape.time)) + 1;
    return loop(index(0), index(turns), 1, {end, index(shape.time)}, halve)[1];
  }

  /// The first key that own queries see.
  mlir::Value firstOfKeys() {
    mlir::Value from = shape.documents ? startOf(first) : index(0);
    if (shape.window == 0)
      return from;
    mlir::Value ofWindow = make<mlir::arith::SubIOp>(first, index(shape.window - 1));
    ofWindow = select(isLess(first, shape.window), index(0), ofWindow);
    return make<mlir::arith::MaxUIOp>(from, ofWindow);
  }
  /// The first query that sees own keys.
  mlir::Value firstOfQueries() {
    return shape.causal ? first : shape.documents ? startOf(first) : index(0);
  }
  /// One past the last query that sees own keys.
  mlir::Value endOfQueries() {
    mlir::Value end = endOfDocument();
    if (shape.window == 0)
      return end;
    return make<mlir::arith::MinUIOp>(end, add(first, ownRows + shape.window - 1));
  }
  bool hidesEarlierKeys() const { return shape.window != 0 || shape.documents; }
  /// Whether a query, whose document begins at `start`, sees any key of the tile of the stream
  /// that begins at `row`, or of one before it.
  mlir::Value reaches(mlir::Value query, mlir::Value start, mlir::Value row) {
    mlir::Value is;
    if (shape.window != 0)
      is =
          compare(mlir::arith::CmpIPredicate::ult, query, add(row, kStreamRows + shape.window - 1));
    if (start) {
      mlir::Value begins = compare(mlir::arith::CmpIPredicate::ult, start, add(row, kStreamRows));
      is = is ? both(is, begins) : begins;
    }
    return is;
  }
  /// One past the last key that own queries see.
  mlir::Value endOfKeys() { return shape.causal ? endOfOwn() : endOfDocument(); }
  /// Whether a query and a key see one another, of which `streamed` may be past the end. With
  /// the starts of their documents.
  mlir::Value sees(mlir::Value query, mlir::Value key, mlir::Value streamed, mlir::Value queryStart,
                   mlir::Value keyStart) {
    mlir::Value is = isLess(streamed, shape.time);
    if (shape.causal)
      is = both(is, compare(mlir::arith::CmpIPredicate::ule, key, query));
    if (shape.window != 0)
      is = both(is, compare(mlir::arith::CmpIPredicate::ult, query, add(key, shape.window)));
    if (queryStart)
      is = both(is, compare(mlir::arith::CmpIPredicate::eq, queryStart, keyStart));
    return is;
  }

  /// Rows [from, from + rows of the tile) of a head of `memory` to shared memory, as f32;
  /// zeros past the end of the sequence and of the head.
  void loadTile(mlir::Value tile, mlir::Value memory, mlir::Value from, mlir::Value ofHead) {
    const int64_t columns = shape.columns(), rows = AttentionShape::dim(tile, 0);
    auto pass = [&](mlir::Value number, Values &) {
      mlir::Value at = addTimes(thread, number, kThreads);
      mlir::Value row = div(at, columns), column = rem(at, columns);
      mlir::Value time = add(from, row);
      mlir::Value inHead = least(column, shape.d - 1);
      mlir::Value value =
          loadWide(memory, {batch, inSequence(time), addTimes(inHead, ofHead, shape.d)});
      mlir::Value is = both(isLess(time, shape.time), isLess(column, shape.d));
      store(select(is, value, zero()), tile, {row, column});
    };
    loop(index(0), index(rows * columns / kThreads), 1, {}, pass);
  }

  /// Of each of the warp's own rows with the lane's row of the stream.
  Values dots(mlir::Value own, mlir::Value stream) {
    return loop(index(0), index(shape.d), 1, Values(warpRows, zero()),
                [&](mlir::Value column, Values &sums) {
                  mlir::Value theirs = load(stream, {lane, column});
                  for (auto [i, sum] : llvm::enumerate(sums))
                    sum = fma(load(own, {ownRow(i), column}), theirs, sum);
                });
  }

  /// sums[i, column] += the weight of own row i in lane k, times row k of the stream, in
  /// order of k. Of a row's columns the lane has lane, lane + 32 and so on; `sums` are
  /// those of all the warp's rows, one row's beside each other.
  Values spread(llvm::ArrayRef<mlir::Value> weights, mlir::Value stream, mlir::ValueRange sums) {
    return loop(index(0), index(kStreamRows), 1, Values(sums), [&](mlir::Value k, Values &sums) {
      Values theirs;
      for (int64_t j = 0; j < laneColumns(); ++j)
        theirs.push_back(load(stream, {k, column(j)}));
      mlir::Value from = make<mlir::arith::IndexCastOp>(getI32Type(), k);
      mlir::Value *sum = sums.begin();
      for (mlir::Value weight : weights) {
        mlir::Value handed = shuffle(mlir::gpu::ShuffleMode::IDX, weight, from);
        for (mlir::Value value : theirs) {
          *sum = fma(handed, value, *sum);
          ++sum;
        }
      }
    });
  }
  int64_t laneColumns() const { return shape.columns() / kWarpSize; }
  mlir::Value column(int64_t j) { return add(lane, j * kWarpSize); }
  mlir::Value zero() { return number(0); }
  Values zeroSums() { return Values(warpRows * laneColumns(), zero()); }

  /// Sums of own rows to their head of `memory`, times `factors` of the rows.
  void storeRows(mlir::ValueRange sums, llvm::ArrayRef<mlir::Value> factors, mlir::Value memory) {
    for (int64_t i = 0; i < warpRows; ++i) {
      mlir::Value time = ownTime(i), in = isLess(time, shape.time);
      for (int64_t j = 0; j < laneColumns(); ++j) {
        mlir::Value value = mulf(sums[i * laneColumns() + j], factors[i]);
        storeIf(both(in, isLess(column(j), shape.d)), value, memory,
                {batch, time, addTimes(column(j), head, shape.d)});
      }
    }
  }

  /// Streams tiles of two operands past the own ones: from the tile of row `from` to the one
  /// before row `to`. `body` is given the tile's first row and changes what is carried.
  Values stream(mlir::Value operand, mlir::Value other, mlir::Value ofHead, mlir::Value from,
                mlir::Value to, Values carried,
                llvm::function_ref<void(mlir::Value, Values &)> body) {
    mlir::Value end = div(add(to, kStreamRows - 1), kStreamRows);
    return loop(div(from, kStreamRows), end, 1, std::move(carried),
                [&](mlir::Value number, Values &inside) {
                  mlir::Value row = mul(number, kStreamRows);
                  barrier(); // who still reads the tiles before
                  loadTile(streamed[0], operand, row, ofHead);
                  loadTile(streamed[1], other, row, ofHead);
                  barrier();
                  body(row, inside);
                });
  }

  const AttentionShape shape;
  const int64_t ownRows, warpRows;
  mlir::Value thread, lane, warp;
  mlir::Value first, head, batch; // of the own rows
  Values own;
  mlir::Value streamed[2];
};

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_ATTENTIONLAUNCH_H
