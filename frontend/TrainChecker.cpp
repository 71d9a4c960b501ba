//===- TrainChecker.cpp - Train blocks, plans and machines ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rules between settings, and forms of the language that no row of the table reads by
// itself. Settings may use the constants of the model. The passes decide whether an order is
// legal, since they can name the dependence. Rules about the gradient norm are checked here,
// too, where the user's own line can be shown.
//
//===----------------------------------------------------------------------===//
#include "frontend/Adapters.h"
#include "frontend/PatternChecker.h"
#include "frontend/Printer.h"

#include "runtime/abi/float32.h"
#include "runtime/abi/sources.h"

#include <algorithm>
#include <cmath>

namespace boa::frontend {

/// Checks the train block and the plan together: rules cross them.
class TrainChecker {
public:
  TrainChecker(const Program &program, const Constants &constants, CheckContext context, Spec &spec)
      : program(program), constants(constants), context(context), spec(spec), train(spec.train),
        plan(spec.plan) {}

  void run() {
    const TrainSyntax &syntax = program.trains[0];
    SettingReader trainReader(syntax.fields, "train", "a train block", constants, context, given);
    trainReader.requireAll(syntax.model.location, "in the train block");
    trainReader.read(train);
    static const std::vector<Field> none;
    const std::vector<Field> &planFields = program.plans.empty() ? none : program.plans[0].fields;
    SettingReader planReader(planFields, "plan", "a plan", constants, context, given);
    planReader.read(plan);
    readPlace(planFields);
    readSteps();
    readOptimizer();
    addAdapters(constants, context, given, spec);
    PatternChecker patterns(constants, context, given, spec);
    patterns.readParameters(syntax.fields);
    patterns.readActivations(planFields);
    checkLayers(patterns.places());
    readCommit();
    checkBatch();
    checkKeep();
    checkDocumentMask();
    checkObjective();
    checkDelay();
    for (const auto &[path, value] : given)
      if (path.rfind("plan.", 0) == 0) {
        spec.givenOfPlan.emplace_back(path);
        spec.valuesOfPlan.push_back(spec.givenOfPlan.back() + " = " + printExpr(*value));
      }
    for (const Field &field : planFields)
      if (field.isBlock && field.key.text == "activations")
        spec.activationsOfPlan.push_back(printField(field, "  "));
  }

private:
  void error(const Expr &at, std::string message) const {
    context.diagnostics.error(at.location, std::move(message));
  }

  void readSteps() {
    const Expr *steps = findGiven(given, "train.steps");
    const auto value =
        steps ? evaluateDuration(*steps, constants, "steps", context.diagnostics) : std::nullopt;
    if (!value)
      return;
    train.steps = value->steps;
    train.epochs = value->epochs;
  }

  void readOptimizer() {
    OptimizerSettings &optimizer = train.optimizer;
    const Expr *lr = findGiven(given, "train.optimizer.lr");
    if (lr && SettingReader::isNumber(*lr))
      readReal(rowOf("train.optimizer.lr"), *lr, constants, context, optimizer.peak);
    if (optimizer.kind == OptimizerKind::lion)
      optimizer.beta2 = 0.99;
    if (const Expr *betas = findGiven(given, "train.optimizer.betas"))
      readBetas(*betas);
    const Expr *floor = findGiven(given, "train.optimizer.lr.floor");
    if (floor && findGiven(given, "train.optimizer.lr.peak") && optimizer.floor > optimizer.peak)
      error(*floor, "expected floor to be at most peak");
  }

  void readBetas(const Expr &betas) {
    bool pair = betas.kind == Expr::Kind::Tuple && betas.arguments.size() == 2;
    if (!pair)
      return error(betas,
                   "expected betas to be two numbers, (a, b), but found " + printExpr(betas));
    double *values[] = {&train.optimizer.beta1, &train.optimizer.beta2};
    for (size_t i = 0; i < 2; ++i) {
      const Expr &beta = *betas.arguments[i].value;
      auto value = evaluate(beta, constants, context.diagnostics);
      if (value && !(value->real >= 0 && value->real < 1))
        error(beta, "expected a beta of at least 0 and less than 1 but found " + printExpr(beta));
      else if (value && !IsFloat32(value->real))
        error(beta, "expected a beta that fits f32: 0, or at least " + std::string(kLeastFloat32) +
                        " but found " + printExpr(beta));
      if (value)
        *values[i] = value->real;
    }
  }

  void readCommit() {
    const Expr *commit = findGiven(given, "train.commit");
    if (commit && commit->isName("end"))
      train.commit_seconds = 0;
    const Expr *interval = findGiven(given, "train.commit.interval");
    if (!interval)
      return;
    if (auto value =
            evaluateInterval(*interval, constants, "the interval of commit", context.diagnostics)) {
      train.commit_every = value->steps;
      train.commit_seconds = value->seconds;
    }
  }

  void checkBatch() {
    const Expr *micro = findGiven(given, "plan.micro_batch");
    if (micro && plan.micro_batch && train.batch % plan.micro_batch != 0 &&
        findGiven(given, "train.batch"))
      error(*micro, "expected micro_batch = " + std::to_string(plan.micro_batch) +
                        " to divide batch = " + std::to_string(train.batch));
  }

  void checkKeep() {
    const Expr *keep = findGiven(given, "plan.schedule.keep");
    if (keep && plan.keep > 0 && !plan.recompute)
      error(*keep, "with recompute = false all layers keep their activations: leave keep out");
  }

  /// Why a masked objective cannot have this data; null if it can.
  static const char *findMaskingFault(const std::string &data) {
    std::string ignored;
    for (const DataSource &source : ParseSources(data, ignored)) {
      if (source.kind == SourceKind::chat)
        return "masked tokens are chosen at random, and chat(...) says itself which tokens are "
               "learnt: expected objective to be next_token";
      if (!source.packed)
        return "masked tokens are chosen among all, so padding would be learnt: leave out "
               "packed = false";
    }
    return nullptr;
  }

  /// Attention is within documents where the data are known to have several in a sequence.
  void checkDocumentMask() {
    std::string ignored;
    bool packs = false, tells = train.data.empty();
    for (const DataSource &source : ParseSources(train.data, ignored)) {
      packs |= source.is_tokenized() && source.packed;
      tells |= source.kind != SourceKind::bytes;
    }
    const Expr *mask = findGiven(given, "train.document_mask");
    if (!mask)
      train.document_mask = packs;
    else if (train.document_mask && !tells)
      error(*mask, "a text whose bytes are tokens has no documents: leave document_mask out");
  }

  void checkObjective() {
    const Expr *token = findGiven(given, "train.objective.token");
    if (token && train.mask_token >= spec.shape.vocab)
      evaluateCount(*token, nullptr, constants, 0, std::max<int64_t>(spec.shape.vocab - 1, 0),
                    "token", context.diagnostics);
    if (const Expr *end = findGiven(given, "train.data.end");
        end && train.objective == Objective::masked && !train.document_mask)
      error(*end, "masked tokens are predicted where they stand: leave end out, or add "
                  "document_mask = true");
    for (auto [path, text] :
         {std::pair("train.data", &train.data), std::pair("train.validate", &train.validate)})
      if (const Expr *data = findGiven(given, path); data && train.objective == Objective::masked)
        if (const char *why = findMaskingFault(*text))
          error(*data, why);
    if (const Expr *validate = findGiven(given, "train.validate");
        validate && !train.data.empty() && !train.validate.empty() &&
        IsSourceCall(train.validate) != IsSourceCall(train.data))
      error(*validate, IsSourceCall(train.data)
                           ? "data is tokens: expected validate to be tokens, too"
                           : "data is a text: expected validate to be the path of a text, too");
  }

  void checkDelay() {
    const Expr *delay = findGiven(given, "plan.schedule.delay");
    if (!NeedsNorm(train))
      return;
    const bool clips = train.clip > 0;
    if (delay && plan.delay > 0 && plan.delay < 1)
      context.diagnostics
          .error(delay->location,
                 std::string(clips ? "clipping by the global norm"
                                   : "to leave out a step, nonfinite = skip") +
                     " needs all gradients before the first update: delay must be 0 or 1")
          .note(findGiven(given, clips ? "train.clip" : "train.nonfinite")->location,
                clips ? "clipping is set here" : "skipping is set here");
    // The norm is known only after all gradients: in vertical order the whole
    // optimizer then runs in the next step.
    if (!delay && plan.schedule == Schedule::vertical)
      plan.delay = 1;
  }

  /// `place = ssd` is of all roles, `place { ... }` of each.
  void readPlace(const std::vector<Field> &fields) {
    if (const Expr *all = findGiven(given, "plan.place")) {
      Placement placement;
      readPlacement(rowOf("plan.place"), *all, context, placement);
      plan.place.Visit([&](const Setting &, Placement &role) { role = placement; });
    }
    for (const Field &field : fields) {
      if (field.key.text != "place" || !field.isBlock)
        continue;
      if (field.label)
        context.diagnostics.error(field.label->location, "expected '{' after 'place'");
      SettingReader(field.fields, "plan.place", "place", constants, context, given)
          .read(plan.place);
      for (const Field &inner : field.fields)
        if (inner.isBlock)
          context.diagnostics.error(inner.key.location, "expected '" + inner.key.text + " = ...'");
    }
  }

  /// Of each kind of layer so many: the kind with the most has them. `places`: those of patterns.
  void checkLayers(const std::vector<const Expr *> &places) const {
    if (spec.model.stages.empty())
      return; // It has errors.
    int64_t layers = 0;
    for (const auto &stage : spec.model.stages)
      if (stage.repeat > 1)
        layers = std::max<int64_t>(layers, stage.repeat);
    auto check = [&](const Expr *place) {
      int64_t placed = 0;
      for (size_t i = 0; place && place->kind == Expr::Kind::Shares && i < place->arguments.size();
           ++i)
        for (const ExprPtr &count : place->arguments[i].value->operands) {
          if (count->unit.empty())
            continue;
          if (layers == 0)
            return error(*count, "no layer of the model repeats: expected one place, or shares");
          if (count->integer > layers - placed)
            return error(*count, "the model has " +
                                     (placed ? std::to_string(layers - placed) + " of " : "") +
                                     std::to_string(layers) + " layers" +
                                     (placed ? " left, but found " : ", but found ") +
                                     printExpr(*count));
          placed += count->integer;
        }
    };
    check(findGiven(given, "plan.place"));
    for (const Setting *role : settingsOf("plan.place"))
      check(findGiven(given, role->path));
    for (const Expr *place : places)
      check(place);
  }

  const Program &program;
  const Constants &constants;
  CheckContext context;
  Spec &spec;
  TrainSettings &train;
  PlanSettings &plan;
  GivenSettings given;
};

void checkTrain(const Program &program, const Constants &constants, CheckContext context,
                Spec &spec) {
  TrainChecker(program, constants, context, spec).run();
}

//===----------------------------------------------------------------------===//
// Machines
//===----------------------------------------------------------------------===//

namespace {

class MachineChecker {
public:
  MachineChecker(const MachineSyntax &syntax, CheckContext context, MachineSettings &machine)
      : syntax(syntax), context(context), machine(machine) {}

  void run() {
    machine.name = syntax.name.text;
    for (const Field &field : syntax.fields) {
      const std::string &key = field.key.text;
      if (key != "device" && key != "host" && key != "ssd") {
        std::string near = didYouMean(key, {"device", "host", "ssd"});
        error(field.key.location, "a machine has no setting '" + key + "'" +
                                      (near.empty() ? didYouMeanSetting("machine." + key) : near));
        continue;
      }
      if (!field.isBlock) {
        error(field.key.location, "expected '" + key + " { ... }'");
        continue;
      }
      if (!isFirst(field))
        continue;
      if (key == "device")
        readDevice(field);
      if (key == "host" && field.label)
        error(field.label->location, "expected '{' after 'host'");
      if (key == "ssd") {
        if (!readSsd(field))
          return;
      } else {
        reader(field).read(machine);
      }
    }
  }

private:
  void error(Location location, std::string message) const {
    context.diagnostics.error(location, std::move(message));
  }

  SettingReader reader(const Field &field) {
    return SettingReader(field.fields, "machine." + field.key.text, field.key.text, none, context,
                         given);
  }

  /// There may be several ssd "a" { }, but one device and one host.
  bool isFirst(const Field &field) const {
    for (const Field &other : syntax.fields) {
      if (&other == &field || field.labelIsString)
        return true;
      if (other.key.text == field.key.text) {
        context.diagnostics.error(field.key.location, "'" + field.key.text + "' is set twice")
            .note(other.key.location, "first set here");
        return false;
      }
    }
    return true;
  }

  void readDevice(const Field &field) {
    const std::string word = field.label ? field.label->text : "";
    auto device = ParseWord<DeviceKind>(word);
    if (!device)
      return error(field.label ? field.label->location : field.key.location,
                   "expected 'device cpu', 'device split' or 'device cuda' but found 'device" +
                       (field.label ? " " + word : "") + "'");
    machine.device = *device;
    machine.memory = TraitsOf(*device).memory;
  }

  /// False: there are too many.
  bool readSsd(const Field &field) {
    if (!field.label || !field.labelIsString || field.label->text.empty()) {
      error(field.key.location, "expected the path of a folder after 'ssd', ssd \"...\"");
      return true;
    }
    constexpr size_t kMaxSsds = 64;
    if (machine.ssd.size() == kMaxSsds) {
      error(field.key.location, "a machine has at most " + std::to_string(kMaxSsds) + " ssds");
      return false;
    }
    SsdSettings ssd;
    ssd.path = field.label->text;
    for (const SsdSettings &other : machine.ssd)
      if (other.path == ssd.path)
        error(field.label->location, "ssd \"" + ssd.path + "\" is given twice");
    reader(field).read(ssd);
    machine.ssd.push_back(std::move(ssd));
    return true;
  }

  const MachineSyntax &syntax;
  CheckContext context;
  MachineSettings &machine;
  const Constants none;
  GivenSettings given;
};

} // namespace

void checkMachine(const MachineSyntax &syntax, CheckContext context, MachineSettings &machine) {
  MachineChecker(syntax, context, machine).run();
}

} // namespace boa::frontend
