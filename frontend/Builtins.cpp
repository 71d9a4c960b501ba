//===- Builtins.cpp - The functions of the language -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/BuiltinChecker.h"

#include "frontend/ForeignSpellings.h"
#include "frontend/Frontend.h"
#include "frontend/Settings.h"

namespace boa::frontend {

/// To add a builtin: a row here, and its function in BuiltinChecker.cpp.
static const std::vector<Builtin> &builtins() {
  static const std::vector<Builtin> table = {
      {"linear",
       "linear(x, w[, b])",
       "x [..., in], w [in, out], b [out] -> [..., out]",
       "x times w [in, out], or transpose(w) of [out, in], plus b",
       2,
       3,
       {},
       {},
       &BuiltinChecker::linear},
      {"transpose",
       "transpose(w)",
       "[a, b] -> [b, a]",
       "a parameter transposed, as the weight of linear",
       1,
       1,
       {},
       {},
       &BuiltinChecker::transpose},
      {"embedding",
       "embedding(table, tokens)",
       "[vocab, width], [context] token -> [context, width]",
       "the row of table [vocab, width] of each token",
       2,
       2,
       {},
       {},
       &BuiltinChecker::embedding},
      {"layer_norm",
       "layer_norm(x, w, b[, eps = ...][, heads = ...])",
       "x [..., heads * n], w [n], b [n] -> as x",
       "mean 0, variance 1 in the last dimension or each head, times w, plus b",
       3,
       3,
       {"eps", "heads"},
       {},
       &BuiltinChecker::norm},
      {"rms_norm",
       "rms_norm(x, w[, eps = ...][, heads = ...])",
       "x [..., heads * n], w [n] -> as x",
       "root mean square 1 in the last dimension, or in each head, times w",
       2,
       2,
       {"eps", "heads"},
       {},
       &BuiltinChecker::norm},
      {"gelu",
       "gelu(x[, exact])",
       "as x",
       "x times the normal distribution function, by tanh (GPT-2), or exact",
       1,
       1,
       {},
       {"exact"},
       &BuiltinChecker::activation},
      {"silu", "silu(x)", "as x", "x times its sigmoid", 1, 1, {}, {}, &BuiltinChecker::activation},
      {"rotary",
       "rotary(x, heads[, base = ...][, scaling = ...])",
       "[context, heads * n], n even -> as x",
       "rotary position embedding; scaling is linear(...) or llama3(...)",
       2,
       2,
       {"base", "scaling"},
       {},
       &BuiltinChecker::rotary},
      {"attention",
       "attention(q, k, v, heads[, kv_heads = ...][, causal][, window = ...])",
       "q [context, heads * n], k and v [context, kv_heads * n] -> as q",
       "softmax of q k / sqrt(n), times v, by head; causal and window hide keys",
       4,
       4,
       {"kv_heads", "window"},
       {"causal"},
       &BuiltinChecker::attention},
      {"cross_entropy",
       "cross_entropy(logits, targets)",
       "[context, vocab], [context] token -> loss",
       "mean loss of the targets: what the last stage returns",
       2,
       2,
       {},
       {},
       &BuiltinChecker::crossEntropy},
      {"split",
       "split(x, parts)",
       "[..., n] -> parts of n",
       "the last dimension cut in 3 equal parts, or in (a, b)",
       2,
       2,
       {},
       {},
       &BuiltinChecker::split},
  };
  return table;
}

std::vector<BuiltinInfo> listBuiltins() {
  std::vector<BuiltinInfo> list;
  for (const Builtin &builtin : builtins())
    list.push_back({builtin.signature, builtin.shapes, builtin.help});
  return list;
}

bool isFlag(const Argument &argument, const std::string &word) {
  const Expr &value = *argument.value;
  if (!argument.keyword)
    return value.isName(word);
  return argument.keyword->text == word && (value.isName("true") || value.isName("false"));
}

Operand checkBuiltin(const Expr &call, const BuiltinContext &context) {
  std::vector<std::string> names;
  for (const Builtin &builtin : builtins()) {
    names.push_back(builtin.name);
    if (call.name != builtin.name)
      continue;
    BuiltinChecker checker(call, builtin, context);
    return checker.match() ? (checker.*builtin.check)() : Operand();
  }
  // A foreign spelling may be near to a builtin that computes something else: relu, gelu.
  std::string instead = findSpelling(SpellingKind::Function, call.name);
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
