//===- peft_adapter.h - An adapter that PEFT saved --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A training may go on with the adapters of a folder: adapter_config.json and
// adapter_model.safetensors (LoRA of PEFT). Each key of the configuration is read, known to change
// nothing, or refused. The tensors say which modules have adapters.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_PEFT_ADAPTER_H
#define BOA_RUNTIME_WEIGHTS_PEFT_ADAPTER_H

#include "runtime/abi/program.h"
#include "runtime/weights/safetensors.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boa {

/// Ownership: it owns the open file. Threads: one. Errors name the folder, and the key or the
/// tensor.
class PeftAdapter {
public:
  /// Whether the folder has the configuration of an adapter.
  static bool Is(const std::string &folder);
  static absl::StatusOr<std::unique_ptr<PeftAdapter>> Open(const std::string &folder);

  const std::string &folder() const { return path; }
  /// As the spec of a model writes them, by the names of modules and without dropout:
  /// "lora(rank = 8, ...)". `all`: the model's tensors, "model.layers.*.self_attn.q_proj.weight".
  /// FailedPrecondition if it has not all modules that have adapters.
  absl::StatusOr<std::string> SettingsFor(const std::set<std::string> &all) const;
  /// Its share, "0.05"; empty if there is none.
  const std::string &dropout() const { return dropped; }
  /// The name or the folder of the model under it; may be empty.
  const std::string &base() const { return model; }

  /// Finds the tensor of each parameter that the program trains. FailedPrecondition if one is
  /// missing, has another shape, or is left over, or if adapters have another factor.
  absl::Status Match(const Program &);
  /// Of a program that was matched: whether it has the parameter, and its elements
  /// [first, first + count) in an entry.
  bool Has(int64_t group, int64_t parameter) const { return found.count({group, parameter}) > 0; }
  absl::Status Read(const Program &, int64_t group, int64_t entry, int64_t parameter, int64_t first,
                    int64_t count, float *values) const;

private:
  PeftAdapter(std::string folder, SafetensorsReader file)
      : path(std::move(folder)), file(std::move(file)) {}
  absl::Status ReadConfig();
  absl::Status ReadTensors();
  /// Refuses a name of `modules_to_save` without tensors. `modules`: of the tensors that are no
  /// part of LoRA.
  absl::Status CheckSaved(const std::set<std::string> &modules) const;
  /// Whether an embedding and a head were trained as one matrix.
  absl::StatusOr<bool> AreOne(const std::string &module, const std::string &head) const;
  /// Alpha and rsLoRA, where the program has others: what it expects and what the folder says.
  std::set<std::string> OtherFactors(const Program &) const;

  std::string path, dropped, model;
  SafetensorsReader file;
  int64_t rank = 0;
  double alpha = 0;
  bool rslora = false, ties = false;
  std::vector<std::string> modules_to_save;
  std::set<std::string> targets, saved; // modules, "model.layers.*.self_attn.q_proj"
  /// By the name in a folder of the base model: "layers.0.self_attn.q_proj.lora_A.weight".
  std::map<std::string, const Tensor *> tensors;
  /// By group and parameter: the tensor of each entry.
  std::map<std::pair<int64_t, int64_t>, std::vector<const Tensor *>> found;
};

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_PEFT_ADAPTER_H
