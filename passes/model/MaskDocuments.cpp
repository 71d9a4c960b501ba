//===- MaskDocuments.cpp - --boa-mask-documents ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention within documents, where several share a sequence. A model says nothing of how its
// training data are packed, so a training adds the mask. A text that is continued is one document.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/model/Stages.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_MASKDOCUMENTS
#include "passes/Passes.h.inc"

namespace {

struct MaskDocuments : impl::MaskDocumentsBase<MaskDocuments> {
  using MaskDocumentsBase::MaskDocumentsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!Config(module).train.document_mask)
      return;
    const SmallVector<Stage> stages = findStages(module);
    for (auto [stage, op] : llvm::zip_equal(stages, module.getOps<StageOp>())) {
      func::FuncOp func = getForward(module, op);
      if (!func || failed(mask(stage, op, func)))
        return signalPassFailure();
    }
  }

  static LogicalResult mask(const Stage &stage, StageOp op, func::FuncOp func) {
    SmallVector<AttentionOp> open;
    func.walk([&](AttentionOp attention) {
      if (!attention.getDocumentStarts())
        open.push_back(attention);
    });
    if (open.empty())
      return success();
    std::optional<unsigned> place = stage.find(Role::document_starts);
    auto shape = open.front().getQ().getType().getShape().take_front(2);
    Value starts =
        place ? func.getArgument(*place)
              : addInput(op, func, Role::document_starts,
                         RankedTensorType::get(shape, IntegerType::get(func.getContext(), 32)));
    for (AttentionOp attention : open)
      attention.getDocumentStartsMutable().assign(starts);
    return success();
  }
};

} // namespace
} // namespace boa
