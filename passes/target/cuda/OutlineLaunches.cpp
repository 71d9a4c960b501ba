//===- OutlineLaunches.cpp - Bodies of launches to the device's module ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes that temporaries have their place in the workspace, and of a launch one block. On
// the host a launch may be under a condition. Launches that do the same with other memory
// are of one function, also those of other kernels.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/MemoryAccess.h"
#include "passes/kernels/RegionOutlining.h"
#include "passes/target/cuda/CudaPasses.h"
#include "passes/target/cuda/ThreadBuilder.h"
#include "runtime/abi/cuda_updates.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"

namespace boa {
#define GEN_PASS_DEF_CUDAOUTLINELAUNCHES
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// The least alignment of buffers and of the workspace, in bytes.
constexpr int64_t kBufferAlignment = 256;

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
  for (unsigned i = 0; i < 3; ++i) {
    // Rows are along x, sequences along z; along y are the heads of attention. Of products the side
    // along y always fits.
    if (extents.grid[i] > kMaxGrid[i])
      return launch.emitOpError("expected at most ")
             << kMaxGrid[i] << " blocks along " << "xyz"[i]
             << (i == 1 ? ": give attention fewer heads" : ": make micro_batch smaller");
    if (extents.block[i] > kMaxBlock[i])
      return launch.emitOpError("expected at most ")
             << kMaxBlock[i] << " threads along " << "xyz"[i];
  }
  if (llvm::product_of(extents.block) > kMaxThreads)
    return launch.emitOpError("expected a block of at most ") << kMaxThreads << " threads";
  return extents;
}

/// The memory through which threads of a launch may pass values across a barrier. LLVM assumes that
/// a barrier leaves `noalias` memory as it was.
llvm::SmallPtrSet<Value, 4> getShared(gpu::LaunchOp launch) {
  llvm::SmallPtrSet<Value, 4> written;
  if (!launch.walk([](gpu::BarrierOp) { return WalkResult::interrupt(); }).wasInterrupted())
    return written;
  launch.walk([&](memref::StoreOp store) { written.insert(getMemoryRoot(store.getMemRef())); });
  return written;
}

struct CudaOutlineLaunches : boa::impl::CudaOutlineLaunchesBase<CudaOutlineLaunches> {
  void runOnOperation() override {
    distinct = {};
    functions = 0;
    int64_t count = 0;
    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    device = gpu::GPUModuleOp::create(builder, getOperation().getLoc(), kDeviceModule);
    for (auto func : getOperation().getOps<KernelOp>()) {
      SmallVector<gpu::LaunchOp> launches;
      func.walk([&](gpu::LaunchOp launch) { launches.push_back(launch); });
      count += int64_t(launches.size());
      for (auto [i, launch] : llvm::enumerate(launches))
        if (failed(outline(launch,
                           cuda::DeviceName((func.getSymName() + "_launch" + Twine(i)).str()))))
          return signalPassFailure();
      if (failed(eraseDeadOps(func)))
        return signalPassFailure();
    }
    remark::passed(getOperation().getLoc(), kernelRemark("outline-launches"))
        << remark::metric("launches", count) << remark::metric("functions", functions);
  }

  /// Drops ops that only launches used. The host has no address of a constant.
  static LogicalResult eraseDeadOps(KernelOp func) {
    func.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
    WalkResult walked = func.walk([](memref::GetGlobalOp constant) {
      constant.emitOpError("expected constants to be read by launches alone");
      return WalkResult::interrupt();
    });
    return failure(walked.wasInterrupted());
  }

  LogicalResult outline(gpu::LaunchOp launch, StringRef name) {
    if (launch.getAsyncToken() || launch.hasClusterSize() || !launch.getBody().hasOneBlock() ||
        launch.getNumPrivateAttributions() > 0)
      return launch.emitOpError("expected one block, without clusters, tokens and private memory");
    FailureOr<Captures> captures = Captures::get(launch.getBody());
    FailureOr<Extents> extents = getExtents(launch);
    if (failed(captures) || failed(extents))
      return failure();
    gpu::GPUFuncOp func = distinct.findOrInsert(makeFunction(launch, *captures, *extents, name));
    functions += func.getName() == name;

    OpBuilder builder(launch);
    SmallVector<Value> operands;
    for (const CapturedMemory &memory : captures->memory)
      operands.push_back(memory.memref);
    auto function = SymbolRefAttr::get(device.getSymNameAttr(), FlatSymbolRefAttr::get(func));
    kernel::LaunchFuncOp::create(builder, launch.getLoc(), function, extents->grid, extents->block,
                                 extents->sharedBytes, operands);
    launch.erase();
    return success();
  }

  gpu::GPUFuncOp makeFunction(gpu::LaunchOp launch, Captures &captures, const Extents &extents,
                              StringRef name) {
    OpBuilder builder = OpBuilder::atBlockEnd(device.getBody());
    llvm::SmallPtrSet<Value, 4> sharedRoots = getShared(launch);
    SmallVector<DeviceArgument> arguments;
    for (const CapturedMemory &memory : captures.memory)
      arguments.push_back({memory.type, memory.getAlignment(kBufferAlignment),
                           !sharedRoots.contains(getMemoryRoot(memory.memref))});
    SmallVector<Type> shared;
    for (BlockArgument memory : launch.getWorkgroupAttributions())
      shared.push_back(memory.getType());
    gpu::GPUFuncOp func = createDeviceFunction(builder, launch.getLoc(), name, arguments, shared,
                                               extents.grid, extents.block);
    int64_t bytes = 0;
    for (const DeviceArgument &argument : arguments)
      if (auto memref = dyn_cast<MemRefType>(argument.type))
        bytes += getBytes(memref);
    func->setAttr(kMemoryAttr, builder.getI64IntegerAttr(bytes));

    builder.setInsertionPointToStart(&func.getBody().front());
    IRMapping mapping;
    for (auto [i, memory] : llvm::enumerate(captures.memory))
      mapping.map(memory.memref, func.getArgument(i));
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
    gpu::ReturnOp::create(builder, launch.getLoc());
    return func;
  }

  /// Moves a constant that launches read to the device's module.
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
  DistinctFunctions distinct;
  int64_t functions = 0;
};

} // namespace
