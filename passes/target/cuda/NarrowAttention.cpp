//===- NarrowAttention.cpp ------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After Dao, FlashAttention-2 (2023). A warp owns 16 rows and keeps their fragments in registers. A
// block copies tiles of the stream to shared memory, one while it multiplies the other. Of the
// products' tiles a lane has two rows, `group` and the one eight below, and of each two neighbours.
//
// Products are of bf16 with sums in f32. Weights and gradients of scores are rounded to bf16 before
// they are multiplied, as cuDNN does it. Maxima and sums of a row are in f32. Weights are powers of
// two: the scores have a factor of log2 e.
//
//===----------------------------------------------------------------------===//
#include "passes/target/cuda/NarrowAttention.h"

#include "passes/kernels/MemoryAccess.h"
#include "passes/target/cuda/AttentionThreads.h"
#include "passes/target/cuda/TensorCores.h"

using namespace mlir;
using namespace boa;

namespace {

using Values = ThreadBuilder::Values;
/// Registers of rows: four for each kTileDepth columns.
using Fragments = SmallVector<Values>;

constexpr int64_t kSlots = 2; // tiles of an operand in shared memory
constexpr int64_t kChunk = 8; // elements of one copy
constexpr int64_t kOwnRows = kWarps * kTileRows;
constexpr double kLog2e = 1.4426950408889634;

/// The numbers of some tiles of the stream: [from, to).
struct Range {
  Value from, to;
  bool isMasked; // not all rows see one another
};

class NarrowAttention : public AttentionThreads {
public:
  /// With `lastFirst` later rows begin earlier, since they have more work.
  NarrowAttention(OpBuilder &outside, Location loc, const AttentionShape &shape, int64_t heads,
                  std::array<Value, 2> streamed, bool lastFirst, int64_t streamRows = kStreamRows)
      : AttentionThreads(outside, loc, shape, kOwnRows, streamRows),
        columns(llvm::alignTo(shape.d, kTileDepth)), streamed(streamed) {
    gpu::LaunchOp launch = createBlocks(heads);
    if (lastFirst)
      first = sub(index((llvm::divideCeil(shape.time, kOwnRows) - 1) * kOwnRows), first);
    // Rows are an odd number of chunks apart: eight rows' chunks are in different banks.
    for (Value &memory : tiles)
      memory = addWorkgroupMemory(launch, {kSlots * streamRows, columns + kChunk}, getBF16Type());
    group = div(lane, 4);
    pair = mul(rem(lane, 4), 2);
  }

  /// The lane's own row of those with `below`, 0 or 1.
  Value ownTime(int64_t below) {
    return add(add(first, addTimes(group, warp, kTileRows)), below * (kTileRows / 2));
  }
  Value ownInSequence(int64_t below) {
    return shape.time % kOwnRows == 0 ? ownTime(below) : inSequence(ownTime(below));
  }
  /// The lane's row of a sum, in the tile of the stream that begins at `row`.
  Value streamTime(Value row, int64_t sum) {
    return add(add(row, pair), sum / kTilePart * kTileColumns + sum % 2);
  }
  static int64_t below(int64_t sum) { return sum % kTilePart / 2; }
  int64_t scores() const { return streamRows / kTileColumns * kTilePart; }
  int64_t results() const { return columns / kTileColumns * kTilePart; }

  Fragments loadOwn(Value memory, Value ofHead) {
    Fragments parts;
    for (int64_t deep = 0; deep < columns; deep += kTileDepth) {
      Values &part = parts.emplace_back();
      for (int64_t right : {0, 1})
        for (int64_t isBelow : {0, 1}) {
          const int64_t begin = deep + right * kChunk;
          Values two;
          for (int64_t e : {0, 1}) {
            Value column = add(pair, begin + e);
            const bool fits = begin + kChunk <= shape.d;
            Value inHead = fits ? column : least(column, shape.d - 1);
            Value value =
                load(memory, {batch, ownInSequence(isBelow), addTimes(inHead, ofHead, shape.d)});
            Value none = make<arith::ConstantOp>(getZeroAttr(getBF16Type()));
            two.push_back(fits ? value : select(isLess(column, shape.d), value, none));
          }
          part.push_back(packPair(*this, two[0], two[1]));
        }
    }
    return parts;
  }

  /// Streams tiles of both operands. `body` gets a tile's first row in the sequence and in shared
  /// memory, and changes the carried values.
  Values stream(Value ofHead, ArrayRef<Range> ranges, Values carried,
                function_ref<void(Value row, Value slot, bool isMasked, Values &)> body) {
    Value last = sub(ranges.back().to, index(1));
    // Past the last one that is the last one again, which nobody reads.
    auto begin = [&](Value number) {
      Value row = mul(make<arith::MinUIOp>(number, last), streamRows);
      for (int64_t i : {0, 1})
        copyTile(i, row, slotOf(number), ofHead);
      return endCopies(*this);
    };
    barrier(); // who still reads the tiles before
    Value copied = begin(ranges.front().from);
    for (const Range &range : ranges)
      carried =
          loop(range.from, range.to, 1, std::move(carried), [&](Value number, Values &inside) {
            waitForCopies(*this, copied);
            barrier();
            begin(add(number, 1));
            body(mul(number, streamRows), slotOf(number), range.isMasked, inside);
          });
    waitForCopies(*this, copied);
    return carried;
  }

  /// The tiles with keys that own queries see.
  SmallVector<Range> keyTiles() {
    if (hidesEarlierKeys())
      return {{div(firstOfKeys(), streamRows), tilesTo(endOfKeys()), true}};
    if (!shape.causal)
      return allTiles();
    Value middle = div(add(first, 1), streamRows);
    return {{index(0), middle, false}, {middle, tilesTo(endOfKeys()), true}};
  }
  /// The tiles with queries that see own keys.
  SmallVector<Range> queryTiles() {
    if (hidesEarlierKeys())
      return {{div(firstOfQueries(), streamRows), tilesTo(endOfQueries()), true}};
    if (!shape.causal)
      return allTiles();
    const int64_t whole = shape.time / streamRows, all = llvm::divideCeil(shape.time, streamRows);
    Value from = div(first, streamRows);
    Value middle = least(add(from, kOwnRows / streamRows), all);
    SmallVector<Range> ranges{{from, middle, true}, {middle, index(whole), false}};
    if (whole < all)
      ranges.push_back({make<arith::MaxUIOp>(middle, index(whole)), index(all), true});
    return ranges;
  }

  /// Multiplies own rows by those of a tile: the sums of products of their columns.
  Values multiply(const Fragments &own, int64_t operand, Value slot) {
    Values sums(scores(), number(0));
    auto find = [](Value side, Value deep) { return std::array{side, deep}; };
    // Sums of one part of the columns do not wait for one another.
    for (auto [i, part] : llvm::enumerate(own))
      for (int64_t side = 0; side < streamRows; side += 2 * kTileColumns) {
        Values both = loadMatrices(*this, lane, {tiles[operand], /*isDeep=*/false, find},
                                   add(slot, side), index(int64_t(i) * kTileDepth), false);
        for (int64_t half : {0, 1})
          multiplyTile(*this, part, ArrayRef(both).slice(2 * half, 2),
                       MutableArrayRef<Value>(sums).slice((side / kTileColumns + half) * kTilePart,
                                                          kTilePart));
      }
    return sums;
  }
  /// Adds to own rows those of a tile, weighted.
  void addWeighted(ArrayRef<Value> weights, int64_t operand, Value slot,
                   MutableArrayRef<Value> sums) {
    auto find = [](Value side, Value deep) { return std::array{deep, side}; };
    for (int64_t deep = 0; deep < streamRows; deep += kTileDepth) {
      Values part;
      for (int64_t i = 0; i < 2 * kTilePart; i += 2) {
        const Value *two = &weights[deep / kTileColumns * kTilePart + i];
        part.push_back(packPair(*this, two[0], two[1]));
      }
      for (int64_t side = 0; side < columns; side += 2 * kTileColumns) {
        Values both = loadMatrices(*this, lane, {tiles[operand], /*isDeep=*/true, find},
                                   index(side), add(slot, deep), false);
        for (int64_t half : {0, 1})
          multiplyTile(*this, part, ArrayRef(both).slice(2 * half, 2),
                       sums.slice((side / kTileColumns + half) * kTilePart, kTilePart));
      }
    }
  }

  /// Stores sums of own rows in their head of `memory`, times a factor of each row.
  void storeRows(ArrayRef<Value> sums, std::array<Value, 2> factors, Value memory) {
    for (int64_t isBelow : {0, 1}) {
      Value time = ownTime(isBelow);
      when(isLess(time, shape.time), [&] {
        for (int64_t i = 0; i < results(); ++i) {
          const int64_t begin = i / kTilePart * kTileColumns;
          if (below(i) != isBelow || begin >= shape.d)
            continue;
          Value column = add(pair, begin + i % 2);
          storeIf(begin + kTileColumns <= shape.d ? Value() : isLess(column, shape.d),
                  mulf(sums[i], factors[isBelow]), memory,
                  {batch, time, addTimes(column, head, shape.d)});
        }
      });
    }
  }

  Value exp2(Value x) { return make<math::Exp2Op>(x); }
  /// The larger number; of NaN and a number either. A NaN among scores becomes a weight of NaN.
  Value max(Value x, Value y) {
    return select(make<arith::CmpFOp>(arith::CmpFPredicate::OGT, x, y), x, y);
  }
  Value isNever(Value score) {
    return make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, score, number(kNever));
  }
  /// Adds up the values of the four lanes that have parts of a row.
  Value reduceSum(Value value) {
    return combineLanes(value, 1, 4, [&](Value x, Value y) { return addf(x, y); });
  }
  Value reduceMax(Value value) {
    return combineLanes(value, 1, 4, [&](Value x, Value y) { return max(x, y); });
  }
  /// The starts of the documents of the lane's two own rows.
  std::array<Value, 2> ownStarts() { return {startOf(ownTime(0)), startOf(ownTime(1))}; }
  std::array<Value, 2> loadOwnNumbers(Value memory) {
    auto one = [&](int64_t isBelow) { return load(memory, {batch, head, ownInSequence(isBelow)}); };
    return {one(0), one(1)};
  }
  std::array<Value, 2> twice(double factor) { return {number(factor), number(factor)}; }
  double scale() const { return shape.scale(); }

private:
  Value slotOf(Value number) { return mul(rem(number, kSlots), streamRows); }
  Value tilesTo(Value end) { return div(add(end, streamRows - 1), streamRows); }
  SmallVector<Range> allTiles() {
    const int64_t whole = shape.time / streamRows;
    SmallVector<Range> ranges{{index(0), index(whole), false}};
    if (shape.time % streamRows != 0)
      ranges.push_back({index(whole), index(whole + 1), true});
    return ranges;
  }

  /// Begins to copy the rows from `from` on. Behind the sequence and behind a head are zeros.
  void copyTile(int64_t which, Value from, Value slot, Value ofHead) {
    // A thread's chunks are evenly apart, so that one address serves all.
    const int64_t perRow = columns / kChunk, lanes = perRow & -perRow, rows = kThreads / lanes;
    for (int64_t below = 0; below < streamRows; below += rows) {
      Value row = add(div(thread, lanes), below);
      when(streamRows % rows == 0 ? Value() : isLess(row, streamRows), [&] {
        for (int64_t right = 0; right < perRow; right += lanes)
          copyChunkOf(which, add(from, row), add(slot, row),
                      mul(add(rem(thread, lanes), right), kChunk), ofHead);
      });
    }
  }
  void copyChunkOf(int64_t which, Value time, Value row, Value column, Value ofHead) {
    Value operand = streamed[which];
    const bool rowsFit = shape.time % streamRows == 0, columnsFit = shape.d == columns;
    Value isRow = isLess(time, shape.time);
    auto elementAt = [&](Value column) {
      return Values{batch, rowsFit ? time : inSequence(time), addTimes(column, ofHead, shape.d)};
    };
    if (shape.d % kChunk == 0 && hasAlignedRows(operand)) {
      Value is = columnsFit ? isRow : both(isRow, isLess(column, shape.d));
      Value inHead = columnsFit ? column : least(column, shape.d - kChunk);
      Value count = rowsFit && columnsFit ? Value() : select(is, index(kChunk), index(0));
      copyChunk(*this, operand, elementAt(inHead), tiles[which], {row, column}, count);
      return;
    }
    Value none = make<arith::ConstantOp>(getZeroAttr(getBF16Type()));
    for (int64_t e = 0; e < kChunk; ++e) {
      Value at = add(column, e);
      Value value = load(operand, elementAt(least(at, shape.d - 1)));
      store(select(both(isRow, isLess(at, shape.d)), value, none), tiles[which], {row, at});
    }
  }

  const int64_t columns; // of a tile: whole fragments, the last ones zeros
  const std::array<Value, 2> streamed;
  Value tiles[2];
  Value group, pair;
};

} // namespace

bool boa::isNarrow(Operation *attention) {
  auto areNarrow = [](ValueRange memrefs) {
    return llvm::all_of(memrefs,
                        [](Value memref) { return memrefOf(memref).getElementType().isBF16(); });
  };
  if (auto forward = dyn_cast<kernel::AttentionOp>(attention))
    return areNarrow({forward.getQ(), forward.getK(), forward.getV()});
  auto grad = cast<kernel::AttentionGradOp>(attention);
  return areNarrow({grad.getQ(), grad.getK(), grad.getV(), grad.getDy()});
}

void boa::emitNarrowForward(OpBuilder &builder, kernel::AttentionOp op) {
  const AttentionShape shape(op);
  NarrowAttention l(builder, op.getLoc(), shape, shape.heads, {op.getK(), op.getV()}, shape.causal);
  const Fragments q = l.loadOwn(op.getQ(), l.head);
  const auto starts = l.ownStarts();
  Value factor = l.number(l.scale() * kLog2e);
  // Of the lane's two rows the maxima and the lane's sums, then y.
  Values carried(2, l.number(kNever));
  carried.append(2 + l.results(), l.number(0));
  auto addKeys = [&](Value row, Value slot, bool isMasked, Values &state) {
    Values scores = l.multiply(q, 0, slot);
    std::array<Value, 2> most{state[0], state[1]}, base, fade;
    for (int64_t i = 0; i < l.scores(); ++i) {
      const int64_t below = l.below(i);
      if (isMasked) {
        Value key = l.streamTime(row, i);
        Value is = l.sees(l.ownTime(below), key, key, starts[below], l.startOf(key));
        scores[i] = l.select(is, scores[i], l.number(kNever));
      }
    }
    for (int64_t below : {0, 1}) {
      Value largest;
      for (int64_t i = 0; i < l.scores(); ++i)
        if (l.below(i) == below)
          largest = largest ? l.max(largest, scores[i]) : scores[i];
      most[below] = l.max(state[below], l.reduceMax(largest));
      base[below] = l.mulf(most[below], factor);
      // Before its window or its document a row has no maximum.
      if (l.hidesEarlierKeys())
        base[below] = l.select(l.isNever(most[below]), l.number(0), base[below]);
      base[below] = l.make<arith::NegFOp>(base[below]);
      fade[below] = l.exp2(l.fma(state[below], factor, base[below]));
      state[below] = most[below];
      state[2 + below] = l.mulf(state[2 + below], fade[below]);
    }
    for (int64_t i = 0; i < l.scores(); ++i) {
      const int64_t below = l.below(i);
      scores[i] = l.exp2(l.fma(scores[i], factor, base[below]));
      state[2 + below] = l.addf(state[2 + below], scores[i]);
    }
    for (int64_t i = 0; i < l.results(); ++i)
      state[4 + i] = l.mulf(state[4 + i], fade[l.below(i)]);
    l.addWeighted(scores, 1, slot, MutableArrayRef<Value>(state).drop_front(4));
  };
  Value kvHead = l.div(l.head, shape.group());
  const auto ranges = l.keyTiles();
  Values results = l.stream(kvHead, ranges, carried, addKeys);
  std::array<Value, 2> factors;
  for (int64_t below : {0, 1}) {
    Value total = l.reduceSum(results[2 + below]), time = l.ownTime(below);
    factors[below] = l.divf(l.number(1), total);
    Value lse = l.fma(results[below], l.number(l.scale()), l.make<math::LogOp>(total));
    Value is = l.both(l.isZero(l.rem(l.lane, 4)), l.isLess(time, shape.time));
    l.storeIf(is, lse, op.getLse(), {l.batch, l.head, time});
  }
  l.storeRows(ArrayRef(results).drop_front(4), factors, op.getY());
}

/// The weights of scores. `lse` is times -log2 e. `is` says whether rows see one another, or is
/// null. All of them are by the number of a sum.
static Values computeWeights(NarrowAttention &l, ArrayRef<Value> scores,
                             function_ref<Value(int64_t)> lse, function_ref<Value(int64_t)> is) {
  Value factor = l.number(l.scale() * kLog2e);
  Values weights;
  for (int64_t i = 0; i < l.scores(); ++i) {
    weights.push_back(l.exp2(l.fma(scores[i], factor, lse(i))));
    if (Value seen = is(i))
      weights.back() = l.select(seen, weights.back(), l.number(0));
  }
  return weights;
}

/// The gradients of scores, without their scale, from weights and products with dy.
static Values differentiate(NarrowAttention &l, ArrayRef<Value> weights, ArrayRef<Value> products,
                            function_ref<Value(int64_t)> delta) {
  Values gradients;
  for (int64_t i = 0; i < l.scores(); ++i)
    gradients.push_back(l.mulf(weights[i], l.subf(products[i], delta(i))));
  return gradients;
}

void boa::emitNarrowQueries(OpBuilder &builder, kernel::AttentionGradOp op, Value delta) {
  const AttentionShape shape(op);
  NarrowAttention l(builder, op.getLoc(), shape, shape.heads, {op.getK(), op.getV()}, shape.causal);
  const Fragments q = l.loadOwn(op.getQ(), l.head), dy = l.loadOwn(op.getDy(), l.head);
  std::array<Value, 2> lse = l.loadOwnNumbers(op.getLse()), deltas = l.loadOwnNumbers(delta);
  for (Value &one : lse)
    one = l.mulf(one, l.number(-kLog2e));
  const auto starts = l.ownStarts();
  auto addKeys = [&](Value row, Value slot, bool isMasked, Values &sums) {
    Values scores = l.multiply(q, 0, slot);
    auto is = [&](int64_t i) {
      Value key = l.streamTime(row, i);
      const int64_t below = l.below(i);
      return isMasked ? l.sees(l.ownTime(below), key, key, starts[below], l.startOf(key)) : Value();
    };
    Values weights = computeWeights(l, scores, [&](int64_t i) { return lse[l.below(i)]; }, is);
    Values gradients = differentiate(l, weights, l.multiply(dy, 1, slot),
                                     [&](int64_t i) { return deltas[l.below(i)]; });
    l.addWeighted(gradients, 0, slot, sums);
  };
  Value kvHead = l.div(l.head, shape.group());
  const auto ranges = l.keyTiles();
  Values dq = l.stream(kvHead, ranges, Values(l.results(), l.number(0)), addKeys);
  l.storeRows(dq, l.twice(l.scale()), op.getDq());
}

/// The gradients of own rows of k and v.
struct KeyGradients {
  bool dk, dv;
  int64_t streamRows;
};

static void emitKeys(OpBuilder &builder, kernel::AttentionGradOp op, Value delta,
                     const KeyGradients &wanted) {
  const AttentionShape shape(op);
  NarrowAttention l(builder, op.getLoc(), shape, shape.kvHeads, {op.getQ(), op.getDy()},
                    /*lastFirst=*/false, wanted.streamRows);
  const Fragments k = l.loadOwn(op.getK(), l.head);
  const Fragments v = wanted.dk ? l.loadOwn(op.getV(), l.head) : Fragments();
  const auto starts = l.ownStarts();
  const auto ranges = l.queryTiles();
  auto addQueries = [&](Value head, Value row, Value slot, bool isMasked, Values &sums) {
    Values lse, deltas;
    for (int64_t i = 0; i < l.scores(); ++i) {
      // The lane's two rows are own keys: they have the same queries.
      if (l.below(i) == 1) {
        lse.push_back(lse[i - 2]);
        deltas.push_back(deltas[i - 2]);
        continue;
      }
      Value time = l.streamTime(row, i);
      Values at{l.batch, head, shape.time % l.streamRows == 0 ? time : l.inSequence(time)};
      lse.push_back(l.mulf(l.load(op.getLse(), at), l.number(-kLog2e)));
      deltas.push_back(wanted.dk ? l.load(delta, at) : Value());
    }
    Values scores = l.multiply(k, 0, slot);
    auto is = [&](int64_t i) {
      Value query = l.streamTime(row, i);
      const int64_t below = l.below(i);
      return isMasked ? l.sees(query, l.ownTime(below), query, l.startOf(query), starts[below])
                      : Value();
    };
    Values weights = computeWeights(l, scores, [&](int64_t i) { return lse[i]; }, is);
    auto all = MutableArrayRef<Value>(sums);
    if (wanted.dk) {
      Values gradients =
          differentiate(l, weights, l.multiply(v, 1, slot), [&](int64_t i) { return deltas[i]; });
      l.addWeighted(gradients, 0, slot, all.take_front(l.results()));
    }
    if (wanted.dv)
      l.addWeighted(weights, 1, slot, all.take_back(l.results()));
  };
  auto addHead = [&](Value number, Values &sums) {
    Value head = l.addTimes(number, l.head, shape.group());
    sums = l.stream(head, ranges, sums, [&](Value row, Value slot, bool isMasked, Values &inside) {
      addQueries(head, row, slot, isMasked, inside);
    });
  };
  Values sums = l.loop(l.index(0), l.index(shape.group()), 1,
                       Values((wanted.dk + wanted.dv) * l.results(), l.number(0)), addHead);
  if (wanted.dk)
    l.storeRows(ArrayRef(sums).take_front(l.results()), l.twice(l.scale()), op.getDk());
  if (wanted.dv)
    l.storeRows(ArrayRef(sums).take_back(l.results()), l.twice(1), op.getDv());
}

void boa::emitNarrowKeys(OpBuilder &builder, kernel::AttentionGradOp op, Value delta) {
  // A thread's registers hold the sums of both up to 128 columns. Beyond, scores are computed
  // twice. On an H200 one launch was faster at 128: 1.7 ms in place of 1.9 for the whole gradient.
  const int64_t d = AttentionShape(op).d;
  if (d <= 128)
    return emitKeys(builder, op, delta, {true, true, d <= 64 ? kStreamRows : kStreamRows / 2});
  emitKeys(builder, op, delta, {false, true, kStreamRows});
  emitKeys(builder, op, delta, {true, false, kStreamRows});
}
