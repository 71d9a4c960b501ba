//===- VerifyStorage.cpp --------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Closes the storage phase: the program is enumerated, through steps until they are steady.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/StorageTrace.h"

#include <map>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_VERIFYSTORAGE
#include "passes/Passes.h.inc"

namespace {

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
