//===- descriptor.cpp - The descriptor of a program, parsed ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strict: every member of runtime/abi/program.h must be there, with its type, and nothing
// else; only `computation`, `optimizer` and `tables` may be missing. Sizes that the runtime divides
// by or indexes with are checked here once. `Fields` finds the Parse of a type by its argument. So
// a program and a runtime of different versions are found out before anything runs.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/fields.h"
#include "runtime/abi/program.h"
#include "runtime/abi/sizes.h"

#include "absl/algorithm/container.h"

#include <optional>

namespace boa {

/// The product of sizes that are all at least 1; nothing if it is above kMostBytes.
static std::optional<int64_t> Product(const std::vector<int64_t> &sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    if (__builtin_mul_overflow(product, size, &product) || product > kMostBytes)
      return std::nullopt;
  return product;
}

/// A member that is "device" or "host".
static void ReadSpace(Fields &f, const char *name, int32_t &space) {
  std::string word;
  f.Read(name, word);
  f.OneOf(name, word, {"device", "host"});
  space = word == "host" ? BOA_HOST : BOA_DEVICE;
}

static void Parse(Fields &f, Home &h) {
  std::string tier;
  f.Read("tier", tier);
  f.OneOf("tier", tier, {"device", "host", "ssd"});
  h.tier = tier == "device" ? Home::device : tier == "host" ? Home::host : Home::ssd;
  f.Read("chunks", h.chunks);
  f.AtLeast("chunks", h.chunks, 1);
}

static void Parse(Fields &f, EntryHomes &e) {
  f.Read("entries", e.entries);
  f.AtLeast("entries", double(e.entries), 1);
  f.Read("homes", e.homes);
}

static void Parse(Fields &f, SlotPool &p) {
  ReadSpace(f, "space", p.space);
  f.Read("chunks", p.chunks);
  f.AtLeast("chunks", p.chunks, 1);
  f.Read("slots", p.slots);
  f.AtLeast("slots", p.slots, 0);
  f.ReadOptional("shared", p.shared);
  f.AtLeast("shared", p.shared, 0);
}

static void Parse(Fields &f, Storage &s) {
  f.Read("name", s.name);
  f.Read("role", s.role);
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
  f.Read("homes", s.homes);
  if (f.ok())
    if (absl::Status status = s.CheckHomes(); !status.ok())
      f.Fail("field `homes`: ", status.message());
  f.Read("pools", s.pools);
  for (const SlotPool &pool : s.pools)
    if (f.ok() && pool.chunks > s.chunks)
      f.Fail("field `pools`: slots of ", pool.chunks, " chunks but an entry has ", s.chunks);
}

/// Storages that share a pool agree on its space and on its number of slots.
static void CheckShared(Fields &f, const Program &p) {
  std::map<int32_t, const SlotPool *> pools;
  for (const Storage &storage : p.storages)
    for (const SlotPool &pool : storage.pools) {
      const SlotPool &first = *pools.try_emplace(pool.shared, &pool).first->second;
      if (pool.shared && (pool.space != first.space || pool.slots != first.slots))
        f.Fail("storage `", storage.name, "`: expected ", first.slots, " slots in pool ",
               pool.shared, ", in the same space, but found ", pool.slots);
    }
}

static void Parse(Fields &f, Adapter &a) {
  f.Read("down", a.down);
  f.Read("up", a.up);
  f.Read("alpha", a.alpha);
  f.Read("transposed", a.transposed);
  f.ReadOptional("rslora", a.rslora);
  if (f.ok() && (a.down.empty() || a.up.empty() || a.down == a.up))
    f.Fail("fields `down` and `up`: expected the names of two parameters");
  if (f.ok() && !(a.alpha > 0 && a.alpha <= 1e6))
    f.Fail("field `alpha`: expected a number above 0 and at most 1e6 but found ", a.alpha);
}

static void Parse(Fields &f, Parameter &p) {
  f.Read("name", p.name);
  f.Read("shape", p.shape);
  for (int64_t dimension : p.shape)
    f.AtLeast("shape", dimension, 1);
  f.Read("offset", p.offset);
  f.AtLeast("offset", p.offset, 0);
  f.Read("init", p.init);
  f.OneOf("init", p.init, {"normal", "uniform", "ones", "zeros"});
  f.Read("init_scale", p.init_scale);
  f.Read("number", p.number);
  f.AtLeast("number", p.number, 0);
  f.Read("lr_scale", p.lr_scale);
  f.Read("decay", p.decay);
  f.ReadOptional("external", p.external);
  f.ReadOptional("adapter", p.adapter);
  f.ReadOptional("split", p.split);
  if (f.ok() && (p.split < -1 || p.split >= static_cast<int64_t>(p.shape.size())))
    f.Fail("field `split`: no dimension ", p.split);
}

static void Parse(Fields &f, Group &g) {
  f.Read("name", g.name);
  f.Read("number", g.number);
  f.AtLeast("number", g.number, 0);
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
  f.Read("states", g.states);
  f.Read("gradient", g.gradient);
}

static void Parse(Fields &f, OptimizerState &s) {
  f.Read("name", s.name);
  f.Read("type", s.type);
  f.OneOf("type", s.type, kStateTypes);
}

static void Parse(Fields &f, Optimizer &o) {
  f.Read("name", o.name);
  f.ReadOptional("body", o.body);
  f.Read("states", o.states);
  f.Read("scalars", o.scalars);
  f.AtLeast("scalars", o.scalars, 0);
  if (f.ok() && o.scalars > BOA_MOST_SCALARS)
    f.Fail("field `scalars`: expected at most ", BOA_MOST_SCALARS, " but found ", o.scalars);
}

static void Parse(Fields &f, KernelBuffer &b) {
  f.Read("read", b.read);
  f.Read("write", b.write);
}

static void Parse(Fields &f, KernelCost &c) {
  f.Read("flops", c.flops);
  f.Read("bytes", c.bytes);
  f.Read("product_flops", c.product_flops);
  f.Read("attention_flops", c.attention_flops);
  f.Read("elementwise_bytes", c.elementwise_bytes);
}

static void Parse(Fields &f, Kernel &k) {
  f.Read("name", k.name);
  f.Read("buffers", k.buffers);
  f.Read("workspace", k.workspace);
  f.AtLeast("workspace", k.workspace, 0);
  std::map<std::string, KernelCost> costs;
  f.Read("costs", costs);
  for (const auto &[word, cost] : costs)
    if (const std::optional<NumberFormat> format = ParseWord<NumberFormat>(word))
      k.costs[*format] = cost;
    else
      f.Fail("field `costs`: there is no format `", word, "`");
  f.ReadOptional("tables", k.tables);
}

static void Parse(Fields &f, AngleTable &t) {
  f.Read("function", t.function);
  f.OneOf("function", t.function, {"cosine", "sine"});
  f.Read("rows", t.rows);
  f.AtLeast("rows", t.rows, 1);
  f.Counted("rows", t.rows);
  f.Read("frequencies", t.frequencies);
}

static void Parse(Fields &f, Traffic &t) {
  f.Read("read", t.read);
  f.Read("written", t.written);
  f.Read("to_device", t.to_device);
  f.Read("to_host", t.to_host);
}

static void Parse(Fields &f, ModelSettings &m) {
  f.ReadSettings(m);
  f.AtLeast("vocab", double(m.vocab), 1);
  f.AtLeast("context", double(m.context), 1);
  f.Counted("vocab", m.vocab, kLongestAxis);
  f.Counted("context", m.context, kLongestAxis);
}

static void Parse(Fields &f, MachineSettings &m) {
  f.ReadSettings(m);
  if (m.direct && !IsSeparate(m))
    f.Fail("field `direct`: expected separate memories where SSDs reach the device's");
}

/// Of sections of the table, and of the rest.
template <typename Settings> static void Parse(Fields &f, Settings &s) { f.ReadSettings(s); }

/// Storage `id`, which holds `role` of a group's entries: `chunk_bytes` for each of the group's
/// chunks.
static void CheckGroupStorage(Fields &f, const Program &program, const Group &group,
                              const std::string &role, int32_t id, int64_t chunk_bytes) {
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
  if (storage.bytes != group.chunks * chunk_bytes)
    f.Fail(where(), ": expected ", group.chunks * chunk_bytes, " bytes but an entry of storage `",
           storage.name, "` has ", storage.bytes);
}

/// A group that has a gradient is trained, and has all states of the optimizer.
static void CheckStates(Fields &f, const Program &program, const Group &group) {
  const std::vector<OptimizerState> &states = program.optimizer.states;
  if (group.states.empty() && group.gradient < 0)
    return;
  if (group.states.size() != states.size())
    return f.Fail("group `", group.name, "`: expected ", states.size(), " states but found ",
                  group.states.size());
  for (size_t i = 0; i < states.size(); ++i)
    if (group.states[i] < 0)
      f.Fail("group `", group.name, "`: ", states[i].name, ": no storage ", group.states[i]);
    else
      CheckGroupStorage(f, program, group, states[i].name, group.states[i],
                        StateBytes(states[i].type, group.chunk_elements));
}

/// A state has no schedule, so it has nothing that one leaves unfinished.
static void CheckRole(Fields &f, const Program &program, const Storage &storage) {
  const bool state = absl::c_any_of(
      program.optimizer.states, [&](const OptimizerState &of) { return of.name == storage.role; });
  if (!state && !absl::c_linear_search(kRoles, storage.role))
    return f.Fail("storage `", storage.name,
                  "`: field `role`: expected a role or a state of the "
                  "optimizer but found ",
                  storage.role);
  if (storage.persistent && !state && storage.role != "weights" && storage.role != "master")
    f.Fail("storage `", storage.name, "`: field `persistent`: ", storage.role,
           " are no part of a state");
}

/// Kernels read tables that there are, for whose bytes memory was planned.
static void CheckTables(Fields &f, const Program &program) {
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
static void CheckParameters(Fields &f, const Group &group) {
  int64_t end = 0;
  for (const Parameter &parameter : group.parameters) {
    const std::optional<int64_t> elements = Product(parameter.shape);
    if (parameter.offset < end)
      return f.Fail("group `", group.name, "`: parameter `", parameter.name, "` begins at ",
                    parameter.offset, ", before ", end, " where the one before it ends");
    if (!elements || parameter.offset > kMostBytes)
      return f.Fail("group `", group.name, "`: parameter `", parameter.name,
                    "` has more elements than any machine holds");
    if ((parameter.split >= 0) != IsOfParts(group) ||
        (parameter.split >= 0 && *elements > kMostBytes / group.count))
      return f.Fail("group `", group.name, "`: parameter `", parameter.name,
                    "`: expected parts of all parameters or of none, and a whole that a machine "
                    "can hold");
    end = parameter.offset + *elements;
    if (end > group.elements)
      return f.Fail("group `", group.name, "`: parameter `", parameter.name, "` ends at ", end,
                    " of ", group.elements, " elements");
  }
}

/// The two parts of an adapter have the shapes that fit their weight. An export relies on it.
static void CheckAdapters(Fields &f, const Program &program, const Group &group) {
  for (const Parameter &weight : group.parameters) {
    const Adapter &adapter = weight.adapter;
    if (adapter.down.empty())
      continue;
    auto find = [&](const std::string &name) -> const Parameter * {
      const std::optional<ParameterIndex> at = FindParameter(program, group, name);
      if (!at || program.groups[size_t(at->group)].count != group.count)
        return nullptr;
      return &program.groups[size_t(at->group)].parameters[size_t(at->parameter)];
    };
    const Parameter *down = find(adapter.down), *up = find(adapter.up);
    const auto where = absl::StrCat("group `", group.name, "`: parameter `", weight.name, "`: ");
    if (!down || !up)
      return f.Fail(where, "no parameter `", down ? adapter.up : adapter.down, "` for its adapter");
    if (weight.shape.size() != 2 || down->shape.size() != 2)
      return f.Fail(where, "expected an adapter of matrices");
    const int64_t in = weight.shape[adapter.transposed], out = weight.shape[!adapter.transposed],
                  rank = down->shape[0];
    if (down->shape[1] != in || up->shape != std::vector<int64_t>{out, rank})
      return f.Fail(where, "expected an adapter of [rank, ", in, "] and [", out, ", rank]");
  }
}

static void Parse(Fields &f, Computation &c) {
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

static void Parse(Fields &f, Program &p) {
  f.Read("abi", p.abi);
  // Before anything else: another version may well have other fields.
  if (p.abi != BOA_ABI_VERSION)
    f.Fail("field `abi`: the program was compiled for version ", p.abi,
           " but this runtime is version ", BOA_ABI_VERSION,
           "; compile it again with the `boa` of this runtime");
  f.Read("model", p.model);
  f.Read("train", p.train);
  f.Read("plan", p.plan);
  f.Read("machine", p.machine);
  if (std::string conflict = f.ok() ? FindConflict(p.model, p.train, p.plan) : "";
      !conflict.empty())
    f.Fail("expected ", conflict);
  f.ReadOptional("computation", p.computation);
  f.ReadOptional("optimizer", p.optimizer);
  f.Read("storages", p.storages);
  for (const Storage &storage : p.storages)
    CheckRole(f, p, storage);
  CheckShared(f, p);
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
  CheckTables(f, p);
  if (!f.ok())
    return; // sizes may be beyond what can be counted
  for (const Group &group : p.groups) {
    const int64_t weight = group.weight_type == "bf16" ? 2 : 4;
    CheckGroupStorage(f, p, group, "weights", group.weights, group.chunk_elements * weight);
    CheckGroupStorage(f, p, group, "low", group.low, group.chunk_elements * 2);
    CheckStates(f, p, group);
    if (f.ok() && group.gradient >= 0 && IsFrozen(p.storages[size_t(group.weights)]))
      f.Fail("group `", group.name, "`: expected no gradient, since its weights are frozen");
    if (group.gradient < -1 || group.gradient >= static_cast<int64_t>(p.storages.size()))
      f.Fail("group `", group.name, "`: gradient: no storage ", group.gradient);
    CheckParameters(f, group);
  }
  for (const Group &group : p.groups)
    CheckAdapters(f, p, group);
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

} // namespace boa
