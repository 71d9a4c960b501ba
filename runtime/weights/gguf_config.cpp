//===- gguf_config.cpp - The configuration in a GGUF file -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/gguf_config.h"

#include "runtime/formats/gguf.h"
#include "runtime/weights/family.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

namespace boa {
namespace {

using Json = nlohmann::ordered_json;

/// As in config.json.
constexpr int64_t kWidestHead = 65536;

/// A number that was stored as f32, with as few digits as tell it from others.
double Shortest(double value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof(digits), float(value));
  double text = value;
  std::from_chars(digits, end.ptr, text);
  return text;
}

class GgufConfig {
public:
  GgufConfig(const GgufFile &file, const Family &family)
      : file(file), family(family), architecture(family.gguf.architecture) {}

  absl::StatusOr<std::string> Run() {
    Json config;
    config["architectures"] = {family.architecture};
    config["model_type"] = family.name;
    ReadKeys(config);
    for (const ConfigKey &key : family.keys) {
      if (key.kind == ConfigKey::Kind::dropout)
        config[key.key] = 0.0;
      if (key.kind == ConfigKey::Kind::rotary)
        Rotary(config, Head(config));
      if (key.kind == ConfigKey::Kind::window)
        Window(config, key);
    }
    if (Whole("expert_count", 0) != 0)
      Refuse(Full("expert_count"), "Boa has no experts");
    config["vocab_size"] = Vocab();
    config["tie_word_embeddings"] = !Find("output.weight");
    config["torch_dtype"] = Dtype();
    for (auto [key, name] : {std::pair("bos_token_id", "tokenizer.ggml.bos_token_id"),
                             std::pair("eos_token_id", "tokenizer.ggml.eos_token_id")})
      if (const int64_t token = file.Number(name, -1); token >= 0)
        config[key] = token;
    CheckRest();
    if (!unreadable.ok())
      return unreadable;
    if (faults.size() == 1)
      return absl::InvalidArgumentError(absl::StrCat("`", file.path(), "`: ", faults[0]));
    if (!faults.empty())
      return absl::InvalidArgumentError(absl::StrCat("`", file.path(), "`: ", faults.size(),
                                                     " faults\n  ", absl::StrJoin(faults, "\n  ")));
    return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

private:
  void Refuse(const std::string &key, const std::string &why) {
    if (refused.insert(key).second)
      faults.push_back(absl::StrCat("key `", absl::CHexEscape(key), "`: ", why));
  }
  std::string Full(const char *key) const { return absl::StrCat(architecture, ".", key); }
  bool Has(const char *key) const { return file.Find(Full(key)) != nullptr; }

  /// A key that must be there unless it has a fallback.
  int64_t Whole(const char *key, std::optional<int64_t> fallback = std::nullopt) {
    read.insert(Full(key));
    const int64_t value = file.Number(Full(key), -1);
    if (value < 0 && !Has(key) && fallback)
      return *fallback;
    if (value < 0)
      Refuse(Full(key), Has(key) ? "expected one whole number, the same for all layers"
                                 : "expected a whole number but found none");
    return std::max<int64_t>(value, 0);
  }
  double Real(const char *key, std::optional<double> fallback = std::nullopt) {
    read.insert(Full(key));
    const GgufValue *value = file.Find(Full(key));
    if (!value && fallback)
      return *fallback;
    if (!value || value->is_list || value->is_text || value->is_flag ||
        !std::isfinite(value->numbers[0])) {
      Refuse(Full(key), "expected a number");
      return 0;
    }
    return Shortest(value->numbers[0]);
  }

  const GgufTensor *Find(const std::string &name) const {
    for (const GgufTensor &tensor : file.tensors())
      if (tensor.name == name)
        return &tensor;
    return nullptr;
  }

  /// That of the embedding, which may be padded beyond the tokens.
  int64_t Vocab() {
    const GgufTensor *table = Find("token_embd.weight");
    const int64_t rows = table && !table->shape.empty() ? table->shape[0] : 0;
    if (const int64_t said = Whole("vocab_size", rows); said != rows)
      Refuse(Full("vocab_size"), absl::StrCat("expected the ", rows, " rows of token_embd.weight"));
    return rows;
  }

  /// The type in which weights are trained. Quantised ones become f32.
  const char *Dtype() const {
    std::set<std::string> types;
    for (const GgufTensor &tensor : file.tensors())
      if (tensor.shape.size() > 1)
        types.insert(tensor.type);
    if (types == std::set<std::string>{"BF16"})
      return "bfloat16";
    return types == std::set<std::string>{"F16"} ? "float16" : "float32";
  }

  void ReadKeys(Json &config) {
    for (const GgufForm::Name &key : family.gguf.keys) {
      const ConfigKey &row = *family.Find(key.there);
      if (row.kind == ConfigKey::Kind::real)
        config[key.there] = Real(key.here);
      else if (row.value != "kv_heads" || Has(key.here))
        config[key.there] = Whole(key.here);
      else // as many as there are
        config[key.there] = Whole("attention.head_count");
    }
    for (const GgufForm::Name &flag : family.gguf.flags)
      if (family.Find(flag.there))
        config[flag.there] = Find(flag.here) != nullptr;
  }

  /// The width of a head. Without a key it follows from others.
  int64_t Head(Json &config) {
    const int64_t heads = Whole("attention.head_count"), width = Whole("embedding_length");
    const int64_t head = Whole("attention.key_length", heads > 0 ? width / heads : 0);
    if (Has("attention.key_length") || family.Find("head_dim")->formula.empty())
      config["head_dim"] = head;
    for (const char *key : {"attention.value_length", "rope.dimension_count"})
      if (Whole(key, head) != head && faults.empty()) // else it may follow from another fault
        Refuse(Full(key), absl::StrCat("expected ", head, ", the width of a head"));
    return head;
  }

  /// 0 is none.
  void Window(Json &config, const ConfigKey &key) {
    const int64_t window = Whole("attention.sliding_window", 0);
    if (key.window == ConfigKey::Window::always)
      config[key.key] = window > 0 ? Json(window) : Json();
    else if (window != 0)
      Refuse(Full("attention.sliding_window"), "which layers have the window is not in the file");
  }

  void Rotary(Json &config, int64_t head) {
    config["rope_theta"] = Real("rope.freq_base", 10000);
    // As llama.cpp has it, positions are linear unless the file says another.
    const std::string type = Full("rope.scaling.type");
    const std::string kind = file.Find(type) ? file.Text(type) : "linear";
    read.insert(type);
    const double factor = Real("rope.scaling.factor", 1);
    const int64_t context = Whole("rope.scaling.original_context_length", 0);
    if (kind.empty())
      Refuse(type, "expected a text");
    else if (kind == "none" && factor != 1)
      Refuse(Full("rope.scaling.factor"), "the rotary positions none have no factor");
    else if (kind != "none" && kind != "linear")
      Refuse(type, absl::StrCat("`", absl::CHexEscape(kind),
                                "`: Boa has the rotary positions none and linear, and those "
                                "of Llama 3, which are a tensor"));
    const bool is_scaled = kind == "linear" && factor != 1;
    if (is_scaled)
      config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
    const GgufTensor *divisors = Find("rope_freqs.weight");
    if (!divisors)
      return;
    if (is_scaled)
      return Refuse("rope_freqs.weight", absl::StrCat("expected no divisors beside a factor of ",
                                                      factor, " for all frequencies"));
    if (divisors->elements() != head / 2 || head > kWidestHead)
      return Refuse("rope_freqs.weight", absl::StrCat("expected ", head / 2, " numbers"));
    std::vector<float> found(size_t(std::max<int64_t>(head / 2, 0)));
    if (absl::Status status = file.Read(*divisors, 0, head / 2, found.data()); !status.ok()) {
      unreadable = status;
      return;
    }
    Llama3(config, found, config["rope_theta"].get<double>(), context > 0 ? context : 8192);
  }

  /// The file has the divisors of the frequencies, and not the settings that they come from. All
  /// published models have `low` and `high` of 1 and 4. The greatest divisor is the factor.
  void Llama3(Json &config, const std::vector<float> &found, double base, int64_t context) {
    constexpr double low = 1, high = 4;
    const double factor = found.empty() ? 1 : *std::max_element(found.begin(), found.end());
    for (size_t i = 0; i < found.size(); ++i) {
      const double wave = 2 * M_PI * std::pow(base, double(i) / double(found.size()));
      const double smooth = std::clamp((double(context) / wave - low) / (high - low), 0.0, 1.0);
      const double expected = 1 / ((1 - smooth) / factor + smooth);
      if (!(std::abs(found[i] - expected) <= 1e-3 * expected))
        return Refuse("rope_freqs.weight",
                      absl::StrCat("number ", i, " is ", found[i], ", but ", expected,
                                   " for the positions of Llama 3 with factor ", factor,
                                   " and an original context of ", context));
    }
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", Shortest(factor)},
                              {"low_freq_factor", low},
                              {"high_freq_factor", high},
                              {"original_max_position_embeddings", context}};
  }

  /// Keys of the architecture decide what it computes. All others describe the file or its
  /// tokens.
  void CheckRest() {
    for (const std::string &key : file.Keys())
      if (absl::StartsWith(key, architecture + ".") && !read.count(key))
        Refuse(key, "Boa does not know it, and it may change the computation");
  }

  const GgufFile &file;
  const Family &family;
  const std::string architecture;
  std::set<std::string> read, refused; // keys
  std::vector<std::string> faults;
  absl::Status unreadable; // the file
};

} // namespace

absl::StatusOr<std::string> ConfigOfGguf(const std::string &path) {
  absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  if (!file.ok())
    return file.status();
  const std::string architecture = file->Text("general.architecture");
  const Family *family = FamilyOfGguf(architecture);
  if (!family)
    return absl::UnimplementedError(
        absl::StrCat("`", path, "`: `general.architecture` is `", absl::CHexEscape(architecture),
                     "`: of GGUF files Boa imports ", GgufArchitectures()));
  return GgufConfig(*file, *family).Run();
}

} // namespace boa
