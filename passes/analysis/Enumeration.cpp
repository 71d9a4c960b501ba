//===- Enumeration.cpp ----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Enumeration.h"

#include <vector>

using namespace mlir;

namespace boa {

int64_t Position::get(Value value) const {
  auto it = values.find(value);
  assert(it != values.end() && "an index is computed before its uses");
  return it->second;
}

int64_t Position::getEntry(StorageOp storage, ArrayRef<Value> indices) const {
  int64_t entry = 0;
  for (auto [index, dim] : llvm::zip(indices, storage.getDims())) {
    int64_t at = get(index);
    if (at < 0 || at >= dim)
      return -1;
    entry = entry * dim + at;
  }
  return entry;
}

std::string describeIteration(const Position::Iteration &iteration) {
  std::string words;
  // Loops of one dimension keep their order; those of different ones may not.
  for (Dimension dimension : {Dimension::layer, Dimension::micro_batch, Dimension::chunk})
    for (auto [other, at] : iteration)
      if (other == dimension)
        words += (words.empty() ? "" : ", ") + stringifyDimension(dimension).str() + " " +
                 std::to_string(at);
  return words;
}

bool dependsOnParity(StepOp step) {
  return llvm::any_of(
      llvm::concat<OpOperand>(step.getStep().getUses(), step.getPending().getUses()),
      [](OpOperand &use) {
        auto loop = dyn_cast<LoopOp>(use.getOwner());
        return loop && loop.getParity() == use.get();
      });
}

struct Enumerator {
  /// An op of a block, as one of these, or as neither. Asked once: a block runs many times.
  struct Entry {
    Operation *op;
    LoopOp loop;
    IndexOpInterface index;
  };
  function_ref<void(Operation *, const Position &)> visit;
  function_ref<int64_t(LoopOp, int64_t)> together;

  Position at{};
  llvm::DenseMap<Block *, std::vector<Entry>> entries{};

  void run(StepOp step, RunNumbers numbers) {
    at.values[step.getStep()] = numbers.step;
    at.values[step.getPending()] = numbers.pending;
    run(*step.getBlock());
  }

  void run(Block &block) {
    auto [known, isNew] = entries.try_emplace(&block);
    if (isNew)
      for (Operation &op : block)
        known->second.push_back({&op, dyn_cast<LoopOp>(op), dyn_cast<IndexOpInterface>(op)});
    const ArrayRef<Entry> ops = known->second; // stays where it is while the table grows
    for (Entry entry : ops) {
      if (entry.loop)
        run(entry.loop);
      else if (entry.index)
        at.values[entry.op->getResult(0)] = entry.index.compute(at);
      else
        visit(entry.op, at);
    }
  }

  void run(LoopOp loop) {
    if (loop.getGuard() && at.get(loop.getGuard()) == 0)
      return;
    bool reverse = loop.isDescending(loop.getParity() ? at.get(loop.getParity()) : 0);
    int64_t lower = loop.getLower(), upper = loop.getUpper();
    Value iv = loop.getInductionVar();
    at.loops.push_back({loop.getDimension(), 0});
    auto iterate = [&](int64_t value, bool first, bool last) {
      at.values[iv] = at.loops.back().second = value;
      at.ends[iv] = {first, last};
      ++at.number;
      run(*loop.getBlock());
    };
    bool chunks = loop.getDimension() == Dimension::chunk;
    for (int64_t i = lower; i < upper;) {
      int64_t count = chunks ? std::min(together(loop, i), upper - i) : 1;
      if (reverse && count < upper - lower)
        count = 1;
      if (count > 1) {
        at.spanned = iv;
        at.spanning = count;
        iterate(i, i == lower, i + count == upper);
        at.spanned = Value();
      } else {
        iterate(reverse ? upper - 1 - (i - lower) : i, i == lower, i + 1 == upper);
      }
      i += count;
    }
    at.loops.pop_back();
    ++at.number;
  }
};

void enumerate(StepOp step, RunNumbers numbers,
               function_ref<void(Operation *, const Position &)> visit,
               function_ref<int64_t(LoopOp, int64_t)> together) {
  Enumerator{visit, together}.run(step, numbers);
}

} // namespace boa
