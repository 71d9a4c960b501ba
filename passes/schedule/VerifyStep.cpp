//===- VerifyStep.cpp -----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Closes the step phase: the program is enumerated.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/ScheduleTrace.h"

#include <set>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_VERIFYSTEP
#include "passes/Passes.h.inc"

namespace {

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

} // namespace
} // namespace boa
