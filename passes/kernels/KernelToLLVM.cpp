//===- KernelToLLVM.cpp - Kernels to the LLVM dialect ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelToLLVM.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"

using namespace mlir;
using namespace boa;

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

LibraryCall::LibraryCall(ConversionPatternRewriter &rewriter, Operation *op)
    : rewriter(rewriter), op(op), loc(op->getLoc()),
      pointer(LLVM::LLVMPointerType::get(op->getContext())) {}

void LibraryCall::addInt(int64_t value, unsigned bits) {
  add(LLVM::ConstantOp::create(rewriter, loc, rewriter.getIntegerType(bits),
                               rewriter.getIntegerAttr(rewriter.getIntegerType(bits), value)));
}
void LibraryCall::addNull() { add(LLVM::ZeroOp::create(rewriter, loc, pointer)); }
void LibraryCall::add(Value value) { arguments.push_back(value); }
void LibraryCall::addRows(const Matrix &matrix) {
  add(matrix.address);
  addInt(matrix.stride);
}
void LibraryCall::addAddress(Value memref, Value descriptor) {
  if (memref)
    add(address(memref, descriptor));
  else
    addNull();
}
void LibraryCall::addSizes(kernel::GemmOp op, const Matrix &a, const Matrix &b) {
  addInt(op.getTransposeA(), 32);
  addInt(op.getTransposeB(), 32);
  addInt(op.getTransposeA() ? a.columns : a.rows);
  addInt(op.getTransposeB() ? b.rows : b.columns);
  addInt(op.getTransposeA() ? a.rows : a.columns);
}

Matrix LibraryCall::matrix(Value memref, Value descriptor) {
  MemRefType type = memrefOf(memref);
  auto refuse = [&](StringRef expected) {
    isRefused = true;
    op->emitOpError("expected operands with ") << expected << " rows, not " << type;
    return Matrix{LLVM::ZeroOp::create(rewriter, loc, pointer)};
  };
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || ShapedType::isDynamic(offset) ||
      strides.empty() || strides.back() != 1)
    return refuse("contiguous");
  int64_t rank = type.getRank();
  Matrix result{address(memref, descriptor), 1, type.getShape().back(),
                rank > 1 ? strides[rank - 2] : type.getShape().back()};
  int64_t spacing = result.stride;
  for (int64_t i = rank - 2; i >= 0; --i) {
    if (strides[i] != spacing && type.getDimSize(i) != 1)
      return refuse("evenly spaced");
    spacing *= type.getDimSize(i);
    result.rows *= type.getDimSize(i);
  }
  return result;
}

Value LibraryCall::address(Value memref, Value descriptor) {
  auto [strides, offset] = memrefOf(memref).getStridesAndOffset();
  Value base = MemRefDescriptor(descriptor).alignedPtr(rewriter, loc);
  return kernel::offsetPointer(rewriter, loc, base, elementOf(memref), offset);
}

LogicalResult LibraryCall::emit(const Twine &name) {
  if (isRefused)
    return failure();
  const bool isCondition = op->getNumResults() > 0;
  Type i32 = rewriter.getI32Type(), none = LLVM::LLVMVoidType::get(op->getContext());
  auto function = LLVM::lookupOrCreateFn(rewriter, op->getParentOfType<ModuleOp>(), name.str(),
                                         llvm::to_vector(ValueRange(arguments).getTypes()),
                                         isCondition ? i32 : none);
  if (failed(function))
    return failure();
  auto call = LLVM::CallOp::create(rewriter, loc, *function, arguments);
  if (!isCondition) {
    rewriter.eraseOp(op);
    return success();
  }
  Value zero = LLVM::ConstantOp::create(rewriter, loc, i32, rewriter.getI32IntegerAttr(0));
  rewriter.replaceOpWithNewOp<LLVM::ICmpOp>(op, LLVM::ICmpPredicate::ne, call.getResult(), zero);
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {

struct ArgumentToLoad : ConvertOpToLLVMPattern<kernel::ArgumentOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(kernel::ArgumentOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type pointer = op.getPointer().getType();
    Value slot = LLVM::GEPOp::create(rewriter, op.getLoc(), pointer, pointer, adaptor.getBuffers(),
                                     ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(op.getIndex())));
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, pointer, slot);
    return success();
  }
};

struct ViewToDescriptor : ConvertOpToLLVMPattern<kernel::ViewOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(kernel::ViewOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value address = kernel::offsetPointer(rewriter, loc, adaptor.getBase(), rewriter.getI8Type(),
                                          op.getOffset());
    MemRefDescriptor descriptor = MemRefDescriptor::fromStaticShape(
        rewriter, loc, *getTypeConverter(), memrefOf(op.getMemory()), address);
    rewriter.replaceOp(op, Value(descriptor));
    return success();
  }
};

} // namespace

LogicalResult boa::convertKernelsToLLVM(
    ModuleOp module,
    llvm::function_ref<void(const LLVMTypeConverter &, RewritePatternSet &)> addCalls) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  patterns.add<ArgumentToLoad, ViewToDescriptor>(converter);
  addCalls(converter, patterns);

  ConversionTarget target(*context);
  target.addLegalDialect<LLVM::LLVMDialect>();
  target.addLegalOp<ModuleOp, UnrealizedConversionCastOp>();
  // The schedule is enumerated after this pass, once workspaces are known.
  target.addLegalOp<boa::OptimizerOp, boa::StepOp>();
  target.markOpRecursivelyLegal<boa::OptimizerOp, boa::StepOp>();
  target.addIllegalDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect,
                           kernel::KernelDialect, math::MathDialect, memref::MemRefDialect>();
  return applyPartialConversion(module, target, std::move(patterns));
}
