//===- VerifyStep.cpp -----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Closes the step phase: indices are in bounds and every read comes after its write, in
// all that a trainer runs.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Tracer.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_VERIFYSTEP
#include "passes/Passes.h.inc"

namespace {

class StepVerifier : public Tracer {
public:
  StepVerifier(ModuleOp module, LogicalResult &result) : Tracer(module), result(&result) {}

private:
  void violation(Operation *op, const Twine &message) override {
    if (succeeded(*result))
      *result = op->emitOpError(message);
  }
  void undefinedRead(Operation *op, const Access &access) override {
    violation(op, "reads entry " + Twine(access.entry) + " of @" +
                      StorageOp(access.storage).getSymName() + " before it is written");
  }

  LogicalResult *result;
};

struct VerifyStep : impl::VerifyStepBase<VerifyStep> {
  using VerifyStepBase::VerifyStepBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    LogicalResult result = success();
    auto run = [&](StepVerifier &tracer, StepOp entry, bool pending) {
      if (succeeded(result))
        tracer.run(entry, pending);
    };
    bool steady = runEntries(module, StepVerifier(module, result), run);
    if (succeeded(result) && !steady)
      result = emitNotSteady(findEntryPoint(module, EntryPoint::step));
    if (failed(result))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace boa
