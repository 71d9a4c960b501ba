//===- collectives.h - Gathers and sums of sharded entries ---- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chunk c of an entry belongs to rank c mod K. K chunks are a row, and the last row may have fewer.
// A row lies in memory as in the entry, without gaps. A rank sends each row as one exchange:
//
//   gather   its own chunk to all others
//   sum      of each other rank's chunk, what its groups of micro-batches add to the gradient
//
// A step has S groups, and rank r of K computes the groups from r * S/K on, S/K of them. Their
// partial gradients are added in one binary tree, whatever K is: a node of n groups adds its first
// 2^i, the most that are fewer than n, to the rest. So 12 groups are (0-3 + 4-7) + 8-11, and each
// of these is (0 + 1) + (2 + 3). A rank adds the largest subtrees that are all its own, and the
// chunk's owner adds the roots of those. So each sum has the same bits with every K that divides S.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_COMM_COLLECTIVES_H
#define BOA_RUNTIME_COMM_COLLECTIVES_H

#include "runtime/comm/comm.h"

#include <cstdint>
#include <vector>

namespace boa {

/// The chunks of an entry, as dealt to ranks.
struct Sharding {
  int64_t bytes = 0, chunk_bytes = 0; // the last chunk may have fewer
  int32_t ranks = 1;

  int64_t Rows() const;
  /// Of a row's chunk that is this rank's: its place in the row, and its bytes; 0: it has none.
  int64_t Offset(int32_t rank) const { return rank * chunk_bytes; }
  int64_t Bytes(int64_t row, int32_t rank) const;
};

/// `row`: its memory, where the own chunk is in place. On success all of its chunks are.
Exchange GatherRow(const Sharding &, int64_t row, int32_t rank, void *data);

/// Groups of micro-batches, [begin, end).
struct Groups {
  int32_t begin = 0, end = 0;
};
/// The largest subtrees that have no groups but these, in order. `shards`: all groups.
std::vector<Groups> Subtrees(int32_t shards, Groups);

/// The sum of a row of gradients in f32: Add, then the exchange of Roots, then Finish.
class RowSum {
public:
  /// `partials`: the row in each of this rank's groups, in order: S/K places. All are overwritten.
  /// `scratch`: for the roots that others send, ScratchBytes. `chunk_bytes` is a multiple of 4.
  RowSum(const Sharding &, int64_t row, int32_t rank, std::vector<float *> partials,
         float *scratch);

  int64_t ScratchBytes() const;

  /// Adds the own groups, as far as they are subtrees.
  void Add() const;
  Exchange Roots() const;
  /// Adds the roots of the own chunk. `sum`: a place of its own, or the chunk's in a partial.
  void Finish(float *sum) const;

private:
  std::vector<Groups> SubtreesOf(int32_t rank) const;
  float *Own(Groups subtree, int32_t chunk) const;

  const Sharding sharding;
  const int64_t row;
  const int32_t rank, per_rank; // groups
  const std::vector<float *> partials;
  float *const scratch;
};

} // namespace boa

#endif // BOA_RUNTIME_COMM_COLLECTIVES_H
