//===- Additions.cpp - Statements and storages that no model has ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each reads only what was written before, in the order in which the plain program stands;
// whether in another order, too, a pass has to find out.
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Generator.h"

#include "dialect/Boa.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace boa::random {

namespace {

class Adder {
public:
  Adder(ModuleOp module, Random &random)
      : module(module), random(random), builder(module.getContext()), loc(module.getLoc()) {
    activation = RankedTensorType::get({4}, builder.getF32Type());
    step = findEntryPoint(module, EntryPoint::step);
    while (module.lookupSymbol(unique("begin")) || module.lookupSymbol(unique("state")) ||
           module.lookupSymbol(unique("out")))
      ++number;
    for (LoopOp loop : step.getBlock()->getOps<LoopOp>())
      if (loop.getDimension() == Dimension::micro_batch && !micro)
        micro = loop;
    if (micro)
      for (LoopOp loop : micro.getBlock()->getOps<LoopOp>())
        if (loop.getDimension() == Dimension::layer)
          layers.push_back(loop);
  }

  bool add(std::string &what) {
    using How = bool (Adder::*)();
    std::pair<const char *, How> ways[] = {
        {"a value that each micro-batch carries through the layers", &Adder::carried},
        {"a state that micro-batches hand on", &Adder::state},
        {"a statistic, accumulated", &Adder::statistic},
        {"activations from forward to backward", &Adder::activations},
        {"a nest of its own", &Adder::nest},
        {"an average of weights after their update", &Adder::average},
        {"an evaluation of weights", &Adder::evaluation},
        {"an entry point", &Adder::entryPoint},
        {"a second call on what was read", &Adder::secondCall}};
    auto &[name, way] = ways[random.below(std::size(ways))];
    what = name;
    return micro && (this->*way)() && verifies(module);
  }

private:
  std::string unique(StringRef base) { return (base + std::to_string(number)).str(); }

  StorageOp declare(StringRef base, ArrayRef<int64_t> dims, Type type, Role role, bool persistent,
                    int64_t chunks = 1) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(step);
    Tier tier = random.pick({Tier::ssd, Tier::ssd, Tier::host, Tier::device});
    return StorageOp::create(builder, loc, unique(base), dims, type,
                             StorageOp::makeHomes(HomeAttr::get(builder.getContext(), tier, 0)),
                             role, chunks, persistent, ArrayAttr());
  }
  Value read(StorageOp storage, ValueRange indices) {
    return ReadOp::create(builder, loc, storage.getEntryType(), storage.getSymName(), indices);
  }
  void write(Value value, StorageOp storage, ValueRange indices) {
    WriteOp::create(builder, loc, value, storage.getSymName(), indices);
  }
  Value call(StringRef base, ValueRange inputs, DictionaryAttr resultAttrs = {}, Type result = {}) {
    std::string callee = unique(base);
    Type type = result ? result : activation;
    if (!module.lookupSymbol(callee)) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(step);
      auto func = func::FuncOp::create(builder, loc, callee,
                                       builder.getFunctionType(TypeRange(inputs), type));
      func.setPrivate();
      if (resultAttrs)
        func.setResultAttrs(0, resultAttrs);
    }
    return CallOp::create(builder, loc, TypeRange(type), callee, inputs).getResult(0);
  }
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  StorageOp storage(StringRef name) { return module.lookupSymbol<StorageOp>(name); }
  /// A storage of checkpoints with so many entries; null if there is none.
  StorageOp checkpoints(int64_t entries) {
    for (auto storage : module.getOps<StorageOp>())
      if (storage.getRole() == Role::checkpoints && storage.getDims().size() == 2 &&
          storage.getDims()[0] >= entries)
        return storage;
    return {};
  }
  LoopOp loop(Dimension dimension, int64_t upper, LoopOrder order = LoopOrder::forward) {
    auto op = LoopOp::create(builder, loc, dimension, 0, upper, order);
    builder.setInsertionPointToStart(op.getBlock());
    return op;
  }
  int64_t microBatches() { return micro.getUpper(); }
  Value m() { return micro.getInductionVar(); }

  bool carried() {
    StorageOp carry = declare("carry", {microBatches()}, activation, Role::checkpoints, false);
    StorageOp out = declare("out", {microBatches()}, activation, Role::logits, false);
    builder.setInsertionPointToStart(micro.getBlock());
    write(call("begin", read(storage("input.tokens"), m())), carry, m());
    for (LoopOp loop : layers)
      if (random.chance(0.6)) {
        random.chance(0.5) ? builder.setInsertionPointToStart(loop.getBlock())
                           : builder.setInsertionPointToEnd(loop.getBlock());
        write(call("next", read(carry, m())), carry, m());
      }
    builder.setInsertionPointToEnd(micro.getBlock());
    write(call("end", read(carry, m())), out, m());
    return true;
  }

  bool state() {
    if (layers.empty())
      return false;
    LoopOp loop = random.pick(layers);
    bool perLayer = random.chance(0.7);
    StorageOp state =
        declare("state", {perLayer ? int64_t(loop.getUpper()) : 1}, activation, Role::saved, true);
    random.chance(0.5) ? builder.setInsertionPointToStart(loop.getBlock())
                       : builder.setInsertionPointToEnd(loop.getBlock());
    Value index = perLayer ? Value(loop.getInductionVar()) : constant(0);
    write(call("next", read(state, index)), state, index);
    return true;
  }

  bool statistic() {
    if (layers.empty())
      return false;
    LoopOp in = random.pick(layers);
    bool perLayer = random.chance(0.5);
    int64_t entries = perLayer ? int64_t(in.getUpper()) : 1;
    builder.setInsertionPoint(step);
    auto group = GroupOp::create(builder, loc, unique("params.begin"), entries);
    Block &params = group.getBody().emplaceBlock();
    auto shape = RankedTensorType::get({random.between(1, 3) * 4096}, builder.getF32Type());
    OpBuilder inGroup(&params, params.begin());
    ParamOp::create(inGroup, loc, "w", shape, Init::zeros, 0.0);
    StorageOp sum = declare("sum", {entries}, shape, Role::gradients, false, group.getChunks());
    StorageOp kept = declare("state", {entries}, activation, Role::saved, true);
    builder.setInsertionPointToEnd(in.getBlock());
    auto ref = SymbolRefAttr::get(builder.getContext(), group.getSymName(),
                                  {FlatSymbolRefAttr::get(builder.getContext(), "w")});
    Value x = read(checkpoints(1), {constant(0), m()});
    Value add =
        call("begin", x, builder.getDictionaryAttr(builder.getNamedAttr(kParamAttr, ref)), shape);
    Value first = AtFirstOp::create(builder, loc, builder.getI1Type(), m());
    if (!perLayer)
      first = arith::AndIOp::create(
          builder, loc, first,
          AtFirstOp::create(builder, loc, builder.getI1Type(), in.getInductionVar()));
    AccumulateOp::create(builder, loc, add, sum.getSymName(),
                         perLayer ? Value(in.getInductionVar()) : constant(0), first);
    builder.setInsertionPointAfter(micro);
    Value l = loop(Dimension::layer, entries).getInductionVar();
    write(call("end", {read(sum, l), read(kept, l)}), kept, l);
    return true;
  }

  bool activations() {
    if (layers.size() < 2)
      return false;
    LoopOp from = layers.front(), to = layers.back();
    int64_t count = std::min<int64_t>(from.getUpper(), to.getUpper());
    int64_t all = std::max<int64_t>(from.getUpper(), to.getUpper());
    if (count != all || !checkpoints(all))
      return false;
    StorageOp extra = declare("state", {all, microBatches()}, activation, Role::saved, false);
    StorageOp out = declare("out", {all, microBatches()}, activation, Role::logits, false);
    builder.setInsertionPointToEnd(from.getBlock());
    Value first = from.getInductionVar();
    write(call("begin", read(checkpoints(all), {first, m()})), extra, {first, m()});
    builder.setInsertionPointToStart(to.getBlock());
    Value second = to.getInductionVar();
    write(call("end", read(extra, {second, m()})), out, {second, m()});
    return true;
  }

  /// Before or after the micro-batches, in either nest order, in any direction.
  bool nest() {
    int64_t depth = random.between(1, 3);
    StorageOp made =
        declare("state", {depth, microBatches()}, activation, Role::checkpoints, false);
    StorageOp out = declare("out", {depth, microBatches()}, activation, Role::logits, false);
    random.chance(0.5) ? builder.setInsertionPoint(micro) : builder.setInsertionPointAfter(micro);
    for (bool writes : {true, false}) {
      bool microOutside = random.chance(0.5);
      LoopOp outer = loop(microOutside ? Dimension::micro_batch : Dimension::layer,
                          microOutside ? microBatches() : depth,
                          random.pick({LoopOrder::forward, LoopOrder::reverse}));
      LoopOp inner = loop(microOutside ? Dimension::layer : Dimension::micro_batch,
                          microOutside ? depth : microBatches(),
                          random.pick({LoopOrder::forward, LoopOrder::reverse}));
      if (!microOutside && random.chance(0.4)) {
        inner.setOrder(LoopOrder::snake);
        inner.getParityMutable().assign(random.chance(0.5) ? Value(outer.getInductionVar())
                                                           : step.getStep());
        inner.setPhase(random.below(2));
      }
      Value l = (microOutside ? inner : outer).getInductionVar();
      Value at = (microOutside ? outer : inner).getInductionVar();
      if (writes)
        write(call("begin", read(storage("input.tokens"), at)), made, {l, at});
      else
        write(call("end", read(made, {l, at})), out, {l, at});
      builder.setInsertionPointAfter(outer);
    }
    return true;
  }

  std::vector<StorageOp> weights() {
    std::vector<StorageOp> all;
    for (auto storage : module.getOps<StorageOp>())
      if (storage.getRole() == Role::weights)
        all.push_back(storage);
    return all;
  }

  bool average() {
    auto all = weights();
    StorageOp weight = random.pick(all);
    StorageOp kept = declare("state", weight.getDims(), activation, Role::saved, true);
    builder.setInsertionPointToEnd(step.getBlock());
    Value l = loop(Dimension::layer, weight.getDims()[0]).getInductionVar();
    write(call("next", {read(weight, l), read(kept, l)}), kept, l);
    return true;
  }

  bool evaluation() {
    StepOp evaluate = findEntryPoint(module, EntryPoint::evaluate);
    if (!evaluate)
      return false;
    auto all = weights();
    StorageOp weight = random.pick(all);
    int64_t entries = weight.getDims()[0];
    StorageOp out = declare("out", {entries}, activation, Role::logits, false);
    random.chance(0.5) ? builder.setInsertionPointToStart(evaluate.getBlock())
                       : builder.setInsertionPointToEnd(evaluate.getBlock());
    Value l = loop(Dimension::layer, entries).getInductionVar();
    write(call("end", read(weight, l)), out, l);
    return true;
  }

  bool entryPoint() {
    if (findEntryPoint(module, EntryPoint::predict))
      return false;
    auto all = weights();
    StorageOp weight = random.pick(all);
    int64_t entries = weight.getDims()[0];
    StorageOp out = declare("out", {entries}, activation, Role::logits, false);
    builder.setInsertionPointToEnd(module.getBody());
    auto predict = StepOp::create(builder, loc, EntryPoint::predict);
    for (int64_t times = random.between(1, 2); times; --times) {
      builder.setInsertionPointToEnd(predict.getBlock());
      Value l =
          loop(Dimension::layer, entries, random.pick({LoopOrder::forward, LoopOrder::reverse}))
              .getInductionVar();
      write(call("end", read(weight, l)), out, l);
    }
    return true;
  }

  bool secondCall() {
    std::vector<CallOp> calls;
    module.walk([&](CallOp op) { calls.push_back(op); });
    CallOp first = random.pick(calls);
    SmallVector<Value> indices;
    SmallVector<int64_t> dims;
    for (auto loop = dyn_cast<LoopOp>(first->getParentOp()); loop;
         loop = dyn_cast<LoopOp>(loop->getParentOp())) {
      indices.push_back(loop.getInductionVar());
      dims.push_back(loop.getUpper());
    }
    StorageOp out = declare("out", dims, activation, Role::logits, false);
    builder.setInsertionPointAfter(first);
    write(call("end", first.getInputs()), out, indices);
    return true;
  }

  ModuleOp module;
  Random &random;
  OpBuilder builder;
  Location loc;
  RankedTensorType activation;
  StepOp step;
  LoopOp micro;
  std::vector<LoopOp> layers; // in it
  int64_t number = 0;
};

} // namespace

bool addSomething(ModuleOp module, Random &random, std::string &what) {
  OwningOpRef<ModuleOp> changed = module.clone();
  if (!Adder(*changed, random).add(what))
    return false;
  module.getBodyRegion().takeBody(changed->getBodyRegion());
  return true;
}

} // namespace boa::random
