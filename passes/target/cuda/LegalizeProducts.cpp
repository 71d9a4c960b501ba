//===- LegalizeProducts.cpp - Products as cuBLASLt takes them -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes kernels on definite memory, before groups are formed. What is widened is a
// weight, and memory for all of them at once would be as large as the model: it is kept
// for the next product, as those of a head in blocks of rows are, until another is widened
// or it is written. Weights in bf16 have their biases in bf16, so that
// rounding one gives back what was stored.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/MemoryAccess.h"
#include "passes/target/cuda/CudaPasses.h"
#include "runtime/abi/cuda_calls.h"

namespace boa {
#define GEN_PASS_DEF_CUDALEGALIZEPRODUCTS
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// A temporary of that element type with the same values.
Value convert(OpBuilder &builder, Location loc, Value memref, Type element) {
  MemRefType type = memrefOf(memref);
  unsigned rank = type.getRank();
  Value result = memref::AllocOp::create(builder, loc, MemRefType::get(type.getShape(), element));
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  linalg::GenericOp::create(
      builder, loc, memref, result, maps, iterators,
      [&](OpBuilder &inner, Location at, ValueRange elements) {
        Value value = elements[0];
        value = element.isBF16() ? arith::TruncFOp::create(inner, at, element, value).getResult()
                                 : arith::ExtFOp::create(inner, at, element, value).getResult();
        linalg::YieldOp::create(inner, at, value);
      });
  return result;
}

struct CudaLegalizeProducts : boa::impl::CudaLegalizeProductsBase<CudaLegalizeProducts> {
  void runOnOperation() override {
    Widened last;
    for (Operation &op : getOperation().getBody().front()) {
      if (auto product = dyn_cast<kernel::GemmOp>(op))
        legalize(product, last);
      for (const MemoryAccess &access : getMemoryAccesses(&op))
        if (last.narrow && access.write && access.root == getMemoryRoot(last.narrow))
          last = Widened();
    }
  }

  /// The operand that was last widened for a product.
  struct Widened {
    Value narrow, wide;
  };

  static void legalize(kernel::GemmOp product, Widened &last) {
    OpBuilder builder(product);
    Location loc = product.getLoc();
    bool narrowA = memrefOf(product.getA()).getElementType().isBF16();
    bool narrowB = memrefOf(product.getB()).getElementType().isBF16();
    if (narrowA != narrowB) {
      OpOperand &narrow = narrowA ? product.getAMutable() : product.getBMutable();
      if (narrow.get() == last.narrow)
        remark::passed(loc, kernelRemark("legalize-products"))
            << "reads an operand that an earlier product widened";
      else
        last = {narrow.get(), convert(builder, loc, narrow.get(), builder.getF32Type())};
      narrow.set(last.wide);
    }
    Type element = memrefOf(product.getC()).getElementType();
    Value bias = product.getBias();
    if (bias && element.isBF16() && !memrefOf(bias).getElementType().isBF16())
      product.getBiasMutable().assign(convert(builder, loc, bias, element));
    auto scratch = MemRefType::get({BOA_CUDA_LIBRARY_WORKSPACE}, builder.getI8Type());
    product.getScratchMutable().assign(memref::AllocOp::create(
        builder, loc, scratch, builder.getI64IntegerAttr(BOA_CUDA_LIBRARY_ALIGNMENT)));
  }
};

} // namespace
