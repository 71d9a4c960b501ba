//===- OfferAttention.cpp - Attention to a library, where it takes it -----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which libraries a machine has is known where the program runs: it has both. Offered is
// what cuDNN may have kernels for: bf16, heads of whole 16 bytes, rows evenly apart, no window
// and no documents, gradients of which at least one head fits its scratch. Warns of attention in
// bf16 that is not: it is slower. What else cuDNN wants, the runtime asks it. Assumes kernels on
// definite memory, and comes after all passes that take them to be straight lines.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/MemoryAccess.h"
#include "passes/target/cuda/CudaPasses.h"
#include "runtime/abi/cuda_calls.h"

namespace boa {
#define GEN_PASS_DEF_CUDAOFFERATTENTION
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// Whether the rows are in bf16, and those of all sequences evenly apart.
bool hasEvenRows(Value memref) {
  MemRefType type = memrefOf(memref);
  SmallVector<int64_t> strides;
  int64_t offset;
  return type.getElementType().isBF16() && type.hasStaticShape() && type.getRank() == 3 &&
         succeeded(type.getStridesAndOffset(strides, offset)) && strides[2] == 1 &&
         (type.getDimSize(0) == 1 || strides[0] == strides[1] * type.getDimSize(1));
}

struct CudaOfferAttention : boa::impl::CudaOfferAttentionBase<CudaOfferAttention> {
  void runOnOperation() override {
    for (Operation &op : llvm::make_early_inc_range(getOperation().getBody().front())) {
      if (auto forward = dyn_cast<kernel::AttentionOp>(op))
        offer(forward, BOA_CUDA_ATTENTION_SCRATCH);
      else if (auto grad = dyn_cast<kernel::AttentionGradOp>(op))
        offer(grad, boa_cuda_attention_grad_scratch(
                        memrefOf(grad.getQ()).getDimSize(0), memrefOf(grad.getQ()).getDimSize(1),
                        grad.getHeads(), grad.getKvHeads(), getColumns(grad)));
    }
  }

  /// The number of columns of a head.
  template <typename Op> static int64_t getColumns(Op op) {
    return memrefOf(op.getQ()).getShape().back() / static_cast<int64_t>(op.getHeads());
  }

  template <typename Op> static void offer(Op op, int64_t scratchBytes) {
    constexpr int64_t kElements = 8; // in 16 bytes
    bool isOffered = scratchBytes > 0 && getColumns(op) % kElements == 0 && !op.getWindow() &&
                     !op.getDocumentStarts() && memrefOf(op.getLse()).getElementType().isF32() &&
                     memrefOf(op.getLse()).getLayout().isIdentity();
    for (Value operand : op->getOperands())
      isOffered &= operand == op.getLse() || hasEvenRows(operand);
    if (!isOffered) {
      if (memrefOf(op.getQ()).getElementType().isBF16())
        warn(op, scratchBytes);
      return;
    }
    OpBuilder builder(op);
    Location loc = op.getLoc();
    Value scratch =
        memref::AllocOp::create(builder, loc, MemRefType::get({scratchBytes}, builder.getI8Type()),
                                builder.getI64IntegerAttr(BOA_CUDA_LIBRARY_ALIGNMENT));
    remark::passed(loc, kernelRemark("offer-attention")) << remark::metric("scratch", scratchBytes);
    Value isTaken = create(builder, op, scratch);
    Value isLeft = arith::XOrIOp::create(
        builder, loc, isTaken, arith::ConstantIntOp::create(builder, loc, true, /*width=*/1));
    auto left = scf::IfOp::create(builder, loc, isLeft);
    op->moveBefore(left.thenBlock(), left.thenBlock()->begin());
  }

  template <typename Op> static void warn(Op op, int64_t scratchBytes) {
    InFlightDiagnostic warning = op.emitWarning()
                                 << "cuDNN is not asked for this attention, which is slower by "
                                    "the program's own kernels: ";
    if (op.getWindow())
      warning << "it has a window";
    else if (op.getDocumentStarts())
      warning << "it is within documents, of which several share a sequence; with document_mask = "
                 "false it is across them";
    else if (getColumns(op) % 8 != 0)
      warning << "a head has " << getColumns(op) << " columns, which are not whole 16 bytes";
    else if (scratchBytes == 0)
      warning << "gradients of the scores of one head of keys take more than 2 GiB, or parts of "
                 "them are not aligned";
    else
      warning << "rows of its operands are not evenly apart";
  }

  static Value create(OpBuilder &builder, kernel::AttentionOp op, Value scratch) {
    return kernel::OfferAttentionOp::create(builder, op.getLoc(), builder.getI1Type(), op.getQ(),
                                            op.getK(), op.getV(), op.getY(), op.getLse(), scratch,
                                            op.getHeads(), op.getKvHeads(), op.getCausal());
  }
  static Value create(OpBuilder &builder, kernel::AttentionGradOp op, Value scratch) {
    Value delta = memref::AllocOp::create(
        builder, op.getLoc(),
        MemRefType::get(memrefOf(op.getLse()).getShape(), builder.getF32Type()));
    return kernel::OfferAttentionGradOp::create(
        builder, op.getLoc(), builder.getI1Type(), op.getQ(), op.getK(), op.getV(), op.getY(),
        op.getLse(), op.getDy(), op.getDq(), op.getDk(), op.getDv(), delta, scratch, op.getHeads(),
        op.getKvHeads(), op.getCausal());
  }
};

} // namespace
