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
                  int64_t heads, llvm::ArrayRef<mlir::Value> owned)
      : AttentionThreads(outside, loc, shape, ownTileRows(shape, owned.size()), kStreamRows),
        warpRows(ownRows / kWarps) {
    auto launch = createBlocks(heads);
    auto addTile = [&](int64_t rows) {
      return addWorkgroupMemory(launch, {rows, tileStride(shape)}, getF32Type());
    };
    for (size_t i = 0; i < owned.size(); ++i)
      own.push_back(addTile(ownRows));
    for (mlir::Value &tile : streamed)
      tile = owned.empty() ? mlir::Value() : addTile(kStreamRows);
    for (auto [tile, memory] : llvm::zip(own, owned))
      loadTile(tile, memory, first, head);
  }

  mlir::Value exp(mlir::Value x) { return make<mlir::math::ExpOp>(x); }
  mlir::Value max(mlir::Value x, mlir::Value y) { return make<mlir::arith::MaximumFOp>(x, y); }
  mlir::Value reduceSum(mlir::Value value) {
    return combineLanes(value, 1, kWarpLanes,
                        [&](mlir::Value x, mlir::Value y) { return addf(x, y); });
  }
  mlir::Value reduceMax(mlir::Value value) {
    return combineLanes(value, 1, kWarpLanes,
                        [&](mlir::Value x, mlir::Value y) { return max(x, y); });
  }

  /// The place of this warp's own row i: in the tile, and in the sequence.
  mlir::Value ownRow(int64_t i) { return addTimes(index(i), warp, warpRows); }
  mlir::Value ownTime(int64_t i) { return add(first, ownRow(i)); }
  /// The place where a number of an own row is stored, and whether this lane stores it.
  mlir::Value isFirstLane(mlir::Value time) { return both(isZero(lane), isLess(time, shape.time)); }

  /// The starts of the documents of this warp's own rows.
  Values ownStarts() {
    Values starts;
    for (int64_t i = 0; i < warpRows; ++i)
      starts.push_back(startOf(ownTime(i)));
    return starts;
  }
  /// Loads rows [from, from + rows of the tile) of a head of `memory` to shared memory, as f32.
  /// Past the end of the sequence and of the head are zeros.
  void loadTile(mlir::Value tile, mlir::Value memory, mlir::Value from, mlir::Value ofHead) {
    const int64_t columns = tileColumns(shape), rows = AttentionShape::dim(tile, 0);
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

  /// The products of each of the warp's own rows with the lane's row of the stream.
  Values dots(mlir::Value own, mlir::Value stream) {
    return loop(index(0), index(shape.d), 1, Values(warpRows, zero()),
                [&](mlir::Value column, Values &sums) {
                  mlir::Value theirs = load(stream, {lane, column});
                  for (auto [i, sum] : llvm::enumerate(sums))
                    sum = fma(load(own, {ownRow(i), column}), theirs, sum);
                });
  }

  /// Adds to sums[i, column] the weight of own row i in lane k, times row k of the stream, in order
  /// of k. Of a row's columns the lane has lane, lane + 32 and so on. `sums` are those of all the
  /// warp's rows, one row's beside each other.
  Values spread(llvm::ArrayRef<mlir::Value> weights, mlir::Value stream, mlir::ValueRange sums) {
    return loop(index(0), index(kStreamRows), 1, Values(sums), [&](mlir::Value k, Values &sums) {
      Values theirs;
      for (int64_t j = 0; j < laneColumns(); ++j)
        theirs.push_back(load(stream, {k, column(j)}));
      mlir::Value from = toInteger(k);
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
  int64_t laneColumns() const { return tileColumns(shape) / kWarpLanes; }
  mlir::Value column(int64_t j) { return add(lane, j * kWarpLanes); }
  mlir::Value zero() { return number(0); }
  Values zeroSums() { return Values(warpRows * laneColumns(), zero()); }

  /// Stores sums of own rows in their head of `memory`, times `factors` of the rows.
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

  const int64_t warpRows;
  Values own;
  mlir::Value streamed[2];
};

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_ATTENTIONLAUNCH_H
