//===- CacheAttention.cpp - --boa-cache-attention -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes a verified model of one sequence. A row of an activation depends on other rows through
// attention alone, and on its position through rotary(), and through parameters that have a row
// for each position. So the same body computes any rows of a text, if attention takes keys and
// values of the other rows from a cache. Refuses attention that is not causal, and ops for which
// this does not hold.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/model/Stages.h"
#include "runtime/abi/generation.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_CACHEATTENTION
#include "passes/Passes.h.inc"

namespace {

/// Makes a function of `rows` positions from one of all positions.
class Rewriter {
public:
  Rewriter(func::FuncOp from, StringRef name, int64_t rows)
      : from(from), rows(rows), builder(from), name(name) {}

  LogicalResult run() {
    auto first = from.getNumArguments() > 0 ? cast<RankedTensorType>(from.getArgumentTypes()[0])
                                            : RankedTensorType();
    if (!first || first.getRank() < 2 || first.getDimSize(0) != 1)
      return from.emitOpError("expected one sequence but found ") << first;
    context = first.getDimSize(1);
    builder.setInsertionPointAfter(from);
    to = func::FuncOp::create(builder, from.getLoc(), name, builder.getFunctionType({}, {}));
    body = to.addEntryBlock();
    builder.setInsertionPointToStart(body);
    for (BlockArgument arg : from.getArguments()) {
      const bool isParam = bool(from.getArgAttr(arg.getArgNumber(), kParamAttr));
      Type type = isParam ? arg.getType() : getRowsType(arg.getType());
      mapping.map(arg, body->addArgument(type, arg.getLoc()));
      if (!isParam)
        withRows.insert(arg);
    }
    for (Operation &op : from.getBody().front().without_terminator())
      if (failed(rewrite(&op)))
        return failure();
    finish();
    return success();
  }

private:
  /// The type for `rows` positions: [1, context, ...] becomes [1, rows, ...].
  Type getRowsType(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(tensor.getShape());
    if (shape.size() > 1 && shape[1] == context)
      shape[1] = rows;
    return tensor.clone(shape);
  }

  Value positions() {
    if (!positionsArg)
      positionsArg =
          body->addArgument(RankedTensorType::get({1, rows}, builder.getI32Type()), from.getLoc());
    return positionsArg;
  }

  /// Adds an argument for a cache, whose contents after the call are `next`.
  Value addCache(Value of) {
    auto type = cast<RankedTensorType>(of.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[1] = context;
    return body->addArgument(type.clone(shape), from.getLoc());
  }

  LogicalResult rewrite(Operation *op) {
    const bool has = llvm::any_of(op->getOperands(), [&](Value v) { return withRows.count(v); });
    if (!has) {
      builder.clone(*op, mapping);
      return success();
    }
    for (Value result : op->getResults())
      withRows.insert(result);
    if (auto attention = dyn_cast<AttentionOp>(op))
      return rewrite(attention);
    if (auto rotary = dyn_cast<RotaryOp>(op)) {
      auto copy = cast<RotaryOp>(cloneWithRows(op));
      copy.getPositionsMutable().assign(positions());
      copy.setLength(context);
      return success();
    }
    if (!op->hasTrait<RowByRow>())
      return op->emitOpError("is not computed row by row: a text cannot be continued one token at "
                             "a time");
    // A parameter that is added to each sequence has a row for each position.
    if (isa<AddOp, MulOp>(op))
      if (Value rhs = op->getOperand(1); !withRows.count(rhs) && rankOf(rhs) > 1) {
        Type type = getRowsType(op->getOperand(0).getType());
        Value row =
            EmbeddingOp::create(builder, op->getLoc(), type, mapping.lookup(rhs), positions());
        Operation *copy = cloneWithRows(op);
        copy->setOperand(1, row);
        return success();
      }
    cloneWithRows(op);
    return success();
  }

  static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

  Operation *cloneWithRows(Operation *op) {
    Operation *copy = builder.clone(*op, mapping);
    for (Value result : copy->getResults())
      result.setType(getRowsType(result.getType()));
    return copy;
  }

  LogicalResult rewrite(AttentionOp op) {
    if (!op.getCausal())
      return mlir::emitError(op.getLoc())
             << "a text cannot be continued: attention sees later tokens; expected causal";
    if (op.getDocumentStarts())
      return op.emitOpError("expected a text of one document");
    if (!op.getLse().use_empty())
      return op.emitOpError("expected no use of lse");
    Value k = mapping.lookup(op.getK()), v = mapping.lookup(op.getV());
    Value keys = addCache(k), values = addCache(v);
    auto cached = CachedAttentionOp::create(
        builder, op.getLoc(), getRowsType(op.getY().getType()), keys.getType(), values.getType(),
        mapping.lookup(op.getQ()), k, v, keys, values, positions(), op.getHeadsAttr(),
        op.getKvHeadsAttr(), op.getWindowAttr());
    mapping.map(op.getY(), cached.getY());
    caches.push_back({keys, cached.getNextKeys()});
    caches.push_back({values, cached.getNextValues()});
    return success();
  }

  void finish() {
    SmallVector<Value> results;
    for (Value result : from.getBody().front().getTerminator()->getOperands())
      results.push_back(mapping.lookup(result));
    const unsigned first = results.size();
    for (auto [cache, next] : caches)
      results.push_back(next);
    func::ReturnOp::create(builder, from.getLoc(), results);
    to.setFunctionType(
        builder.getFunctionType(body->getArgumentTypes(), ValueRange(results).getTypes()));
    for (unsigned i = 0; i < from.getNumArguments(); ++i)
      if (Attribute param = from.getArgAttr(i, kParamAttr))
        to.setArgAttr(i, kParamAttr, param);
    for (auto [i, cache] : llvm::enumerate(caches)) {
      const unsigned arg = cast<BlockArgument>(cache.first).getArgNumber();
      to.setArgAttr(arg, kCacheAttr, builder.getUnitAttr());
      to.setResultAttr(first + unsigned(i), kCacheAttr, builder.getI64IntegerAttr(arg));
    }
  }

  func::FuncOp from, to;
  int64_t rows, context = 0;
  OpBuilder builder;
  std::string name;
  Block *body = nullptr;
  IRMapping mapping;
  llvm::DenseSet<Value> withRows; // of `from`
  Value positionsArg;
  SmallVector<std::pair<Value, Value>> caches; // before and after
};

struct CacheAttention : impl::CacheAttentionBase<CacheAttention> {
  using CacheAttentionBase::CacheAttentionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const int64_t context = Config(module).model.context;
    const SmallVector<Stage> stages = findStages(module);
    for (auto [stage, op] : llvm::zip_equal(stages, llvm::to_vector(module.getOps<StageOp>()))) {
      func::FuncOp func = getForward(module, op);
      if (!func)
        return signalPassFailure();
      func::FuncOp logits;
      if (stage.last) {
        if (!findLoss(func, stage.find(kTargets))) {
          func.emitOpError("cannot predict: expected one boa.cross_entropy, and no other op, to "
                           "take the targets: its logits are the prediction");
          return signalPassFailure();
        }
        func = logits = createLogits(func, stage.name, *stage.find(kTargets));
      }
      for (auto [function, rows] :
           {std::pair(StageFunction::prefill,
                      prefill > 0 ? int64_t(prefill) : PrefillRows(context)),
            std::pair(StageFunction::generate, int64_t(1))}) {
        // Of the prompt, nobody asks what may follow its earlier tokens.
        if (stage.last && function == StageFunction::prefill)
          continue;
        if (failed(Rewriter(func, getFunctionName(stage.name, function), rows).run()))
          return signalPassFailure();
      }
      if (logits)
        logits.erase();
    }
    nameArguments(module);
  }
};

} // namespace
} // namespace boa
