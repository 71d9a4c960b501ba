//===- RowMemory.cpp - What a thread has of a row -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/RowMemory.h"

#include "passes/kernels/MemoryAccess.h"

using namespace mlir;
using namespace boa;

//===----------------------------------------------------------------------===//
// Chunks and places
//===----------------------------------------------------------------------===//

Chunk boa::makeChunk(ThreadBuilder &builder, ArrayRef<Value> row, ArrayRef<int64_t> extents,
                     int64_t vector, Value number, bool guard, Value otherwise) {
  Chunk chunk;
  int64_t count = llvm::product_of(extents) / vector;
  if (guard) {
    chunk.valid = builder.isLess(number, count);
    number = otherwise ? builder.select(chunk.valid, number, otherwise)
                       : builder.least(number, count - 1);
  }
  SmallVector<int64_t> chunks(extents);
  chunks.back() /= vector;
  SmallVector<Value> inner = builder.delinearize(number, chunks);
  Value first = builder.mul(inner.back(), vector);
  for (int64_t l = 0; l < vector; ++l) {
    inner.back() = l ? builder.add(first, l) : first;
    SmallVector<Value> &ivs = chunk.ivs.emplace_back(row);
    llvm::append_range(ivs, inner);
  }
  return chunk;
}

const Chunk &RowMemory::getChunk(Shape &shape, int64_t round) {
  shape.chunks.resize(shape.rounds);
  Chunk &chunk = shape.chunks[round];
  if (chunk.ivs.empty()) {
    bool guard = (round + 1) * team > shape.countChunks();
    // Where there is none, its own of before: others are written by others.
    chunk = makeChunk(builder, row, shape.extents, shape.vector, builder.add(lane, round * team),
                      guard, round ? lane : Value());
  }
  return chunk;
}

bool Place::operator==(const Place &other) const {
  return memref == other.memref && shape == other.shape &&
         map.getResults() == other.map.getResults();
}

bool Place::overlaps(const Place &other) const {
  return root == other.root && mayOverlap(memref, other.memref);
}

Place RowMemory::getPlace(linalg::LinalgOp op, OpOperand &operand, Shape *shape) const {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  bool one = true;
  for (unsigned d = row.size(); d < map.getNumDims(); ++d)
    one &= !map.isFunctionOfDim(d);
  return {operand.get(), getMemoryRoot(operand.get()), map, one ? nullptr : shape};
}

//===----------------------------------------------------------------------===//
// Registers and memory
//===----------------------------------------------------------------------===//

Held *RowMemory::find(const Place &place) {
  auto it = llvm::find_if(held, [&](const Held &h) { return h.place == place; });
  return it == held.end() ? nullptr : it;
}

/// Adds a barrier if another thread may still have to finish an access to this memory.
void RowMemory::order(const Place &place, bool write) {
  for (const Touch &other : touched) {
    if (!(write || other.write) || !place.overlaps(other.place))
      continue;
    // A thread's own elements; what there is one of the first thread writes.
    if (place == other.place && (place.shape || (write && other.write)))
      continue;
    barrier();
    return;
  }
}

/// Notes the access that follows at once.
void RowMemory::touch(const Place &place, bool write) {
  order(place, write);
  touched.push_back({place, write});
}

/// Writes registers of memory that overlaps, and forgets them if it is about to change.
void RowMemory::settle(const Place &place, bool write) {
  for (Held &other : held)
    if (other.dirty && !(other.place == place) && other.place.overlaps(place))
      this->write(other);
  if (write)
    llvm::erase_if(held, [&](const Held &other) {
      return !(other.place == place) && other.place.overlaps(place);
    });
}

void RowMemory::write(Held &held) {
  const Place &place = held.place;
  touch(place, true);
  held.dirty = false;
  if (!place.shape) {
    Value first = builder.isZero(lane);
    SmallVector<Value> ivs(row);
    ivs.resize(place.map.getNumDims());
    builder.when(first, [&] { builder.store(held.values[0], place.memref, place.map, ivs); });
    return;
  }
  int64_t vector = place.shape->vector;
  for (int64_t round = 0; round < place.shape->rounds; ++round) {
    const Chunk &chunk = getChunk(*place.shape, round);
    builder.when(chunk.valid, [&] {
      for (int64_t l = 0; l < vector; ++l)
        builder.store(held.values[round * vector + l], place.memref, place.map, chunk.ivs[l]);
    });
  }
}

void RowMemory::hold(const Place &place, SmallVector<Value> values) {
  settle(place, true);
  if (Held *old = find(place))
    *old = {place, std::move(values), true};
  else
    held.push_back({place, std::move(values), true});
}

void RowMemory::acquire(const Place &place, Shape *shape) {
  if (find(place))
    return;
  settle(place, false);
  SmallVector<Value> values;
  if (!place.shape) {
    touch(place, false);
    SmallVector<Value> ivs(row);
    ivs.resize(place.map.getNumDims());
    values.push_back(builder.load(place.memref, place.map, ivs));
  } else {
    bool ofRow = row.empty();
    for (unsigned d = 0; d < row.size(); ++d)
      ofRow |= place.map.isFunctionOfDim(d);
    if (!shape->held || !ofRow) {
      order(place, false);
      coming.push_back({place, false});
      return;
    }
    touch(place, false);
    for (int64_t round = 0; round < shape->rounds; ++round)
      for (ValueRange ivs : getChunk(*shape, round).ivs)
        values.push_back(builder.load(place.memref, place.map, ivs));
  }
  held.push_back({place, std::move(values), false});
}

void RowMemory::expectWrites(ArrayRef<Place> places) {
  for (const Place &place : places) {
    settle(place, true);
    order(place, true);
    coming.push_back({place, true});
  }
}

void RowMemory::beginChunks() {
  touched.append(coming);
  coming.clear();
}

void RowMemory::barrier() {
  builder.barrier();
  touched.clear();
}

void RowMemory::finish(const SmallPtrSetImpl<Operation *> &own) {
  for (Held &each : held)
    if (each.dirty && !own.contains(each.place.root.getDefiningOp()))
      write(each);
}
