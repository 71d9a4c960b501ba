//===- ModelChecker.cpp - The stages of a model ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks signatures and parameters of all stages first, so that a body may name
// the parameters of any stage, then the bodies (bodychecker.cpp), then that all
// that was declared is used. How stages are connected is GraphChecker's.
//
//===----------------------------------------------------------------------===//
#include "frontend/BodyChecker.h"
#include "frontend/GraphChecker.h"
#include "runtime/abi/float32.h"
#include "runtime/abi/sizes.h"
#include "runtime/support/checked.h"

#include <algorithm>
#include <map>
#include <set>

namespace boa::frontend {

namespace {

// A dimension fits the 32-bit integers of BLAS; a tensor's bytes fit 64 bits
// with room for the products that passes form of them.
constexpr int64_t kMaxDim = INT32_MAX;
constexpr int64_t kMaxModel = int64_t(1) << 50;
constexpr int64_t kMaxRepeat = 65536;
constexpr size_t kMaxRank = 4;
constexpr size_t kMaxStages = 64;
constexpr size_t kMaxParams = 4096;
// The compiler places each result of each layer and micro-batch by itself, and counts only layers
// and micro-batches before it does (passes/schedule/StepSize.h).
constexpr size_t kMaxResults = 16;
constexpr size_t kMaxExternal = 256;

class ModelChecker {
public:
  ModelChecker(const ModelSyntax &model, const Constants &constants, CheckContext context)
      : model(model), constants(constants), context(context) {}

  ModelSpec run() {
    spec.name = model.name.text;
    spec.position = context.sources.position(model.name.location);
    if (!checkNames())
      return std::move(spec);
    for (const StageSyntax &stage : model.stages)
      checkSignature(stage);
    // Bodies over shapes that have errors would only repeat them.
    if (!context.diagnostics.empty())
      return std::move(spec);
    checkGraph(model, constants, spec, signatures, context);
    checkSize();
    if (!context.diagnostics.empty())
      return std::move(spec);
    ParamUsage usage;
    for (const StageSpec &stage : spec.stages)
      usage.emplace_back(stage.params.size(), false);
    for (size_t i = 0; i < spec.stages.size() && !context.diagnostics.full(); ++i)
      checkBody(model, i, signatures[i], constants, spec, usage, context);
    if (context.diagnostics.empty())
      checkUsage(usage);
    return std::move(spec);
  }

private:
  void error(Location location, std::string message) {
    context.diagnostics.error(location, std::move(message));
  }

  /// Whether the stages are such that checking each of them makes sense.
  bool checkNames() {
    size_t before = context.diagnostics.count();
    if (model.stages.size() > kMaxStages) {
      error(model.name.location, "expected at most " + std::to_string(kMaxStages) +
                                     " stages but found " + std::to_string(model.stages.size()));
      return false;
    }
    const StageSyntax *layer = nullptr;
    for (size_t i = 0; i < model.stages.size(); ++i) {
      const StageSyntax &stage = model.stages[i];
      if (stage.isLayer && !layer)
        layer = &stage;
      for (size_t j = 0; j < i; ++j)
        if (model.stages[j].name.text == stage.name.text) {
          context.diagnostics
              .error(stage.name.location, "stage '" + stage.name.text + "' is defined twice")
              .note(model.stages[j].name.location, "first defined here");
          break;
        }
    }
    if (!layer)
      error(model.name.location,
            "expected a layer, 'layer NAME(...) -> ... repeat N { ... }', but found none");
    if (context.diagnostics.count() > before)
      return false;
    if (model.stages.front().isLayer || model.stages.back().isLayer)
      error(
          (model.stages.front().isLayer ? model.stages.front() : model.stages.back()).name.location,
          "expected a stage before the layers, which takes the tokens, and one after them, "
          "which returns the loss");
    return context.diagnostics.count() == before;
  }

  /// How messages show a dimension; what is long is shown by its value.
  static std::string printDim(const Expr &dim, int64_t value) {
    constexpr size_t kMaxText = 64;
    std::string text = printExpr(dim);
    return text.size() > kMaxText ? std::to_string(value) : text;
  }

  /// Constants that an expression names.
  static void findNames(const Expr &expr, std::vector<std::string> &names) {
    if (expr.kind == Expr::Kind::Name)
      names.push_back(expr.name);
    for (const ExprPtr &operand : expr.operands)
      findNames(*operand, names);
    for (const Argument &argument : expr.arguments)
      findNames(*argument.value, names);
  }

  /// The value of a dimension. Of the dimensions made of one bad constant only
  /// the first is an error.
  std::optional<int64_t> checkDim(const Expr &dim) {
    std::vector<std::string> names;
    findNames(dim, names);
    for (const std::string &name : names)
      if (suspects.count(name))
        return std::nullopt;
    auto value = evaluateInteger(dim, constants, 1, kMaxDim, "a dimension", context.diagnostics);
    if (!value)
      suspects.insert(names.begin(), names.end());
    return value;
  }

  Shape checkShape(const std::vector<ExprPtr> &dims, Location location, Shape::Kind kind,
                   bool batched) {
    Shape shape;
    shape.kind = kind;
    shape.batched = batched;
    if (dims.empty() || dims.size() > kMaxRank) {
      error(location, "expected between 1 and " + std::to_string(kMaxRank) +
                          " dimensions but found " + std::to_string(dims.size()));
      return shape;
    }
    bool valid = true;
    for (const ExprPtr &dim : dims) {
      auto value = checkDim(*dim);
      valid &= value.has_value();
      shape.dims.push_back({value.value_or(1), printDim(*dim, value.value_or(1))});
    }
    if (valid && !CheckedProduct(shape.values()).AtMost(kMostElements))
      error(location, "a tensor has at most 2^40 elements, " + shape.print() + " has more");
    return shape;
  }

  Shape checkType(const TypeSyntax &type) {
    Shape shape;
    switch (type.kind) {
    case TypeSyntax::Kind::Loss:
      shape.kind = Shape::Kind::Loss;
      return shape;
    case TypeSyntax::Kind::Tokens:
      return checkShape(type.dims, type.location, Shape::Kind::Tokens, true);
    case TypeSyntax::Kind::Tensor:
      return checkShape(type.dims, type.location, Shape::Kind::Tensor, true);
    }
    return shape;
  }

  void checkInit(const Statement &statement, ParamSpec &param) {
    const Expr &init = *statement.value;
    bool scaled =
        init.kind == Expr::Kind::Call && init.arguments.size() == 1 && !init.arguments[0].keyword;
    if (init.isName("ones")) {
      param.init = Init::Ones;
    } else if (init.isName("zeros")) {
      param.init = Init::Zeros;
    } else if (scaled && (init.name == "normal" || init.name == "uniform")) {
      param.init = init.name == "normal" ? Init::Normal : Init::Uniform;
      auto scale = evaluate(*init.arguments[0].value, constants, context.diagnostics);
      if (scale && !(scale->real >= 0 && scale->real <= 1e6))
        error(init.arguments[0].value->location, "expected a scale between 0 and 1e6 but found " +
                                                     printExpr(*init.arguments[0].value));
      else if (scale && !IsFloat32(scale->real))
        error(init.arguments[0].value->location, "expected a scale that fits f32: 0, or at least " +
                                                     std::string(kLeastFloat32) + " but found " +
                                                     printExpr(*init.arguments[0].value));
      param.scale = scale ? scale->real : 0;
    } else {
      std::string hint;
      if (init.kind == Expr::Kind::Name || init.kind == Expr::Kind::Call)
        hint = didYouMean(init.name, {"ones", "zeros", "normal", "uniform"});
      error(init.location,
            "expected ones, zeros, normal(deviation) or uniform(half_width) but found " +
                printExpr(init) + hint);
    }
  }

  /// Whether this stands for a part of a tensor: `[0]`, `[2:]`, `[2:,3:]`, where `:` alone is `0:`.
  static bool isPart(const std::string &text) {
    constexpr size_t kMostDigits = 7;
    size_t at = 1;
    const auto number = [&] {
      const size_t begin = at;
      while (at < text.size() && text[at] >= '0' && text[at] <= '9')
        ++at;
      return at - begin;
    };
    const size_t row = number();
    if (row > kMostDigits)
      return false;
    if (at < text.size() && text[at] == ':') {
      if (++at < text.size() && text[at] == ',') {
        at += 1 + (text.compare(at + 1, 1, " ") == 0);
        if (number() > kMostDigits || at >= text.size() || text[at++] != ':')
          return false;
      }
    } else if (row == 0) {
      return false;
    }
    return at + 1 == text.size() && text[at] == ']';
  }

  /// The name of a parameter's tensor elsewhere: one `*` for the number of a layer, which a layer
  /// that occurs once may leave out.
  void checkExternal(const Name &name, const StageSyntax &stage, int64_t repeat, ParamSpec &param) {
    const auto stars = std::count(name.text.begin(), name.text.end(), '*');
    const size_t bracket = std::min(name.text.find('['), name.text.size());
    const bool plain = std::all_of(name.text.begin(), name.text.begin() + long(bracket),
                                   [](unsigned char c) { return c > ' ' && c < 0x7f; });
    if (name.text.empty() || name.text.size() > kMaxExternal || !plain)
      return error(name.location, "expected the name of a tensor, 1 to " +
                                      std::to_string(kMaxExternal) +
                                      " characters of ASCII without blanks");
    if (bracket == 0 || (bracket < name.text.size() && !isPart(name.text.substr(bracket))))
      return error(name.location, "expected a row of the tensor, \"NAME[0]\", rows from there on, "
                                  "\"NAME[2:]\", or rows and columns, \"NAME[:, 3:]\"");
    if (!stage.isLayer && stars != 0)
      return error(name.location, "expected no '*': '" + stage.name.text + "' does not repeat");
    if (stage.isLayer && stars != 1 && !(stars == 0 && repeat == 1))
      return error(name.location, "expected one '*' for the number of the layer, as in "
                                  "\"layers.*.weight\", but found " +
                                      std::to_string(stars));
    const auto [first, isNew] = externals.try_emplace(name.text, name.location);
    if (!isNew)
      context.diagnostics
          .error(name.location, "two parameters are named \"" + name.text + "\" outside")
          .note(first->second, "the first is here");
    param.external = name.text;
  }

  void checkSignature(const StageSyntax &syntax) {
    StageSpec stage;
    Signature signature;
    stage.name = syntax.name.text;
    stage.isLayer = syntax.isLayer;
    stage.position = context.sources.position(syntax.name.location);
    if (syntax.isLayer && syntax.repeat)
      stage.repeat = evaluateInteger(*syntax.repeat, constants, 1, kMaxRepeat,
                                     "the number of layers", context.diagnostics)
                         .value_or(1);
    for (const ArgumentSyntax &argument : syntax.arguments)
      signature.arguments.push_back(checkType(argument.type));
    if (syntax.results.size() > kMaxResults)
      error(syntax.resultsLocation, "a stage returns at most " + std::to_string(kMaxResults) +
                                        " values, '" + stage.name + "' returns " +
                                        std::to_string(syntax.results.size()));
    for (const TypeSyntax &result : syntax.results)
      signature.results.push_back(checkType(result));
    for (const Statement &statement : syntax.body) {
      if (statement.kind != Statement::Kind::Param)
        continue;
      if (stage.params.size() == kMaxParams) {
        error(statement.location, "a stage has at most " + std::to_string(kMaxParams) +
                                      " parameters, '" + stage.name + "' has more");
        break;
      }
      ParamSpec param;
      param.name = statement.names[0].text;
      param.position = context.sources.position(statement.names[0].location);
      param.shape = checkShape(statement.dims, statement.dimsLocation, Shape::Kind::Tensor, false);
      checkInit(statement, param);
      if (statement.external)
        checkExternal(*statement.external, syntax, stage.repeat, param);
      stage.params.push_back(std::move(param));
    }
    if (syntax.isLayer && !syntax.repeat)
      error(syntax.name.location, "expected 'repeat N' after the result of a layer");
    if (!syntax.isLayer && syntax.repeat)
      error(syntax.repeat->location,
            "only a layer repeats; write 'layer " + stage.name + "' or drop 'repeat'");
    spec.stages.push_back(std::move(stage));
    signatures.push_back(std::move(signature));
  }

  void checkSize() {
    Checked total = 0;
    for (const StageSpec &stage : spec.stages)
      for (const ParamSpec &param : stage.params)
        total += CheckedProduct(param.shape.values()) * stage.repeat;
    if (!total.AtMost(kMaxModel))
      error(model.name.location, "a model has at most 2^50 parameters, this one has more");
  }

  void checkUsage(const ParamUsage &usage) {
    for (size_t i = 0; i < spec.stages.size(); ++i) {
      size_t param = 0;
      for (const Statement &statement : model.stages[i].body) {
        if (statement.kind != Statement::Kind::Param)
          continue;
        if (!usage[i][param++])
          error(statement.names[0].location, "parameter '" + statement.names[0].text +
                                                 "' is never used, it would never be trained");
      }
    }
  }

  const ModelSyntax &model;
  const Constants &constants;
  CheckContext context;
  ModelSpec spec;
  std::vector<Signature> signatures;
  /// Constants in dimensions that were refused.
  std::set<std::string> suspects;
  /// Names of tensors elsewhere, and where each stands.
  std::map<std::string, Location> externals;
};

} // namespace

ModelSpec checkModel(const ModelSyntax &model, const Constants &constants, CheckContext context) {
  return ModelChecker(model, constants, context).run();
}

} // namespace boa::frontend
