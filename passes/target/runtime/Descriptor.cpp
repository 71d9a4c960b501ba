//===- Descriptor.cpp -----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/target/runtime/Descriptor.h"

#include "dialect/Config.h"
#include "passes/kernels/Tables.h"
#include "passes/model/CanonicalText.h"
#include "runtime/abi/abi.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
namespace json = llvm::json;

namespace boa {
namespace {

class Describer {
public:
  explicit Describer(ModuleOp module)
      : module(module), train(module), machine(module), tables(getAllTables(module)) {}

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
    json::Object program{{"abi", BOA_ABI_VERSION},
                         {"name", train.model()},
                         {"schedule", scheduleInWords()},
                         {"delay", train.delay()},
                         {"storages", std::move(storageList)},
                         {"groups", std::move(groupList)},
                         {"kernels", std::move(kernelList)},
                         {"arena_device", device},
                         {"arena_host", total - device},
                         {"constants", integerAttr(module, kConstantsAttr)},
                         {"attention_scratch", integerAttr(module, kAttentionScratchAttr)},
                         {"traffic", std::move(traffic)},
                         {"optimizer", describeOptimizer()},
                         {"training", describeTraining()},
                         {"machine", describeMachine()}};
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

  std::string scheduleInWords() {
    bool updatesOnDevice =
        machine.isSeparate() && train.update() == Space::device; // else nobody can tell
    return llvm::formatv("{0}, {1} micro-batches of {2} sequences, delay {3}{4}{5}{6}",
                         stringifySchedule(train.schedule()), train.microBatches(),
                         train.micro_batch(), train.delay(),
                         train.compute() == ComputeType::bf16 ? ", computed in bf16" : "",
                         updatesOnDevice ? ", updated on the device" : "",
                         direct() ? ", SSDs past the host's memory" : "");
  }

  /// Of one memory nobody asks.
  bool direct() const { return machine.isSeparate() && machine.direct(); }

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

  json::Value describe(GroupOp group) {
    json::Array parameters;
    for (auto param : group.getBody().getOps<ParamOp>()) {
      RankedTensorType type = param.getType();
      parameters.push_back(json::Object{{"name", param.getSymName()},
                                        {"shape", json::Array(type.getShape())},
                                        {"offset", group.getOffset(param.getSymName())},
                                        {"init", stringifyInit(param.getInit())},
                                        {"init_scale", param.getScale().convertToDouble()},
                                        {"decay", type.getRank() >= 2}});
    }
    return json::Object{{"name", getGroupName(group.getSymName())},
                        {"count", int64_t(group.getRepeat())},
                        {"layer", group.getRepeat() > 1 || group->hasAttr(kLayerAttr)},
                        {"elements", group.getPaddedElements()},
                        {"chunks", group.getChunks()},
                        {"chunk_elements", group.getChunkElements()},
                        {"weight_type", stringifyWeightType(train.weights())},
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
    json::Object kernel{{"name", SymbolTable::getSymbolName(op).getValue()},
                        {"buffers", std::move(buffers)},
                        {"workspace", integerAttr(op, kWorkspaceAttr)},
                        {"flops", real(kFlopsAttr)},
                        {"flops_bf16", real(kFlopsBf16Attr)},
                        {"bytes", real(kBytesAttr)}};
    json::Array numbers;
    for (Attribute table : getTables(op))
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
    OptimizerSettings optimizer = train.optimizer();
    return json::Object{{"kind", stringifyOptimizerKind(optimizer.kind())},
                        {"beta1", optimizer.beta1()},
                        {"beta2", optimizer.beta2()},
                        {"eps", optimizer.eps()},
                        {"weight_decay", optimizer.weight_decay()},
                        {"momentum", optimizer.momentum()},
                        {"clip", train.clip()},
                        {"rate", stringifyRateKind(optimizer.rate())},
                        {"peak", optimizer.peak()},
                        {"floor", optimizer.floor()},
                        {"warmup", optimizer.warmup()},
                        {"space", stringifySpace(train.update())}};
  }

  json::Value describeTraining() {
    return json::Object{{"data", train.data()},
                        {"objective", stringifyObjective(train.objective())},
                        {"mask_probability", train.mask_probability()},
                        {"mask_token", train.mask_token()},
                        {"vocab", train.vocab()},
                        {"context", train.context()},
                        {"micro_batch", train.micro_batch()},
                        {"micro_batches", train.microBatches()},
                        {"steps", train.steps()},
                        {"seed", train.seed()},
                        {"evaluate_every", train.evaluate_every()},
                        {"evaluate_batches", train.evaluate_batches()},
                        {"commit_every", train.commit_every()},
                        {"commit_seconds", train.commit_seconds()},
                        {"commit_keep", train.commit_keep()},
                        {"nonfinite", stringifyNonfinite(train.nonfinite())},
                        {"compute", stringifyComputeType(train.compute())}};
  }

  json::Value describeMachine() {
    json::Array ssds;
    for (const SsdSettings &ssd : machine.ssd())
      ssds.push_back(json::Object{{"path", ssd.path()},
                                  {"read", ssd.read()},
                                  {"write", ssd.write()},
                                  {"both", ssd.both()},
                                  {"latency", ssd.latency()}});
    json::Object rates{{"compute", machine.compute()},
                       {"compute_bf16", machine.compute_bf16()},
                       {"device_bandwidth", machine.device_bandwidth()},
                       {"to_device", machine.to_device()},
                       {"to_host", machine.to_host()},
                       {"optimizer", machine.optimizer()},
                       {"host_bandwidth", machine.host_bandwidth()}};
    json::Object result{{"name", machine.name()},
                        {"device", stringifyDeviceKind(machine.device())},
                        {"memory", stringifyMemoryKind(machine.memory())},
                        {"direct", direct()},
                        {"device_memory", machine.device_memory()},
                        {"host_memory", machine.host_memory()},
                        {"threads", machine.threads()},
                        {"rates", std::move(rates)},
                        {"ssd", std::move(ssds)}};
    if (!machine.kernels().empty())
      result["kernels"] = machine.kernels();
    return result;
  }

  ModuleOp module;
  TrainConfig train;
  MachineConfig machine;
  const llvm::SetVector<Attribute> tables;
  llvm::StringMap<int64_t> ids;
};

} // namespace

std::string describeProgram(ModuleOp module) {
  return llvm::formatv("{0}", Describer(module).run()).str();
}

} // namespace boa
