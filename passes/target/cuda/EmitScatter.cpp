//===- EmitScatter.cpp - Rows that are added to those of a table ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of --cuda-emit-groups: kernel.scatter_rows, in the order that it asks for,
// without a thread that goes through all rows. A warp for each index and some columns
// looks whether an index before is the same. If not, it is the one that adds to this
// row of the table: it lists where its index occurs in workgroup memory and then adds
// those rows in order, several of them read at once.
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/EmitGroups.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace boa;

namespace {

/// A thread adds up this number of vectors of columns, and reads this number of rows at once.
constexpr int64_t kVectors = 2;
constexpr int64_t kRows = 4;
/// A list holds this number of indices.
constexpr int64_t kListed = 1024;

using Predicate = CodeBuilder::Predicate;

struct ScatterEmitter {
  kernel::ScatterRowsOp op;
  ThreadBuilder &builder;
  MemRefType indices;
  int64_t side; // indices that a thread looks at together
  Value lane;
  Value mine;  // which index is this warp's
  Value index; // and what it is

  int64_t count() const { return indices.getNumElements(); }

  /// Returns 1 for each index of a chunk that is equal to ours and in this relation to it.
  SmallVector<Value> match(Value chunk, Predicate position) {
    SmallVector<Value> hits;
    for (int64_t i = 0; i < side; ++i) {
      Value at = builder.mul(chunk, side);
      at = i ? builder.add(at, i) : at;
      Value other = builder.load(op.getIndices(), builder.delinearize(at, indices.getShape()));
      Value hit = builder.both(builder.compare(Predicate::eq, other, index),
                               builder.compare(position, at, mine));
      hits.push_back(builder.make<arith::ExtUIOp>(builder.getI32Type(), hit));
    }
    return hits;
  }

  /// Whether no index before ours is equal to it.
  Value isFirst() {
    Value chunks = builder.div(builder.add(mine, side - 1), side);
    auto search = [&](Value chunk, SmallVector<Value> &found) {
      for (Value hit : match(chunk, Predicate::ult))
        found[0] = builder.either(found[0], hit);
    };
    Value found = builder.loop(lane, chunks, kWarpLanes, {builder.integer(0)}, search)[0];
    found = builder.combineLanes(found, 1, kWarpLanes,
                                 [&](Value a, Value b) { return builder.either(a, b); });
    return builder.compare(Predicate::eq, found, builder.integer(0));
  }

  /// Lists the indices that are equal to ours of the chunks from `from` on, `tiles` for each
  /// thread. Returns how many there are.
  Value list(Value memory, Value from, int64_t tiles) {
    auto listTile = [&](Value tile, SmallVector<Value> &listed) {
      Value chunk = builder.add(builder.add(from, builder.mul(tile, kWarpLanes)), lane);
      Value there = builder.isLess(chunk, count() / side);
      chunk = builder.least(chunk, count() / side - 1);
      SmallVector<Value> hits = match(chunk, Predicate::uge);
      Value own = builder.integer(0);
      for (Value &hit : hits) {
        hit = builder.select(there, hit, builder.integer(0));
        own = builder.add(own, hit);
      }
      // How many the lanes up to this one have.
      Value sum = own;
      for (int64_t step = 1; step < kWarpLanes; step *= 2) {
        Value more = builder.add(sum, builder.shuffle(gpu::ShuffleMode::UP, sum, step));
        sum = builder.select(builder.isLess(lane, step), sum, more);
      }
      Value place = builder.add(listed[0], builder.sub(sum, own));
      for (auto [i, hit] : llvm::enumerate(hits)) {
        builder.when(builder.compare(Predicate::ne, hit, builder.integer(0)), [&, i = i] {
          Value at = builder.add(builder.mul(chunk, side), i);
          builder.store(builder.toInteger(at), memory, builder.toIndex(place));
        });
        place = builder.add(place, hit);
      }
      Value all = builder.shuffle(gpu::ShuffleMode::IDX, sum, kWarpLanes - 1);
      listed[0] = builder.add(listed[0], all);
    };
    Value listed =
        builder.loop(builder.index(0), builder.index(tiles), 1, {builder.integer(0)}, listTile)[0];
    return builder.toIndex(listed);
  }

  /// Adds the listed rows' columns to the sums, in order.
  SmallVector<Value> addRows(Value memory, Value listed, ArrayRef<Value> columns,
                             ArrayRef<Value> sums) {
    auto add = [&](Value from, SmallVector<Value> &sums) {
      SmallVector<Value> there, added;
      for (int64_t r = 0; r < kRows; ++r) {
        Value at = r ? builder.add(from, r) : from;
        there.push_back(builder.compare(Predicate::ult, at, listed));
        at = builder.select(there.back(), at, from);
        Value row = builder.toIndex(builder.load(memory, at));
        SmallVector<Value> ivs = builder.delinearize(row, indices.getShape());
        ivs.push_back(nullptr);
        for (Value column : columns) {
          ivs.back() = column;
          added.push_back(builder.load(op.getRows(), ivs));
        }
      }
      for (int64_t r = 0; r < kRows; ++r)
        for (auto [c, sum] : llvm::enumerate(sums)) {
          Value more = builder.addf(sum, added[r * columns.size() + c]);
          sum = builder.select(there[r], more, sum);
        }
    };
    return builder.loop(builder.index(0), listed, kRows, SmallVector<Value>(sums), add);
  }
};

} // namespace

void boa::emitScatter(OpBuilder &outside, kernel::ScatterRowsOp op) {
  ThreadBuilder builder(outside, op.getLoc());
  auto indices = memrefOf(op.getIndices());
  auto rows = memrefOf(op.getRows());
  int64_t count = indices.getNumElements(), width = rows.getShape().back();
  int64_t side = getVectorSize({indices}, indices.getShape().back());
  int64_t vector = getVectorSize({rows, memrefOf(op.getTable())}, width);
  int64_t chunks = width / vector;
  int64_t vectors = std::min<int64_t>(kVectors, llvm::divideCeil(chunks, kWarpLanes));
  int64_t across = llvm::divideCeil(chunks, kWarpLanes * vectors);
  gpu::LaunchOp launch = createLaunch(builder, {count * across, 1, 1}, kWarpLanes, 1);
  SmallVector<Value> block = builder.delinearize(launch.getBlockIds().x, {count, across});
  Value lane = launch.getThreadIds().x;
  ScatterEmitter emitter{op, builder, indices, side, lane, block[0], nullptr};
  emitter.index = builder.load(op.getIndices(), builder.delinearize(block[0], indices.getShape()));

  // The warp is the block: what is in here all of it does.
  Value adds = emitter.isFirst();
  if (op.getSome()) {
    const int64_t rowsOfTable = memrefOf(op.getTable()).getDimSize(0);
    adds = builder.both(adds, kernel::isWithin(builder, op.getLoc(), emitter.index, rowsOfTable));
  }
  builder.when(adds, [&] {
    SmallVector<Value> columns, sums, valid;
    for (int64_t v = 0; v < vectors; ++v) {
      Value chunk = builder.add(builder.mul(block[1], kWarpLanes * vectors),
                                v ? builder.add(lane, v * kWarpLanes) : lane);
      valid.push_back(chunks % (kWarpLanes * vectors) ? builder.isLess(chunk, chunks) : Value());
      if (valid.back())
        chunk = builder.least(chunk, chunks - 1);
      Value first = builder.mul(chunk, vector);
      for (int64_t l = 0; l < vector; ++l)
        columns.push_back(l ? builder.add(first, l) : first);
    }
    Value row = builder.toIndex(emitter.index);
    for (Value column : columns)
      sums.push_back(builder.load(op.getTable(), {row, column}));

    int64_t tile = kWarpLanes * side;
    int64_t tiles = llvm::divideCeil(std::min(count, kListed), tile), listed = tiles * tile;
    Value memory = addWorkgroupMemory(launch, {listed}, builder.getI32Type());
    // Lists before ours would be empty.
    Value begin = builder.div(block[0], listed);
    auto addListed = [&](Value number, SmallVector<Value> &sums) {
      Value length = emitter.list(memory, builder.mul(number, listed / side), tiles);
      builder.barrier();
      sums = emitter.addRows(memory, length, columns, sums);
      builder.barrier();
    };
    sums = builder.loop(begin, builder.index(llvm::divideCeil(count, listed)), 1, sums, addListed);
    for (int64_t v = 0; v < vectors; ++v)
      builder.when(valid[v], [&] {
        for (int64_t l = v * vector; l < (v + 1) * vector; ++l)
          builder.store(sums[l], op.getTable(), {row, columns[l]});
      });
  });
}
