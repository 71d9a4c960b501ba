//===- AttentionLaunch.h - One launch of attention in f32 -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The common part of the launches in EmitAttention.cpp. Tiles are in shared memory as f32.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_ATTENTIONLAUNCH_H
#define BOA_PASSES_TARGET_CUDA_ATTENTIONLAUNCH_H

#include "passes/target/cuda/AttentionThreads.h"

namespace boa {

/// Columns of a tile: whole warps, the last ones zeros.
inline int64_t tileColumns(const AttentionShape &shape) {
  return llvm::alignTo(shape.d, kWarpLanes);
}
/// The elements from one row of a tile to the next. Lanes that read one column of all rows meet no
/// bank twice.
inline int64_t tileStride(const AttentionShape &shape) { return tileColumns(shape) + 1; }
/// The rows of the own tile if `own` tiles are owned and two are streamed; 0: none fits. If none is
/// owned, each warp has a row.
inline int64_t ownTileRows(const AttentionShape &shape, int64_t own) {
  if (own == 0)
    return kWarps;
  for (int64_t rows : {32, 16, 8, 4})
    if ((own * rows + 2 * kStreamRows) * tileStride(shape) * 4 <= kMaxWorkgroupBytes)
      return rows;
  return 0;
}

/// Builds one launch.
class AttentionLaunch : public AttentionThreads {
public:
  /// Launches a block for each tile of own rows of each of `heads` of each sequence. The rows are
  /// loaded from `owned`.
  AttentionLaunch(mlir::OpBuilder &outside, mlir::Location loc, const AttentionShape &shape,
                  int64_t heads, llvm::ArrayRef<Value> owned)
      : AttentionThreads(outside, loc, shape, ownTileRows(shape, owned.size()), kStreamRows),
        warpRows(ownRows / kWarps) {
    auto launch = createBlocks(heads);
    auto addTile = [&](int64_t rows) {
      return addWorkgroupMemory(launch, {rows, tileStride(shape)}, getF32Type());
    };
    for (size_t i = 0; i < owned.size(); ++i)
      own.push_back(addTile(ownRows));
    for (Value &tile : streamed)
      tile = owned.empty() ? Value() : addTile(kStreamRows);
    for (auto [tile, memory] : llvm::zip(own, owned))
      loadTile(tile, memory, first, head);
  }

  Value exp(Value x) { return make<mlir::math::ExpOp>(x); }
  Value max(Value x, Value y) { return make<mlir::arith::MaximumFOp>(x, y); }
  Value reduceSum(Value value) {
    return combineLanes(value, 1, kWarpLanes, [&](Value x, Value y) { return addf(x, y); });
  }
  Value reduceMax(Value value) {
    return combineLanes(value, 1, kWarpLanes, [&](Value x, Value y) { return max(x, y); });
  }

  /// The place of this warp's own row i: in the tile, and in the sequence.
  Value ownRow(int64_t i) { return addTimes(index(i), warp, warpRows); }
  Value ownTime(int64_t i) { return add(first, ownRow(i)); }
  /// The place where a number of an own row is stored, and whether this lane stores it.
  Value isFirstLane(Value time) { return both(isZero(lane), isLess(time, shape.time)); }

  /// The starts of the documents of this warp's own rows.
  Values ownStarts() {
    Values starts;
    for (int64_t i = 0; i < warpRows; ++i)
      starts.push_back(startOf(ownTime(i)));
    return starts;
  }
  /// Loads rows [from, from + rows of the tile) of a head of `memory` to shared memory, as f32.
  /// Past the end of the sequence and of the head are zeros.
  void loadTile(Value tile, Value memory, Value from, Value ofHead) {
    const int64_t columns = tileColumns(shape), rows = AttentionShape::dim(tile, 0);
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

  /// The products of each of the warp's own rows with the lane's row of the stream.
  Values dots(Value own, Value stream) {
    return loop(index(0), index(shape.d), 1, Values(warpRows, zero()),
                [&](Value column, Values &sums) {
                  Value theirs = load(stream, {lane, column});
                  for (auto [i, sum] : llvm::enumerate(sums))
                    sum = fma(load(own, {ownRow(i), column}), theirs, sum);
                });
  }

  /// Adds to sums[i, column] the weight of own row i in lane k, times row k of the stream, in order
  /// of k. Of a row's columns the lane has lane, lane + 32 and so on. `sums` are those of all the
  /// warp's rows, one row's beside each other.
  Values spread(llvm::ArrayRef<Value> weights, Value stream, mlir::ValueRange sums) {
    return loop(index(0), index(kStreamRows), 1, Values(sums), [&](Value k, Values &sums) {
      Values theirs;
      for (int64_t j = 0; j < laneColumns(); ++j)
        theirs.push_back(load(stream, {k, column(j)}));
      Value from = toInteger(k);
      Value *sum = sums.begin();
      for (Value weight : weights) {
        Value handed = shuffle(mlir::gpu::ShuffleMode::IDX, weight, from);
        for (Value value : theirs) {
          *sum = fma(handed, value, *sum);
          ++sum;
        }
      }
    });
  }
  int64_t laneColumns() const { return tileColumns(shape) / kWarpLanes; }
  Value column(int64_t j) { return add(lane, j * kWarpLanes); }
  Value zero() { return number(0); }
  Values zeroSums() { return Values(warpRows * laneColumns(), zero()); }

  /// Stores sums of own rows in their head of `memory`, times `factors` of the rows.
  void storeRows(mlir::ValueRange sums, llvm::ArrayRef<Value> factors, Value memory) {
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
                llvm::function_ref<void(Value, Values &)> body) {
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

  const int64_t warpRows;
  Values own;
  Value streamed[2];
};

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_ATTENTIONLAUNCH_H
