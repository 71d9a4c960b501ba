//===- ThreadBuilder.h - The code of a thread -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by all code for a GPU: launches, memory, and reductions across threads.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_THREADBUILDER_H
#define BOA_PASSES_TARGET_CUDA_THREADBUILDER_H

#include "passes/kernels/CodeBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <array>

namespace boa {

constexpr int64_t kWarpLanes = 32;
/// The most threads of a block, of them along x, y and z, and the most blocks of a launch along
/// these. From CUDA's C++ Programming Guide, "Compute Capabilities".
constexpr int64_t kMaxThreads = 1024, kMaxBlock[3] = {kMaxThreads, kMaxThreads, 64},
                  kMaxGrid[3] = {(INT64_C(1) << 31) - 1, 65535, 65535};
/// The shared memory that a block may use without an attribute of the function.
constexpr int64_t kMaxWorkgroupBytes = 48 * 1024;

/// Adds accesses to memrefs, and to other threads.
class ThreadBuilder : public CodeBuilder {
public:
  using CodeBuilder::CodeBuilder;

  // Memory.
  Value load(Value memref, mlir::ValueRange at);
  Value load(Value memref, mlir::AffineMap map, mlir::ValueRange ivs);
  void store(Value value, Value memref, mlir::ValueRange at);
  void store(Value value, Value memref, mlir::AffineMap map, mlir::ValueRange ivs);
  void barrier();

  // Other lanes of the warp.
  Value shuffle(mlir::gpu::ShuffleMode mode, Value value, int64_t offset);
  Value shuffle(mlir::gpu::ShuffleMode mode, Value value, Value offset);
  /// Combines the values of the lanes that differ in bits from `least` to below `end`, pair by
  /// pair. Each has the result.
  Value combineLanes(Value value, int64_t least, int64_t end,
                     llvm::function_ref<Value(Value, Value)> combine);
};

/// Creates a launch of `grid` blocks of x * y threads. The builder goes to its body.
mlir::gpu::LaunchOp createLaunch(ThreadBuilder &builder, std::array<int64_t, 3> grid, int64_t x,
                                 int64_t y);

/// An argument of a function of the device.
struct DeviceArgument {
  mlir::Type type;
  int64_t alignment;   // in bytes
  bool isApart = true; // from all other memory that is written: `noalias`
};

/// Creates a function of the device's module, at the builder's place, for launches of that grid and
/// that block, or of any grid if it is empty. Its workgroup attributions have the types in
/// `shared`. The body is empty.
mlir::gpu::GPUFuncOp
createDeviceFunction(mlir::OpBuilder &builder, mlir::Location loc, const llvm::Twine &name,
                     llvm::ArrayRef<DeviceArgument> arguments, llvm::ArrayRef<mlir::Type> shared,
                     llvm::ArrayRef<int64_t> grid, llvm::ArrayRef<int64_t> block);

/// Builds the code of a thread in such a function, of blocks along x.
class FunctionBuilder : public ThreadBuilder {
public:
  FunctionBuilder(mlir::gpu::GPUModuleOp device, mlir::Location loc, const llvm::Twine &name,
                  llvm::ArrayRef<DeviceArgument> arguments, llvm::ArrayRef<Type> shared,
                  llvm::ArrayRef<int64_t> grid, int64_t threads)
      : ThreadBuilder(OpBuilder::atBlockEnd(device.getBody()), loc),
        func(createDeviceFunction(*this, loc, name, arguments, shared, grid, {threads, 1, 1})) {
    setInsertionPointToStart(&func.getBody().front());
  }
  void finish() { mlir::gpu::ReturnOp::create(*this); }
  Value argument(unsigned i) { return func.getArgument(i); }
  Value shared(unsigned i) { return func.getWorkgroupAttributions()[i]; }
  Value getBlockId() { return make<mlir::gpu::BlockIdOp>(mlir::gpu::Dimension::x); }
  Value getThreadId() { return make<mlir::gpu::ThreadIdOp>(mlir::gpu::Dimension::x); }

private:
  mlir::gpu::GPUFuncOp func;
};

/// The type of memory that a block's threads share.
mlir::MemRefType getWorkgroupType(llvm::ArrayRef<int64_t> shape, mlir::Type element);
/// Adds such memory to a launch.
mlir::Value addWorkgroupMemory(mlir::gpu::LaunchOp launch, llvm::ArrayRef<int64_t> shape,
                               mlir::Type element);

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_THREADBUILDER_H
