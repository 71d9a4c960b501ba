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
  return call.emit(name + (element.isF32() ? "_f32" : element.isF64() ? "_f64" : "_bf16"));
}

struct GemmToCall : ConvertOpToLLVMPattern<kernel::GemmOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(kernel::GemmOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getAddend())
      return op.emitOpError("expected c to be the addend");
    LibraryCall call(rewriter, op);
    const Matrix a = call.matrix(op.getA(), adaptor.getA());
    const Matrix b = call.matrix(op.getB(), adaptor.getB());
    const Matrix c = call.matrix(op.getC(), adaptor.getC());
    call.addSizes(op, a, b);
    call.addRows(a);
    call.addRows(b);
    call.addAddress(op.getBias(), adaptor.getBias());
    call.addInt(op.getAccumulate(), 32);
    call.addRows(c);
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
    const Matrix b = call.matrix(op.getB(), adaptor.getB());
    call.addInt(op.getTransposeB(), 32);
    call.addInt(op.getTransposeB() ? b.rows : b.columns);
    call.addInt(op.getTransposeB() ? b.columns : b.rows);
    call.addRows(b);
    call.addAddress(op.getForm(), adaptor.getForm());
    return emitTyped(call, op, op.getNarrowA() ? "boa_gemm_prepare_bf16" : "boa_gemm_prepare",
                     elementOf(op.getB()));
  }
};

/// Passes the operands but `apart` in order, and emits the call. All of those but lse are matrices.
template <typename Op>
LogicalResult emitAttention(LibraryCall &call, Op op, ValueRange descriptors, Value apart,
                            Value lse, StringRef name) {
  Type element = elementOf(op.getQ());
  Type sum = element.isBF16() ? Float32Type::get(op.getContext()) : element;
  for (auto [operand, descriptor] : llvm::zip(op->getOperands(), descriptors)) {
    if (operand == apart)
      continue;
    if (elementOf(operand) != (operand == lse ? sum : element))
      return op.emitOpError("expected operands of one type, and lse in that of sums");
    if (operand == lse)
      call.addAddress(operand, descriptor);
    else
      call.addRows(operand, descriptor);
  }
  return emitTyped(call, op, name, element);
}

/// Passes attention or its gradient: batch, time, heads, kv_heads, d, causal, window, the starts of
/// documents, then the other operands.
template <typename Op> struct AttentionToCall : ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LibraryCall call(rewriter, op);
    for (int64_t extent : memrefOf(op.getQ()).getShape().take_front(2))
      call.addInt(extent);
    call.addHeads(op);
    call.addInt(op.getCausal(), 32);
    call.addInt(op.getWindow().value_or(0));
    Value starts = op.getDocumentStarts();
    auto type = starts ? dyn_cast<MemRefType>(starts.getType()) : MemRefType();
    if (starts && (!type || !type.getLayout().isIdentity()))
      return op.emitOpError("expected starts of documents without gaps");
    call.addAddress(starts, adaptor.getDocumentStarts());
    bool grad = std::is_same_v<Op, kernel::AttentionGradOp>;
    return emitAttention(call, op, adaptor.getOperands(), starts, op.getLse(),
                         grad ? "boa_attention_grad" : "boa_attention");
  }
};

/// Passes rows, context, heads, kv_heads, d, window, the positions, then the other operands.
struct CachedAttentionToCall : ConvertOpToLLVMPattern<kernel::CachedAttentionOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(kernel::CachedAttentionOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LibraryCall call(rewriter, op);
    call.addInt(memrefOf(op.getQ()).getDimSize(1));
    call.addInt(memrefOf(op.getKeys()).getDimSize(1));
    call.addHeads(op);
    call.addInt(op.getWindow().value_or(0));
    call.addAddress(op.getPositions(), adaptor.getPositions());
    return emitAttention(call, op, adaptor.getOperands(), op.getPositions(), /*lse=*/{},
                         "boa_cached_attention");
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
