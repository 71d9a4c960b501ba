//===- Adapters.cpp - Adapters of low rank --------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/Adapters.h"

#include "frontend/AdapterNames.h"
#include "frontend/Printer.h"
#include "runtime/abi/float32.h"

#include <algorithm>
#include <cmath>

namespace boa::frontend {

namespace {

/// How a stage uses a parameter that is no weight there, in the words of a spec.
const char *describeUse(OperationKind kind) {
  switch (kind) {
  case OperationKind::Linear:
    return "as the bias of linear";
  case OperationKind::Embedding:
    return "by embedding";
  case OperationKind::LayerNorm:
    return "by layer_norm";
  case OperationKind::RmsNorm:
    return "by rms_norm";
  case OperationKind::Add:
    return "beside '+'";
  case OperationKind::Mul:
    return "beside '*'";
  default:
    return "otherwise";
  }
}

class AdapterChecker {
public:
  AdapterChecker(const Constants &constants, CheckContext context, const GivenSettings &given,
                 Spec &spec)
      : constants(constants), context(context), given(given), model(spec.model), spec(spec) {}

  void run() {
    const Expr *adapters = findGiven(given, "train.adapters");
    const Expr *targetsGiven = findGiven(given, "train.adapters.targets");
    const Expr *rankGiven = findGiven(given, "train.adapters.rank");
    const Expr *alphaGiven = findGiven(given, "train.adapters.alpha");
    if (!adapters || model.stages.empty())
      return;
    const size_t errors = context.diagnostics.count();
    if (const Expr *freeze = findGiven(given, "train.freeze"))
      context.diagnostics
          .error(freeze->location, "all parameters of a model with adapters are frozen: leave "
                                   "freeze out")
          .note(adapters->location, "the adapters are here");
    if (!targetsGiven || !rankGiven || !alphaGiven)
      return; // that was said
    readNumbers(*rankGiven, *alphaGiven);
    for (const auto &[name, params] : readTargets(*targetsGiven, context, model))
      for (ParamRef param : params)
        if (!addTarget(param, *name))
          break; // one error for each name
    if (const Expr *modules = findGiven(given, "train.adapters.modules_to_save"))
      for (const auto &[name, params] : readModulesToSave(*modules, context, model))
        for (ParamRef param : params)
          addSaved(param, *name);
    if (context.diagnostics.count() > errors)
      return;
    // The order in which they are written means nothing: two specs of one model have one layout.
    std::sort(targets.begin(), targets.end(),
              [](const Target &a, const Target &b) { return isBefore(a.weight, b.weight); });
    std::sort(saved.begin(), saved.end(), isBefore);
    spec.train.adapters = print();
    spec.base = model;
    for (StageSpec &stage : model.stages)
      for (ParamSpec &param : stage.params)
        param.frozen = true;
    for (ParamRef param : saved)
      model.stages[param.stage].params[param.param].frozen = false;
    for (const Target &target : targets)
      addParams(target);
    for (uint32_t i = 0; i < model.stages.size(); ++i)
      rewrite(i);
  }

private:
  struct Target {
    ParamRef weight;
    bool transposed = false;
    Location location; // of its pattern
  };

  static bool isBefore(ParamRef a, ParamRef b) {
    return std::pair(a.stage, a.param) < std::pair(b.stage, b.param);
  }

  bool error(Location at, std::string message) const {
    context.diagnostics.error(at, std::move(message));
    return false;
  }

  const ParamSpec &paramOf(ParamRef ref) const { return model.stages[ref.stage].params[ref.param]; }
  std::string fullName(ParamRef ref) const {
    return model.stages[ref.stage].name + "." + paramOf(ref).name;
  }

  void readNumbers(const Expr &rankGiven, const Expr &alphaGiven) {
    rank = evaluateCount(rankGiven, nullptr, constants, 1, kMostRank, "rank", context.diagnostics)
               .value_or(1);
    const Expr *rsloraGiven = findGiven(given, "train.adapters.rslora");
    rslora = rsloraGiven && rsloraGiven->isName("true");
    if (rsloraGiven && !rslora && !rsloraGiven->isName("false"))
      error(rsloraGiven->location,
            "expected rslora to be true or false but found " + printExpr(*rsloraGiven));
    if (readReal(rowOf("train.adapters.alpha"), alphaGiven, constants, context, alpha) &&
        !IsFloat32(scale()))
      error(alphaGiven.location, std::string("expected alpha / ") +
                                     (rslora ? "sqrt(rank)" : "rank") + " to fit f32: at least " +
                                     kLeastFloat32 + " but found " + printNumber(scale()));
  }

  /// Of the product of the two matrices.
  double scale() const { return alpha / (rslora ? std::sqrt(double(rank)) : double(rank)); }

  /// All that the adapters are, as a spec writes it.
  std::string print() {
    std::vector<ParamRef> adapted;
    for (const Target &target : targets)
      adapted.push_back(target.weight);
    return "lora(rank = " + std::to_string(rank) + ", alpha = " + printNumber(alpha) +
           ", targets = " + printNames(adapted) + (rslora ? ", rslora = true" : "") +
           (saved.empty() ? "" : ", modules_to_save = " + printNames(saved)) + ")";
  }
  std::string printNames(const std::vector<ParamRef> &params) const {
    std::string names;
    for (ParamRef param : params)
      names += (names.empty() ? "\"" : ", \"") + fullName(param) + "\"";
    return params.size() == 1 ? names : "(" + names + ")";
  }

  /// A parameter that is trained as a whole.
  void addSaved(ParamRef ref, const Expr &name) {
    for (const Target &target : targets)
      if (target.weight == ref) {
        context.diagnostics
            .error(name.location, "'" + fullName(ref) +
                                      "' is trained as a whole or by an adapter, "
                                      "not in both ways")
            .note(target.location, "its adapter is named here");
        return;
      }
    if (std::find(saved.begin(), saved.end(), ref) == saved.end())
      saved.push_back(ref);
  }

  /// False, with an error, where it can have no adapter.
  bool addTarget(ParamRef ref, const Expr &pattern) {
    auto same = [&](const Target &other) { return other.weight == ref; };
    if (std::any_of(targets.begin(), targets.end(), same))
      return true;
    const ParamSpec &weight = paramOf(ref);
    const std::string name = fullName(ref);
    std::optional<bool> transposed;
    Position first;
    for (const StageSpec &stage : model.stages)
      for (const ParamUse &use : stage.uses)
        for (const Operation &operation : stage.operations)
          for (size_t i = 0; i < operation.operands.size(); ++i) {
            if (use.stage != ref.stage || use.param != ref.param ||
                operation.operands[i] != use.value)
              continue;
            const Location here = context.sources.wordAt(operation.position);
            if (operation.kind != OperationKind::Linear || i != 1) {
              context.diagnostics
                  .error(pattern.location, "expected targets to be weights of linear, but '" +
                                               name + "' is used " + describeUse(operation.kind))
                  .note(here, "it is used here");
              return false;
            }
            if (transposed && *transposed != operation.transpose) {
              Diagnostic &diagnostic = context.diagnostics.error(
                  pattern.location, "'" + name + "' is used both as " + weight.name +
                                        " and as transpose(" + weight.name +
                                        "): an adapter is for one of them");
              diagnostic.note(context.sources.wordAt(first), "one use is here");
              diagnostic.note(here, "the other is here");
              return false;
            }
            transposed = operation.transpose;
            first = operation.position;
          }
    const std::vector<int64_t> shape = weight.shape.values();
    if (rank > std::min(shape[0], shape[1]))
      return error(findGiven(given, "train.adapters.rank")->location,
                   "expected rank to be at most the least dimension of '" + name + "', " +
                       weight.shape.print() + ", but found " + std::to_string(rank));
    for (const ParamSpec &other : model.stages[ref.stage].params)
      if (other.name == nameOf(weight, 'a') || other.name == nameOf(weight, 'b')) {
        context.diagnostics
            .error(pattern.location, "the adapter of '" + name + "' would be named '" + other.name +
                                         "', as another parameter is")
            .note(context.sources.wordAt(other.position), "rename this one");
        return false;
      }
    targets.push_back({ref, transposed.value_or(false), pattern.location});
    return true;
  }

  static std::string nameOf(const ParamSpec &weight, char part) {
    return weight.name + "_lora_" + part;
  }

  Shape shapeOf(int64_t rows, int64_t columns) const {
    Shape shape;
    shape.dims = {{rows, std::to_string(rows)}, {columns, std::to_string(columns)}};
    shape.batched = false;
    return shape;
  }

  void addParams(const Target &target) {
    std::vector<ParamSpec> &params = model.stages[target.weight.stage].params;
    ParamSpec &weight = params[target.weight.param];
    const std::vector<int64_t> dims = weight.shape.values();
    const int64_t in = dims[target.transposed], out = dims[!target.transposed];
    weight.adapter = {uint32_t(params.size()), uint32_t(params.size() + 1), alpha, rslora,
                      target.transposed};
    ParamSpec down, up;
    down.name = nameOf(weight, 'a');
    down.shape = shapeOf(rank, in);
    down.init = Init::Uniform;
    down.scale = 1 / std::sqrt(double(in));
    up.name = nameOf(weight, 'b');
    up.shape = shapeOf(out, rank);
    down.position = up.position = context.sources.position(target.location);
    params.push_back(std::move(down));
    params.push_back(std::move(up));
  }

  /// The values of an adapter's parts in a stage.
  struct Parts {
    uint32_t down = 0, up = 0;
  };

  void rewrite(uint32_t index) {
    StageSpec &stage = model.stages[index];
    std::map<uint32_t, Parts> parts; // by the value of the weight
    std::vector<ParamUse> own, tied;
    for (const ParamUse &use : stage.uses) {
      (use.stage == index ? own : tied).push_back(use);
      const ParamSpec &weight = model.stages[use.stage].params[use.param];
      if (!weight.adapter)
        continue;
      auto add = [&](uint32_t param) {
        const ParamSpec &part = model.stages[use.stage].params[param];
        const uint32_t value = addValue(stage, part.shape, part.position);
        addedTo(use.stage == index).push_back({use.stage, param, value});
        return value;
      };
      const uint32_t down = add(weight.adapter->down);
      parts[use.value] = {down, add(weight.adapter->up)};
    }
    stage.uses = std::move(own);
    for (std::vector<ParamUse> *more : {&addedOwn, &tied, &addedTied}) {
      stage.uses.insert(stage.uses.end(), more->begin(), more->end());
      more->clear();
    }
    std::vector<Operation> operations;
    sites = 0;
    for (Operation &operation : stage.operations) {
      auto found =
          operation.kind == OperationKind::Linear ? parts.find(operation.operands[1]) : parts.end();
      if (found == parts.end())
        operations.push_back(std::move(operation));
      else
        addProduct(stage, std::move(operation), found->second, operations);
    }
    stage.operations = std::move(operations);
  }

  std::vector<ParamUse> &addedTo(bool isOwn) { return isOwn ? addedOwn : addedTied; }

  static uint32_t addValue(StageSpec &stage, const Shape &shape, Position position) {
    stage.values.push_back(shape);
    stage.valuePositions.push_back(position);
    return uint32_t(stage.values.size() - 1);
  }

  /// The product of a weight, plus that of its adapter.
  void addProduct(StageSpec &stage, Operation product, Parts parts,
                  std::vector<Operation> &operations) {
    const uint32_t input = product.operands[0], result = product.results[0];
    const Position position = product.position;
    const std::string name = product.name;
    const Shape wide = stage.values[result];
    Shape narrow = stage.values[input];
    narrow.dims.back() = {rank, std::to_string(rank)};
    auto emit = [&](OperationKind kind, const char *name, std::vector<uint32_t> operands,
                    uint32_t result) {
      Operation operation;
      operation.kind = kind;
      operation.name = name;
      operation.operands = std::move(operands);
      operation.results = {result};
      operation.position = position;
      operation.transpose = kind == OperationKind::Linear;
      operation.number = kind == OperationKind::Scale ? scale() : 0;
      operations.push_back(std::move(operation));
      return result;
    };
    product.name = "linear";
    product.results[0] = addValue(stage, wide, position);
    const uint32_t base = product.results[0];
    operations.push_back(std::move(product));
    uint32_t seen = input;
    if (spec.train.adapter_dropout > 0) {
      seen = emit(OperationKind::Dropout, "lora_dropout", {input},
                  addValue(stage, stage.values[input], position));
      operations.back().number = spec.train.adapter_dropout;
      operations.back().site = sites++;
    }
    const uint32_t down = emit(OperationKind::Linear, "lora_a", {seen, parts.down},
                               addValue(stage, narrow, position));
    const uint32_t scaled =
        emit(OperationKind::Scale, "lora_scaled", {down}, addValue(stage, narrow, position));
    const uint32_t up =
        emit(OperationKind::Linear, "lora_b", {scaled, parts.up}, addValue(stage, wide, position));
    emit(OperationKind::Add, name.c_str(), {base, up}, result);
  }

  const Constants &constants;
  CheckContext context;
  const GivenSettings &given;
  ModelSpec &model;
  Spec &spec;
  int64_t rank = 1;
  double alpha = 1;
  bool rslora = false;
  std::vector<Target> targets;
  std::vector<ParamRef> saved; // that are trained as a whole
  // Of the stage that is rewritten.
  std::vector<ParamUse> addedOwn, addedTied;
  int64_t sites = 0; // of dropout
};

} // namespace

void addAdapters(const Constants &constants, CheckContext context, const GivenSettings &given,
                 Spec &spec) {
  AdapterChecker(constants, context, given, spec).run();
}

} // namespace boa::frontend
