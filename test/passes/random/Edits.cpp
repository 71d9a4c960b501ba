//===- Edits.cpp - Changes without regard to what is then computed --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Generator.h"

#include "dialect/Boa.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace boa::random {

namespace {

class Editor {
public:
  Editor(ModuleOp module, Random &random)
      : module(module), random(random), builder(module.getContext()) {}

  bool edit(std::string &what) {
    using How = bool (Editor::*)();
    std::pair<const char *, How> ways[] = {{"an index shifted", &Editor::shiftIndex},
                                           {"another index", &Editor::otherIndex},
                                           {"an op moved in its block", &Editor::moveOp},
                                           {"a statement moved", &Editor::moveStatement},
                                           {"another condition of a first", &Editor::initial},
                                           {"an access removed", &Editor::removeAccess},
                                           {"another storage", &Editor::otherStorage},
                                           {"an update moved", &Editor::moveUpdate},
                                           {"other chunks updated", &Editor::otherChunks},
                                           {"another direction", &Editor::direction},
                                           {"two loops swapped", &Editor::swapLoops},
                                           {"other bounds", &Editor::bounds},
                                           {"another lifetime", &Editor::lifetime},
                                           {"an op twice", &Editor::twice},
                                           {"an op removed", &Editor::removeOp},
                                           {"an op in another entry point", &Editor::otherEntry}};
    auto &[name, way] = ways[random.below(std::size(ways))];
    what = name;
    return (this->*way)();
  }

private:
  template <typename... Ops> std::vector<Operation *> all() { return opsOf<Ops...>(module); }
  /// Null if there is none.
  template <typename... Ops> Operation *one() {
    auto ops = all<Ops...>();
    return ops.empty() ? nullptr : random.pick(ops);
  }
  /// An operand that is an index of an entry.
  OpOperand *index() {
    std::vector<OpOperand *> found;
    for (Operation *op : all<ReadOp, WriteOp, AccumulateOp, OptimizerUpdateOp, GradientNormOp>())
      for (OpOperand &operand : op->getOpOperands())
        if (operand.get().getType().isIndex() &&
            !(isa<OptimizerUpdateOp>(op) && operand.getOperandNumber() == 1))
          found.push_back(&operand);
    return found.empty() ? nullptr : random.pick(found);
  }

  bool shiftIndex() {
    OpOperand *operand = index();
    if (!operand)
      return false;
    builder.setInsertionPoint(operand->getOwner());
    operand->set(ShiftOp::create(builder, operand->getOwner()->getLoc(), operand->get(),
                                 random.pick({-1, 1})));
    return true;
  }
  bool otherIndex() {
    OpOperand *operand = index();
    if (!operand)
      return false;
    std::vector<Value> others;
    Operation *op = operand->getOwner();
    for (auto loop = dyn_cast<LoopOp>(op->getParentOp()); loop;
         loop = dyn_cast<LoopOp>(loop->getParentOp()))
      others.push_back(loop.getInductionVar());
    builder.setInsertionPoint(op);
    others.push_back(arith::ConstantIndexOp::create(builder, op->getLoc(), random.below(3)));
    Value other = random.pick(others);
    if (other == operand->get())
      return false;
    operand->set(other);
    return true;
  }
  bool moveOp() {
    Operation *op =
        one<ReadOp, WriteOp, AccumulateOp, CallOp, OptimizerUpdateOp, LoopOp, FinishNormOp>();
    return op && moveInBlock({op});
  }
  bool moveInBlock(ArrayRef<Operation *> ops) {
    std::vector<Operation *> places;
    for (Operation &other : *ops.front()->getBlock())
      if (!llvm::is_contained(ops, &other))
        places.push_back(&other);
    if (places.empty())
      return false;
    Operation *to = random.pick(places);
    bool after = random.chance(0.5);
    for (Operation *op : ops)
      after ? op->moveAfter(to) : op->moveBefore(to);
    if (after) // in their order
      for (size_t i = 1; i < ops.size(); ++i)
        ops[i]->moveAfter(ops[i - 1]);
    return true;
  }
  /// A call with what it reads and writes, and their indices, to another place.
  SmallVector<Operation *> statementOf(CallOp call) {
    llvm::SetVector<Operation *> ops;
    auto withOperands = [&](Operation *op, auto &self) -> void {
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == call->getBlock())
          self(def, self);
      ops.insert(op);
    };
    withOperands(call, withOperands);
    for (Operation *user : call->getUsers())
      withOperands(user, withOperands);
    SmallVector<Operation *> sorted(ops.begin(), ops.end());
    llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return sorted;
  }
  bool moveStatement() {
    Operation *call = one<CallOp>();
    return call && moveInBlock(statementOf(cast<CallOp>(call)));
  }
  bool initial() {
    Operation *op = one<AccumulateOp>();
    if (!op)
      return false;
    builder.setInsertionPoint(op);
    auto loop = dyn_cast<LoopOp>(op->getParentOp());
    Type i1 = builder.getI1Type();
    Value other;
    switch (random.below(loop ? 4 : 2)) {
    case 0:
    case 1:
      other = arith::ConstantIntOp::create(builder, op->getLoc(), random.below(2), 1);
      break;
    case 2:
      other = AtFirstOp::create(builder, op->getLoc(), i1, loop.getInductionVar());
      break;
    default:
      other = AtLastOp::create(builder, op->getLoc(), i1, loop.getInductionVar());
    }
    cast<AccumulateOp>(op).getInitialMutable().assign(other);
    return true;
  }
  bool removeAccess() {
    Operation *op = one<WriteOp, AccumulateOp>();
    if (!op)
      return false;
    op->erase();
    return true;
  }
  bool otherStorage() {
    Operation *op = one<ReadOp, WriteOp, AccumulateOp>();
    if (!op)
      return false;
    StringRef attr = "storage";
    auto now = module.lookupSymbol<StorageOp>(op->getAttrOfType<FlatSymbolRefAttr>(attr).getAttr());
    std::vector<StorageOp> others;
    for (auto storage : module.getOps<StorageOp>())
      if (storage != now && storage.getType() == now.getType() &&
          storage.getDims().size() == now.getDims().size())
        others.push_back(storage);
    if (others.empty())
      return false;
    op->setAttr(attr, FlatSymbolRefAttr::get(random.pick(others)));
    return true;
  }
  bool moveUpdate() {
    Operation *op = one<OptimizerUpdateOp, GradientNormOp>();
    auto loop = op ? dyn_cast<LoopOp>(op->getParentOp()) : LoopOp();
    if (!loop)
      return false;
    std::vector<Operation *> places = all<LoopOp, CallOp>();
    Operation *to = random.pick(places);
    if (loop->isAncestor(to) || to->getParentOfType<StepOp>() != loop->getParentOfType<StepOp>())
      return false;
    random.chance(0.5) ? loop->moveBefore(to) : loop->moveAfter(to);
    return true;
  }
  bool otherChunks() {
    Operation *op = one<OptimizerUpdateOp>();
    if (!op)
      return false;
    auto update = cast<OptimizerUpdateOp>(op);
    auto step = update->getParentOfType<StepOp>();
    switch (random.below(3)) {
    case 0:
      update.setLast(update.getLast() - 1);
      break;
    case 1:
      update.setFirst(update.getFirst() + 1);
      break;
    default:
      update.getStepMutable().assign(step.getPending());
    }
    return update.getFirst() < update.getLast();
  }
  bool direction() {
    Operation *op = one<LoopOp>();
    if (!op)
      return false;
    auto loop = cast<LoopOp>(op);
    if (random.chance(0.6)) {
      bool reverse = loop.getOrder() != LoopOrder::forward;
      loop.getParityMutable().clear();
      loop.setOrder(reverse ? LoopOrder::forward : LoopOrder::reverse);
      return true;
    }
    auto around = dyn_cast<LoopOp>(loop->getParentOp());
    loop.setOrder(LoopOrder::snake);
    loop.getParityMutable().assign(around ? Value(around.getInductionVar())
                                          : loop->getParentOfType<StepOp>().getStep());
    loop.setPhase(random.below(2));
    return true;
  }
  bool swapLoops() {
    std::vector<Operation *> loops = all<LoopOp>();
    if (loops.empty())
      return false;
    Operation *op = random.pick(loops), *next = op->getNextNode();
    while (next && !isa<LoopOp>(next))
      next = next->getNextNode();
    if (!next)
      return false;
    op->moveAfter(next);
    return true;
  }
  bool bounds() {
    Operation *op = one<LoopOp>();
    if (!op)
      return false;
    auto loop = cast<LoopOp>(op);
    random.chance(0.5) ? loop.setLower(loop.getLower() + 1)
                       : loop.setUpper(loop.getUpper() + random.pick({-1, 1}));
    return loop.getLower() < loop.getUpper();
  }
  bool lifetime() {
    std::vector<StorageOp> storages(module.getOps<StorageOp>().begin(),
                                    module.getOps<StorageOp>().end());
    StorageOp storage = random.pick(storages);
    if (storage.getRole() == Role::input || storage.getRole() == Role::loss_gradients ||
        storage.getRole() == Role::weights)
      return false;
    storage.setPersistent(!storage.getPersistent());
    return true;
  }
  bool twice() {
    Operation *op = one<WriteOp, AccumulateOp, OptimizerUpdateOp, GradientNormOp, LoopOp, CallOp>();
    if (!op)
      return false;
    builder.setInsertionPointAfter(op);
    if (!isa<CallOp>(op)) {
      builder.clone(*op);
      return true;
    }
    IRMapping map;
    SmallVector<Operation *> statement = statementOf(cast<CallOp>(op));
    builder.setInsertionPointAfter(statement.back());
    for (Operation *part : statement)
      builder.clone(*part, map);
    return true;
  }
  bool removeOp() {
    Operation *op = one<OptimizerUpdateOp, GradientNormOp, FinishNormOp, LoopOp>();
    if (!op)
      return false;
    op->erase();
    return true;
  }
  /// A statement, whose indices are constants, or a whole nest.
  bool otherEntry() {
    Operation *op = one<LoopOp>();
    if (!op)
      return false;
    auto from = dyn_cast<StepOp>(op->getParentOp());
    std::vector<StepOp> steps(module.getOps<StepOp>().begin(), module.getOps<StepOp>().end());
    StepOp to = random.pick(steps);
    if (!from || from == to)
      return false;
    IRMapping map;
    map.map(from.getStep(), to.getStep());
    map.map(from.getPending(), to.getPending());
    random.chance(0.5) ? builder.setInsertionPointToStart(to.getBlock())
                       : builder.setInsertionPointToEnd(to.getBlock());
    builder.clone(*op, map);
    if (random.chance(0.3))
      op->erase();
    return true;
  }

  ModuleOp module;
  Random &random;
  OpBuilder builder;
};

} // namespace

bool editSomething(ModuleOp module, Random &random, std::string &what) {
  for (int tries = 0; tries < 20; ++tries) {
    OwningOpRef<ModuleOp> changed = module.clone();
    if (!Editor(*changed, random).edit(what) || !verifies(*changed))
      continue;
    module.getBodyRegion().takeBody(changed->getBodyRegion());
    return true;
  }
  return false;
}

} // namespace boa::random
