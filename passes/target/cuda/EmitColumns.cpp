//===- EmitColumns.cpp - Sums over rows, one owner each -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of --cuda-emit-groups: groups over columns, no op of which touches what
// another writes. Sums of one shape are computed together: a block takes some
// columns, as few as are read at full speed, and each of its rows of threads a
// slice of the rows. Slices are put together by shuffles and through workgroup
// memory, always in the same order.
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/EmitGroups.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace boa;

namespace {

/// The threads of a block that sums slices, and of one whose threads each have sums of their own.
constexpr int64_t kSliceThreads = 256;
constexpr int64_t kColumnThreads = 128;
/// The number of blocks that keeps a device busy.
constexpr int64_t kEnoughBlocks = 128;
/// The columns of f32 that are read in one piece.
constexpr int64_t kLeastColumns = 8;
/// The least rows of a slice.
constexpr int64_t kRowsPerSlice = 4;
/// The elements of an operand that are under way at once.
constexpr int64_t kElementsAtOnce = 32;

/// The columns and slices of a block.
struct Block {
  int64_t columns; // threads across, of a vector of columns each
  int64_t slices;

  int64_t countWarps() const { return columns * slices / kWarpLanes; }
};

/// Chooses a block for `chunks` vectors of columns, of `rows` rows, in `sums` sums.
Block chooseBlock(int64_t chunks, int64_t vector, int64_t rows, int64_t sums) {
  Block block{kWarpLanes, 1};
  while (llvm::divideCeil(chunks, block.columns) < kEnoughBlocks &&
         block.columns * vector > kLeastColumns)
    block.columns /= 2;
  bool enough = chunks >= kEnoughBlocks * kColumnThreads;
  while (!enough && block.columns * block.slices < kSliceThreads &&
         rows >= 2 * block.slices * kRowsPerSlice)
    block.slices *= 2;
  if (block.slices == 1)
    return {std::min(kColumnThreads, chunks), 1};
  while (block.columns * block.slices < kWarpLanes)
    block.columns *= 2;
  while (block.countWarps() * block.columns * vector * sums * 4 > kMaxWorkgroupBytes)
    block.slices /= 2;
  return block;
}

/// A result of an op of the launch.
struct Sum {
  linalg::LinalgOp op;
  OpOperand *result;
  Combiner combiner;
};

/// The dimensions of the ops that one launch computes.
struct Loops {
  SmallVector<unsigned> parallel, reduced;
  SmallVector<int64_t> columns, rows; // their extents
  unsigned count;

  explicit Loops(linalg::LinalgOp op) : count(op.getNumLoops()) {
    SmallVector<int64_t> extents = op.getStaticLoopRanges();
    for (auto [d, type] : llvm::enumerate(op.getIteratorTypesArray())) {
      bool isParallel = type == utils::IteratorType::parallel;
      (isParallel ? parallel : reduced).push_back(d);
      (isParallel ? columns : rows).push_back(extents[d]);
    }
  }
};

LogicalResult emitSums(OpBuilder &outside, ArrayRef<linalg::LinalgOp> ops) {
  ThreadBuilder builder(outside, linalg::LinalgOp(ops[0])->getLoc());
  Loops loops(ops[0]);
  SmallVector<Sum> sums;
  int64_t vector = INT64_MAX;
  for (linalg::LinalgOp op : ops) {
    vector = std::min(vector, getVectorSize(op));
    for (OpOperand &result : op.getDpsInitsMutable()) {
      FailureOr<Combiner> combiner =
          Combiner::get(op, result.getOperandNumber() - op.getNumDpsInputs());
      if (failed(combiner))
        return failure();
      AffineMap map = op.getMatchingIndexingMap(&result);
      for (auto [d, extent] : llvm::zip(loops.parallel, loops.columns))
        if (extent != 1 && !map.isFunctionOfDim(d))
          return op->emitOpError("expected a result of its own for each column");
      sums.push_back({op, &result, *combiner});
    }
  }
  SmallVector<int64_t> extents(loops.columns);
  extents.back() /= vector;
  int64_t chunks = llvm::product_of(extents), rows = llvm::product_of(loops.rows);
  Block block = chooseBlock(chunks, vector, rows, sums.size());
  const int64_t blocks = llvm::divideCeil(chunks, block.columns);
  auto launch = createLaunch(builder, {blocks, 1, 1}, block.columns, block.slices);
  gpu::KernelDim3 thread = launch.getThreadIds();

  // The columns of this thread; the last block's last ones may be none's.
  Value chunk = builder.add(builder.mul(launch.getBlockIds().x, block.columns), thread.x), valid;
  if (chunks % block.columns != 0) {
    valid = builder.isLess(chunk, chunks);
    chunk = builder.least(chunk, chunks - 1);
  }
  SmallVector<Value> column = builder.delinearize(chunk, extents);
  Value first = builder.mul(column.back(), vector);
  SmallVector<Value> lasts;
  for (int64_t l = 0; l < vector; ++l)
    lasts.push_back(l ? builder.add(first, l) : first);
  auto getIvs = [&](ArrayRef<Value> row, int64_t lane) {
    SmallVector<Value> ivs(loops.count);
    for (auto [d, value] : llvm::zip(loops.parallel, column))
      ivs[d] = value;
    ivs[loops.parallel.back()] = lasts[lane];
    for (auto [d, value] : llvm::zip(loops.reduced, row))
      ivs[d] = value;
    return ivs;
  };

  // Every so many rows are of this thread's slice. Sums: of each result each lane.
  auto addRow = [&](Value number, bool guard, SmallVector<Value> &values) {
    Value inside;
    if (guard) {
      inside = builder.isLess(number, rows);
      number = builder.least(number, rows - 1);
    }
    SmallVector<Value> row = builder.delinearize(number, loops.rows);
    SmallVector<Value> next;
    for (linalg::LinalgOp op : ops) {
      SmallVector<SmallVector<Value>> lanes;
      for (int64_t l = 0; l < vector; ++l) {
        SmallVector<Value> ivs = getIvs(row, l), operands;
        for (OpOperand &operand : op->getOpOperands()) {
          if (op.isDpsInit(&operand))
            operands.push_back(
                values[next.size() + (operand.getOperandNumber() - op.getNumDpsInputs()) * vector +
                       l]);
          else if (!isa<MemRefType>(operand.get().getType()))
            operands.push_back(operand.get());
          else
            operands.push_back(
                builder.load(operand.get(), op.getMatchingIndexingMap(&operand), ivs));
        }
        lanes.push_back(builder.compute(*op.getBlock(), operands, ivs));
      }
      for (int64_t i = 0; i < op.getNumDpsInits(); ++i)
        for (int64_t l = 0; l < vector; ++l)
          next.push_back(lanes[l][i]);
    }
    for (auto [value, now] : llvm::zip(values, next))
      value = inside ? builder.select(inside, now, value) : now;
  };
  SmallVector<Value> values;
  for (const Sum &sum : sums)
    values.append(vector, sum.combiner.getNeutral(builder));
  int64_t unroll = std::max<int64_t>(kElementsAtOnce / vector, 1);
  int64_t passes = rows / (block.slices * unroll);
  if (passes > 0) {
    auto pass = [&](Value number, SmallVector<Value> &inside) {
      Value from = builder.add(thread.y, builder.mul(number, unroll * block.slices));
      for (int64_t u = 0; u < unroll; ++u)
        addRow(u ? builder.add(from, u * block.slices) : from, false, inside);
    };
    values = builder.loop(builder.index(0), builder.index(passes), 1, values, pass);
  }
  for (int64_t from = passes * unroll * block.slices; from < rows; from += block.slices)
    addRow(builder.add(thread.y, from), from + block.slices > rows, values);

  // Slices of a warp, then those of all warps.
  int64_t warps = block.slices > 1 ? block.countWarps() : 1;
  Value leader = valid;
  if (block.slices > 1) {
    for (auto [i, value] : llvm::enumerate(values))
      value = sums[i / vector].combiner.combineLanes(builder, value, block.columns, kWarpLanes);
    Value isFirst = builder.isZero(thread.y);
    leader = valid ? builder.both(valid, isFirst) : isFirst;
  }
  SmallVector<Value> partials; // of each sum
  if (warps > 1) {
    for (const Sum &sum : sums)
      partials.push_back(
          addWorkgroupMemory(launch, {warps, vector, block.columns}, sum.combiner.getType()));
    // The slices that begin a warp.
    Value warp = thread.y, begins;
    if (int64_t each = kWarpLanes / block.columns; each > 1) {
      warp = builder.div(thread.y, each);
      begins = builder.isZero(builder.rem(thread.y, each));
    }
    builder.when(begins, [&] {
      for (auto [i, value] : llvm::enumerate(values))
        builder.store(value, partials[i / vector], {warp, builder.index(i % vector), thread.x});
    });
    builder.barrier();
  }
  builder.when(leader, [&] {
    for (auto [i, sum] : llvm::enumerate(sums))
      for (int64_t l = 0; l < vector; ++l) {
        Value total = values[i * vector + l];
        for (int64_t w = 1; w < warps; ++w)
          total = sum.combiner.combine(
              builder, total,
              builder.load(partials[i], {builder.index(w), builder.index(l), thread.x}));
        AffineMap map = sum.op.getMatchingIndexingMap(sum.result);
        SmallVector<Value> ivs = getIvs(SmallVector<Value>(loops.reduced.size()), l);
        Value old = builder.load(sum.result->get(), map, ivs);
        builder.store(sum.combiner.combine(builder, old, total), sum.result->get(), map, ivs);
      }
  });
  return success();
}

} // namespace

LogicalResult boa::emitColumns(OpBuilder &builder, ArrayRef<GroupMember> members) {
  SmallVector<SmallVector<linalg::LinalgOp>> alike;
  for (const GroupMember &member : members) {
    if (auto scatter = dyn_cast<kernel::ScatterRowsOp>(member.op)) {
      emitScatter(builder, scatter);
      continue;
    }
    auto op = dyn_cast<linalg::LinalgOp>(member.op);
    if (!op)
      return member.op->emitOpError("is not expected in a group of columns");
    auto isLike = [&](ArrayRef<linalg::LinalgOp> ops) {
      linalg::LinalgOp other = ops[0];
      return other.getStaticLoopRanges() == op.getStaticLoopRanges() &&
             other.getIteratorTypesArray() == op.getIteratorTypesArray();
    };
    auto it = llvm::find_if(alike, isLike);
    (it == alike.end() ? alike.emplace_back() : *it).push_back(op);
  }
  for (ArrayRef<linalg::LinalgOp> ops : alike)
    if (failed(emitSums(builder, ops)))
      return failure();
  return success();
}
