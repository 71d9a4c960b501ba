//===- BufferizeKernels.cpp - One-shot bufferization of kernels -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes kernels bound by --kernel-bind-arguments. Before upstream's analysis,
// the parts of a concatenation that one op computes together are given slices of
// the whole as their destinations: empty-tensor elimination takes one part at a
// time and cannot see that they are disjoint.
//
//===----------------------------------------------------------------------===//

#include "passes/KernelPasses.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"

namespace boa {
#define GEN_PASS_DEF_BUFFERIZEKERNELS
#include "passes/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;

namespace {

/// Gives every use of a tensor.empty or linalg.fill its own: shared ones would
/// be one buffer with a long life, copied at each use.
void unshareInits(RewriterBase &rewriter, func::FuncOp func) {
  auto unshare = [&](Operation *op) {
    Value value = op->getResult(0);
    for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(value.getUses()))) {
      rewriter.setInsertionPoint(use.getOwner());
      Operation *copy = rewriter.clone(*op);
      rewriter.modifyOpInPlace(use.getOwner(), [&] { use.set(copy->getResult(0)); });
    }
  };
  SmallVector<Operation *> fills, empties;
  func.walk([&](linalg::FillOp op) { fills.push_back(op); });
  for (Operation *op : fills)
    unshare(op);
  func.walk([&](tensor::EmptyOp op) { empties.push_back(op); });
  for (Operation *op : empties)
    unshare(op);
}

/// The op that computes `value` into a fresh tensor, and the operand that is it.
OpOperand *getFreshInit(Value value) {
  auto producer = value.getDefiningOp<DestinationStyleOpInterface>();
  if (!producer || !value.hasOneUse())
    return nullptr;
  OpOperand *init = producer.getTiedOpOperand(cast<OpResult>(value));
  auto empty = init->get().getDefiningOp<tensor::EmptyOp>();
  return empty ? init : nullptr;
}

/// Has all parts of the concatenation that ends in `last` computed in slices of
/// it. The chain of insertions starts from a tensor.empty.
void computePartsInPlace(RewriterBase &rewriter, tensor::InsertSliceOp last) {
  SmallVector<tensor::InsertSliceOp> chain{last};
  while (auto before =
             chain.back().getDest().getDefiningOp<tensor::InsertSliceOp>()) {
    if (!before->hasOneUse())
      return;
    chain.push_back(before);
  }
  auto whole = chain.back().getDest().getDefiningOp<tensor::EmptyOp>();
  if (!whole || chain.size() < 2)
    return;
  Block *block = last->getBlock();
  rewriter.moveOpBefore(whole, block, block->begin());
  for (tensor::InsertSliceOp insert : chain) {
    OpOperand *init = getFreshInit(insert.getSource());
    if (!init || init->getOwner()->getBlock() != block)
      continue;
    rewriter.setInsertionPoint(init->getOwner());
    auto slice = tensor::ExtractSliceOp::create(
        rewriter, insert.getLoc(), insert.getSourceType(), whole,
        insert.getMixedOffsets(), insert.getMixedSizes(),
        insert.getMixedStrides());
    rewriter.modifyOpInPlace(init->getOwner(), [&] { init->set(slice); });
  }
}

struct BufferizeKernels : boa::impl::BufferizeKernelsBase<BufferizeKernels> {
  void runOnOperation() override {
    bufferization::OneShotBufferizationOptions options;
    options.memCpyFn = [](OpBuilder &builder, Location loc, Value from,
                          Value to) {
      // An accumulator is its own destination.
      if (from != to)
        linalg::makeMemRefCopyOp(builder, loc, from, to);
      return success();
    };
    IRRewriter rewriter(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!func->hasAttr(boa::kKernelAttr))
        continue;
      unshareInits(rewriter, func);
      SmallVector<tensor::InsertSliceOp> ends;
      func.walk([&](tensor::InsertSliceOp op) {
        if (llvm::none_of(op->getUsers(), llvm::IsaPred<tensor::InsertSliceOp>))
          ends.push_back(op);
      });
      for (tensor::InsertSliceOp op : ends)
        computePartsInPlace(rewriter, op);
      bufferization::BufferizationState state;
      if (failed(bufferization::eliminateEmptyTensors(rewriter, func)) ||
          failed(bufferization::runOneShotBufferize(func, options, state)))
        return signalPassFailure();
    }
  }
};

} // namespace
