//===- Mutations.cpp ------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Mutations.h"

#include "test/passes/random/Generator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace boa::random {

namespace {

class Mutator {
public:
  using How = bool (Mutator::*)();
  static ArrayRef<std::pair<const char *, How>> ways() {
    static const std::pair<const char *, How> all[] = {
        {"a copy removed", &Mutator::erase<CopyOp>},
        {"an offload removed", &Mutator::erase<OffloadOp>},
        {"a release removed", &Mutator::erase<ReleaseOp>},
        {"a prefetch that brings nothing", &Mutator::bringNothing},
        {"a prefetch removed, another buffer in its place", &Mutator::otherBuffer},
        {"two operands swapped", &Mutator::swapOperands},
        {"two buffers swapped", &Mutator::swapBuffers},
        {"a slot too few", &Mutator::slotTooFew},
        {"slots of another size", &Mutator::slotSize},
        {"an index changed", &Mutator::changeIndex},
        {"other chunks", &Mutator::changeChunks},
        {"a retain flipped", &Mutator::flipRetain},
        {"a zero flipped", &Mutator::flipZero},
        {"an op moved", &Mutator::moveOp},
        {"an op twice", &Mutator::twice},
        {"a loop changed", &Mutator::changeLoop},
        {"another kernel", &Mutator::otherKernel},
        {"an update of another step", &Mutator::otherStep},
        {"a norm removed", &Mutator::removeNorm},
        {"another memory", &Mutator::otherSpace},
        {"another home", &Mutator::otherHome}};
    return all;
  }

  Mutator(ModuleOp module, const Observations &seen, Random &random)
      : module(module), seen(seen), random(random), builder(module.getContext()) {}

  bool mutate(StringRef kind) {
    for (auto &[name, way] : ways())
      if (kind == name)
        return (this->*way)();
    return false;
  }

private:
  template <typename... Ops> std::vector<Operation *> all() { return opsOf<Ops...>(module); }
  template <typename... Ops> Operation *one() {
    auto ops = all<Ops...>();
    return ops.empty() ? nullptr : random.pick(ops);
  }
  template <typename Op> bool erase() {
    Operation *op = one<Op>();
    if (op)
      op->erase();
    return op;
  }

  bool bringNothing() {
    auto prefetch = cast_or_null<PrefetchOp>(one<PrefetchOp>());
    if (!prefetch)
      return false;
    builder.setInsertionPoint(prefetch);
    auto create =
        CreateOp::create(builder, prefetch.getLoc(), prefetch.getType(), prefetch.getStorage(),
                         prefetch.getIndices(), prefetch.getFirst(), prefetch.getCount());
    prefetch.replaceAllUsesWith(create.getBuffer());
    prefetch.erase();
    return true;
  }

  /// Another buffer of the same type that comes before it, in its block or around it.
  Value another(Operation *op) {
    std::vector<Value> others;
    for (Operation *at = op; !isa<StepOp>(at); at = at->getParentOp())
      for (Operation *before = at->getPrevNode(); before; before = before->getPrevNode())
        if (isa<PrefetchOp, CreateOp>(before) &&
            before->getResult(0).getType() == op->getResult(0).getType())
          others.push_back(before->getResult(0));
    return others.empty() ? Value() : random.pick(others);
  }
  bool otherBuffer() {
    Operation *op = one<PrefetchOp>();
    Value other = op ? another(op) : Value();
    if (!other)
      return false;
    for (Operation *user : llvm::make_early_inc_range(op->getResult(0).getUsers()))
      if (isa<ReleaseOp, OffloadOp>(user))
        user->erase();
    op->getResult(0).replaceAllUsesWith(other);
    op->erase();
    return true;
  }
  bool swapOperands() {
    Operation *op = one<LaunchOp, UpdateOp, CopyOp>();
    if (!op)
      return false;
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      for (unsigned j = 0; j < i; ++j)
        if (isa<BufferType>(op->getOperand(i).getType()) &&
            op->getOperand(i).getType() == op->getOperand(j).getType() &&
            op->getOperand(i) != op->getOperand(j))
          pairs.push_back({i, j});
    if (pairs.empty())
      return false;
    auto [i, j] = random.pick(pairs);
    Value first = op->getOperand(i), second = op->getOperand(j);
    op->setOperand(i, second);
    op->setOperand(j, first);
    return true;
  }
  bool swapBuffers() {
    Operation *op = one<LaunchOp, UpdateOp, CopyOp, OffloadOp, ReleaseOp, NormOp>();
    if (!op)
      return false;
    OpOperand &operand = op->getOpOperand(random.below(op->getNumOperands()));
    Operation *origin = getOrigin(operand.get());
    Value other = origin ? another(origin) : Value();
    if (!other)
      return false;
    operand.set(other);
    return true;
  }

  bool slotTooFew() {
    if (seen.peaks.empty())
      return false;
    auto it = seen.peaks.begin();
    std::advance(it, random.below(seen.peaks.size()));
    auto &[storage, number] = it->first;
    return setPool(module.lookupSymbol<StorageOp>(storage), number, [&](PoolAttr pool) {
      return PoolAttr::get(builder.getContext(), pool.getSpace(), it->second - 1, pool.getChunks(),
                           pool.getShared());
    });
  }
  bool slotSize() {
    if (seen.peaks.empty())
      return false;
    auto it = seen.peaks.begin();
    std::advance(it, random.below(seen.peaks.size()));
    auto &[storage, number] = it->first;
    return setPool(module.lookupSymbol<StorageOp>(storage), number, [&](PoolAttr pool) {
      return PoolAttr::get(builder.getContext(), pool.getSpace(), pool.getSlots(),
                           pool.getChunks() + random.pick({-1, 1}), pool.getShared());
    });
  }
  bool setPool(StorageOp storage, size_t number, function_ref<PoolAttr(PoolAttr)> change) {
    SmallVector<Attribute> pools(storage.getPoolsAttr().getValue());
    pools[number] = change(cast<PoolAttr>(pools[number]));
    storage.setPoolsAttr(builder.getArrayAttr(pools));
    return true;
  }

  /// Around an op: what may be an index of it.
  Value anIndex(Operation *op, Value now) {
    std::vector<Value> others;
    builder.setInsertionPoint(op);
    for (auto loop = dyn_cast<LoopOp>(op->getParentOp()); loop;
         loop = dyn_cast<LoopOp>(loop->getParentOp()))
      if (loop.getInductionVar() != now)
        others.push_back(loop.getInductionVar());
    if (others.empty() || random.chance(0.6))
      return random.chance(0.5)
                 ? Value(ShiftOp::create(builder, op->getLoc(), now, random.pick({-1, 1})))
                 : Value(arith::ConstantIndexOp::create(builder, op->getLoc(), random.below(3)));
    return random.pick(others);
  }
  bool changeIndex() {
    std::vector<OpOperand *> found;
    for (Operation *op : all<PrefetchOp, CreateOp, OffloadOp, UpdateOp>())
      for (OpOperand &operand : op->getOpOperands())
        if (operand.get().getType().isIndex() &&
            !(isa<UpdateOp>(op) && operand.getOperandNumber() == 1))
          found.push_back(&operand);
    if (found.empty())
      return false;
    OpOperand *operand = random.pick(found);
    operand->set(anIndex(operand->getOwner(), operand->get()));
    return true;
  }
  bool changeChunks() {
    Operation *op = one<PrefetchOp, CreateOp, OffloadOp>();
    if (!op)
      return false;
    auto change = [&](auto access) {
      if (access.getFirst()) {
        switch (random.below(3)) {
        case 0:
          access.setCount(access.getCount() + random.pick({-1, 1}));
          return int64_t(access.getCount()) > 0;
        case 1:
          access.getFirstMutable().clear();
          access.setCount(0);
          return true;
        default:
          access.getFirstMutable().assign(anIndex(op, access.getFirst()));
          return true;
        }
      }
      auto storage = module.lookupSymbol<StorageOp>(access.getStorage());
      int64_t chunks = storage.getChunks();
      if (chunks < 2)
        return false;
      builder.setInsertionPoint(op);
      int64_t first = random.below(2);
      access.getFirstMutable().assign(
          arith::ConstantIndexOp::create(builder, op->getLoc(), first).getResult());
      access.setCount(chunks - 1);
      return true;
    };
    if (auto prefetch = dyn_cast<PrefetchOp>(op))
      return change(prefetch);
    if (auto create = dyn_cast<CreateOp>(op))
      return change(create);
    return change(cast<OffloadOp>(op));
  }

  /// A condition that holds always, never, or at an end of a loop around.
  Value condition(Operation *op) {
    builder.setInsertionPoint(op);
    auto loop = dyn_cast<LoopOp>(op->getParentOp());
    int64_t which = random.below(loop ? 4 : 2);
    if (which < 2)
      return arith::ConstantIntOp::create(builder, op->getLoc(), which, 1);
    Type i1 = builder.getI1Type();
    return which == 2 ? Value(AtFirstOp::create(builder, op->getLoc(), i1, loop.getInductionVar()))
                      : Value(AtLastOp::create(builder, op->getLoc(), i1, loop.getInductionVar()));
  }
  bool flipRetain() {
    auto release = cast_or_null<ReleaseOp>(one<ReleaseOp>());
    if (!release)
      return false;
    if (release.getRetain() && random.chance(0.7))
      release.getRetainMutable().clear();
    else
      release.getRetainMutable().assign(condition(release));
    return true;
  }
  bool flipZero() {
    auto prefetch = cast_or_null<PrefetchOp>(one<PrefetchOp>());
    if (!prefetch)
      return false;
    if (prefetch.getZero() && random.chance(0.5))
      prefetch.getZeroMutable().clear();
    else
      prefetch.getZeroMutable().assign(condition(prefetch));
    return true;
  }

  bool moveOp() {
    Operation *op = one<PrefetchOp, CreateOp, OffloadOp, CopyOp, ReleaseOp, LaunchOp, UpdateOp,
                        LoopOp, FinishNormOp>();
    if (!op)
      return false;
    if (random.chance(0.3)) { // out of a loop
      auto loop = dyn_cast<LoopOp>(op->getParentOp());
      if (!loop)
        return false;
      random.chance(0.5) ? op->moveBefore(loop) : op->moveAfter(loop);
      return true;
    }
    std::vector<Operation *> places;
    for (Operation &other : *op->getBlock())
      if (&other != op)
        places.push_back(&other);
    if (places.empty())
      return false;
    random.chance(0.5) ? op->moveBefore(random.pick(places)) : op->moveAfter(random.pick(places));
    return true;
  }
  bool twice() {
    Operation *op = one<OffloadOp, CopyOp, ReleaseOp, LaunchOp, UpdateOp, NormOp, FinishNormOp,
                        PrefetchOp, LoopOp>();
    if (!op)
      return false;
    builder.setInsertionPointAfter(op);
    builder.clone(*op);
    return true;
  }
  bool changeLoop() {
    auto loop = cast_or_null<LoopOp>(one<LoopOp>());
    if (!loop)
      return false;
    switch (random.below(4)) {
    case 0:
      loop.setLower(loop.getLower() + 1);
      return loop.getLower() < loop.getUpper();
    case 1:
      loop.setUpper(loop.getUpper() - 1);
      return loop.getLower() < loop.getUpper();
    case 2:
      if (loop.getOrder() == LoopOrder::snake) {
        loop.setPhase(1 - loop.getPhase());
        return true;
      }
      loop.setOrder(loop.getOrder() == LoopOrder::forward ? LoopOrder::reverse
                                                          : LoopOrder::forward);
      return true;
    default:
      if (loop.getGuard())
        loop.getGuardMutable().clear();
      else
        loop.getGuardMutable().assign(loop->getParentOfType<StepOp>().getPending());
      return true;
    }
  }
  bool otherKernel() {
    auto launch = cast_or_null<LaunchOp>(one<LaunchOp>());
    if (!launch)
      return false;
    auto func = module.lookupSymbol<func::FuncOp>(launch.getKernel());
    std::vector<StringRef> others;
    for (auto other : module.getOps<func::FuncOp>())
      if (other != func && func && other.getFunctionType() == func.getFunctionType())
        others.push_back(other.getSymName());
    if (others.empty())
      return false;
    launch.setKernel(random.pick(others));
    return true;
  }
  bool otherStep() {
    auto update = cast_or_null<UpdateOp>(one<UpdateOp>());
    if (!update)
      return false;
    auto step = update->getParentOfType<StepOp>();
    update.getStepMutable().assign(update.getStep() == step.getStep() ? step.getPending()
                                                                      : step.getStep());
    return true;
  }
  bool removeNorm() {
    Operation *op = one<NormOp, FinishNormOp>();
    if (op)
      op->erase();
    return op;
  }
  bool otherSpace() {
    Operation *op = one<PrefetchOp, CreateOp>();
    if (!op)
      return false;
    auto type = cast<BufferType>(op->getResult(0).getType());
    op->getResult(0).setType(
        BufferType::get(builder.getContext(), type.getContents(),
                        type.getSpace() == Space::device ? Space::host : Space::device));
    return true;
  }
  bool otherHome() {
    std::vector<StorageOp> storages(module.getOps<StorageOp>().begin(),
                                    module.getOps<StorageOp>().end());
    StorageOp storage = random.pick(storages);
    SmallVector<Attribute> ranges;
    auto add = [&](int64_t end) {
      SmallVector<HomeAttr> homes;
      if (int64_t chunks = storage.getChunks(); chunks > 1 && random.chance(0.3))
        homes.push_back(HomeAttr::get(builder.getContext(), random.pick({Tier::device, Tier::host}),
                                      random.between(1, chunks - 1)));
      homes.push_back(HomeAttr::get(builder.getContext(),
                                    random.pick({Tier::device, Tier::host, Tier::ssd}), 0));
      ranges.push_back(EntryHomesAttr::get(builder.getContext(), end, homes));
    };
    if (int64_t entries = storage.getEntryCount(); entries > 1 && random.chance(0.3))
      add(random.between(1, entries - 1));
    add(0);
    storage.setHomesAttr(builder.getArrayAttr(ranges));
    return true;
  }

  ModuleOp module;
  const Observations &seen;
  Random &random;
  OpBuilder builder;
};

} // namespace

std::vector<std::string> mutationKinds() {
  std::vector<std::string> kinds;
  for (auto &[name, way] : Mutator::ways())
    kinds.push_back(name);
  return kinds;
}

bool mutate(ModuleOp module, StringRef kind, const Observations &seen, Random &random) {
  return Mutator(module, seen, random).mutate(kind);
}

} // namespace boa::random
