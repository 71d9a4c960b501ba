//===- SplitProducts.cpp - Odd sizes of products apart from the rest ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes products on definite memory, after rows are padded. Rows that begin at 16 bytes are not
// enough for cuBLASLt: it takes a slow kernel where the size of a row is no multiple of 16 bytes.
// On an H200 the products of a vocabulary of 50257 reach 100 TFLOP/s of 800. So a product becomes
// two: one of the largest multiple, and one of the few rows or columns that remain.
//
// Splitting the results changes no sum. Splitting the sums (k) adds the few first, then the rest to
// them. The pass refuses that where the result in bf16 would round what was there before once more.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/MemoryAccess.h"
#include "passes/target/cuda/CudaPasses.h"

namespace boa {
#define GEN_PASS_DEF_CUDASPLITPRODUCTS
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// cuBLASLt's fastest kernels take rows of a multiple of this number of bytes.
constexpr int64_t kRowBytes = 16;
/// The number of multiplications from which a second launch costs less than a slow kernel loses.
constexpr int64_t kLeast = int64_t(1) << 28;

/// The three sizes of a product: c is [m, n], the sum is over k.
enum class Size { m, n, k };

/// An operand, with its dimensions outside and inside as sizes of the product.
struct Matrix {
  Value memref;
  Size rows, columns;
};

SmallVector<Matrix, 4> getMatrices(kernel::GemmOp product) {
  const bool a = product.getTransposeA(), b = product.getTransposeB();
  SmallVector<Matrix, 4> matrices = {{product.getA(), a ? Size::k : Size::m, a ? Size::m : Size::k},
                                     {product.getB(), b ? Size::n : Size::k, b ? Size::k : Size::n},
                                     {product.getC(), Size::m, Size::n}};
  if (Value addend = product.getAddend())
    matrices.push_back({addend, Size::m, Size::n});
  return matrices;
}

int64_t getRows(MemRefType type) { return ShapedType::getNumElements(type.getShape().drop_back()); }

/// The rows or columns from `begin` on.
Value slice(OpBuilder &builder, Value memref, bool columns, int64_t begin, int64_t size) {
  MemRefType type = memrefOf(memref);
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)),
      sizes = getAsIndexOpFoldResult(builder.getContext(), type.getShape()),
      ones(type.getRank(), builder.getIndexAttr(1));
  const size_t dim = columns ? type.getRank() - 1 : 0;
  offsets[dim] = builder.getIndexAttr(begin);
  sizes[dim] = builder.getIndexAttr(size);
  return memref::SubViewOp::create(builder, memref.getLoc(), memref, offsets, sizes, ones);
}

struct CudaSplitProducts : boa::impl::CudaSplitProductsBase<CudaSplitProducts> {
  void runOnOperation() override {
    for (Size size : {Size::n, Size::k, Size::m})
      getOperation().walk([&](kernel::GemmOp product) {
        if (int64_t many = getMany(product, size))
          split(product, size, many);
      });
  }

  /// The largest part of this size that makes whole 16 bytes, if a product of that size is faster;
  /// otherwise 0.
  static int64_t getMany(kernel::GemmOp product, Size size) {
    int64_t all = 0, elements = 1;
    MemRefType a = memrefOf(product.getA()), c = memrefOf(product.getC());
    // Products in f32 have no such kernels.
    if (!a.getElementType().isBF16())
      return 0;
    for (const Matrix &matrix : getMatrices(product)) {
      MemRefType type = memrefOf(matrix.memref);
      if (matrix.rows == size && type.getRank() != 2)
        return 0;
      if (matrix.columns != size)
        continue;
      // With rows that begin anywhere, it stays slow.
      const int64_t whole = kRowBytes / getElementBytes(type);
      if (type.getStridesAndOffset().first[type.getRank() - 2] % whole != 0)
        return 0;
      all = type.getShape().back();
      elements = std::max(elements, whole);
    }
    if (all % elements == 0 || all < elements)
      return 0;
    const int64_t sum = product.getTransposeA() ? getRows(a) : a.getShape().back();
    if (getRows(c) * c.getShape().back() < kLeast / sum)
      return 0;
    const bool adds = product.getAccumulate() || product.getAddend() || product.getBias();
    if (size == Size::k && adds && c.getElementType().isBF16())
      return 0;
    return all - all % elements;
  }

  static void split(kernel::GemmOp product, Size size, int64_t many) {
    OpBuilder builder(product);
    int64_t all = 0;
    for (const Matrix &matrix : getMatrices(product))
      if (matrix.columns == size)
        all = memrefOf(matrix.memref).getShape().back();
    auto part = [&](int64_t begin, int64_t count) {
      IRMapping mapping;
      for (const Matrix &matrix : getMatrices(product))
        if (matrix.rows == size || matrix.columns == size)
          mapping.map(matrix.memref,
                      slice(builder, matrix.memref, matrix.columns == size, begin, count));
      if (Value bias = product.getBias(); bias && size == Size::n)
        mapping.map(bias, slice(builder, bias, /*columns=*/true, begin, count));
      return cast<kernel::GemmOp>(builder.clone(*product, mapping));
    };
    remark::passed(product.getLoc(), kernelRemark("split-products"))
        << remark::metric("columns", all) << remark::metric("aligned", many);
    part(many, all - many);
    kernel::GemmOp rest = part(0, many);
    // The first part has added all else to its sums.
    if (size == Size::k) {
      rest.getBiasMutable().clear();
      rest.getAddendMutable().clear();
      rest.setAccumulate(true);
    }
    product.erase();
  }
};

} // namespace
