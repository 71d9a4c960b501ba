//===- ReadAddendsInPlace.cpp - Products read their addend where it is ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes kernels on definite memory, before groups are formed. A residual has other users
// than the product that is added to it. So bufferization copied it to the place of the sum.
// The product may read the source of the copy instead if
//
//   - the product accumulates into exactly the target of the copy;
//   - in between nothing accesses the target, and nothing writes the source;
//   - the two do not overlap, and their strides are equal.
//
// Then the product is the only reader of the copy, and the copy is removed.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/MemoryAccess.h"
#include "passes/target/cuda/CudaPasses.h"

namespace boa {
#define GEN_PASS_DEF_CUDAREADADDENDSINPLACE
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

bool overlap(Value a, Value b) { return getMemoryRoot(a) == getMemoryRoot(b) && mayOverlap(a, b); }

bool hasSameStrides(Value a, Value b) {
  auto x = memrefOf(a), y = memrefOf(b);
  return x.getShape() == y.getShape() && x.getElementType() == y.getElementType() &&
         x.getStridesAndOffset().first == y.getStridesAndOffset().first;
}

/// The product that accumulates into the target of the copy and is its only user; null if there is
/// none.
kernel::GemmOp findProduct(linalg::GenericOp copy) {
  Value from = copy.getInputs()[0], to = copy.getOutputs()[0];
  if (overlap(from, to) || !hasSameStrides(from, to))
    return nullptr;
  for (Operation *op = copy->getNextNode(); op; op = op->getNextNode()) {
    auto product = dyn_cast<kernel::GemmOp>(op);
    if (product && product.getAccumulate() && product.getC() == to &&
        llvm::none_of(product.getDpsInputs(), [&](Value input) { return overlap(input, to); }))
      return product;
    for (const MemoryAccess &access : getMemoryAccesses(op))
      if (overlap(access.memref, to) || (access.write && overlap(access.memref, from)))
        return nullptr;
  }
  return nullptr;
}

struct CudaReadAddendsInPlace : boa::impl::CudaReadAddendsInPlaceBase<CudaReadAddendsInPlace> {
  void runOnOperation() override {
    for (auto copy : llvm::to_vector(getOperation().getBody().front().getOps<linalg::GenericOp>()))
      if (isCopy(copy))
        if (kernel::GemmOp product = findProduct(copy)) {
          product.getAddendMutable().assign(copy.getInputs()[0]);
          product.setAccumulate(false);
          remark::passed(product.getLoc(), kernelRemark("read-addends-in-place"))
              << remark::metric("elements", memrefOf(product.getC()).getNumElements());
          copy.erase();
        }
  }
};

} // namespace
