//===- linear.cpp - A model small enough to write by hand -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/trainer/linear.h"

#include "runtime/support/random.h"
#include "test/runtime/reference_optimizer.h"

#include "nlohmann/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace boa::linear {
namespace {

using nlohmann::json;

constexpr int64_t kVocab = 64, kContext = 16, kMicroBatch = 4, kMicroBatches = 2;
constexpr double kWeightDecay = 0.01;

enum StorageId : int32_t {
  kWeights,
  kMomentum,
  kVariance,
  kGradients,
  kTokens,
  kTargets,
  kLossGradients,
  kLoss,
  kLow
};
enum KernelId : int32_t { kTrain, kTrainBf16, kForward, kForwardBf16, kLogits };

// One row of logits is read through this: f32, or bf16 widened.
float Widen(const float *row, int64_t i) { return row[i]; }
float Widen(const uint16_t *row, int64_t i) {
  const uint32_t bits = static_cast<uint32_t>(row[i]) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// Mean cross entropy over the counted targets of a micro-batch; adds to `gradient` where not null.
template <typename T>
void Run(const T *table, const int32_t *tokens, const int32_t *targets, const float *loss_gradient,
         float *gradient, float *loss) {
  double sum = 0;
  const int64_t counted =
      std::count_if(targets, targets + kMicroBatch * kContext, [](int32_t t) { return t >= 0; });
  for (int64_t i = 0; i < kMicroBatch * kContext; ++i) {
    if (targets[i] < 0)
      continue;
    const T *row = table + tokens[i] * kVocab;
    float exponents[kVocab], total = 0;
    for (int64_t j = 0; j < kVocab; ++j)
      total += exponents[j] = std::exp(Widen(row, j));
    sum += std::log(total) - Widen(row, targets[i]);
    for (int64_t j = 0; gradient && j < kVocab; ++j)
      gradient[tokens[i] * kVocab + j] +=
          (exponents[j] / total - (j == targets[i])) * *loss_gradient / counted;
  }
  *loss = static_cast<float>(sum / std::max<int64_t>(counted, 1));
}

template <typename T> void Train(void *const *buffers, void *, boa_queue *) {
  auto *loss = static_cast<float *>(buffers[5]);
  Run(static_cast<const T *>(buffers[0]), static_cast<const int32_t *>(buffers[1]),
      static_cast<const int32_t *>(buffers[2]), static_cast<const float *>(buffers[3]),
      static_cast<float *>(buffers[4]), loss);
  if (poison_after >= 0 && poison_after-- == 0) {
    *loss = std::numeric_limits<float>::quiet_NaN();
    poison_after = 0;
  }
}

template <typename T> void Forward(void *const *buffers, void *, boa_queue *) {
  if (on_forward)
    on_forward();
  Run(static_cast<const T *>(buffers[0]), static_cast<const int32_t *>(buffers[1]),
      static_cast<const int32_t *>(buffers[2]), nullptr, nullptr, static_cast<float *>(buffers[3]));
}

void Logits(void *const *buffers, void *, boa_queue *) {
  auto *table = static_cast<const float *>(buffers[0]);
  auto *tokens = static_cast<const int32_t *>(buffers[1]);
  auto *logits = static_cast<float *>(buffers[2]);
  for (int64_t i = 0; i < kContext; ++i)
    std::memcpy(logits + i * kVocab, table + tokens[i] * kVocab, kVocab * 4);
}

boa_buffer Fetch(boa_context *ctx, int32_t storage, int64_t entry, int32_t first = 0,
                 int32_t count = 1) {
  return boa_rt_prefetch(ctx, storage, entry, first, count, BOA_DEVICE, 0);
}

/// The optimizer's part for one chunk, whose gradient and weights are given.
template <bool Bf16>
void Update(boa_context *ctx, int32_t chunk, int64_t step, boa_buffer weights,
            boa_buffer gradient) {
  const boa_buffer low = Bf16 ? Fetch(ctx, kLow, 0, chunk) : 0;
  const boa_buffer momentum = Fetch(ctx, kMomentum, 0, chunk);
  const boa_buffer variance = Fetch(ctx, kVariance, 0, chunk);
  const boa_buffer states[] = {momentum, variance};
  boa_rt_update(ctx, 0, chunk, step, weights, low, gradient, 2, states);
  boa_rt_offload(ctx, weights, kWeights, 0, chunk, 1);
  if (Bf16)
    boa_rt_offload(ctx, low, kLow, 0, chunk, 1);
  boa_rt_offload(ctx, momentum, kMomentum, 0, chunk, 1);
  boa_rt_offload(ctx, variance, kVariance, 0, chunk, 1);
  if (Bf16)
    boa_rt_release(ctx, low, 0);
  boa_rt_release(ctx, momentum, 0);
  boa_rt_release(ctx, variance, 0);
}

/// What is left of step `pending`: the second chunk.
template <bool Bf16> void Drain(boa_context *ctx, int64_t, int64_t pending) {
  if (pending == 0)
    return;
  const boa_buffer weights = Fetch(ctx, kWeights, 0, 1);
  const boa_buffer gradient = Fetch(ctx, kGradients, 0, 1);
  Update<Bf16>(ctx, 1, pending, weights, gradient);
  boa_rt_release(ctx, weights, 0);
  boa_rt_release(ctx, gradient, 0);
}

template <bool Bf16, bool Delayed, bool Clip>
void Step(boa_context *ctx, int64_t step, int64_t pending) {
  if (Delayed)
    Drain<Bf16>(ctx, step, pending);
  const boa_buffer weights = Fetch(ctx, kWeights, 0, 0, 2);
  const boa_buffer gradient = boa_rt_prefetch(ctx, kGradients, 0, 0, 2, BOA_DEVICE, /*zero=*/1);
  for (int64_t m = 0; m < kMicroBatches; ++m) {
    const boa_buffer buffers[] = {
        weights,  Fetch(ctx, kTokens, m), Fetch(ctx, kTargets, m), Fetch(ctx, kLossGradients, m),
        gradient, Fetch(ctx, kLoss, m)};
    boa_rt_launch(ctx, Bf16 ? kTrainBf16 : kTrain, 6, buffers);
    for (int i : {1, 2, 3, 5})
      boa_rt_release(ctx, buffers[i], 0);
  }
  if (Clip) {
    boa_rt_norm(ctx, 0, gradient);
    boa_rt_norm_done(ctx, step);
  }
  Update<Bf16>(ctx, 0, step, weights, gradient);
  if (Delayed)
    boa_rt_offload(ctx, gradient, kGradients, 0, 1, 1);
  else
    Update<Bf16>(ctx, 1, step, weights, gradient);
  boa_rt_release(ctx, weights, 0);
  boa_rt_release(ctx, gradient, 0);
}

template <bool Bf16> void Evaluate(boa_context *ctx, int64_t, int64_t) {
  const boa_buffer weights = Fetch(ctx, kWeights, 0, 0, 2);
  for (int64_t m = 0; m < kMicroBatches; ++m) {
    const boa_buffer buffers[] = {weights, Fetch(ctx, kTokens, m), Fetch(ctx, kTargets, m),
                                  Fetch(ctx, kLoss, m)};
    boa_rt_launch(ctx, Bf16 ? kForwardBf16 : kForward, 4, buffers);
    for (int i : {1, 2, 3})
      boa_rt_release(ctx, buffers[i], 0);
  }
  boa_rt_release(ctx, weights, 0);
}

template <bool Bf16> EntryPoints MakeEntries(bool delayed, bool clip) {
  const boa_entry_point step = delayed ? clip ? Step<Bf16, true, true> : Step<Bf16, true, false>
                               : clip  ? Step<Bf16, false, true>
                                       : Step<Bf16, false, false>;
  return {step, Drain<Bf16>, Evaluate<Bf16>};
}

json MakeStorage(const char *name, const char *role, const std::string &tier,
                 std::vector<int64_t> entries, int64_t bytes, int32_t chunks, bool persistent) {
  json pools = json::array();
  if (tier == "ssd")
    pools.push_back({{"space", "device"}, {"chunks", chunks}, {"slots", 4}});
  const int64_t count = CountElements(entries);
  return {{"name", name},
          {"role", role},
          {"entries", entries},
          {"bytes", bytes},
          {"chunks", chunks},
          {"persistent", persistent},
          {"homes", {{{"entries", count}, {"homes", {{{"tier", tier}, {"chunks", chunks}}}}}}},
          {"pools", pools}};
}

json MakeKernel(const char *name, const std::vector<const char *> &buffers) {
  json list = json::array();
  for (const std::string access : buffers)
    list.push_back({{"read", access.find('r') != std::string::npos},
                    {"write", access.find('w') != std::string::npos}});
  return {{"name", name}, {"buffers", list}, {"workspace", 0}, {"costs", json::object()}};
}

json MakeGroup(bool bf16, int64_t chunk_elements) {
  return {{"name", "embed"},
          {"number", 0},
          {"count", 1},
          {"layer", false},
          {"elements", 2 * chunk_elements},
          {"chunks", 2},
          {"chunk_elements", chunk_elements},
          {"weight_type", bf16 ? "bf16" : "f32"},
          {"parameters",
           {{{"name", "table"},
             {"shape", {kVocab, kVocab}},
             {"offset", 0},
             {"init", "normal"},
             {"init_scale", 0.02},
             {"number", 0},
             {"lr_scale", 1.0},
             {"decay", kWeightDecay}}}},
          {"weights", kWeights},
          {"low", bf16 ? kLow : -1},
          {"states", {kMomentum, kVariance}},
          {"gradient", kGradients}};
}

json ToJson(const std::string &member) { return member; }
json ToJson(bool member) { return member; }
json ToJson(int64_t member) { return member; }
json ToJson(double member) { return member; }
json ToJson(const Placement &place) { return WordOf(place.parts[0].tier); }
template <typename Enum> std::enable_if_t<std::is_enum_v<Enum>, json> ToJson(Enum member) {
  return WordOf(member);
}
template <typename Settings> json ToJson(const std::vector<Settings> &list);
template <typename Settings>
std::enable_if_t<std::is_class_v<Settings>, json> ToJson(const Settings &settings) {
  json members;
  settings.Visit(
      [&](const SettingRow &row, const auto &member) { members[row.key] = ToJson(member); });
  return members;
}
template <typename Settings> json ToJson(const std::vector<Settings> &list) {
  json members = json::array();
  for (const Settings &settings : list)
    members.push_back(ToJson(settings));
  return members;
}

TrainSettings MakeTrain(const Options &options) {
  TrainSettings train;
  train.data = options.data;
  train.batch = kMicroBatch * kMicroBatches;
  train.steps = options.steps;
  train.seed = options.seed;
  train.evaluate_every = options.evaluate_every;
  train.evaluate_batches = options.evaluate_every ? 3 : 1;
  train.commit_every = options.commit_every;
  train.commit_seconds = options.commit_seconds;
  train.commit_keep = options.commit_keep;
  train.nonfinite = *ParseWord<Nonfinite>(options.nonfinite);
  train.clip = options.clip;
  train.optimizer.beta2 = 0.95;
  train.optimizer.weight_decay = kWeightDecay;
  train.optimizer.peak = train.optimizer.floor = 0.05;
  train.optimizer.warmup = 3;
  reference_settings = train.optimizer;
  return train;
}

/// Nothing crosses between memories that are one.
json MakeTraffic(json read, json written) {
  return {{"read", std::move(read)},
          {"written", std::move(written)},
          {"to_device", json::object()},
          {"to_host", json::object()}};
}

/// What one call of an entry point moves, by hand.
json MakeTraffic(const Options &options, bool bf16) {
  if (options.tier != "ssd")
    return json::object();
  const int64_t chunk = options.chunk_elements * 4, weights = bf16 ? chunk / 2 : chunk;
  auto states = [&](int64_t chunks, json more) {
    more["momentum"] = more["variance"] = chunks * chunk;
    if (bf16)
      more["master"] = chunks * chunk / 2;
    return more;
  };
  if (!options.delayed) {
    const json step =
        MakeTraffic(states(2, {{"weights", 2 * weights}}), states(2, {{"weights", 2 * weights}}));
    return {{"first_step", step}, {"step", step}};
  }
  // Nothing is retained, so that it is the same whether a step follows another.
  return {{"first_step", MakeTraffic(states(1, {{"weights", 2 * weights}}),
                                     states(1, {{"weights", weights}, {"gradients", chunk}}))},
          {"step", MakeTraffic(states(2, {{"weights", 3 * weights}, {"gradients", chunk}}),
                               states(2, {{"weights", 2 * weights}, {"gradients", chunk}}))},
          {"drain", MakeTraffic(states(1, {{"weights", weights}, {"gradients", chunk}}),
                                states(1, {{"weights", weights}}))}};
}

int64_t ArenaBytes(const json &storages) {
  int64_t bytes = 0;
  for (const json &storage : storages) {
    const int64_t chunk = storage["bytes"].get<int64_t>() / storage["chunks"].get<int64_t>();
    for (const json &range : storage["homes"])
      for (const json &home : range["homes"])
        if (home["tier"] != "ssd")
          bytes += range["entries"].get<int64_t>() * home["chunks"].get<int64_t>() * chunk;
    for (const json &pool : storage["pools"])
      bytes += pool["slots"].get<int64_t>() * pool["chunks"].get<int64_t>() * chunk;
  }
  return bytes;
}

} // namespace

int64_t poison_after = -1;
std::function<void()> on_forward;

static const boa_kernel kTable[] = {Train<float>, Train<uint16_t>, Forward<float>,
                                    Forward<uint16_t>, Logits};
const Kernels kKernels(kTable, nullptr, &kReferenceAdamW);

std::string Descriptor(const Options &o) {
  const bool bf16 = o.weight_type == "bf16";
  const std::string &tier = o.tier;
  const int64_t elements = 2 * o.chunk_elements; // of an entry
  json program;
  program["abi"] = BOA_ABI_VERSION;
  program["model"] = ToJson(ModelSettings{"linear", kVocab, kContext});
  program["train"] = ToJson(MakeTrain(o));
  PlanSettings plan;
  plan.micro_batch = kMicroBatch;
  plan.delay = o.delayed ? 0.5 : 0.0;
  program["plan"] = ToJson(plan);
  program["optimizer"] = {
      {"name", kReferenceShape.name},
      {"states",
       {{{"name", "momentum"}, {"type", "f32"}}, {{"name", "variance"}, {"type", "f32"}}}},
      {"scalars", kReferenceShape.scalars}};
  program["storages"] = {
      MakeStorage("weights.embed", "weights", tier, {1}, elements * (bf16 ? 2 : 4), 2, true),
      MakeStorage("momentum.embed", "momentum", tier, {1}, elements * 4, 2, true),
      MakeStorage("variance.embed", "variance", tier, {1}, elements * 4, 2, true),
      MakeStorage("gradients.embed", "gradients", tier, {1}, elements * 4, 2, false),
      MakeStorage("input.tokens", "tokens", "device", {kMicroBatches}, 4096, 1, false),
      MakeStorage("input.targets", "targets", "device", {kMicroBatches}, 4096, 1, false),
      MakeStorage("loss_gradients", "loss_gradients", "device", {kMicroBatches}, 4096, 1, false),
      MakeStorage("loss", "loss", "device", {kMicroBatches}, 4096, 1, false)};
  if (bf16)
    program["storages"].push_back(
        MakeStorage("low.embed", "master", tier, {1}, elements * 2, 2, true));
  program["groups"] = json::array({MakeGroup(bf16, o.chunk_elements)});
  program["kernels"] = {MakeKernel("train", {"r", "r", "r", "r", "rw", "w"}),
                        MakeKernel("train_bf16", {"r", "r", "r", "r", "rw", "w"}),
                        MakeKernel("forward", {"r", "r", "r", "w"}),
                        MakeKernel("forward_bf16", {"r", "r", "r", "w"}),
                        MakeKernel("logits", {"r", "r", "w"})};
  program["arena_device"] = ArenaBytes(program["storages"]);
  program["arena_host"] = 0;
  program["constants"] = 0;
  program["attention_scratch"] = 0;
  program["traffic"] = MakeTraffic(o, bf16);
  MachineSettings machine;
  machine.name = "bench";
  machine.device_memory = o.device_memory;
  machine.threads = 2;
  for (const std::string &path : o.paths)
    machine.ssd.push_back({path});
  program["machine"] = ToJson(machine);
  return program.dump();
}

std::string PredictDescriptor() {
  Options options;
  options.tier = "device";
  json program = json::parse(Descriptor(options));
  json &storages = program["storages"];
  storages[kMomentum]["role"] = "logits";
  storages[kMomentum]["name"] = "logits";
  storages[kMomentum]["persistent"] = false;
  program["groups"][0]["states"] = json::array();
  program["groups"][0]["gradient"] = -1;
  program["train"]["batch"] = 1;
  program["plan"]["micro_batch"] = 1;
  return program.dump();
}

EntryPoints Entries(const Options &options) {
  const bool clip = options.clip > 0 || options.nonfinite == "skip";
  return options.weight_type == "bf16" ? MakeEntries<true>(options.delayed, clip)
                                       : MakeEntries<false>(options.delayed, clip);
}

void Predict(boa_context *ctx, int64_t, int64_t) {
  const boa_buffer buffers[] = {Fetch(ctx, kWeights, 0, 0, 2), Fetch(ctx, kTokens, 0),
                                Fetch(ctx, kMomentum, 0, 0, 2)};
  boa_rt_launch(ctx, kLogits, 3, buffers);
  for (boa_buffer buffer : buffers)
    boa_rt_release(ctx, buffer, 0);
}

std::string Text(size_t bytes) {
  std::string text(bytes, '\0');
  uint64_t present = 1;
  for (size_t i = 0; i < bytes; ++i) {
    const uint64_t noise = Hash({i});
    present = noise % 10 == 0 ? noise / 16 % kVocab : (present * 5 + 3) % kVocab;
    text[i] = static_cast<char>(present);
  }
  return text;
}

} // namespace boa::linear
