//===- VerifyPhases.cpp - --boa-verify-{model,step,storage} ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Closes each phase: what holds after it, and what no single op's verifier can
// see. The step and storage verifiers enumerate the program.
//
//===----------------------------------------------------------------------===//
#include "dialect/CallLayout.h"
#include "passes/Config.h"
#include "passes/Passes.h"
#include "passes/StorageTrace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <map>
#include <set>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_VERIFYMODEL
#define GEN_PASS_DEF_VERIFYSTEP
#define GEN_PASS_DEF_VERIFYSTORAGE
#include "passes/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// Model
//===----------------------------------------------------------------------===//

struct VerifyModel : impl::VerifyModelBase<VerifyModel> {
  using VerifyModelBase::VerifyModelBase;

  /// What later passes find a stage by and clone.
  LogicalResult verifyFunction(StageOp stage, func::FuncOp func) {
    if (!func || !func.getBody().hasOneBlock())
      return stage.emitOpError("expected a func.func of one block named @") << stage.getCallee();
    if (!stage.getCallee().ends_with("_forward"))
      return stage.emitOpError("expected a function named NAME_forward but found @")
             << stage.getCallee();
    for (Type type : llvm::concat<const Type>(func.getArgumentTypes(), func.getResultTypes()))
      if (auto tensor = dyn_cast<RankedTensorType>(type); !tensor || !tensor.hasStaticShape())
        return stage.emitOpError("expected tensors of static shape in the type of @")
               << func.getName() << " but found " << type;
    return success();
  }

  /// Every layer takes its own entry of its own group, and each parameter once.
  LogicalResult verifyParams(StageOp stage, func::FuncOp func, unsigned first) {
    StringRef name = stage.getCallee();
    name.consume_back("_forward");
    llvm::SmallDenseSet<Attribute> seen;
    for (unsigned i = first; i < func.getNumArguments(); ++i) {
      auto param = func.getArgAttrOfType<SymbolRefAttr>(i, kParamAttr);
      if (!param)
        return stage.emitOpError("expected only parameters after the activations of @")
               << func.getName() << " but argument " << i << " is none";
      if (!seen.insert(param).second)
        return stage.emitOpError("takes ") << param << " twice: their gradients would be stored "
                                           << "in one place";
      auto group = getOperation().lookupSymbol<GroupOp>(param.getRootReference());
      if (!group) // not of this module: StageOp checks that it exists
        continue;
      bool own = getGroupName(group.getSymName()) == name;
      if (own ? group.getRepeat() != stage.getRepeat() : group.getRepeat() != 1)
        return stage.emitOpError("repeats ")
               << stage.getRepeat() << " times but takes " << param << " of a group that repeats "
               << group.getRepeat() << " times"
               << (own ? "" : ": expected the group of a layer to have its name");
    }
    return success();
  }

  LogicalResult verifyStage(StageOp stage, func::FuncOp func, bool first, bool last,
                            Type &boundary) {
    if (failed(verifyFunction(stage, func)))
      return failure();
    unsigned activations = 0;
    while (activations < func.getNumArguments() && !func.getArgAttr(activations, kParamAttr))
      ++activations;
    if (activations != (last ? 2u : 1u))
      return stage.emitOpError("expected ")
             << (last ? "two activations (x, targets)" : "one activation")
             << " before the parameters of @" << func.getName() << " but found " << activations;
    if (func.getNumResults() != 1)
      return stage.emitOpError("expected one result of @") << func.getName();
    Type input = func.getArgumentTypes()[0], result = func.getResultTypes()[0];
    bool tokens = getElementTypeOrSelf(input).isInteger(32);
    if (first != tokens)
      return stage.emitOpError(first ? "expected the first stage to take token indices"
                                     : "expected only the first stage to take token indices");
    if (!first && input != boundary)
      return stage.emitOpError("takes ")
             << input << " but the stage before it returns " << boundary;
    if (stage.getRepeat() > 1 && result != input)
      return stage.emitOpError("repeats, so it must return what it takes: ")
             << input << " but it returns " << result;
    if (last && cast<RankedTensorType>(result).getRank() != 0)
      return stage.emitOpError("expected the last stage to return a scalar loss but found ")
             << result;
    for (Operation &op : func.getBody().front().without_terminator())
      if (!isa<CostOpInterface, arith::ConstantOp>(op))
        return op.emitOpError("is not a compute op");
    if (failed(verifyParams(stage, func, activations)))
      return failure();
    boundary = result;
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<StageOp> stages(module.getOps<StageOp>());
    if (stages.size() < 2) {
      module.emitError("expected at least two stages but found ") << stages.size();
      return signalPassFailure();
    }
    Config train = Config::train(module);
    int64_t batch = train.integer("batch", 1), microBatch = train.integer("micro_batch", 1);
    if (microBatch < 1 || batch < 1 || batch % microBatch != 0) {
      module.emitError("expected a batch that is a multiple of micro_batch but found ")
          << batch << " and " << microBatch;
      return signalPassFailure();
    }
    Type boundary;
    StageOp repeated;
    for (auto [i, stage] : llvm::enumerate(stages)) {
      auto func = module.lookupSymbol<func::FuncOp>(stage.getCallee());
      if (failed(verifyStage(stage, func, i == 0, i + 1 == stages.size(), boundary)))
        return signalPassFailure();
      if (stage.getRepeat() > 1 && repeated) {
        stage.emitOpError("expected at most one repeated stage").attachNote(repeated.getLoc())
            << "another is here";
        return signalPassFailure();
      }
      if (stage.getRepeat() > 1)
        repeated = stage;
    }
  }
};

//===----------------------------------------------------------------------===//
// Step
//===----------------------------------------------------------------------===//

struct VerifyStep : impl::VerifyStepBase<VerifyStep> {
  using VerifyStepBase::VerifyStepBase;

  /// Roles whose entries hold values before the step begins.
  static bool isLiveIn(StorageOp storage) {
    return storage.getPersistent() || storage.getRole() == "tokens" ||
           storage.getRole() == "targets";
  }

  void checkUpdate(OptimizerUpdateOp update, const TraceState &state, LogicalResult &result) {
    if (failed(result))
      return;
    auto group = getOperation().lookupSymbol<GroupOp>(update.getGroup());
    if (!group)
      result = update.emitOpError("names a group that does not exist: @") << update.getGroup();
    else if (state.get(update.getLayer()) < 0 ||
             state.get(update.getLayer()) >= int64_t(group.getRepeat()) ||
             update.getFirst() >= update.getLast() || int64_t(update.getLast()) > group.getChunks())
      result = update.emitOpError("updates layer ")
               << state.get(update.getLayer()) << ", chunks " << update.getFirst() << " to "
               << update.getLast() << ", of a group with " << group.getRepeat() << " layers of "
               << group.getChunks() << " chunks";
  }

  LogicalResult verify(StepOp step, RunNumbers numbers) {
    std::set<std::pair<Operation *, int64_t>> written;
    LogicalResult result = success();
    auto check = [&](Operation *op, StringRef name, OperandRange indices, bool read, bool write,
                     const TraceState &state) {
      if (failed(result))
        return;
      auto storage = getOperation().lookupSymbol<StorageOp>(name);
      if (!storage) {
        result = op->emitOpError("names a storage that does not exist: @") << name;
        return;
      }
      if (indices.size() != storage.getDims().size()) {
        result = op->emitOpError("expected ")
                 << storage.getDims().size() << " indices of @" << name;
        return;
      }
      int64_t entry = state.getEntry(storage, indices);
      if (entry < 0) {
        result = op->emitOpError("indexes @") << name << " out of bounds";
        return;
      }
      if (read && !isLiveIn(storage) && !written.count({storage, entry}))
        result = op->emitOpError("reads entry ")
                 << entry << " of @" << name << " before it is written";
      if (write)
        written.insert({storage, entry});
    };
    trace(
        step,
        [&](Operation *op, const TraceState &state) {
          if (auto read = dyn_cast<ReadOp>(op))
            check(op, read.getStorage(), read.getIndices(), true, false, state);
          else if (auto write = dyn_cast<WriteOp>(op))
            check(op, write.getStorage(), write.getIndices(), false, true, state);
          else if (auto update = dyn_cast<OptimizerUpdateOp>(op))
            checkUpdate(update, state, result);
          else if (auto accumulate = dyn_cast<AccumulateOp>(op))
            check(op, accumulate.getStorage(), accumulate.getIndices(),
                  !state.get(accumulate.getInitial()), true, state);
        },
        numbers);
    return result;
  }

  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>())
      for (RunNumbers numbers : getParities(step))
        if (failed(verify(step, numbers)))
          return signalPassFailure();
  }
};

//===----------------------------------------------------------------------===//
// Storage
//===----------------------------------------------------------------------===//

class StorageVerifier : public StorageTrace {
public:
  using StorageTrace::StorageTrace;

  /// Of what is no step twice, since what the first run retains the second takes up.
  LogicalResult verify(StepOp entry, bool pending) {
    step = entry;
    for (bool again : {false, true}) {
      if (again && entry.getSymName() == "step")
        break;
      run(entry, pending && !again);
      if (succeeded(result) && !open.empty())
        violation(open.front()->origin, "takes a slot that is not released");
    }
    // Last: what a buffer holds means nothing while its lifetime is wrong.
    if (succeeded(result) && undefined.first)
      violation(undefined.first, undefined.second);
    return result;
  }

private:
  void violation(Operation *op, const Twine &message) override {
    if (succeeded(result))
      result = op->emitOpError(message);
  }

  void undefinedRead(Operation *op, const Access &access) override {
    StorageOp storage = access.storage;
    if (!undefined.first)
      undefined = {op, ("reads entry " + Twine(access.entry) + " of @" + storage.getSymName() +
                        " before it is written")
                           .str()};
  }

  void opened(Operation *op, const Buffer &buffer, const TraceState &, bool retained) override {
    if (retained)
      return;
    StorageOp storage = buffer.access.storage;
    std::optional<uint64_t> limit = storage.getSlots();
    if (++slots[storage] > int64_t(limit.value_or(INT64_MAX)))
      violation(op, "needs more slots of @" + storage.getSymName() + " than the " + Twine(*limit) +
                        " assigned");
  }
  void released(ReleaseOp, const Buffer &buffer, const TraceState &, bool retain) override {
    if (!retain)
      --slots[buffer.access.storage];
  }
  void dropped(const Buffer &buffer, Operation *) override {
    StorageOp storage = buffer.access.storage;
    --slots[storage];
    violation(step, "retains a copy of @" + storage.getSymName() + " entry " +
                        Twine(buffer.access.entry) + " that nothing takes up");
  }
  void abandoned(const Buffer &buffer) override { --slots[buffer.access.storage]; }

  StepOp step;
  LogicalResult result = success();
  std::pair<Operation *, std::string> undefined{nullptr, {}};
  std::map<Operation *, int64_t> slots; // live, by storage
};

struct VerifyStorage : impl::VerifyStorageBase<VerifyStorage> {
  using VerifyStorageBase::VerifyStorageBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    LogicalResult result = success();
    Training training = runEntries(module, StorageVerifier(module),
                                   [&](StorageVerifier &trace, StepOp entry, bool pending) {
                                     if (succeeded(result))
                                       result = trace.verify(entry, pending);
                                   });
    if (succeeded(result) && !training.steady)
      result = emitNotSteady(module.lookupSymbol<StepOp>("step"));
    if (failed(result))
      signalPassFailure();
  }
};

} // namespace
} // namespace boa
