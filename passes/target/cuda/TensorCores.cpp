//===- TensorCores.cpp ----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/target/cuda/TensorCores.h"

#include "passes/kernels/KernelDialect.h"
#include "passes/kernels/MemoryAccess.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace boa;

bool boa::hasAlignedRows(Value memref) {
  auto type = memrefOf(memref);
  auto [strides, offset] = type.getStridesAndOffset();
  const int64_t element = getElementBytes(type);
  Value root = getMemoryRoot(memref);
  auto view = root.getDefiningOp<kernel::ViewOp>();
  const int64_t begin = view ? static_cast<int64_t>(view.getOffset()) : 0;
  auto isWhole = [&](int64_t elements) { return elements * element % kChunkBytes == 0; };
  return (view || root.getDefiningOp<memref::AllocOp>()) && strides.back() == 1 &&
         llvm::all_of(ArrayRef(strides).drop_back(), isWhole) && begin % kChunkBytes == 0 &&
         isWhole(offset);
}

void boa::copyChunk(ThreadBuilder &b, Value from, ValueRange at, Value to, ValueRange where,
                    Value count) {
  const int64_t elements = kChunkBytes / getElementBytes(memrefOf(from));
  nvgpu::DeviceAsyncCopyOp::create(b, nvgpu::DeviceAsyncTokenType::get(b.getContext()), to, where,
                                   from, at, b.getIndexAttr(elements), count,
                                   /*bypassL1=*/b.getUnitAttr());
}

Value boa::endCopies(ThreadBuilder &b) {
  auto token = nvgpu::DeviceAsyncTokenType::get(b.getContext());
  return nvgpu::DeviceAsyncCreateGroupOp::create(b, token, ValueRange()).getAsyncToken();
}

void boa::waitForCopies(ThreadBuilder &b, Value group, int32_t latest) {
  nvgpu::DeviceAsyncWaitOp::create(b, group, b.getI32IntegerAttr(latest));
}

static Value asRegister(ThreadBuilder &b, Value pair) {
  Value word = b.make<vector::BitCastOp>(VectorType::get({1}, b.getI32Type()), pair);
  return b.make<vector::ExtractOp>(word, 0);
}

SmallVector<Value> boa::loadMatrices(ThreadBuilder &b, Value lane, const SharedOperand &operand,
                                     Value side, Value deep, bool isFirst) {
  // Each lane has the address of a row of eight elements in memory.
  Value second = b.rem(b.div(lane, 8), 2), last = b.div(lane, 16), inMatrix = b.rem(lane, 8);
  Value alongSide = b.mul(isFirst ? second : last, 8), alongSum = b.mul(isFirst ? last : second, 8);
  Value &along = operand.isDeep ? alongSum : alongSide;
  along = b.add(along, inMatrix);
  auto at = operand.find(b.add(side, alongSide), b.add(alongSum, deep));
  Value matrices =
      nvgpu::LdMatrixOp::create(b, VectorType::get({4, 2}, b.getBF16Type()), operand.memory, at,
                                /*transpose=*/operand.isDeep, /*numTiles=*/4);
  SmallVector<Value> parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(asRegister(b, b.make<vector::ExtractOp>(matrices, i)));
  return parts;
}

void boa::multiplyTile(ThreadBuilder &b, ValueRange x, ValueRange y, MutableArrayRef<Value> sums) {
  SmallVector<Type> types(kTilePart, b.getF32Type());
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  constexpr auto bf16 = NVVM::MMATypes::bf16;
  Value result = NVVM::MmaOp::create(
      b, type, x, y, sums, ArrayRef<int64_t>{kTileRows, kTileColumns, kTileDepth}, std::nullopt,
      std::nullopt, std::array{bf16, bf16}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (int64_t i = 0; i < kTilePart; ++i)
    sums[i] = LLVM::ExtractValueOp::create(b, result, i);
}

Value boa::packPair(ThreadBuilder &b, Value first, Value second) {
  Type element = b.getBF16Type();
  auto narrow = [&](Value value) {
    return value.getType() == element ? value : b.make<arith::TruncFOp>(element, value);
  };
  Value pair = vector::FromElementsOp::create(b, VectorType::get({2}, element),
                                              ValueRange{narrow(first), narrow(second)});
  return asRegister(b, pair);
}
