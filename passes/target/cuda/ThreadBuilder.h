//===- ThreadBuilder.h - The code of a thread -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by all code for a GPU: launches, index arithmetic, loops, and reductions across
// threads.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_THREADBUILDER_H
#define BOA_PASSES_TARGET_CUDA_THREADBUILDER_H

#include "passes/kernels/KernelDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
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

/// A builder at one place of the source, with arithmetic that folds.
class ThreadBuilder : public mlir::OpBuilder {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  ThreadBuilder(mlir::OpBuilder builder, mlir::Location loc) : OpBuilder(builder), loc(loc) {}
  /// The one result of an op, folded if it can be.
  template <typename OpTy, typename... Args> mlir::Value make(Args &&...args) {
    return createOrFold<OpTy>(loc, std::forward<Args>(args)...);
  }

  // Indices and conditions.
  mlir::Value index(int64_t value);
  mlir::Value integer(int32_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b) { return add(a, index(b)); }
  mlir::Value mul(mlir::Value a, int64_t b);
  mlir::Value div(mlir::Value a, int64_t b);
  mlir::Value rem(mlir::Value a, int64_t b);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b);
  mlir::Value isLess(mlir::Value a, int64_t b);
  mlir::Value isZero(mlir::Value a);
  mlir::Value both(mlir::Value a, mlir::Value b);
  mlir::Value least(mlir::Value a, int64_t b);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  /// The index in a space of these extents that `linear` stands for.
  Values delinearize(mlir::Value linear, llvm::ArrayRef<int64_t> extents);

  // f32.
  mlir::Value number(double value);
  mlir::Value addf(mlir::Value a, mlir::Value b);
  mlir::Value subf(mlir::Value a, mlir::Value b);
  mlir::Value mulf(mlir::Value a, mlir::Value b);
  /// Computes a * b + c, rounded once.
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);

  // Memory.
  mlir::Value load(mlir::Value memref, mlir::ValueRange at);
  mlir::Value load(mlir::Value memref, mlir::AffineMap map, mlir::ValueRange ivs);
  void store(mlir::Value value, mlir::Value memref, mlir::ValueRange at);
  void store(mlir::Value value, mlir::Value memref, mlir::AffineMap map, mlir::ValueRange ivs);
  void barrier();

  /// Computes the op in iteration `ivs` from these values of its operands. A value that it does not
  /// use may be null.
  Values compute(mlir::linalg::LinalgOp op, mlir::ValueRange ivs, mlir::ValueRange operands);
  /// Runs `then` if `condition` holds, or always if it is null.
  void when(mlir::Value condition, llvm::function_ref<void()> then);
  /// Runs `body` for each `step`th index in [from, to). It maps the carried values to those of the
  /// next iteration. The last ones are returned.
  Values loop(mlir::Value from, mlir::Value to, int64_t step, Values carried,
              llvm::function_ref<void(mlir::Value, Values &)> body);

  // Other lanes of the warp.
  mlir::Value shuffle(mlir::gpu::ShuffleMode mode, mlir::Value value, int64_t offset);
  mlir::Value shuffle(mlir::gpu::ShuffleMode mode, mlir::Value value, mlir::Value offset);
  /// Combines the values of the lanes that differ in bits from `least` to below `end`, pair by
  /// pair. Each has the result.
  mlir::Value combineLanes(mlir::Value value, int64_t least, int64_t end,
                           llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

  mlir::Location loc;
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

/// The type of memory that a block's threads share.
mlir::MemRefType getWorkgroupType(llvm::ArrayRef<int64_t> shape, mlir::Type element);
/// Adds such memory to a launch.
mlir::Value addWorkgroupMemory(mlir::gpu::LaunchOp launch, llvm::ArrayRef<int64_t> shape,
                               mlir::Type element);

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_THREADBUILDER_H
