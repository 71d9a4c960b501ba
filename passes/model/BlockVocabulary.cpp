//===- BlockVocabulary.cpp - --boa-block-vocabulary -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes a verified model. A loop over blocks carries some values of each token. In the first
// stage they are its row of the table, once a block had it. In the last stage they are the sum of
// exponentials so far, and the target's logit.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "dialect/TokenDigits.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_BLOCKVOCABULARY
#include "passes/Passes.h.inc"

namespace {

/// The most tokens, since targets are carried in f32.
constexpr int64_t kMostTokens = int64_t(1) << 24;

/// An argument that takes a parameter of the vocabulary. Each block takes a part.
struct Cut {
  BlockArgument arg;
  int64_t dimension;
  SymbolRefAttr whole = {};
  SymbolRefAttr part = {}; // in the new group
  RankedTensorType type = {};
};

class Blocks {
public:
  Blocks(ModuleOp module, int64_t count) : module(module), count(count) {}

  LogicalResult run() {
    SmallVector<StageOp> stages(module.getOps<StageOp>());
    if (stages.size() < 2)
      return success(); // --boa-build-step refuses it
    first = stages.front();
    last = stages.back();
    start = module.lookupSymbol<func::FuncOp>(first.getCallee());
    head = module.lookupSymbol<func::FuncOp>(last.getCallee());
    if (failed(findTable()) || failed(findProduct()) || failed(findParameters()))
      return failure();
    llvm::for_each(cuts, [&](Cut &cut) { cutParameter(cut); });
    const StringRef before = stages[stages.size() - 2].getCallee();
    createTableStages();
    createProductStages(before);
    nameArguments(module);
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

  /// Finds the embedding of the first stage.
  LogicalResult findTable() {
    BlockArgument tokens = start.getArgument(0);
    embedding = tokens.hasOneUse() ? dyn_cast<EmbeddingOp>(*tokens.user_begin()) : EmbeddingOp();
    if (!embedding)
      return refuse(start.getLoc())
             << "expected the first stage to use its tokens once, in an embedding";
    cuts.push_back({asArgument(embedding.getTable()), 0});
    return success();
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
    for (Cut &cut : cuts) {
      const bool isTable = &cut == cuts.begin();
      func::FuncOp func = isTable ? start : head;
      Location loc = isTable ? embedding.getLoc() : product.getLoc();
      cut.whole = cut.arg ? func.getArgAttrOfType<SymbolRefAttr>(cut.arg.getArgNumber(), kParamAttr)
                          : SymbolRefAttr();
      if (!cut.whole)
        return refuse(loc) << "expected parameters as the "
                           << (isTable ? "table of the embedding" : "operands of the product");
      Value uses = cut.arg;
      if (auto cast = dyn_cast<CastOp>(*uses.user_begin()); cast && uses.hasOneUse())
        uses = cast.getY();
      if (!uses.hasOneUse())
        return refuse(loc) << cut.whole << " is used elsewhere in its stage, too";
      if (failed(checkVocabulary(loc, cut)))
        return failure();
    }
    for (Cut &cut : cuts)
      for (auto other : module.getOps<func::FuncOp>())
        for (BlockArgument arg : other.getArguments())
          if (other.getArgAttr(arg.getArgNumber(), kParamAttr) == cut.whole &&
              llvm::none_of(cuts, [&](const Cut &known) {
                return known.arg == arg && known.dimension == cut.dimension;
              }))
            return refuse(product.getLoc())
                   << "@" << other.getName() << " takes " << cut.whole << ", too, as a whole";
    return success();
  }

  LogicalResult checkVocabulary(Location loc, const Cut &cut) {
    const int64_t vocab = cast<RankedTensorType>(cut.arg.getType()).getDimSize(cut.dimension);
    if (vocab > kMostTokens)
      return refuse(loc) << "expected at most " << kMostTokens
                         << " tokens, whose numbers are exact in f32";
    if (vocab % count == 0)
      return success();
    int64_t below = count, above = count;
    while (vocab % below != 0)
      --below;
    while (vocab % above != 0)
      ++above;
    return refuse(loc) << "they do not divide its " << vocab << " tokens, as " << below << " or "
                       << above << " would";
  }

  //===--------------------------------------------------------------------===//
  // Parameters
  //===--------------------------------------------------------------------===//

  GroupOp getGroupOfParts(GroupOp from) {
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
    return group;
  }

  /// Moves a parameter into a group of parts. Embedding and product may share it.
  void cutParameter(Cut &cut) {
    for (const Cut &earlier : cuts)
      if (earlier.whole == cut.whole && earlier.part) {
        cut.part = earlier.part;
        cut.type = earlier.type;
        return;
      }
    auto param = cast<ParamOp>(SymbolTable::lookupNearestSymbolFrom(module, cut.whole));
    auto from = cast<GroupOp>(param->getParentOp());
    GroupOp group = getGroupOfParts(from);
    // Initial values follow from the number.
    SmallVector<std::pair<ParamOp, int64_t>> places;
    for (auto each : from.getBody().getOps<ParamOp>())
      places.push_back({each, each.getPlace()});
    SmallVector<int64_t> shape(param.getType().getShape());
    shape[size_t(cut.dimension)] /= count;
    cut.type = param.getType().clone(shape);
    Builder builder(module.getContext());
    param->moveBefore(&group.getBody().front(), group.getBody().front().end());
    for (auto [each, place] : places)
      if (each.getPlace() != place)
        each.setNumberAttr(builder.getI64IntegerAttr(place));
    param.setTypeAttr(TypeAttr::get(cut.type));
    param.setSplitAttr(builder.getI64IntegerAttr(cut.dimension));
    cut.part =
        SymbolRefAttr::get(builder.getContext(), group.getSymName(),
                           {FlatSymbolRefAttr::get(builder.getContext(), param.getSymName())});
    if (from.getBody().front().empty())
      from.erase();
  }

  //===--------------------------------------------------------------------===//
  // Stages
  //===--------------------------------------------------------------------===//

  /// Creates stage NAME.SUFFIX of an empty function, before the original stage.
  func::FuncOp createStage(StageOp stage, StringRef suffix, Location loc, TypeRange types,
                           Type result, uint64_t repeat, bool targets = false,
                           ArrayRef<Attribute> sides = {}) {
    const std::string callee =
        getFunctionName(stage.getStageName().str() + suffix.str(), StageFunction::forward);
    OpBuilder builder(stage);
    auto op = StageOp::create(builder, stage.getLoc(), callee, repeat, sides);
    op.setTargets(targets);
    builder.setInsertionPoint(module.lookupSymbol(stage.getCallee()));
    auto func = func::FuncOp::create(builder, loc, callee, builder.getFunctionType(types, result));
    func.addEntryBlock();
    return func;
  }

  /// Creates the stages that find the rows of all tokens. They come before the first stage, which
  /// takes the rows.
  void createTableStages() {
    const Cut &cut = cuts.front();
    Location loc = embedding.getLoc();
    auto rows = cast<RankedTensorType>(embedding.getY().getType());
    SmallVector<int64_t> shape(rows.getShape());
    shape.back() += kTokenDigits;
    auto found = rows.clone(shape);

    auto begin = createStage(first, ".begin", loc, start.getArgument(0).getType(), found, 1);
    OpBuilder at = OpBuilder::atBlockEnd(&begin.getBody().front());
    func::ReturnOp::create(
        at, loc, EmbeddingBeginOp::create(at, loc, found, begin.getArgument(0)).getFound());

    auto body = createStage(first, ".blocks", loc, {found, cut.type}, found, uint64_t(count));
    body.setArgAttr(1, kParamAttr, cut.part);
    at = OpBuilder::atBlockEnd(&body.getBody().front());
    Value part = at.createOrFold<CastOp>(
        loc, RankedTensorType::get(cut.type.getShape(), rows.getElementType()),
        body.getArgument(1));
    func::ReturnOp::create(
        at, loc, EmbeddingBlockOp::create(at, loc, found, body.getArgument(0), part).getNext());

    const unsigned table = cut.arg.getArgNumber();
    (void)start.insertArgument(1, found, {}, loc);
    at.setInsertionPoint(embedding);
    shape.back() = kTokenDigits;
    auto split = SplitOp::create(at, loc, TypeRange{rows, rows.clone(shape)}, start.getArgument(1));
    embedding.getY().replaceAllUsesWith(split.getParts()[0]);
    Operation *cast = embedding.getTable().getDefiningOp();
    embedding.erase();
    if (cast)
      cast->erase();
    llvm::BitVector unused(start.getNumArguments());
    unused.set(0);
    unused.set(table + 1);
    (void)start.eraseArguments(unused);
  }

  void createProductStages(StringRef before) {
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
    func::FuncOp earlier;
    if (x != head.getArgument(0)) {
      side = FlatSymbolRefAttr::get(context, last.getCallee());
      earlier = createBefore();
    }

    auto begin = createStage(last, ".begin", lossLoc, {hidden, targets}, sums, 1, true);
    OpBuilder at = OpBuilder::atBlockEnd(&begin.getBody().front());
    Value begun = CrossEntropyBeginOp::create(at, lossLoc, sums, begin.getArgument(1));
    func::ReturnOp::create(at, lossLoc, begun);

    MutableArrayRef<Cut> operands = MutableArrayRef(cuts).drop_front();
    SmallVector<Type> types{sums, hidden};
    for (const Cut &cut : operands)
      types.push_back(cut.type);
    auto body = createStage(last, ".blocks", loc, types, sums, uint64_t(count), false, {side});
    at = OpBuilder::atBlockEnd(&body.getBody().front());
    SmallVector<Value> parts;
    for (auto [i, cut] : llvm::enumerate(operands)) {
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

    auto end = createStage(last, ".loss", lossLoc, {sums, targets}, loss.getLoss().getType(), 1);
    at = OpBuilder::atBlockEnd(&end.getBody().front());
    Value mean = CrossEntropyEndOp::create(at, lossLoc, loss.getLoss().getType(),
                                           end.getArgument(0), end.getArgument(1));
    func::ReturnOp::create(at, lossLoc, mean);
    const std::string callee = last.getCallee().str();
    last.erase();
    head.erase();
    if (earlier)
      earlier.setName(callee);
  }

  /// Creates the function of the original stage up to the operand of the product.
  func::FuncOp createBefore() {
    OpBuilder builder(last);
    SmallVector<Attribute> sides;
    if (ArrayAttr all = last.getSidesAttr())
      llvm::append_range(sides, all);
    StageOp::create(builder, last.getLoc(), last.getCallee(), 1, sides)
        .setDocuments(last.getDocuments());
    builder.setInsertionPoint(head);
    auto func = cast<func::FuncOp>(builder.clone(*head));
    func.setName(last.getStageName().str() + ".before");
    Block &body = func.getBody().front();
    Operation *terminator = body.getTerminator();
    auto ended = terminator->getOperand(0).getDefiningOp<CrossEntropyOp>();
    terminator->setOperand(0, ended.getLogits().getDefiningOp<LinearOp>().getX());
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isOpTriviallyDead(&op))
        op.erase();
    llvm::BitVector unused(func.getNumArguments());
    unused.set(1);
    for (const Cut &cut : ArrayRef(cuts).drop_front())
      unused.set(cut.arg.getArgNumber());
    (void)func.eraseArguments(unused);
    func.setFunctionType(
        builder.getFunctionType(func.getArgumentTypes(), terminator->getOperand(0).getType()));
    return func;
  }

  ModuleOp module;
  int64_t count;
  StageOp first, last;
  func::FuncOp start, head; // their functions
  EmbeddingOp embedding;
  CrossEntropyOp loss;
  LinearOp product;
  SmallVector<Cut, 3> cuts; // of the embedding, then of the product
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
