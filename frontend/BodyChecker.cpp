//===- BodyChecker.cpp - The body of one stage ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Resolves names, checks the shape of every operation and writes the body as
// straight-line operations. An expression that has an error yields an operand of
// kind Error, which every use accepts in silence, so that one mistake is one
// message. Constants are folded away: `0.5 * x` is a scale by 0.5. All that is
// bound must be used; so, by induction, all reaches the result.
//
//===----------------------------------------------------------------------===//
#include "frontend/BodyChecker.h"

#include "frontend/Builtins.h"
#include "frontend/ForeignSpellings.h"
#include "frontend/Printer.h"
#include "runtime/abi/float32.h"

#include <algorithm>

namespace boa::frontend {

namespace {

class BodyChecker {
public:
  BodyChecker(const ModelSyntax &model, size_t index, const Signature &signature,
              const Constants &constants, ModelSpec &spec, ParamUsage &usage, CheckContext context)
      : model(model), syntax(model.stages[index]), index(index), signature(signature),
        constants(constants), spec(spec), stage(spec.stages[index]), usage(usage),
        context(context) {}

  void run() {
    size_t before = context.diagnostics.count();
    for (size_t i = 0; i < syntax.arguments.size(); ++i) {
      const Name &name = syntax.arguments[i].name;
      bind(name, {Operand::Kind::Activation, addValue(signature.arguments[i], name.location)},
           "argument");
    }
    bindParams();
    checkStatements();
    if (context.diagnostics.count() == before)
      checkUsed();
    dropUnusedParams();
  }

private:
  struct Binding {
    Operand operand;
    Location location;
    const char *what;
    bool used = false;
  };

  Operand error(Location location, std::string message) {
    context.diagnostics.error(location, std::move(message));
    return Operand{Operand::Kind::Error};
  }

  //===--------------------------------------------------------------------===//
  // Names
  //===--------------------------------------------------------------------===//

  void bind(const Name &name, Operand operand, const char *what) {
    auto constant = constants.find(name.text);
    if (constant != constants.end()) {
      context.diagnostics
          .error(name.location, "'" + name.text + "' is already a constant of the model")
          .note(constant->second.location, "defined here");
      return;
    }
    auto [found, inserted] = bindings.emplace(name.text, Binding{operand, name.location, what});
    if (!inserted)
      context.diagnostics.error(name.location, "'" + name.text + "' is defined twice")
          .note(found->second.location, "first defined here");
  }

  uint32_t addValue(const Shape &shape, Location location) {
    stage.values.push_back(shape);
    stage.valuePositions.push_back(context.sources.position(location));
    return uint32_t(stage.values.size() - 1);
  }

  void addUse(ParamUse use) {
    useOfValue[use.value] = stage.uses.size();
    stage.uses.push_back(use);
  }

  void bindParams() {
    uint32_t param = 0;
    for (const Statement &statement : syntax.body) {
      if (statement.kind != Statement::Kind::Param)
        continue;
      const Name &name = statement.names[0];
      uint32_t value = addValue(stage.params[param].shape, name.location);
      valueOfParam[{uint32_t(index), param}] = value;
      addUse({uint32_t(index), param, value});
      bind(name, {Operand::Kind::Param, value}, "parameter");
      ++param;
    }
  }

  /// Where a name that is not bound yet is bound; not looked for where nothing is
  /// said any more.
  const Name *findLaterBinding(const std::string &text) const {
    if (!context.diagnostics.full())
      for (const Statement &statement : syntax.body)
        for (const Name &name : statement.names)
          if (name.text == text)
            return &name;
    return nullptr;
  }

  Operand resolveName(const Expr &expr) {
    auto found = bindings.find(expr.name);
    if (found == bindings.end()) {
      if (namesAreMissing)
        return Operand{Operand::Kind::Error};
      if (const Name *later = findLaterBinding(expr.name)) {
        context.diagnostics
            .error(expr.location,
                   "'" + expr.name + "' is defined later: a value can use those before it")
            .note(later->location, "defined here");
        return Operand{Operand::Kind::Error};
      }
      std::vector<std::string> names;
      for (const auto &entry : bindings)
        names.push_back(entry.first);
      for (const auto &entry : constants)
        names.push_back(entry.first);
      return error(expr.location,
                   "nothing here is named '" + expr.name + "'" + didYouMean(expr.name, names));
    }
    Binding &binding = found->second;
    binding.used = true;
    if (binding.operand.kind == Operand::Kind::Param) {
      const ParamUse &use = stage.uses[useOfValue[binding.operand.value]];
      usage[use.stage][use.param] = true;
    }
    return binding.operand;
  }

  /// `stage.param`: the parameter of another stage, or the long way to name an
  /// own one.
  Operand resolveMember(const Expr &expr) {
    std::vector<std::string> names, params;
    for (uint32_t i = 0; i < spec.stages.size(); ++i) {
      const StageSpec &other = spec.stages[i];
      names.push_back(other.name);
      if (other.name != expr.name)
        continue;
      for (uint32_t j = 0; j < other.params.size(); ++j)
        if (other.params[j].name == expr.member)
          return useParam(expr, i, j);
      for (const ParamSpec &param : other.params)
        params.push_back(param.name);
      return error(expr.location, "stage '" + expr.name + "' has no parameter '" + expr.member +
                                      "'" + didYouMean(expr.member, params));
    }
    std::string hint = findSpelling(SpellingKind::Function, expr.member);
    if (hint.empty())
      hint = findSpelling(SpellingKind::Word, expr.name);
    if (!hint.empty())
      return error(expr.location, "there is no '" + printExpr(expr) + "': " + hint);
    return error(expr.location,
                 "no stage is named '" + expr.name + "'" + didYouMean(expr.name, names));
  }

  /// Layers share the parameters of layers one by one, so there must be as many of both.
  Operand useParam(const Expr &expr, uint32_t from, uint32_t param) {
    const StageSpec &owner = spec.stages[from];
    if (owner.isLayer && !(stage.isLayer && owner.repeat == stage.repeat)) {
      const std::string found = stage.isLayer ? std::to_string(stage.repeat) + " layers '" +
                                                    stage.name + "' cannot share it"
                                              : "a stage that is no layer cannot share it";
      context.diagnostics
          .error(expr.location, "'" + expr.name + "." + expr.member + "' is a parameter of " +
                                    std::to_string(owner.repeat) +
                                    (owner.repeat == 1 ? " layer: " : " layers: ") + found)
          .note(model.stages[from].name.location, "the layer is here");
      return Operand{Operand::Kind::Error};
    }
    usage[from][param] = true;
    auto [found, isNew] = valueOfParam.try_emplace({from, param}, 0);
    if (isNew) {
      found->second = addValue(spec.stages[from].params[param].shape, expr.location);
      addUse({from, param, found->second});
    }
    return {Operand::Kind::Param, found->second};
  }

  //===--------------------------------------------------------------------===//
  // Statements
  //===--------------------------------------------------------------------===//

  void checkStatements() {
    bool returned = false;
    for (const Statement &statement : syntax.body) {
      if (context.diagnostics.full())
        return;
      if (returned) {
        context.diagnostics.error(statement.location, "nothing can follow 'return'");
        return;
      }
      if (statement.kind == Statement::Kind::Let)
        checkLet(statement);
      if (statement.kind == Statement::Kind::Return) {
        checkReturn(statement);
        returned = true;
      }
    }
    if (!returned)
      context.diagnostics.error(syntax.end,
                                "expected 'return' at the end of stage '" + stage.name + "'");
  }

  void checkLet(const Statement &statement) {
    const size_t before = stage.operations.size();
    Operand operand = evaluateOperand(*statement.value);
    // Another name of a value that has one changes nothing.
    if (operand.kind == Operand::Kind::Activation && stage.operations.size() > before)
      stage.operations.back().name = statement.names[0].text;
    size_t names = statement.names.size();
    size_t parts = operand.kind == Operand::Kind::Parts ? operand.parts.size() : 1;
    if (operand.kind == Operand::Kind::Number)
      operand = error(statement.value->location,
                      "expected a tensor but found a number; numbers are named among the "
                      "constants of the model");
    if (operand.kind == Operand::Kind::Param && operand.transposed)
      operand = error(statement.value->location, transposeMessage());
    if (operand.kind != Operand::Kind::Error && parts != names) {
      namesAreMissing = true;
      operand = error(statement.value->location, "expected as many values as names, " +
                                                     std::to_string(names) + ", but found " +
                                                     std::to_string(parts));
    }
    for (size_t i = 0; i < names; ++i) {
      Operand bound = operand;
      if (operand.kind == Operand::Kind::Parts)
        bound = {Operand::Kind::Activation, operand.parts[i]};
      bind(statement.names[i], bound, "value");
    }
  }

  void checkReturn(const Statement &statement) {
    std::vector<const Expr *> values{statement.value.get()};
    if (statement.value->kind == Expr::Kind::Tuple) {
      values.clear();
      for (const Argument &argument : statement.value->arguments)
        values.push_back(argument.value.get());
    }
    if (values.size() != signature.results.size()) {
      context.diagnostics
          .error(statement.value->location, "expected stage '" + stage.name + "' to return " +
                                                std::to_string(signature.results.size()) +
                                                " values but found " +
                                                std::to_string(values.size()))
          .note(syntax.resultsLocation, "declared here");
      return;
    }
    for (size_t i = 0; i < values.size(); ++i)
      checkReturned(*values[i], i);
    stage.resultPosition = context.sources.position(statement.location);
  }

  void checkReturned(const Expr &expr, size_t number) {
    Operand operand = evaluateOperand(expr);
    if (operand.kind == Operand::Kind::Error)
      return;
    if (operand.kind != Operand::Kind::Activation) {
      error(expr.location,
            "expected a stage to return an activation but found " + describeOperand(operand));
      return;
    }
    const Shape &found = stage.values[operand.value], &expected = signature.results[number];
    if (found.kind != expected.kind || !found.sameValues(expected)) {
      context.diagnostics
          .error(expr.location, "expected stage '" + stage.name + "' to return " +
                                    expected.print() + " but found " + found.print())
          .note(syntax.results[number].location, "declared here");
      return;
    }
    stage.results.push_back(operand.value);
  }

  void checkUsed() {
    for (const auto &[name, binding] : bindings)
      if (!binding.used && std::string_view(binding.what) != "parameter")
        error(binding.location, std::string(binding.what) + " '" + name + "' is never used");
  }

  /// Own parameters that only other stages use are no arguments of this one:
  /// they would get no gradient here.
  void dropUnusedParams() {
    std::vector<bool> read(stage.values.size(), false);
    for (const Operation &operation : stage.operations)
      for (uint32_t operand : operation.operands)
        read[operand] = true;
    auto unread = [&](const ParamUse &use) { return !read[use.value]; };
    stage.uses.erase(std::remove_if(stage.uses.begin(), stage.uses.end(), unread),
                     stage.uses.end());
  }

  //===--------------------------------------------------------------------===//
  // Expressions
  //===--------------------------------------------------------------------===//

  static std::string transposeMessage() {
    return "transpose(...) can stand only as the weight of linear(x, transpose(w))";
  }

  std::string describeOperand(const Operand &operand) const {
    switch (operand.kind) {
    case Operand::Kind::Number:
      return "a number";
    case Operand::Kind::Parts:
      return "the parts of a split";
    case Operand::Kind::Param:
      return "a parameter " + stage.values[operand.value].print();
    case Operand::Kind::Activation:
      return stage.values[operand.value].print();
    case Operand::Kind::Error:
      break;
    }
    return "an error";
  }

  Operand evaluateOperand(const Expr &expr) {
    if (isNumeric(expr, constants)) {
      auto number = evaluate(expr, constants, context.diagnostics);
      if (!number)
        return Operand{Operand::Kind::Error};
      Operand operand{Operand::Kind::Number};
      operand.number = number->real;
      return operand;
    }
    switch (expr.kind) {
    case Expr::Kind::Name:
      return resolveName(expr);
    case Expr::Kind::Member:
      return resolveMember(expr);
    case Expr::Kind::Binary:
      return checkBinary(expr);
    case Expr::Kind::Call: {
      BuiltinContext builtin{constants, stage, context.sources, context.diagnostics,
                             [this](const Expr &argument) { return evaluateOperand(argument); }};
      return checkBuiltin(expr, builtin);
    }
    case Expr::Kind::Negate:
      return error(expr.location, "expected a number after '-'; for tensors write -1 * x");
    default:
      return error(expr.location, "expected a tensor but found " + printExpr(expr));
    }
  }

  Operand emit(OperationKind kind, const char *name, std::vector<uint32_t> operands,
               const Expr &expr, double number = 0) {
    Operation operation;
    operation.kind = kind;
    operation.name = name;
    Shape shape = stage.values[operands[0]];
    operation.operands = std::move(operands);
    operation.number = number;
    operation.position = context.sources.position(expr.location);
    operation.results.push_back(addValue(shape, expr.location));
    Operand result{Operand::Kind::Activation, operation.results[0]};
    stage.operations.push_back(std::move(operation));
    return result;
  }

  /// Whether an operand of + or * is an activation or parameter of numbers.
  bool isTensor(const Operand &operand) const {
    return (operand.kind == Operand::Kind::Activation || operand.kind == Operand::Kind::Param) &&
           stage.values[operand.value].kind == Shape::Kind::Tensor;
  }

  Operand checkBinary(const Expr &expr) {
    const Expr &leftExpr = *expr.operands[0], &rightExpr = *expr.operands[1];
    Operand left = evaluateOperand(leftExpr), right = evaluateOperand(rightExpr);
    if (left.kind == Operand::Kind::Error || right.kind == Operand::Kind::Error)
      return Operand{Operand::Kind::Error};
    std::string op(1, expr.op);
    bool leftNumber = left.kind == Operand::Kind::Number;
    bool rightNumber = right.kind == Operand::Kind::Number;
    for (auto [operand, side] : {std::pair(&left, &leftExpr), std::pair(&right, &rightExpr)}) {
      if (operand->kind == Operand::Kind::Param && operand->transposed)
        return error(side->location, transposeMessage());
      if (operand->kind != Operand::Kind::Number && !isTensor(*operand))
        return error(side->location, "expected a tensor beside '" + op + "' but found " +
                                         describeOperand(*operand));
    }
    if (leftNumber || rightNumber) {
      const Operand &tensor = leftNumber ? right : left;
      double number = leftNumber ? left.number : right.number;
      bool divides = expr.op == '/' && rightNumber && number != 0;
      if (expr.op != '*' && !divides)
        return error(expr.location, "a number and a tensor can only be multiplied, or the "
                                    "tensor divided by a number that is not zero");
      if (tensor.kind != Operand::Kind::Activation)
        return error((leftNumber ? rightExpr : leftExpr).location,
                     "expected an activation beside '" + op + "' but found " +
                         describeOperand(tensor));
      const double factor = divides ? 1 / number : number;
      if (!IsFloat32(factor))
        return error(expr.location,
                     "expected the factor " + printNumber(factor) +
                         " to fit f32, in which kernels compute: 0, or a size from " +
                         kLeastFloat32 + " to " + kMostFloat32);
      return emit(OperationKind::Scale, "scale", {tensor.value}, expr, factor);
    }
    if (expr.op != '+' && expr.op != '*')
      return error(expr.location, "expected '+' or '*' between tensors but found '" + op + "'");
    if (left.kind == Operand::Kind::Param)
      return error(leftExpr.location, "expected an activation on the left of '" + op +
                                          "' but found " + describeOperand(left) +
                                          "; write the parameter on the right");
    const Shape &whole = stage.values[left.value], &part = stage.values[right.value];
    std::vector<int64_t> a = whole.values(), b = part.values();
    // A parameter lacks at least the batch dimension, an activation none.
    bool fits = right.kind == Operand::Kind::Activation
                    ? a == b
                    : b.size() <= a.size() && std::equal(b.rbegin(), b.rend(), a.rbegin());
    if (!fits)
      return error(expr.location, "the shapes beside '" + op + "' do not fit: " + whole.print() +
                                      " and " + part.print());
    const bool adds = expr.op == '+';
    return emit(adds ? OperationKind::Add : OperationKind::Mul, adds ? "add" : "mul",
                {left.value, right.value}, expr);
  }

  const ModelSyntax &model;
  const StageSyntax &syntax;
  size_t index;
  const Signature &signature;
  const Constants &constants;
  ModelSpec &spec;
  StageSpec &stage;
  ParamUsage &usage;
  CheckContext context;
  std::map<std::string, Binding> bindings;
  /// Stage and parameter to value, and value to its place in stage.uses.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> valueOfParam;
  std::map<uint32_t, size_t> useOfValue;
  /// After a 'let' of too few names: then an unknown name is no second error.
  bool namesAreMissing = false;
};

} // namespace

void checkBody(const ModelSyntax &model, size_t index, const Signature &signature,
               const Constants &constants, ModelSpec &spec, ParamUsage &usage,
               CheckContext context) {
  BodyChecker(model, index, signature, constants, spec, usage, context).run();
}

} // namespace boa::frontend
