//===- OutlineKernels.cpp - --boa-outline-kernels -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage's function becomes a kernel: every argument and result is a place in
// one of the launch's buffers (boa.buffer, boa.offset in bytes). Gradients of
// parameters and of side inputs become accumulators: an argument tied to the result
// (boa.result), so that a matrix product can add in place. Caches are tied in the same way. Weights
// stored as bf16 are widened at the top. Functions that nothing launches are dropped.
//
//===----------------------------------------------------------------------===//
#include "dialect/CallLayout.h"
#include "dialect/Config.h"
#include "passes/Passes.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "passes/Passes.h.inc"

namespace {

class Outliner {
public:
  Outliner(func::FuncOp func, bool bf16)
      : func(func), bf16(bf16), builder(func.getContext()), layout(CallLayout::get(func)) {}

  void run() {
    countCosts();
    placeInputs();
    placeOutputs();
    if (bf16)
      widenWeights();
    func->setAttr(kKernelAttr, builder.getUnitAttr());
    func->setAttr(kContentsAttr, contents());
    func->setAttr(kBuffersAttr, builder.getDenseI32ArrayAttr({int32_t(layout.inputs.size()),
                                                              int32_t(layout.updates().size()),
                                                              int32_t(layout.writes().size())}));
  }

private:
  void countCosts() {
    double flops = 0, products[2] = {}, attention[2] = {}, bytes = 0, elementwise[2] = {};
    func.walk([&](CostOpInterface op) {
      flops += op.getFlops();
      bytes += op.getBytes();
      if (op->hasTrait<MatrixProduct>())
        products[isOfBf16(op)] += op.getFlops();
      else if (op->hasTrait<AttentionProduct>())
        attention[isOfBf16(op)] += op.getFlops();
      else
        elementwise[isOfBf16(op)] += op.getBytes();
    });
    const std::pair<StringRef, double> costs[] = {{kFlopsAttr, flops},
                                                  {kProductFlopsAttr, products[0]},
                                                  {kProductFlopsBf16Attr, products[1]},
                                                  {kAttentionFlopsAttr, attention[0]},
                                                  {kAttentionFlopsBf16Attr, attention[1]},
                                                  {kBytesAttr, bytes},
                                                  {kElementwiseBytesAttr, elementwise[0]},
                                                  {kElementwiseBytesBf16Attr, elementwise[1]}};
    for (auto [name, cost] : costs)
      func->setAttr(name, builder.getF64FloatAttr(cost));
  }
  static bool isOfBf16(Operation *op) {
    return op->getNumOperands() > 0 && getElementTypeOrSelf(op->getOperand(0)).isBF16();
  }
  static int64_t bytesOf(Type type) {
    return cast<RankedTensorType>(type).getElementTypeBitWidth() / 8;
  }
  DictionaryAttr place(int32_t buffer, int64_t offset) {
    return builder.getDictionaryAttr(
        {builder.getNamedAttr(kBufferAttr, builder.getI32IntegerAttr(buffer)),
         builder.getNamedAttr(kOffsetAttr, builder.getI64IntegerAttr(offset))});
  }

  /// The contents of the buffers: weights as they are stored.
  ArrayAttr contents() {
    SmallVector<Type> types;
    for (const CallSlot &slot : layout.inputs) {
      bool narrow = bf16 && slot.kind == CallSlot::Kind::group;
      types.push_back(narrow ? RankedTensorType::get(slot.type.getShape(), builder.getBF16Type())
                             : slot.type);
    }
    for (const CallSlot &slot : llvm::concat<CallSlot>(layout.updates(), layout.writes()))
      types.push_back(slot.type);
    return builder.getTypeArrayAttr(types);
  }

  void placeInputs() {
    for (auto [buffer, slot] : llvm::enumerate(layout.inputs))
      for (auto [position, offset] : llvm::zip(slot.positions, slot.offsets)) {
        bool weight = slot.kind == CallSlot::Kind::group;
        if (weight)
          weights.push_back(position);
        int64_t bytes = weight && bf16 ? 2 : bytesOf(func.getArgumentTypes()[position]);
        func.setArgAttrs(position, place(buffer, offset * bytes));
      }
  }

  /// Places the buffers after the inputs: accumulators, then results written whole.
  void placeOutputs() {
    int32_t buffer = layout.inputs.size();
    for (bool updates : {true, false})
      for (const CallSlot &slot : updates ? layout.updates() : layout.writes()) {
        for (auto [position, offset] : llvm::zip(slot.positions, slot.offsets)) {
          int64_t bytes = offset * bytesOf(func.getResultTypes()[position]);
          const auto cache = func.getResultAttrOfType<IntegerAttr>(position, kCacheAttr);
          func.setResultAttrs(position, place(buffer, bytes));
          if (cache)
            bindCache(position, unsigned(cache.getInt()), buffer, bytes);
          else if (updates)
            accumulate(position, buffer, bytes);
        }
        ++buffer;
      }
  }

  /// Binds a cache: it is an argument already, which the function updates.
  void bindCache(unsigned result, unsigned argument, int32_t buffer, int64_t offset) {
    NamedAttrList attrs(place(buffer, offset));
    attrs.set(kResultAttr, builder.getI32IntegerAttr(result));
    func.setArgAttrs(argument, attrs.getDictionary(func.getContext()));
  }

  /// Makes a result an accumulator: result = accumulator + gradient.
  void accumulate(unsigned result, int32_t buffer, int64_t offset) {
    Operation *terminator = func.getBody().front().getTerminator();
    Value gradient = terminator->getOperand(result);
    unsigned index = func.getNumArguments();
    NamedAttrList attrs(place(buffer, offset));
    attrs.set(kResultAttr, builder.getI32IntegerAttr(result));
    (void)func.insertArgument(index, gradient.getType(), attrs.getDictionary(func.getContext()),
                              gradient.getLoc());
    OpBuilder at(terminator);
    terminator->setOperand(result,
                           AddOp::create(at, gradient.getLoc(), func.getArgument(index), gradient));
  }

  void widenWeights() {
    OpBuilder at = OpBuilder::atBlockBegin(&func.getBody().front());
    for (unsigned position : weights) {
      BlockArgument arg = func.getArgument(position);
      auto type = cast<RankedTensorType>(arg.getType());
      auto cast = CastOp::create(at, arg.getLoc(), type, arg);
      arg.replaceAllUsesExcept(cast.getY(), cast);
      arg.setType(RankedTensorType::get(type.getShape(), at.getBF16Type()));
    }
    func.setFunctionType(
        builder.getFunctionType(func.getBody().front().getArgumentTypes(), func.getResultTypes()));
  }

  func::FuncOp func;
  bool bf16;
  Builder builder;
  CallLayout layout;
  SmallVector<unsigned> weights;
};

/// Whether the launch has a buffer for each slot of the function, in its order.
bool matchesLaunch(func::FuncOp func, LaunchOp launch) {
  CallLayout layout = CallLayout::get(func);
  return launch.getReads().size() == layout.inputs.size() &&
         launch.getUpdates().size() == layout.updates().size() &&
         launch.getWrites().size() == layout.writes().size();
}

struct OutlineKernels : boa::impl::OutlineKernelsBase<OutlineKernels> {
  using OutlineKernelsBase::OutlineKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringSet<> launched;
    WalkResult walked = module.walk([&](LaunchOp launch) {
      auto func = module.lookupSymbol<func::FuncOp>(launch.getKernel());
      if (func && func.getBody().hasOneBlock() && matchesLaunch(func, launch)) {
        launched.insert(launch.getKernel());
        return WalkResult::advance();
      }
      launch.emitOpError("expected a function @")
          << launch.getKernel() << " of " << launch.getReads().size() << " operands, "
          << launch.getUpdates().size() << " gradients and " << launch.getWrites().size()
          << " other results";
      return WalkResult::interrupt();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    bool bf16 = Config(module).train.weights == WeightType::bf16;
    for (StageOp stage : llvm::make_early_inc_range(module.getOps<StageOp>()))
      stage.erase();
    for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (launched.contains(func.getName()))
        Outliner(func, bf16).run();
      else
        func.erase();
    }
  }
};

} // namespace
} // namespace boa
