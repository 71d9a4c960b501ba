//===- adapter_folder.cpp - Adapters for PEFT -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/adapter_folder.h"

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
/// name of the base out.
std::string InClass(const ModelConfig &config, const std::string &module) {
  const bool gpt2 = config.family == Family::gpt2, bert = config.family == Family::bert;
  const char *base = gpt2 ? "transformer." : bert ? "bert." : "model.";
  const bool whole = absl::StartsWith(module, base) || module == "lm_head" ||
                     (bert && absl::StartsWith(module, "cls."));
  return whole ? module : absl::StrCat(base, module);
}

/// The modules of all other weights that have a name.
std::vector<std::string> OtherModules(const Program &program) {
  std::vector<std::string> modules;
  for (const Group &group : program.groups)
    for (int64_t entry = 0; entry < group.count; ++entry)
      for (const Parameter &parameter : group.parameters) {
        const std::string name = ExternalOf(entry, parameter).name;
        absl::string_view module = name;
        if (parameter.adapter.down.empty() && absl::ConsumeSuffix(&module, ".weight"))
          modules.emplace_back(module);
      }
  return modules;
}

/// As short as it can be.
nlohmann::json ShortNumber(double value) {
  if (value == std::floor(value))
    return int64_t(value);
  return value;
}

nlohmann::json AdapterConfig(const ModelConfig &config, const AdapterFolder &options, int64_t rank,
                             double alpha, std::vector<std::string> targets) {
  using Json = nlohmann::json;
  const Json none;
  return {{"peft_type", "LORA"},
          {"task_type", config.family == Family::bert ? none : Json("CAUSAL_LM")},
          {"base_model_name_or_path", options.base.empty() ? none : Json(options.base)},
          {"revision", none},
          {"inference_mode", true},
          {"r", rank},
          {"lora_alpha", ShortNumber(alpha)},
          {"lora_dropout", 0.0},
          {"target_modules", std::move(targets)},
          {"fan_in_fan_out", config.family == Family::gpt2}, // its Conv1D has [in, out]
          {"bias", "none"},
          {"init_lora_weights", true},
          {"use_rslora", false},
          {"use_dora", false},
          {"modules_to_save", none},
          {"layers_to_transform", none},
          {"layers_pattern", none},
          {"rank_pattern", Json::object()},
          {"alpha_pattern", Json::object()}};
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
  for (const std::string &target : targets) {
    size_t at = target.rfind('.') + 1; // 0 without a dot
    while (at > 0 && taken.count(target.substr(at)))
      at = at < 2 ? 0 : target.rfind('.', at - 2) + 1;
    found.insert(target.substr(at));
  }
  return {found.begin(), found.end()};
}

absl::StatusOr<WrittenAdapters> ExportAdapterFolder(const Program &program,
                                                    const ModelConfig &config,
                                                    const AdapterFolder &options, bool bf16) {
  absl::StatusOr<std::vector<Adapted>> adapted = FindAdapted(program);
  if (!adapted.ok())
    return adapted.status();
  // The language gives all of them one rank and one alpha.
  const Adapted &first = adapted->front();
  const Group &group = program.groups[size_t(first.group)];
  const ParameterIndex down = first.down;
  const int64_t rank =
      program.groups[size_t(down.group)].parameters[size_t(down.parameter)].shape[0];
  double alpha = 0;
  for (const Parameter &parameter : group.parameters)
    if (!parameter.adapter.down.empty())
      alpha = parameter.adapter.alpha;
  std::vector<std::string> targets, others;
  for (const Adapted &weight : *adapted)
    targets.push_back(InClass(config, weight.module));
  for (const std::string &module : OtherModules(program))
    others.push_back(InClass(config, module));
  const nlohmann::json json =
      AdapterConfig(config, options, rank, alpha, FindTargetModules(targets, others));

  if (absl::Status status = SystemFiles().MakeDirectory(options.folder);
      !status.ok() && !absl::IsAlreadyExists(status))
    return status;
  absl::StatusOr<int64_t> bytes =
      ExportAdapters(SystemFiles(), program, options.state,
                     absl::StrCat(options.folder, "/adapter_model.safetensors"), bf16,
                     [&](const std::string &module) {
                       return absl::StrCat("base_model.model.", InClass(config, module));
                     });
  if (!bytes.ok())
    return bytes.status();
  // It makes the folder complete.
  absl::Status status =
      WriteSmallFile(absl::StrCat(options.folder, "/adapter_config.json"), json.dump(2) + "\n");
  if (!status.ok())
    return status;
  return WrittenAdapters{int64_t(targets.size()), rank, *bytes};
}

} // namespace boa
