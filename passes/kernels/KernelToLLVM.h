//===- KernelToLLVM.h - Kernels to the LLVM dialect -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The common part of the targets' conversions. Memory, arithmetic and control flow are
// converted alike. A library call is the call of a C function with addresses and the
// strides of rows; the patterns of a target name the function.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_KERNELTOLLVM_H
#define BOA_PASSES_KERNELS_KERNELTOLLVM_H

#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/MemoryAccess.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"

namespace boa {

/// An operand as a matrix: all leading dimensions are rows.
struct Matrix {
  mlir::Value address;
  int64_t rows = 1, columns = 1, stride = 1;
};

inline mlir::Type elementOf(mlir::Value memref) { return memrefOf(memref).getElementType(); }

/// Builds the arguments of a call of the runtime, and at last the call.
class LibraryCall {
public:
  LibraryCall(mlir::ConversionPatternRewriter &rewriter, mlir::Operation *op);

  void addInt(int64_t value, unsigned bits = 64);
  void addNull();
  void add(mlir::Value value);
  void addRows(const Matrix &matrix);
  void addRows(mlir::Value memref, mlir::Value descriptor) { addRows(matrix(memref, descriptor)); }
  /// An address, or null if the operand is absent.
  void addAddress(mlir::Value memref, mlir::Value descriptor);
  /// The number of heads, of those of keys, and of the columns of one, for attention.
  template <typename Op> void addHeads(Op op) {
    addInt(op.getHeads());
    addInt(op.getKvHeads());
    addInt(memrefOf(op.getQ()).getDimSize(2) / static_cast<int64_t>(op.getHeads()));
  }
  /// The flags of transposed operands, then m, n and k.
  void addSizes(kernel::GemmOp op, const Matrix &a, const Matrix &b);

  /// Refuses an operand whose rows are not contiguous and evenly spaced: no call is emitted.
  Matrix matrix(mlir::Value memref, mlir::Value descriptor);
  /// The address of the first element.
  mlir::Value address(mlir::Value memref, mlir::Value descriptor);

  /// Replaces the op by the call of `name`. One result, of i1, is whether the call returns an i32
  /// other than 0.
  mlir::LogicalResult emit(const mlir::Twine &name);

private:
  mlir::ConversionPatternRewriter &rewriter;
  mlir::Operation *op;
  mlir::Location loc;
  mlir::Type pointer;
  bool isRefused = false;
  mlir::SmallVector<mlir::Value> arguments;
};

/// Converts the bodies of all kernels of the module, and all functions. Assumes control flow in
/// blocks (no scf, no linalg, no tensors); `addCalls` adds the patterns of the ops that are calls.
/// Leaves the program around them alone, which is enumerated once workspaces are known.
mlir::LogicalResult convertKernelsToLLVM(
    mlir::ModuleOp module,
    llvm::function_ref<void(const mlir::LLVMTypeConverter &, mlir::RewritePatternSet &)> addCalls);

} // namespace boa

#endif // BOA_PASSES_KERNELS_KERNELTOLLVM_H
