//===- BuildStep.cpp - --boa-build-step -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the chain of stages to loops over indexed storage, in horizontal order.
// Assumes a verified model, and for @step the functions of --boa-differentiate.
//
// Boundary k is the activation between stage instances k and k+1 (instances:
// each repetition counts); checkpoints[k, m] holds it, boundary_gradients[k, m]
// its gradient.
//
//===----------------------------------------------------------------------===//
#include "dialect/CallLayout.h"
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/model/Optimizers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

#include <set>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_BUILDSTEP
#include "passes/Passes.h.inc"

namespace {

/// One stage and where its boundaries are.
struct Stage {
  std::string name;
  int64_t repeat;
  int64_t boundary; // index of the boundary after its first instance
  bool first, last;
};

class StepBuilder {
public:
  StepBuilder(ModuleOp module, bool predict)
      : module(module), builder(module.getBodyRegion()), config(module), predict(predict) {
    builder.setInsertionPointToEnd(module.getBody());
    microBatches = config.microBatches();
    int64_t boundary = 0;
    SmallVector<StageOp> ops(module.getOps<StageOp>());
    for (auto [i, op] : llvm::enumerate(ops)) {
      stages.push_back({op.getStageName().str(), int64_t(op.getRepeat()), boundary, i == 0,
                        i + 1 == ops.size()});
      boundary += op.getRepeat();
    }
    boundaries = boundary - 1; // the last stage has a loss, not a boundary
  }

  LogicalResult run() {
    if (failed(checkFunctions()))
      return failure();
    if (!predict && !findOptimizer(module))
      createOptimizer(module, config.train.optimizer);
    declareStorages();
    if (predict) {
      placeInMemory();
      buildForward(EntryPoint::predict);
      return success();
    }
    buildStep();
    buildForward(EntryPoint::evaluate);
    return success();
  }

private:
  /// Stages are found by the names of their functions.
  LogicalResult checkFunctions() {
    if (stages.size() < 2)
      return module.emitError("expected at least two stages but found ") << stages.size();
    for (const Stage &stage : stages)
      for (StageFunction function : {StageFunction::forward, StageFunction::backward}) {
        bool backward = function == StageFunction::backward;
        if (!(predict && backward) && !lookup(stage, function))
          return module.emitError("expected a function @")
                 << getFunctionName(stage.name, function)
                 << (backward ? ", which --boa-differentiate makes" : "");
      }
    func::FuncOp last = lookup(stages.back(), StageFunction::forward);
    if (predict && !findLoss(last))
      return last.emitOpError("cannot predict: expected one boa.cross_entropy, and no other op, to "
                              "take the targets: its logits are the prediction");
    return success();
  }

  func::FuncOp lookup(const Stage &stage, StageFunction function) {
    return module.lookupSymbol<func::FuncOp>(getFunctionName(stage.name, function));
  }

  //===--------------------------------------------------------------------===//
  // Storages
  //===--------------------------------------------------------------------===//

  void declare(Role role, const Twine &name, ArrayRef<int64_t> dims, Type type, int64_t chunks,
               bool persistent) {
    Attribute home = HomeAttr::get(builder.getContext(), Tier::device, 0);
    StorageOp::create(builder, module.getLoc(), name.str(), dims, type, builder.getArrayAttr(home),
                      role, chunks, persistent, ArrayAttr());
  }
  void declare(Role role, ArrayRef<int64_t> dims, Type type, StringRef of = {}, int64_t chunks = 1,
               bool persistent = false) {
    declare(role, getStorageName(role, of), dims, type, chunks, persistent);
  }

  void declareStorages() {
    func::FuncOp first = lookup(stages.front(), StageFunction::forward);
    func::FuncOp last = lookup(stages.back(), StageFunction::forward);
    Type f32 = builder.getF32Type();
    declare(Role::tokens, {microBatches}, first.getArgumentTypes()[0]);
    if (predict) {
      declare(Role::logits, {microBatches}, getSumType(findLoss(last).getLogits().getType()));
    } else {
      declare(Role::targets, {microBatches}, last.getArgumentTypes()[1]);
      declare(Role::loss, {microBatches}, RankedTensorType::get({}, f32));
    }
    Type boundary = first.getResultTypes()[0];
    declare(Role::checkpoints, {boundaries, microBatches}, boundary);
    if (!predict)
      declare(Role::boundary_gradients, {boundaries, microBatches}, boundary);
    for (auto group : module.getOps<GroupOp>())
      declareGroup(group);
    for (const Stage &stage : stages)
      if (auto saving = lookup(stage, StageFunction::forward_saving); saving && !predict)
        for (const CallSlot &slot : CallLayout::get(saving).outputs)
          if (slot.kind == CallSlot::Kind::saved)
            declare(Role::saved, {stage.repeat, microBatches}, slot.type, savedName(stage, slot));
  }

  /// What a stage saves lies in one storage for each element type.
  static std::string savedName(const Stage &stage, const CallSlot &slot) {
    std::string name = stage.name;
    if (Type element = slot.type.getElementType(); !element.isF32())
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
    if (predict)
      return;
    declare(Role::gradients, dims, typeOf(f32), name, chunks);
    if (bf16)
      declare(Role::master, dims, typeOf(builder.getI16Type()), name, chunks, /*persistent=*/true);
    for (auto [state, type] : findOptimizer(module).getStateTypes())
      declare(Role::state, getStateName(state, name), dims, getStateEntryType(group, type), chunks,
              /*persistent=*/true);
  }

  /// Text is generated one token at a time: weights that came from SSD for each
  /// would be all that it does.
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
  Value read(Role role, ValueRange indices, StringRef of = {}) {
    StorageOp op = findStorage(module, role, of);
    return ReadOp::create(builder, loc, op.getEntryType(), op.getSymName(), indices);
  }
  void write(Value value, Role role, ValueRange indices, StringRef of = {}) {
    WriteOp::create(builder, loc, value, getStorageName(role, of), indices);
  }
  LoopOp loop(Dimension dimension, int64_t count, LoopOrder order = LoopOrder::forward) {
    auto op = LoopOp::create(builder, module.getLoc(), dimension, 0, count, order);
    builder.setInsertionPointToStart(op.getBlock());
    return op;
  }
  /// `index` + by, or a constant where there is no loop.
  Value shifted(Value index, int64_t by) {
    if (!index)
      return constant(by);
    return by == 0 ? index : ShiftOp::create(builder, loc, index, by).getResult();
  }

  /// Calls `callee` for instance `layer` of a stage (null where it does not
  /// repeat) and micro-batch `m`. `activations` are the operands before packs.
  SmallVector<Value> call(func::FuncOp callee, SmallVector<Value> operands, Value layer, Value m,
                          const Stage &stage) {
    CallLayout layout = CallLayout::get(callee);
    for (const CallSlot &slot : layout.inputs) {
      if (slot.kind == CallSlot::Kind::activation)
        continue;
      bool saved = slot.kind == CallSlot::Kind::saved;
      bool own = saved || slot.group == stage.name;
      Value index = own && layer ? layer : constant(0);
      if (saved)
        operands.push_back(read(Role::saved, {index, m}, savedName(stage, slot)));
      else
        operands.push_back(read(Role::weights, index, slot.group));
    }
    SmallVector<Type> types;
    for (const CallSlot &slot : layout.outputs)
      types.push_back(slot.type);
    auto op = CallOp::create(builder, loc, types, callee.getName(), operands);
    return SmallVector<Value>(op.getResults());
  }

  /// Forward of one instance: reads boundary k-1, writes boundary k.
  void forwardInstance(const Stage &stage, Value layer, Value m, bool saving) {
    func::FuncOp callee =
        lookup(stage, saving ? StageFunction::forward_saving : StageFunction::forward);
    loc = callee.getLoc();
    Value input = stage.first ? read(Role::tokens, m)
                              : read(Role::checkpoints, {shifted(layer, stage.boundary - 1), m});
    auto outputs = call(callee, {input}, layer, m, stage);
    write(outputs[0], Role::checkpoints, {shifted(layer, stage.boundary), m});
    for (auto [slot, value] : llvm::zip(CallLayout::get(callee).outputs, outputs))
      if (slot.kind == CallSlot::Kind::saved)
        write(value, Role::saved, {layer ? layer : constant(0), m}, savedName(stage, slot));
  }

  void forwardStage(const Stage &stage, Value m, bool training) {
    bool saving = training && lookup(stage, StageFunction::forward_saving);
    if (stage.repeat == 1)
      return forwardInstance(stage, Value(), m, saving);
    OpBuilder::InsertionGuard guard(builder);
    LoopOp layers = loop(Dimension::layer, stage.repeat);
    forwardInstance(stage, layers.getInductionVar(), m, saving);
  }

  /// Gradient packs to their storages. The first contribution of a step sets: of
  /// what the layers share, that of the first layer to run.
  void accumulateGradients(const CallLayout &layout, ArrayRef<Value> outputs, Value layer, Value m,
                           const Stage &stage) {
    for (auto [slot, value] : llvm::zip(layout.outputs, outputs)) {
      if (slot.kind != CallSlot::Kind::group)
        continue;
      bool initial = seenGradients.insert(slot.group).second;
      Value first = initial ? AtFirstOp::create(builder, loc, builder.getI1Type(), m).getResult()
                            : arith::ConstantIntOp::create(builder, loc, 0, 1).getResult();
      bool own = slot.group == stage.name;
      if (initial && layer && !own)
        first = arith::AndIOp::create(builder, loc, first,
                                      AtFirstOp::create(builder, loc, builder.getI1Type(), layer));
      Value index = own && layer ? layer : constant(0);
      AccumulateOp::create(builder, loc, value, getStorageName(Role::gradients, slot.group), index,
                           first);
    }
  }

  void backwardInstance(const Stage &stage, Value layer, Value m) {
    func::FuncOp callee = lookup(stage, StageFunction::backward);
    loc = callee.getLoc();
    SmallVector<Value> inputs;
    if (stage.first)
      inputs.push_back(read(Role::tokens, m));
    else
      inputs.push_back(read(Role::checkpoints, {shifted(layer, stage.boundary - 1), m}));
    if (stage.last)
      inputs.push_back(read(Role::targets, m));
    else
      inputs.push_back(read(Role::boundary_gradients, {shifted(layer, stage.boundary), m}));
    auto outputs = call(callee, inputs, layer, m, stage);
    unsigned next = 0;
    if (stage.last)
      write(outputs[next++], Role::loss, m);
    if (!stage.first)
      write(outputs[next++], Role::boundary_gradients, {shifted(layer, stage.boundary - 1), m});
    accumulateGradients(CallLayout::get(callee), outputs, layer, m, stage);
  }

  void backwardStage(const Stage &stage, Value m) {
    if (stage.repeat == 1)
      return backwardInstance(stage, Value(), m);
    OpBuilder::InsertionGuard guard(builder);
    LoopOp layers = loop(Dimension::layer, stage.repeat, LoopOrder::reverse);
    backwardInstance(stage, layers.getInductionVar(), m);
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
      backwardStage(stage, m);
    builder.setInsertionPointToEnd(entry.getBlock());
    if (NeedsNorm(config.train))
      measureNorm(entry);
    for (auto group : module.getOps<GroupOp>())
      perLayer(group, [&](Value layer) {
        OptimizerUpdateOp::create(builder, loc, group.getSymName(), layer, 0, group.getChunks(),
                                  entry.getStep());
      });
  }

  void measureNorm(StepOp entry) {
    for (auto group : module.getOps<GroupOp>())
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

  /// A forward pass of all micro-batches, to the loss or to the logits.
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
    if (logits)
      callee = returnLogits(callee, last.name);
    loc = callee.getLoc();
    Value x = read(Role::checkpoints, {constant(last.boundary - 1), m});
    SmallVector<Value> inputs{x};
    if (!logits)
      inputs.push_back(read(Role::targets, m));
    auto outputs = call(callee, inputs, Value(), m, last);
    write(outputs[0], logits ? Role::logits : Role::loss, m);
  }

  /// The op that compares the logits with the targets; none where others take the targets, too.
  static CrossEntropyOp findLoss(func::FuncOp head) {
    if (head.getNumArguments() < 2 || !head.getArgument(1).hasOneUse())
      return {};
    return dyn_cast<CrossEntropyOp>(*head.getArgument(1).user_begin());
  }

  /// @NAME_logits: the last stage without its loss and its targets. The logits are in f32.
  func::FuncOp returnLogits(func::FuncOp head, StringRef stage) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(head);
    auto func = cast<func::FuncOp>(builder.clone(*head));
    func.setName(getFunctionName(stage, StageFunction::logits));
    CrossEntropyOp loss = findLoss(func);
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
    (void)func.eraseArgument(1);
    return func;
  }

  ModuleOp module;
  OpBuilder builder;
  Config config;
  bool predict;
  int64_t microBatches = 1, boundaries = 0;
  SmallVector<Stage> stages;
  std::set<std::string> seenGradients;
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
