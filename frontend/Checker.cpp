//===- Checker.cpp - The program as a whole -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the model, the train block and the machine among all files, evaluates
// the constants, and checks what concerns several of them: that the objective
// fits the attention, that the tokens fit the vocabulary. Assumes a tree without
// syntax errors; refuses a second model, train block or machine.
//
//===----------------------------------------------------------------------===//
#include "frontend/Checker.h"

#include "frontend/Builtins.h"
#include "frontend/SettingTable.h"
#include "runtime/abi/sizes.h"
#include "runtime/support/checked.h"

#include <algorithm>
#include <functional>
#include <set>

namespace boa::frontend {

/// Where each constant is defined first.
using Definitions = std::map<std::string_view, const Name *>;

/// Reports the use of constants that are not known yet, but are defined: in the
/// value of `self`, by that name itself or behind it.
static bool reportEarlyUse(const Expr &expr, const Name &self, const Definitions &definitions,
                           const Constants &constants, Diagnostics &diagnostics) {
  bool found = false;
  auto defined = definitions.end();
  if (expr.kind == Expr::Kind::Name && !constants.count(expr.name))
    defined = definitions.find(expr.name);
  if (defined != definitions.end()) {
    found = true;
    if (expr.name == self.text)
      diagnostics.error(expr.location,
                        "the value of '" + expr.name + "' uses '" + expr.name + "' itself");
    else
      diagnostics
          .error(expr.location,
                 "'" + expr.name + "' is defined later: a constant can use those before it")
          .note(defined->second->location, "defined here");
  }
  for (const ExprPtr &operand : expr.operands)
    found |= reportEarlyUse(*operand, self, definitions, constants, diagnostics);
  for (const Argument &argument : expr.arguments)
    found |= reportEarlyUse(*argument.value, self, definitions, constants, diagnostics);
  return found;
}

Constants checkConstants(const ModelSyntax &model, CheckContext context) {
  Constants constants;
  Definitions definitions;
  for (const ConstantSyntax &constant : model.constants)
    definitions.emplace(constant.name.text, &constant.name);
  for (const ConstantSyntax &constant : model.constants) {
    const Name &name = constant.name;
    auto found = constants.find(name.text);
    if (found != constants.end()) {
      context.diagnostics.error(name.location, "constant '" + name.text + "' is defined twice")
          .note(found->second.location, "first defined here");
      continue;
    }
    std::optional<Number> value;
    if (!reportEarlyUse(*constant.value, name, definitions, constants, context.diagnostics))
      value = evaluate(*constant.value, constants, context.diagnostics);
    if (value && value->isInteger && value->integer < 1) {
      context.diagnostics.error(constant.value->location, "expected constant '" + name.text +
                                                              "' to be at least 1 but found " +
                                                              std::to_string(value->integer));
      value.reset();
    }
    // After an error the name stands for 1, so that its uses are no errors too.
    bool option = constant.value->location.file != name.location.file;
    constants[name.text] = {value.value_or(Number::ofInteger(1)),
                            option ? constant.value->location : name.location};
  }
  return constants;
}

/// Adds the names in an expression.
static void collectNames(const Expr &expr, std::set<std::string_view> &names) {
  if (expr.kind == Expr::Kind::Name)
    names.insert(expr.name);
  for (const ExprPtr &operand : expr.operands)
    collectNames(*operand, names);
  for (const Argument &argument : expr.arguments)
    collectNames(*argument.value, names);
}

static void collectNames(const std::vector<Field> &fields, std::set<std::string_view> &names) {
  for (const Field &field : fields) {
    if (field.value)
      collectNames(*field.value, names);
    collectNames(field.fields, names);
  }
}

static void collectNames(const StageSyntax &stage, std::set<std::string_view> &names) {
  auto collectAll = [&](const std::vector<ExprPtr> &exprs) {
    for (const ExprPtr &expr : exprs)
      collectNames(*expr, names);
  };
  for (const ArgumentSyntax &argument : stage.arguments)
    collectAll(argument.type.dims);
  for (const TypeSyntax &result : stage.results)
    collectAll(result.dims);
  if (stage.repeat)
    collectNames(*stage.repeat, names);
  for (const Statement &statement : stage.body) {
    collectAll(statement.dims);
    collectNames(*statement.value, names);
  }
}

std::vector<Name> findUnusedConstants(const Program &program) {
  std::set<std::string_view> names{"vocab", "context"};
  for (const TrainSyntax &train : program.trains)
    collectNames(train.fields, names);
  for (const PlanSyntax &plan : program.plans)
    collectNames(plan.fields, names);
  std::vector<Name> unused;
  for (const ModelSyntax &model : program.models) {
    for (const StageSyntax &stage : model.stages)
      collectNames(stage, names);
    // A constant uses only those before it.
    for (size_t i = model.constants.size(); i-- > 0;) {
      const ConstantSyntax &constant = model.constants[i];
      if (names.count(constant.name.text))
        collectNames(*constant.value, names);
      else
        unused.insert(unused.begin(), constant.name);
    }
  }
  return unused;
}

template <typename Item>
static void addFiles(const std::vector<Item> &items, std::set<int32_t> &files) {
  for (const Item &item : items)
    files.insert(item.location.file);
}

/// Whether some items are in none of these files: then only those are left.
template <typename Item>
static bool keepStandalone(std::vector<Item> &items, const std::set<int32_t> &others) {
  auto isStandalone = [&](const Item &item) { return !others.count(item.location.file); };
  if (std::none_of(items.begin(), items.end(), isStandalone))
    return false;
  items.erase(std::remove_if(items.begin(), items.end(), std::not_fn(isStandalone)), items.end());
  return true;
}

void chooseMachine(Program &program) {
  std::set<int32_t> others; // files that have more than machines
  addFiles(program.models, others);
  addFiles(program.trains, others);
  addFiles(program.plans, others);
  keepStandalone(program.machines, others);
}

void choosePlan(Program &program) {
  std::set<int32_t> others; // files that have more than plans
  addFiles(program.models, others);
  addFiles(program.trains, others);
  addFiles(program.machines, others);
  if (!keepStandalone(program.plans, others))
    return;
  auto isOfPlan = [](const Field &field) { return !movedTo("train", field.key.text).empty(); };
  for (TrainSyntax &train : program.trains)
    train.fields.erase(std::remove_if(train.fields.begin(), train.fields.end(), isOfPlan),
                       train.fields.end());
}

/// The only item of its kind, or null, with an error, where there are several.
template <typename Item>
static const Item *getOnly(const std::vector<Item> &items, const char *what,
                           Diagnostics &diagnostics) {
  for (size_t i = 1; i < items.size(); ++i)
    diagnostics.error(items[i].location, std::string("expected one ") + what + " but found another")
        .note(items[0].location, "the first is here");
  return items.size() == 1 ? &items[0] : nullptr;
}

/// With the next token as target, attention that sees later tokens sees the
/// answer: the loss would fall and nothing be learned.
static void checkObjective(const TrainSettings &train, const ModelSyntax &syntax,
                           const std::vector<Location> &attention, Diagnostics &diagnostics) {
  if (train.objective == Objective::masked)
    return;
  for (Location location : attention)
    diagnostics
        .error(location, "with the objective next_token every attention must be causal, or it "
                         "sees the token that it is to predict")
        .note(syntax.name.location, "add 'causal', or train with objective = masked(...)");
}

/// Places of the attentions without 'causal' in an expression.
static void findOpenAttention(const Expr &expr, std::vector<Location> &found) {
  for (const ExprPtr &operand : expr.operands)
    findOpenAttention(*operand, found);
  bool causal = false;
  for (const Argument &argument : expr.arguments) {
    causal |= isFlag(argument, "causal") && !argument.value->isName("false");
    causal |= argument.keyword && argument.keyword->text == "window";
    findOpenAttention(*argument.value, found);
  }
  if (expr.kind == Expr::Kind::Call && expr.name == "attention" && !causal)
    found.push_back(expr.location);
}

/// Sizes that the batch makes: of the tensors of a micro-batch, and of what all stages return in a
/// step, in f32.
static void checkSizes(const Spec &spec, const ModelSyntax &syntax, const Sources &sources,
                       Diagnostics &diagnostics) {
  const int64_t sequences = SequencesOfMicroBatch(spec.train, spec.plan);
  Checked bytes = 0;
  for (const StageSpec &stage : spec.model.stages) {
    for (size_t i = 0; i < stage.values.size(); ++i) {
      const Shape &shape = stage.values[i];
      if (!shape.batched || shape.kind == Shape::Kind::Loss)
        continue;
      const Checked elements = CheckedProduct(shape.values()) * sequences;
      bytes += elements * std::count(stage.results.begin(), stage.results.end(), i) * 4 *
               stage.repeat * CountMicroBatches(spec.train, spec.plan);
      if (elements.AtMost(kMostElements))
        continue;
      diagnostics.error(sources.wordAt(stage.valuePositions[i]),
                        "a tensor has at most 2^40 elements, a micro-batch of " +
                            std::to_string(sequences) + " x " + shape.print() + " has more");
      return;
    }
  }
  if (!bytes.AtMost(kMostBytes))
    diagnostics.error(syntax.name.location,
                      "the results of all stages take at most 2^56 bytes in a step, those of " +
                          std::to_string(spec.train.batch) + " sequences take more");
}

std::optional<Spec> check(const Program &program, const Sources &sources,
                          Diagnostics &diagnostics) {
  CheckContext context{sources, diagnostics};
  size_t before = diagnostics.count();
  const ModelSyntax *model = getOnly(program.models, "model", diagnostics);
  const TrainSyntax *train = getOnly(program.trains, "train block", diagnostics);
  getOnly(program.plans, "plan", diagnostics);
  const MachineSyntax *machine = getOnly(program.machines, "machine", diagnostics);
  if (program.models.empty())
    diagnostics.error({}, "expected a model, 'model NAME(...) { ... }', but found none");
  if (program.trains.empty())
    diagnostics.error({}, "expected a train block, 'train MODEL { ... }', but found none");
  if (diagnostics.count() > before)
    return std::nullopt;

  Spec spec;
  for (size_t i = 0; i < sources.size(); ++i)
    spec.files.push_back(sources.get(int32_t(i)).name);
  if (train->model.text != model->name.text)
    diagnostics
        .error(train->model.location, "no model is named '" + train->model.text + "'" +
                                          didYouMean(train->model.text, {model->name.text}))
        .note(model->name.location, "the model is '" + model->name.text + "'");

  size_t beforeConstants = diagnostics.count();
  Constants constants = checkConstants(*model, context);
  for (const char *required : {"vocab", "context"})
    if (constants.find(required) == constants.end())
      diagnostics.error(model->name.location,
                        "model '" + model->name.text + "' needs the constant '" + required + "'");
  for (const ConstantSyntax &constant : model->constants)
    if (diagnostics.count() == before &&
        (constant.name.text == "vocab" || constant.name.text == "context"))
      evaluateInteger(*constant.value, constants, 1, kLongestAxis, "'" + constant.name.text + "'",
                      diagnostics);
  // Dimensions and settings alike are made of constants.
  if (diagnostics.count() > beforeConstants)
    return std::nullopt;
  if (diagnostics.count() == before)
    spec.model = checkModel(*model, constants, context);
  auto constant = [&](const char *name) {
    auto found = constants.find(name);
    return found == constants.end() ? 1 : found->second.value.integer;
  };
  spec.shape = {model->name.text, constant("vocab"), constant("context")};
  for (const Field &field : train->fields)
    if (field.key.text == "data")
      spec.dataPosition = sources.position(field.key.location);
  checkTrain(program, constants, context, spec);
  if (machine)
    checkMachine(*machine, context, spec.machine);
  if (spec.machine.ssd.empty())
    spec.machine.ssd.emplace_back();
  if (diagnostics.count() > before)
    return std::nullopt;

  checkSizes(spec, *model, sources, diagnostics);
  std::vector<Location> attention;
  for (const StageSyntax &stage : model->stages)
    for (const Statement &statement : stage.body)
      findOpenAttention(*statement.value, attention);
  checkObjective(spec.train, *model, attention, diagnostics);
  if (diagnostics.count() > before)
    return std::nullopt;
  return spec;
}

} // namespace boa::frontend
