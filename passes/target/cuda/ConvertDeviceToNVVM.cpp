//===- ConvertDeviceToNVVM.cpp - The device's functions to NVVM -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes control flow in blocks and math that is expanded. Upstream's patterns in one
// conversion of our own: upstream's pass refuses the intrinsics of LLVM that PTX has as
// instructions (fma, roundeven, sqrt) and calls CUDA's library for them instead. A
// program has no such library: math without an instruction is refused.
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/CudaPasses.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/LoweringOptions.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

namespace boa {
#define GEN_PASS_DEF_CUDACONVERTDEVICETONVVM
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;

namespace {

/// Whether PTX has an instruction for the op, or a few. For powers of 2 it has one in f32 alone.
bool isInstruction(Operation *op) {
  if (isa<math::Exp2Op>(op))
    return op->getResult(0).getType().isF32();
  return isa<math::AbsFOp, math::CeilOp, math::CopySignOp, math::FloorOp, math::FmaOp,
             math::RoundEvenOp, math::RsqrtOp, math::SqrtOp, math::TruncOp>(op);
}

/// Converts a power of 2 to one instruction, since results below the normal numbers are zero.
struct PowerOfTwoToPTX : OpConversionPattern<math::Exp2Op> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(math::Exp2Op op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr("llvm.nvvm.ex2.approx.ftz.f32"),
        ValueRange(adaptor.getOperand()));
    return success();
  }
};

struct CudaConvertDeviceToNVVM : boa::impl::CudaConvertDeviceToNVVMBase<CudaConvertDeviceToNVVM> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    WalkResult walked = getOperation().walk([](Operation *op) {
      if (!isa_and_present<math::MathDialect>(op->getDialect()) || isInstruction(op))
        return WalkResult::advance();
      op->emitOpError("has no PTX instruction, and --kernel-expand-math does not expand it: an "
                      "optimizer may have it on the host (update = host)");
      return WalkResult::interrupt();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    LowerToLLVMOptions options(context, DataLayout(getOperation()));
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    configureGpuToNVVMTypeConverter(converter);
    converter.addConversion([](nvgpu::DeviceAsyncTokenType token) -> Type {
      return IntegerType::get(token.getContext(), 32);
    });

    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    // Before the library's.
    populateMathToLLVMConversionPatterns(converter, patterns, /*approximateLog1p=*/true,
                                         /*benefit=*/2);
    patterns.add<PowerOfTwoToPTX>(converter, context, /*benefit=*/3);
    populateGpuToNVVMConversionPatterns(converter, patterns);
    populateNVGPUToNVVMConversionPatterns(converter, patterns);

    ConversionTarget target(*context);
    target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
    target.addIllegalDialect<arith::ArithDialect, cf::ControlFlowDialect, gpu::GPUDialect,
                             math::MathDialect, memref::MemRefDialect, nvgpu::NVGPUDialect,
                             vector::VectorDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
