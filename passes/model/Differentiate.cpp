//===- Differentiate.cpp - --boa-differentiate ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reverse mode on straight-line tensor code: clone the forward body, walk it
// backward, ask each op for its VJP, add up the gradients of a value that is used
// more than once. A frozen parameter has no gradient, and what only such a gradient
// needs goes as dead code. Assumes a verified model. Refuses an op that is not
// differentiable, at the op's own location.
//
//===----------------------------------------------------------------------===//
#include "dialect/CallLayout.h"
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/model/Activations.h"
#include "passes/model/Stages.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Passes.h.inc"

namespace {

bool isFloatTensor(Value value) {
  return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType());
}

/// A result of a new function: its value and its attribute.
struct Result {
  Value value;
  NamedAttrList attrs;
};

/// Builds the backward function of one stage.
class StageDifferentiator {
public:
  /// `name` is that of the function to build. `saves` says that it takes the values that the
  /// forward pass saved.
  StageDifferentiator(const Stage &stage, func::FuncOp forward, StageFunction name, bool saves)
      : of(stage), stage(stage.name), forward(forward), name(name), saves(saves) {}

  LogicalResult run() {
    isLast = of.last && forward.getNumResults() == 1 &&
             cast<RankedTensorType>(forward.getResultTypes()[0]).getRank() == 0;
    markSharedProducts(forward);
    createBackward();
    if (failed(differentiateBody()))
      return failure();
    returnGradients();
    if (saves && !isLast && failed(splitSaved()))
      return failure();
    dropActivationAttrs(backward);
    dropUnusedParams(backward);
    return success();
  }

private:
  /// Marks products in functions made of `forward`, which may have fewer uses of a product than it
  /// has.
  static void markSharedProducts(func::FuncOp forward) {
    forward.walk([](LinearOp product) {
      Value value = product.getY();
      while (value.hasOneUse() && isa<CastOp>(*value.user_begin()))
        value = (*value.user_begin())->getResult(0);
      if (!value.hasOneUse())
        product->setAttr(kSharedAttr, UnitAttr::get(product.getContext()));
    });
  }

  /// Creates @NAME_backward with the forward's arguments and the gradients of its results. Its body
  /// is a clone of the forward's.
  void createBackward() {
    OpBuilder builder(forward);
    builder.setInsertionPointAfter(forward);
    backward = cast<func::FuncOp>(builder.clone(*forward));
    backward.setName(getFunctionName(stage, name));
    outputs = llvm::to_vector(getReturned(backward));
    for (auto [result, value] : llvm::zip_equal(of.results, outputs))
      if (result.hasGradient)
        gradients.push_back({value, addArgument(value.getType(), {}, forward.getLoc())});
    backward.getBody().front().getTerminator()->erase();
  }

  BlockArgument addArgument(Type type, DictionaryAttr attrs, Location loc) {
    (void)backward.insertArgument(backward.getNumArguments(), type, attrs, loc);
    return backward.getArguments().back();
  }

  static OperandRange getReturned(func::FuncOp func) {
    return func.getBody().front().getTerminator()->getOperands();
  }

  static Value castTo(OpBuilder &builder, Type type, Value value) {
    return builder.createOrFold<CastOp>(value.getLoc(), type, value);
  }

  void accumulate(OpBuilder &builder, Value value, Value grad) {
    Value &sum = grads[value];
    if (sum && sum.getType() != grad.getType()) {
      Type wide = getSumType(value.getType());
      sum = castTo(builder, wide, sum);
      grad = castTo(builder, wide, grad);
    }
    sum = sum ? AddOp::create(builder, grad.getLoc(), sum, grad).getResult() : grad;
  }

  LogicalResult differentiateBody() {
    Block &block = backward.getBody().front();
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    OpBuilder builder = OpBuilder::atBlockEnd(&block);
    for (auto [value, gradient] : gradients)
      accumulate(builder, value, gradient);
    for (Operation *op : llvm::reverse(ops)) {
      SmallVector<Value> results;
      for (Value result : op->getResults()) {
        Value grad = grads.lookup(result);
        if (grad && !isa<CastOp>(op)) // which takes a sum as it is
          grad = castTo(builder, result.getType(), grad);
        results.push_back(grad);
      }
      if (llvm::none_of(results, [](Value grad) { return bool(grad); }) ||
          llvm::none_of(op->getOperands(), isFloatTensor)) // of integers there is no gradient
        continue;
      auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
      if (!differentiable)
        return op->emitOpError("is not differentiable");
      for (auto [number, grad] : llvm::enumerate(results))
        if (grad && !differentiable.usesGradientOf(number))
          return op->emitOpError("has no gradient of its result ")
                 << number << ", on which the loss depends";
      SmallVector<Value> operands;
      differentiable.buildVJP(builder, results, operands);
      for (auto [operand, grad] : llvm::zip(op->getOperands(), operands))
        if (grad && isFloatTensor(operand))
          accumulate(builder, operand, grad);
    }
    return success();
  }

  /// Whether an argument depends on anything that is trained.
  bool needsGradient(unsigned argument) {
    if (argument < of.inputs.size())
      return of.inputs[argument].hasGradient;
    auto param = forward.getArgAttrOfType<SymbolRefAttr>(argument, kParamAttr);
    auto group = SymbolTable::lookupNearestSymbolFrom<GroupOp>(forward, param.getRootReference());
    return !group || !group.getFrozen();
  }

  /// Returns (loss,) the gradients of the activations, those of the parameters. One that is added
  /// to those of other layers and stages is returned as a sum, behind the others: f32 for bf16.
  void returnGradients() {
    Block &block = backward.getBody().front();
    OpBuilder builder = OpBuilder::atBlockEnd(&block);
    SmallVector<Result> results, added, ofParams;
    if (isLast)
      results.push_back({outputs.front(), {}});
    for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
      Value arg = backward.getArgument(i);
      auto param = forward.getArgAttrOfType<SymbolRefAttr>(i, kParamAttr);
      if (!isFloatTensor(arg) || !needsGradient(i))
        continue;
      Value grad = grads.lookup(arg);
      if (!grad) // used by nothing: the gradient is zero
        grad = arith::ConstantOp::create(builder, arg.getLoc(), builder.getZeroAttr(arg.getType()));
      const bool isAdded = i < of.inputs.size() && !of.inputs[i].given;
      Result result{castTo(builder, isAdded ? getSumType(arg.getType()) : arg.getType(), grad), {}};
      if (param)
        result.attrs.set(kParamAttr, param);
      if (isAdded)
        result.attrs.set(kSumAttr, builder.getUnitAttr());
      (param ? ofParams : isAdded ? added : results).push_back(result);
    }
    results.append(added);
    results.append(ofParams);
    setResults(backward, builder, results);
    eraseDeadOps(block);
  }

  static void setResults(func::FuncOp func, OpBuilder &builder, ArrayRef<Result> results) {
    auto values = llvm::map_to_vector(results, [](const Result &result) { return result.value; });
    func::ReturnOp::create(builder, func.getLoc(), values);
    func.setFunctionType(
        builder.getFunctionType(func.getArgumentTypes(), ValueRange(values).getTypes()));
    func.setAllResultAttrs(llvm::map_to_vector(results, [&](const Result &result) {
      return result.attrs.getDictionary(func.getContext());
    }));
  }

  /// Cuts the body where forward ends: values that cross the cut are returned by
  /// @NAME_forward_saving and taken by the backward function, which then holds
  /// no forward op but those whose results the plan computes again.
  LogicalResult splitSaved() {
    Block &block = backward.getBody().front();
    llvm::SetVector<Operation *> dependsOnDy;
    for (auto [value, gradient] : gradients)
      getForwardSlice(gradient, &dependsOnDy);
    // Values that backward ops need, looking through those that are computed again, and the ops
    // whose plan they follow.
    llvm::MapVector<Value, Operation *> saved;
    SmallVector<Operation *> forwardOps;
    SmallVector<Value> work;
    for (Operation &op : block.without_terminator())
      if (dependsOnDy.contains(&op))
        llvm::append_range(work, op.getOperands());
      else
        forwardOps.push_back(&op);
    llvm::DenseSet<Operation *> keep;
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op || dependsOnDy.contains(op))
        continue;
      if (!isComputedAgain(op))
        saved.insert({value, op});
      else if (Operation *addend = getSavedAddend(op))
        saved.insert({value, addend});
      else if (keep.insert(op).second)
        llvm::append_range(work, op->getOperands());
    }
    SmallVector<Value> ordered;
    for (Operation *op : forwardOps)
      for (Value result : op->getResults())
        if (saved.contains(result))
          ordered.push_back(result);

    if (ordered.empty()) // the backward function needs none: nothing to store
      return success();
    SmallVector<NamedAttrList> marks;
    for (Value value : ordered)
      marks.push_back(getMark(saved.lookup(value)));
    createSavingForward(forwardOps, ordered, marks);
    for (auto [value, mark] : llvm::zip_equal(ordered, marks)) {
      const NamedAttribute attr(kSavedAttr, mark.get(kSavedAttr));
      Value arg = addArgument(value.getType(), DictionaryAttr::get(value.getContext(), attr),
                              value.getLoc());
      value.replaceUsesWithIf(arg, [&](OpOperand &use) {
        return dependsOnDy.contains(use.getOwner()) || keep.contains(use.getOwner());
      });
    }
    eraseDeadOps(block);
    return success();
  }

  /// The addend of a sum, to be saved by the plan, that nothing else uses; null if there is none.
  /// The sum is saved in its place: it is as large, and nothing needs the addend then. Moreover, a
  /// product that nothing else uses is accumulated into the other addend, whose bits differ from
  /// the bits of a product that is stored and then added. So is a sum of such products.
  static Operation *getSavedAddend(Operation *sum) {
    if (!isa<AddOp>(sum))
      return nullptr;
    for (Value operand : sum->getOperands()) {
      while (operand.hasOneUse() && operand.getDefiningOp<CastOp>())
        operand = operand.getDefiningOp()->getOperand(0);
      Operation *op = operand.getDefiningOp();
      if (!op || !operand.hasOneUse() ||
          getElementTypeOrSelf(operand) != getElementTypeOrSelf(sum->getResult(0)))
        continue;
      if (!isComputedAgain(op))
        return op;
      if (Operation *addend = getSavedAddend(op))
        return addend;
    }
    return nullptr;
  }

  /// The attributes of a value that is saved by the plan of `op`, among the results of
  /// @NAME_forward_saving. A value with a place of its own lies in a storage by its name.
  static NamedAttrList getMark(Operation *op) {
    Builder builder(op->getContext());
    NamedAttrList mark;
    if (Attribute place = getOwnPlace(op)) {
      mark.set(kSavedAttr, builder.getStringAttr(getActivationName(op)));
      mark.set(kPlaceAttr, place);
    } else {
      mark.set(kSavedAttr, builder.getUnitAttr());
    }
    return mark;
  }

  /// Creates @NAME_forward_saving: the forward function that also returns `saved`.
  void createSavingForward(ArrayRef<Operation *> forwardOps, ArrayRef<Value> saved,
                           ArrayRef<NamedAttrList> marks) {
    OpBuilder builder(backward);
    auto func = func::FuncOp::create(builder, forward.getLoc(),
                                     getFunctionName(stage, StageFunction::forward_saving),
                                     builder.getFunctionType(forward.getArgumentTypes(), {}));
    Block *block = func.addEntryBlock();
    func.setArgAttrsAttr(forward.getArgAttrsAttr());
    IRMapping map;
    map.map(forward.getArguments(), block->getArguments());
    map.map(backward.getArguments().take_front(block->getNumArguments()), block->getArguments());
    builder.setInsertionPointToEnd(block);
    for (Operation *op : forwardOps)
      builder.clone(*op, map);
    // Ops after the last saved value (the final residual add) were dead in the
    // backward function: clone what is still missing from the forward.
    SmallVector<Result> results;
    for (Value value : getReturned(forward))
      results.push_back({cloneMissing(builder, value, map), {}});
    for (auto [value, mark] : llvm::zip_equal(saved, marks))
      results.push_back({map.lookup(value), mark});
    setResults(func, builder, results);
    dropActivationAttrs(func);
    IRRewriter rewriter(func.getContext());
    DominanceInfo dominance(func);
    eliminateCommonSubExpressions(rewriter, dominance, func);
  }

  /// Clones the forward's `value` and what it needs into the builder's block.
  Value cloneMissing(OpBuilder &builder, Value value, IRMapping &map) {
    if (Value known = map.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands())
      cloneMissing(builder, operand, map);
    builder.clone(*op, map);
    return map.lookup(value);
  }

  static void dropUnusedParams(func::FuncOp func) {
    llvm::BitVector unused(func.getNumArguments());
    for (BlockArgument arg : func.getArguments())
      if (arg.use_empty() && func.getArgAttr(arg.getArgNumber(), kParamAttr))
        unused.set(arg.getArgNumber());
    (void)func.eraseArguments(unused);
  }

  const Stage &of;
  StringRef stage;
  func::FuncOp forward, backward;
  StageFunction name;
  bool saves;
  bool isLast = false;
  SmallVector<Value> outputs;
  SmallVector<std::pair<Value, Value>> gradients; // of outputs that have one
  llvm::DenseMap<Value, Value> grads;
};

/// Creates @NAME_sum(dy, ..., sum) -> dy, which adds up in f32 the gradients that the uses of a
/// result give. It returns zeros if no stage takes the result of the last layer.
void createSum(const StageResult &result, func::FuncOp forward) {
  OpBuilder builder(forward);
  builder.setInsertionPointAfter(forward);
  Location loc = forward.getLoc();
  auto type = cast<RankedTensorType>(result.type), wide = getSumType(type);
  SmallVector<Type> types(result.given, type);
  if (result.summed)
    types.push_back(wide);
  auto func = func::FuncOp::create(builder, loc, getFunctionName(result.name, StageFunction::sum),
                                   builder.getFunctionType(types, type));
  Block *block = func.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  Value sum;
  for (Value part : block->getArguments()) {
    part = builder.createOrFold<CastOp>(loc, wide, part);
    sum = sum ? AddOp::create(builder, loc, sum, part).getResult() : part;
  }
  if (!sum)
    sum = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(wide));
  func::ReturnOp::create(builder, loc, builder.createOrFold<CastOp>(loc, type, sum));
}

struct Differentiate : impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const PlanSettings plan = Config(module).plan;
    const bool again = recompute.hasValue() ? bool(recompute) : plan.recompute;
    SmallVector<StageOp> ops(module.getOps<StageOp>());
    const SmallVector<Stage> stages = findStages(module);
    // Backward begins with the last layers: what they keep is needed first.
    int64_t keep = plan.keep;
    for (size_t i = ops.size(); i-- > 0;) {
      StageOp op = ops[i];
      const Stage &stage = stages[i];
      func::FuncOp func = getForward(module, op);
      if (!func)
        return signalPassFailure();
      if (!stage.trains)
        continue;
      int64_t saving = 0;
      if (stage.isLayer) {
        saving = again ? std::min(keep, stage.repeat) : stage.repeat;
        keep -= saving;
      }
      auto make = [&](StageFunction name, bool saves) {
        return StageDifferentiator(stage, func, name, saves).run();
      };
      const bool some = saving > 0 && saving < stage.repeat;
      if (failed(make(StageFunction::backward, saving == stage.repeat)) ||
          (some && failed(make(StageFunction::backward_saved, true))))
        return signalPassFailure();
      if (some)
        setSaving(module, op, saving);
      // Layers that have nothing to save leave the number to those before them.
      if (!module.lookupSymbol(getFunctionName(stage.name, StageFunction::forward_saving)) && again)
        keep += saving;
      for (const StageResult &result : llvm::reverse(stage.results))
        if (result.hasSum())
          createSum(result, func);
    }
    // For dumps after later passes.
    nameArguments(module);
  }

  /// Notes that some layers save, unless there is nothing to save.
  static void setSaving(ModuleOp module, StageOp stage, int64_t layers) {
    auto find = [&](StageFunction function) {
      return module.lookupSymbol<func::FuncOp>(getFunctionName(stage.getStageName(), function));
    };
    if (find(StageFunction::forward_saving))
      stage.setSaves(layers);
    else
      find(StageFunction::backward_saved).erase();
  }
};

} // namespace
} // namespace boa
