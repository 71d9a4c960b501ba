//===- BlockVocabulary.cpp - --boa-block-vocabulary -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes a verified model. The sum of exponentials goes on from block to block. So a loop over
// blocks carries three numbers of each token.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_BLOCKVOCABULARY
#include "passes/Passes.h.inc"

namespace {

/// Targets are carried in f32.
constexpr int64_t kMostTokens = int64_t(1) << 24;

/// A parameter of the product. Each block takes a part.
struct Cut {
  BlockArgument arg;
  int64_t dimension;
  ParamOp param = {};
  SymbolRefAttr part = {}; // in the new group
  RankedTensorType type = {};
};

class Blocks {
public:
  Blocks(ModuleOp module, int64_t count) : module(module), count(count) {}

  LogicalResult run() {
    SmallVector<StageOp> stages(module.getOps<StageOp>());
    stage = stages.back();
    name = stage.getStageName().str();
    head = module.lookupSymbol<func::FuncOp>(stage.getCallee());
    if (failed(findProduct()) || failed(findParameters()))
      return failure();
    cutParameters();
    const StringRef before = stages[stages.size() - 2].getCallee();
    createStages(before);
    return success();
  }

private:
  InFlightDiagnostic refuse(Location loc) {
    return mlir::emitError(loc) << "cannot stream the vocabulary in " << count << " blocks: ";
  }

  //===--------------------------------------------------------------------===//
  // Checks
  //===--------------------------------------------------------------------===//

  static BlockArgument asArgument(Value value) {
    if (auto cast = value.getDefiningOp<CastOp>())
      value = cast.getX();
    return dyn_cast<BlockArgument>(value);
  }

  LogicalResult findProduct() {
    Value result = head.getBody().front().getTerminator()->getOperand(0);
    loss = result.getDefiningOp<CrossEntropyOp>();
    product = loss ? loss.getLogits().getDefiningOp<LinearOp>() : LinearOp();
    if (!product || loss.getTargets() != head.getArgument(1) || !product.getY().hasOneUse() ||
        !head.getArgument(1).hasOneUse())
      return refuse(result.getLoc())
             << "expected the last stage to return cross_entropy(linear(x, w), targets), and to "
                "use neither the product nor the targets elsewhere";
    cuts.push_back({asArgument(product.getWeight()), product.getTranspose() ? 0 : 1});
    if (product.getBias())
      cuts.push_back({asArgument(product.getBias()), 0});
    return success();
  }

  LogicalResult findParameters() {
    const int64_t vocab = cast<RankedTensorType>(product.getY().getType()).getShape().back();
    for (Cut &cut : cuts) {
      auto symbol = cut.arg
                        ? head.getArgAttrOfType<SymbolRefAttr>(cut.arg.getArgNumber(), kParamAttr)
                        : SymbolRefAttr();
      if (!symbol)
        return refuse(product.getLoc()) << "expected parameters as the operands of the product";
      cut.param = dyn_cast<ParamOp>(SymbolTable::lookupNearestSymbolFrom(module, symbol));
      for (auto other : module.getOps<func::FuncOp>())
        for (unsigned i = 0; i < other.getNumArguments(); ++i)
          if (other != head && other.getArgAttr(i, kParamAttr) == symbol)
            return refuse(product.getLoc())
                   << "@" << other.getName() << " takes " << symbol << ", too, as a whole";
      Value uses = cut.arg;
      if (auto cast = dyn_cast<CastOp>(*uses.user_begin()); cast && uses.hasOneUse())
        uses = cast.getY();
      if (!uses.hasOneUse())
        return refuse(product.getLoc()) << symbol << " is used elsewhere in its stage, too";
    }
    if (vocab > kMostTokens)
      return refuse(product.getLoc())
             << "expected at most " << kMostTokens << " tokens, whose numbers are exact in f32";
    if (vocab % count != 0) {
      int64_t below = count, above = count;
      while (vocab % below != 0)
        --below;
      while (vocab % above != 0)
        ++above;
      return refuse(product.getLoc()) << "they do not divide its " << vocab << " tokens, as "
                                      << below << " or " << above << " would";
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // The rewriting
  //===--------------------------------------------------------------------===//

  /// Moves the parameters of the product into a group of parts.
  void cutParameters() {
    for (Cut &cut : cuts) {
      auto from = cast<GroupOp>(cut.param->getParentOp());
      const std::string symbol = (Twine(from.getFrozen() ? kFrozenPrefix : "") + kPartsPrefix +
                                  getUserName(from.getSymName()))
                                     .str();
      auto group = module.lookupSymbol<GroupOp>(symbol);
      if (!group) {
        OpBuilder builder(from);
        builder.setInsertionPointAfter(from);
        group = GroupOp::create(builder, from.getLoc(), symbol, uint64_t(count), from.getFrozen());
        group.getBody().emplaceBlock();
      }
      // Initial values follow from the number.
      SmallVector<std::pair<ParamOp, int64_t>> places;
      for (auto param : from.getBody().getOps<ParamOp>())
        places.push_back({param, param.getPlace()});
      SmallVector<int64_t> shape(cut.param.getType().getShape());
      shape[size_t(cut.dimension)] /= count;
      cut.type = cut.param.getType().clone(shape);
      Builder builder(module.getContext());
      cut.param->moveBefore(&group.getBody().front(), group.getBody().front().end());
      for (auto [param, place] : places)
        if (param.getPlace() != place)
          param.setNumberAttr(builder.getI64IntegerAttr(place));
      cut.param.setTypeAttr(TypeAttr::get(cut.type));
      cut.param.setSplitAttr(builder.getI64IntegerAttr(cut.dimension));
      cut.part = SymbolRefAttr::get(
          builder.getContext(), symbol,
          {FlatSymbolRefAttr::get(builder.getContext(), cut.param.getSymName())});
      if (from.getBody().front().empty())
        from.erase();
    }
  }

  /// Stage NAME.SUFFIX of an empty function, before the original stage.
  func::FuncOp createStage(StringRef suffix, Location loc, TypeRange types, Type result,
                           uint64_t repeat, bool targets, ArrayRef<Attribute> sides) {
    const std::string callee = getFunctionName(name + suffix.str(), StageFunction::forward);
    OpBuilder builder(stage);
    auto op = StageOp::create(builder, stage.getLoc(), callee, repeat, sides);
    op.setTargets(targets);
    builder.setInsertionPoint(head);
    auto func = func::FuncOp::create(builder, loc, callee, builder.getFunctionType(types, result));
    func.addEntryBlock();
    return func;
  }

  void createStages(StringRef before) {
    Location loc = product.getLoc(), lossLoc = loss.getLoc();
    MLIRContext *context = module.getContext();
    Value x = product.getX();
    Type hidden = x.getType(), targets = head.getArgument(1).getType();
    ArrayRef<int64_t> rows = cast<RankedTensorType>(targets).getShape();
    auto logits = cast<RankedTensorType>(product.getY().getType());
    auto sums = RankedTensorType::get({rows[0], 3, rows[1]}, getSumType(logits).getElementType());
    SmallVector<int64_t> shape(logits.getShape());
    shape.back() /= count;
    auto block = logits.clone(shape);

    // The part before the product keeps the name of the stage, and its side inputs.
    Attribute side = FlatSymbolRefAttr::get(context, before);
    func::FuncOp first;
    if (x != head.getArgument(0)) {
      side = FlatSymbolRefAttr::get(context, stage.getCallee());
      first = createBefore();
    }

    auto begin = createStage(".begin", lossLoc, {hidden, targets}, sums, 1, true, {});
    OpBuilder at = OpBuilder::atBlockEnd(&begin.getBody().front());
    Value begun = CrossEntropyBeginOp::create(at, lossLoc, sums, begin.getArgument(1));
    func::ReturnOp::create(at, lossLoc, begun);

    SmallVector<Type> types{sums, hidden};
    for (const Cut &cut : cuts)
      types.push_back(cut.type);
    auto body = createStage(".blocks", loc, types, sums, uint64_t(count), false, {side});
    at = OpBuilder::atBlockEnd(&body.getBody().front());
    SmallVector<Value> parts;
    for (auto [i, cut] : llvm::enumerate(cuts)) {
      body.setArgAttr(unsigned(2 + i), kParamAttr, cut.part);
      parts.push_back(at.createOrFold<CastOp>(loc, cut.type.clone(logits.getElementType()),
                                              body.getArgument(unsigned(2 + i))));
    }
    auto part = LinearOp::create(at, loc, block, body.getArgument(1), parts[0],
                                 parts.size() > 1 ? parts[1] : Value(), product.getTranspose());
    ActivationSettings again;
    again.save = false;
    part->setDiscardableAttr(kActivationAttr, getSettingsAttr(context, again));
    Value next = CrossEntropyBlockOp::create(at, lossLoc, sums, body.getArgument(0), part.getY());
    func::ReturnOp::create(at, lossLoc, next);

    auto end =
        createStage(".loss", lossLoc, {sums, targets}, loss.getLoss().getType(), 1, false, {});
    at = OpBuilder::atBlockEnd(&end.getBody().front());
    Value mean = CrossEntropyEndOp::create(at, lossLoc, loss.getLoss().getType(),
                                           end.getArgument(0), end.getArgument(1));
    func::ReturnOp::create(at, lossLoc, mean);
    stage.erase();
    head.erase();
    if (first)
      first.setName(getFunctionName(name, StageFunction::forward));
    nameArguments(module);
  }

  /// The original function up to the operand of the product.
  func::FuncOp createBefore() {
    OpBuilder builder(stage);
    SmallVector<Attribute> sides;
    if (ArrayAttr all = stage.getSidesAttr())
      llvm::append_range(sides, all);
    StageOp::create(builder, stage.getLoc(), stage.getCallee(), 1, sides);
    builder.setInsertionPoint(head);
    auto func = cast<func::FuncOp>(builder.clone(*head));
    func.setName(name + ".before");
    Block &body = func.getBody().front();
    Operation *terminator = body.getTerminator();
    auto ended = terminator->getOperand(0).getDefiningOp<CrossEntropyOp>();
    terminator->setOperand(0, ended.getLogits().getDefiningOp<LinearOp>().getX());
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isOpTriviallyDead(&op))
        op.erase();
    llvm::BitVector unused(func.getNumArguments());
    unused.set(1);
    for (const Cut &cut : cuts)
      unused.set(cut.arg.getArgNumber());
    (void)func.eraseArguments(unused);
    func.setFunctionType(
        builder.getFunctionType(func.getArgumentTypes(), terminator->getOperand(0).getType()));
    return func;
  }

  ModuleOp module;
  int64_t count;
  StageOp stage;
  std::string name;
  func::FuncOp head;
  CrossEntropyOp loss;
  LinearOp product;
  SmallVector<Cut, 2> cuts;
};

struct BlockVocabulary : impl::BlockVocabularyBase<BlockVocabulary> {
  using BlockVocabularyBase::BlockVocabularyBase;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const int64_t count = Config(module).plan.vocabulary_blocks;
    if (count > 1 && failed(Blocks(module, count).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace boa
