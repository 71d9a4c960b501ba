//===- TrainingInputs.cpp - --boa-mask-documents, --boa-seed-dropout ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model says nothing of how its training data are packed, and its dropout does nothing. A
// training gives these ops an operand more, which their stages then take from the trainer. A text
// that is continued is one document.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/model/Stages.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_MASKDOCUMENTS
#define GEN_PASS_DEF_SEEDDROPOUT
#include "passes/Passes.h.inc"

namespace {

/// Gives the function of a stage one more argument, which takes an input. Inputs stand together, or
/// else behind the first argument.
BlockArgument addInput(StageOp stage, func::FuncOp func, InputOp input) {
  SmallVector<TakenAttr> takes = stage.getTaken();
  size_t place = std::min<size_t>(stage.getRepeat() > 1 ? func.getNumResults() : 1, takes.size());
  for (size_t i = place; i < takes.size(); ++i)
    if (stage.getInput(takes[i]))
      place = i + 1;
  takes.insert(takes.begin() + place, TakenAttr::get(FlatSymbolRefAttr::get(input)));
  stage.setTaken(takes);
  (void)func.insertArgument(place, input.getType(), DictionaryAttr(), func.getLoc());
  return func.getArgument(place);
}

/// Gives an operand to all ops of a kind that lack it: a number for each row of the first one. The
/// model has that input from then on.
template <typename OpT>
LogicalResult giveInput(ModuleOp module, StringRef name, InputSource source,
                        MutableOperandRange (OpT::*operand)()) {
  const SmallVector<Stage> stages = findStages(module);
  auto input = module.lookupSymbol<InputOp>(name);
  for (auto [stage, op] : llvm::zip_equal(stages, module.getOps<StageOp>())) {
    func::FuncOp func = getForward(module, op);
    if (!func)
      return failure();
    const std::optional<unsigned> place = stage.find(name);
    Value value = place ? func.getArgument(*place) : Value();
    func.walk([&, op = op](OpT user) {
      MutableOperandRange given = (user.*operand)();
      if (!given.empty())
        return;
      auto rows = cast<RankedTensorType>(user->getOperand(0).getType()).getShape().drop_back();
      OpBuilder builder(*module.getOps<StageOp>().begin());
      if (!input)
        input = InputOp::create(builder, func.getLoc(), name, source,
                                RankedTensorType::get(rows, builder.getI32Type()));
      if (!value)
        value = addInput(op, func, input);
      given.assign(value);
    });
  }
  return success();
}

struct MaskDocuments : impl::MaskDocumentsBase<MaskDocuments> {
  using MaskDocumentsBase::MaskDocumentsBase;
  void runOnOperation() override {
    if (Config(getOperation()).train.document_mask &&
        failed(giveInput(getOperation(), kDocumentStarts, InputSource::data,
                         &AttentionOp::getDocumentStartsMutable)))
      signalPassFailure();
  }
};

struct SeedDropout : impl::SeedDropoutBase<SeedDropout> {
  using SeedDropoutBase::SeedDropoutBase;
  void runOnOperation() override {
    if (failed(
            giveInput(getOperation(), kDropoutKeys, InputSource::seed, &DropoutOp::getKeysMutable)))
      signalPassFailure();
  }
};

} // namespace
} // namespace boa
