//===- ConvertKernelToLLVM.cpp - Kernels to the LLVM dialect --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes outlined parallel loops. Library calls are those of runtime/kernels, named by
// element type.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelToLLVM.h"
#include "passes/target/cpu/CpuPasses.h"

namespace boa {
#define GEN_PASS_DEF_CPUCONVERTKERNELTOLLVM
#include "passes/target/cpu/CpuPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// Emits the call of `name` for this element type.
LogicalResult emitTyped(LibraryCall &call, Operation *op, const Twine &name, Type element) {
  if (!element.isF32() && !element.isF64() && !element.isBF16())
    return op->emitOpError("expected operands of f32 or f64, not ") << element;
  return call.emit((name + (element.isF32() ? "_f32" : element.isF64() ? "_f64" : "_bf16")).str());
}

struct GemmToCall : ConvertOpToLLVMPattern<kernel::GemmOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(kernel::GemmOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getAddend())
      return op.emitOpError("expected c to be the addend");
    LibraryCall call(rewriter, op);
    FailureOr<Product> product = call.product(op, adaptor);
    if (failed(product))
      return failure();
    call.addSizes(op, *product);
    call.addRows(product->a);
    call.addRows(product->b);
    call.addAddress(op.getBias(), adaptor.getBias());
    call.addInt(op.getAccumulate(), 32);
    call.addRows(product->c);
    Type aType = elementOf(op.getA()), bType = elementOf(op.getB()), cType = elementOf(op.getC());
    bool narrowB = bType.isBF16(), narrowA = narrowB && aType.isBF16();
    bool narrowC = narrowA && cType.isBF16();
    Type wide = narrowC ? rewriter.getF32Type() : cType;
    if ((narrowB && !wide.isF32()) || (!narrowB && bType != wide) || (!narrowA && aType != wide) ||
        (op.getBias() && elementOf(op.getBias()) != wide))
      return op.emitOpError("expected operands of one type, or f32 with b, or a and b, or all "
                            "three in bf16");
    if (!wide.isF64()) {
      if (Value prepared = adaptor.getPrepared())
        call.add(prepared);
      else
        call.addNull();
      call.addInt(op.getPreparedOffset());
    }
    return emitTyped(call, op,
                     narrowC   ? "boa_gemm_bf16_bf16"
                     : narrowA ? "boa_gemm_bf16"
                               : "boa_gemm",
                     bType);
  }
};

struct PrepareToCall : ConvertOpToLLVMPattern<kernel::PrepareOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(kernel::PrepareOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LibraryCall call(rewriter, op);
    FailureOr<Matrix> b = call.matrix(op.getB(), adaptor.getB());
    if (failed(b))
      return failure();
    call.addInt(op.getTransposeB(), 32);
    call.addInt(op.getTransposeB() ? b->rows : b->columns);
    call.addInt(op.getTransposeB() ? b->columns : b->rows);
    call.addRows(*b);
    call.add(call.address(op.getForm(), adaptor.getForm()));
    return emitTyped(call, op, op.getNarrowA() ? "boa_gemm_prepare_bf16" : "boa_gemm_prepare",
                     elementOf(op.getB()));
  }
};

/// Passes attention or its gradient: batch, time, heads, kv_heads, d, causal, window, the starts of
/// documents, then the other operands in order. All of those but lse are matrices.
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
    call.addInt(op.getWindow().value_or(0));
    if (Value starts = op.getDocumentStarts()) {
      if (!isa<MemRefType>(starts.getType()) ||
          !cast<MemRefType>(starts.getType()).getLayout().isIdentity())
        return op.emitOpError("expected starts of documents without gaps");
      call.addAddress(starts, adaptor.getDocumentStarts());
    } else {
      call.addNull();
    }
    Type element = type.getElementType();
    Type sum = element.isBF16() ? rewriter.getF32Type() : element;
    for (auto [operand, descriptor] : llvm::zip(op->getOperands(), adaptor.getOperands())) {
      if (operand == op.getDocumentStarts())
        continue;
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
    return emitTyped(call, op, grad ? "boa_attention_grad" : "boa_attention", element);
  }
};

/// Passes rows, context, heads, kv_heads, d, window, then the operands.
struct CachedAttentionToCall : ConvertOpToLLVMPattern<kernel::CachedAttentionOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(kernel::CachedAttentionOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LibraryCall call(rewriter, op);
    auto type = cast<MemRefType>(op.getQ().getType());
    call.addInt(type.getDimSize(1));
    call.addInt(cast<MemRefType>(op.getKeys().getType()).getDimSize(1));
    call.addInt(op.getHeads());
    call.addInt(op.getKvHeads());
    call.addInt(type.getDimSize(2) / op.getHeads());
    call.addInt(op.getWindow().value_or(0));
    call.add(call.address(op.getPositions(), adaptor.getPositions()));
    Type element = type.getElementType();
    for (auto [operand, descriptor] : llvm::zip(op->getOperands(), adaptor.getOperands())) {
      if (operand == op.getPositions())
        continue;
      if (elementOf(operand) != element)
        return op.emitOpError("expected operands of one type");
      FailureOr<Matrix> matrix = call.matrix(operand, descriptor);
      if (failed(matrix))
        return failure();
      call.addRows(*matrix);
    }
    return emitTyped(call, op, "boa_cached_attention", element);
  }
};

struct CpuConvertKernelToLLVM : boa::impl::CpuConvertKernelToLLVMBase<CpuConvertKernelToLLVM> {
  void runOnOperation() override {
    auto addCalls = [](const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
      patterns.add<GemmToCall, PrepareToCall, AttentionToCall<kernel::AttentionOp>,
                   AttentionToCall<kernel::AttentionGradOp>, CachedAttentionToCall>(converter);
    };
    if (failed(convertKernelsToLLVM(getOperation(), addCalls)))
      return signalPassFailure();
    getOperation().walk([](LLVM::BrOp branch) {
      if (Attribute annotation = branch->removeDiscardableAttr(kLoopAnnotationAttr))
        branch.setLoopAnnotationAttr(cast<LLVM::LoopAnnotationAttr>(annotation));
    });
  }
};

} // namespace
