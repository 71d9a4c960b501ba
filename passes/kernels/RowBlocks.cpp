//===- RowBlocks.cpp - Blocks of the rows of a tensor ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/kernels/RowBlocks.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace boa;

/// The number of rows of which products are fastest at multiples.
static constexpr int64_t kRowMultiple = 16;

RankedTensorType RowBlock::getType(RankedTensorType whole) const {
  SmallVector<int64_t> shape(sizes);
  llvm::append_range(shape, whole.getShape().drop_front(sizes.size()));
  return RankedTensorType::get(shape, whole.getElementType());
}

/// The offsets, sizes and strides of the rows in a tensor.
std::tuple<RowBlock::Numbers, RowBlock::Numbers, RowBlock::Numbers>
RowBlock::getSlice(OpBuilder &builder, Value whole) const {
  RankedTensorType part = getType(tensorOf(whole));
  SmallVector<int64_t> at(offsets), strides(part.getRank(), 1);
  at.resize(part.getRank(), 0);
  MLIRContext *context = builder.getContext();
  return {getAsIndexOpFoldResult(context, at), getAsIndexOpFoldResult(context, part.getShape()),
          getAsIndexOpFoldResult(context, strides)};
}

Value RowBlock::extract(OpBuilder &builder, Location loc, Value whole) const {
  auto [at, shape, strides] = getSlice(builder, whole);
  return tensor::ExtractSliceOp::create(builder, loc, whole, at, shape, strides);
}

Value RowBlock::insert(OpBuilder &builder, Location loc, Value part, Value whole) const {
  auto [at, shape, strides] = getSlice(builder, whole);
  return tensor::InsertSliceOp::create(builder, loc, part, whole, at, shape, strides);
}

/// The sizes of the parts of one dimension. All but the last are equal, and a multiple that suits
/// products. If the last would be too small, the sizes differ by one at most.
static SmallVector<int64_t> cutDimension(int64_t extent, const RowLimits &limits) {
  const int64_t parts = std::max<int64_t>(std::min({int64_t(llvm::divideCeil(extent, limits.most)),
                                                    extent / limits.least, limits.count}),
                                          1);
  const int64_t even = llvm::divideCeil(extent, parts);
  const int64_t step =
      std::min<int64_t>(std::max(limits.most, even), llvm::alignTo(even, kRowMultiple));
  SmallVector<int64_t> sizes(extent / step, step);
  if (int64_t last = extent % step)
    sizes.push_back(last);
  if (sizes.back() < limits.least) {
    sizes.assign(parts, extent / parts);
    for (int64_t i = 0; i < extent % parts; ++i)
      ++sizes[i];
  }
  return sizes;
}

SmallVector<RowBlock> boa::divideRows(ArrayRef<int64_t> rows, const RowLimits &limits) {
  unsigned cut = rows.size() - 1;
  int64_t inner = 1;
  while (cut > 0 && inner * rows[cut] <= limits.most)
    inner *= rows[cut--];
  const int64_t outer = llvm::product_of(rows.take_front(cut));
  const SmallVector<int64_t> sizes = cutDimension(
      rows[cut], {std::max<int64_t>(limits.most / inner, 1),
                  int64_t(llvm::divideCeil(limits.least, inner)), limits.count / outer});

  SmallVector<RowBlock> blocks;
  for (int64_t o = 0; o < outer; ++o) {
    int64_t at = 0;
    for (int64_t size : sizes) {
      RowBlock block{SmallVector<int64_t>(rows.size(), 0), SmallVector<int64_t>(rows)};
      for (int64_t i = cut, rest = o; i-- > 0; rest /= rows[i]) {
        block.offsets[i] = rest % rows[i];
        block.sizes[i] = 1;
      }
      block.offsets[cut] = at;
      block.sizes[cut] = size;
      at += size;
      blocks.push_back(std::move(block));
    }
  }
  return blocks;
}
