//===- GraphChecker.cpp - How the stages of a model are connected ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/GraphChecker.h"

#include <algorithm>

namespace boa::frontend {

namespace {

class GraphChecker {
public:
  GraphChecker(const ModelSyntax &model, const Constants &constants, ModelSpec &spec,
               std::vector<Signature> &signatures, CheckContext context)
      : model(model), constants(constants), spec(spec), signatures(signatures), context(context) {}

  void run() {
    for (size_t i = 0; i < signatures.size(); ++i) {
      const bool isLayer = model.stages[i].isLayer;
      const size_t before = context.diagnostics.count();
      // One layer carries nothing on.
      if (!checkArguments(i, spec.stages[i].repeat > 1 ? signatures[i].results.size() : 0))
        continue;
      checkResults(i);
      if (isLayer && context.diagnostics.count() == before)
        checkCarried(i);
    }
    if (context.diagnostics.empty())
      checkTaken();
  }

private:
  void error(Location location, std::string message) {
    context.diagnostics.error(location, std::move(message));
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

  /// Whether an argument is what a stage returns.
  bool checkPassedShape(size_t stage, size_t argument, TakenSpec taken) {
    const Shape &given = signatures[taken.stage].results[taken.result];
    const Shape &found = signatures[stage].arguments[argument];
    const bool same = found.kind == given.kind && found.sameValues(given);
    if (!same)
      context.diagnostics
          .error(model.stages[stage].arguments[argument].type.location,
                 "expected what stage '" + spec.stages[taken.stage].name + "' returns, " +
                     given.print() + ", but found " + found.print())
          .note(model.stages[taken.stage].results[taken.result].location, "returned here");
    return same;
  }

  /// What an argument that names a stage takes.
  void checkNamed(size_t index, size_t argument, size_t carried) {
    const StageSyntax &stage = model.stages[index];
    const ArgumentSyntax &syntax = stage.arguments[argument];
    const Name &from = *syntax.from;
    const auto is = [&](const StageSyntax &other) { return other.name.text == from.text; };
    const auto found = std::find_if(model.stages.begin(), model.stages.end(), is);
    const auto number = uint32_t(found - model.stages.begin());
    std::vector<TakenSpec> &takes = spec.stages[index].takes;
    if (found == model.stages.end() && from.text == "tokens") {
      takes.push_back({TakenSpec::Kind::Tokens});
      if (stage.isLayer && argument < signatures[index].results.size())
        error(from.location, "layers carry '" + syntax.name.text +
                                 "' on: expected what a stage returns but found the tokens");
      return checkTokens(index, argument, "the tokens");
    }
    takes.push_back({TakenSpec::Kind::Result, number, uint32_t(syntax.result)});
    std::vector<std::string> earlier;
    for (size_t i = 0; i < index; ++i)
      earlier.push_back(model.stages[i].name.text);
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
    } else if (size_t(syntax.result) >= found->results.size()) {
      context.diagnostics
          .error(from.location, "expected one of the " + std::to_string(found->results.size()) +
                                    " results of '" + from.text + "', from 0, but found " +
                                    std::to_string(syntax.result))
          .note(found->resultsLocation, "returned here");
    } else if (const auto same = findSame(index, carried); same != takes.end() - 1) {
      context.diagnostics
          .error(from.location, "the result of '" + from.text + "' is an argument already")
          .note(stage.arguments[size_t(same - takes.begin())].name.location, "this one has it");
    } else {
      checkPassedShape(index, argument, takes.back());
    }
  }

  /// An argument that takes what the last one does, where gradients of both would be added up in
  /// one place. Those of carried arguments are not, nor that of a main input from the stage before.
  /// Tokens have none.
  std::vector<TakenSpec>::iterator findSame(size_t index, size_t carried) {
    std::vector<TakenSpec> &takes = spec.stages[index].takes;
    if (signatures[index].arguments[takes.size() - 1].kind == Shape::Kind::Tokens)
      return takes.end() - 1;
    if (carried == 0 && takes[0].kind == TakenSpec::Kind::Result && takes[0].stage + 1 == index)
      carried = 1;
    return std::find(takes.begin() + std::min(carried, takes.size() - 1), takes.end() - 1,
                     takes.back());
  }

  /// How many arguments that name no stage a stage takes, and what they are. Results of the stage
  /// before may be left out, if others are named.
  struct Unnamed {
    size_t least, most;
    std::string text;
  };
  Unnamed describeUnnamed(size_t index, size_t named) {
    const bool first = index == 0, last = index + 1 == model.stages.size();
    const size_t results = first ? 1 : signatures[index - 1].results.size();
    if (first)
      return {named == 0 ? 1u : 0u, 1, "one argument, the tokens,"};
    const size_t least = (named == 0 ? 1 : 0) + (last ? 1 : 0), most = results + (last ? 1 : 0);
    if (results > 1)
      return {least, most,
              (least == 0 ? "at most " : std::to_string(least) + " to ") + std::to_string(most) +
                  " arguments, results of the stage before" + (last ? " and the targets," : ",")};
    return {least, most,
            last ? "two arguments, the result of the stage before and the targets,"
                 : "one argument, the result of the stage before,"};
  }

  /// Finds what each argument of a stage takes: what its place in the model gives, then results of
  /// stages that it names.
  bool checkArguments(size_t index, size_t carried) {
    const StageSyntax &stage = model.stages[index];
    const bool first = index == 0, last = index + 1 == model.stages.size();
    std::vector<const ArgumentSyntax *> unnamed;
    for (const ArgumentSyntax &argument : stage.arguments)
      if (!argument.from)
        unnamed.push_back(&argument);
    const size_t named = stage.arguments.size() - unnamed.size();
    const Unnamed expected = describeUnnamed(index, named);
    const std::string found =
        "expected " + expected.text + " but found " + std::to_string(unnamed.size());
    if (unnamed.size() > expected.most && !first) {
      error(unnamed[expected.most]->name.location, found + "; a further one names its stage: '" +
                                                       unnamed[expected.most]->name.text +
                                                       ": [...] = STAGE'");
      return false;
    }
    if (unnamed.size() < expected.least || unnamed.size() > expected.most) {
      error(stage.name.location,
            last && named > 0
                ? "expected an argument that names no stage, the targets, but found none"
                : found);
      return false;
    }
    for (size_t i = 0; i < unnamed.size(); ++i)
      if (stage.arguments[i].from) {
        error(stage.arguments[i].from->location,
              "expected arguments that name a stage after those that name none");
        return false;
      }
    std::vector<TakenSpec> &takes = spec.stages[index].takes;
    for (size_t i = 0; i < stage.arguments.size(); ++i) {
      if (stage.arguments[i].from) {
        checkNamed(index, i, carried);
      } else if (first || (last && i + 1 == unnamed.size())) {
        takes.push_back({first ? TakenSpec::Kind::Tokens : TakenSpec::Kind::Targets});
        checkTokens(index, i, first ? "the tokens" : "the targets");
      } else {
        takes.push_back({TakenSpec::Kind::Result, uint32_t(index - 1), uint32_t(i)});
        checkPassedShape(index, i, takes.back());
      }
    }
    return true;
  }

  /// The last stage returns the loss, others tensors or tokens.
  void checkResults(size_t index) {
    const StageSyntax &syntax = model.stages[index];
    const std::vector<Shape> &results = signatures[index].results;
    const bool last = index + 1 == signatures.size();
    if (last && results.size() > 1)
      error(syntax.resultsLocation, "expected the last stage to return loss alone");
    for (size_t i = 0; i < results.size(); ++i)
      if ((results[i].kind == Shape::Kind::Loss) != last)
        error(syntax.results[i].location,
              std::string("expected the ") +
                  (last ? "last stage to return loss" : "stage to return a tensor") +
                  " but found " + results[i].print());
  }

  /// A layer returns what its first arguments are.
  void checkCarried(size_t index) {
    const StageSyntax &syntax = model.stages[index];
    Signature &signature = signatures[index];
    if (signature.results.size() > signature.arguments.size())
      return error(syntax.resultsLocation,
                   "expected a layer to return no more values than it takes, " +
                       std::to_string(signature.arguments.size()) + ", but found " +
                       std::to_string(signature.results.size()));
    for (size_t i = 0; i < signature.results.size(); ++i) {
      Shape &returned = signature.results[i];
      const Shape &taken = signature.arguments[i];
      if (returned.kind == taken.kind && returned.sameValues(taken))
        continue;
      context.diagnostics
          .error(syntax.results[i].location,
                 "expected a layer to return the shape that it takes, " + taken.print() +
                     ", but found " + returned.print())
          .note(syntax.arguments[i].type.location, "taken here");
      returned = taken; // one error is enough
    }
  }

  /// Each stage gives a later one something. What computes a tensor that nobody takes would not be
  /// trained. The next layer takes what layers return.
  void checkTaken() {
    for (size_t i = 0; i + 1 < spec.stages.size(); ++i) {
      const StageSyntax &syntax = model.stages[i];
      std::vector<bool> taken(syntax.results.size());
      for (const StageSpec &stage : spec.stages)
        for (const TakenSpec &each : stage.takes)
          if (each.kind == TakenSpec::Kind::Result && each.stage == i)
            taken[each.result] = true;
      if (std::find(taken.begin(), taken.end(), true) == taken.end())
        error(syntax.name.location, "no later stage takes what '" + syntax.name.text + "' returns");
      else if (!syntax.isLayer)
        for (size_t k = 0; k < taken.size(); ++k)
          if (!taken[k] && signatures[i].results[k].kind == Shape::Kind::Tensor)
            error(syntax.results[k].location,
                  "no later stage takes this result of '" + syntax.name.text + "'");
    }
  }

  const ModelSyntax &model;
  const Constants &constants;
  ModelSpec &spec;
  std::vector<Signature> &signatures;
  CheckContext context;
};

} // namespace

void checkGraph(const ModelSyntax &model, const Constants &constants, ModelSpec &spec,
                std::vector<Signature> &signatures, CheckContext context) {
  GraphChecker(model, constants, spec, signatures, context).run();
}

} // namespace boa::frontend
