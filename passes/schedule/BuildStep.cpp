//===- BuildStep.cpp - --boa-build-step -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the stages to loops over indexed storage, in horizontal order. Assumes a
// verified model, and for @step the functions of --boa-differentiate. Stages.h says
// where results and their gradients are.
//
//===----------------------------------------------------------------------===//
#include "dialect/CallLayout.h"
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/model/Optimizers.h"
#include "passes/model/Stages.h"
#include "passes/schedule/StepSize.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <set>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_BUILDSTEP
#include "passes/Passes.h.inc"

namespace {

class StepBuilder {
public:
  StepBuilder(ModuleOp module, bool predict)
      : module(module), builder(module.getBodyRegion()), config(module), predict(predict) {
    builder.setInsertionPointToEnd(module.getBody());
    microBatches = config.microBatches();
    stages = findStages(module);
  }

  LogicalResult run() {
    if (failed(checkLayerRuns(module)) || failed(checkFunctions(module, stages, predict)))
      return failure();
    if (!predict && !findOptimizer(module))
      createOptimizer(module, config.train.optimizer);
    declareStorages();
    if (predict)
      placeInMemory();
    else
      buildStep();
    buildForward(predict ? EntryPoint::predict : EntryPoint::evaluate);
    return success();
  }

private:
  func::FuncOp lookup(const Stage &stage, StageFunction function) {
    return module.lookupSymbol<func::FuncOp>(getFunctionName(stage.name, function));
  }

  //===--------------------------------------------------------------------===//
  // Storages
  //===--------------------------------------------------------------------===//

  StorageOp declare(Role role, const Twine &name, ArrayRef<int64_t> dims, Type type, int64_t chunks,
                    bool persistent) {
    auto home = HomeAttr::get(builder.getContext(), Tier::device, 0);
    return StorageOp::create(builder, module.getLoc(), name.str(), dims, type,
                             StorageOp::makeHomes(home), role, chunks, persistent, ArrayAttr());
  }
  StorageOp declare(Role role, ArrayRef<int64_t> dims, Type type, StringRef of = {},
                    int64_t chunks = 1, bool persistent = false) {
    return declare(role, getStorageName(role, of), dims, type, chunks, persistent);
  }

  void declareStorages() {
    declareInputs();
    if (predict) {
      CrossEntropyOp loss =
          findLoss(lookup(stages.back(), StageFunction::forward), stages.back().find(kTargets));
      declare(Role::logits, {microBatches}, getSumType(loss.getLogits().getType()));
    } else {
      for (Role role : {Role::loss_gradients, Role::loss})
        declare(role, {microBatches}, RankedTensorType::get({}, builder.getF32Type()));
    }
    declareBoundaries();
    for (auto group : module.getOps<GroupOp>())
      declareGroup(group);
    for (const Stage &stage : stages)
      if (auto saving = lookup(stage, StageFunction::forward_saving); saving && !predict)
        for (const CallSlot &slot : CallLayout::get(saving).outputs)
          if (slot.kind == CallSlot::Kind::saved)
            declareSaved(stage, slot, saving.getResultAttr(slot.positions.front(), kPlaceAttr));
  }

  /// Declares the storage of a saved value. `place` is a place of its own, or null.
  void declareSaved(const Stage &stage, const CallSlot &slot, Attribute place) {
    StorageOp storage =
        declare(Role::saved, {stage.saving, microBatches}, slot.type, savedName(stage, slot));
    if (place)
      storage->setDiscardableAttr(kPlaceAttr, place);
  }

  void declareInputs() {
    for (auto input : module.getOps<InputOp>()) {
      if (predict && input.getSymName() == kTargets)
        continue;
      SmallVector<int64_t> dims{microBatches};
      if (input.getSource() == InputSource::seed)
        dims.insert(dims.begin(), countSeedEntries(stages));
      declare(Role::input, dims, input.getType(), input.getSymName());
    }
  }

  /// Declares storages for the results of all stages but the last, and for their gradients.
  void declareBoundaries() {
    for (const ResultStorage &each : assignEntries(stages)) {
      declare(Role::checkpoints, {each.results, microBatches}, each.type, each.of);
      if (!predict && each.gradients > 0)
        declare(Role::boundary_gradients, {each.gradients, microBatches}, each.type, each.of);
    }
    for (const Stage &stage : stages)
      for (const StageResult &result : stage.results)
        if (result.hasGradient && result.summed && !predict)
          declare(Role::boundary_gradients, {microBatches}, getSumType(result.type),
                  sumName(result));
  }

  /// The name of the storage in which gradients of a result are added up.
  static std::string sumName(const StageResult &result) { return result.name + ".sum"; }

  /// The name of the storage of a saved value. A stage has one for each element type, and one for
  /// each value that has a place of its own, by the value's name.
  static std::string savedName(const Stage &stage, const CallSlot &slot) {
    std::string name = stage.name;
    if (!slot.group.empty())
      name += "." + slot.group;
    // A value may be named as a type is.
    if (Type element = slot.type.getElementType();
        !element.isF32() || slot.group == "bf16" || slot.group == "f64")
      llvm::raw_string_ostream(name) << "." << element;
    return name;
  }

  void declareGroup(GroupOp group) {
    StringRef name = group.getSymName();
    int64_t chunks = group.getChunks();
    SmallVector<int64_t> dims{int64_t(group.getRepeat())};
    auto typeOf = [&](Type element) -> Type {
      return RankedTensorType::get({group.getPaddedElements()}, element);
    };
    bool bf16 = config.train.weights == WeightType::bf16;
    Type f32 = builder.getF32Type();
    Type weight = bf16 ? Type(builder.getBF16Type()) : f32;
    declare(Role::weights, dims, typeOf(weight), name, chunks, /*persistent=*/true);
    if (predict || group.getFrozen())
      return;
    declare(Role::gradients, dims, typeOf(f32), name, chunks);
    if (bf16)
      declare(Role::master, dims, typeOf(builder.getI16Type()), name, chunks, /*persistent=*/true);
    for (auto [state, type] : findOptimizer(module).getStateTypes())
      declare(Role::state, getStateName(state, name), dims, getStateEntryType(group, type), chunks,
              /*persistent=*/true);
  }

  /// Places all in memory: the plan's places are of a training. --boa-place-weights comes later.
  void placeInMemory() {
    config.plan.place = PlaceSettings();
    writeConfig(module, kPlanConfig, config.plan);
  }

  //===--------------------------------------------------------------------===//
  // Pieces of the loop nest
  //===--------------------------------------------------------------------===//

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, module.getLoc(), value);
  }
  /// Returns `index` + by, or a constant if there is no loop.
  Value shifted(Value index, int64_t by) {
    if (!index)
      return constant(by);
    return by == 0 ? index : ShiftOp::create(builder, loc, index, by).getResult();
  }
  Value read(Role role, ValueRange indices, StringRef of = {}) {
    StorageOp op = findStorage(module, role, of);
    return ReadOp::create(builder, loc, op.getEntryType(), op.getSymName(), indices);
  }
  void write(Value value, Role role, ValueRange indices, StringRef of = {}) {
    WriteOp::create(builder, loc, value, getStorageName(role, of), indices);
  }
  Value read(Role role, const EntryRange &range, Value layer, Value m) {
    return read(role, {shifted(layer, range.entry), m}, range.of);
  }
  void write(Value value, Role role, const EntryRange &range, Value layer, Value m) {
    write(value, role, {shifted(layer, range.entry), m}, range.of);
  }
  LoopOp loop(Dimension dimension, int64_t first, int64_t end, LoopOrder order) {
    auto op = LoopOp::create(builder, module.getLoc(), dimension, first, end, order);
    builder.setInsertionPointToStart(op.getBlock());
    return op;
  }
  LoopOp loop(Dimension dimension, int64_t count) {
    return loop(dimension, 0, count, LoopOrder::forward);
  }

  /// Layers [first, end) of a stage, which all do the same: they save activations if `saving`.
  struct Segment {
    int64_t first, end;
    bool saving = false;
  };
  SmallVector<Segment, 3> segmentsOf(const Stage &stage, bool training = true) {
    // The first layer that saves.
    const int64_t saves = stage.repeat - (training ? stage.saving : 0);
    SmallVector<Segment, 3> segments{{0, saves, false}, {saves, stage.repeat, true}};
    llvm::erase_if(segments, [](const Segment &segment) { return segment.first == segment.end; });
    // The first layer reads and writes elsewhere.
    if (Segment &first = segments.front(); stage.beginsApart() && first.end > 1) {
      first.first = 1;
      segments.insert(segments.begin(), Segment{0, 1, first.saving});
    }
    return segments;
  }
  /// The entries of what a stage saves, from the first layer that does.
  Value savedEntry(const Stage &stage, Value layer) {
    return shifted(layer, layer ? stage.saving - stage.repeat : 0);
  }

  /// Reads the activations that an instance takes, without those that its function lacks.
  SmallVector<Value> readInputs(const Stage &stage, const Segment &segment, Value layer, Value m,
                                const llvm::BitVector &lacks = {}) {
    SmallVector<Value> inputs;
    for (auto [i, input] : llvm::enumerate(stage.inputs)) {
      if (i < lacks.size() && lacks[i])
        continue;
      if (input.isResult()) {
        auto [range, moves] = locate(stages, stage, unsigned(i), segment.first);
        inputs.push_back(read(Role::checkpoints, range, moves ? layer : Value(), m));
      } else if (input.fromSeed) {
        inputs.push_back(read(Role::input, {shifted(layer, stage.seedEntry), m}, input.input));
      } else {
        inputs.push_back(read(Role::input, m, input.input));
      }
    }
    return inputs;
  }

  /// The entry of a group that a layer takes: its own, if the group repeats.
  Value entryOf(StringRef group, Value layer) {
    return layer && repeats(group) ? layer : constant(0);
  }
  bool repeats(StringRef group) {
    return findStorage(module, Role::weights, group).getDims().front() > 1;
  }

  /// Calls `callee` for instance `layer` of a stage (null where it does not
  /// repeat) and micro-batch `m`. `activations` are the operands before packs.
  SmallVector<Value> call(func::FuncOp callee, SmallVector<Value> operands, Value layer, Value m,
                          const Stage &stage) {
    CallLayout layout = CallLayout::get(callee);
    for (const CallSlot &slot : layout.inputs) {
      if (slot.kind == CallSlot::Kind::activation)
        continue;
      if (slot.kind == CallSlot::Kind::saved)
        operands.push_back(
            read(Role::saved, {savedEntry(stage, layer), m}, savedName(stage, slot)));
      else
        operands.push_back(read(Role::weights, entryOf(slot.group, layer), slot.group));
    }
    SmallVector<Type> types;
    for (const CallSlot &slot : layout.outputs)
      types.push_back(slot.type);
    auto op = CallOp::create(builder, loc, types, callee.getName(), operands);
    return SmallVector<Value>(op.getResults());
  }

  /// Builds the forward pass of one instance.
  void forwardInstance(const Stage &stage, const Segment &segment, Value layer, Value m) {
    func::FuncOp callee =
        lookup(stage, segment.saving ? StageFunction::forward_saving : StageFunction::forward);
    loc = callee.getLoc();
    auto outputs = call(callee, readInputs(stage, segment, layer, m), layer, m, stage);
    for (auto [result, value] : llvm::zip(stage.results, outputs))
      write(value, Role::checkpoints, result.value, layer, m);
    for (auto [slot, value] : llvm::zip(CallLayout::get(callee).outputs, outputs))
      if (slot.kind == CallSlot::Kind::saved)
        write(value, Role::saved, {savedEntry(stage, layer), m}, savedName(stage, slot));
  }

  void forwardStage(const Stage &stage, Value m, bool training) {
    for (const Segment &segment : segmentsOf(stage, training)) {
      if (stage.repeat == 1)
        return forwardInstance(stage, segment, Value(), m);
      OpBuilder::InsertionGuard guard(builder);
      LoopOp layers = loop(Dimension::layer, segment.first, segment.end, LoopOrder::forward);
      forwardInstance(stage, segment, layers.getInductionVar(), m);
    }
  }

  /// Whether a contribution is the first one to its entry in a step: then it sets the entry. It
  /// is that of the first call in the program, in the first iteration of `loops`: induction
  /// variables of those loops whose iterations all contribute to one entry, some of them null.
  /// All entries that a call contributes to are new, or none is: a stage has contributed to all of
  /// a group before the next stage does.
  Value isFirst(const std::string &storage, Segment entries, ArrayRef<Value> loops) {
    auto constantBit = [&](bool bit) {
      return arith::ConstantIntOp::create(builder, loc, bit, 1).getResult();
    };
    bool isNew = false;
    for (int64_t entry = entries.first; entry < entries.end; ++entry)
      isNew |= contributed.insert({storage, entry}).second;
    if (!isNew)
      return constantBit(false);
    Value first;
    for (Value index : loops)
      if (index) {
        Value begins = AtFirstOp::create(builder, loc, builder.getI1Type(), index);
        first = first ? arith::AndIOp::create(builder, loc, first, begins).getResult() : begins;
      }
    return first ? first : constantBit(true);
  }

  /// Adds the gradients of shared inputs and of parameters to their storages.
  void accumulateGradients(const CallLayout &layout, ArrayRef<Value> outputs, Value layer, Value m,
                           const Stage &stage, const Segment &segment) {
    const Segment only{0, 1};
    auto added = llvm::make_filter_range(
        stage.inputs, [](const StageInput &each) { return each.hasGradient && !each.given; });
    auto input = added.begin();
    for (auto [slot, value] : llvm::zip(layout.outputs, outputs)) {
      if (slot.kind == CallSlot::Kind::sum) {
        const StageResult &result = stages[input->stage].results[input->result];
        ++input;
        std::string storage = getStorageName(Role::boundary_gradients, sumName(result));
        Value first = isFirst(storage, only, {layer});
        AccumulateOp::create(builder, loc, value, storage, m, first);
      } else if (slot.kind == CallSlot::Kind::group) {
        std::string storage = getStorageName(Role::gradients, slot.group);
        const bool each = layer && repeats(slot.group); // a layer has its own entry
        Value first = isFirst(storage, each ? segment : only, {m, each ? Value() : layer});
        AccumulateOp::create(builder, loc, value, storage, entryOf(slot.group, layer), first);
      }
    }
  }

  void backwardInstance(const Stage &stage, const Segment &segment, Value layer, Value m) {
    func::FuncOp callee =
        lookup(stage, segment.saving && stage.savesSome() ? StageFunction::backward_saved
                                                          : StageFunction::backward);
    loc = callee.getLoc();
    auto [lacks, isNew] = erased.try_emplace(callee.getName());
    if (isNew)
      lacks->second = eraseUnusedInputs(callee, stage);
    SmallVector<Value> inputs = readInputs(stage, segment, layer, m, lacks->second);
    for (const StageResult &result : stage.results)
      if (stage.last)
        inputs.push_back(read(Role::loss_gradients, m));
      else if (result.hasGradient)
        inputs.push_back(read(Role::boundary_gradients, result.gradient, layer, m));
    auto outputs = call(callee, inputs, layer, m, stage);
    const CallLayout layout = CallLayout::get(callee);
    SmallVector<Value> written;
    for (auto [slot, value] : llvm::zip(layout.outputs, outputs))
      if (slot.kind == CallSlot::Kind::activation)
        written.push_back(value);
    unsigned next = 0;
    if (stage.last)
      write(written[next++], Role::loss, m);
    for (auto [i, input] : llvm::enumerate(stage.inputs)) {
      if (!input.hasGradient || !input.given)
        continue;
      auto [range, moves] = locate(stages, stage, unsigned(i), segment.first, /*gradient=*/true);
      write(written[next++], Role::boundary_gradients, range, moves ? layer : Value(), m);
    }
    accumulateGradients(layout, outputs, layer, m, stage, segment);
  }

  /// Adds up the gradients that the uses of a result give.
  void sumGradients(const Stage &stage, const StageResult &result, Value m) {
    auto callee =
        module.lookupSymbol<func::FuncOp>(getFunctionName(result.name, StageFunction::sum));
    loc = callee.getLoc();
    SmallVector<Value> parts;
    for (const EntryRange &part : result.parts)
      parts.push_back(read(Role::boundary_gradients, part, Value(), m));
    if (result.summed)
      parts.push_back(read(Role::boundary_gradients, m, sumName(result)));
    auto outputs = call(callee, parts, Value(), m, stage);
    write(outputs[0], Role::boundary_gradients, result.gradient.shifted(stage.repeat - 1), Value(),
          m);
  }

  void backwardStage(const Stage &stage, Value m) {
    for (const StageResult &result : stage.results)
      if (result.hasSum())
        sumGradients(stage, result, m);
    const SmallVector<Segment, 3> segments = segmentsOf(stage);
    for (const Segment &segment : llvm::reverse(segments)) {
      if (stage.repeat == 1)
        return backwardInstance(stage, segment, Value(), m);
      OpBuilder::InsertionGuard guard(builder);
      LoopOp layers = loop(Dimension::layer, segment.first, segment.end, LoopOrder::reverse);
      backwardInstance(stage, segment, layers.getInductionVar(), m);
    }
  }

  //===--------------------------------------------------------------------===//
  // Entry points
  //===--------------------------------------------------------------------===//

  StepOp beginEntry(EntryPoint point) {
    builder.setInsertionPointToEnd(module.getBody());
    auto entry = StepOp::create(builder, module.getLoc(), point);
    builder.setInsertionPointToStart(entry.getBlock());
    return entry;
  }

  void buildStep() {
    StepOp entry = beginEntry(EntryPoint::step);
    LoopOp micro = loop(Dimension::micro_batch, microBatches);
    Value m = micro.getInductionVar();
    for (const Stage &stage : stages)
      if (!stage.last)
        forwardStage(stage, m, /*training=*/true);
    for (const Stage &stage : llvm::reverse(stages))
      if (stage.trains)
        backwardStage(stage, m);
    builder.setInsertionPointToEnd(entry.getBlock());
    if (NeedsNorm(config.train))
      measureNorm(entry);
    for (GroupOp group : trainedGroups())
      perLayer(group, [&](Value layer) {
        OptimizerUpdateOp::create(builder, loc, group.getSymName(), layer, 0, group.getChunks(),
                                  entry.getStep());
      });
  }

  SmallVector<GroupOp> trainedGroups() {
    return llvm::filter_to_vector(module.getOps<GroupOp>(),
                                  [](GroupOp group) { return !group.getFrozen(); });
  }

  void measureNorm(StepOp entry) {
    for (GroupOp group : trainedGroups())
      perLayer(group, [&](Value layer) {
        GradientNormOp::create(builder, loc, group.getSymName(), layer);
      });
    FinishNormOp::create(builder, loc, entry.getStep());
  }

  void perLayer(GroupOp group, function_ref<void(Value)> body) {
    loc = group.getLoc();
    OpBuilder::InsertionGuard guard(builder);
    LoopOp layers = loop(Dimension::layer, group.getRepeat());
    body(layers.getInductionVar());
  }

  /// Builds a forward pass of all micro-batches, to the loss or to the logits.
  void buildForward(EntryPoint point) {
    bool logits = point == EntryPoint::predict;
    beginEntry(point);
    LoopOp micro = loop(Dimension::micro_batch, microBatches);
    Value m = micro.getInductionVar();
    for (const Stage &stage : stages)
      if (!stage.last)
        forwardStage(stage, m, /*training=*/false);
    const Stage &last = stages.back();
    func::FuncOp callee = lookup(last, StageFunction::forward);
    llvm::BitVector lacks(unsigned(last.inputs.size()));
    if (logits) {
      lacks.set(*last.find(kTargets));
      callee = createLogits(callee, last.name, *last.find(kTargets));
    }
    loc = callee.getLoc();
    auto outputs = call(callee, readInputs(last, {0, 1}, Value(), m, lacks), Value(), m, last);
    write(outputs[0], logits ? Role::logits : Role::loss, m);
  }

  ModuleOp module;
  OpBuilder builder;
  Config config;
  bool predict;
  int64_t microBatches = 1;
  SmallVector<Stage> stages;
  llvm::StringMap<llvm::BitVector> erased;               // arguments of backward functions
  std::set<std::pair<std::string, int64_t>> contributed; // entries of gradients
  Location loc = builder.getUnknownLoc();
};

struct BuildStep : impl::BuildStepBase<BuildStep> {
  using BuildStepBase::BuildStepBase;
  void runOnOperation() override {
    if (failed(StepBuilder(getOperation(), predict).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace boa
