//===- VerifyStorage.cpp --------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Closes the storage phase: the program is run on symbols, through steps until they are
// steady, and must come to what the step phase came to (boa.computes). Where device and host are
// two memories, each op takes buffers of its own. Updates take the moments of the optimizer.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/analysis/TranslationValidation.h"

#include <map>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_VERIFYSTORAGE
#include "passes/Passes.h.inc"

namespace {

class StorageVerifier : public Tracer {
public:
  using Tracer::Tracer;

  /// Runs an entry point, if it is no step, twice: the second run takes up what the first retains.
  LogicalResult verify(StepOp entry, bool pending) {
    step = entry;
    for (bool again : {false, true}) {
      if (again && entry.getEntryPoint() == EntryPoint::step)
        break;
      run(entry, pending && !again);
      if (succeeded(result) && !open.empty())
        violation(open.front()->origin, "takes a slot that is not released");
      checkInputs();
    }
    // Last: what a buffer holds means nothing while its lifetime is wrong.
    if (succeeded(result) && undefined.first)
      violation(undefined.first, undefined.second);
    return result;
  }

private:
  /// Checks the inputs: those that the trainer fills in are others in the next run.
  void checkInputs() {
    for (const auto &copy : retained)
      if (StorageOp storage = copy->access.storage; storage.isLiveIn() && !storage.getPersistent())
        violation(step, "retains a copy of @" + storage.getSymName() + " entry " +
                            Twine(copy->access.entry) + ", which the next run replaces");
  }

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

  void opened(Operation *op, const Buffer &buffer, const Position &, bool retained) override {
    StorageOp storage = buffer.access.storage;
    if (retained || buffer.home || !storage.getPoolsAttr())
      return;
    PoolAttr pool = memory.getPool(storage, buffer.space, buffer.slotChunks());
    if (!pool)
      return violation(op, "takes " + Twine(buffer.slotChunks()) + " chunks of @" +
                               storage.getSymName() + " to " + stringifySpace(buffer.space) +
                               " memory, for which no slots were assigned");
    if (++liveIn(storage, pool) > pool.getSlots())
      violation(op, "needs more slots of @" + storage.getSymName() + " than the " +
                        Twine(pool.getSlots()) + " assigned");
    if (buffer.access.reads)
      checkStaging(op, buffer.access, buffer.space);
  }
  void offloaded(OffloadOp op, const Access &access, const Buffer &buffer) override {
    if (!buffer.home && StorageOp(access.storage).getPoolsAttr())
      checkStaging(op, access, buffer.space);
  }
  /// Checks that a slot of the host is free: a chunk at a time passes through it.
  void checkStaging(Operation *op, const Access &access, Space space) {
    if (!memory.isStaged(access.chunks(), space))
      return;
    PoolAttr pool = memory.getPool(access.storage, Space::host, 1);
    if (!pool || liveIn(access.storage, pool) >= int64_t(pool.getSlots()))
      violation(op, "needs a slot of @" + StorageOp(access.storage).getSymName() +
                        " in host memory between SSD and the device");
  }
  void freeSlot(const Buffer &buffer) {
    StorageOp storage = buffer.access.storage;
    if (storage.getPoolsAttr() && !buffer.home)
      if (PoolAttr pool = memory.getPool(storage, buffer.space, buffer.slotChunks()))
        --liveIn(storage, pool);
  }
  void released(ReleaseOp, const Buffer &buffer, const Position &, bool retain) override {
    if (!retain)
      freeSlot(buffer);
  }
  void dropped(const Buffer &buffer, Operation *) override {
    freeSlot(buffer);
    StorageOp storage = buffer.access.storage;
    violation(step, "retains a copy of @" + storage.getSymName() + " entry " +
                        Twine(buffer.access.entry) + " that nothing takes up");
  }
  void abandoned(const Buffer &buffer) override { freeSlot(buffer); }

  int64_t &liveIn(StorageOp storage, PoolAttr pool) {
    return pool.getShared() ? shared[pool.getShared()]
                            : slots[{storage, pool.getAsOpaquePointer()}];
  }

  StepOp step;
  LogicalResult result = success();
  std::pair<Operation *, std::string> undefined{nullptr, {}};
  std::map<std::pair<Operation *, const void *>, int64_t> slots; // live, by storage and pool
  std::map<int64_t, int64_t> shared;                             // live, of pools of several
};

struct VerifyStorage : impl::VerifyStorageBase<VerifyStorage> {
  using VerifyStorageBase::VerifyStorageBase;

  /// Checks that kernels take whole entries, and each op buffers of its own memory.
  LogicalResult verifyOperands(StepOp step, bool separate, Space updateSpace) {
    SymbolTableCollection tables;
    WalkResult walked = step.walk([&](Operation *op) {
      if (!computes(op))
        return WalkResult::advance();
      const bool isKernel = cast<AccessOpInterface>(op).getQueue() == Queue::compute;
      if (isKernel)
        for (Value operand : op->getOperands())
          if (AccessOpInterface origin = getOrigin(operand)) {
            const StorageAccess held = origin.getAccesses()[0];
            auto storage = tables.lookupNearestSymbolFrom<StorageOp>(op, held.storage);
            if (held.count == 0 || held.count == int64_t(storage.getChunks()))
              continue;
            op->emitOpError("takes ") << held.count << " chunks of @" << storage.getSymName()
                                      << ": expected whole entries";
            return WalkResult::interrupt();
          }
      if (!separate)
        return WalkResult::advance();
      const Space own = isKernel ? Space::device : updateSpace;
      for (Value operand : op->getOperands())
        if (auto type = dyn_cast<BufferType>(operand.getType()); type && type.getSpace() != own) {
          op->emitOpError("takes a buffer in ")
              << stringifySpace(type.getSpace()) << " memory: expected one in "
              << stringifySpace(own) << " memory, where it runs";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  /// Checks that storages that share a pool agree on its space and on its number of slots.
  LogicalResult verifyShared(ModuleOp module) {
    std::map<int64_t, PoolAttr> pools;
    for (auto storage : module.getOps<StorageOp>())
      for (Attribute attr : storage.getPoolsAttr() ? storage.getPoolsAttr()
                                                   : ArrayAttr::get(module.getContext(), {})) {
        auto pool = cast<PoolAttr>(attr);
        PoolAttr first = pools.try_emplace(pool.getShared(), pool).first->second;
        if (pool.getShared() &&
            (pool.getSpace() != first.getSpace() || pool.getSlots() != first.getSlots()))
          return storage.emitOpError("expected ")
                 << first.getSlots() << " slots in " << stringifySpace(first.getSpace())
                 << " memory in pool " << pool.getShared() << ", as another storage has";
      }
    return success();
  }

  /// Checks that updates take the states of the optimizer that runs, as they are stored.
  LogicalResult verifyStates(StepOp step, OptimizerOp optimizer) {
    WalkResult walked = step.walk([&](UpdateOp update) {
      auto group = SymbolTable::lookupNearestSymbolFrom<GroupOp>(update, update.getGroupAttr());
      for (auto [name, type] : optimizer.getStateTypes()) {
        auto storage = SymbolTable::lookupNearestSymbolFrom<StorageOp>(
            update, StringAttr::get(&getContext(), getStateName(name, update.getGroup())));
        RankedTensorType entry = getStateEntryType(group, type);
        if (storage && storage.getRole() == Role::state && storage.getType() == entry)
          continue;
        update.emitOpError("expected the state @")
            << getStateName(name, update.getGroup()) << " of " << entry << ", which @"
            << optimizer.getSymName() << " updates";
        return WalkResult::interrupt();
      }
      if (update.getStates().size() == optimizer.getStates().size())
        return WalkResult::advance();
      update.emitOpError("expected ")
          << optimizer.getStates().size() << " states of @" << optimizer.getSymName()
          << " but found " << update.getStates().size();
      return WalkResult::interrupt();
    });
    return failure(walked.wasInterrupted());
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const bool separate = Memory(module).isSeparate();
    const Config config(module);
    OptimizerOp optimizer = findOptimizer(module);
    if (failed(verifyShared(module)))
      return signalPassFailure();
    for (StepOp step : module.getOps<StepOp>())
      if (failed(verifyOperands(step, separate, config.updateSpace())) ||
          (optimizer && failed(verifyStates(step, optimizer))))
        return signalPassFailure();
    LogicalResult result = success();
    bool steady = runEntries(module, StorageVerifier(module),
                             [&](StorageVerifier &tracer, StepOp entry, bool pending) {
                               if (succeeded(result))
                                 result = tracer.verify(entry, pending);
                             });
    if (succeeded(result) && !steady)
      result = emitNotSteady(findEntryPoint(module, EntryPoint::step));
    // Buffers may all be in order, and one be taken for another.
    auto computes = module->getAttrOfType<IntegerAttr>(kComputesAttr);
    if (succeeded(result) && computes &&
        getAnalysis<CurrentComputation>().get().hash() != computes.getInt())
      result = module.emitError("the storage phase computes something else than the step phase: a "
                                "kernel or an update finds other contents in a buffer");
    if (failed(result))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace boa
