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

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"

namespace boa {

/// An operand as a matrix: all leading dimensions are rows.
struct Matrix {
  mlir::Value address;
  int64_t rows, columns, stride;
};

inline mlir::Type elementOf(mlir::Value memref) {
  return mlir::cast<mlir::MemRefType>(memref.getType()).getElementType();
}

/// The operands of a product.
struct Product {
  Matrix a, b, c;
};

/// Builds the arguments of a call of the runtime, and at last the call.
class LibraryCall {
public:
  LibraryCall(mlir::ConversionPatternRewriter &rewriter, mlir::Operation *op);

  void addInt(int64_t value, unsigned bits = 64);
  void addNull();
  void add(mlir::Value value);
  void addRows(const Matrix &matrix);
  /// An address, or null if the operand is absent.
  void addAddress(mlir::Value memref, mlir::Value descriptor);
  /// The flags of transposed operands, then m, n and k.
  void addSizes(kernel::GemmOp op, const Product &product);

  /// Refuses an operand whose rows are not contiguous and evenly spaced.
  mlir::FailureOr<Matrix> matrix(mlir::Value memref, mlir::Value descriptor);
  mlir::FailureOr<Product> product(kernel::GemmOp op, kernel::GemmOp::Adaptor adaptor);
  /// The address of the first element.
  mlir::Value address(mlir::Value memref, mlir::Value descriptor);

  /// Replaces the op by the call of `name`.
  mlir::LogicalResult emit(mlir::StringRef name);
  /// Replaces the op's one result, of i1, by whether the call of `name` returns an i32 other than
  /// 0.
  mlir::LogicalResult emitCondition(mlir::StringRef name);

private:
  mlir::FailureOr<mlir::LLVM::CallOp> createCall(mlir::StringRef name, mlir::Type result);

  mlir::ConversionPatternRewriter &rewriter;
  mlir::Operation *op;
  mlir::Location loc;
  mlir::Type pointer;
  mlir::SmallVector<mlir::Value> arguments;
  mlir::SmallVector<mlir::Type> types;
};

/// Converts the bodies of all kernels of the module, and all functions. Assumes control flow in
/// blocks (no scf, no linalg, no tensors); `addCalls` adds the patterns of the ops that are calls.
/// Leaves the program around them alone, which is enumerated once workspaces are known.
mlir::LogicalResult convertKernelsToLLVM(
    mlir::ModuleOp module,
    llvm::function_ref<void(const mlir::LLVMTypeConverter &, mlir::RewritePatternSet &)> addCalls);

} // namespace boa

#endif // BOA_PASSES_KERNELS_KERNELTOLLVM_H
