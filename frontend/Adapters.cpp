//===- Adapters.cpp - Adapters of low rank --------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/Adapters.h"

#include "frontend/PatternChecker.h"
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
    const Expr *targets = findGiven(given, "train.adapters.targets");
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
    if (!targets || !rankGiven || !alphaGiven)
      return; // that was said
    auto number =
        evaluateCount(*rankGiven, nullptr, constants, 1, kMostRank, "rank", context.diagnostics);
    rank = number.value_or(1);
    if (readReal(rowOf("train.adapters.alpha"), *alphaGiven, constants, context, alpha) &&
        !IsFloat32(alpha / double(rank)))
      error(alphaGiven->location, "expected alpha / rank to fit f32: at least " +
                                      std::string(kLeastFloat32) + " but found " +
                                      printNumber(alpha / double(rank)));
    for (const auto &[pattern, params] :
         readPatterns(*targets, "targets", "\"block.q_w\"", "(\"block.q_w\", \"block.v_w\")",
                      context, model))
      for (ParamRef param : params)
        if (!addTarget(param, *pattern))
          break; // one error for each pattern
    if (context.diagnostics.count() > errors)
      return;
    spec.base = model;
    for (StageSpec &stage : model.stages)
      for (ParamSpec &param : stage.params)
        param.frozen = true;
    for (const Target &target : this->targets)
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

  bool error(Location at, std::string message) const {
    context.diagnostics.error(at, std::move(message));
    return false;
  }

  const ParamSpec &paramOf(ParamRef ref) const { return model.stages[ref.stage].params[ref.param]; }

  /// False, with an error, where it can have no adapter.
  bool addTarget(ParamRef ref, const Expr &pattern) {
    auto same = [&](const Target &other) { return other.weight == ref; };
    if (std::any_of(targets.begin(), targets.end(), same))
      return true;
    const ParamSpec &weight = paramOf(ref);
    const std::string name = model.stages[ref.stage].name + "." + weight.name;
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
    weight.adapter = {uint32_t(params.size()), uint32_t(params.size() + 1), alpha,
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
                  std::vector<Operation> &operations) const {
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
      operation.number = kind == OperationKind::Scale ? alpha / double(rank) : 0;
      operations.push_back(std::move(operation));
      return result;
    };
    product.name = "linear";
    product.results[0] = addValue(stage, wide, position);
    const uint32_t base = product.results[0];
    operations.push_back(std::move(product));
    const uint32_t down = emit(OperationKind::Linear, "lora_a", {input, parts.down},
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
  std::vector<Target> targets;
  std::vector<ParamUse> addedOwn, addedTied; // of the stage that is rewritten
};

} // namespace

void addAdapters(const Constants &constants, CheckContext context, const GivenSettings &given,
                 Spec &spec) {
  AdapterChecker(constants, context, given, spec).run();
}

} // namespace boa::frontend
