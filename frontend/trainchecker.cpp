//===- trainchecker.cpp - Train blocks and machines -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which settings there are, their ranges and their defaults; README.md lists
// them for users. Settings may use the constants of the model. Whether an order
// is legal is left to the passes, which can name the dependence; of clipping
// with a delay it is said here too, where the user's own line can be shown.
//
//===----------------------------------------------------------------------===//
#include "frontend/settings.h"

#include <cmath>

namespace boa::frontend {

namespace {

constexpr int64_t kMaxBatch = 1 << 20;
constexpr int64_t kMaxSteps = int64_t(1) << 40;
constexpr double kMaxRate = 1e6;

class TrainChecker {
public:
  TrainChecker(const TrainSyntax &syntax, const Constants &constants, CheckContext context)
      : syntax(syntax), constants(constants), context(context),
        reader(SettingReader::ofFields(syntax.fields,
                                       {"data", "batch", "micro_batch", "optimizer", "steps",
                                        "seed", "clip", "nonfinite", "weights", "objective",
                                        "evaluate", "commit", "schedule", "place"},
                                       "a train block", constants, context)) {}

  TrainSpec run() {
    train.position = context.sources.position(syntax.model.location);
    train.vocab = constant("vocab");
    train.context = constant("context");
    for (const char *required : {"data", "batch", "steps"})
      if (!given(required))
        reader.error(syntax.model.location,
                     std::string("expected the setting '") + required + "' in the train block");
    checkData();
    checkBatch();
    reader.count("steps", "steps", 1, kMaxSteps, train.steps);
    reader.count("seed", nullptr, 0, INT64_MAX, train.seed);
    checkClip();
    reader.word("nonfinite", Words<bool>{{"stop", false}, {"skip", true}}, train.skipNonfinite);
    reader.word("weights", Words<bool>{{"f32", false}, {"bf16", true}}, train.bf16);
    checkOptimizer();
    checkObjective();
    checkIntervals();
    checkSchedule();
    checkPlace();
    return std::move(train);
  }

private:
  int64_t constant(const char *name) const {
    auto found = constants.find(name);
    return found == constants.end() ? 1 : found->second.value.integer;
  }
  bool given(const char *name) const {
    for (const Field &field : syntax.fields)
      if (field.key.text == name)
        return true;
    return false;
  }
  /// The arguments of a setting that may also be a bare word.
  SettingReader arguments(const Expr &expr, const std::vector<std::string> &names) const {
    return SettingReader::ofCall(expr, names, constants, context);
  }
  void requireArgument(const SettingReader &from, const Expr &expr, const char *name) const {
    if (from.isComplete() && !from.find(name))
      reader.error(expr.location,
                   std::string("expected the argument '") + name + "' of " + expr.name);
  }

  void checkData() {
    const Expr *data = reader.find("data");
    if (!data)
      return blockIsNoValue("data");
    if (data->kind != Expr::Kind::String || data->name.empty())
      return reader.error(data->location, "expected data to be the path of a file, \"...\", but "
                                          "found " +
                                              printExpr(*data));
    train.data = data->name;
    const Source &source = context.sources.get(data->location.file);
    size_t slash = source.name.rfind('/');
    if (!source.isOption && train.data[0] != '/' && slash != std::string::npos)
      train.data = source.name.substr(0, slash + 1) + train.data;
  }

  /// `data { }` where `data = ...` was meant.
  void blockIsNoValue(const char *name) const {
    for (const Field &field : syntax.fields)
      if (field.key.text == name && field.isBlock)
        reader.error(field.key.location, std::string("expected '") + name + " = ...'");
  }

  void checkBatch() {
    bool batch = reader.count("batch", "sequences", 1, kMaxBatch, train.batch);
    train.microBatch = train.batch;
    bool micro = reader.count("micro_batch", "sequences", 1, kMaxBatch, train.microBatch);
    for (const char *name : {"batch", "micro_batch", "steps", "seed", "clip", "nonfinite",
                             "weights", "optimizer", "objective", "evaluate", "commit", "schedule"})
      blockIsNoValue(name);
    if (batch && micro && train.batch % train.microBatch != 0)
      reader.error(reader.find("micro_batch")->location,
                   "expected micro_batch = " + std::to_string(train.microBatch) +
                       " to divide batch = " + std::to_string(train.batch));
  }

  void checkClip() {
    constexpr double kMaxClip = 1e12;
    const Expr *expr = reader.find("clip");
    auto value = expr ? evaluate(*expr, constants, context.diagnostics) : std::nullopt;
    if (!value)
      return;
    if (value->real > 0 && value->real <= kMaxClip)
      train.clip = value->real;
    else
      reader.error(expr->location, "expected clip above 0 and at most 1000000000000 but found " +
                                       printExpr(*expr) + "; without clip nothing is clipped");
  }

  void checkOptimizer() {
    OptimizerSpec &optimizer = train.optimizer;
    const Expr *expr = reader.find("optimizer");
    if (!expr)
      return;
    int kind = reader.findWord(*expr, "optimizer", {"adamw", "sgd"});
    if (kind < 0)
      return;
    optimizer.kind = kind == 0 ? OptimizerSpec::Kind::AdamW : OptimizerSpec::Kind::Sgd;
    SettingReader reader = arguments(*expr, argumentNames("optimizer", expr->name));
    reader.real("eps", 1e-30, 1, optimizer.eps);
    reader.real("weight_decay", 0, 1, optimizer.weightDecay);
    reader.real("momentum", 0, 1, optimizer.momentum);
    if (const Expr *betas = reader.find("betas"))
      checkBetas(*betas);
    requireArgument(reader, *expr, "lr");
    if (const Expr *lr = reader.find("lr"))
      checkRate(*lr);
  }

  void checkBetas(const Expr &betas) {
    bool pair = betas.kind == Expr::Kind::Tuple && betas.arguments.size() == 2;
    if (!pair)
      return reader.error(betas.location, "expected betas to be two numbers, (a, b), but found " +
                                              printExpr(betas));
    double *values[] = {&train.optimizer.beta1, &train.optimizer.beta2};
    for (size_t i = 0; i < 2; ++i) {
      const Expr &beta = *betas.arguments[i].value;
      auto value = evaluate(beta, constants, context.diagnostics);
      if (value && !(value->real >= 0 && value->real < 1))
        reader.error(beta.location,
                     "expected a beta of at least 0 and less than 1 but found " + printExpr(beta));
      if (value)
        *values[i] = value->real;
    }
  }

  /// The rate itself, or the peak of one that changes.
  bool checkPeak(const Expr &expr, const char *name) {
    auto value = evaluate(expr, constants, context.diagnostics);
    if (!value)
      return false;
    bool valid = value->real > 0 && value->real <= kMaxRate;
    if (valid)
      train.optimizer.peak = value->real;
    else
      reader.error(expr.location, std::string("expected ") + name +
                                      " above 0 and at most 1000000 but found " + printExpr(expr));
    return valid;
  }

  void checkRate(const Expr &expr) {
    OptimizerSpec &optimizer = train.optimizer;
    if (expr.kind != Expr::Kind::Call || expr.name == "sqrt") {
      checkPeak(expr, "lr");
      return;
    }
    int kind = reader.findWord(expr, "lr", {"constant", "linear", "cosine"});
    if (kind < 0)
      return;
    optimizer.rate = OptimizerSpec::Rate(kind);
    SettingReader rate = arguments(expr, argumentNames("optimizer", expr.name));
    requireArgument(rate, expr, "peak");
    const Expr *given = rate.find("peak");
    bool peak = given && checkPeak(*given, "peak");
    rate.count("warmup", "steps", 0, kMaxSteps, optimizer.warmup);
    bool floor = rate.real("floor", 0, kMaxRate, optimizer.floor);
    if (peak && floor && optimizer.floor > optimizer.peak)
      reader.error(rate.find("floor")->location, "expected floor to be at most peak");
  }

  void checkObjective() {
    const Expr *expr = reader.find("objective");
    if (!expr)
      return;
    int kind = reader.findWord(*expr, "objective", {"next_token", "masked"});
    if (kind < 0)
      return;
    train.masked = kind == 1;
    SettingReader masked = arguments(*expr, argumentNames("objective", expr->name));
    if (!train.masked)
      return;
    masked.real("probability", 1e-6, 1, train.maskProbability);
    requireArgument(masked, *expr, "token");
    masked.count("token", nullptr, 0, std::max<int64_t>(train.vocab - 1, 0), train.maskToken);
  }

  void checkIntervals() {
    if (const Expr *expr = reader.find("evaluate");
        expr && reader.findWord(*expr, "evaluate", {"every"}) == 0) {
      SettingReader every = arguments(*expr, argumentNames("evaluate", "every"));
      requireArgument(every, *expr, "steps");
      every.count("steps", "steps", 1, kMaxSteps, train.evaluateEvery);
      every.count("batches", nullptr, 1, kMaxBatch, train.evaluateBatches);
    }
    checkCommit();
  }

  void checkCommit() {
    constexpr int64_t kMaxKept = 1000;
    const Expr *expr = reader.find("commit");
    if (!expr)
      return;
    int kind = reader.findWord(*expr, "commit", {"every", "end"});
    if (kind == 1)
      train.commitSeconds = 0;
    if (kind != 0)
      return;
    SettingReader every = arguments(*expr, argumentNames("commit", "every"));
    requireArgument(every, *expr, "interval");
    every.count("keep", nullptr, 1, kMaxKept, train.commitKeep);
    const Expr *given = every.find("interval");
    if (!given)
      return;
    if (auto interval = evaluateInterval(*given, constants, kMaxSteps, "the interval of commit",
                                         context.diagnostics)) {
      train.commitEvery = interval->steps;
      train.commitSeconds = interval->seconds;
    }
  }

  bool needsNorm() const { return train.clip > 0 || train.skipNonfinite; }

  void checkSchedule() {
    bool delay = false;
    const Expr *expr = reader.find("schedule");
    if (expr) {
      int kind = reader.findWord(*expr, "schedule", {"vertical", "horizontal"});
      if (kind < 0)
        return;
      train.vertical = kind == 0;
      SettingReader schedule = arguments(*expr, argumentNames("schedule", expr->name));
      delay = schedule.real("delay", 0, 1, train.delay);
      if (needsNorm() && train.delay > 0 && train.delay < 1)
        context.diagnostics
            .error(schedule.find("delay")->location,
                   std::string(train.clip > 0 ? "clipping by the global norm"
                                              : "to leave out a step, nonfinite = skip") +
                       " needs all gradients before the first update: delay must be 0 or 1")
            .note(reader.find(train.clip > 0 ? "clip" : "nonfinite")->location,
                  train.clip > 0 ? "clipping is set here" : "skipping is set here");
      schedule.count("prefetch", nullptr, 0, 1024, train.prefetch);
      schedule.flag("recompute", train.recompute);
    }
    // The norm is known only after all gradients: in vertical order the whole
    // optimizer then runs in the next step.
    if (!delay && train.vertical && needsNorm())
      train.delay = 1;
  }

  void checkPlace() {
    const Words<Tier> tiers = {{"device", Tier::Device}, {"host", Tier::Host}, {"ssd", Tier::Ssd}};
    Tier all = Tier::Device;
    reader.word("place", tiers, all);
    train.place.fill(all);
    for (const Field &field : syntax.fields) {
      if (field.key.text != "place" || !field.isBlock)
        continue;
      if (field.label)
        reader.error(field.label->location, "expected '{' after 'place'");
      std::vector<std::string> roles(kRoleNames.begin(), kRoleNames.end());
      SettingReader places =
          SettingReader::ofFields(field.fields, roles, "place", constants, context);
      for (const Field &inner : field.fields)
        if (inner.isBlock)
          reader.error(inner.key.location, "expected '" + inner.key.text + " = ...'");
      for (size_t role = 0; role < kRoles; ++role)
        places.word(roles[role], tiers, train.place[role]);
    }
  }

  const TrainSyntax &syntax;
  const Constants &constants;
  CheckContext context;
  SettingReader reader;
  TrainSpec train;
};

} // namespace

TrainSpec checkTrain(const TrainSyntax &train, const Constants &constants, CheckContext context) {
  return TrainChecker(train, constants, context).run();
}

//===----------------------------------------------------------------------===//
// Machines
//===----------------------------------------------------------------------===//

/// The inside of a block; none of its fields may be a block.
static SettingReader readBlock(const Field &field, const std::vector<std::string> &names,
                               const Constants &none, CheckContext context) {
  for (const Field &inner : field.fields)
    if (inner.isBlock)
      context.diagnostics.error(inner.key.location, "expected '" + inner.key.text + " = ...'");
  return SettingReader::ofFields(field.fields, names, field.key.text, none, context);
}

MachineSpec checkMachine(const MachineSyntax &syntax, CheckContext context) {
  MachineSpec machine;
  machine.name = syntax.name.text;
  Constants none;
  SettingReader outer =
      SettingReader::ofFields(syntax.fields, {"device", "host", "ssd"}, "a machine", none, context);
  for (const Field &field : syntax.fields) {
    const std::string &key = field.key.text;
    if (key != "device" && key != "host" && key != "ssd")
      continue;
    if (!field.isBlock) {
      outer.error(field.key.location, "expected '" + key + " { ... }'");
      continue;
    }
    if (key == "device") {
      Location location = field.label ? field.label->location : field.key.location;
      machine.device = field.label ? field.label->text : "";
      if (machine.device != "cpu" && machine.device != "cuda")
        outer.error(location, "expected 'device cpu' or 'device cuda' but found 'device" +
                                  (field.label ? " " + machine.device : "") + "'");
      SettingReader device = readBlock(field, {"memory", "threads"}, none, context);
      device.bytes("memory", /*perSecond=*/false, machine.deviceMemory);
      device.count("threads", nullptr, 0, 4096, machine.threads);
    } else if (key == "host") {
      if (field.label)
        outer.error(field.label->location, "expected '{' after 'host'");
      readBlock(field, {"memory"}, none, context)
          .bytes("memory", /*perSecond=*/false, machine.hostMemory);
    } else {
      if (!field.label || !field.labelIsString || field.label->text.empty()) {
        outer.error(field.key.location, "expected the path of a folder after 'ssd', ssd \"...\"");
        continue;
      }
      constexpr size_t kMaxSsds = 64;
      if (machine.ssds.size() == kMaxSsds) {
        outer.error(field.key.location,
                    "a machine has at most " + std::to_string(kMaxSsds) + " ssds");
        break;
      }
      SsdSpec ssd;
      ssd.path = field.label->text;
      for (const SsdSpec &other : machine.ssds)
        if (other.path == ssd.path)
          outer.error(field.label->location, "ssd \"" + ssd.path + "\" is given twice");
      SettingReader speeds = readBlock(field, {"read", "write"}, none, context);
      speeds.bytes("read", /*perSecond=*/true, ssd.read);
      speeds.bytes("write", /*perSecond=*/true, ssd.write);
      machine.ssds.push_back(std::move(ssd));
    }
  }
  return machine;
}

} // namespace boa::frontend
