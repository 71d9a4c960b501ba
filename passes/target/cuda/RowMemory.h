//===- RowMemory.h - What a thread has of a row -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of EmitRows. Deals the iterations of an op in a row out to a team of threads, keeps
// values in registers from one op to the next, and places the barriers.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_ROWMEMORY_H
#define BOA_PASSES_TARGET_CUDA_ROWMEMORY_H

#include "passes/target/cuda/ThreadBuilder.h"

namespace boa {

/// Iterations side by side in the last dimension, one for each lane, and a condition that they
/// exist (null: they do). If it is false, the indices are those of other iterations.
struct Chunk {
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> ivs;
  mlir::Value valid;
};

/// The way in which the iterations of ops of these extents in a row are dealt out.
struct Shape {
  llvm::SmallVector<int64_t> extents;
  int64_t vector;
  int64_t rounds; // chunks that a thread has
  llvm::SmallVector<Chunk> chunks;
  bool held = true; // in registers

  int64_t countChunks() const { return llvm::product_of(extents) / vector; }
};

/// Makes chunk `number` of those in the last dimensions, of these extents, in the row `row` of the
/// others. If there may be no such chunk, it takes the indices of `otherwise` or of the last.
Chunk makeChunk(ThreadBuilder &builder, llvm::ArrayRef<mlir::Value> row,
                llvm::ArrayRef<int64_t> extents, int64_t vector, mlir::Value number, bool guard,
                mlir::Value otherwise = nullptr);

/// Memory as the iterations of an op go over it; of no shape if there is one
/// element for a row.
struct Place {
  mlir::Value memref, root;
  mlir::AffineMap map;
  Shape *shape;

  bool operator==(const Place &other) const;
  bool overlaps(const Place &other) const;
};

/// The elements of a place that a thread has in registers, of each round and each lane.
struct Held {
  Place place;
  llvm::SmallVector<mlir::Value> values;
  bool dirty; // memory has not
};

/// The registers of a thread of a team that has a row, and the team's accesses to memory.
class RowMemory {
public:
  RowMemory(ThreadBuilder &builder, llvm::SmallVector<mlir::Value> row, mlir::Value lane,
            int64_t team)
      : row(std::move(row)), lane(lane), team(team), builder(builder) {}

  Place getPlace(mlir::linalg::LinalgOp op, mlir::OpOperand &operand, Shape *shape) const;
  /// The chunk of a round that is in no loop.
  const Chunk &getChunk(Shape &shape, int64_t round);
  /// Returns null if the place is not held.
  Held *find(const Place &place);

  /// Loads values of which a row has one, and the elements of a row that a thread keeps. The
  /// other elements are loaded at their use.
  void acquire(const Place &place, Shape *shape);
  /// Holds values of all rounds that are not in memory.
  void hold(const Place &place, llvm::SmallVector<mlir::Value> values);
  /// Announces writes of rows that are not held: the op writes them when it goes through them.
  void expectWrites(llvm::ArrayRef<Place> places);
  /// Begins the op's way through its chunks. There is no barrier until it ends.
  void beginChunks();
  /// Adds a barrier for all threads of the block.
  void barrier();
  /// Writes the values that other kernels may read: all but those in memory of these allocations.
  void finish(const llvm::SmallPtrSetImpl<mlir::Operation *> &own);

  const llvm::SmallVector<mlir::Value> row;
  const mlir::Value lane;
  const int64_t team;

private:
  /// An access to memory since the last barrier.
  struct Touch {
    Place place;
    bool write;
  };

  void order(const Place &place, bool write);
  void touch(const Place &place, bool write);
  void settle(const Place &place, bool write);
  void write(Held &held);

  ThreadBuilder &builder;
  llvm::SmallVector<Held> held;
  llvm::SmallVector<Touch> touched;
  // The accesses of the op when it goes through its chunks: after all of its barriers.
  llvm::SmallVector<Touch> coming;
};

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_ROWMEMORY_H
