//===- Descriptor.cpp -----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/target/runtime/Descriptor.h"

#include "dialect/Config.h"
#include "passes/kernels/AngleTables.h"
#include "passes/model/CanonicalText.h"
#include "runtime/abi/abi.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
namespace json = llvm::json;

namespace boa {
namespace {

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

json::Value describe(const std::string &member) { return member; }
json::Value describe(bool member) { return member; }
json::Value describe(int64_t member) { return member; }
json::Value describe(double member) { return member; }
template <typename Enum> std::enable_if_t<std::is_enum_v<Enum>, json::Value> describe(Enum member) {
  return WordOf(member);
}
json::Value describe(const Placement &place) {
  json::Array parts;
  for (const Placement::Part &part : place.parts) {
    parts.push_back(WordOf(part.tier));
    if (&part != &place.parts.back())
      parts.push_back(part.layers ? json::Value(part.layers) : json::Value(part.share));
  }
  return parts.size() == 1 ? std::move(parts[0]) : json::Value(std::move(parts));
}
template <typename Settings> json::Value describe(const std::vector<Settings> &list);
/// All members of a struct of the table.
template <typename Settings>
std::enable_if_t<std::is_class_v<Settings>, json::Value> describe(const Settings &settings) {
  json::Object members;
  settings.Visit(
      [&](const SettingRow &row, const auto &member) { members[row.key] = describe(member); });
  return members;
}
template <typename Settings> json::Value describe(const std::vector<Settings> &list) {
  json::Array members;
  for (const Settings &settings : list)
    members.push_back(describe(settings));
  return members;
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

class Describer {
public:
  explicit Describer(ModuleOp module)
      : module(module), config(module), tables(getAllTables(module)) {
    // Of one memory nobody asks.
    config.machine.direct = IsDirect(config.machine);
    config.plan.micro_batch = config.microBatch();
  }

  json::Value run() {
    json::Array storageList, groupList, kernelList;
    for (auto storage : module.getOps<StorageOp>()) {
      ids[storage.getSymName()] = storageList.size();
      storageList.push_back(describe(storage));
    }
    for (auto group : module.getOps<GroupOp>())
      groupList.push_back(describe(group));
    for (auto kernel : module.getOps<KernelOp>())
      kernelList.push_back(describe(kernel));
    json::Object traffic;
    for (auto step : module.getOps<StepOp>()) {
      traffic[step.getSymName()] = describeTraffic(step, "each");
      if (step.getEntryPoint() == EntryPoint::step) {
        traffic["first_step"] = describeTraffic(step, "first");
        traffic["second_step"] = describeTraffic(step, "second");
      }
    }
    int64_t device = integerAttr(module, kArenaDeviceAttr);
    int64_t total = integerAttr(module, kArenaAttr);
    json::Object program{{"abi", BOA_ABI_VERSION},
                         {"model", boa::describe(config.model)},
                         {"train", boa::describe(config.train)},
                         {"plan", boa::describe(config.plan)},
                         {"machine", boa::describe(config.machine)},
                         {"storages", std::move(storageList)},
                         {"groups", std::move(groupList)},
                         {"kernels", std::move(kernelList)},
                         {"arena_device", device},
                         {"arena_host", total - device},
                         {"constants", integerAttr(module, kConstantsAttr)},
                         {"attention_scratch", integerAttr(module, kAttentionScratchAttr)},
                         {"traffic", std::move(traffic)}};
    if (OptimizerOp optimizer = findOptimizer(module))
      program["optimizer"] = describe(optimizer);
    if (!tables.empty())
      program["tables"] = describeTables();
    // Only what came through the whole pipeline has it.
    if (auto text = module->getAttrOfType<StringAttr>(kCanonicalTextAttr))
      program["computation"] = json::Object{{"version", kCanonicalVersion},
                                            {"text", text.getValue()},
                                            {"hash", hashCanonicalText(text)}};
    return program;
  }

private:
  static int64_t integerAttr(Operation *op, StringRef name) {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  }

  json::Value describe(PoolAttr pool) {
    json::Object object{{"space", stringifySpace(pool.getSpace())},
                        {"chunks", pool.getChunks()},
                        {"slots", pool.getSlots()}};
    if (pool.getShared())
      object["shared"] = pool.getShared();
    return object;
  }

  json::Value describe(StorageOp storage) {
    int64_t chunks = storage.getChunks();
    json::Array homes, pools;
    for (const StorageOp::EntryRange &entries : storage.getEntryRanges()) {
      json::Array alike;
      for (const StorageOp::HomeRange &range : storage.getHomeRanges(entries.first))
        alike.push_back(json::Object{{"tier", stringifyTier(range.tier)}, {"chunks", range.count}});
      homes.push_back(json::Object{{"entries", entries.count}, {"homes", std::move(alike)}});
    }
    if (ArrayAttr all = storage.getPoolsAttr())
      for (PoolAttr pool : all.getAsRange<PoolAttr>())
        pools.push_back(describe(pool));
    return json::Object{
        {"name", storage.getSymName()},
        {"role", storage.getLabel()},
        {"entries", json::Array(storage.getDims())},
        {"bytes", storage.getEntryBytes()},
        {"chunks", chunks},
        {"persistent", storage.getPersistent() && storage.getRole() != Role::gradients},
        {"homes", std::move(homes)},
        {"pools", std::move(pools)}};
  }

  int64_t idOf(Role role, GroupOp group) {
    auto it = ids.find(getStorageName(role, group.getSymName()));
    return it == ids.end() ? -1 : it->second;
  }

  /// Hashes the computation of an optimizer: neither hyperparameters nor names of values change it.
  static std::string hashBody(OptimizerOp optimizer) {
    OwningOpRef<OptimizerOp> body = optimizer.clone();
    body->setHyperparametersAttr(DictionaryAttr::get(body->getContext()));
    std::string text;
    llvm::raw_string_ostream stream(text);
    body->getOperation()->print(stream, OpPrintingFlags().printGenericOpForm().useLocalScope());
    return hashCanonicalText(text);
  }

  json::Value describe(OptimizerOp optimizer) {
    json::Array states;
    for (auto [name, type] : optimizer.getStateTypes()) {
      std::string text;
      llvm::raw_string_ostream(text) << type;
      states.push_back(json::Object{{"name", name}, {"type", std::move(text)}});
    }
    return json::Object{{"name", optimizer.getSymName()},
                        {"body", hashBody(optimizer)},
                        {"states", std::move(states)},
                        {"scalars", optimizer.getScalarCount()}};
  }

  json::Value describe(GroupOp group) {
    json::Array parameters, states;
    const double ofMatrices = config.train.optimizer.weight_decay;
    StringRef name = getUserName(group.getSymName());
    names.insert(name);
    for (StorageOp storage : getTrainedStorages(module, group.getSymName()))
      if (storage.getRole() == Role::state)
        states.push_back(ids.lookup(storage.getSymName()));
    for (auto param : group.getBody().getOps<ParamOp>()) {
      RankedTensorType type = param.getType();
      json::Object parameter{{"name", param.getSymName()},
                             {"shape", json::Array(type.getShape())},
                             {"offset", group.getOffset(param.getSymName())},
                             {"init", stringifyInit(param.getInit())},
                             {"init_scale", param.getScale().convertToDouble()},
                             {"number", param.getPlace()},
                             {"lr_scale", param.getRateFactor()},
                             {"decay", param.getDecay(ofMatrices)}};
      if (std::optional<StringRef> external = param.getExternal())
        parameter["external"] = *external;
      if (AdapterAttr adapter = param.getAdapterAttr())
        parameter["adapter"] = json::Object{{"down", adapter.getDown().getValue()},
                                            {"up", adapter.getUp().getValue()},
                                            {"alpha", adapter.getAlpha().getValueAsDouble()},
                                            {"transposed", adapter.getTransposed()},
                                            {"rslora", adapter.getRslora()}};
      if (IntegerAttr split = param.getSplitAttr())
        parameter["split"] = split.getInt();
      parameters.push_back(std::move(parameter));
    }
    return json::Object{{"name", name},
                        {"number", int64_t(llvm::find(names, name) - names.begin())},
                        {"count", int64_t(group.getRepeat())},
                        {"layer", !isOfParts(group.getSymName()) &&
                                      (group.getRepeat() > 1 || group->hasAttr(kLayerAttr))},
                        {"elements", group.getPaddedElements()},
                        {"chunks", group.getChunks()},
                        {"chunk_elements", group.getChunkElements()},
                        {"weight_type", WordOf(config.train.weights)},
                        {"parameters", std::move(parameters)},
                        {"weights", idOf(Role::weights, group)},
                        {"low", idOf(Role::master, group)},
                        {"states", std::move(states)},
                        {"gradient", idOf(Role::gradients, group)}};
  }

  json::Value describe(KernelOp op) {
    json::Array buffers;
    auto describeBuffers = [&](ArrayAttr all, bool read, bool write) {
      for (size_t i = 0; i < all.size(); ++i)
        buffers.push_back(json::Object{{"read", read}, {"write", write}});
    };
    describeBuffers(op.getReads(), true, false);
    describeBuffers(op.getUpdates(), true, true);
    describeBuffers(op.getWrites(), false, true);
    if (op.getPreparedAttr())
      buffers.push_back(json::Object{{"read", true}, {"write", false}});
    json::Object costs;
    for (NamedAttribute named : op.getCosts()) {
      auto cost = cast<CostAttr>(named.getValue());
      costs[named.getName().getValue()] =
          json::Object{{"flops", cost.getFlops()},
                       {"bytes", cost.getBytes()},
                       {"product_flops", cost.getProductFlops()},
                       {"attention_flops", cost.getAttentionFlops()},
                       {"elementwise_bytes", cost.getElementwiseBytes()}};
    }
    json::Object kernel{{"name", op.getSymName()},
                        {"buffers", std::move(buffers)},
                        {"workspace", int64_t(op.getWorkspace())},
                        {"costs", std::move(costs)}};
    json::Array numbers;
    for (Attribute table : op.getTables())
      numbers.push_back(int64_t(llvm::find(tables, table) - tables.begin()));
    if (!numbers.empty())
      kernel["tables"] = std::move(numbers);
    return kernel;
  }

  json::Value describeTables() {
    json::Array all;
    for (Attribute attr : tables) {
      AngleTable table = getTable(attr);
      all.push_back(json::Object{{"function", table.function},
                                 {"rows", table.rows},
                                 {"frequencies", json::Array(table.frequencies)}});
    }
    return all;
  }

  static json::Value describeTraffic(StepOp step, StringRef run) {
    json::Object result;
    const DictionaryAttr all = step.getTrafficAttr();
    auto traffic = all ? all.getAs<DictionaryAttr>(run) : DictionaryAttr();
    for (StringRef direction : {"read", "written", "to_device", "to_host"}) {
      json::Object bytes;
      if (auto roles = traffic ? traffic.getAs<DictionaryAttr>(direction) : DictionaryAttr())
        for (NamedAttribute role : roles)
          bytes[role.getName().getValue()] = cast<IntegerAttr>(role.getValue()).getInt();
      result[direction] = std::move(bytes);
    }
    return result;
  }

  ModuleOp module;
  Config config;
  const llvm::SetVector<Attribute> tables;
  llvm::StringMap<int64_t> ids;
  llvm::SetVector<StringRef> names; // of groups, as users know them
};

} // namespace

std::string describeProgram(ModuleOp module) {
  return llvm::formatv("{0}", Describer(module).run()).str();
}

} // namespace boa
