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

#include "passes/kernels/KernelToLLVM.h"
#include "passes/target/cuda/CudaPasses.h"
#include "runtime/abi/cuda_calls.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
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
    FailureOr<Product> product = call.product(op, adaptor);
    if (failed(product))
      return failure();
    Value addend = op.getAccumulate() ? call.address(op.getC(), adaptor.getC()) : nullptr;
    if (op.getAddend()) {
      FailureOr<Matrix> matrix = call.matrix(op.getAddend(), adaptor.getAddend());
      if (failed(matrix))
        return failure();
      if (matrix->stride != product->c.stride)
        return op.emitOpError("expected the addend and c to have one stride of rows");
      addend = matrix->address;
    }
    call.add(getQueue(op));
    call.addSizes(op, *product);
    call.addInt(narrow ? BOA_CUDA_BF16 : tf32 ? BOA_CUDA_TF32 : BOA_CUDA_F32, 32);
    call.addRows(product->a);
    call.addRows(product->b);
    call.addAddress(op.getBias(), adaptor.getBias());
    if (addend)
      call.add(addend);
    else
      call.addNull();
    call.addInt(result.isBF16() ? BOA_CUDA_BF16 : BOA_CUDA_F32, 32);
    call.addRows(product->c);
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
    auto q = cast<MemRefType>(op.getQ().getType());
    LibraryCall call(rewriter, op);
    call.add(getQueue(op));
    call.addInt(op.getCausal(), 32);
    call.addInt(q.getDimSize(0));
    call.addInt(q.getDimSize(1));
    call.addInt(op.getHeads());
    call.addInt(op.getKvHeads());
    call.addInt(q.getDimSize(2) / static_cast<int64_t>(op.getHeads()));
    bool areRows = true;
    auto addRows = [&](Value memref, Value descriptor) {
      FailureOr<Matrix> rows = call.matrix(memref, descriptor);
      areRows &= succeeded(rows);
      if (succeeded(rows))
        call.addRows(*rows);
    };
    addRows(op.getQ(), adaptor.getQ());
    addRows(op.getK(), adaptor.getK());
    addRows(op.getV(), adaptor.getV());
    addRows(op.getY(), adaptor.getY());
    call.add(call.address(op.getLse(), adaptor.getLse()));
    if constexpr (isGradient) {
      addRows(op.getDy(), adaptor.getDy());
      addRows(op.getDq(), adaptor.getDq());
      addRows(op.getDk(), adaptor.getDk());
      addRows(op.getDv(), adaptor.getDv());
      call.add(call.address(op.getDelta(), adaptor.getDelta()));
    }
    call.add(call.address(op.getScratch(), adaptor.getScratch()));
    call.addInt(cast<MemRefType>(op.getScratch().getType()).getNumElements());
    if (!areRows)
      return failure();
    return call.emitCondition(isGradient ? "boa_cuda_attention_grad" : "boa_cuda_attention");
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
    Location loc = op.getLoc();
    Type pointer = getPtrType();
    LibraryCall call(rewriter, op);
    call.add(getQueue(op));
    call.addInt(number->second);
    for (int64_t extent : llvm::concat<const int64_t>(op.getGrid(), op.getBlock()))
      call.addInt(extent);
    call.addInt(op.getSharedBytes());
    call.addInt(op.getOperands().size());
    Value size = LLVM::ConstantOp::create(rewriter, loc, rewriter.getI64Type(),
                                          rewriter.getI64IntegerAttr(op.getOperands().size()));
    Value array = LLVM::AllocaOp::create(rewriter, loc, pointer, pointer, size);
    for (auto [i, memref, descriptor] : llvm::enumerate(op.getOperands(), adaptor.getOperands())) {
      Value slot = LLVM::GEPOp::create(rewriter, loc, pointer, pointer, array,
                                       ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(i)));
      LLVM::StoreOp::create(rewriter, loc, call.address(memref, descriptor), slot);
    }
    call.add(array);
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
