//===- program.cpp - What a compiled program says of itself ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses the descriptor. Strict: every member of runtime/abi/program.h must be
// there, with its type, and nothing else; `computation`, `tables` and the machine's
// `kernels` alone may be missing. Sizes that the runtime divides by or indexes with are checked
// here once. So a program and a runtime that do not belong together are found out before
// anything runs.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/program.h"

#include "runtime/abi/abi.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>

namespace boa {
namespace {

using Json = nlohmann::json;

// What no machine holds, in bytes or elements: neither a few times as many nor the
// sum of a few overflow. What is counted rather than stored is below kMostCounted.
constexpr int64_t kMost = int64_t{1} << 56, kMostCounted = int64_t{1} << 31;

/// The product of sizes that are all at least 1; nothing if it is above kMost.
std::optional<int64_t> Product(const std::vector<int64_t> &sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    if (__builtin_mul_overflow(product, size, &product) || product > kMost)
      return std::nullopt;
  return product;
}

/// Reads the members of one JSON object and remembers the first error. `where`
/// is the path to the object, for messages: "storages[3]".
class Fields {
public:
  Fields(const Json &object, std::string where) : object(object), where(std::move(where)) {
    if (!object.is_object())
      Fail("expected an object but found ", object.type_name());
  }

  void Read(const char *name, std::string &out) {
    if (const Json *value = Find(name, "a string", &Json::is_string))
      out = value->get_ref<const std::string &>();
  }
  void Read(const char *name, bool &out) {
    if (const Json *value = Find(name, "true or false", &Json::is_boolean))
      out = value->get<bool>();
  }
  void Read(const char *name, double &out) {
    if (const Json *value = Find(name, "a number", &Json::is_number))
      out = value->get<double>();
  }
  void Read(const char *name, int64_t &out) {
    if (const Json *value = Find(name, "an integer", &Json::is_number_integer))
      ReadInteger(name, *value, out);
  }
  void Read(const char *name, int32_t &out) {
    int64_t wide = out;
    Read(name, wide);
    if (wide < std::numeric_limits<int32_t>::min() || wide > std::numeric_limits<int32_t>::max())
      return Fail("field `", name, "`: ", wide, " does not fit in 32 bits");
    out = static_cast<int32_t>(wide);
  }
  void Read(const char *name, std::vector<int64_t> &out) {
    const Json *value = Find(name, "a list", &Json::is_array);
    if (!value)
      return;
    for (const Json &element : *value) {
      if (!element.is_number_integer())
        return Fail("field `", name, "`: expected integers but found ", element.type_name());
      ReadInteger(name, element, out.emplace_back());
    }
  }
  void Read(const char *name, std::vector<double> &out) {
    const Json *value = Find(name, "a list", &Json::is_array);
    if (!value)
      return;
    for (const Json &element : *value) {
      if (!element.is_number())
        return Fail("field `", name, "`: expected numbers but found ", element.type_name());
      out.push_back(element.get<double>());
    }
  }
  void Read(const char *name, std::map<std::string, int64_t> &out) {
    const Json *value = Find(name, "an object", &Json::is_object);
    if (!value)
      return;
    for (const auto &[key, element] : value->items()) {
      if (!element.is_number_integer())
        return Fail("field `", name, ".", key, "`: expected an integer");
      ReadInteger(name, element, out[key]);
    }
  }
  /// A structure, read by `Parse(Fields &, T &)`.
  template <typename T> void Read(const char *name, T &out) {
    if (const Json *value = Find(name, "an object", &Json::is_object))
      ParseInto(*value, Path(name), out);
  }
  template <typename T> void Read(const char *name, std::vector<T> &out) {
    const Json *value = Find(name, "a list", &Json::is_array);
    for (size_t i = 0; value && status.ok() && i < value->size(); ++i)
      ParseInto((*value)[i], absl::StrCat(Path(name), "[", i, "]"), out.emplace_back());
  }
  template <typename T> void Read(const char *name, std::map<std::string, T> &out) {
    const Json *value = Find(name, "an object", &Json::is_object);
    if (!value)
      return;
    for (const auto &[key, element] : value->items())
      ParseInto(element, absl::StrCat(Path(name), ".", key), out[key]);
  }

  /// As Read, of a member that may be missing.
  template <typename T> void ReadOptional(const char *name, T &out) {
    if (object.is_object() && object.contains(name))
      Read(name, out);
  }

  /// The value of `out`, just read, must be one of `words`.
  void OneOf(const char *name, const std::string &out, absl::Span<const char *const> words) {
    for (const char *word : words)
      if (out == word)
        return;
    Fail("field `", name, "`: expected one of ", absl::StrJoin(words, ", "), " but found `", out,
         "`");
  }
  void AtLeast(const char *name, double value, double least) {
    if (!(value >= least))
      Fail("field `", name, "`: expected at least ", least, " but found ", value);
  }

  /// For what is counted, in steps, sequences or tokens.
  void Counted(const char *name, int64_t value) {
    if (value > kMostCounted)
      Fail("field `", name, "`: expected at most ", kMostCounted, " but found ", value);
  }

  template <typename... Args> void Fail(const Args &...args) {
    if (status.ok())
      status = absl::InvalidArgumentError(
          absl::StrCat("program descriptor: ", where.empty() ? "" : where + ": ", args...));
  }

  /// Whether all that was read so far is as it must be.
  bool ok() const { return status.ok(); }

  /// The first error; unknown fields are one.
  absl::Status Finish() {
    for (auto it = object.begin(); status.ok() && it != object.end(); ++it)
      if (!known.count(it.key()))
        Fail("unknown field `", it.key(), "`");
    return status;
  }

private:
  const Json *Find(const char *name, const char *expected, bool (Json::*is)() const noexcept) {
    known.insert(name);
    if (!status.ok())
      return nullptr;
    auto it = object.find(name);
    if (it == object.end()) {
      Fail("missing field `", name, "`");
      return nullptr;
    }
    if (!((*it).*is)()) {
      Fail("field `", name, "`: expected ", expected, " but found ", it->type_name());
      return nullptr;
    }
    return &*it;
  }

  /// Larger ones would read as negative.
  void ReadInteger(const char *name, const Json &value, int64_t &out) {
    if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX})
      return Fail("field `", name, "`: ", value.get<uint64_t>(), " does not fit in 64 bits");
    out = value.get<int64_t>();
  }

  std::string Path(const char *name) const {
    return where.empty() ? name : absl::StrCat(where, ".", name);
  }

  template <typename T> void ParseInto(const Json &value, std::string path, T &out);

  const Json &object;
  std::string where;
  std::set<std::string> known;
  absl::Status status;
};

/// A member that is "device" or "host".
void ReadSpace(Fields &f, const char *name, int32_t &space) {
  std::string word;
  f.Read(name, word);
  f.OneOf(name, word, {"device", "host"});
  space = word == "host" ? BOA_HOST : BOA_DEVICE;
}

void Parse(Fields &f, Home &h) {
  std::string tier;
  f.Read("tier", tier);
  f.OneOf("tier", tier, {"device", "host", "ssd"});
  h.tier = tier == "device" ? Home::device : tier == "host" ? Home::host : Home::ssd;
  f.Read("chunks", h.chunks);
  f.AtLeast("chunks", h.chunks, 1);
}

void Parse(Fields &f, SlotPool &p) {
  ReadSpace(f, "space", p.space);
  f.Read("chunks", p.chunks);
  f.AtLeast("chunks", p.chunks, 1);
  f.Read("slots", p.slots);
  f.AtLeast("slots", p.slots, 0);
}

void Parse(Fields &f, Storage &s) {
  f.Read("name", s.name);
  f.Read("role", s.role);
  f.OneOf("role", s.role, kRoles);
  f.Read("entries", s.entries);
  for (int64_t dimension : s.entries)
    f.AtLeast("entries", dimension, 1);
  f.Read("chunks", s.chunks);
  f.AtLeast("chunks", s.chunks, 1);
  f.Read("bytes", s.bytes);
  f.AtLeast("bytes", s.bytes, 1);
  if (s.chunks >= 1 && s.bytes % (BOA_BLOCK_BYTES * int64_t{s.chunks}) != 0)
    f.Fail("field `bytes`: ", s.bytes, " is no multiple of ", BOA_BLOCK_BYTES, " for each of ",
           s.chunks, " chunks");
  std::vector<int64_t> all = s.entries;
  all.push_back(s.bytes);
  if (f.ok() && !Product(all))
    f.Fail("field `entries`: more entries of ", s.bytes, " bytes than any machine holds");
  f.Read("persistent", s.persistent);
  // A state has no schedule, so it has nothing that one leaves unfinished.
  if (s.persistent && s.role != "weights" && s.role != "master" && s.role != "momentum" &&
      s.role != "variance")
    f.Fail("field `persistent`: ", s.role, " are no part of a state");
  f.Read("homes", s.homes);
  int64_t housed = 0;
  for (const Home &home : s.homes)
    housed += home.chunks;
  if (f.ok() && housed != s.chunks)
    f.Fail("field `homes`: expected homes for ", s.chunks, " chunks but found them for ", housed);
  f.Read("pools", s.pools);
  for (const SlotPool &pool : s.pools)
    if (f.ok() && pool.chunks > s.chunks)
      f.Fail("field `pools`: slots of ", pool.chunks, " chunks but an entry has ", s.chunks);
}

void Parse(Fields &f, Parameter &p) {
  f.Read("name", p.name);
  f.Read("shape", p.shape);
  for (int64_t dimension : p.shape)
    f.AtLeast("shape", dimension, 1);
  f.Read("offset", p.offset);
  f.AtLeast("offset", p.offset, 0);
  f.Read("init", p.init);
  f.OneOf("init", p.init, {"normal", "uniform", "ones", "zeros"});
  f.Read("init_scale", p.init_scale);
  f.Read("decay", p.decay);
}

void Parse(Fields &f, Group &g) {
  f.Read("name", g.name);
  f.Read("count", g.count);
  f.AtLeast("count", g.count, 1);
  f.Read("layer", g.layer);
  f.Read("elements", g.elements);
  f.Read("chunks", g.chunks);
  f.AtLeast("chunks", g.chunks, 1);
  f.Read("chunk_elements", g.chunk_elements);
  f.AtLeast("chunk_elements", g.chunk_elements, 1);
  const std::optional<int64_t> elements = Product({g.count, g.chunks, g.chunk_elements});
  if (f.ok() && !elements)
    f.Fail("field `chunk_elements`: more than any machine holds");
  if (f.ok() && g.elements != g.chunks * g.chunk_elements)
    f.Fail("field `elements`: ", g.elements, " is not ", g.chunks, " chunks of ", g.chunk_elements);
  f.Read("weight_type", g.weight_type);
  f.OneOf("weight_type", g.weight_type, {"f32", "bf16"});
  f.Read("parameters", g.parameters);
  f.Read("weights", g.weights);
  f.AtLeast("weights", g.weights, 0);
  f.Read("low", g.low);
  f.Read("momentum", g.momentum);
  f.Read("variance", g.variance);
  f.Read("gradient", g.gradient);
}

void Parse(Fields &f, KernelBuffer &b) {
  f.Read("read", b.read);
  f.Read("write", b.write);
}

void Parse(Fields &f, Kernel &k) {
  f.Read("name", k.name);
  f.Read("buffers", k.buffers);
  f.Read("workspace", k.workspace);
  f.AtLeast("workspace", k.workspace, 0);
  f.Read("flops", k.flops);
  f.Read("flops_bf16", k.flops_bf16);
  f.Read("bytes", k.bytes);
  f.ReadOptional("tables", k.tables);
}

void Parse(Fields &f, AngleTable &t) {
  f.Read("function", t.function);
  f.OneOf("function", t.function, {"cosine", "sine"});
  f.Read("rows", t.rows);
  f.AtLeast("rows", t.rows, 1);
  f.Counted("rows", t.rows);
  f.Read("frequencies", t.frequencies);
}

void Parse(Fields &f, Traffic &t) {
  f.Read("read", t.read);
  f.Read("written", t.written);
  f.Read("to_device", t.to_device);
  f.Read("to_host", t.to_host);
}

void Parse(Fields &f, Optimizer &o) {
  f.Read("kind", o.kind);
  f.OneOf("kind", o.kind, {"adamw", "sgd"});
  f.Read("beta1", o.beta1);
  f.Read("beta2", o.beta2);
  f.Read("eps", o.eps);
  f.Read("weight_decay", o.weight_decay);
  f.Read("momentum", o.momentum);
  f.Read("clip", o.clip);
  f.AtLeast("clip", o.clip, 0);
  f.Read("rate", o.rate);
  f.OneOf("rate", o.rate, {"constant", "linear", "cosine"});
  f.Read("peak", o.peak);
  f.Read("floor", o.floor);
  f.Read("warmup", o.warmup);
  f.AtLeast("warmup", o.warmup, 0);
  ReadSpace(f, "space", o.space);
}

void Parse(Fields &f, Training &t) {
  f.Read("data", t.data);
  f.Read("objective", t.objective);
  f.OneOf("objective", t.objective, {"next_token", "masked"});
  f.Read("mask_probability", t.mask_probability);
  f.Read("mask_token", t.mask_token);
  f.Read("vocab", t.vocab);
  f.AtLeast("vocab", t.vocab, 1);
  f.Counted("vocab", t.vocab);
  f.Read("context", t.context);
  f.AtLeast("context", t.context, 1);
  f.Counted("context", t.context);
  f.Read("micro_batch", t.micro_batch);
  f.AtLeast("micro_batch", t.micro_batch, 1);
  f.Counted("micro_batch", t.micro_batch);
  f.Read("micro_batches", t.micro_batches);
  f.AtLeast("micro_batches", t.micro_batches, 1);
  f.Counted("micro_batches", t.micro_batches);
  f.Read("steps", t.steps);
  f.AtLeast("steps", t.steps, 0);
  f.Read("seed", t.seed);
  f.Read("evaluate_every", t.evaluate_every);
  f.AtLeast("evaluate_every", t.evaluate_every, 0);
  f.Read("evaluate_batches", t.evaluate_batches);
  f.AtLeast("evaluate_batches", t.evaluate_batches, 0);
  f.Counted("evaluate_batches", t.evaluate_batches);
  f.Read("commit_every", t.commit_every);
  f.AtLeast("commit_every", t.commit_every, 0);
  f.Read("commit_seconds", t.commit_seconds);
  f.AtLeast("commit_seconds", t.commit_seconds, 0);
  f.Read("commit_keep", t.commit_keep);
  f.AtLeast("commit_keep", t.commit_keep, 1);
  f.Counted("commit_keep", t.commit_keep);
  f.Read("nonfinite", t.nonfinite);
  f.OneOf("nonfinite", t.nonfinite, {"stop", "skip"});
  f.Read("compute", t.compute);
  f.OneOf("compute", t.compute, {"f32", "bf16"});
}

void Parse(Fields &f, SsdPath &s) {
  f.Read("path", s.path);
  f.Read("read", s.read);
  f.AtLeast("read", s.read, 0);
  f.Read("write", s.write);
  f.AtLeast("write", s.write, 0);
  f.Read("both", s.both);
  f.AtLeast("both", s.both, 0);
  f.Read("latency", s.latency);
  f.AtLeast("latency", s.latency, 0);
}

void Parse(Fields &f, Rates &r) {
  for (auto [name, rate] : std::initializer_list<std::pair<const char *, int64_t *>>{
           {"compute", &r.compute},
           {"compute_bf16", &r.compute_bf16},
           {"device_bandwidth", &r.device_bandwidth},
           {"to_device", &r.to_device},
           {"to_host", &r.to_host},
           {"optimizer", &r.optimizer},
           {"host_bandwidth", &r.host_bandwidth}}) {
    f.Read(name, *rate);
    f.AtLeast(name, *rate, 0);
  }
}

void Parse(Fields &f, Machine &m) {
  f.Read("name", m.name);
  f.Read("device", m.device);
  std::string memory;
  f.Read("memory", memory);
  f.OneOf("memory", memory, {"unified", "separate"});
  m.separate = memory == "separate";
  f.Read("direct", m.direct);
  if (m.direct && !m.separate)
    f.Fail("field `direct`: expected separate memories where SSDs reach the device's");
  f.Read("device_memory", m.device_memory);
  f.AtLeast("device_memory", m.device_memory, 0);
  f.Read("host_memory", m.host_memory);
  f.AtLeast("host_memory", m.host_memory, 0);
  f.Read("threads", m.threads);
  f.AtLeast("threads", m.threads, 0);
  f.ReadOptional("kernels", m.kernels);
  f.Read("rates", m.rates);
  f.Read("ssd", m.ssd);
}

/// Storage `id`, which holds `role` of a group's entries: one element of `size`
/// bytes for each of the group's, in the same chunks.
void CheckGroupStorage(Fields &f, const Program &program, const Group &group, const char *role,
                       int32_t id, int64_t size) {
  if (id == -1)
    return;
  auto where = [&] { return absl::StrCat("group `", group.name, "`: ", role); };
  if (id < 0 || id >= static_cast<int64_t>(program.storages.size()))
    return f.Fail(where(), ": no storage ", id);
  const Storage &storage = program.storages[id];
  if (storage.entry_count() != group.count)
    return f.Fail(where(), ": expected ", group.count, " entries but storage `", storage.name,
                  "` has ", storage.entry_count());
  if (storage.chunks != group.chunks)
    return f.Fail(where(), ": expected ", group.chunks, " chunks but storage `", storage.name,
                  "` has ", storage.chunks);
  if (storage.bytes != group.elements * size)
    f.Fail(where(), ": expected ", group.elements * size, " bytes but an entry of storage `",
           storage.name, "` has ", storage.bytes);
}

/// Kernels read tables that there are, for whose bytes memory was planned.
void CheckTables(Fields &f, const Program &program) {
  if (!f.ok())
    return;
  for (const Kernel &kernel : program.kernels)
    for (int64_t table : kernel.tables)
      if (table < 0 || table >= static_cast<int64_t>(program.tables.size()))
        return f.Fail("kernel `", kernel.name, "`: no table ", table);
  if (const int64_t bytes = TableOffsets(program.tables).back(); bytes > program.constants)
    f.Fail("field `constants`: expected the ", bytes, " bytes of the tables but found ",
           program.constants);
}

/// Parameters lie inside their group's entry. They are in order of offset and
/// apart, which export and initialisation rely on.
void CheckParameters(Fields &f, const Group &group) {
  int64_t end = 0;
  for (const Parameter &parameter : group.parameters) {
    const std::optional<int64_t> elements = Product(parameter.shape);
    if (parameter.offset < end)
      return f.Fail("group `", group.name, "`: parameter `", parameter.name, "` begins at ",
                    parameter.offset, ", before ", end, " where the one before it ends");
    if (!elements || parameter.offset > kMost)
      return f.Fail("group `", group.name, "`: parameter `", parameter.name,
                    "` has more elements than any machine holds");
    end = parameter.offset + *elements;
    if (end > group.elements)
      return f.Fail("group `", group.name, "`: parameter `", parameter.name, "` ends at ", end,
                    " of ", group.elements, " elements");
  }
}

void Parse(Fields &f, Computation &c) {
  f.Read("version", c.version);
  f.AtLeast("version", c.version, 1);
  f.Read("text", c.text);
  f.Read("hash", c.hash);
  if (f.ok() && (c.text.empty() || c.text.size() > kMostComputationText))
    f.Fail("field `text`: expected 1 to ", kMostComputationText, " bytes but found ",
           c.text.size());
  if (f.ok() && (c.hash.empty() || c.hash.size() > kMostComputationHash))
    f.Fail("field `hash`: expected 1 to ", kMostComputationHash, " bytes but found ",
           c.hash.size());
}

void Parse(Fields &f, Program &p) {
  f.Read("abi", p.abi);
  // Before anything else: another version may well have other fields.
  if (p.abi != BOA_ABI_VERSION)
    f.Fail("field `abi`: the program was compiled for version ", p.abi,
           " but this runtime is version ", BOA_ABI_VERSION,
           "; compile it again with the `boa` of this runtime");
  f.Read("name", p.name);
  f.ReadOptional("computation", p.computation);
  f.Read("schedule", p.schedule);
  f.Read("delay", p.delay);
  if (!(p.delay >= 0 && p.delay <= 1))
    f.Fail("field `delay`: expected a value between 0 and 1 but found ", p.delay);
  f.Read("storages", p.storages);
  f.Read("groups", p.groups);
  f.Read("kernels", p.kernels);
  f.ReadOptional("tables", p.tables);
  f.Read("arena_device", p.arena_device);
  f.AtLeast("arena_device", p.arena_device, 0);
  f.Read("arena_host", p.arena_host);
  f.AtLeast("arena_host", p.arena_host, 0);
  f.Read("constants", p.constants);
  f.AtLeast("constants", p.constants, 0);
  f.Read("attention_scratch", p.attention_scratch);
  f.AtLeast("attention_scratch", p.attention_scratch, 0);
  f.Read("traffic", p.traffic);
  f.Read("optimizer", p.optimizer);
  f.Read("training", p.training);
  f.Read("machine", p.machine);
  CheckTables(f, p);
  for (const Group &group : p.groups) {
    const int64_t weight = group.weight_type == "bf16" ? 2 : 4;
    CheckGroupStorage(f, p, group, "weights", group.weights, weight);
    CheckGroupStorage(f, p, group, "low", group.low, 2);
    CheckGroupStorage(f, p, group, "momentum", group.momentum, 4);
    CheckGroupStorage(f, p, group, "variance", group.variance, 4);
    if (group.gradient < -1 || group.gradient >= static_cast<int64_t>(p.storages.size()))
      f.Fail("group `", group.name, "`: gradient: no storage ", group.gradient);
    CheckParameters(f, group);
  }
}

template <typename T> void Fields::ParseInto(const Json &value, std::string path, T &out) {
  Fields fields(value, std::move(path));
  Parse(fields, out);
  absl::Status inner = fields.Finish();
  if (status.ok())
    status = inner;
}

} // namespace

Traffic Program::TrafficOfStep(int64_t earlier) const {
  auto found = traffic.find(earlier == 0 ? "first_step" : earlier == 1 ? "second_step" : "step");
  if (found == traffic.end())
    found = traffic.find("step");
  return found == traffic.end() ? Traffic() : found->second;
}

void Traffic::Add(const Traffic &other) {
  auto add = [](std::map<std::string, int64_t> &to, const std::map<std::string, int64_t> &from) {
    for (const auto &[role, bytes] : from)
      to[role] += bytes;
  };
  add(read, other.read);
  add(written, other.written);
  add(to_device, other.to_device);
  add(to_host, other.to_host);
}

const char *TierName(Home::Tier tier) {
  return tier == Home::device ? "device" : tier == Home::host ? "host" : "ssd";
}

Home::Tier Storage::tier(int32_t chunk) const {
  for (const Home &home : homes) {
    if (chunk < home.chunks)
      return home.tier;
    chunk -= home.chunks;
  }
  return Home::ssd;
}

bool Storage::LivesOn(Home::Tier tier) const {
  for (const Home &home : homes)
    if (home.tier == tier)
      return true;
  return false;
}

int64_t Storage::entry_count() const {
  int64_t count = 1;
  for (int64_t dimension : entries)
    count *= dimension;
  return count;
}

absl::StatusOr<Program> ParseProgram(std::string_view json) {
  Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded())
    return absl::InvalidArgumentError("program descriptor: not valid JSON");
  Program program;
  Fields fields(root, "");
  Parse(fields, program);
  if (absl::Status status = fields.Finish(); !status.ok())
    return status;
  return program;
}

double LearningRate(const Optimizer &o, int64_t step, int64_t steps) {
  if (o.warmup > 0 && step <= o.warmup)
    return o.peak * static_cast<double>(step) / static_cast<double>(o.warmup);
  if (o.rate == "constant")
    return o.peak;
  // Past the last step, and where the warm-up takes every step, the floor
  // holds.
  if (step >= steps)
    return o.floor;
  const double done = static_cast<double>(step - o.warmup) / static_cast<double>(steps - o.warmup);
  if (o.rate == "linear")
    return o.peak + (o.floor - o.peak) * done;
  constexpr double kPi = 3.14159265358979323846;
  return o.floor + 0.5 * (o.peak - o.floor) * (1 + std::cos(kPi * done));
}

} // namespace boa
