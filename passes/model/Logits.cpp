//===- Logits.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/model/Logits.h"

using namespace mlir;

namespace boa {

CrossEntropyOp findLoss(func::FuncOp head, std::optional<unsigned> targets) {
  if (!targets || head.getNumResults() != 1 || !head.getArgument(*targets).hasOneUse())
    return {};
  return dyn_cast<CrossEntropyOp>(*head.getArgument(*targets).user_begin());
}

func::FuncOp createLogits(func::FuncOp head, StringRef stage, unsigned targets) {
  OpBuilder builder(head);
  builder.setInsertionPointAfter(head);
  auto func = cast<func::FuncOp>(builder.clone(*head));
  func.setName(getFunctionName(stage, StageFunction::logits));
  CrossEntropyOp loss = findLoss(func, targets);
  Block &body = func.getBody().front();
  Operation *terminator = body.getTerminator();
  OpBuilder end(terminator);
  Value logits = loss.getLogits();
  logits = end.createOrFold<CastOp>(loss.getLoc(), getSumType(logits.getType()), logits);
  terminator->setOperand(0, logits);
  // The loss, and what was made of it.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (&op != terminator && op.use_empty())
      op.erase();
  (void)func.eraseResult(0);
  func.setFunctionType(builder.getFunctionType(func.getArgumentTypes(), {logits.getType()}));
  (void)func.eraseArgument(targets);
  return func;
}

} // namespace boa
