//===- FuseKernelElementwise.cpp - When elementwise producers are fused ---===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's elementwise fusion under a rule of ours. Assumes linalg on tensors;
// never fuses across a change of rank: a row's statistic is computed once a row.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPasses.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <optional>
#include <utility>

namespace boa {
#define GEN_PASS_DEF_FUSEKERNELELEMENTWISE
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;

namespace {

/// Additions and multiplications that an op may compute again, to save reads of memory. A core
/// does about as many in the time of one read.
constexpr int64_t kMostComputedAgain = 8;

/// Ops in one body. Each fusion copies it, so without a limit a chain would take time in the
/// square of its length. One read and one write of memory for so many ops cost nothing.
constexpr int64_t kMostFused = 256;

int64_t countOps(linalg::GenericOp op) { return int64_t(op.getBody()->getOperations().size()) - 1; }

/// The cost of computing the op again in each consumer. It may have additions and multiplications,
/// and one operand as large as the result. Nothing: the op does more, and is read from memory
/// instead.
std::optional<int64_t> costOfAgain(linalg::GenericOp op) {
  int64_t cost = 0;
  for (Operation &inner : op.getBody()->without_terminator()) {
    const bool computes = isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(inner);
    if (!computes && !isa<arith::ExtFOp, arith::ConstantOp>(inner))
      return std::nullopt;
    cost += computes;
  }
  auto large = [&](AffineMap map) { return map.getNumResults() == op.getNumLoops(); };
  if (llvm::count_if(ArrayRef(op.getIndexingMapsArray()).drop_back(), large) > 1)
    return std::nullopt;
  return cost;
}

/// Says what upstream's fusion may do, and counts along.
class Rule : public RewriterBase::Listener {
public:
  bool shouldFuse(OpOperand *operand) {
    const std::optional<int64_t> count = countFused(operand);
    ofNext = count.value_or(0);
    return count.has_value();
  }

private:
  /// How many operations both would compute again once fused; nothing if they stay apart.
  std::optional<int64_t> countFused(OpOperand *operand) {
    auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
    auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
    if (!producer || !consumer || producer.getNumParallelLoops() != producer.getNumLoops() ||
        producer.getNumLoops() != consumer.getNumLoops() ||
        countOps(producer) + countOps(consumer) > kMostFused)
      return std::nullopt;
    if (operand->get().hasOneUse())
      return again.lookup(producer) + again.lookup(consumer);
    // In memory anyway if a library call or a slice wants it.
    auto generic = [](Operation *user) { return isa<linalg::GenericOp>(user); };
    const std::optional<int64_t> cost = costOfAgain(producer);
    if (!cost || !llvm::all_of(operand->get().getUsers(), generic))
      return std::nullopt;
    const int64_t count = again.lookup(consumer) + *cost;
    return count <= kMostComputedAgain ? std::optional(count) : std::nullopt;
  }

  /// The op that an allowed fusion makes.
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    if (isa<linalg::GenericOp>(op))
      again[op] = std::exchange(ofNext, 0);
  }
  /// By one without operands that it has twice, or without results that nobody uses, which are
  /// null.
  void notifyOperationReplaced(Operation *op, ValueRange results) override {
    for (Value result : results)
      if (Operation *now = result ? result.getDefiningOp() : nullptr)
        again[now] = std::max(again.lookup(now), again.lookup(op));
  }
  void notifyOperationErased(Operation *op) override { again.erase(op); }

  llvm::DenseMap<Operation *, int64_t> again; // what each op computes again
  int64_t ofNext = 0;
};

struct FuseKernelElementwise : boa::impl::FuseKernelElementwiseBase<FuseKernelElementwise> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(boa::kKernelAttr))
      return;
    Rule rule;
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(
        patterns, [&](OpOperand *operand) { return rule.shouldFuse(operand); });
    GreedyRewriteConfig config;
    config.setListener(&rule);
    // In a long chain each round makes one more fusion possible, and looks at all ops. What the
    // default number of rounds leaves is as right without it.
    (void)applyPatternsGreedily(getOperation(), std::move(patterns), config);
  }
};

} // namespace
