//===- adapter_folder.cpp - Adapters for PEFT -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/adapter_folder.h"

#include "runtime/abi/parts.h"
#include "runtime/state/computation.h"
#include "runtime/weights/adapters.h"
#include "runtime/weights/folder_files.h"
#include "runtime/weights/parameter_names.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace boa {
namespace {

/// A module as the class of transformers names it. Folders of a model without its head leave the
/// name of the base out. What a folder of another model leaves out is not known.
std::string InClass(const ModelConfig &config, const std::string &module) {
  if (!config.family)
    return module;
  const Family &family = *config.family;
  const bool is_whole =
      absl::StartsWith(module, family.base) ||
      std::any_of(family.heads.begin(), family.heads.end(), [&](const std::string &head) {
        return module == head || (absl::EndsWith(head, ".") && absl::StartsWith(module, head));
      });
  return is_whole ? module : absl::StrCat(family.base, module);
}

/// All parameters that have a name, by that of their tensor in the class.
using TensorsByName = std::map<std::string, NamedParameter>;
TensorsByName AllTensors(const Program &program, const ModelConfig &config) {
  TensorsByName tensors;
  for (size_t g = 0; g < program.groups.size(); ++g) {
    const Group &group = program.groups[g];
    for (int64_t entry = 0; entry < CountWholes(group); ++entry)
      for (size_t p = 0; p < group.parameters.size(); ++p)
        if (const std::string tensor = ExternalOf(entry, group.parameters[p]).name; !tensor.empty())
          tensors[InClass(config, ModuleOf(tensor)) + tensor.substr(tensor.rfind('.'))] = {
              tensor, entry, {int64_t(g), int64_t(p)}};
  }
  return tensors;
}

std::string InPeft(const std::string &module) { return absl::StrCat("base_model.model.", module); }

/// In PEFT a copy of the table is one of the head, too, only if both are saved, each as a whole.
void SaveTiedHead(const Family &family, const TensorsByName &named, std::set<std::string> &saved,
                  std::vector<NamedParameter> &tensors) {
  const std::string table = absl::StrCat(family.base, family.first);
  const bool has_bias = saved.count(family.tied_head) > 0; // it is trained
  if (!has_bias && !saved.count(ModuleOf(table)))
    return;
  saved.insert(family.tied_head);
  const auto add = [&](const char *kind, const std::string &of) {
    if (auto found = named.find(of); found != named.end())
      tensors.push_back({InPeft(family.tied_head) + kind, found->second.entry, found->second.at});
  };
  add(".weight", table);
  if (!has_bias)
    add(".bias", family.head_bias);
}

/// Without a table nobody knows by which name PEFT has the head.
absl::Status RefuseTiedTable(const Program &program, const ModelConfig &config,
                             const std::vector<NamedParameter> &wholes) {
  for (const NamedParameter &whole : wholes) {
    const Group &group = program.groups[size_t(whole.at.group)];
    const Parameter &parameter = group.parameters[size_t(whole.at.parameter)];
    if (!config.family && IsTiedTable(program.computation, group.name, parameter.name))
      return absl::FailedPreconditionError(absl::StrCat(
          "parameter ", group.name, ".", parameter.name,
          " is trained as a whole, and it is the head, too: PEFT saves the head by a name of its "
          "own, and no table has that of ",
          config.architecture, "; without --adapter all weights go out"));
  }
  return absl::OkStatus();
}

/// As short as it can be.
nlohmann::json JsonNumber(double value) {
  if (value == std::floor(value))
    return int64_t(value);
  return value;
}

/// What adapter_config.json says.
struct AdapterFacts {
  int64_t rank = 0;
  Adapter adapter; // any of them: the language gives all of them one alpha
  double dropout = 0;
  std::vector<std::string> targets, saved;
};

nlohmann::json AdapterConfig(const ModelConfig &config, const AdapterFolder &options,
                             AdapterFacts facts) {
  using Json = nlohmann::json;
  const Json none;
  const bool makes_text = absl::EndsWith(config.architecture, "ForCausalLM") ||
                          absl::EndsWith(config.architecture, "LMHeadModel");
  return {{"peft_type", "LORA"},
          {"task_type", makes_text ? Json("CAUSAL_LM") : none},
          {"base_model_name_or_path", options.base.empty() ? none : Json(options.base)},
          {"revision", none},
          {"inference_mode", true},
          {"r", facts.rank},
          {"lora_alpha", JsonNumber(facts.adapter.alpha)},
          {"lora_dropout", facts.dropout},
          {"target_modules", std::move(facts.targets)},
          {"fan_in_fan_out", !facts.adapter.transposed}, // of Conv1D, which has [in, out]
          {"bias", "none"},
          {"init_lora_weights", true},
          {"use_rslora", facts.adapter.rslora},
          {"use_dora", false},
          {"modules_to_save", facts.saved.empty() ? none : Json(std::move(facts.saved))},
          {"layers_to_transform", none},
          {"layers_pattern", none},
          {"rank_pattern", Json::object()},
          {"alpha_pattern", Json::object()}};
}

/// PEFT saves the modules whose names end in one of modules_to_save, even within a word: the
/// shortest such ends of `saved` that begin with a word and name no other of `all`.
std::vector<std::string> FindModulesToSave(const std::set<std::string> &saved,
                                           const std::set<std::string> &all) {
  std::set<std::string> found;
  for (const std::string &module : saved)
    found.insert(ShortestEnd(module, [&](const std::string &end) {
      return std::any_of(all.begin(), all.end(), [&](const std::string &other) {
        return !saved.count(other) && absl::EndsWith(other, end);
      });
    }));
  return {found.begin(), found.end()};
}

} // namespace

std::vector<std::string> FindTargetModules(const std::vector<std::string> &targets,
                                           const std::vector<std::string> &others) {
  // All ends of the others, in whole names.
  std::set<std::string> taken;
  for (const std::string &other : others)
    for (size_t at = 0;; ++at) {
      taken.insert(other.substr(at));
      if (at = other.find('.', at); at == std::string::npos)
        break;
    }
  std::set<std::string> found;
  for (const std::string &target : targets)
    found.insert(ShortestEnd(target, [&](const std::string &end) { return taken.count(end) > 0; }));
  return {found.begin(), found.end()};
}

absl::StatusOr<WrittenAdapters> ExportAdapterFolder(const Program &program,
                                                    const ModelConfig &config,
                                                    const AdapterFolder &options, bool bf16) {
  absl::StatusOr<std::vector<Adapted>> adapted = FindAdapted(program);
  if (!adapted.ok())
    return adapted.status();
  absl::StatusOr<std::vector<NamedParameter>> wholes = FindTrainedWhole(program);
  if (!wholes.ok())
    return wholes.status();
  AdapterFacts facts;
  facts.dropout = program.train.adapter_dropout;
  std::vector<NamedParameter> tensors;
  if (absl::Status status = RefuseTiedTable(program, config, *wholes); !status.ok())
    return status;
  const TensorsByName named = AllTensors(program, config);
  const bool is_tied = config.family && !named.count(config.family->tied_head + ".weight");
  std::set<std::string> all, saved;
  for (const auto &[tensor, parameter] : named)
    all.insert(ModuleOf(tensor));
  std::set<std::string> others = all;
  std::vector<std::string> targets;
  for (const Adapted &weight : *adapted) {
    targets.push_back(InClass(config, weight.module));
    others.erase(targets.back());
    facts.adapter = weight.adapter;
    facts.rank = weight.rank;
    tensors.push_back(
        {absl::StrCat(InPeft(targets.back()), ".lora_A.weight"), weight.entry, weight.down});
    tensors.push_back(
        {absl::StrCat(InPeft(targets.back()), ".lora_B.weight"), weight.entry, weight.up});
  }
  for (const NamedParameter &whole : *wholes) {
    std::string module = InClass(config, ModuleOf(whole.tensor));
    const std::string kind = whole.tensor.substr(whole.tensor.rfind('.'));
    if (is_tied && module + kind == config.family->head_bias)
      module = config.family->tied_head;
    saved.insert(module);
    tensors.push_back({InPeft(module) + kind, whole.entry, whole.at});
  }
  if (is_tied)
    SaveTiedHead(*config.family, named, saved, tensors);
  facts.targets = FindTargetModules(targets, {others.begin(), others.end()});
  facts.saved = FindModulesToSave(saved, all);
  const int64_t rank = facts.rank;
  const nlohmann::json json = AdapterConfig(config, options, std::move(facts));

  if (absl::Status status = SystemFiles().MakeDirectory(options.folder);
      !status.ok() && !absl::IsAlreadyExists(status))
    return status;
  absl::StatusOr<int64_t> bytes =
      ExportTensors(SystemFiles(), program, options.state,
                    absl::StrCat(options.folder, "/adapter_model.safetensors"), bf16, tensors);
  if (!bytes.ok())
    return bytes.status();
  // It makes the folder complete.
  absl::Status status =
      WriteSmallFile(absl::StrCat(options.folder, "/adapter_config.json"), json.dump(2) + "\n");
  if (!status.ok())
    return status;
  return WrittenAdapters{int64_t(targets.size()), int64_t(saved.size()), rank, *bytes};
}

} // namespace boa
