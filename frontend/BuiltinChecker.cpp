//===- BuiltinChecker.cpp - Calls of builtins, checked --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/BuiltinChecker.h"

#include "frontend/Settings.h"

#include <algorithm>
#include <map>

namespace boa::frontend {

bool BuiltinChecker::match() {
  for (const Argument &argument : call.arguments) {
    const Expr &value = *argument.value;
    auto flag =
        std::find_if(builtin.flags.begin(), builtin.flags.end(), [&](const std::string &word) {
          return isFlag(argument, word) || (argument.keyword && argument.keyword->text == word);
        });
    // The first argument is a value, whatever its name.
    if (flag != builtin.flags.end() && (argument.keyword || !positional.empty())) {
      if (!isFlag(argument, *flag))
        return error(value.location,
                     "expected " + *flag + " to be true or false but found " + printExpr(value)),
               false;
      if (isGiven(*flag))
        return error(value.location, "'" + *flag + "' is given twice"), false;
      flags.emplace_back(*flag, !value.isName("false"));
      continue;
    }
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

Operand BuiltinChecker::linear() {
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

Operand BuiltinChecker::transpose() {
  auto w = paramAt(0, "the argument", 2);
  if (!w)
    return Operand();
  w->transposed = true;
  return *w;
}

Operand BuiltinChecker::embedding() {
  auto table = paramAt(0, "the table", 2);
  auto tokens = activationAt(1, "the second argument", Shape::Kind::Tokens);
  if (!table || !tokens)
    return Operand();
  // A target that is left out is negative; others are what the model is to predict.
  if (const TakenSpec &taken = stage.takes[tokens->value]; taken.kind != TakenSpec::Kind::Tokens)
    return error(
        positional[1]->location,
        std::string("expected the tokens of the model but found ") +
            (taken.kind == TakenSpec::Kind::Targets ? "the targets" : "what a stage returns"));
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

Operand BuiltinChecker::norm() {
  bool layer = call.name == "layer_norm";
  auto x = activationAt(0, "x");
  if (!x)
    return Operand();
  Dim width = last(*x);
  const Expr *headsExpr = option("heads");
  if (headsExpr) {
    auto heads = integer(*headsExpr, "heads");
    if (!heads || !divides(*heads, "heads", width, *headsExpr))
      return Operand();
    width = {width.value / *heads, std::to_string(width.value / *heads)};
  }
  auto weight = vectorAt(1, "the weight", width);
  std::vector<uint32_t> operands = {x->value, weight ? weight->value : 0};
  if (layer) {
    auto bias = vectorAt(2, "the bias", width);
    if (!bias)
      return Operand();
    operands.push_back(bias->value);
  }
  auto eps = positive(option("eps"), 1e-5, "eps", 1);
  if (!weight || !eps)
    return Operand();
  Operation result = operation(layer ? OperationKind::LayerNorm : OperationKind::RmsNorm, operands);
  result.number = *eps;
  // Norms without heads, and of one, compute the same.
  if (last(*x).value != width.value)
    result.heads = last(*x).value / width.value;
  return finish(std::move(result), shape(*x));
}

Operand BuiltinChecker::activation() {
  auto x = activationAt(0, "x");
  if (!x)
    return Operand();
  Operation result = operation(OperationKind::Activation, {x->value});
  result.function = call.name;
  result.exact = isSet("exact");
  return finish(std::move(result), shape(*x));
}

bool BuiltinChecker::readScaling(const Expr &expr, RotaryScaling &scaling) {
  const std::string ofAll = "linear(factor = ...)";
  const std::string ofBands = "llama3(factor = ..., low = 1, high = 4, context = ...)";
  const bool hasBands = expr.name == "llama3";
  if (expr.kind != Expr::Kind::Call || !(hasBands || expr.name == "linear"))
    return error(expr.location, "expected scaling to be " + ofAll + " or " + ofBands +
                                    " but found " + printExpr(expr)),
           false;
  const std::vector<std::string> names =
      hasBands ? std::vector<std::string>{"factor", "low", "high", "context"}
               : std::vector<std::string>{"factor"};
  std::map<std::string, const Expr *> given;
  for (const Argument &argument : expr.arguments) {
    const std::string name = argument.keyword ? argument.keyword->text : "";
    const Location at = argument.keyword ? argument.keyword->location : argument.value->location;
    if (std::count(names.begin(), names.end(), name) == 0)
      return error(at,
                   "expected " + (hasBands ? ofBands : ofAll) + " but found " +
                       (name.empty() ? printExpr(*argument.value)
                                     : "the argument '" + name + "'" + didYouMean(name, names))),
             false;
    if (!given.emplace(name, argument.value.get()).second)
      return error(at, "'" + name + "' is given twice"), false;
  }
  for (const char *required : {"factor", "context"})
    if (std::count(names.begin(), names.end(), required) > 0 && !given.count(required))
      return error(expr.location, expr.name + " needs " + required + " = ..."), false;
  auto factor = positive(given["factor"], 1, "factor", 1e6);
  if (!factor)
    return false;
  if (*factor < 1)
    return error(given["factor"]->location,
                 "expected a factor of 1 or more, by which angles are divided, but found " +
                     printExpr(*given["factor"])),
           false;
  scaling.factor = *factor;
  if (!hasBands)
    return true;
  auto low = positive(given["low"], 1, "low", 1e6), high = positive(given["high"], 4, "high", 1e6);
  auto length = integer(*given["context"], "context");
  if (!low || !high || !length)
    return false;
  if (*low >= *high)
    return error(expr.location, "expected low to be less than high"), false;
  scaling.low = *low, scaling.high = *high, scaling.context = *length;
  return true;
}

Operand BuiltinChecker::rotary() {
  auto x = activationAt(0, "x");
  auto heads = integer(*positional[1], "heads");
  auto base = positive(option("base"), 1e4, "base", 1e12);
  RotaryScaling scaling;
  if (const Expr *expr = option("scaling"); expr && !readScaling(*expr, scaling))
    return Operand();
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
  result.scaling = scaling;
  return finish(std::move(result), shape(*x));
}

Operand BuiltinChecker::attention() {
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
  result.causal = isSet("causal");
  if (const Expr *expr = option("window")) {
    auto window = integer(*expr, "window");
    if (!window)
      return Operand();
    if (isGiven("causal") && !isSet("causal"))
      return error(expr->location,
                   "a window is of causal attention: it hides later positions, too");
    result.causal = true;
    // A window of the whole context hides nothing.
    result.window = *window < shape(*q).dims[0].value ? *window : 0;
  }
  return finish(std::move(result), shape(*q));
}

Operand BuiltinChecker::crossEntropy() {
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

Operand BuiltinChecker::split() {
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

} // namespace boa::frontend
