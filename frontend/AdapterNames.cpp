//===- AdapterNames.cpp - Parameters by the names of PEFT -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/AdapterNames.h"

#include "runtime/abi/module_names.h"

#include <algorithm>

namespace boa::frontend {

namespace {

constexpr char kAllLinear[] = "all-linear";

bool isWeight(const std::string &tensor) {
  const std::string end = ".weight";
  return tensor.size() > end.size() &&
         tensor.compare(tensor.size() - end.size(), end.size(), end) == 0;
}

/// Whether a name means the module: it is the module, or the end of it in whole words.
bool meansModule(const std::string &name, const std::string &module) {
  return matchesPattern(name, module) || matchesPattern("*." + name, module);
}

class Names {
public:
  Names(const char *setting, bool ofTargets, CheckContext context, const ModelSpec &model)
      : setting(setting), ofTargets(ofTargets), context(context), model(model) {
    for (uint32_t stage = 0; stage < model.stages.size(); ++stage)
      for (uint32_t param = 0; param < model.stages[stage].params.size(); ++param)
        all.push_back({stage, param});
  }

  NamedParams read(const Expr &expr) {
    NamedParams found;
    for (const Expr *name :
         readPatternList(expr, setting, "\"q_proj\"", "(\"q_proj\", \"v_proj\")", context))
      found.emplace_back(name, find(*name));
    return found;
  }

private:
  const ParamSpec &paramOf(ParamRef ref) const { return model.stages[ref.stage].params[ref.param]; }
  std::string ownName(ParamRef ref) const {
    return model.stages[ref.stage].name + "." + paramOf(ref).name;
  }
  /// Of a target this is its weight, not its bias.
  std::string moduleOfParam(ParamRef ref) const {
    const std::string &tensor = paramOf(ref).external;
    return ofTargets && !isWeight(tensor) ? "" : ModuleOf(tensor);
  }

  template <typename Predicate> std::vector<ParamRef> filter(Predicate holds) const {
    std::vector<ParamRef> found;
    for (ParamRef ref : all)
      if (holds(ref))
        found.push_back(ref);
    return found;
  }
  template <typename Predicate> std::vector<ParamRef> filterModules(Predicate holds) const {
    return filter([&](ParamRef ref) {
      const std::string module = moduleOfParam(ref);
      return !module.empty() && holds(module);
    });
  }
  std::vector<ParamRef> findModules(const std::string &name) const {
    std::vector<ParamRef> found = filterModules([&](const std::string &module) {
      // PEFT saves modules whose names end so, even within a word: "norm" is all of the norms.
      return meansModule(name, module) || (!ofTargets && matchesPattern("*" + name, module));
    });
    // A folder of a base model alone leaves its name out.
    return found.empty() ? filterModules([&](const std::string &module) {
      return module == InBaseModel(name);
    })
                         : found;
  }

  std::vector<ParamRef> find(const Expr &expr) {
    const std::string &name = expr.name;
    std::vector<ParamRef> found;
    if (ofTargets && name == kAllLinear)
      found = filter([&](ParamRef ref) { return isLinear(ref) && !(ref == weightOfLogits()); });
    if (found.empty())
      found = filter([&](ParamRef ref) { return matchesPattern(name, ownName(ref)); });
    if (found.empty())
      found = findModules(name);
    if (found.empty())
      context.diagnostics.error(expr.location, explain(name));
    return found;
  }

  /// Whether every use is as the weight of linear.
  bool isLinear(ParamRef ref) const {
    bool used = false;
    for (const StageSpec &stage : model.stages)
      for (const ParamUse &use : stage.uses) {
        if (use.stage != ref.stage || use.param != ref.param)
          continue;
        for (const Operation &operation : stage.operations)
          for (size_t i = 0; i < operation.operands.size(); ++i) {
            if (operation.operands[i] != use.value)
              continue;
            if (operation.kind != OperationKind::Linear || i != 1)
              return false;
            used = true;
          }
      }
    return used;
  }

  /// The weight whose product is the logits. One that is no parameter if there is none.
  ParamRef weightOfLogits() const {
    const StageSpec &last = model.stages.back();
    auto makes = [&](uint32_t value) -> const Operation * {
      for (const Operation &operation : last.operations)
        if (std::find(operation.results.begin(), operation.results.end(), value) !=
            operation.results.end())
          return &operation;
      return nullptr;
    };
    for (const Operation &loss : last.operations) {
      if (loss.kind != OperationKind::CrossEntropy)
        continue;
      const Operation *product = makes(loss.operands[0]);
      for (const ParamUse &use : last.uses)
        if (product && product->kind == OperationKind::Linear && product->operands[1] == use.value)
          return {use.stage, use.param};
    }
    return {uint32_t(model.stages.size()), 0};
  }

  /// Why a name means no parameter, and what could be meant.
  std::string explain(const std::string &name) const {
    const std::string general = OfAllLayers(name);
    if (general != name && !findModules(general).empty())
      return "\"" + name + "\" is of one layer, but all layers of a kind are alike: expected \"" +
             general + "\"";
    const ParamRef logits = weightOfLogits();
    if (name == "lm_head" && logits.stage + 1 < model.stages.size())
      return "the model has no module \"lm_head\" of its own, since '" + ownName(logits) +
             "' makes the logits, too" + (ofTargets ? "" : ": name that");
    const std::vector<std::string> names = shortNames();
    std::string list;
    for (size_t i = 0; i < names.size() && i < kMostNames; ++i)
      list += (i == 0 ? "" : ", ") + ("\"" + names[i] + "\"");
    const std::string near = didYouMean(name, names);
    return "no " + std::string(ofTargets ? "weight of linear" : "parameter") + " is named \"" +
           name + "\"" + (near.empty() ? ": there are " : near + " There are ") + list +
           (names.size() > kMostNames ? " and others" : "");
  }

  /// Each parameter, or module, by the shortest name that means no other: for messages.
  std::vector<std::string> shortNames() const {
    std::vector<std::string> names;
    if (ofTargets)
      names.emplace_back(kAllLinear);
    std::vector<ParamRef> named =
        ofTargets ? filter([&](ParamRef ref) { return isLinear(ref); }) : all;
    std::vector<std::string> modules;
    for (ParamRef ref : all)
      modules.push_back(ModuleOf(paramOf(ref).external));
    for (ParamRef ref : named) {
      const std::string module = moduleOfParam(ref);
      std::string name = module.empty() ? ownName(ref) : endOf(module, modules);
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(std::move(name));
    }
    return names;
  }
  static std::string endOf(const std::string &module, const std::vector<std::string> &modules) {
    return ShortestEnd(module, [&](const std::string &end) {
      return std::any_of(modules.begin(), modules.end(), [&](const std::string &other) {
        return other != module && meansModule(end, other);
      });
    });
  }

  static constexpr size_t kMostNames = 40;
  const char *setting;
  const bool ofTargets;
  CheckContext context;
  const ModelSpec &model;
  std::vector<ParamRef> all;
};

} // namespace

NamedParams readTargets(const Expr &targets, CheckContext context, const ModelSpec &model) {
  return Names("targets", /*ofTargets=*/true, context, model).read(targets);
}

NamedParams readModulesToSave(const Expr &modules, CheckContext context, const ModelSpec &model) {
  return Names("modules_to_save", /*ofTargets=*/false, context, model).read(modules);
}

} // namespace boa::frontend
