//===- TrainChecker.cpp - Train blocks and machines -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What settings say together; each by itself is a row of the table
// (settingtable.h). Settings may use the constants of the model. Whether an order
// is legal is left to the passes, which can name the dependence; of what needs the
// gradient norm it is said here too, where the user's own line can be shown.
//
//===----------------------------------------------------------------------===//
#include "frontend/Settings.h"
#include "runtime/abi/abi.h"

#include <cmath>

namespace boa::frontend {

namespace {

class TrainChecker {
public:
  TrainChecker(const TrainSyntax &syntax, const Constants &constants, CheckContext context)
      : syntax(syntax), constants(constants), context(context),
        reader(
            SettingReader::ofFields(syntax.fields, "train", "a train block", constants, context)) {}

  TrainSpec run() {
    train.position = context.sources.position(syntax.model.location);
    train.vocab = constant("vocab");
    train.context = constant("context");
    reader.requireAll(syntax.model.location, "in the train block");
    checkData();
    checkBatch();
    reader.count("steps", train.steps);
    reader.count("seed", train.seed);
    reader.real("clip", train.clip);
    reader.word("nonfinite", train.skipNonfinite);
    reader.word("weights", train.bf16Weights);
    reader.word("compute", train.bf16Compute);
    checkOptimizer();
    reader.word("update", train.updateOnDevice);
    checkObjective();
    checkIntervals();
    checkCommit();
    checkSchedule();
    checkPlace();
    return std::move(train);
  }

private:
  int64_t constant(const char *name) const {
    auto found = constants.find(name);
    return found == constants.end() ? 1 : found->second.value.integer;
  }
  SettingReader arguments(const Expr &expr, const char *setting) const {
    SettingReader reader = SettingReader::ofCall(expr, setting, constants, context);
    reader.requireAll(expr.location, "of " + expr.name);
    return reader;
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
  void blockIsNoValue(const std::string &name) const {
    for (const Field &field : syntax.fields)
      if (field.key.text == name && field.isBlock)
        reader.error(field.key.location, "expected '" + name + " = ...'");
  }

  void checkBatch() {
    bool batch = reader.count("batch", train.batch);
    train.microBatch = train.batch;
    bool micro = reader.count("micro_batch", train.microBatch);
    for (const Setting *setting : settingsOf("train"))
      if (setting->name != "data" && setting->name != "place")
        blockIsNoValue(setting->name);
    if (batch && micro && train.batch % train.microBatch != 0)
      reader.error(reader.find("micro_batch")->location,
                   "expected micro_batch = " + std::to_string(train.microBatch) +
                       " to divide batch = " + std::to_string(train.batch));
  }

  void checkOptimizer() {
    OptimizerSpec &optimizer = train.optimizer;
    const Expr *expr = reader.find("optimizer");
    if (!expr)
      return;
    int kind = reader.findWord(*expr, "optimizer");
    if (kind < 0)
      return;
    optimizer.kind = kind == 0 ? OptimizerSpec::Kind::AdamW : OptimizerSpec::Kind::Sgd;
    SettingReader call = arguments(*expr, "train.optimizer");
    if (const Expr *lr = call.find("lr"))
      checkRate(call, *lr);
    if (kind == 1) {
      call.real("momentum", optimizer.momentum);
      return;
    }
    call.real("eps", optimizer.eps);
    call.real("weight_decay", optimizer.weightDecay);
    if (const Expr *betas = call.find("betas"))
      checkBetas(*betas);
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

  void checkRate(const SettingReader &call, const Expr &expr) {
    OptimizerSpec &optimizer = train.optimizer;
    if (expr.kind != Expr::Kind::Call || expr.name == "sqrt") {
      call.realOf(expr, "lr", optimizer.peak);
      return;
    }
    if (call.findWord(expr, "lr") < 0)
      return;
    optimizer.rate = expr.name == "cosine"   ? OptimizerSpec::Rate::Cosine
                     : expr.name == "linear" ? OptimizerSpec::Rate::Linear
                                             : OptimizerSpec::Rate::Constant;
    SettingReader rate = arguments(expr, "train.optimizer.lr");
    bool peak = rate.real("peak", optimizer.peak);
    rate.count("warmup", optimizer.warmup);
    if (optimizer.rate == OptimizerSpec::Rate::Constant)
      return;
    bool floor = rate.real("floor", optimizer.floor);
    if (peak && floor && optimizer.floor > optimizer.peak)
      reader.error(rate.find("floor")->location, "expected floor to be at most peak");
  }

  void checkObjective() {
    const Expr *expr = reader.find("objective");
    if (!expr)
      return;
    int kind = reader.findWord(*expr, "objective");
    if (kind < 0)
      return;
    train.masked = kind == 1;
    SettingReader masked = arguments(*expr, "train.objective");
    if (!train.masked)
      return;
    masked.real("probability", train.maskProbability);
    masked.count("token", std::max<int64_t>(train.vocab - 1, 0), train.maskToken);
  }

  void checkIntervals() {
    const Expr *expr = reader.find("evaluate");
    if (!expr || reader.findWord(*expr, "evaluate") != 0)
      return;
    SettingReader every = arguments(*expr, "train.evaluate");
    every.count("steps", train.evaluateEvery);
    every.count("batches", train.evaluateBatches);
  }

  void checkCommit() {
    const Expr *expr = reader.find("commit");
    if (!expr)
      return;
    int kind = reader.findWord(*expr, "commit");
    if (kind == 1)
      train.commitSeconds = 0;
    if (kind != 0)
      return;
    SettingReader every = arguments(*expr, "train.commit");
    every.count("keep", train.commitKeep);
    const Expr *given = every.find("interval");
    if (!given)
      return;
    if (auto interval =
            evaluateInterval(*given, constants, "the interval of commit", context.diagnostics)) {
      train.commitEvery = interval->steps;
      train.commitSeconds = interval->seconds;
    }
  }

  bool needsNorm() const { return boa_needs_norm(train.clip, train.skipNonfinite); }

  void checkSchedule() {
    bool delay = false;
    const Expr *expr = reader.find("schedule");
    if (expr) {
      int kind = reader.findWord(*expr, "schedule");
      if (kind < 0)
        return;
      train.vertical = kind == 0;
      SettingReader schedule = arguments(*expr, "train.schedule");
      delay = schedule.real("delay", train.delay);
      if (needsNorm() && train.delay > 0 && train.delay < 1)
        context.diagnostics
            .error(schedule.find("delay")->location,
                   std::string(train.clip > 0 ? "clipping by the global norm"
                                              : "to leave out a step, nonfinite = skip") +
                       " needs all gradients before the first update: delay must be 0 or 1")
            .note(reader.find(train.clip > 0 ? "clip" : "nonfinite")->location,
                  train.clip > 0 ? "clipping is set here" : "skipping is set here");
      schedule.count("prefetch", train.prefetch);
      schedule.flag("recompute", train.recompute);
    }
    // The norm is known only after all gradients: in vertical order the whole
    // optimizer then runs in the next step.
    if (!delay && train.vertical && needsNorm())
      train.delay = 1;
  }

  void checkPlace() {
    Placement all;
    reader.placement("place", all);
    train.place.fill(all);
    // An activation is one piece: the rest is where all of it is.
    for (Role role : {Role::Checkpoints, Role::BoundaryGradients, Role::Saved})
      train.place[size_t(role)].parts.assign(1, {all.parts.back().tier, 1});
    for (const Field &field : syntax.fields) {
      if (field.key.text != "place" || !field.isBlock)
        continue;
      if (field.label)
        reader.error(field.label->location, "expected '{' after 'place'");
      SettingReader places =
          SettingReader::ofFields(field.fields, "train.place", "place", constants, context);
      for (const Field &inner : field.fields)
        if (inner.isBlock)
          reader.error(inner.key.location, "expected '" + inner.key.text + " = ...'");
      for (size_t role = 0; role < kRoles; ++role)
        if (places.placement(kRoleNames[role], train.place[role]) &&
            role >= size_t(Role::Checkpoints) && train.place[role].parts.size() > 1)
          reader.error(places.find(kRoleNames[role])->location,
                       std::string("an activation is moved in one piece: expected one place for ") +
                           kRoleNames[role] + ", not shares");
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
static SettingReader readBlock(const Field &field, const Constants &none, CheckContext context) {
  for (const Field &inner : field.fields)
    if (inner.isBlock)
      context.diagnostics.error(inner.key.location, "expected '" + inner.key.text + " = ...'");
  return SettingReader::ofFields(field.fields, "machine." + field.key.text, field.key.text, none,
                                 context);
}

MachineSpec checkMachine(const MachineSyntax &syntax, CheckContext context) {
  MachineSpec machine;
  machine.name = syntax.name.text;
  Constants none;
  SettingReader outer =
      SettingReader::ofFields(syntax.fields, "machine", "a machine", none, context);
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
      if (machine.device != "cpu" && machine.device != "split" && machine.device != "cuda")
        outer.error(location,
                    "expected 'device cpu', 'device split' or 'device cuda' but found 'device" +
                        (field.label ? " " + machine.device : "") + "'");
      SettingReader device = readBlock(field, none, context);
      device.quantity("memory", machine.deviceMemory);
      device.flag("direct", machine.direct);
      device.count("threads", machine.threads);
      device.word("attention", machine.ownAttention);
      device.word("kernels", machine.kernels);
      device.quantity("compute", machine.compute);
      device.quantity("compute_bf16", machine.computeBf16);
      device.quantity("bandwidth", machine.deviceBandwidth);
      device.quantity("to_device", machine.toDevice);
      device.quantity("to_host", machine.toHost);
    } else if (key == "host") {
      if (field.label)
        outer.error(field.label->location, "expected '{' after 'host'");
      SettingReader host = readBlock(field, none, context);
      host.quantity("memory", machine.hostMemory);
      host.quantity("bandwidth", machine.hostBandwidth);
      host.quantity("optimizer", machine.optimizer);
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
      SettingReader speeds = readBlock(field, none, context);
      speeds.quantity("read", ssd.read);
      speeds.quantity("write", ssd.write);
      speeds.quantity("both", ssd.both);
      speeds.quantity("latency", ssd.latency);
      machine.ssds.push_back(std::move(ssd));
    }
  }
  return machine;
}

} // namespace boa::frontend
