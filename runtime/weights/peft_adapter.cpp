//===- peft_adapter.cpp - An adapter that PEFT saved ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/peft_adapter.h"

#include "runtime/abi/parts.h"
#include "runtime/io/folder_file.h"
#include "runtime/state/computation.h"
#include "runtime/weights/check_parameters.h"
#include "runtime/weights/config_reader.h"
#include "runtime/weights/family.h"
#include "runtime/weights/parameter_names.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace boa {
namespace {

constexpr char kConfig[] = "adapter_config.json", kTensors[] = "adapter_model.safetensors";
constexpr char kPrefix[] = "base_model.model.";
constexpr char kDown[] = ".lora_A.weight", kUp[] = ".lora_B.weight";
/// Elements that are compared at once.
constexpr int64_t kAtOnce = int64_t{1} << 20;

/// Keys of other kinds of adapters, which are off in plain LoRA.
constexpr std::pair<const char *, const char *> kOtherAdapters[] = {
    {"use_dora", "Boa has no DoRA"},
    {"use_qalora", "Boa has no QALoRA"},
    {"use_bdlora", "Boa has no BD-LoRA"},
    {"kasa_config", "Boa has no KaSA"},
    {"monteclora_config", "Boa has no MonteCLoRA"},
    {"velora_config", "Boa has no VeLoRA"},
    {"arrow_config", "Boa has no Arrow, which routes between adapters"},
    {"alora_invocation_tokens", "Boa has no aLoRA, whose adapters act behind these tokens alone"},
    {"lora_bias", "Boa's adapters have no bias"},
    {"target_parameters", "Boa's adapters are of the weights of linear modules alone"},
    {"trainable_token_indices", "Boa trains no single rows of an embedding"},
    {"layer_replication",
     "the model of the adapter has these layers several times, and Boa's once"},
    {"megatron_config", "the modules of Megatron are others than those of transformers"},
};

/// Names as a spec has them.
std::string InSpec(const std::set<std::string> &names) {
  return absl::StrCat("(\"", absl::StrJoin(names, "\", \""), "\")");
}

/// Whether a name can stand in a string of a spec.
bool FitsString(absl::string_view name) {
  return absl::c_none_of(
      name, [](char c) { return c == '"' || c == '\\' || absl::ascii_iscntrl(uint8_t(c)); });
}

/// Whether an entry of `modules_to_save` names the module, or one around it.
bool IsNamedBy(const std::string &name, const std::string &module) {
  return absl::EndsWith(module, name) || absl::StartsWith(module, name + ".") ||
         absl::StrContains(module, absl::StrCat(".", name, "."));
}

/// The name of a tensor as the class of transformers has it.
std::string InClass(const Tensor &tensor) {
  return std::string(absl::StripPrefix(tensor.name, kPrefix));
}

std::string TrainedApart(const std::string &embedding, const std::string &head) {
  return absl::StrCat(embedding, ": PEFT trained it apart from `", head,
                      "`, and in this model they are one matrix");
}

} // namespace

bool PeftAdapter::Is(const std::string &folder) {
  return !folder.empty() && !absl::IsNotFound(CheckFolderFile(folder, kConfig));
}

absl::StatusOr<std::unique_ptr<PeftAdapter>> PeftAdapter::Open(const std::string &folder) {
  if (absl::Status there = CheckFolderFile(folder, kTensors); absl::IsNotFound(there))
    return absl::NotFoundError(absl::StrCat("`", folder, "` has no ", kTensors,
                                            ": PEFT writes it with safe_serialization = True"));
  else if (!there.ok())
    return there;
  absl::StatusOr<SafetensorsReader> file =
      SafetensorsReader::Open(absl::StrCat(folder, "/", kTensors));
  if (!file.ok())
    return file.status();
  std::unique_ptr<PeftAdapter> adapter(new PeftAdapter(folder, *std::move(file)));
  absl::Status status = adapter->ReadConfig();
  if (status.ok())
    status = adapter->ReadTensors();
  if (!status.ok())
    return status;
  return adapter;
}

absl::Status PeftAdapter::ReadConfig() {
  absl::StatusOr<std::string> json = ReadFolderFile(path, kConfig);
  if (!json.ok())
    return json.status();
  absl::StatusOr<ConfigReader> parsed =
      ConfigReader::Parse(absl::StrCat(path, "/", kConfig), *json);
  if (!parsed.ok())
    return parsed.status();
  ConfigReader &reader = *parsed;
  if (const std::string type = reader.Word("peft_type", ""); type != "LORA")
    reader.Refuse("peft_type", absl::StrCat("`", type, "`: of PEFT's methods Boa has LORA alone"));
  rank = reader.Whole("r", std::nullopt, 1, int64_t(kMostRank));
  alpha = reader.Real("lora_alpha", std::nullopt, 1e-6, 1e6);
  rslora = reader.Flag("use_rslora", false);
  ties = reader.Flag("ensure_weight_tying", false);
  modules_to_save = reader.Words("modules_to_save");
  model = reader.Word("base_model_name_or_path", "");
  if (!reader.HasOnly("rank_pattern", double(rank)))
    reader.Refuse("rank_pattern", "Boa gives all adapters one rank");
  if (!reader.HasOnly("alpha_pattern", alpha))
    reader.Refuse("alpha_pattern", "Boa gives all adapters one alpha");
  if (const std::string bias = reader.Word("bias", "none"); bias != "none")
    reader.Refuse("bias", absl::StrCat("`", bias,
                                       "` trains the biases of the model, too, and Boa leaves them "
                                       "as they are: expected none"));
  for (const auto &[key, why] : kOtherAdapters)
    if (reader.IsOn(key))
      reader.Refuse(key, why);
  if (const double share = reader.Real("lora_dropout", 0, 0, 0.99); share > 0)
    dropped = nlohmann::json(share).dump();
  // All others change the model's own weights, too.
  const std::string init = reader.WordOrFlag("init_lora_weights", "true");
  if (init != "true" && init != "false" && init != "gaussian" && init != "orthogonal" &&
      init != "eva")
    reader.Refuse("init_lora_weights",
                  absl::StrCat("`", init,
                               "` changes the weights of the model, too: expected an "
                               "adapter that PEFT converted to plain LoRA"));
  // The tensors say which modules there are; some are of how A and B began.
  reader.Finish({"target_modules", "exclude_modules", "layers_to_transform", "layers_pattern",
                 "fan_in_fan_out", "task_type", "inference_mode", "revision", "auto_mapping",
                 "peft_version", "megatron_core", "runtime_config", "qalora_group_size",
                 "loftq_config", "eva_config", "corda_config", "lora_ga_config"});
  return reader.status();
}

absl::Status PeftAdapter::ReadTensors() {
  std::set<std::string> whole;
  for (const Tensor &tensor : file.tensors()) {
    absl::string_view in_class = tensor.name;
    const auto refuse = [&](const std::string &why) {
      return absl::FailedPreconditionError(
          absl::StrCat("`", path, "/", kTensors, "`: tensor `", tensor.name, "`: ", why));
    };
    if (!absl::ConsumePrefix(&in_class, kPrefix))
      return refuse(absl::StrCat("expected a name that begins with ", kPrefix));
    if (!FitsString(in_class))
      return refuse("expected a name without quotes, backslashes and control characters");
    if (!IsReadable(tensor))
      return refuse(absl::StrCat("it is ", tensor.dtype, ": expected F32, BF16 or F16"));
    const std::string module = ModuleOf(std::string(in_class));
    const Family *of_head = FamilyOfHead(module);
    // A head has a copy of a bias that folders have once.
    const bool is_bias = of_head && !of_head->head_bias.empty() && in_class == module + ".bias";
    const std::string own = is_bias ? of_head->head_bias : std::string(in_class);
    const std::string name = InBaseModel(own);
    if (!tensors.emplace(name, &tensor).second)
      return refuse("another tensor is of the same module");
    if (absl::EndsWith(name, kDown) || absl::EndsWith(name, kUp)) {
      targets.insert(OfAllLayers(ModuleOf(module)));
      continue;
    }
    if (!(ties && of_head) && // beside the embedding
        absl::c_none_of(modules_to_save,
                        [&](const std::string &entry) { return IsNamedBy(entry, module); }))
      return refuse("it is no part of LoRA, and `modules_to_save` does not name its module");
    whole.insert(module);
    saved.insert(OfAllLayers(ModuleOf(own)));
  }
  if (targets.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("`", path, "/", kTensors, "` has no lora_A and lora_B"));
  return CheckSaved(whole);
}

absl::Status PeftAdapter::CheckSaved(const std::set<std::string> &modules) const {
  for (const std::string &name : modules_to_save)
    if (absl::c_none_of(modules, [&](const std::string &module) {
          return IsNamedBy(name, module) || (ties && IsNamedBy(name, HeadTiedTo(module)));
        }))
      return absl::FailedPreconditionError(absl::StrCat(
          "`", path, "/", kConfig, "`: key `modules_to_save`: `", name, "` was trained, but ",
          kTensors, " has no tensor of it; remove the name if the model has no such module"));
  return absl::OkStatus();
}

absl::StatusOr<std::string> PeftAdapter::SettingsFor(const std::set<std::string> &all) const {
  std::set<std::string> whole = saved, modules;
  for (const std::string &tensor : all)
    modules.insert(InBaseModel(ModuleOf(tensor)));
  for (const std::string &module : saved) {
    const std::string head = HeadTiedTo(module);
    if (head.empty() || all.count(head + ".weight"))
      continue;
    absl::StatusOr<bool> one = AreOne(InBaseModel(module), head);
    if (!one.ok())
      return one.status();
    if (!*one)
      return absl::FailedPreconditionError(
          absl::StrCat("`", path, "/", kTensors, "`: ", TrainedApart(module, head)));
    if (!modules.count(head)) // which has no bias
      whole.erase(head);      // one parameter in a spec
  }
  std::vector<std::string> missing;
  for (const std::set<std::string> *names : {&targets, &std::as_const(whole)})
    for (const std::string &name : *names)
      if (!modules.count(InBaseModel(name)))
        missing.push_back(absl::StrCat("`", name, "`"));
  if (!missing.empty()) {
    constexpr size_t kShown = 5;
    const size_t shown = std::min(missing.size(), kShown);
    return absl::FailedPreconditionError(absl::StrCat(
        "`", path, "` has adapters of another model: this one has no module ",
        absl::StrJoin(missing.begin(), missing.begin() + shown, ", "),
        shown < missing.size() ? absl::StrCat(" and ", missing.size() - shown, " others") : ""));
  }
  return absl::StrCat("lora(rank = ", rank, ", alpha = ", nlohmann::json(alpha).dump(),
                      ", targets = ", InSpec(targets), rslora ? ", rslora = true" : "",
                      whole.empty() ? "" : ", modules_to_save = " + InSpec(whole), ")");
}

absl::StatusOr<bool> PeftAdapter::AreOne(const std::string &module, const std::string &head) const {
  const Tensor *pair[2] = {};
  for (auto [i, name] : {std::pair(0, module), std::pair(1, head)})
    if (auto it = tensors.find(absl::StrCat(name, ".weight")); it != tensors.end())
      pair[i] = it->second;
  if (!pair[1])
    return ties;
  if (!pair[0] || pair[0]->shape != pair[1]->shape)
    return false;
  std::vector<float> a(kAtOnce), b(kAtOnce);
  for (int64_t first = 0, all = pair[0]->elements(); first < all; first += kAtOnce) {
    const int64_t count = std::min(kAtOnce, all - first);
    absl::Status status = file.Read(*pair[0], first, count, a.data());
    if (status.ok())
      status = file.Read(*pair[1], first, count, b.data());
    if (!status.ok())
      return status;
    if (!std::equal(a.begin(), a.begin() + count, b.begin()))
      return false;
  }
  return true;
}

std::set<std::string> PeftAdapter::OtherFactors(const Program &program) const {
  std::set<std::string> mismatches;
  const auto word = [](bool is) { return is ? "true" : "false"; };
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters) {
      const Adapter &adapter = parameter.adapter;
      if (adapter.down.empty())
        continue;
      if (adapter.alpha != alpha)
        mismatches.insert(
            absl::StrCat("lora_alpha: expected ", adapter.alpha, " but found ", alpha));
      if (adapter.rslora != rslora)
        mismatches.insert(absl::StrCat("use_rslora: expected ", word(adapter.rslora), " but found ",
                                       word(rslora)));
    }
  return mismatches;
}

absl::Status PeftAdapter::Match(const Program &program) {
  // A program that was compiled before knows nothing of this folder.
  const std::set<std::string> factors = OtherFactors(program);
  std::vector<std::string> mismatches(factors.begin(), factors.end());
  std::set<std::string> used;
  const auto find = [&](const std::string &name, const std::vector<int64_t> &shape) {
    auto it = tensors.find(name);
    used.insert(name);
    if (it == tensors.end())
      mismatches.push_back(
          absl::StrCat(name, ": expected ", FormatShape(shape), " but found no such tensor"));
    else if (it->second->shape != shape)
      mismatches.push_back(absl::StrCat(it->second->name, ": expected ", FormatShape(shape),
                                        " but found ", FormatShape(it->second->shape)));
    return it == tensors.end() ? nullptr : it->second;
  };
  const std::vector<std::vector<bool>> parts = PartsOfAdapters(program);
  for (size_t g = 0; g < program.groups.size(); ++g)
    for (size_t p = 0; p < program.groups[g].parameters.size(); ++p) {
      const Group &group = program.groups[g];
      const Parameter &parameter = group.parameters[p];
      const Adapter &adapter = parameter.adapter;
      const bool frozen = IsFrozen(program.storages[size_t(group.weights)]);
      for (int64_t entry = 0; entry < CountWholes(group); ++entry) {
        const std::string name = InBaseModel(ExternalOf(entry, parameter).name);
        if (!adapter.down.empty())
          for (const auto &[of, end] :
               {std::pair(adapter.down, kDown), std::pair(adapter.up, kUp)}) {
            const ParameterIndex at = *FindParameter(program, group, of);
            found[{at.group, at.parameter}].push_back(
                find(ModuleOf(name) + end,
                     program.groups[size_t(at.group)].parameters[size_t(at.parameter)].shape));
          }
        if (frozen || parts[g][p])
          continue;
        const Tensor *tensor = find(name, Parts(group, parameter).WholeShape());
        found[{int64_t(g), int64_t(p)}].push_back(tensor);
        if (!tensor || !IsTiedTable(program.computation, group.name, parameter.name))
          continue;
        const std::string head = HeadTiedTo(ModuleOf(InClass(*tensor)));
        if (head.empty()) {
          mismatches.push_back(absl::StrCat(
              tensor->name, ": it is the head, too, and no table has the name of that in PEFT"));
          continue;
        }
        used.insert(absl::StrCat(head, ".weight"));
        absl::StatusOr<bool> one = AreOne(ModuleOf(name), head);
        if (!one.ok())
          return one.status();
        if (!*one)
          mismatches.push_back(TrainedApart(name, head));
      }
    }
  for (const auto &[name, tensor] : tensors)
    if (!used.count(name))
      mismatches.push_back(absl::StrCat(tensor->name, ": the model has no such parameter"));
  return DescribeMismatches(program, path, mismatches);
}

absl::Status PeftAdapter::Read(const Program &program, int64_t group, int64_t entry,
                               int64_t parameter, int64_t first, int64_t count,
                               float *values) const {
  const std::vector<const Tensor *> &entries = found.at({group, parameter});
  const Group &of = program.groups[size_t(group)];
  return Parts(of, of.parameters[size_t(parameter)])
      .ForEachOfPart(entry, first, count, [&](int64_t whole, int64_t begin, int64_t elements) {
        const Tensor &tensor = *entries[size_t(whole)];
        absl::Status status = file.Read(tensor, begin, elements, values);
        if (status.ok() && !std::all_of(values, values + elements,
                                        [](float value) { return std::isfinite(value); }))
          status = absl::InvalidArgumentError(absl::StrCat(
              "`", path, "/", kTensors, "`: tensor `", tensor.name, "`: expected finite weights"));
        values += elements;
        return status;
      });
}

} // namespace boa
