//===- BlockVocabulary.cpp - --boa-block-vocabulary -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes a verified model. A loop over blocks carries some values of each token. In the first
// stage they are its row of the table, once a block had it, and the token. In the last stage they
// are the logarithm of the sum of exponentials so far, the target's logit, and the target. Both
// are numbered from the first token of the block.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/model/Stages.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_BLOCKVOCABULARY
#include "passes/Passes.h.inc"

namespace {

/// The logarithm of a sum of no exponentials. It is finite, so that a difference of two is a
/// number.
constexpr double kLogOfNone = -1e30;

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
    const SmallVector<Stage> graph = findStages(module);
    tokens = findInput(graph.front(), start, kTokens);
    targets = findInput(graph.back(), head, kTargets);
    if (failed(findTable()) || failed(findProduct()) || failed(findParameters()))
      return failure();
    llvm::for_each(cuts, [&](Cut &cut) { cutParameter(cut); });
    createTableStages();
    createProductStages();
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

  static BlockArgument findInput(const Stage &stage, func::FuncOp func, StringRef input) {
    std::optional<unsigned> number = stage.find(input);
    return number ? func.getArgument(*number) : BlockArgument();
  }

  static BlockArgument asArgument(Value value) {
    if (auto cast = value.getDefiningOp<CastOp>())
      value = cast.getX();
    return dyn_cast<BlockArgument>(value);
  }

  /// Finds the embedding of the first stage.
  LogicalResult findTable() {
    SmallVector<EmbeddingOp> found;
    if (tokens && first.getRepeat() == 1)
      for (Operation *user : tokens.getUsers())
        if (auto each = dyn_cast<EmbeddingOp>(user))
          found.push_back(each);
    if (found.size() != 1)
      return refuse(start.getLoc())
             << "expected the first stage to use its tokens in one embedding";
    embedding = found.front();
    cuts.push_back({asArgument(embedding.getTable()), 0});
    return success();
  }

  LogicalResult findProduct() {
    Value result = head.getBody().front().getTerminator()->getOperand(0);
    loss = result.getDefiningOp<CrossEntropyOp>();
    product = loss ? loss.getLogits().getDefiningOp<LinearOp>() : LinearOp();
    if (!product || !targets || loss.getTargets() != targets || !product.getY().hasOneUse() ||
        !targets.hasOneUse())
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

  TakenAttr takeInput(StringRef name) {
    return TakenAttr::get(FlatSymbolRefAttr::get(module.getContext(), name));
  }
  static TakenAttr takeResult(func::FuncOp of, unsigned number = 0) {
    return TakenAttr::get(FlatSymbolRefAttr::get(of.getNameAttr()), number);
  }

  /// Creates stage NAME.SUFFIX of an empty function, before the original stage.
  func::FuncOp createStage(StageOp stage, StringRef suffix, Location loc, ArrayRef<TakenAttr> takes,
                           TypeRange types, TypeRange results, uint64_t repeat = 1) {
    const std::string callee =
        getFunctionName(stage.getStageName().str() + suffix.str(), StageFunction::forward);
    OpBuilder builder(stage);
    StageOp::create(builder, stage.getLoc(), callee, takes, repeat);
    builder.setInsertionPoint(module.lookupSymbol(stage.getCallee()));
    auto func = func::FuncOp::create(builder, loc, callee, builder.getFunctionType(types, results));
    func.addEntryBlock();
    return func;
  }

  static OpBuilder atEnd(func::FuncOp func) {
    return OpBuilder::atBlockEnd(&func.getBody().front());
  }
  static Value fill(OpBuilder &at, Location loc, RankedTensorType type, double value) {
    return arith::ConstantOp::create(
        at, loc, DenseElementsAttr::get(type, at.getFloatAttr(type.getElementType(), value)));
  }
  /// Has argument `number` take a part of a parameter, and returns it in the type of the model.
  static Value takePart(OpBuilder &at, Location loc, func::FuncOp func, unsigned number,
                        const Cut &cut, Type element) {
    func.setArgAttr(number, kParamAttr, cut.part);
    return at.createOrFold<CastOp>(loc, RankedTensorType::get(cut.type.getShape(), element),
                                   func.getArgument(number));
  }

  /// Creates the stages that find the rows of all tokens. They come before the first stage, which
  /// takes the rows.
  void createTableStages() {
    const Cut &cut = cuts.front();
    Location loc = embedding.getLoc();
    auto rows = cast<RankedTensorType>(embedding.getY().getType());
    SmallVector<Type> carried{rows, tokens.getType()}, types(carried);
    types.push_back(cut.type);

    auto begin = createStage(first, ".begin", loc, takeInput(kTokens), tokens.getType(), carried);
    OpBuilder at = atEnd(begin);
    func::ReturnOp::create(at, loc, ValueRange{fill(at, loc, rows, 0), begin.getArgument(0)});

    auto body = createStage(first, ".blocks", loc, {takeResult(begin), takeResult(begin, 1)}, types,
                            carried, uint64_t(count));
    at = atEnd(body);
    Value part = takePart(at, loc, body, 2, cut, rows.getElementType());
    Value found = EmbeddingOp::create(at, loc, rows, part, body.getArgument(1), /*partial=*/true);
    Value next = AddOp::create(at, loc, body.getArgument(0), found);
    Value rest = RebaseOp::create(at, loc, body.getArgument(1), cut.type.getDimSize(0));
    func::ReturnOp::create(at, loc, ValueRange{next, rest});

    const unsigned place = tokens.getArgNumber();
    (void)start.insertArgument(place, rows, {}, loc);
    SmallVector<TakenAttr> takes = first.getTaken();
    takes.insert(takes.begin() + place, takeResult(body));
    embedding.getY().replaceAllUsesWith(start.getArgument(place));
    Operation *cast = embedding.getTable().getDefiningOp();
    embedding.erase();
    if (cast)
      cast->erase();
    llvm::BitVector unused(start.getNumArguments());
    unused.set(cut.arg.getArgNumber());
    if (tokens.use_empty()) {
      unused.set(tokens.getArgNumber());
      takes.erase(takes.begin() + tokens.getArgNumber());
    }
    (void)start.eraseArguments(unused);
    first.setTaken(takes);
  }

  void createProductStages() {
    Location loc = product.getLoc(), lossLoc = loss.getLoc();
    MLIRContext *context = module.getContext();
    Value x = product.getX();
    Type hidden = x.getType();
    auto logits = cast<RankedTensorType>(product.getY().getType());
    auto values =
        cast<RankedTensorType>(targets.getType()).clone(getSumType(logits).getElementType());
    SmallVector<int64_t> shape(logits.getShape());
    shape.back() /= count;
    auto block = logits.clone(shape);

    // The part before the product keeps the name of the stage, and what it takes.
    TakenAttr before;
    func::FuncOp earlier;
    auto arg = dyn_cast<BlockArgument>(x);
    if (arg && arg.getArgNumber() < last.getTaken().size()) {
      before = last.getTaken()[arg.getArgNumber()];
    } else {
      before = TakenAttr::get(last.getCalleeAttr());
      earlier = createBefore();
    }

    SmallVector<Type> carried{values, values, targets.getType()}, types(carried);
    auto begin =
        createStage(last, ".begin", lossLoc, takeInput(kTargets), targets.getType(), carried);
    OpBuilder at = atEnd(begin);
    func::ReturnOp::create(at, lossLoc,
                           ValueRange{fill(at, lossLoc, values, kLogOfNone),
                                      fill(at, lossLoc, values, 0), begin.getArgument(0)});

    MutableArrayRef<Cut> operands = MutableArrayRef(cuts).drop_front();
    types.push_back(hidden);
    for (const Cut &cut : operands)
      types.push_back(cut.type);
    auto body = createStage(last, ".blocks", loc,
                            {takeResult(begin), takeResult(begin, 1), takeResult(begin, 2), before},
                            types, carried, uint64_t(count));
    at = atEnd(body);
    SmallVector<Value> parts;
    for (auto [i, cut] : llvm::enumerate(operands))
      parts.push_back(takePart(at, loc, body, unsigned(4 + i), cut, logits.getElementType()));
    auto part = LinearOp::create(at, loc, block, body.getArgument(3), parts[0],
                                 parts.size() > 1 ? parts[1] : Value(), product.getTranspose());
    ActivationSettings again;
    again.save = false;
    part->setDiscardableAttr(kActivationAttr, getSettingsAttr(context, again));
    Value target = body.getArgument(2);
    auto next =
        CrossEntropyBlockOp::create(at, lossLoc, TypeRange{values, values}, body.getArgument(0),
                                    body.getArgument(1), target, part.getY());
    Value rest = RebaseOp::create(at, lossLoc, target, block.getShape().back());
    func::ReturnOp::create(at, lossLoc, ValueRange{next.getNextLog(), next.getNextLogit(), rest});

    auto end = createStage(last, ".loss", lossLoc,
                           {takeResult(body), takeResult(body, 1), takeInput(kTargets)}, carried,
                           loss.getLoss().getType());
    at = atEnd(end);
    Value mean =
        CrossEntropyEndOp::create(at, lossLoc, loss.getLoss().getType(), end.getArgument(0),
                                  end.getArgument(1), end.getArgument(2));
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
    SmallVector<TakenAttr> takes = last.getTaken();
    takes.erase(takes.begin() + targets.getArgNumber());
    StageOp::create(builder, last.getLoc(), last.getCallee(), takes);
    builder.setInsertionPoint(head);
    auto func = cast<func::FuncOp>(builder.clone(*head));
    func.setName(last.getStageName().str() + ".before");
    Block &body = func.getBody().front();
    Operation *terminator = body.getTerminator();
    auto ended = terminator->getOperand(0).getDefiningOp<CrossEntropyOp>();
    terminator->setOperand(0, ended.getLogits().getDefiningOp<LinearOp>().getX());
    eraseDeadOps(body);
    llvm::BitVector unused(func.getNumArguments());
    unused.set(targets.getArgNumber());
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
  BlockArgument tokens, targets;
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
