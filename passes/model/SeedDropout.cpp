//===- SeedDropout.cpp - --boa-seed-dropout -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dropout of a model has no keys, and does nothing. A training gives it the keys that its stage
// then takes from the trainer.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/model/Stages.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_SEEDDROPOUT
#include "passes/Passes.h.inc"

namespace {

struct SeedDropout : impl::SeedDropoutBase<SeedDropout> {
  using SeedDropoutBase::SeedDropoutBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const SmallVector<Stage> stages = findStages(module);
    for (auto [stage, op] : llvm::zip_equal(stages, module.getOps<StageOp>())) {
      func::FuncOp func = getForward(module, op);
      if (!func || failed(seed(stage, op, func)))
        return signalPassFailure();
    }
  }

  static LogicalResult seed(const Stage &stage, StageOp op, func::FuncOp func) {
    SmallVector<DropoutOp> open;
    func.walk([&](DropoutOp dropout) {
      if (!dropout.getKeys())
        open.push_back(dropout);
    });
    if (open.empty())
      return success();
    std::optional<unsigned> place = stage.find(Role::dropout_keys);
    auto shape = open.front().getX().getType().getShape().drop_back();
    Value keys =
        place ? func.getArgument(*place)
              : addInput(op, func, Role::dropout_keys,
                         RankedTensorType::get(shape, IntegerType::get(func.getContext(), 32)));
    for (DropoutOp dropout : open)
      dropout.getKeysMutable().assign(keys);
    return success();
  }
};

} // namespace
} // namespace boa
