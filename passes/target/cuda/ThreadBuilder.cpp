//===- ThreadBuilder.cpp - The code of a thread ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/ThreadBuilder.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace boa;

Value ThreadBuilder::index(int64_t value) { return make<arith::ConstantIndexOp>(value); }
Value ThreadBuilder::integer(int32_t value) {
  return make<arith::ConstantOp>(getI32IntegerAttr(value));
}
Value ThreadBuilder::add(Value a, Value b) { return make<arith::AddIOp>(a, b); }
Value ThreadBuilder::mul(Value a, int64_t b) { return make<arith::MulIOp>(a, index(b)); }
Value ThreadBuilder::div(Value a, int64_t b) { return make<arith::DivUIOp>(a, index(b)); }
Value ThreadBuilder::rem(Value a, int64_t b) { return make<arith::RemUIOp>(a, index(b)); }
Value ThreadBuilder::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  return make<arith::CmpIOp>(predicate, a, b);
}
Value ThreadBuilder::isLess(Value a, int64_t b) {
  return compare(arith::CmpIPredicate::ult, a, index(b));
}
Value ThreadBuilder::isZero(Value a) { return compare(arith::CmpIPredicate::eq, a, index(0)); }
Value ThreadBuilder::both(Value a, Value b) { return make<arith::AndIOp>(a, b); }
Value ThreadBuilder::least(Value a, int64_t b) { return make<arith::MinUIOp>(a, index(b)); }
Value ThreadBuilder::select(Value condition, Value yes, Value no) {
  return make<arith::SelectOp>(condition, yes, no);
}

Value ThreadBuilder::number(double value) {
  return make<arith::ConstantOp>(getF32FloatAttr(static_cast<float>(value)));
}
Value ThreadBuilder::addf(Value a, Value b) { return make<arith::AddFOp>(a, b); }
Value ThreadBuilder::subf(Value a, Value b) { return make<arith::SubFOp>(a, b); }
Value ThreadBuilder::mulf(Value a, Value b) { return make<arith::MulFOp>(a, b); }
Value ThreadBuilder::fma(Value a, Value b, Value c) { return make<math::FmaOp>(a, b, c); }

SmallVector<Value> ThreadBuilder::delinearize(Value linear, ArrayRef<int64_t> extents) {
  SmallVector<Value> result(extents.size());
  for (unsigned i = extents.size(); i-- > 1;) {
    Value extent = index(extents[i]);
    result[i] = make<arith::RemUIOp>(linear, extent);
    linear = make<arith::DivUIOp>(linear, extent);
  }
  if (!extents.empty())
    result[0] = linear;
  return result;
}

Value ThreadBuilder::load(Value memref, ValueRange at) {
  return memref::LoadOp::create(*this, loc, memref, at);
}
Value ThreadBuilder::load(Value memref, AffineMap map, ValueRange ivs) {
  return load(memref, *affine::expandAffineMap(*this, loc, map, ivs));
}

void ThreadBuilder::store(Value value, Value memref, ValueRange at) {
  memref::StoreOp::create(*this, loc, value, memref, at);
}
void ThreadBuilder::store(Value value, Value memref, AffineMap map, ValueRange ivs) {
  store(value, memref, *affine::expandAffineMap(*this, loc, map, ivs));
}

void ThreadBuilder::barrier() { gpu::BarrierOp::create(*this, loc); }

SmallVector<Value> ThreadBuilder::compute(linalg::LinalgOp op, ValueRange ivs,
                                          ValueRange operands) {
  Block *body = op.getBlock();
  IRMapping mapping;
  mapping.map(body->getArguments(), operands);
  for (Operation &inner : body->without_terminator())
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      mapping.map(index.getResult(), ivs[index.getDim()]);
    else
      clone(inner, mapping);
  return llvm::map_to_vector(body->getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

void ThreadBuilder::when(Value condition, function_ref<void()> then) {
  if (!condition)
    return then();
  auto choice = scf::IfOp::create(*this, loc, condition);
  InsertionGuard guard(*this);
  setInsertionPointToStart(choice.thenBlock());
  then();
}

SmallVector<Value> ThreadBuilder::loop(Value from, Value to, int64_t step,
                                       SmallVector<Value> carried,
                                       function_ref<void(Value, SmallVector<Value> &)> body) {
  auto loop = scf::ForOp::create(*this, loc, from, to, index(step), carried);
  InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  SmallVector<Value> inside(loop.getRegionIterArgs());
  body(loop.getInductionVar(), inside);
  if (!inside.empty())
    scf::YieldOp::create(*this, loc, inside);
  return SmallVector<Value>(loop.getResults());
}

Value ThreadBuilder::shuffle(gpu::ShuffleMode mode, Value value, int64_t offset) {
  return gpu::ShuffleOp::create(*this, loc, value, offset, kWarpLanes, mode).getShuffleResult();
}
Value ThreadBuilder::shuffle(gpu::ShuffleMode mode, Value value, Value offset) {
  return gpu::ShuffleOp::create(*this, loc, value, offset, integer(kWarpLanes), mode)
      .getShuffleResult();
}

Value ThreadBuilder::combineLanes(Value value, int64_t least, int64_t end,
                                  function_ref<Value(Value, Value)> combine) {
  for (int64_t bit = end / 2; bit >= least; bit /= 2)
    value = combine(value, shuffle(gpu::ShuffleMode::XOR, value, bit));
  return value;
}

gpu::LaunchOp boa::createLaunch(ThreadBuilder &builder, std::array<int64_t, 3> grid, int64_t x,
                                int64_t y) {
  auto launch = gpu::LaunchOp::create(builder, builder.loc, builder.index(grid[0]),
                                      builder.index(grid[1]), builder.index(grid[2]),
                                      builder.index(x), builder.index(y), builder.index(1));
  builder.setInsertionPointToEnd(&launch.getBody().front());
  builder.setInsertionPoint(gpu::TerminatorOp::create(builder, builder.loc));
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
