//===- OutlineLaunches.cpp - Bodies of launches to the device's module ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes that temporaries have their place in the workspace, and of a launch one block. On
// the host a launch may be under a condition. Launches of a kernel that do the same with
// other memory are of one function.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/Captures.h"
#include "passes/kernels/MemoryAccess.h"
#include "passes/target/cuda/CudaPasses.h"

#include "mlir/IR/IRMapping.h"

#include <numeric>

namespace boa {
#define GEN_PASS_DEF_CUDAOUTLINELAUNCHES
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// What buffers and the workspace are at least aligned to, in bytes.
constexpr int64_t kBufferAlignment = 256;
/// Of shared memory: the widest access.
constexpr int64_t kSharedAlignment = 16;

/// What a launch may be, by CUDA's C++ Programming Guide, "Compute Capabilities".
constexpr int64_t kMaxGrid[3] = {(INT64_C(1) << 31) - 1, 65535, 65535};
constexpr int64_t kMaxBlock[3] = {1024, 1024, 64}, kMaxThreads = 1024;

struct Extents {
  SmallVector<int64_t, 3> grid, block;
  int64_t sharedBytes = 0;
};

FailureOr<Extents> getExtents(gpu::LaunchOp launch) {
  Extents extents;
  bool isStatic = true;
  auto add = [&](gpu::KernelDim3 dims, SmallVectorImpl<int64_t> &to) {
    for (Value dim : {dims.x, dims.y, dims.z}) {
      std::optional<int64_t> extent = getConstantIntValue(dim);
      isStatic &= extent.has_value();
      to.push_back(extent.value_or(0));
    }
  };
  add(launch.getGridSizeOperandValues(), extents.grid);
  add(launch.getBlockSizeOperandValues(), extents.block);
  if (Value bytes = launch.getDynamicSharedMemorySize()) {
    std::optional<int64_t> known = getConstantIntValue(bytes);
    isStatic &= known.has_value();
    extents.sharedBytes = known.value_or(0);
  }
  if (!isStatic)
    return launch.emitOpError("expected a static grid, block and size of shared memory");
  for (unsigned i = 0; i < 3; ++i)
    if (extents.grid[i] > kMaxGrid[i] || extents.block[i] > kMaxBlock[i])
      return launch.emitOpError("expected at most ")
             << (extents.grid[i] > kMaxGrid[i] ? kMaxGrid[i] : kMaxBlock[i])
             << (extents.grid[i] > kMaxGrid[i] ? " blocks" : " threads") << " along "
             << "xyz"[i] << ": make micro_batch smaller";
  if (llvm::product_of(extents.block) > kMaxThreads)
    return launch.emitOpError("expected a block of at most ") << kMaxThreads << " threads";
  return extents;
}

/// What the threads of a launch may tell each other by, across a barrier: LLVM takes a
/// barrier to leave `noalias` memory as it was.
llvm::SmallPtrSet<Value, 4> getShared(gpu::LaunchOp launch) {
  llvm::SmallPtrSet<Value, 4> written;
  if (!launch.walk([](gpu::BarrierOp) { return WalkResult::interrupt(); }).wasInterrupted())
    return written;
  launch.walk([&](memref::StoreOp store) { written.insert(getMemoryRoot(store.getMemRef())); });
  return written;
}

struct CudaOutlineLaunches : boa::impl::CudaOutlineLaunchesBase<CudaOutlineLaunches> {
  void runOnOperation() override {
    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    device = gpu::GPUModuleOp::create(builder, getOperation().getLoc(), kDeviceModule);
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!func->hasAttr(kKernelAttr))
        continue;
      SmallVector<gpu::LaunchOp> launches;
      func.walk([&](gpu::LaunchOp launch) { launches.push_back(launch); });
      earlier.clear();
      for (auto [i, launch] : llvm::enumerate(launches))
        if (failed(outline(launch, (func.getSymName() + "_launch" + Twine(i)).str())))
          return signalPassFailure();
      if (failed(clean(func)))
        return signalPassFailure();
    }
  }

  /// Drops what only launches used. The address of a constant is none on the host.
  static LogicalResult clean(func::FuncOp func) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
    for (auto constant : func.getBody().front().getOps<memref::GetGlobalOp>())
      return constant.emitOpError("expected constants to be read by launches alone");
    return success();
  }

  LogicalResult outline(gpu::LaunchOp launch, StringRef name) {
    if (launch.getAsyncToken() || launch.hasClusterSize() || !launch.getBody().hasOneBlock() ||
        launch.getNumPrivateAttributions() > 0)
      return launch.emitOpError("expected one block, without clusters, tokens and private memory");
    FailureOr<Captures> captures = Captures::get(launch.getBody());
    FailureOr<Extents> extents = getExtents(launch);
    if (failed(captures) || failed(extents))
      return failure();
    gpu::GPUFuncOp func = makeFunction(launch, *captures, *extents, name);
    if (FunctionOpInterface same = findSame(func, earlier)) {
      func.erase();
      func = cast<gpu::GPUFuncOp>(same.getOperation());
    } else {
      earlier.push_back(func);
    }

    OpBuilder builder(launch);
    SmallVector<Value> operands;
    for (kernel::ViewOp view : captures->views)
      operands.push_back(view.getMemory());
    auto function = SymbolRefAttr::get(device.getSymNameAttr(), FlatSymbolRefAttr::get(func));
    kernel::LaunchOp::create(builder, launch.getLoc(), function, extents->grid, extents->block,
                             extents->sharedBytes, operands);
    launch.erase();
    return success();
  }

  gpu::GPUFuncOp makeFunction(gpu::LaunchOp launch, Captures &captures, const Extents &extents,
                              StringRef name) {
    Location loc = launch.getLoc();
    OpBuilder builder = OpBuilder::atBlockEnd(device.getBody());
    SmallVector<Type> inputs, shared;
    for (kernel::ViewOp view : captures.views)
      inputs.push_back(view.getMemory().getType());
    for (BlockArgument memory : launch.getWorkgroupAttributions())
      shared.push_back(memory.getType());
    auto func =
        gpu::GPUFuncOp::create(builder, loc, name, builder.getFunctionType(inputs, {}), shared);
    func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    auto narrow = [&](ArrayRef<int64_t> values) {
      return builder.getDenseI32ArrayAttr(SmallVector<int32_t>(values.begin(), values.end()));
    };
    func.setKnownGridSizeAttr(narrow(extents.grid));
    func.setKnownBlockSizeAttr(narrow(extents.block));
    llvm::SmallPtrSet<Value, 4> told = getShared(launch);
    for (auto [i, view] : llvm::enumerate(captures.views)) {
      int64_t alignment = std::gcd(view.getOffset(), kBufferAlignment);
      if (!told.contains(view.getMemory()))
        func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
      func.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(alignment));
    }
    for (unsigned i = 0; i < shared.size(); ++i)
      func.setWorkgroupAttributionAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                                       builder.getI64IntegerAttr(kSharedAlignment));

    builder.setInsertionPointToStart(&func.getBody().front());
    IRMapping mapping;
    for (auto [i, view] : llvm::enumerate(captures.views))
      mapping.map(view.getMemory(), func.getArgument(i));
    for (auto [from, to] :
         llvm::zip(launch.getWorkgroupAttributions(), func.getWorkgroupAttributions()))
      mapping.map(from, to);
    mapPlaces(builder, launch, extents, mapping);
    for (Operation *op : captures.repeated) {
      if (auto constant = dyn_cast<memref::GetGlobalOp>(op))
        takeConstant(constant.getName());
      builder.clone(*op, mapping);
    }
    for (Operation &op : launch.getBody().front().without_terminator())
      builder.clone(op, mapping);
    gpu::ReturnOp::create(builder, loc);
    return func;
  }

  /// Constants that launches read are the device's.
  void takeConstant(StringRef name) {
    if (auto global = getOperation().lookupSymbol<memref::GlobalOp>(name))
      global->moveBefore(device.getBody(), device.getBody()->begin());
  }

  /// The places of block and thread, and how many there are.
  static void mapPlaces(OpBuilder &builder, gpu::LaunchOp launch, const Extents &extents,
                        IRMapping &mapping) {
    Location loc = launch.getLoc();
    gpu::KernelDim3 blocks = launch.getBlockIds(), threads = launch.getThreadIds();
    gpu::KernelDim3 grid = launch.getGridSize(), block = launch.getBlockSize();
    const gpu::Dimension dimensions[] = {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z};
    auto each = [](gpu::KernelDim3 dims) { return SmallVector<Value>{dims.x, dims.y, dims.z}; };
    for (unsigned i = 0; i < 3; ++i) {
      mapping.map(each(blocks)[i], gpu::BlockIdOp::create(builder, loc, dimensions[i]));
      mapping.map(each(threads)[i], gpu::ThreadIdOp::create(builder, loc, dimensions[i]));
      mapping.map(each(grid)[i], arith::ConstantIndexOp::create(builder, loc, extents.grid[i]));
      mapping.map(each(block)[i], arith::ConstantIndexOp::create(builder, loc, extents.block[i]));
    }
  }

  gpu::GPUModuleOp device;
  SmallVector<FunctionOpInterface> earlier; // of one kernel
};

} // namespace
