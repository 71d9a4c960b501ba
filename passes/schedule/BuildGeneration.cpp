//===- BuildGeneration.cpp - --boa-build-generation -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the functions of --boa-cache-attention to @prefill and @generate. Both share weights and
// caches. Activations are storages of each, since they have other numbers of rows.
//
//===----------------------------------------------------------------------===//
#include "dialect/CallLayout.h"
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/model/Stages.h"
#include "passes/schedule/StepSize.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_BUILDGENERATION
#include "passes/Passes.h.inc"

namespace {

/// The input that says where in their text the tokens are.
constexpr StringLiteral kPositions = "positions";

class GenerationBuilder {
public:
  explicit GenerationBuilder(ModuleOp module)
      : module(module), builder(module.getBodyRegion()), config(module) {
    builder.setInsertionPointToEnd(module.getBody());
    stages = findStages(module);
  }

  LogicalResult run() {
    if (stages.size() < 2)
      return module.emitError("expected at least two stages but found ") << stages.size();
    if (failed(checkLayerRuns(module)))
      return failure();
    for (const Stage &stage : stages)
      for (StageFunction function : {StageFunction::prefill, StageFunction::generate})
        if (failed(checkFunction(stage, function)))
          return failure();
    for (const Stage &stage : stages) {
      func::FuncOp forward = lookup(stage, StageFunction::forward);
      if (!forward || failed(checkSignature(forward, StageFunction::forward, stage)))
        return forward ? failure()
                       : module.emitError("expected a function @")
                             << getFunctionName(stage.name, StageFunction::forward);
      for (Type result : forward.getResultTypes())
        if (!stage.last && cast<RankedTensorType>(result).getRank() < 2)
          return forward.emitOpError("expected a result of rows but found ") << result;
      if (failed(checkPredictable(forward, stage)))
        return failure();
    }
    if (stages.back().results.size() != 1 || !stages.front().takes(kTokens))
      return module.emitError("expected the first stage to take the tokens, and the last one to "
                              "return the loss alone");
    storages = assignEntries(stages);
    declareStorages();
    // The places are of a training. --boa-place-weights knows what fits.
    config.plan.place = PlaceSettings();
    writeConfig(module, kPlanConfig, config.plan);
    build(EntryPoint::prefill, StageFunction::prefill);
    build(EntryPoint::generate, StageFunction::generate);
    return success();
  }

private:
  func::FuncOp lookup(const Stage &stage, StageFunction function) {
    return module.lookupSymbol<func::FuncOp>(getFunctionName(stage.name, function));
  }

  LogicalResult checkFunction(const Stage &stage, StageFunction function) {
    func::FuncOp func = lookup(stage, function);
    if (!func && stage.last && function == StageFunction::prefill)
      return success();
    if (!func)
      return module.emitError("expected a function @")
             << getFunctionName(stage.name, function) << ", which --boa-cache-attention makes";
    if (failed(checkSignature(func, function, stage)))
      return failure();
    // Tokens and activations are [1, rows, ...].
    for (const CallSlot &slot : CallLayout::get(func).inputs)
      if (slot.kind == CallSlot::Kind::activation && slot.type.getRank() < 2)
        return func.emitOpError("expected an activation of rows but found ") << slot.type;
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Storages
  //===--------------------------------------------------------------------===//

  void declare(Role role, StringRef of, ArrayRef<int64_t> dims, Type type, int64_t chunks = 1,
               bool persistent = false) {
    auto home = HomeAttr::get(builder.getContext(), Tier::device, 0);
    StorageOp::create(builder, module.getLoc(), getStorageName(role, of), dims, type,
                      StorageOp::makeHomes(home), role, chunks, persistent, ArrayAttr());
  }

  /// The name of the activations of an entry point: "checkpoints.generate", or
  /// "checkpoints.embed.generate".
  static std::string nameOf(StringRef of, StageFunction function) {
    return ((of.empty() ? "" : of + ".") + stringifyStageFunction(function)).str();
  }

  void declareStorages() {
    for (StageFunction function : {StageFunction::prefill, StageFunction::generate}) {
      const Stage &first = stages.front();
      auto tokens =
          cast<RankedTensorType>(lookup(first, function).getArgumentTypes()[*first.find(kTokens)]);
      for (StringRef input : {kTokens, kPositions})
        declare(Role::input, nameOf(input, function), {1}, tokens);
      for (const ResultStorage &storage : storages) {
        auto type = cast<RankedTensorType>(storage.type);
        SmallVector<int64_t> shape(type.getShape());
        shape[1] = tokens.getDimSize(1);
        declare(Role::checkpoints, nameOf(storage.of, function), {storage.results},
                type.clone(shape));
      }
    }
    declare(Role::logits, "", {1},
            lookup(stages.back(), StageFunction::generate).getResultTypes()[0]);
    for (const Stage &stage : stages)
      for (const CallSlot &slot : CallLayout::get(lookup(stage, StageFunction::generate)).outputs)
        if (slot.kind == CallSlot::Kind::cache)
          declare(Role::cache, cacheName(stage, slot), {stage.repeat}, slot.type);
    const bool bf16 = config.train.weights == WeightType::bf16;
    Type weight = bf16 ? Type(builder.getBF16Type()) : Type(builder.getF32Type());
    for (auto group : module.getOps<GroupOp>())
      declare(Role::weights, group.getSymName(), {int64_t(group.getRepeat())},
              RankedTensorType::get({group.getPaddedElements()}, weight), group.getChunks(),
              /*persistent=*/true);
  }

  /// The name of a cache: a stage has one for each element type.
  static std::string cacheName(const Stage &stage, const CallSlot &slot) {
    std::string name = stage.name;
    if (Type element = slot.type.getElementType(); !element.isF32())
      llvm::raw_string_ostream(name) << "." << element;
    return name;
  }

  //===--------------------------------------------------------------------===//
  // Entry points
  //===--------------------------------------------------------------------===//

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, module.getLoc(), value);
  }
  Value read(Role role, ValueRange indices, StringRef of) {
    StorageOp op = findStorage(module, role, of);
    return ReadOp::create(builder, loc, op.getEntryType(), op.getSymName(), indices);
  }
  Value entryOf(const EntryRange &range, Value layer) {
    if (!layer)
      return constant(range.entry);
    return range.entry == 0 ? layer : ShiftOp::create(builder, loc, layer, range.entry).getResult();
  }
  /// Reads what argument `number` takes.
  Value readInput(const Stage &stage, unsigned number, int64_t firstLayer, Value layer,
                  StageFunction function) {
    const StageInput &input = stage.inputs[number];
    if (!input.isResult())
      return read(Role::input, constant(0), nameOf(input.input, function));
    auto [range, moves] = locate(stages, stage, number, firstLayer);
    return read(Role::checkpoints, entryOf(range, moves ? layer : Value()),
                nameOf(range.of, function));
  }

  void build(EntryPoint point, StageFunction function) {
    builder.setInsertionPointToEnd(module.getBody());
    auto entry = StepOp::create(builder, module.getLoc(), point);
    for (const Stage &stage : stages) {
      builder.setInsertionPointToEnd(entry.getBlock());
      func::FuncOp callee = lookup(stage, function);
      if (!callee)
        continue;
      // Where the first layer reads elsewhere, it has a loop of its own.
      SmallVector<int64_t> ends{0, stage.repeat};
      if (stage.beginsApart())
        ends.insert(ends.begin() + 1, 1);
      for (auto [begin, end] : llvm::zip(ends, ArrayRef(ends).drop_front())) {
        OpBuilder::InsertionGuard guard(builder);
        Value layer;
        if (stage.repeat > 1) {
          auto loop = LoopOp::create(builder, module.getLoc(), Dimension::layer, begin, end);
          builder.setInsertionPointToStart(loop.getBlock());
          layer = loop.getInductionVar();
        }
        call(stage, callee, begin, layer, function);
      }
    }
  }

  /// Calls one instance of a stage; `layer` is null if it does not repeat.
  void call(const Stage &stage, func::FuncOp callee, int64_t firstLayer, Value layer,
            StageFunction function) {
    loc = callee.getLoc();
    const CallLayout layout = CallLayout::get(callee);
    SmallVector<unsigned> numbers;
    for (auto [i, input] : llvm::enumerate(stage.inputs))
      if (input.input != kTargets)
        numbers.push_back(unsigned(i));
    SmallVector<Value> operands;
    for (auto [i, slot] : llvm::enumerate(layout.inputs)) {
      if (slot.kind == CallSlot::Kind::group) {
        const bool each = layer && findStorage(module, Role::weights, slot.group).getDims()[0] > 1;
        operands.push_back(read(Role::weights, each ? layer : constant(0), slot.group));
      } else if (i < numbers.size()) {
        operands.push_back(readInput(stage, numbers[i], firstLayer, layer, function));
      } else {
        operands.push_back(read(Role::input, constant(0), nameOf(kPositions, function)));
      }
    }
    SmallVector<Type> types =
        llvm::map_to_vector(layout.outputs, [](const CallSlot &slot) -> Type { return slot.type; });
    auto op = CallOp::create(builder, loc, types, callee.getName(), operands);
    auto result = stage.results.begin();
    for (auto [slot, value] : llvm::zip(layout.outputs, op.getOutputs())) {
      if (slot.kind == CallSlot::Kind::cache) {
        Value never = arith::ConstantIntOp::create(builder, loc, 0, 1);
        AccumulateOp::create(builder, loc, value,
                             getStorageName(Role::cache, cacheName(stage, slot)),
                             layer ? layer : constant(0), never);
      } else if (stage.last) {
        WriteOp::create(builder, loc, value, getStorageName(Role::logits), constant(0));
      } else {
        const EntryRange &range = (result++)->value;
        WriteOp::create(builder, loc, value,
                        getStorageName(Role::checkpoints, nameOf(range.of, function)),
                        entryOf(range, layer));
      }
    }
  }

  ModuleOp module;
  OpBuilder builder;
  Config config;
  SmallVector<Stage> stages;
  SmallVector<ResultStorage> storages;
  Location loc = builder.getUnknownLoc();
};

struct BuildGeneration : impl::BuildGenerationBase<BuildGeneration> {
  using BuildGenerationBase::BuildGenerationBase;
  void runOnOperation() override {
    if (failed(GenerationBuilder(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace boa
