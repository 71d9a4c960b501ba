//===- Builtins.cpp - The functions of the language -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function for each builtin: which arguments it takes, which shapes they
// must have, which operation it becomes. The rules are those of the verifiers in
// dialect/BoaCompute.cpp, said in the terms of the source.
//
//===----------------------------------------------------------------------===//
#include "frontend/Builtins.h"

#include "frontend/Frontend.h"
#include "frontend/Habits.h"
#include "frontend/Settings.h"

#include <algorithm>
#include <cmath>

namespace boa::frontend {

namespace {

struct Builtin;

class Checker {
public:
  Checker(const Expr &call, const Builtin &builtin, const BuiltinContext &context)
      : call(call), builtin(builtin), context(context), stage(context.stage) {}

  Operand linear();
  Operand transpose();
  Operand embedding();
  Operand norm();
  Operand activation();
  Operand rotary();
  Operand attention();
  Operand crossEntropy();
  Operand split();
  /// Sorts the arguments; false, with an error, where they are not those of the
  /// signature.
  bool match();

private:
  Operand error(Location location, std::string message) {
    context.diagnostics.error(location, std::move(message));
    return Operand();
  }

  //===--------------------------------------------------------------------===//
  // Arguments: none after an error
  //===--------------------------------------------------------------------===//

  std::string found(const Operand &operand) const {
    switch (operand.kind) {
    case Operand::Kind::Number:
      return "a number";
    case Operand::Kind::Parts:
      return "the parts of a split";
    case Operand::Kind::Param:
      return "a parameter " + shape(operand).print();
    default:
      return shape(operand).print();
    }
  }
  const Shape &shape(const Operand &operand) const { return stage.values[operand.value]; }
  const Dim &last(const Operand &operand) const { return shape(operand).dims.back(); }

  /// Argument `i`, which must be an activation (or the tokens).
  std::optional<Operand> activationAt(size_t i, const std::string &what,
                                      Shape::Kind kind = Shape::Kind::Tensor) {
    const Expr &expr = *positional[i];
    Operand operand = context.evaluateOperand(expr);
    if (operand.kind == Operand::Kind::Error)
      return std::nullopt;
    if (operand.kind == Operand::Kind::Activation && shape(operand).kind == kind)
      return operand;
    error(expr.location, "expected " + what + " of " + call.name + " to be " +
                             (kind == Shape::Kind::Tokens ? "tokens" : "an activation") +
                             " but found " + found(operand));
    return std::nullopt;
  }

  /// Argument `i`, which must be a parameter of `rank` dimensions.
  std::optional<Operand> paramAt(size_t i, const std::string &what, size_t rank,
                                 bool mayTranspose = false) {
    const Expr &expr = *positional[i];
    Operand operand = context.evaluateOperand(expr);
    if (operand.kind == Operand::Kind::Error)
      return std::nullopt;
    if (operand.kind != Operand::Kind::Param) {
      error(expr.location, "expected " + what + " of " + call.name +
                               " to be a parameter but found " + found(operand));
      return std::nullopt;
    }
    if (operand.transposed && !mayTranspose) {
      error(expr.location, "transpose(...) can stand only as the weight of "
                           "linear(x, transpose(w))");
      return std::nullopt;
    }
    if (shape(operand).dims.size() != rank) {
      error(expr.location, "expected " + what + " of " + call.name + " to have " +
                               std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions") +
                               " but found " + shape(operand).print());
      return std::nullopt;
    }
    return operand;
  }

  /// A parameter of one dimension, as long as `dim`.
  std::optional<Operand> vectorAt(size_t i, const std::string &what, Dim dim) {
    auto operand = paramAt(i, what, 1);
    if (!operand || last(*operand).value == dim.value)
      return operand;
    Shape wanted;
    wanted.dims = {dim};
    error(positional[i]->location, "expected " + what + " of " + call.name + " to be " +
                                       wanted.print() + " but found " + shape(*operand).print());
    return std::nullopt;
  }

  const Expr *option(const char *name) const {
    for (const auto &[keyword, value] : options)
      if (keyword == name)
        return value;
    return nullptr;
  }
  std::optional<int64_t> integer(const Expr &expr, const std::string &what) {
    return evaluateInteger(expr, context.constants, 1, INT32_MAX, what, context.diagnostics);
  }
  std::optional<double> positive(const Expr *expr, double fallback, const std::string &what,
                                 double most) {
    if (!expr)
      return fallback;
    auto value = evaluate(*expr, context.constants, context.diagnostics);
    if (!value)
      return std::nullopt;
    if (value->real > 0 && value->real <= most)
      return value->real;
    error(expr->location, "expected " + what + " to be positive and at most " +
                              std::to_string(int64_t(most)) + " but found " + printExpr(*expr));
    return std::nullopt;
  }
  bool divides(int64_t heads, const std::string &what, const Dim &dim, const Expr &expr) {
    if (dim.value % heads == 0)
      return true;
    noteOrigin(expr, context.constants,
               context.diagnostics.error(expr.location, "expected " + what + " = " +
                                                            std::to_string(heads) + " to divide " +
                                                            printWithValue(dim.text, dim.value)));
    return false;
  }
  /// That an activation is [time, width].
  bool isSequence(const Operand &operand, size_t i) {
    if (shape(operand).dims.size() == 2)
      return true;
    error(positional[i]->location,
          "expected an activation [time, width] but found " + shape(operand).print());
    return false;
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  Operation operation(OperationKind kind, std::vector<uint32_t> operands) {
    Operation result;
    result.kind = kind;
    result.operands = std::move(operands);
    result.position = context.sources.position(call.location);
    return result;
  }
  uint32_t addResult(Operation &operation, Shape shape) {
    stage.values.push_back(std::move(shape));
    stage.valuePositions.push_back(operation.position);
    operation.results.push_back(uint32_t(stage.values.size() - 1));
    return operation.results.back();
  }
  Operand finish(Operation operation, Shape shape) {
    uint32_t value = addResult(operation, std::move(shape));
    stage.operations.push_back(std::move(operation));
    return {Operand::Kind::Activation, value};
  }

  const Expr &call;
  const Builtin &builtin;
  const BuiltinContext &context;
  StageSpec &stage;
  std::vector<const Expr *> positional;
  std::vector<std::pair<std::string, const Expr *>> options;
  bool causal = false, saidCausal = false;
};

struct Builtin {
  const char *name;
  const char *signature;
  const char *help;
  size_t least, most;
  /// Keyword arguments; "causal" may be a bare word.
  std::vector<std::string> options;
  Operand (Checker::*check)();
};

const std::vector<Builtin> &builtins() {
  static const std::vector<Builtin> table = {
      {"linear",
       "linear(x, w[, b])",
       "x times w [in, out], or transpose(w) of [out, in], plus b",
       2,
       3,
       {},
       &Checker::linear},
      {"transpose",
       "transpose(w)",
       "a parameter transposed, as the weight of linear",
       1,
       1,
       {},
       &Checker::transpose},
      {"embedding",
       "embedding(table, tokens)",
       "the row of table [vocab, width] of each token",
       2,
       2,
       {},
       &Checker::embedding},
      {"layer_norm",
       "layer_norm(x, w, b[, eps = ...])",
       "mean 0 and variance 1 in the last dimension, times w, plus b",
       3,
       3,
       {"eps"},
       &Checker::norm},
      {"rms_norm",
       "rms_norm(x, w[, eps = ...])",
       "root mean square 1 in the last dimension, times w",
       2,
       2,
       {"eps"},
       &Checker::norm},
      {"gelu",
       "gelu(x)",
       "x times the normal distribution function of x",
       1,
       1,
       {},
       &Checker::activation},
      {"silu", "silu(x)", "x times its sigmoid", 1, 1, {}, &Checker::activation},
      {"rotary",
       "rotary(x, heads[, base = ...])",
       "rotary position embedding of each head",
       2,
       2,
       {"base"},
       &Checker::rotary},
      {"attention",
       "attention(q, k, v, heads[, kv_heads = ...][, causal])",
       "softmax of q k / sqrt(width of a head), times v, for each head",
       4,
       4,
       {"kv_heads", "causal"},
       &Checker::attention},
      {"cross_entropy",
       "cross_entropy(logits, targets)",
       "mean loss of the targets: what the last stage returns",
       2,
       2,
       {},
       &Checker::crossEntropy},
      {"split",
       "split(x, parts)",
       "the last dimension cut in 3 equal parts, or in (a, b)",
       2,
       2,
       {},
       &Checker::split},
  };
  return table;
}

bool Checker::match() {
  for (const Argument &argument : call.arguments) {
    const Expr &value = *argument.value;
    bool takesCausal = std::count(builtin.options.begin(), builtin.options.end(), "causal") > 0;
    if (takesCausal && isCausal(argument)) {
      if (saidCausal)
        return error(value.location, "'causal' is given twice"), false;
      saidCausal = true;
      causal = !value.isName("false");
      continue;
    }
    if (takesCausal && argument.keyword && argument.keyword->text == "causal")
      return error(value.location,
                   "expected causal to be true or false but found " + printExpr(value)),
             false;
    if (!argument.keyword) {
      positional.push_back(&value);
      continue;
    }
    const Name &keyword = *argument.keyword;
    bool known = std::count(builtin.options.begin(), builtin.options.end(), keyword.text) > 0;
    if (!known || option(keyword.text.c_str())) {
      error(keyword.location, known ? "'" + keyword.text + "' is given twice"
                                    : "expected " + std::string(builtin.signature) +
                                          " but found the argument '" + keyword.text + "'" +
                                          didYouMean(keyword.text, builtin.options));
      return false;
    }
    options.emplace_back(keyword.text, &value);
  }
  if (positional.size() >= builtin.least && positional.size() <= builtin.most)
    return true;
  error(call.location, "expected " + std::string(builtin.signature) + " but found " +
                           std::to_string(positional.size()) +
                           (positional.size() == 1 ? " argument" : " arguments"));
  return false;
}

//===----------------------------------------------------------------------===//
// The builtins
//===----------------------------------------------------------------------===//

Operand Checker::linear() {
  auto x = activationAt(0, "x");
  auto w = paramAt(1, "the weight", 2, /*mayTranspose=*/true);
  if (!x || !w)
    return Operand();
  const Dim in = shape(*w).dims[w->transposed ? 1 : 0], out = shape(*w).dims[w->transposed ? 0 : 1];
  if (last(*x).value != in.value)
    return error(positional[1]->location, "expected a weight whose " +
                                              std::string(w->transposed ? "last" : "first") +
                                              " dimension is the last of x, " + shape(*x).print() +
                                              ", but found " + shape(*w).print());
  std::vector<uint32_t> operands = {x->value, w->value};
  if (positional.size() == 3) {
    auto bias = vectorAt(2, "the bias", out);
    if (!bias)
      return Operand();
    operands.push_back(bias->value);
  }
  Operation result = operation(OperationKind::Linear, operands);
  result.transpose = w->transposed;
  Shape shape = this->shape(*x);
  shape.dims.back() = out;
  return finish(std::move(result), shape);
}

Operand Checker::transpose() {
  auto w = paramAt(0, "the argument", 2);
  if (!w)
    return Operand();
  w->transposed = true;
  return *w;
}

Operand Checker::embedding() {
  auto table = paramAt(0, "the table", 2);
  auto tokens = activationAt(1, "the second argument", Shape::Kind::Tokens);
  if (!table || !tokens)
    return Operand();
  // A target that is left out is negative; others are what the model is to predict.
  if (tokens->value != 0)
    return error(positional[1]->location, "expected the tokens that the first stage takes but "
                                          "found the targets");
  const Dim &rows = shape(*table).dims[0];
  int64_t vocab = context.constants.find("vocab")->second.value.integer;
  if (rows.value < vocab)
    return error(positional[0]->location,
                 "expected a table with a row for each of vocab = " + std::to_string(vocab) +
                     " tokens but found " + shape(*table).print());
  Shape result = shape(*tokens);
  result.kind = Shape::Kind::Tensor;
  result.dims.push_back(shape(*table).dims[1]);
  return finish(operation(OperationKind::Embedding, {table->value, tokens->value}), result);
}

Operand Checker::norm() {
  bool layer = call.name == "layer_norm";
  auto x = activationAt(0, "x");
  if (!x)
    return Operand();
  auto weight = vectorAt(1, "the weight", last(*x));
  std::vector<uint32_t> operands = {x->value, weight ? weight->value : 0};
  if (layer) {
    auto bias = vectorAt(2, "the bias", last(*x));
    if (!bias)
      return Operand();
    operands.push_back(bias->value);
  }
  auto eps = positive(option("eps"), 1e-5, "eps", 1);
  if (!weight || !eps)
    return Operand();
  Operation result = operation(layer ? OperationKind::LayerNorm : OperationKind::RmsNorm, operands);
  result.number = *eps;
  return finish(std::move(result), shape(*x));
}

Operand Checker::activation() {
  auto x = activationAt(0, "x");
  if (!x)
    return Operand();
  auto kind = call.name == "gelu" ? OperationKind::Gelu : OperationKind::Silu;
  return finish(operation(kind, {x->value}), shape(*x));
}

Operand Checker::rotary() {
  auto x = activationAt(0, "x");
  auto heads = integer(*positional[1], "heads");
  auto base = positive(option("base"), 1e4, "base", 1e12);
  if (!x || !heads || !base || !isSequence(*x, 0) ||
      !divides(*heads, "heads", last(*x), *positional[1]))
    return Operand();
  int64_t head = last(*x).value / *heads;
  if (head % 2 != 0)
    return error(positional[1]->location, "expected heads of an even width, which rotary turns "
                                          "in pairs, but found " +
                                              std::to_string(head));
  Operation result = operation(OperationKind::Rotary, {x->value});
  result.heads = *heads;
  result.number = *base;
  return finish(std::move(result), shape(*x));
}

Operand Checker::attention() {
  auto q = activationAt(0, "q"), k = activationAt(1, "k"), v = activationAt(2, "v");
  auto heads = integer(*positional[3], "heads");
  const Expr *kvExpr = option("kv_heads");
  auto kvHeads = kvExpr ? integer(*kvExpr, "kv_heads") : heads;
  if (!q || !k || !v || !heads || !kvHeads || !isSequence(*q, 0) ||
      !divides(*heads, "heads", last(*q), *positional[3]))
    return Operand();
  if (kvExpr && *heads % *kvHeads != 0)
    return error(kvExpr->location, "expected kv_heads = " + std::to_string(*kvHeads) +
                                       " to divide heads = " + std::to_string(*heads));
  std::vector<int64_t> wanted = {shape(*q).dims[0].value, last(*q).value / *heads * *kvHeads};
  for (size_t i : {size_t(1), size_t(2)}) {
    const Operand &side = i == 1 ? *k : *v;
    if (shape(side).values() != wanted)
      return error(positional[i]->location,
                   std::string("expected ") + (i == 1 ? "k" : "v") + " of attention to be [" +
                       std::to_string(wanted[0]) + ", " + std::to_string(wanted[1]) +
                       "], the length of q and kv_heads times the width of a head, but found " +
                       shape(side).print());
  }
  Operation result = operation(OperationKind::Attention, {q->value, k->value, v->value});
  result.heads = *heads;
  result.kvHeads = *kvHeads;
  result.causal = causal;
  return finish(std::move(result), shape(*q));
}

Operand Checker::crossEntropy() {
  auto logits = activationAt(0, "the logits");
  auto targets = activationAt(1, "the targets", Shape::Kind::Tokens);
  if (!logits || !targets)
    return Operand();
  int64_t vocab = context.constants.find("vocab")->second.value.integer;
  std::vector<int64_t> values = shape(*logits).values();
  std::vector<int64_t> rows(values.begin(), values.end() - 1);
  if (rows != shape(*targets).values() || values.back() < vocab)
    return error(positional[0]->location,
                 "expected logits [context, vocab] with vocab = " + std::to_string(vocab) +
                     " for targets " + shape(*targets).print() + " but found " +
                     shape(*logits).print());
  Shape loss;
  loss.kind = Shape::Kind::Loss;
  return finish(operation(OperationKind::CrossEntropy, {logits->value, targets->value}), loss);
}

Operand Checker::split() {
  auto x = activationAt(0, "x");
  if (!x)
    return Operand();
  constexpr int64_t kMaxParts = 64;
  const Expr &parts = *positional[1];
  const Dim whole = last(*x);
  std::vector<Dim> sizes;
  if (parts.kind == Expr::Kind::Tuple) {
    int64_t sum = 0;
    for (const Argument &part : parts.arguments) {
      auto size = integer(*part.value, "the size of a part");
      if (!size)
        return Operand();
      sizes.push_back({*size, printExpr(*part.value)});
      // Each is under 2^31 and there are under 2^22 bytes of text.
      sum += *size;
    }
    if (sum != whole.value || int64_t(sizes.size()) > kMaxParts)
      return error(parts.location,
                   sum != whole.value
                       ? "expected parts that add up to the last dimension of " +
                             shape(*x).print() + " but found " + std::to_string(sum)
                       : "expected at most 64 parts but found " + std::to_string(sizes.size()));
  } else {
    auto count = evaluateInteger(parts, context.constants, 1, kMaxParts, "the number of parts",
                                 context.diagnostics);
    if (!count || !divides(*count, "the number of parts", whole, parts))
      return Operand();
    int64_t size = whole.value / *count;
    std::string prefix = std::to_string(*count) + " * ";
    // 3 * width in three parts is width, three times.
    std::string text =
        whole.text.rfind(prefix, 0) == 0 && whole.text.find_first_of("+-/%(") == std::string::npos
            ? whole.text.substr(prefix.size())
            : std::to_string(size);
    sizes.assign(size_t(*count), {size, text});
  }
  Operation result = operation(OperationKind::Split, {x->value});
  Operand operand(Operand::Kind::Parts);
  for (const Dim &size : sizes) {
    Shape part = shape(*x);
    part.dims.back() = size;
    operand.parts.push_back(addResult(result, std::move(part)));
  }
  stage.operations.push_back(std::move(result));
  return operand;
}

} // namespace

std::vector<BuiltinInfo> listBuiltins() {
  std::vector<BuiltinInfo> list;
  for (const Builtin &builtin : builtins())
    list.push_back({builtin.signature, builtin.help});
  return list;
}

bool isCausal(const Argument &argument) {
  const Expr &value = *argument.value;
  if (!argument.keyword)
    return value.isName("causal");
  return argument.keyword->text == "causal" && (value.isName("true") || value.isName("false"));
}

Operand checkBuiltin(const Expr &call, const BuiltinContext &context) {
  std::vector<std::string> names;
  for (const Builtin &builtin : builtins()) {
    names.push_back(builtin.name);
    if (call.name != builtin.name)
      continue;
    Checker checker(call, builtin, context);
    return checker.match() ? (checker.*builtin.check)() : Operand();
  }
  // A habit's spelling may be near to a builtin that computes something else: relu, gelu.
  std::string instead = findHabit(HabitKind::Function, call.name);
  std::string near = didYouMean(call.name, names);
  if (!instead.empty())
    context.diagnostics.error(call.location, "there is no '" + call.name + "': " + instead);
  else
    context.diagnostics.error(call.location,
                              "no function is named '" + call.name + "'" +
                                  (near.empty() ? "; there are " + listWords(names, "and") : near));
  return Operand();
}

} // namespace boa::frontend
