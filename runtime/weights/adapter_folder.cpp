//===- adapter_folder.cpp - Adapters for PEFT -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/adapter_folder.h"

#include "runtime/abi/parts.h"
#include "runtime/weights/adapters.h"
#include "runtime/weights/folder_files.h"
#include "runtime/weights/parameter_names.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <cmath>
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

/// All tensors that have a name.
std::set<std::string> AllTensors(const Program &program, const ModelConfig &config) {
  std::set<std::string> tensors;
  for (const Group &group : program.groups)
    for (int64_t entry = 0; entry < CountWholes(group); ++entry)
      for (const Parameter &parameter : group.parameters)
        if (const std::string tensor = ExternalOf(entry, parameter).name; !tensor.empty())
          tensors.insert(InClass(config, ModuleOf(tensor)) + tensor.substr(tensor.rfind('.')));
  return tensors;
}

/// As short as it can be.
nlohmann::json ShortNumber(double value) {
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
          {"lora_alpha", ShortNumber(facts.adapter.alpha)},
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
  const auto prefix = [](const std::string &module) {
    return absl::StrCat("base_model.model.", module);
  };
  const std::set<std::string> names = AllTensors(program, config);
  std::set<std::string> all, saved;
  for (const std::string &tensor : names)
    all.insert(ModuleOf(tensor));
  std::set<std::string> others = all;
  std::vector<std::string> targets;
  for (const Adapted &weight : *adapted) {
    targets.push_back(InClass(config, weight.module));
    others.erase(targets.back());
    facts.adapter = weight.adapter;
    facts.rank = weight.rank;
    tensors.push_back(
        {absl::StrCat(prefix(targets.back()), ".lora_A.weight"), weight.entry, weight.down});
    tensors.push_back(
        {absl::StrCat(prefix(targets.back()), ".lora_B.weight"), weight.entry, weight.up});
  }
  for (const NamedParameter &whole : *wholes) {
    const std::string module = InClass(config, ModuleOf(whole.tensor));
    const std::string kind = whole.tensor.substr(whole.tensor.rfind('.'));
    saved.insert(module);
    tensors.push_back({prefix(module) + kind, whole.entry, whole.at});
    // In PEFT a copy of the embedding is one of the head, too, only if both are saved.
    if (const std::string head = HeadTiedTo(module);
        !head.empty() && !names.count(head + ".weight")) {
      saved.insert(head);
      tensors.push_back({prefix(head) + kind, whole.entry, whole.at});
    }
  }
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
