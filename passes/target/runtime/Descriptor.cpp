//===- Descriptor.cpp -----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/target/runtime/Descriptor.h"

#include "passes/Config.h"
#include "runtime/abi.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
namespace json = llvm::json;

namespace boa {
namespace {

json::Array toJson(ArrayRef<int64_t> values) {
  json::Array array;
  for (int64_t value : values)
    array.push_back(value);
  return array;
}

class Describer {
public:
  explicit Describer(ModuleOp module)
      : module(module), train(Config::train(module)), machine(Config::machine(module)) {}

  json::Value run() {
    json::Array storageList, groupList, kernelList;
    for (auto storage : module.getOps<StorageOp>()) {
      ids[storage.getSymName()] = storageList.size();
      storageList.push_back(describe(storage));
    }
    for (auto group : module.getOps<GroupOp>())
      groupList.push_back(describe(group));
    for (Operation &op : *module.getBody())
      if (op.hasAttr(kKernelAttr))
        kernelList.push_back(describeKernel(&op));
    json::Object traffic;
    for (auto step : module.getOps<StepOp>()) {
      traffic[step.getSymName()] = describeTraffic(step, kTrafficAttr);
      if (step.getEntryPoint() == EntryPoint::step) {
        traffic["first_step"] = describeTraffic(step, kFirstTrafficAttr);
        traffic["second_step"] = describeTraffic(step, kSecondTrafficAttr);
      }
    }
    int64_t device = integerAttr(module, kArenaDeviceAttr);
    int64_t total = integerAttr(module, kArenaAttr);
    return json::Object{{"abi", BOA_ABI_VERSION},
                        {"name", train.string("model", "model")},
                        {"schedule", scheduleInWords()},
                        {"delay", train.real("delay")},
                        {"storages", std::move(storageList)},
                        {"groups", std::move(groupList)},
                        {"kernels", std::move(kernelList)},
                        {"arena_device", device},
                        {"arena_host", total - device},
                        {"traffic", std::move(traffic)},
                        {"optimizer", describeOptimizer()},
                        {"training", describeTraining()},
                        {"machine", describeMachine()}};
  }

private:
  static int64_t integerAttr(Operation *op, StringRef name) {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  }

  std::string scheduleInWords() {
    return llvm::formatv("{0}, {1} micro-batches of {2} sequences, delay {3}",
                         train.string("schedule", "vertical"), train.microBatches(),
                         train.integer("micro_batch"), train.real("delay"));
  }

  json::Value describe(StorageOp storage) {
    int64_t chunks = storage.getChunks();
    json::Array homes, pools;
    for (const StorageOp::HomeRange &range : storage.getHomeRanges())
      homes.push_back(json::Object{{"tier", stringifyTier(range.tier)}, {"chunks", range.count}});
    if (ArrayAttr all = storage.getPoolsAttr())
      for (PoolAttr pool : all.getAsRange<PoolAttr>())
        pools.push_back(json::Object{{"space", stringifySpace(pool.getSpace())},
                                     {"chunks", pool.getChunks()},
                                     {"slots", pool.getSlots()}});
    return json::Object{
        {"name", storage.getSymName()},
        {"role", stringifyRole(storage.getRole())},
        {"entries", toJson(storage.getDims())},
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

  json::Value describe(GroupOp group) {
    json::Array parameters;
    for (auto param : group.getBody().getOps<ParamOp>()) {
      RankedTensorType type = param.getTensorType();
      parameters.push_back(json::Object{{"name", param.getSymName()},
                                        {"shape", toJson(type.getShape())},
                                        {"offset", group.getOffset(param.getSymName())},
                                        {"init", param.getInit()},
                                        {"init_scale", param.getScale().convertToDouble()},
                                        {"decay", type.getRank() >= 2}});
    }
    return json::Object{{"name", getGroupName(group.getSymName())},
                        {"count", int64_t(group.getRepeat())},
                        {"layer", group.getRepeat() > 1 || group->hasAttr(kLayerAttr)},
                        {"elements", group.getPaddedElements()},
                        {"chunks", group.getChunks()},
                        {"chunk_elements", group.getChunkElements()},
                        {"weight_type", train.string("weights", "f32")},
                        {"parameters", std::move(parameters)},
                        {"weights", idOf(Role::weights, group)},
                        {"low", idOf(Role::master, group)},
                        {"momentum", idOf(Role::momentum, group)},
                        {"variance", idOf(Role::variance, group)},
                        {"gradient", idOf(Role::gradients, group)}};
  }

  json::Value describeKernel(Operation *op) {
    json::Array buffers;
    ArrayRef<int32_t> counts = op->getAttrOfType<DenseI32ArrayAttr>(kBuffersAttr).asArrayRef();
    for (int kind = 0; kind < 3; ++kind) // read, updated, written
      for (int32_t i = 0; i < counts[kind]; ++i)
        buffers.push_back(json::Object{{"read", kind < 2}, {"write", kind > 0}});
    auto real = [&](StringRef name) {
      auto attr = op->getAttrOfType<FloatAttr>(name);
      return attr ? attr.getValueAsDouble() : 0.0;
    };
    return json::Object{{"name", SymbolTable::getSymbolName(op).getValue()},
                        {"buffers", std::move(buffers)},
                        {"workspace", integerAttr(op, kWorkspaceAttr)},
                        {"flops", real(kFlopsAttr)},
                        {"bytes", real(kBytesAttr)}};
  }

  static json::Value describeTraffic(StepOp step, StringRef attr) {
    json::Object result;
    auto traffic = step->getAttrOfType<DictionaryAttr>(attr);
    for (StringRef direction : {"read", "written", "to_device", "to_host"}) {
      json::Object bytes;
      if (auto roles = traffic ? traffic.getAs<DictionaryAttr>(direction) : DictionaryAttr())
        for (NamedAttribute role : roles)
          bytes[role.getName().getValue()] = cast<IntegerAttr>(role.getValue()).getInt();
      result[direction] = std::move(bytes);
    }
    return result;
  }

  json::Value describeOptimizer() {
    Config optimizer = train.section("optimizer");
    return json::Object{{"kind", optimizer.string("kind", "adamw")},
                        {"beta1", optimizer.real("beta1", 0.9)},
                        {"beta2", optimizer.real("beta2", 0.999)},
                        {"eps", optimizer.real("eps", 1e-8)},
                        {"weight_decay", optimizer.real("weight_decay")},
                        {"momentum", optimizer.real("momentum")},
                        {"clip", train.real("clip")},
                        {"rate", optimizer.string("rate", "constant")},
                        {"peak", optimizer.real("peak")},
                        {"floor", optimizer.real("floor")},
                        {"warmup", optimizer.integer("warmup")}};
  }

  json::Value describeTraining() {
    return json::Object{{"data", train.string("data")},
                        {"objective", train.string("objective", "next_token")},
                        {"mask_probability", train.real("mask_probability", 0.15)},
                        {"mask_token", train.integer("mask_token")},
                        {"vocab", train.integer("vocab")},
                        {"context", train.integer("context")},
                        {"micro_batch", train.integer("micro_batch")},
                        {"micro_batches", train.microBatches()},
                        {"steps", train.integer("steps")},
                        {"seed", train.integer("seed", 1)},
                        {"evaluate_every", train.integer("evaluate_every")},
                        {"evaluate_batches", train.integer("evaluate_batches")},
                        {"commit_every", train.integer("commit_every")},
                        {"commit_seconds", train.real("commit_seconds")},
                        {"commit_keep", train.integer("commit_keep", 1)},
                        {"nonfinite", train.string("nonfinite", "stop")}};
  }

  json::Value describeMachine() {
    json::Array ssds;
    if (auto list = machine.list("ssd"))
      for (Attribute attr : list) {
        Config path(cast<DictionaryAttr>(attr));
        ssds.push_back(json::Object{{"path", path.string("path")},
                                    {"read", path.integer("read")},
                                    {"write", path.integer("write")},
                                    {"both", path.integer("both")},
                                    {"latency", path.integer("latency")}});
      }
    json::Object rates;
    for (StringRef rate :
         {"compute", "device_bandwidth", "to_device", "to_host", "optimizer", "host_bandwidth"})
      rates[rate] = machine.integer(rate);
    return json::Object{{"name", machine.string("name")},
                        {"device", machine.string("device", "cpu")},
                        {"memory", machine.string("memory", "unified")},
                        {"device_memory", machine.integer("device_memory")},
                        {"host_memory", machine.integer("host_memory")},
                        {"threads", machine.integer("threads")},
                        {"rates", std::move(rates)},
                        {"ssd", std::move(ssds)}};
  }

  ModuleOp module;
  Config train, machine;
  llvm::StringMap<int64_t> ids;
};

} // namespace

std::string describeProgram(ModuleOp module) {
  return llvm::formatv("{0}", Describer(module).run()).str();
}

} // namespace boa
