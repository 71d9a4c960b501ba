//===- ModelChecker.cpp - The stages of a model ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks signatures and parameters of all stages first, so that a body may name
// the parameters of any stage, then the bodies (bodychecker.cpp), then that all
// that was declared is used. Refuses models that are no chain: the first stage
// takes the tokens, each other the result of the one before, the last also the
// targets, and returns the loss. Those between are layers, at least one, which give
// back the shape that they take, and stages. Each may take results of earlier stages.
//
//===----------------------------------------------------------------------===//
#include "frontend/BodyChecker.h"
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
    checkChain();
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

  /// The name of a parameter's tensor elsewhere: one `*` for the number of a layer.
  void checkExternal(const Name &name, const StageSyntax &stage, ParamSpec &param) {
    const auto stars = std::count(name.text.begin(), name.text.end(), '*');
    const bool plain = std::all_of(name.text.begin(), name.text.end(),
                                   [](unsigned char c) { return c > ' ' && c < 0x7f; });
    if (name.text.empty() || name.text.size() > kMaxExternal || !plain)
      return error(name.location, "expected the name of a tensor, 1 to " +
                                      std::to_string(kMaxExternal) +
                                      " characters of ASCII without blanks");
    // Rows of a tensor stand in brackets at the end: `[0]` or `[:]`.
    const size_t bracket = name.text.find('[');
    const std::string rows = bracket == std::string::npos ? "[:]" : name.text.substr(bracket);
    const bool isRow = rows.size() >= 3 && rows.size() <= 9 && rows.back() == ']' &&
                       std::all_of(rows.begin() + 1, rows.end() - 1,
                                   [](unsigned char c) { return c >= '0' && c <= '9'; });
    if (bracket == 0 || (rows != "[:]" && !isRow))
      return error(name.location,
                   "expected a row of the tensor, \"NAME[0]\", or its first ones, \"NAME[:]\"");
    if (stage.isLayer && stars != 1)
      return error(name.location, "expected one '*' for the number of the layer, as in "
                                  "\"layers.*.weight\", but found " +
                                      std::to_string(stars));
    if (!stage.isLayer && stars != 0)
      return error(name.location, "expected no '*': '" + stage.name.text + "' does not repeat");
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
    for (const ArgumentSyntax &argument : syntax.arguments)
      signature.arguments.push_back(checkType(argument.type));
    signature.result = checkType(syntax.result);
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
        checkExternal(*statement.external, syntax, param);
      stage.params.push_back(std::move(param));
    }
    if (syntax.isLayer && !syntax.repeat)
      error(syntax.name.location, "expected 'repeat N' after the result of a layer");
    if (!syntax.isLayer && syntax.repeat)
      error(syntax.repeat->location,
            "only a layer repeats; write 'layer " + stage.name + "' or drop 'repeat'");
    if (syntax.isLayer && syntax.repeat)
      stage.repeat = evaluateInteger(*syntax.repeat, constants, 1, kMaxRepeat,
                                     "the number of layers", context.diagnostics)
                         .value_or(1);
    spec.stages.push_back(std::move(stage));
    signatures.push_back(std::move(signature));
  }

  /// That argument `index` of a stage is the tokens or targets of a sequence.
  void checkTokens(size_t stage, size_t index, const char *what) {
    const Shape &shape = signatures[stage].arguments[index];
    int64_t length = constants.find("context")->second.value.integer;
    if (shape.kind != Shape::Kind::Tokens || shape.dims.size() != 1 ||
        shape.dims[0].value != length)
      error(model.stages[stage].arguments[index].type.location,
            std::string("expected ") + what + " of type [context] token with context = " +
                std::to_string(length) + " but found " + shape.print());
  }

  /// Whether an argument is what stage `from` returns.
  bool checkPassedShape(size_t stage, size_t argument, size_t from) {
    const Shape &given = signatures[from].result, &taken = signatures[stage].arguments[argument];
    const bool same = taken.kind == Shape::Kind::Tensor && taken.sameValues(given);
    if (!same)
      context.diagnostics
          .error(model.stages[stage].arguments[argument].type.location,
                 "expected what stage '" + spec.stages[from].name + "' returns, " + given.print() +
                     ", but found " + taken.print())
          .note(model.stages[from].result.location, "returned here");
    return same;
  }

  /// The arguments of a stage after its first `plain`: results of earlier stages.
  void checkSideInputs(size_t index, size_t plain) {
    const StageSyntax &stage = model.stages[index];
    std::vector<std::string> earlier;
    for (size_t i = 0; i < index; ++i)
      earlier.push_back(model.stages[i].name.text);
    for (size_t i = plain; i < stage.arguments.size(); ++i) {
      const Name &from = *stage.arguments[i].from;
      const auto is = [&](const StageSyntax &other) { return other.name.text == from.text; };
      const auto found = std::find_if(model.stages.begin(), model.stages.end(), is);
      const auto number = uint32_t(found - model.stages.begin());
      std::vector<uint32_t> &sides = spec.stages[index].sides;
      if (found == model.stages.end()) {
        error(from.location,
              "no stage is named '" + from.text + "'" + didYouMean(from.text, earlier));
      } else if (number == index) {
        error(from.location, "'" + from.text +
                                 "' cannot take its own result: expected an "
                                 "earlier stage");
      } else if (number > index) {
        context.diagnostics
            .error(from.location, "stage '" + from.text + "' comes after '" + stage.name.text +
                                      "': expected an earlier stage")
            .note(found->name.location, "it is here");
      } else if (const auto same = std::find(sides.begin(), sides.end(), number);
                 same != sides.end()) {
        context.diagnostics
            .error(from.location, "the result of '" + from.text + "' is an argument already")
            .note(stage.arguments[plain + size_t(same - sides.begin())].name.location,
                  "this one has it");
      } else {
        sides.push_back(number);
        checkPassedShape(index, i, number);
      }
    }
  }

  /// Whether a stage takes what its place in the model gives: `plain` arguments, then results
  /// of stages that it names.
  bool checkArguments(size_t index, size_t plain) {
    const StageSyntax &stage = model.stages[index];
    const bool first = index == 0, last = index + 1 == model.stages.size();
    const char *expected = first  ? "one argument, the tokens,"
                           : last ? "two arguments, the result of the stage before and the "
                                    "targets,"
                                  : "one argument, the result of the stage before,";
    std::vector<const ArgumentSyntax *> unnamed;
    const ArgumentSyntax *early = nullptr; // names a stage, before one that names none
    for (const ArgumentSyntax &argument : stage.arguments)
      if (!argument.from)
        unnamed.push_back(&argument);
      else if (unnamed.size() < plain && !early)
        early = &argument;
    const std::string found =
        std::string("expected ") + expected + " but found " + std::to_string(unnamed.size());
    const size_t named = stage.arguments.size() - unnamed.size();
    if (unnamed.size() == plain && early)
      error(early->from->location,
            "expected arguments that name a stage after those that name none");
    else if (unnamed.size() > plain && !first)
      error(unnamed[plain]->name.location, found + "; a further one names its stage: '" +
                                               unnamed[plain]->name.text + ": [...] = STAGE'");
    else if (unnamed.size() != plain)
      error(stage.name.location,
            found + (named == 0 ? "" : "; " + std::to_string(named) + " more names a stage"));
    return unnamed.size() == plain && !early;
  }

  void checkChain() {
    for (size_t i = 0; i < signatures.size(); ++i) {
      const StageSyntax &syntax = model.stages[i];
      const bool first = i == 0, last = i + 1 == signatures.size();
      Signature &signature = signatures[i];
      const size_t plain = last ? 2 : 1;
      if (!checkArguments(i, plain))
        continue;
      bool taken = true;
      if (first)
        checkTokens(i, 0, "the tokens");
      else
        taken = checkPassedShape(i, 0, i - 1);
      if (last)
        checkTokens(i, 1, "the targets");
      checkSideInputs(i, plain);
      auto wanted = last ? Shape::Kind::Loss : Shape::Kind::Tensor;
      if (signature.result.kind != wanted)
        error(syntax.result.location,
              std::string("expected the ") +
                  (last ? "last stage to return loss" : "stage to return a tensor") +
                  " but found " + signature.result.print());
      else if (syntax.isLayer && taken && !signature.result.sameValues(signature.arguments[0])) {
        context.diagnostics
            .error(syntax.result.location, "expected a layer to return the shape that it takes, " +
                                               signature.arguments[0].print() + ", but found " +
                                               signature.result.print())
            .note(syntax.arguments[0].type.location, "taken here");
        signature.result = signature.arguments[0]; // one error is enough
      }
    }
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
