//===- collectives.cpp - Gathers and sums of sharded entries --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/collectives.h"

#include "runtime/support/thread_pool.h"

#include <algorithm>
#include <utility>

namespace boa {

// Elements that are added through the whole tree at once: a cache keeps them.
constexpr int64_t kBlock = 4096;

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

int64_t Sharding::Rows() const {
  const int64_t row_bytes = chunk_bytes * ranks;
  return (bytes + row_bytes - 1) / row_bytes;
}

int64_t Sharding::Bytes(int64_t row, int32_t rank) const {
  return std::clamp<int64_t>(bytes - (row * ranks + rank) * chunk_bytes, 0, chunk_bytes);
}

static char *At(void *data, int64_t offset) { return static_cast<char *>(data) + offset; }

Exchange GatherRow(const Sharding &sharding, int64_t row, int32_t rank, void *data) {
  Exchange exchange;
  const int64_t own = sharding.Bytes(row, rank);
  for (int32_t peer = 0; peer < sharding.ranks; ++peer) {
    if (peer == rank)
      continue;
    if (own > 0)
      exchange.sends.push_back({peer, At(data, sharding.Offset(rank)), own});
    if (const int64_t bytes = sharding.Bytes(row, peer))
      exchange.receives.push_back({peer, At(data, sharding.Offset(peer)), bytes});
  }
  return exchange;
}

//===----------------------------------------------------------------------===//
// The tree
//===----------------------------------------------------------------------===//

/// Where the second part of a node of at least two groups begins.
static int32_t Split(Groups node) {
  int32_t first = 1;
  while (2 * first < node.end - node.begin)
    first *= 2;
  return node.begin + first;
}

static void Collect(Groups node, Groups within, std::vector<Groups> &subtrees) {
  if (node.end <= within.begin || within.end <= node.begin)
    return;
  if (within.begin <= node.begin && node.end <= within.end)
    return subtrees.push_back(node);
  const int32_t split = Split(node);
  Collect({node.begin, split}, within, subtrees);
  Collect({split, node.end}, within, subtrees);
}

std::vector<Groups> Subtrees(int32_t shards, Groups groups) {
  std::vector<Groups> subtrees;
  Collect({0, shards}, groups, subtrees);
  return subtrees;
}

/// Terms of a tree: sums of neighbouring nodes.
struct Terms {
  std::vector<Groups> nodes; // in order
  std::vector<float *> values;
};

/// Adds elements [begin, end) of a node's terms, in place. Returns the place: `to`, or the first
/// term's if `to` is null.
static float *AddNode(Groups node, const Terms &terms, float *to, int64_t begin, int64_t end) {
  const auto term = std::lower_bound(terms.nodes.begin(), terms.nodes.end(), node.begin,
                                     [](Groups one, int32_t at) { return one.begin < at; });
  if (term->end == node.end) {
    float *const value = terms.values[size_t(term - terms.nodes.begin())];
    if (to && to != value)
      std::copy(value + begin, value + end, to + begin);
    return to ? to : value;
  }
  const int32_t split = Split(node);
  float *const first = AddNode({node.begin, split}, terms, nullptr, begin, end);
  const float *const second = AddNode({split, node.end}, terms, nullptr, begin, end);
  float *const sum = to ? to : first;
  for (int64_t i = begin; i < end; ++i)
    sum[i] = first[i] + second[i];
  return sum;
}

/// AddNode of all elements, on all threads.
static void AddTree(Groups node, const Terms &terms, float *to, int64_t bytes) {
  auto add = [&](int64_t begin, int64_t end) {
    for (int64_t next = begin; begin < end; begin = next) {
      next = std::min(begin + kBlock, end);
      AddNode(node, terms, to, begin, next);
    }
  };
  ParallelFor(
      bytes / int64_t(sizeof(float)), kBlock,
      [](void *data, int64_t begin, int64_t end) {
        (*static_cast<decltype(add) *>(data))(begin, end);
      },
      &add);
}

//===----------------------------------------------------------------------===//
// Sums of a row
//===----------------------------------------------------------------------===//

RowSum::RowSum(const Sharding &sharding, int64_t row, int32_t rank, std::vector<float *> partials,
               float *scratch)
    : sharding(sharding), row(row), rank(rank), per_rank(int32_t(partials.size())),
      partials(std::move(partials)), scratch(scratch) {}

std::vector<Groups> RowSum::SubtreesOf(int32_t of) const {
  return Subtrees(per_rank * sharding.ranks, {of * per_rank, (of + 1) * per_rank});
}

int64_t RowSum::ScratchBytes() const {
  int64_t roots = 0;
  for (int32_t peer = 0; peer < sharding.ranks; ++peer)
    roots += peer == rank ? 0 : int64_t(SubtreesOf(peer).size());
  return roots * sharding.chunk_bytes;
}

void RowSum::Add() const {
  Terms leaves = {{}, partials};
  for (int32_t group = rank * per_rank; group < (rank + 1) * per_rank; ++group)
    leaves.nodes.push_back({group, group + 1});
  int64_t bytes = 0;
  for (int32_t peer = 0; peer < sharding.ranks; ++peer)
    bytes += sharding.Bytes(row, peer);
  for (Groups subtree : SubtreesOf(rank))
    AddTree(subtree, leaves, nullptr, bytes);
}

/// The sum of a subtree of this rank's, of a chunk in the row.
float *RowSum::Own(Groups subtree, int32_t chunk) const {
  return partials[subtree.begin - rank * per_rank] +
         sharding.Offset(chunk) / int64_t(sizeof(float));
}

Exchange RowSum::Roots() const {
  Exchange exchange;
  const int64_t own = sharding.Bytes(row, rank);
  int64_t slot = 0;
  for (int32_t peer = 0; peer < sharding.ranks; ++peer) {
    if (peer == rank)
      continue;
    if (const int64_t bytes = sharding.Bytes(row, peer))
      for (Groups subtree : SubtreesOf(rank))
        exchange.sends.push_back({peer, Own(subtree, peer), bytes});
    if (own > 0)
      for (size_t i = 0; i < SubtreesOf(peer).size(); ++i)
        exchange.receives.push_back({peer, At(scratch, slot++ * sharding.chunk_bytes), own});
  }
  return exchange;
}

void RowSum::Finish(float *sum) const {
  Terms roots;
  float *slot = scratch;
  for (int32_t peer = 0; peer < sharding.ranks; ++peer)
    for (Groups subtree : SubtreesOf(peer)) {
      roots.nodes.push_back(subtree);
      roots.values.push_back(peer == rank ? Own(subtree, rank) : slot);
      slot += peer == rank ? 0 : sharding.chunk_bytes / int64_t(sizeof(float));
    }
  AddTree({0, per_rank * sharding.ranks}, roots, sum, sharding.Bytes(row, rank));
}

} // namespace boa
