//===- OutlineKernels.cpp - --boa-outline-kernels -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage's function becomes a boa.kernel: every argument and result is a place in
// one of the launch's buffers (boa.buffer, boa.offset in bytes). Gradients of
// parameters and of shared results become accumulators: an argument tied to the result
// (boa.result), so that a matrix product can add in place. Caches are tied in the same way. Weights
// stored as bf16 are widened at the top. Functions that nothing launches are dropped.
//
//===----------------------------------------------------------------------===//
#include "dialect/CallLayout.h"
#include "dialect/Config.h"
#include "passes/Passes.h"

#include "llvm/ADT/StringSet.h"

#include <map>

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
    placeInputs();
    DictionaryAttr costs = countCosts();
    placeOutputs();
    if (bf16)
      widenWeights();
    KernelOp::replace(func, contents(layout.inputs, bf16), contents(layout.updates()),
                      contents(layout.writes()))
        .setCostsAttr(costs);
  }

private:
  /// The format of an op's first operand: f32 if that is of none. f8E4M3FN is of the format f8.
  static NumberFormat formatOf(Operation *op) {
    std::string type;
    if (op->getNumOperands() > 0)
      llvm::raw_string_ostream(type) << getElementTypeOrSelf(op->getOperand(0));
    for (const std::string &word : SplitWords(WordList(NumberFormat())))
      if (StringRef(type).starts_with(word))
        return *ParseWord<NumberFormat>(word);
    return NumberFormat::f32;
  }
  /// Whether an op rounds a weight that is stored so: the kernel reads the weight itself.
  bool isStored(Operation *op) {
    auto cast = dyn_cast<CastOp>(op);
    auto weight = cast ? dyn_cast<BlockArgument>(cast.getX()) : BlockArgument();
    return bf16 && weight && weight.getOwner() == &func.getBody().front() &&
           llvm::is_contained(weights, weight.getArgNumber()) &&
           getElementTypeOrSelf(cast.getY()).isBF16();
  }
  /// Adds up the costs of ops, by format.
  DictionaryAttr countCosts() {
    struct Cost {
      double flops = 0, bytes = 0, products = 0, attention = 0, elementwise = 0;
    };
    std::map<NumberFormat, Cost> costs;
    func.walk([&](CostOpInterface op) {
      if (isStored(op))
        return;
      Cost &cost = costs[formatOf(op)];
      cost.flops += op.getFlops();
      cost.bytes += op.getBytes();
      if (op->hasTrait<MatrixProduct>())
        cost.products += op.getFlops();
      else if (op->hasTrait<AttentionProduct>())
        cost.attention += op.getFlops();
      else
        cost.elementwise += op.getBytes();
    });
    auto whole = [](double cost) { return int64_t(std::min(cost, 0x1p62)); };
    NamedAttrList all;
    for (auto [format, cost] : costs)
      all.set(WordOf(format),
              CostAttr::get(func.getContext(), whole(cost.flops), whole(cost.bytes),
                            whole(cost.products), whole(cost.attention), whole(cost.elementwise)));
    return all.getDictionary(func.getContext());
  }
  static int64_t bytesOf(Type type) {
    return cast<RankedTensorType>(type).getElementTypeBitWidth() / 8;
  }
  DictionaryAttr place(int32_t buffer, int64_t offset) {
    return builder.getDictionaryAttr(
        {builder.getNamedAttr(kBufferAttr, builder.getI32IntegerAttr(buffer)),
         builder.getNamedAttr(kOffsetAttr, builder.getI64IntegerAttr(offset))});
  }

  /// The contents of some buffers: weights as they are stored.
  SmallVector<Type> contents(ArrayRef<CallSlot> slots, bool narrow = false) {
    return llvm::map_to_vector(slots, [&](const CallSlot &slot) -> Type {
      const bool isWeight = slot.kind == CallSlot::Kind::group;
      return narrow && isWeight ? RankedTensorType::get(slot.type.getShape(), builder.getBF16Type())
                                : slot.type;
    });
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

struct OutlineKernels : boa::impl::OutlineKernelsBase<OutlineKernels> {
  using OutlineKernelsBase::OutlineKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringSet<> launched;
    WalkResult walked = module.walk([&](LaunchOp launch) {
      auto func = module.lookupSymbol<func::FuncOp>(launch.getKernel());
      if (!func || !func.getBody().hasOneBlock())
        return WalkResult(launch.emitOpError("expected a function of one block named @")
                          << launch.getKernel());
      launched.insert(launch.getKernel());
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    bool bf16 = Config(module).train.weights == WeightType::bf16;
    for (Operation &op : llvm::make_early_inc_range(module.getOps()))
      if (isa<InputOp, StageOp>(op))
        op.erase();
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
