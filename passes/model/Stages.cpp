//===- Stages.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/model/Stages.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace boa {

/// Whether a stage takes a parameter that is trained, or has no forward function.
static bool takesTrained(ModuleOp module, StageOp stage) {
  auto func = module.lookupSymbol<FunctionOpInterface>(stage.getCallee());
  for (unsigned i = 0; func && i < func.getNumArguments(); ++i)
    if (auto param = func.getArgAttrOfType<SymbolRefAttr>(i, kParamAttr)) {
      auto group = module.lookupSymbol<GroupOp>(param.getRootReference());
      if (!group || !group.getFrozen())
        return true;
    }
  return !func;
}

std::optional<unsigned> Stage::find(StringRef input) const {
  for (auto [i, each] : llvm::enumerate(inputs))
    if (each.input == input)
      return unsigned(i);
  return std::nullopt;
}

bool Stage::beginsApart() const {
  return llvm::any_of(inputs, [](const StageInput &each) { return each.carried && !each.follows; });
}

static bool isFloat(Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }

/// Follows which uses of results give gradients: those of `stage`, behind those of earlier stages.
static void findGradients(MutableArrayRef<Stage> stages, Stage &stage) {
  for (StageInput &input : stage.inputs) {
    if (!input.isResult())
      continue;
    Stage &from = stages[input.stage];
    StageResult &result = from.results[input.result];
    input.hasGradient = isFloat(result.type) && (from.trains || (input.carried && stage.trains));
    if (!input.hasGradient)
      continue;
    const bool isFirst = result.given == 0 && !result.summed;
    input.given = input.carried || (isFirst && stage.repeat == 1);
    if (input.given)
      ++result.given;
    else
      result.summed = true;
  }
}

SmallVector<Stage> findStages(ModuleOp module) {
  SmallVector<Stage> stages;
  llvm::StringMap<unsigned> numbers;
  llvm::StringSet<> layers; // whose groups say so
  for (auto group : module.getOps<GroupOp>())
    if (group->hasAttr(kLayerAttr))
      layers.insert(getUserName(group.getSymName()));
  for (auto op : module.getOps<StageOp>()) {
    Stage stage{op.getStageName().str(), int64_t(op.getRepeat())};
    auto func = module.lookupSymbol<FunctionOpInterface>(op.getCallee());
    for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
      stage.results.push_back({type, i == 0 ? stage.name : stage.name + "." + std::to_string(i)});
    stage.trains = takesTrained(module, op);
    for (TakenAttr taken : op.getTaken()) {
      StageInput &input = stage.inputs.emplace_back();
      if (InputOp given = op.getInput(taken)) {
        input.input = given.getSymName().str();
        input.fromSeed = given.getSource() == InputSource::seed;
        continue;
      }
      input.stage = numbers.lookup(taken.getFrom().getValue());
      input.result = unsigned(taken.getNumber());
      const Stage &from = stages[input.stage];
      stage.trains |= from.trains && isFloat(from.results[input.result].type);
    }
    if (stage.repeat > 1)
      for (StageInput &input : MutableArrayRef(stage.inputs).take_front(stage.results.size()))
        input.carried = true;
    stage.seedEntry = countSeedEntries(stages);
    stage.isLayer = stage.repeat > 1 || layers.contains(stage.name);
    auto saves = op.getSaves();
    if (saves || module.lookupSymbol(getFunctionName(stage.name, StageFunction::forward_saving)))
      stage.saving = saves.value_or(stage.repeat);
    findGradients(stages, stage);
    numbers[op.getCallee()] = unsigned(stages.size());
    stages.push_back(std::move(stage));
  }
  if (!stages.empty()) {
    stages.back().last = true;
    for (StageResult &loss : stages.back().results)
      loss.given = 1; // by the trainer
  }
  for (Stage &stage : stages)
    for (StageResult &result : stage.results)
      result.hasGradient = stage.trains && isFloat(result.type) &&
                           (stage.repeat > 1 || result.given > 0 || result.summed);
  return stages;
}

int64_t countSeedEntries(ArrayRef<Stage> stages) {
  if (stages.empty())
    return 0;
  const Stage &last = stages.back();
  auto isFromSeed = [](const StageInput &each) { return each.fromSeed; };
  return last.seedEntry + (llvm::any_of(last.inputs, isFromSeed) ? last.repeat : 0);
}

namespace {
/// Assigns entries, stage by stage.
class EntryAssigner {
public:
  explicit EntryAssigner(MutableArrayRef<Stage> stages) : stages(stages) {}

  SmallVector<ResultStorage> run() {
    for (Stage &stage : stages) {
      for (StageInput &input : stage.inputs)
        if (input.hasGradient && input.given)
          placeGradient(input);
      if (!stage.last)
        for (unsigned i = 0; i < stage.results.size(); ++i)
          placeResult(stage, i);
    }
    if (storages.size() == 1)
      dropName();
    return std::move(storages);
  }

private:
  ResultStorage &find(const EntryRange &range) { return storages[numbers.lookup(range.of)]; }

  /// Assigns the entry of the gradient that a use gives.
  void placeGradient(StageInput &input) {
    Stage &from = stages[input.stage];
    StageResult &result = from.results[input.result];
    if (result.hasGradient && !result.hasSum()) {
      input.gradient = result.gradient.shifted(from.repeat - 1);
      return;
    }
    ResultStorage &storage = find(result.value);
    input.gradient = {storage.of, storage.gradients++};
    result.parts.push_back(input.gradient);
  }

  /// The storage that ends with what argument `number` takes, or null.
  ResultStorage *findEnd(const Stage &stage, unsigned number) {
    if (number >= stage.inputs.size() || !stage.inputs[number].isResult())
      return nullptr;
    const StageInput &input = stage.inputs[number];
    const Stage &from = stages[input.stage];
    const EntryRange &value = from.results[input.result].value;
    ResultStorage &storage = find(value);
    const bool isEnd =
        value.entry + from.repeat == storage.results && storage.type == stage.results[number].type;
    return isEnd ? &storage : nullptr;
  }

  void placeResult(Stage &stage, unsigned number) {
    StageResult &result = stage.results[number];
    ResultStorage *storage = findEnd(stage, number);
    const bool goesOn = storage != nullptr;
    if (!goesOn) {
      numbers[result.name] = unsigned(storages.size());
      storage = &storages.emplace_back(ResultStorage{result.name, result.type});
    }
    result.value = {storage->of, storage->results};
    storage->results += stage.repeat;
    if (result.hasGradient) {
      result.gradient = {storage->of, storage->gradients};
      storage->gradients += stage.repeat;
    }
    if (number >= stage.inputs.size() || !stage.inputs[number].carried)
      return;
    StageInput &input = stage.inputs[number];
    input.follows =
        goesOn && (!input.hasGradient || (input.gradient.of == storage->of &&
                                          input.gradient.entry + 1 == result.gradient.entry));
  }

  void dropName() {
    storages.front().of.clear();
    for (Stage &stage : stages) {
      for (StageInput &input : stage.inputs)
        input.gradient.of.clear();
      for (StageResult &result : stage.results) {
        result.value.of.clear();
        result.gradient.of.clear();
        for (EntryRange &part : result.parts)
          part.of.clear();
      }
    }
  }

  MutableArrayRef<Stage> stages;
  SmallVector<ResultStorage> storages;
  llvm::StringMap<unsigned> numbers; // of storages, by name
};
} // namespace

std::pair<EntryRange, bool> locate(ArrayRef<Stage> stages, const Stage &stage, unsigned number,
                                   int64_t first, bool gradient) {
  const StageInput &input = stage.inputs[number];
  if (input.carried && (input.follows || first > 0)) {
    const StageResult &result = stage.results[number];
    return {(gradient ? result.gradient : result.value).shifted(-1), true};
  }
  if (gradient)
    return {input.gradient, false};
  const Stage &from = stages[input.stage];
  return {from.results[input.result].value.shifted(from.repeat - 1), false};
}

SmallVector<ResultStorage> assignEntries(MutableArrayRef<Stage> stages) {
  return EntryAssigner(stages).run();
}

} // namespace boa
