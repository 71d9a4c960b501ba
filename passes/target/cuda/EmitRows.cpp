//===- EmitRows.cpp - A team of threads for each row ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of --cuda-emit-groups: groups over rows. The iterations of an op in a row are
// cut into chunks of some elements side by side, which are dealt out to the threads
// of a team in turn; so ops of one shape deal alike, and what one hands on to the
// next stays in a thread's registers. Where it does not, it goes through memory, with
// a barrier in between. If all ops are elementwise and alike, everything is one row
// and each thread has one chunk.
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/EmitGroups.h"
#include "passes/target/cuda/RowMemory.h"

#include "llvm/Support/MathExtras.h"

#include <deque>

using namespace mlir;
using namespace boa;

namespace {

/// The most elements of a row that a thread keeps in registers, of each memref. Longer rows are
/// gone through in loops.
constexpr int64_t kHeldElements = 32;
/// The most such elements of all threads of a team. A block of 1024 has 64 registers a thread,
/// which hold half as many.
constexpr int64_t kTeamElements = 16384;
/// The width up to which a warp takes a row: kHeldElements a thread.
constexpr int64_t kWarpWidth = kWarpLanes * kHeldElements;
/// The elements of a row for each thread of a larger team.
constexpr int64_t kElementsPerThread = 16;
/// The elements that one pass of a loop over a long row takes, so that many loads are under way at
/// once.
constexpr int64_t kLoopElements = 8;
/// The most chunks of such a pass, of all threads of a team. Each has an index, in two registers of
/// the 64 that a thread of 1024 has.
constexpr int64_t kTeamChunks = 4096;
constexpr int64_t kFlatThreads = 256;
constexpr int64_t kRowsPerBlock = 8;

class RowEmitter {
public:
  RowEmitter(ThreadBuilder &builder, gpu::LaunchOp launch, SmallVector<Value> row, Value lane,
             int64_t team)
      : builder(builder), launch(launch), memory(builder, std::move(row), lane, team) {}

  LogicalResult emit(linalg::LinalgOp op, Shape *shape);
  /// Writes the values that other kernels may read.
  void finish(const SmallPtrSetImpl<Operation *> &own) { memory.finish(own); }

private:
  LogicalResult check(linalg::LinalgOp op, Shape *shape, bool sums);
  SmallVector<Value> compute(linalg::LinalgOp op, Shape *shape, ValueRange ivs, int64_t position,
                             ValueRange sums);
  void computeRow(linalg::LinalgOp op);
  void computeElements(linalg::LinalgOp op, Shape &shape);
  LogicalResult computeSums(linalg::LinalgOp op, Shape &shape);
  SmallVector<Value> forChunks(Shape &shape, SmallVector<Value> carried,
                               function_ref<void(const Chunk &, SmallVector<Value> &)> body);
  Value combineTeam(const Combiner &combiner, Value value);

  ThreadBuilder &builder;
  gpu::LaunchOp launch;
  RowMemory memory;
  // By type; two, which sums take in turn: then one barrier a sum is enough.
  llvm::MapVector<Type, SmallVector<Value>> partials;
  unsigned sums = 0;
};

//===----------------------------------------------------------------------===//
// Iterations
//===----------------------------------------------------------------------===//

/// Computes an iteration. `position` is the lane's among the values held. In a sum, the sum so far
/// stands for the results.
SmallVector<Value> RowEmitter::compute(linalg::LinalgOp op, Shape *shape, ValueRange ivs,
                                       int64_t position, ValueRange sums) {
  SmallVector<Value> values;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType())) {
      values.push_back(operand.get());
    } else if (!op.payloadUsesValueFromOperand(&operand)) {
      values.push_back(nullptr);
    } else if (op.isDpsInit(&operand) && !sums.empty()) {
      values.push_back(sums[operand.getOperandNumber() - op.getNumDpsInputs()]);
    } else {
      Place place = memory.getPlace(op, operand, shape);
      if (Held *here = memory.find(place))
        values.push_back(here->values[place.shape ? position : 0]);
      else
        values.push_back(builder.load(place.memref, place.map, ivs));
    }
  }
  return builder.compute(*op.getBlock(), values, ivs);
}

/// Runs `body` for all chunks that a thread has. It takes each of them with the values that are
/// carried from one to the next.
SmallVector<Value>
RowEmitter::forChunks(Shape &shape, SmallVector<Value> carried,
                      function_ref<void(const Chunk &, SmallVector<Value> &)> body) {
  memory.beginChunks();
  const int64_t team = memory.team;
  int64_t unroll = std::clamp<int64_t>(kLoopElements / shape.vector, 1, kTeamChunks / team);
  int64_t passes = shape.held ? 0 : shape.countChunks() / team / unroll;
  if (passes > 0) {
    auto pass = [&](Value number, SmallVector<Value> &inside) {
      Value from = builder.add(memory.lane, builder.mul(number, unroll * team));
      for (int64_t u = 0; u < unroll; ++u)
        body(makeChunk(builder, memory.row, shape.extents, shape.vector,
                       u ? builder.add(from, u * team) : from, false),
             inside);
    };
    carried = builder.loop(builder.index(0), builder.index(passes), 1, carried, pass);
  }
  for (int64_t round = passes * unroll; round < shape.rounds; ++round)
    body(memory.getChunk(shape, round), carried);
  return carried;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Computes an op without loops of its own. Every thread of a team has the result.
void RowEmitter::computeRow(linalg::LinalgOp op) {
  SmallVector<Value> results = compute(op, nullptr, memory.row, 0, {});
  for (auto [operand, result] : llvm::zip(op.getDpsInitsMutable(), results))
    memory.hold(memory.getPlace(op, operand, nullptr), {result});
}

void RowEmitter::computeElements(linalg::LinalgOp op, Shape &shape) {
  SmallVector<Place> places;
  for (OpOperand &operand : op.getDpsInitsMutable())
    places.push_back(memory.getPlace(op, operand, &shape));
  if (!shape.held)
    memory.expectWrites(places);
  SmallVector<SmallVector<Value>> results(places.size());
  forChunks(shape, {}, [&](const Chunk &chunk, SmallVector<Value> &) {
    SmallVector<SmallVector<Value>> now(places.size());
    for (ValueRange ivs : chunk.ivs)
      for (auto [i, value] :
           llvm::enumerate(compute(op, &shape, ivs, results[0].size() + now[0].size(), {})))
        now[i].push_back(value);
    for (auto [i, place] : llvm::enumerate(places)) {
      if (shape.held) {
        llvm::append_range(results[i], now[i]);
        continue;
      }
      builder.when(chunk.valid, [&, i = i, place = place] {
        for (auto [value, ivs] : llvm::zip(now[i], chunk.ivs))
          builder.store(value, place.memref, place.map, ivs);
      });
    }
  });
  if (shape.held)
    for (auto [place, values] : llvm::zip(places, results))
      memory.hold(place, values);
}

LogicalResult RowEmitter::computeSums(linalg::LinalgOp op, Shape &shape) {
  int64_t vector = shape.vector;
  SmallVector<Combiner> combiners;
  SmallVector<Value> sums; // of each result each lane
  for (int64_t i = 0, e = op.getNumDpsInits(); i < e; ++i) {
    FailureOr<Combiner> combiner = Combiner::get(op, i);
    if (failed(combiner))
      return failure();
    sums.append(vector, combiner->getNeutral(builder));
    combiners.push_back(*combiner);
  }
  int64_t position = 0;
  sums = forChunks(shape, sums, [&](const Chunk &chunk, SmallVector<Value> &sums) {
    for (auto [l, ivs] : llvm::enumerate(chunk.ivs)) {
      SmallVector<Value> mine;
      for (unsigned i = 0; i < combiners.size(); ++i)
        mine.push_back(sums[i * vector + l]);
      SmallVector<Value> next = compute(op, &shape, ivs, position++, mine);
      for (unsigned i = 0; i < combiners.size(); ++i)
        sums[i * vector + l] =
            chunk.valid ? builder.select(chunk.valid, next[i], mine[i]) : next[i];
    }
  });
  for (auto [i, combiner] : llvm::enumerate(combiners)) {
    Place place = memory.getPlace(op, op.getDpsInitsMutable()[i], &shape);
    Value sum = combiner.combineAll(builder, ArrayRef(sums).slice(i * vector, vector));
    sum = combineTeam(combiner, sum);
    memory.hold(place, {combiner.combine(builder, memory.find(place)->values[0], sum)});
  }
  return success();
}

/// Combines the values of a team. Every thread has the result, and the same bits, since the order
/// is the same.
Value RowEmitter::combineTeam(const Combiner &combiner, Value value) {
  value = combiner.combineLanes(builder, value, 1, kWarpLanes);
  int64_t warps = memory.team / kWarpLanes;
  if (warps == 1)
    return value;
  SmallVector<Value> &buffers = partials[combiner.getType()];
  while (buffers.size() <= sums % 2)
    buffers.push_back(addWorkgroupMemory(launch, {warps}, combiner.getType()));
  Value buffer = buffers[sums++ % 2];
  Value warp = builder.div(memory.lane, kWarpLanes);
  Value inWarp = builder.rem(memory.lane, kWarpLanes);
  builder.when(builder.isZero(inWarp), [&] { builder.store(value, buffer, warp); });
  memory.barrier();
  Value from = builder.rem(memory.lane, warps);
  value = builder.load(buffer, from);
  return combiner.combineLanes(builder, value, 1, warps);
}

LogicalResult RowEmitter::check(linalg::LinalgOp op, Shape *shape, bool sums) {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (OpOperand &init : op.getDpsInitsMutable()) {
    Place place = memory.getPlace(op, init, shape);
    for (unsigned d = memory.row.size(); d < iterators.size(); ++d)
      if (sums ? iterators[d] == utils::IteratorType::parallel
               : !place.map.isFunctionOfDim(d) && shape->extents[d - memory.row.size()] != 1)
        return op->emitOpError(sums ? "expected one sum for each row"
                                    : "expected a result of its own for each iteration");
    for (OpOperand &operand : op->getOpOperands()) {
      if (&operand == &init || !isa<MemRefType>(operand.get().getType()))
        continue;
      Place other = memory.getPlace(op, operand, shape);
      if (other.overlaps(place) && !(other == place))
        return op->emitOpError("expected not to read results of other iterations");
    }
  }
  return success();
}

LogicalResult RowEmitter::emit(linalg::LinalgOp op, Shape *shape) {
  builder.setLoc(op.getLoc());
  bool sums = op.getNumReductionLoops() > 0;
  if (failed(check(op, shape, sums)))
    return failure();
  for (OpOperand &operand : op->getOpOperands())
    if (isa<MemRefType>(operand.get().getType()) && op.payloadUsesValueFromOperand(&operand))
      memory.acquire(memory.getPlace(op, operand, shape), shape);
  if (sums)
    return computeSums(op, *shape);
  if (shape)
    computeElements(op, *shape);
  else
    computeRow(op);
  return success();
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// Whether all ops go over the same elements, each element by itself.
bool isFlat(ArrayRef<GroupMember> members) {
  for (const GroupMember &member : members) {
    unsigned rank = member.extents.size();
    if (rank == 0 || member.leading < rank || member.extents != members[0].extents)
      return false;
    for (const GroupMember &other : members)
      for (const MemoryAccess &a : member.accesses)
        for (const MemoryAccess &b : other.accesses)
          if (mayConflict(a, b) && mayOverlap(a.memref, b.memref) &&
              !(a.memref == b.memref && a.map && a.map == b.map))
            return false;
  }
  return true;
}

/// The largest divisor of `count` up to `limit`.
int64_t getDivisor(int64_t count, int64_t limit) {
  int64_t divisor = std::min(count, limit);
  while (count % divisor != 0)
    --divisor;
  return divisor;
}

/// Deals rounds to a team. It takes shorter vectors if then all threads have as many.
void deal(Shape &shape, int64_t team) {
  if (shape.countChunks() % team != 0 && shape.vector > 2 && shape.countChunks() * 2 % team == 0)
    shape.vector /= 2;
  shape.rounds = llvm::divideCeil(shape.countChunks(), team);
  shape.held = shape.rounds * shape.vector <= std::min(kHeldElements, kTeamElements / team);
}

/// Launches a thread for each chunk, which is the only one that it has.
gpu::LaunchOp launchFlat(ThreadBuilder &builder, Shape &shape) {
  int64_t across = shape.extents.back() / shape.vector;
  int64_t rows = shape.countChunks() / across;
  // A block is some chunks of a row by some rows: no division finds a thread's place.
  int64_t x = across, y = 1;
  if (across <= kFlatThreads)
    y = getDivisor(rows, kFlatThreads / across);
  else if (across % kWarpLanes == 0)
    x = getDivisor(across / kWarpLanes, kFlatThreads / kWarpLanes) * kWarpLanes;
  // Unless such blocks are small.
  if (x * y < kFlatThreads / 4 || x > kFlatThreads) {
    x = std::min(kFlatThreads, shape.countChunks());
    const int64_t blocks = llvm::divideCeil(shape.countChunks(), x);
    gpu::LaunchOp launch = createLaunch(builder, {blocks, 1, 1}, x, 1);
    Value number = builder.add(builder.mul(launch.getBlockIds().x, x), launch.getThreadIds().x);
    shape.chunks = {
        makeChunk(builder, {}, shape.extents, shape.vector, number, shape.countChunks() % x != 0)};
    return launch;
  }
  int64_t tiles = across / x;
  gpu::LaunchOp launch = createLaunch(builder, {rows / y * tiles, 1, 1}, x, y);
  SmallVector<Value> block = builder.delinearize(launch.getBlockIds().x, {rows / y, tiles});
  Value row = builder.add(builder.mul(block[0], y), launch.getThreadIds().y);
  Value column = builder.add(builder.mul(block[1], x), launch.getThreadIds().x);
  ArrayRef<int64_t> extents(shape.extents);
  shape.chunks = {makeChunk(builder, builder.delinearize(row, extents.drop_back()),
                            extents.take_back(), shape.vector, column, false)};
  return launch;
}

} // namespace

LogicalResult boa::emitRows(OpBuilder &outside, ArrayRef<int64_t> space,
                            ArrayRef<GroupMember> members, ArrayRef<Operation *> memory) {
  ThreadBuilder builder(outside, members[0].op->getLoc());
  bool flat = isFlat(members);
  unsigned rank = flat ? 0 : space.size();
  // One shape for the ops of the same loops, with vectors that suit them all.
  std::deque<Shape> shapes;
  SmallVector<Shape *> shapeOf;
  int64_t width = 1;
  for (const GroupMember &member : members) {
    auto op = dyn_cast<linalg::LinalgOp>(member.op);
    if (!op)
      return member.op->emitOpError("is not expected in a group of rows");
    ArrayRef<int64_t> extents = ArrayRef(member.extents).drop_front(rank);
    Shape *&shape = shapeOf.emplace_back(nullptr);
    if (extents.empty())
      continue;
    width = std::max(width, llvm::product_of(extents));
    auto it = llvm::find_if(shapes, [&](const Shape &s) { return extents == ArrayRef(s.extents); });
    int64_t vector = getVectorSize(op);
    if (it == shapes.end())
      it = shapes.insert(shapes.end(), Shape{llvm::to_vector(extents), vector, 1, {}});
    it->vector = std::min(it->vector, vector);
    shape = &*it;
  }

  llvm::SmallPtrSet<Operation *, 4> own;
  own.insert_range(memory);
  auto emit = [&](RowEmitter emitter) -> LogicalResult {
    for (auto [member, shape] : llvm::zip(members, shapeOf))
      if (failed(emitter.emit(cast<linalg::LinalgOp>(member.op), shape)))
        return failure();
    emitter.finish(own);
    return success();
  };
  if (flat) {
    gpu::LaunchOp launch = launchFlat(builder, shapes.front());
    return emit(RowEmitter(builder, launch, {}, builder.index(0), 1));
  }
  int64_t count = llvm::product_of(space);
  int64_t team = kWarpLanes, rows = 1;
  if (rank == 0)
    team = std::clamp<int64_t>(llvm::PowerOf2Ceil(width / 4), kWarpLanes, kMaxThreads);
  else if (width > kWarpWidth)
    team = std::min<int64_t>(llvm::PowerOf2Ceil(width / kElementsPerThread), kMaxThreads);
  else
    rows = getDivisor(count, kRowsPerBlock);
  for (Shape &shape : shapes)
    deal(shape, team);
  gpu::LaunchOp launch = createLaunch(builder, {count / rows, 1, 1}, team, rows);
  Value row = builder.add(builder.mul(launch.getBlockIds().x, rows), launch.getThreadIds().y);
  return emit(
      RowEmitter(builder, launch, builder.delinearize(row, space), launch.getThreadIds().x, team));
}
