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

namespace boa {
#define GEN_PASS_DEF_FUSEKERNELELEMENTWISE
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;

namespace {

/// Whether computing it again costs less than reading it: a few additions and
/// multiplications on at most one operand as large as the result.
bool isCheap(linalg::GenericOp op) {
  for (Operation &inner : op.getBody()->without_terminator())
    if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::ExtFOp, arith::ConstantOp>(inner))
      return false;
  auto large = [&](AffineMap map) { return map.getNumResults() == op.getNumLoops(); };
  return llvm::count_if(ArrayRef(op.getIndexingMapsArray()).drop_back(), large) <= 1;
}

bool shouldFuse(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
  if (!producer || !consumer || producer.getNumParallelLoops() != producer.getNumLoops() ||
      producer.getNumLoops() != consumer.getNumLoops())
    return false;
  if (operand->get().hasOneUse())
    return true;
  // In memory anyway if a library call or a slice wants it.
  auto generic = [](Operation *user) { return isa<linalg::GenericOp>(user); };
  return isCheap(producer) && llvm::all_of(operand->get().getUsers(), generic);
}

struct FuseKernelElementwise : boa::impl::FuseKernelElementwiseBase<FuseKernelElementwise> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(boa::kKernelAttr))
      return;
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
