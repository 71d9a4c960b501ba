//===- PadRows.cpp - Rows of products' temporaries begin at 16 bytes ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes kernels on definite memory, before groups are formed. The least aligned operand
// decides how fast a product loads. Logits of a vocabulary of 50257 in bf16 have rows of an
// odd number of elements: every second row is aligned to two bytes only. The compiler chooses
// the layout of temporaries, so it pads their rows. It refuses nothing. It does not change a
// temporary whose user may need contiguous rows, and no argument of a kernel. Nor does it change
// an addend or a sum apart from it: cuBLASLt's C and D have one stride here, and the other of the
// two may be an argument.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/MemoryAccess.h"
#include "passes/target/cuda/CudaPasses.h"

namespace boa {
#define GEN_PASS_DEF_CUDAPADROWS
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// cuBLASLt's fastest algorithms take rows of a multiple of this number of bytes.
constexpr int64_t kRowBytes = 16;

bool isMatrixOf(Value memref, Operation *op) {
  auto product = dyn_cast<kernel::GemmOp>(op);
  return product && (product.getA() == memref || product.getB() == memref ||
                     product.getC() == memref || product.getAddend() == memref);
}

/// Whether the op takes rows of the memref at whatever distance.
bool takesStrides(Value memref, Operation *op) {
  if (auto product = dyn_cast<kernel::GemmOp>(op))
    return isMatrixOf(memref, op) &&
           (!product.getAddend() || (product.getAddend() != memref && product.getC() != memref));
  return isa<linalg::GenericOp, linalg::FillOp, memref::LoadOp>(op);
}

struct CudaPadRows : boa::impl::CudaPadRowsBase<CudaPadRows> {
  void runOnOperation() override {
    for (auto alloc : llvm::to_vector(getOperation().getBody().front().getOps<memref::AllocOp>()))
      if (int64_t columns = getPadded(alloc)) {
        remark::passed(alloc.getLoc(), kernelRemark("pad-rows"))
            << remark::metric("columns", alloc.getType().getShape().back())
            << remark::metric("padded", columns);
        pad(alloc, columns);
      }
  }

  /// The number of columns that makes its rows multiples of 16 bytes; 0: no padding.
  static int64_t getPadded(memref::AllocOp alloc) {
    MemRefType type = alloc.getType();
    if (type.getRank() < 2 || !type.hasStaticShape() || !type.getLayout().isIdentity())
      return 0;
    const int64_t columns = type.getShape().back(), elements = kRowBytes / getElementBytes(type);
    auto users = alloc->getUsers();
    const bool pays = llvm::any_of(users, [&](Operation *op) { return isMatrixOf(alloc, op); }) &&
                      llvm::all_of(users, [&](Operation *op) { return takesStrides(alloc, op); });
    return pays && columns % elements != 0 ? llvm::alignTo(columns, elements) : 0;
  }

  static void pad(memref::AllocOp alloc, int64_t columns) {
    OpBuilder builder(alloc);
    MemRefType type = alloc.getType();
    SmallVector<int64_t> shape(type.getShape()), zeros(shape.size(), 0), ones(shape.size(), 1);
    SmallVector<int64_t> padded(shape);
    padded.back() = columns;
    auto memory = memref::AllocOp::create(builder, alloc.getLoc(),
                                          MemRefType::get(padded, type.getElementType()),
                                          alloc.getAlignmentAttr());
    auto view = memref::SubViewOp::create(builder, alloc.getLoc(), memory, zeros, shape, ones);
    alloc.replaceAllUsesWith(view.getResult());
    alloc.erase();
  }
};

} // namespace
