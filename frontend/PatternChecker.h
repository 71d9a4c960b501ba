//===- PatternChecker.h - Settings of what a pattern names ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some parameters and some activations differ from the others. A pattern names them by
// STAGE.NAME: `freeze` and `parameters "PATTERN" { ... }` of a train block, and
// `activations "PATTERN" { ... }` of a plan. Of several blocks that set one thing the last
// counts. A pattern that names nothing is an error.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_PATTERNCHECKER_H
#define BOA_FRONTEND_PATTERNCHECKER_H

#include "frontend/Settings.h"

namespace boa::frontend {

/// A parameter of a model.
struct ParamRef {
  uint32_t stage = 0, param = 0;
  bool operator==(const ParamRef &other) const {
    return stage == other.stage && param == other.param;
  }
};

/// Names of a setting, each with the parameters that it means.
using NamedParams = std::vector<std::pair<const Expr *, std::vector<ParamRef>>>;

/// Whether a name matches: `*` is any run of characters, `?` any one.
bool matchesPattern(std::string_view pattern, std::string_view name);

/// The patterns of a setting, one or several in parentheses. Stops with an error at what is no
/// pattern. `one` and `several`: examples for that.
std::vector<const Expr *> readPatternList(const Expr &expr, const char *setting, const char *one,
                                          const char *several, CheckContext context);

class PatternChecker {
public:
  /// `given`: the settings of the train block and of the plan. Writes to the model of `spec`.
  PatternChecker(const Constants &constants, CheckContext context, const GivenSettings &given,
                 Spec &spec)
      : constants(constants), context(context), given(given), spec(spec) {}

  void readParameters(const std::vector<Field> &train);
  void readActivations(const std::vector<Field> &plan);

  /// The places that were given of activations.
  const std::vector<const Expr *> &places() const { return givenPlaces; }

private:
  void error(Location at, std::string message) const {
    context.diagnostics.error(at, std::move(message));
  }
  void readFreeze(const Expr &freeze);
  void readReals(const GivenSettings &of, const char *path, const std::vector<ParamSpec *> &params,
                 std::optional<double> ParamSpec::*member);
  const Name *patternOf(const Field &field, const char *example) const;
  bool layersMayKeep() const;
  std::vector<Operation *> matchActivations(const Name &pattern);

  const Constants &constants;
  CheckContext context;
  const GivenSettings &given;
  Spec &spec;
  std::vector<const Expr *> givenPlaces;
};

} // namespace boa::frontend

#endif // BOA_FRONTEND_PATTERNCHECKER_H
