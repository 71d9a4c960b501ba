//===- PatternChecker.cpp - Settings of what a pattern names --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/PatternChecker.h"

#include <algorithm>

namespace boa::frontend {

bool matchesPattern(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) { // the star takes one more
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

/// Null, with an error, where the block has none.
const Name *PatternChecker::patternOf(const Field &field, const char *example) const {
  if (field.label && field.labelIsString)
    return &*field.label;
  error(field.label ? field.label->location : field.key.location,
        "expected a pattern after '" + field.key.text + "', " + field.key.text + " \"" + example +
            "\" { ... }");
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// The parameters whose name, STAGE.PARAM, matches. An error if there are none.
static std::vector<ParamRef> matchParameters(const std::string &pattern, Location at,
                                             CheckContext context, const ModelSpec &model) {
  std::vector<ParamRef> found;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < model.stages.size(); ++i)
    for (uint32_t j = 0; j < model.stages[i].params.size(); ++j) {
      names.push_back(model.stages[i].name + "." + model.stages[i].params[j].name);
      if (matchesPattern(pattern, names.back()))
        found.push_back({i, j});
    }
  if (found.empty() && !model.stages.empty()) {
    std::string near = didYouMean(pattern, names);
    context.diagnostics.error(
        at, "no parameter matches \"" + pattern + "\"" +
                (near.empty() ? ": names are such as '" + (names.empty() ? "" : names[0]) + "'"
                              : near));
  }
  return found;
}

std::vector<const Expr *> readPatternList(const Expr &expr, const char *setting, const char *one,
                                          const char *several, CheckContext context) {
  std::vector<const Expr *> patterns;
  if (expr.kind == Expr::Kind::Tuple && !expr.arguments.empty())
    for (const Argument &argument : expr.arguments)
      patterns.push_back(argument.value.get());
  else
    patterns.push_back(&expr);
  for (size_t i = 0; i < patterns.size(); ++i)
    if (patterns[i]->kind != Expr::Kind::String) {
      context.diagnostics.error(patterns[i]->location,
                                std::string("expected ") + setting + " to be a pattern of names, " +
                                    one + ", or several, " + several + ", but found " +
                                    printExpr(*patterns[i]));
      patterns.resize(i);
    }
  return patterns;
}

void PatternChecker::readParameters(const std::vector<Field> &train) {
  // With adapters it is an error, which was said.
  if (const Expr *freeze = findGiven(given, "train.freeze");
      freeze && !findGiven(given, "train.adapters"))
    readFreeze(*freeze);
  for (const Field &field : train) {
    if (field.key.text != "parameters" || !field.isBlock)
      continue;
    const Name *pattern = patternOf(field, "block.ln*");
    if (!pattern)
      continue;
    GivenSettings of;
    SettingReader(field.fields, "train.parameters", "a parameters block", constants, context, of);
    std::vector<ParamSpec *> params;
    for (ParamRef at : matchParameters(pattern->text, pattern->location, context, spec.model))
      params.push_back(&spec.model.stages[at.stage].params[at.param]);
    auto isFrozen = [](const ParamSpec *param) { return param->frozen; };
    if (!params.empty() && std::all_of(params.begin(), params.end(), isFrozen))
      error(pattern->location,
            "all parameters that match \"" + pattern->text + "\" are frozen: nothing updates them");
    readReals(of, "train.parameters.lr_scale", params, &ParamSpec::lrScale);
    readReals(of, "train.parameters.weight_decay", params, &ParamSpec::weightDecay);
  }
}

void PatternChecker::readReals(const GivenSettings &of, const char *path,
                               const std::vector<ParamSpec *> &params,
                               std::optional<double> ParamSpec::*member) {
  double value = 0;
  const Expr *expr = findGiven(of, path);
  if (expr && readReal(rowOf(path), *expr, constants, context, value))
    for (ParamSpec *param : params)
      param->*member = value;
}

void PatternChecker::readFreeze(const Expr &freeze) {
  const size_t errors = context.diagnostics.count();
  for (const Expr *pattern :
       readPatternList(freeze, "freeze", "\"block.*\"", "(\"embed.*\", \"block.ln*\")", context))
    for (ParamRef at : matchParameters(pattern->name, pattern->location, context, spec.model))
      spec.model.stages[at.stage].params[at.param].frozen = true;
  if (context.diagnostics.count() > errors)
    return;
  bool trains = spec.model.stages.empty(); // the model itself is wrong
  for (const StageSpec &stage : spec.model.stages)
    for (const ParamSpec &param : stage.params)
      trains |= !param.frozen;
  if (!trains)
    error(freeze.location, "freeze leaves no parameter to train");
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// Whether a layer keeps its activations; true where an option took that away from the plan.
bool PatternChecker::layersMayKeep() const {
  if (!spec.plan.recompute || spec.plan.keep > 0)
    return true;
  for (const char *path : {"plan.schedule", "plan.schedule.recompute", "plan.schedule.keep"})
    if (const Expr *setting = findGiven(given, path);
        setting && context.sources.get(setting->location.file).isOption)
      return true;
  return false;
}

void PatternChecker::readActivations(const std::vector<Field> &plan) {
  struct Placed {
    const Name &pattern;
    std::vector<Operation *> operations;
  };
  std::vector<Placed> placed;
  for (const Field &field : plan) {
    if (field.key.text != "activations" || !field.isBlock)
      continue;
    const Name *pattern = patternOf(field, "block.gelu");
    if (!pattern)
      continue;
    const size_t errors = context.diagnostics.count();
    GivenSettings of;
    SettingReader reader(field.fields, "plan.activations", "an activations block", constants,
                         context, of);
    for (const Field &inner : field.fields)
      if (inner.isBlock && inner.key.text == "place")
        error(inner.key.location, "expected 'place = ...'");
    ActivationSettings settings;
    reader.read(settings);
    const Expr *save = findGiven(of, "plan.activations.save");
    const Expr *place = findGiven(of, "plan.activations.place");
    const Expr *needsKept = save && settings.save ? save : place;
    if (needsKept && !layersMayKeep())
      error(needsKept->location, "no layer keeps its activations: expected schedule = "
                                 "vertical(recompute = false), or keep = N layers");
    std::vector<Operation *> operations = matchActivations(*pattern);
    if (context.diagnostics.count() > errors)
      continue;
    // Each of them keeps what this block does not set.
    for (Operation *operation : operations)
      reader.read(operation->plan);
    if (place) {
      givenPlaces.push_back(place);
      placed.push_back({*pattern, std::move(operations)});
    }
  }
  // A later block may have said so.
  for (const auto &[pattern, operations] : placed) {
    bool anyLives = false;
    for (Operation *operation : operations) {
      anyLives |= operation->plan.save;
      if (!operation->plan.save)
        operation->plan.place.parts.clear();
    }
    if (!anyLives)
      error(pattern.location, "all activations that match \"" + pattern.text +
                                  "\" are computed again: they live nowhere");
  }
}

/// The activations of layers whose name, STAGE.NAME, matches. An error if there are none. The parts
/// of a split are views of what is split.
std::vector<Operation *> PatternChecker::matchActivations(const Name &pattern) {
  constexpr size_t kMostNames = 40; // in the error
  std::vector<Operation *> found;
  std::vector<std::string> names;
  for (StageSpec &stage : spec.model.stages)
    for (Operation &operation : stage.operations) {
      if (!stage.isLayer || operation.kind == OperationKind::Split)
        continue;
      const std::string name = stage.name + "." + operation.name;
      if (matchesPattern(pattern.text, name))
        found.push_back(&operation);
      else if (names.size() <= kMostNames &&
               std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  if (!found.empty() || spec.model.stages.empty())
    return found;
  if (names.size() > kMostNames)
    names.back() = "others";
  error(pattern.location, "no activation of a layer matches \"" + pattern.text + "\": there are " +
                              (names.empty() ? "none" : listWords(names, "and")));
  return found;
}

} // namespace boa::frontend
