//===- MemoryAccess.cpp - What kernel ops touch ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Different roots are taken to be disjoint: allocations are, and so are the
// places of a kernel's arguments, apart from an accumulator and its result,
// which are one view.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/MemoryAccess.h"
#include "passes/kernels/KernelPasses.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace {
/// The memref that a view op is a view of.
Value getViewed(Value memref) {
  auto view = memref.getDefiningOp<ViewLikeOpInterface>();
  return view ? view.getViewSource() : nullptr;
}
} // namespace

int64_t boa::getElementBytes(ShapedType type) {
  return llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

Value boa::getMemoryRoot(Value memref) {
  while (Value viewed = getViewed(memref))
    memref = viewed;
  return memref;
}

bool boa::isMemoryOp(Operation *op) {
  return isa<ViewLikeOpInterface, memref::AllocOp, memref::GetGlobalOp, kernel::ViewOp,
             kernel::ArgumentOp, arith::ConstantOp>(op);
}

bool boa::isCopy(linalg::GenericOp op) {
  if (op.getInputs().size() != 1 || op.getOutputs().size() != 1)
    return false;
  Block *body = op.getBody();
  return llvm::hasSingleElement(*body) &&
         body->getTerminator()->getOperand(0) == body->getArgument(0) &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); });
}

void boa::hoistMemory(Operation *op, Operation *point) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (!definition || definition->getBlock() != point->getBlock() ||
          definition->isBeforeInBlock(point) || !isMemoryOp(definition))
        continue;
      hoistMemory(definition, point);
      definition->moveBefore(point);
    }
  });
}

bool boa::mayOverlap(Value a, Value b) {
  auto x = a.getDefiningOp<memref::SubViewOp>();
  auto y = b.getDefiningOp<memref::SubViewOp>();
  if (!x || !y || x.getSource() != y.getSource())
    return true;
  for (auto [dim, extent] : llvm::enumerate(x.getSourceType().getShape())) {
    if (x.getStaticStrides()[dim] != 1 || y.getStaticStrides()[dim] != 1)
      return true;
    int64_t from = x.getStaticOffsets()[dim], other = y.getStaticOffsets()[dim];
    if (from + x.getStaticSizes()[dim] <= other || other + y.getStaticSizes()[dim] <= from)
      return false;
  }
  return true;
}

bool boa::keepsLeadingDims(Value memref, unsigned rows) {
  for (; Value viewed = getViewed(memref); memref = viewed) {
    Operation *op = memref.getDefiningOp();
    if (auto view = dyn_cast<memref::SubViewOp>(op)) {
      llvm::SmallBitVector dropped = view.getDroppedDims();
      ArrayRef<int64_t> shape = view.getSourceType().getShape();
      for (unsigned i = 0; i < rows; ++i)
        if (dropped.test(i) || view.getStaticOffsets()[i] != 0 ||
            view.getStaticSizes()[i] != shape[i] || view.getStaticStrides()[i] != 1)
          return false;
      continue;
    }
    SmallVector<ReassociationIndices> groups;
    if (auto view = dyn_cast<memref::ExpandShapeOp>(op))
      groups = view.getReassociationIndices();
    else if (auto view = dyn_cast<memref::CollapseShapeOp>(op))
      groups = view.getReassociationIndices();
    else if (isa<memref::CastOp>(op))
      continue;
    for (unsigned i = 0; i < rows; ++i)
      if (i >= groups.size() || groups[i].size() != 1)
        return false;
  }
  return true;
}

bool boa::MemoryAccess::isByRow(unsigned rows) const {
  if (!map || map.getNumResults() < rows || !keepsLeadingDims(memref, rows))
    return false;
  for (auto [i, result] : llvm::enumerate(map.getResults())) {
    if (i < rows) {
      if (result != getAffineDimExpr(i, map.getContext()))
        return false;
      continue;
    }
    for (unsigned d = 0; d < rows; ++d)
      if (result.isFunctionOfDim(d))
        return false;
  }
  return true;
}

SmallVector<boa::MemoryAccess> boa::getMemoryAccesses(Operation *op) {
  SmallVector<MemoryAccess> accesses;
  auto add = [&](Value memref, bool write, AffineMap map = AffineMap()) {
    if (isa<MemRefType>(memref.getType()))
      accesses.push_back({memref, getMemoryRoot(memref), write, map});
  };
  op->walk([&](Operation *inner) {
    if (auto load = dyn_cast<memref::LoadOp>(inner)) {
      add(load.getMemRef(), false);
    } else if (auto store = dyn_cast<memref::StoreOp>(inner)) {
      add(store.getMemRef(), true);
    } else if (auto generic = dyn_cast<linalg::LinalgOp>(inner)) {
      for (OpOperand &operand : inner->getOpOperands())
        add(operand.get(), generic.isDpsInit(&operand), generic.getMatchingIndexingMap(&operand));
    } else if (auto library = dyn_cast<DestinationStyleOpInterface>(inner)) {
      for (OpOperand &operand : inner->getOpOperands())
        add(operand.get(), library.isDpsInit(&operand));
    } else if (isa<kernel::OfferAttentionOp, kernel::OfferAttentionGradOp>(inner)) {
      for (Value operand : inner->getOperands())
        add(operand, /*write=*/true);
    } else if (auto described = dyn_cast<MemoryEffectOpInterface>(inner)) {
      SmallVector<MemoryEffects::EffectInstance> effects;
      described.getEffects(effects);
      for (const MemoryEffects::EffectInstance &effect : effects)
        if (effect.getValue() && isa<MemoryEffects::Read, MemoryEffects::Write>(effect.getEffect()))
          add(effect.getValue(), isa<MemoryEffects::Write>(effect.getEffect()));
    }
  });
  return accesses;
}

bool boa::mayConflict(ArrayRef<MemoryAccess> a, ArrayRef<MemoryAccess> b) {
  for (const MemoryAccess &x : a)
    for (const MemoryAccess &y : b)
      if (mayConflict(x, y))
        return true;
  return false;
}
