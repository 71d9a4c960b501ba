//===- EmitGroups.cpp - Groups to launches of threads ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass, and what rows and columns share. Assumes groups as the verifier lets
// them be: static, independent in their parts. Refuses sums that it does not know
// how to put together from parts.
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/EmitGroups.h"
#include "passes/target/cuda/CudaPasses.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/GPU/Utils/GPUUtils.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/Support/MathExtras.h"

namespace boa {
#define GEN_PASS_DEF_CUDAEMITGROUPS
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {
constexpr int64_t kVectorBytes = 16;
} // namespace

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

int64_t boa::getVectorSize(ArrayRef<MemRefType> types, int64_t extent) {
  SmallVector<int64_t> multiples{extent};
  int64_t widest = kVectorBytes;
  for (MemRefType type : types) {
    auto [strides, offset] = type.getStridesAndOffset();
    if (strides.back() != 1)
      continue;
    int64_t bytes = getElementBytes(type);
    widest = multiples.size() == 1 ? bytes : std::max(widest, bytes);
    llvm::append_range(multiples, ArrayRef(strides).drop_back());
    multiples.push_back(offset);
  }
  int64_t size = kVectorBytes / widest;
  auto isOff = [&](int64_t m) { return ShapedType::isDynamic(m) || m % size != 0; };
  while (size > 1 && llvm::any_of(multiples, isOff))
    size /= 2;
  return size;
}

int64_t boa::getVectorSize(linalg::LinalgOp op) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  AffineExpr last = getAffineDimExpr(extents.size() - 1, op.getContext());
  SmallVector<MemRefType> types;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (type && map.getNumResults() > 0 && map.getResults().back() == last)
      types.push_back(type);
  }
  return getVectorSize(types, extents.back());
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

FailureOr<Combiner> Combiner::get(linalg::LinalgOp op, unsigned result) {
  SmallVector<Operation *> combiners;
  ArrayRef<BlockArgument> results = op.getRegionOutputArgs();
  if (!matchReduction(results, result, combiners) || combiners.size() != 1 ||
      combiners[0]->getNumOperands() != 2 || !arith::getNeutralElement(combiners[0]))
    return op->emitOpError("expected a sum, or another reduction that can combine partial results");
  Combiner combiner{combiners[0], combiners[0]->getOperand(0) == results[result] ? 0u : 1u};
  if (combiner.getType().getIntOrFloatBitWidth() != 32)
    return op->emitOpError("expected a sum of 32 bits but found ") << combiner.getType();
  return combiner;
}

Value Combiner::getNeutral(ThreadBuilder &builder) const {
  return arith::ConstantOp::create(builder, *arith::getNeutralElement(op));
}

Value Combiner::combine(ThreadBuilder &builder, Value sum, Value value) const {
  Operation *combined = builder.clone(*op);
  combined->setOperand(position, sum);
  combined->setOperand(1 - position, value);
  return combined->getResult(0);
}

Value Combiner::combineAll(ThreadBuilder &builder, ArrayRef<Value> values) const {
  if (values.size() == 1)
    return values[0];
  unsigned half = values.size() / 2;
  return combine(builder, combineAll(builder, values.take_front(half)),
                 combineAll(builder, values.drop_front(half)));
}

Value Combiner::combineLanes(ThreadBuilder &builder, Value value, int64_t least,
                             int64_t end) const {
  return builder.combineLanes(value, least, end,
                              [&](Value a, Value b) { return combine(builder, a, b); });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

/// Joins groups of one part that follow one another: a launch costs more than their computation.
void joinWholes(Block &block) {
  kernel::GroupOp last;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isMemoryOp(&op))
      continue;
    auto group = dyn_cast<kernel::GroupOp>(op);
    if (group && !(group.getAxis() == kernel::GroupAxis::Rows && group.getSpace().empty()))
      group = nullptr;
    if (group && last) {
      SmallVector<GroupMember> members = getMembers(last);
      llvm::append_range(members, getMembers(group));
      if (!findFault({kernel::GroupAxis::Rows, {}}, members)) {
        hoistMemory(group, last);
        Block &into = last.getBodyRegion().front();
        into.getOperations().splice(into.end(), group.getBodyRegion().front().getOperations());
        remark::passed(group.getLoc(), kernelRemark("emit-groups"))
            << "joined with the group before it";
        group.erase();
        continue;
      }
    }
    last = group;
  }
}

struct CudaEmitGroups : boa::impl::CudaEmitGroupsBase<CudaEmitGroups> {
  void runOnOperation() override {
    KernelOp func = getOperation();
    joinWholes(func.getBody().front());
    OpBuilder builder(func);
    for (auto group : llvm::to_vector(func.getBody().front().getOps<kernel::GroupOp>())) {
      const auto [members, memory] = takeApart(group);
      builder.setInsertionPoint(group);
      bool columns = group.getAxis() == kernel::GroupAxis::Columns;
      if (failed(columns ? emitColumns(builder, members)
                         : emitRows(builder, group.getSpace(), members, memory)))
        return signalPassFailure();
      group.erase();
      for (Operation *op : llvm::reverse(memory))
        if (isOpTriviallyDead(op))
          op->erase();
    }
    func.walk([](gpu::LaunchOp launch) {
      (void)sinkOperationsIntoLaunchOp(
          launch, [](Operation *op) { return op->hasTrait<OpTrait::ConstantLike>(); });
    });
  }
};

} // namespace
