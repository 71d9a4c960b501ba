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

/// The most ops in one body. Each fusion copies it, so without a limit a chain would take time in
/// the square of its length. One read and one write of memory for so many ops cost nothing.
constexpr int64_t kMostFused = 256;

/// The most times that all ops of a kernel are looked at. The examples have no fusion left after
/// two. In a long chain each makes one more possible.
constexpr int64_t kMostRounds = 4;

int64_t countOps(linalg::GenericOp op) { return int64_t(op.getBody()->getOperations().size()) - 1; }

/// Whether it is a cast, or a copy, of at most one operand as large as its result. Each consumer
/// may compute it again, which costs less than a value in memory.
bool isCast(linalg::GenericOp op) {
  auto free = [](Operation &inner) { return isa<arith::ExtFOp, arith::ConstantOp>(inner); };
  auto large = [&](AffineMap map) { return map.getNumResults() == op.getNumLoops(); };
  return llvm::all_of(op.getBody()->without_terminator(), free) &&
         llvm::count_if(ArrayRef(op.getIndexingMapsArray()).drop_back(), large) <= 1;
}

bool shouldFuse(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
  if (!producer || !consumer || producer.getNumParallelLoops() != producer.getNumLoops() ||
      producer.getNumLoops() != consumer.getNumLoops() ||
      countOps(producer) + countOps(consumer) > kMostFused)
    return false;
  if (operand->get().hasOneUse())
    return true;
  // It is in memory anyway if a library call or a slice wants it.
  auto generic = [](Operation *user) { return isa<linalg::GenericOp>(user); };
  return isCast(producer) && llvm::all_of(operand->get().getUsers(), generic);
}

int64_t countGenerics(boa::KernelOp kernel) {
  int64_t count = 0;
  kernel.walk([&](linalg::GenericOp) { ++count; });
  return count;
}

struct FuseKernelElementwise : boa::impl::FuseKernelElementwiseBase<FuseKernelElementwise> {
  void runOnOperation() override {
    boa::KernelOp kernel = getOperation();
    const int64_t before = countGenerics(kernel);
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    GreedyRewriteConfig config;
    config.setMaxIterations(kMostRounds);
    // What the rounds leave is as right without it.
    (void)applyPatternsGreedily(kernel, std::move(patterns), config);
    remark::passed(kernel.getLoc(), boa::kernelRemark("fuse-elementwise"))
        << "in @" << kernel.getSymName() << ": " << remark::metric("before", before)
        << remark::metric("after", countGenerics(kernel));
  }
};

} // namespace
