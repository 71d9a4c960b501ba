//===- model_config.cpp - The configuration of a model --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A key is read, known to change nothing, null, false or empty, or refused. Defaults are those of
// transformers, which newer versions do not write out.
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/model_config.h"

#include "runtime/io/folder_file.h"
#include "runtime/weights/config_reader.h"
#include "runtime/weights/config_table.h"
#include "runtime/weights/gguf_config.h"
#include "runtime/weights/weight_files.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace boa {
namespace {

void RefuseQuantized(ConfigReader &reader) {
  if (reader.Has("quantization_config"))
    reader.Refuse("quantization_config", "expected weights that are not quantized");
}

void RefuseCode(ConfigReader &reader) {
  if (reader.Has("auto_map"))
    reader.Refuse("auto_map", "the model brings code of its own, which Boa does not run");
}

/// Finds the family, by the class that the weights were saved from. Whether Boa has it, so that its
/// keys are known.
bool ReadFamily(ConfigReader &reader, ModelConfig &config) {
  RefuseQuantized(reader);
  const std::vector<std::string> classes = reader.Words("architectures");
  const std::string type = reader.Word("model_type", "");
  std::vector<std::string> known;
  for (const Family &family : Families()) {
    known.push_back(family.architecture);
    if (type != family.name &&
        !(type.empty() && !classes.empty() && classes[0] == family.architecture))
      continue;
    if (classes.size() > 1 || (classes.size() == 1 && classes[0] != family.architecture))
      reader.Refuse("architectures",
                    absl::StrCat("`", absl::StrJoin(classes, "`, `"), "`: of this model Boa has ",
                                 family.architecture, " alone"));
    config.family = &family;
    config.architecture = family.architecture;
    const std::vector<std::string> &harmless = family.harmless;
    if (std::find(harmless.begin(), harmless.end(), "auto_map") == harmless.end())
      RefuseCode(reader);
    return true;
  }
  RefuseCode(reader);
  reader.RefuseForm(type.empty() ? "architectures" : "model_type",
                    absl::StrCat("`", type.empty() ? absl::StrJoin(classes, "`, `") : type,
                                 "` is no model that Boa imports: ", absl::StrJoin(known, ", ")));
  return false;
}

void ReadType(ConfigReader &reader, ModelConfig &config) {
  const std::string older = reader.Word("torch_dtype", "");
  const std::string type = reader.Word("dtype", older.empty() ? "float32" : older);
  if (!older.empty() && older != type)
    reader.Refuse("torch_dtype", absl::StrCat("it is ", older, ", but `dtype` is ", type,
                                              ", and both name the same; remove the wrong one"));
  config.bf16 = type == "bfloat16";
  if (!config.bf16 && type != "float32" && type != "float16")
    reader.Refuse("dtype", absl::StrCat("`", type, "`: expected float32, bfloat16 or float16"));
}

/// For messages.
std::string ConfigPath(const std::string &folder) {
  return IsGgufName(folder) ? folder : absl::StrCat(folder, "/config.json");
}

/// Reads all that a table says. Whether one has the model; faults come into the reader.
bool ReadKnown(ConfigReader &reader, ModelConfig &config) {
  if (!ReadFamily(reader, config))
    return false;
  config.values["deviation"] = reader.Real("initializer_range", 0.02, 0, 1e6);
  ReadType(reader, config);
  ReadByTable(reader, config);
  return true;
}

absl::StatusOr<ConfigReader> OpenConfig(const std::string &folder) {
  absl::StatusOr<std::string> text = ModelConfigText(folder);
  if (!text.ok())
    return text.status();
  return ConfigReader::Parse(ConfigPath(folder), *text);
}

} // namespace

absl::StatusOr<std::string> ModelConfigText(const std::string &folder) {
  if (IsGgufName(folder))
    return ConfigOfGguf(folder);
  std::error_code error;
  if (!std::filesystem::exists(folder, error) && !error)
    return absl::NotFoundError(
        absl::StrCat("there is no folder `", folder,
                     "`; a model is read from a folder or a GGUF file, and none "
                     "is downloaded"));
  return ReadFolderFile(folder, "config.json");
}

absl::StatusOr<ModelConfig> ReadModelConfig(const std::string &folder) {
  absl::StatusOr<ConfigReader> reader = OpenConfig(folder);
  if (!reader.ok())
    return reader.status();
  ModelConfig config;
  if (!ReadKnown(*reader, config))
    reader->RefuseLacking();
  if (!reader->status().ok())
    return reader->status();
  return config;
}

absl::StatusOr<ModelConfig> ReadAnyConfig(const std::string &folder) {
  absl::StatusOr<ConfigReader> reader = OpenConfig(folder);
  if (!reader.ok())
    return reader.status();
  ModelConfig config;
  if (ReadKnown(*reader, config)) {
    if (!reader->status().ok())
      return reader->status();
    return config;
  }
  config.unknown = std::string(reader->status().message());
  // Again, for what no model may have.
  reader = OpenConfig(folder);
  if (!reader.ok())
    return reader.status();
  const std::vector<std::string> classes = reader->Words("architectures");
  config.architecture = classes.empty() ? reader->Word("model_type", "") : classes[0];
  if (config.architecture.empty())
    reader->Refuse("architectures", "expected the class of the model");
  if (reader->Has("tie_word_embeddings"))
    config.values["tied"] = reader->Flag("tie_word_embeddings", false);
  RefuseQuantized(*reader);
  reader->RefuseLacking();
  if (!reader->status().ok())
    return reader->status();
  return config;
}

std::string ShortNumber(double value) {
  constexpr double kWhole = 1e15;
  if (value == std::floor(value) && std::abs(value) < kWhole)
    return absl::StrCat(int64_t(value));
  char digits[40];
  return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

absl::StatusOr<std::string> ModelConfigWithType(const std::string &folder, bool bf16) {
  absl::StatusOr<std::string> text = ModelConfigText(folder);
  if (!text.ok())
    return text.status();
  return ForExport(ConfigPath(folder), *text, bf16 ? "bfloat16" : "float32");
}

} // namespace boa
