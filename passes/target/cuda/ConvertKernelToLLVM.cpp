//===- ConvertKernelToLLVM.cpp - The host's half of kernels to LLVM -------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes kernels of launches, of products that cuBLASLt takes (--cuda-legalize-products)
// and of offers, on which alone it depends what is launched. What is in the device's module is in
// the LLVM dialect already, or, emulated, converted with the rest.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/CodeBuilder.h"
#include "passes/kernels/KernelToLLVM.h"
#include "passes/target/cuda/CudaPasses.h"
#include "runtime/abi/cuda_calls.h"

#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"

namespace boa {
#define GEN_PASS_DEF_CUDACONVERTKERNELTOLLVM
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// The kernel's third argument.
Value getQueue(Operation *op) { return op->getParentRegion()->getArgument(2); }

struct GemmToCall : ConvertOpToLLVMPattern<kernel::GemmOp> {
  GemmToCall(const LLVMTypeConverter &converter, bool tf32)
      : ConvertOpToLLVMPattern(converter), tf32(tf32) {}
  LogicalResult matchAndRewrite(kernel::GemmOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type element = elementOf(op.getA()), result = elementOf(op.getC());
    bool narrow = element.isBF16();
    if (elementOf(op.getB()) != element || (!narrow && !element.isF32()) ||
        (!(narrow && result.isBF16()) && !result.isF32()) ||
        (op.getBias() && elementOf(op.getBias()) != result))
      return op.emitOpError("expected a and b in f32 or bf16, the result in f32, or bf16 as they "
                            "are, and a bias of its type");
    LibraryCall call(rewriter, op);
    const Matrix a = call.matrix(op.getA(), adaptor.getA());
    const Matrix b = call.matrix(op.getB(), adaptor.getB());
    const Matrix c = call.matrix(op.getC(), adaptor.getC());
    Matrix addend;
    if (op.getAccumulate())
      addend = c;
    else if (op.getAddend())
      addend = call.matrix(op.getAddend(), adaptor.getAddend());
    if (addend.address && addend.stride != c.stride)
      return op.emitOpError("expected the addend and c to have one stride of rows");
    call.add(getQueue(op));
    call.addSizes(op, a, b);
    call.addInt(narrow ? BOA_CUDA_BF16 : tf32 ? BOA_CUDA_TF32 : BOA_CUDA_F32, 32);
    call.addRows(a);
    call.addRows(b);
    call.addAddress(op.getBias(), adaptor.getBias());
    if (addend.address)
      call.add(addend.address);
    else
      call.addNull();
    call.addInt(result.isBF16() ? BOA_CUDA_BF16 : BOA_CUDA_F32, 32);
    call.addRows(c);
    call.addAddress(op.getScratch(), adaptor.getScratch());
    return call.emit("boa_cuda_gemm");
  }

  const bool tf32;
};

template <typename Op> struct OfferToCall : ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    constexpr bool isGradient = std::is_same_v<Op, kernel::OfferAttentionGradOp>;
    auto isApart = [&](Value operand) {
      if constexpr (isGradient)
        if (operand == op.getDelta())
          return true;
      return operand == op.getLse() || operand == op.getScratch();
    };
    LibraryCall call(rewriter, op);
    call.add(getQueue(op));
    call.addInt(op.getCausal(), 32);
    for (int64_t extent : memrefOf(op.getQ()).getShape().take_front(2))
      call.addInt(extent);
    call.addHeads(op);
    for (auto [operand, descriptor] : llvm::zip(op->getOperands(), adaptor.getOperands()))
      if (isApart(operand))
        call.addAddress(operand, descriptor);
      else
        call.addRows(operand, descriptor);
    call.addInt(memrefOf(op.getScratch()).getNumElements());
    return call.emit(isGradient ? "boa_cuda_attention_grad" : "boa_cuda_attention");
  }
};

struct LaunchToCall : ConvertOpToLLVMPattern<kernel::LaunchFuncOp> {
  LaunchToCall(const LLVMTypeConverter &converter, const llvm::StringMap<int64_t> &numbers)
      : ConvertOpToLLVMPattern(converter), numbers(numbers) {}
  LogicalResult matchAndRewrite(kernel::LaunchFuncOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto number = numbers.find(op.getFunction().getLeafReference());
    if (number == numbers.end())
      return op.emitOpError("expected a function of the device's module, not ") << op.getFunction();
    LibraryCall call(rewriter, op);
    call.add(getQueue(op));
    call.addInt(number->second);
    for (int64_t extent : llvm::concat<const int64_t>(op.getGrid(), op.getBlock()))
      call.addInt(extent);
    call.addInt(op.getSharedBytes());
    call.addInt(op.getOperands().size());
    CodeBuilder b(rewriter, op.getLoc());
    Value list = b.makeList(op.getOperands().size());
    for (auto [i, memref, descriptor] : llvm::enumerate(op.getOperands(), adaptor.getOperands())) {
      Value slot = b.at(list, b.pointer(), int32_t(i));
      LLVM::StoreOp::create(b, call.address(memref, descriptor), slot);
    }
    call.add(list);
    return call.emit("boa_cuda_launch");
  }

  const llvm::StringMap<int64_t> &numbers;
};

struct CudaConvertKernelToLLVM : boa::impl::CudaConvertKernelToLLVMBase<CudaConvertKernelToLLVM> {
  using CudaConvertKernelToLLVMBase::CudaConvertKernelToLLVMBase;

  void runOnOperation() override {
    llvm::StringMap<int64_t> numbers;
    if (auto device = getOperation().lookupSymbol<gpu::GPUModuleOp>(kDeviceModule)) {
      for (auto func : device.getOps<FunctionOpInterface>())
        if (!func.isExternal())
          numbers.try_emplace(func.getName(), numbers.size());
      if (dropDevice)
        device.erase();
    }
    auto addCalls = [&](const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
      populateVectorToLLVMConversionPatterns(converter, patterns);
      patterns.add<GemmToCall>(converter, tf32);
      patterns
          .add<OfferToCall<kernel::OfferAttentionOp>, OfferToCall<kernel::OfferAttentionGradOp>>(
              converter);
      patterns.add<LaunchToCall>(converter, numbers);
    };
    if (failed(convertKernelsToLLVM(getOperation(), addCalls)))
      signalPassFailure();
  }
};

} // namespace
