//===- ConvertKernelToLLVM.cpp - Kernels to the LLVM dialect --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes control flow in blocks (no scf, no linalg, no tensors) and outlined
// parallel loops. Library calls pass the address of the first element and the stride of rows; an
// operand whose leading dimensions are not evenly spaced is refused.
//
//===----------------------------------------------------------------------===//

#include "passes/target/cpu/CpuPasses.h"
#include "dialect/Boa.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"

namespace boa {
#define GEN_PASS_DEF_CONVERTKERNELTOLLVM
#include "passes/target/cpu/CpuPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// An operand as a matrix: all leading dimensions are rows.
struct Matrix {
  Value address;
  int64_t rows, columns, stride;
};

/// Builds the arguments of a call of the runtime.
class LibraryCall {
public:
  LibraryCall(ConversionPatternRewriter &rewriter, Operation *op)
      : rewriter(rewriter), op(op), loc(op->getLoc()),
        pointer(LLVM::LLVMPointerType::get(op->getContext())) {}

  void addInt(int64_t value, unsigned bits = 64) {
    add(LLVM::ConstantOp::create(rewriter, loc, rewriter.getIntegerType(bits),
                                 rewriter.getIntegerAttr(rewriter.getIntegerType(bits), value)));
  }
  void addNull() { add(LLVM::ZeroOp::create(rewriter, loc, pointer)); }
  void add(Value value) {
    arguments.push_back(value);
    types.push_back(value.getType());
  }
  void addRows(const Matrix &matrix) {
    add(matrix.address);
    addInt(matrix.stride);
  }

  FailureOr<Matrix> matrix(Value memref, Value descriptor) {
    auto type = cast<MemRefType>(memref.getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)) || ShapedType::isDynamic(offset) ||
        strides.empty() || strides.back() != 1)
      return op->emitOpError("expected operands with contiguous rows, not ") << type;
    int64_t rank = type.getRank();
    Matrix result{address(memref, descriptor), 1, type.getShape().back(),
                  rank > 1 ? strides[rank - 2] : type.getShape().back()};
    int64_t spacing = result.stride;
    for (int64_t i = rank - 2; i >= 0; --i) {
      if (strides[i] != spacing && type.getDimSize(i) != 1)
        return op->emitOpError("expected operands with evenly spaced rows, not ") << type;
      spacing *= type.getDimSize(i);
      result.rows *= type.getDimSize(i);
    }
    return result;
  }

  Value address(Value memref, Value descriptor) {
    auto type = cast<MemRefType>(memref.getType());
    auto [strides, offset] = type.getStridesAndOffset();
    Value base = MemRefDescriptor(descriptor).alignedPtr(rewriter, loc);
    return kernel::offsetPointer(rewriter, loc, base, type.getElementType(), offset);
  }

  /// Replaces the op by the call of `name` for this element type.
  LogicalResult emit(StringRef name, Type element) {
    if (!element.isF32() && !element.isF64() && !element.isBF16())
      return op->emitOpError("expected operands of f32 or f64, not ") << element;
    StringRef suffix = element.isF32() ? "_f32" : element.isF64() ? "_f64" : "_bf16";
    std::string symbol = (name + suffix).str();
    auto function = LLVM::lookupOrCreateFn(rewriter, op->getParentOfType<ModuleOp>(), symbol, types,
                                           LLVM::LLVMVoidType::get(op->getContext()));
    if (failed(function))
      return failure();
    LLVM::CallOp::create(rewriter, loc, *function, arguments);
    rewriter.eraseOp(op);
    return success();
  }

private:
  ConversionPatternRewriter &rewriter;
  Operation *op;
  Location loc;
  Type pointer;
  SmallVector<Value> arguments;
  SmallVector<Type> types;
};

Type elementOf(Value memref) { return cast<MemRefType>(memref.getType()).getElementType(); }

struct GemmToCall : ConvertOpToLLVMPattern<kernel::GemmOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(kernel::GemmOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LibraryCall call(rewriter, op);
    FailureOr<Matrix> a = call.matrix(op.getA(), adaptor.getA());
    FailureOr<Matrix> b = call.matrix(op.getB(), adaptor.getB());
    FailureOr<Matrix> c = call.matrix(op.getC(), adaptor.getC());
    if (failed(a) || failed(b) || failed(c))
      return failure();
    call.addInt(op.getTransposeA(), 32);
    call.addInt(op.getTransposeB(), 32);
    call.addInt(c->rows);
    call.addInt(c->columns);
    call.addInt(op.getTransposeA() ? a->rows : a->columns);
    call.addRows(*a);
    call.addRows(*b);
    if (op.getBias())
      call.add(call.address(op.getBias(), adaptor.getBias()));
    else
      call.addNull();
    call.addInt(op.getAccumulate(), 32);
    call.addRows(*c);
    Type aType = elementOf(op.getA()), bType = elementOf(op.getB()), cType = elementOf(op.getC());
    bool narrowB = bType.isBF16(), narrowA = narrowB && aType.isBF16();
    bool narrowC = narrowA && cType.isBF16();
    Type wide = narrowC ? rewriter.getF32Type() : cType;
    if ((narrowB && !wide.isF32()) || (!narrowB && bType != wide) || (!narrowA && aType != wide) ||
        (op.getBias() && elementOf(op.getBias()) != wide))
      return op.emitOpError("expected operands of one type, or f32 with b, or a and b, or all "
                            "three in bf16");
    return call.emit(narrowC   ? "boa_gemm_bf16_bf16"
                     : narrowA ? "boa_gemm_bf16"
                               : "boa_gemm",
                     bType);
  }
};

/// Attention or its gradient: batch, time, heads, kv_heads, d, causal, then the
/// operands in order, of which all but lse are matrices.
template <typename Op> struct AttentionToCall : ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LibraryCall call(rewriter, op);
    auto type = cast<MemRefType>(op.getQ().getType());
    call.addInt(type.getDimSize(0));
    call.addInt(type.getDimSize(1));
    call.addInt(op.getHeads());
    call.addInt(op.getKvHeads());
    call.addInt(type.getDimSize(2) / op.getHeads());
    call.addInt(op.getCausal(), 32);
    Type element = type.getElementType();
    Type sum = element.isBF16() ? rewriter.getF32Type() : element;
    for (auto [operand, descriptor] : llvm::zip(op->getOperands(), adaptor.getOperands())) {
      if (elementOf(operand) != (operand == op.getLse() ? sum : element))
        return op.emitOpError("expected operands of one type, and lse in that of sums");
      if (operand == op.getLse()) {
        call.add(call.address(operand, descriptor));
        continue;
      }
      FailureOr<Matrix> matrix = call.matrix(operand, descriptor);
      if (failed(matrix))
        return failure();
      call.addRows(*matrix);
    }
    bool grad = std::is_same_v<Op, kernel::AttentionGradOp>;
    return call.emit(grad ? "boa_attention_grad" : "boa_attention", element);
  }
};

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
        rewriter, loc, *getTypeConverter(), cast<MemRefType>(op.getMemory().getType()), address);
    rewriter.replaceOp(op, Value(descriptor));
    return success();
  }
};

struct ConvertKernelToLLVM : boa::impl::ConvertKernelToLLVMBase<ConvertKernelToLLVM> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    LLVMTypeConverter converter(context);
    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    patterns.add<GemmToCall, AttentionToCall<kernel::AttentionOp>,
                 AttentionToCall<kernel::AttentionGradOp>, ArgumentToLoad, ViewToDescriptor>(
        converter);

    ConversionTarget target(*context);
    target.addLegalDialect<LLVM::LLVMDialect>();
    target.addLegalOp<ModuleOp, UnrealizedConversionCastOp>();
    // The schedule is enumerated after this pass, once workspaces are known.
    target.addLegalOp<boa::StepOp>();
    target.markOpRecursivelyLegal<boa::StepOp>();
    target.addIllegalDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect,
                             kernel::KernelDialect, math::MathDialect, memref::MemRefDialect>();
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
