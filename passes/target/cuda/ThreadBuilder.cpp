//===- ThreadBuilder.cpp - The code of a thread ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/ThreadBuilder.h"

#include "mlir/Dialect/Affine/Utils.h"

using namespace mlir;
using namespace boa;

Value ThreadBuilder::load(Value memref, ValueRange at) {
  return memref::LoadOp::create(*this, memref, at);
}
Value ThreadBuilder::load(Value memref, AffineMap map, ValueRange ivs) {
  return load(memref, *affine::expandAffineMap(*this, getLoc(), map, ivs));
}

void ThreadBuilder::store(Value value, Value memref, ValueRange at) {
  memref::StoreOp::create(*this, value, memref, at);
}
void ThreadBuilder::store(Value value, Value memref, AffineMap map, ValueRange ivs) {
  store(value, memref, *affine::expandAffineMap(*this, getLoc(), map, ivs));
}

void ThreadBuilder::barrier() { gpu::BarrierOp::create(*this); }

Value ThreadBuilder::shuffle(gpu::ShuffleMode mode, Value value, int64_t offset) {
  return gpu::ShuffleOp::create(*this, value, offset, kWarpLanes, mode).getShuffleResult();
}
Value ThreadBuilder::shuffle(gpu::ShuffleMode mode, Value value, Value offset) {
  return gpu::ShuffleOp::create(*this, value, offset, integer(kWarpLanes), mode).getShuffleResult();
}

Value ThreadBuilder::combineLanes(Value value, int64_t least, int64_t end,
                                  function_ref<Value(Value, Value)> combine) {
  for (int64_t bit = end / 2; bit >= least; bit /= 2)
    value = combine(value, shuffle(gpu::ShuffleMode::XOR, value, bit));
  return value;
}

gpu::LaunchOp boa::createLaunch(ThreadBuilder &builder, std::array<int64_t, 3> grid, int64_t x,
                                int64_t y) {
  auto launch = gpu::LaunchOp::create(builder, builder.index(grid[0]), builder.index(grid[1]),
                                      builder.index(grid[2]), builder.index(x), builder.index(y),
                                      builder.index(1));
  builder.setInsertionPointToEnd(&launch.getBody().front());
  builder.setInsertionPoint(gpu::TerminatorOp::create(builder));
  return launch;
}

/// The alignment of shared memory, in bytes: the widest access.
static constexpr int64_t kSharedAlignment = 16;

gpu::GPUFuncOp boa::createDeviceFunction(OpBuilder &builder, Location loc, const Twine &name,
                                         ArrayRef<DeviceArgument> arguments, ArrayRef<Type> shared,
                                         ArrayRef<int64_t> grid, ArrayRef<int64_t> block) {
  SmallVector<Type> inputs =
      llvm::map_to_vector(arguments, [](const DeviceArgument &argument) { return argument.type; });
  auto func =
      gpu::GPUFuncOp::create(builder, loc, name.str(), builder.getFunctionType(inputs, {}), shared);
  func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  auto narrow = [&](ArrayRef<int64_t> values) {
    return builder.getDenseI32ArrayAttr(SmallVector<int32_t>(values.begin(), values.end()));
  };
  if (!grid.empty())
    func.setKnownGridSizeAttr(narrow(grid));
  func.setKnownBlockSizeAttr(narrow(block));
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (argument.isApart)
      func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    func.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                    builder.getI64IntegerAttr(argument.alignment));
  }
  for (unsigned i = 0; i < shared.size(); ++i)
    func.setWorkgroupAttributionAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                                     builder.getI64IntegerAttr(kSharedAlignment));
  return func;
}

MemRefType boa::getWorkgroupType(ArrayRef<int64_t> shape, Type element) {
  auto space = gpu::AddressSpaceAttr::get(element.getContext(), gpu::AddressSpace::Workgroup);
  return MemRefType::get(shape, element, MemRefLayoutAttrInterface(), space);
}

Value boa::addWorkgroupMemory(gpu::LaunchOp launch, ArrayRef<int64_t> shape, Type element) {
  return launch.addWorkgroupAttribution(getWorkgroupType(shape, element), launch.getLoc());
}
