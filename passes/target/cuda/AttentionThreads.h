//===- AttentionThreads.h - Rows of blocks of attention ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The common part of all launches of attention. A block of four warps owns a tile of rows, and
// streams tiles of other rows past it. This part decides which rows see one another.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_ATTENTIONTHREADS_H
#define BOA_PASSES_TARGET_CUDA_ATTENTIONTHREADS_H

#include "passes/kernels/KernelDialect.h"
#include "passes/target/cuda/ThreadBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

namespace boa {

constexpr int64_t kWarps = 4, kThreads = kWarpLanes * kWarps;
/// The rows of the stream's tiles. In f32 each lane has one.
constexpr int64_t kStreamRows = kWarpLanes;
/// The score of a key that is not seen. If a row has no other scores, it has no maximum to be
/// subtracted: the result is NaN, as on a CPU.
constexpr double kNever = -std::numeric_limits<double>::infinity();

/// The arguments of an op, the same for forward and gradient.
struct AttentionShape {
  template <typename Op>
  explicit AttentionShape(Op op)
      : batch(dim(op.getQ(), 0)), time(dim(op.getQ(), 1)), heads(op.getHeads()),
        kvHeads(op.getKvHeads()), d(dim(op.getQ(), 2) / heads), causal(op.getCausal()),
        window(op.getWindow().value_or(0)), documents(op.getDocumentStarts()) {}
  static int64_t dim(mlir::Value value, unsigned i) {
    return mlir::cast<mlir::MemRefType>(value.getType()).getDimSize(i);
  }
  /// The number of heads of queries that share one head of keys.
  int64_t group() const { return heads / kvHeads; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(d)); }

  int64_t batch, time, heads, kvHeads, d;
  bool causal;
  int64_t window;        // keys that a row sees; 0: all, or all up to its own
  mlir::Value documents; // their starts, or null
};

/// The rows that a block of one launch owns, and which rows see one another. There is a block for
/// each tile of own rows of each head of each sequence.
class AttentionThreads : public ThreadBuilder {
public:
  AttentionThreads(mlir::OpBuilder &outside, mlir::Location loc, const AttentionShape &shape,
                   int64_t ownRows, int64_t streamRows)
      : ThreadBuilder(outside, loc), shape(shape), ownRows(ownRows), streamRows(streamRows) {}

  Value addTimes(Value x, Value y, int64_t times) { return add(x, mul(y, times)); }
  /// Loads a value in f32, in whatever type it is stored.
  Value loadWide(Value memory, mlir::ValueRange at) {
    Value value = load(memory, at);
    return value.getType().isF32() ? value : make<mlir::arith::ExtFOp>(getF32Type(), value);
  }
  void storeIf(Value is, Value value, Value memory, mlir::ValueRange at) {
    when(is, [&] {
      mlir::Type element = mlir::cast<mlir::MemRefType>(memory.getType()).getElementType();
      store(element.isF32() ? value : make<mlir::arith::TruncFOp>(element, value), memory, at);
    });
  }

  /// The row of the sequence that is nearest to this one.
  Value inSequence(Value time) { return least(time, shape.time - 1); }
  /// The row at which the document of a row begins, or of the row nearest to it; null: a sequence
  /// is one.
  Value startOf(Value time) {
    if (!shape.documents)
      return {};
    return toIndex(load(shape.documents, {batch, inSequence(time)}));
  }
  Value endOfOwn() { return least(add(first, ownRows), shape.time); }
  /// The row behind the last one of the document of the last own row: the first whose document
  /// begins behind that one, by bisection.
  Value endOfDocument() {
    if (!shape.documents)
      return index(shape.time);
    Value end = endOfOwn();
    auto halve = [&](Value, Values &bounds) {
      Value middle = div(add(bounds[0], bounds[1]), 2);
      Value isOpen = compare(Predicate::ult, bounds[0], bounds[1]);
      Value isLater = compare(Predicate::uge, startOf(middle), end);
      isLater = select(isOpen, isLater, make<mlir::arith::ConstantIntOp>(true, 1));
      bounds[0] = select(isLater, bounds[0], add(middle, 1));
      bounds[1] = select(isLater, middle, bounds[1]);
    };
    const int64_t turns = llvm::Log2_64_Ceil(uint64_t(shape.time)) + 1;
    return loop(index(0), index(turns), 1, {end, index(shape.time)}, halve)[1];
  }

  /// The first key that own queries see.
  Value firstOfKeys() {
    Value from = shape.documents ? startOf(first) : index(0);
    if (shape.window == 0)
      return from;
    Value ofWindow = sub(first, index(shape.window - 1));
    ofWindow = select(isLess(first, shape.window), index(0), ofWindow);
    return make<mlir::arith::MaxUIOp>(from, ofWindow);
  }
  /// The first query that sees own keys.
  Value firstOfQueries() {
    return shape.causal ? first : shape.documents ? startOf(first) : index(0);
  }
  /// The row behind the last query that sees own keys.
  Value endOfQueries() {
    Value end = endOfDocument();
    if (shape.window == 0)
      return end;
    return make<mlir::arith::MinUIOp>(end, add(first, ownRows + shape.window - 1));
  }
  bool hidesEarlierKeys() const { return shape.window != 0 || shape.documents; }
  /// Whether a query, whose document begins at `start`, sees any key of the tile of the stream
  /// that begins at `row`, or of one before it.
  Value reaches(Value query, Value start, Value row) {
    Value is;
    if (shape.window != 0)
      is = compare(Predicate::ult, query, add(row, streamRows + shape.window - 1));
    if (start) {
      Value begins = compare(Predicate::ult, start, add(row, streamRows));
      is = is ? both(is, begins) : begins;
    }
    return is;
  }
  /// The row behind the last key that own queries see.
  Value endOfKeys() { return shape.causal ? endOfOwn() : endOfDocument(); }
  /// Whether a query and a key see one another, with the starts of their documents. `streamed` is
  /// the one of them that may be past the end.
  Value sees(Value query, Value key, Value streamed, Value queryStart, Value keyStart) {
    Value is = isLess(streamed, shape.time);
    if (shape.causal)
      is = both(is, compare(Predicate::ule, key, query));
    if (shape.window != 0)
      is = both(is, compare(Predicate::ult, query, add(key, shape.window)));
    if (queryStart)
      is = both(is, compare(Predicate::eq, queryStart, keyStart));
    return is;
  }

  const AttentionShape shape;
  /// The numbers of rows of the own tile, and of tiles of the stream.
  const int64_t ownRows, streamRows;
  Value thread, lane, warp;
  Value first, head, batch; // of the own rows

protected:
  mlir::gpu::LaunchOp createBlocks(int64_t heads) {
    const int64_t blocks = llvm::divideCeil(shape.time, ownRows);
    auto launch = createLaunch(*this, {blocks, heads, shape.batch}, kThreads, 1);
    thread = launch.getThreadIds().x;
    lane = rem(thread, kWarpLanes);
    warp = div(thread, kWarpLanes);
    first = mul(launch.getBlockIds().x, ownRows);
    head = launch.getBlockIds().y;
    batch = launch.getBlockIds().z;
    return launch;
  }
};

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_ATTENTIONTHREADS_H
