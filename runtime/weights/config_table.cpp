//===- config_table.cpp - A configuration by its family's table -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fault that follows from another one is not told: a value that was refused is compared with
// no other.
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/config_table.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace boa {
namespace {

using Kind = ConfigKey::Kind;

/// How frequencies of rotary positions are stretched to longer texts.
struct RopeScaling {
  enum class Kind { none, linear, llama3 } kind = Kind::none;
  double factor = 1, low = 1, high = 1;
  int64_t context = 0; // that the model was trained with before

  bool operator==(const RopeScaling &other) const {
    return kind == other.kind && factor == other.factor && low == other.low && high == other.high &&
           context == other.context;
  }
};

/// One of the objects that tell how positions are rotated. Refuses what Boa does not have.
RopeScaling ReadScaling(ConfigReader &rope) {
  RopeScaling scaling;
  const std::string older = rope.Word("type", "default");
  const std::string type = rope.Word("rope_type", older);
  if (rope.Has("type") && type != older)
    rope.Refuse("type", absl::StrCat("it is ", older, ", but `rope_type` is ", type,
                                     ", and both name the same; remove the wrong one"));
  if (rope.Real("partial_rotary_factor", 1, 0, 1) != 1)
    rope.Refuse("partial_rotary_factor", "expected all of each head to be rotated");
  if (type == "linear") {
    scaling.kind = RopeScaling::Kind::linear;
    scaling.factor = rope.Real("factor", std::nullopt, 1, 1e6);
  } else if (type == "llama3") {
    scaling.kind = RopeScaling::Kind::llama3;
    scaling.factor = rope.Real("factor", std::nullopt, 1, 1e6);
    scaling.low = rope.Real("low_freq_factor", std::nullopt, 1e-6, 1e6);
    scaling.high = rope.Real("high_freq_factor", std::nullopt, 1e-6, 1e6);
    scaling.context = rope.Whole("original_max_position_embeddings", std::nullopt, 1, INT32_MAX);
    if (rope.Good({"low_freq_factor", "high_freq_factor"}) && scaling.low >= scaling.high)
      rope.Refuse("low_freq_factor", "expected less than high_freq_factor");
  } else if (type != "default") {
    rope.Refuse("rope_type",
                absl::StrCat("`", type,
                             "`: the language has the rotary positions default, linear and "
                             "llama3"));
  } else if (rope.Real("factor", 1, 0, 1e6) != 1) {
    rope.Refuse("factor", "the rotary positions default have none");
  }
  return scaling;
}

class TableReader {
public:
  TableReader(ConfigReader &reader, ModelConfig &config) : reader(reader), config(config) {}

  void Run() {
    for (const ConfigKey &key : config.family->keys)
      ReadKey(key);
    // Only now are all read.
    for (const ConfigKey &key : config.family->keys)
      Compare(key);
    reader.Finish(config.family->harmless);
  }

private:
  void ReadKey(const ConfigKey &key) {
    switch (key.kind) {
    case Kind::whole:
    case Kind::real:
      return ReadNumber(key);
    case Kind::flag:
      config.values[key.value] = reader.Flag(key.key, key.fallback.get<bool>());
      return;
    case Kind::must:
      return ReadOnly(key);
    case Kind::fixed:
      config.values[key.value] = key.fallback;
      return;
    case Kind::activation:
      return ReadActivation(key);
    case Kind::dropout:
      if (const double rate = reader.Real(key.key, key.fallback.get<double>(), 0, 1); rate > 0)
        config.notes.push_back(
            absl::StrCat("`", key.key, "` is ", rate, ", but Boa trains without dropout"));
      return;
    case Kind::rotary:
      return ReadRotary(key.fallback.get<double>());
    case Kind::window:
      return ReadWindow(key);
    }
  }

  /// A number that follows from others. Refuses a division with a rest if `is_needed`.
  std::optional<int64_t> Compute(const ConfigKey &key, bool is_needed) {
    const std::vector<std::string> words = absl::StrSplit(key.formula, ' ');
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < words.size(); i += 2)
      if (int64_t number = 0; absl::SimpleAtoi(words[i], &number)) {
        numbers.push_back(number);
        labels[words[i]] = words[i];
      } else if (bad.count(words[i])) {
        return std::nullopt;
      } else {
        numbers.push_back(config.values[words[i]].get<int64_t>());
      }
    if (words.size() == 1)
      return numbers[0];
    if (words[1] == "*")
      return numbers[0] * numbers[1];
    if (is_needed && numbers[0] % numbers[1] != 0) {
      reader.Refuse(labels[words[2]], absl::StrCat("expected a divisor of ", labels[words[0]]));
      return std::nullopt;
    }
    return std::max<int64_t>(numbers[0] / numbers[1], 1);
  }

  void ReadNumber(const ConfigKey &key) {
    const std::string &name = !key.alias.empty() && !reader.Has(key.key) ? key.alias : key.key;
    const bool has = !name.empty() && reader.Has(name);
    std::optional<int64_t> computed;
    if (!key.formula.empty()) {
      computed = Compute(key, !has);
      if (!computed && !has) { // the fault is another key's
        bad.insert(key.value);
        computed = 1;
      }
    }
    labels[key.value] = name;
    if (name.empty()) {
      config.values[key.value] = *computed;
      std::vector<std::string> words = absl::StrSplit(key.formula, ' ');
      for (size_t i = 0; i < words.size(); i += 2)
        words[i] = labels[words[i]];
      labels[key.value] = absl::StrJoin(words, " ");
      return;
    }
    if (key.kind == Kind::real) {
      std::optional<double> absent;
      if (!key.fallback.is_null())
        absent = key.fallback.get<double>();
      config.values[key.value] = reader.Real(name, absent, key.least, key.most);
    } else {
      if (!key.fallback.is_null())
        computed = key.fallback.get<int64_t>();
      config.values[key.value] =
          reader.Whole(name, computed, int64_t(key.least), int64_t(key.most));
    }
    if (!reader.Good({name}))
      bad.insert(key.value);
  }

  void Compare(const ConfigKey &key) {
    if (key.value.empty() || bad.count(key.value))
      return;
    const std::string &label = labels[key.value];
    const auto number = [&](const std::string &value) {
      return config.values[value].get<int64_t>();
    };
    if (key.even && number(key.value) % 2 != 0)
      reader.Refuse(label, "expected an even number");
    if (!key.divisor_of.empty() && !bad.count(key.divisor_of) &&
        number(key.divisor_of) % number(key.value) != 0)
      reader.Refuse(label, absl::StrCat("expected a divisor of ", labels[key.divisor_of]));
    if (key.kind != Kind::whole && key.kind != Kind::real)
      return;
    const double value = config.values[key.value].get<double>();
    if (!key.alias.empty() && label == key.key)
      reader.Agree({key.alias}, label, value);
    reader.Agree(key.same, label, value);
  }

  void ReadOnly(const ConfigKey &key) {
    const nlohmann::json &only = key.fallback;
    const bool is_it = only.is_boolean()  ? reader.Flag(key.key, only) == only
                       : only.is_string() ? reader.Word(key.key, only) == only
                                          : reader.Real(key.key, only, -1e30, 1e30) == only;
    if (!is_it)
      reader.Refuse(key.key,
                    absl::StrCat("expected ",
                                 only.is_string() ? only.get<std::string>() : only.dump(),
                                 key.lacks.empty() ? "" : "; the language has not: ", key.lacks));
  }

  void ReadActivation(const ConfigKey &key) {
    const std::string name = reader.Word(key.key, key.fallback);
    const bool exact = name == "gelu";
    const bool tanh = name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast";
    config.values["act"] = exact || tanh ? "gelu" : "silu";
    config.values["exact"] = exact;
    if (!exact && !tanh && name != "silu" && name != "swish")
      reader.Refuse(key.key, absl::StrCat("`", name,
                                          "`: the language has silu (or swish), gelu, and "
                                          "gelu_new (or gelu_pytorch_tanh, gelu_fast)"));
  }

  /// `rope_parameters` of transformers 5; `rope_theta` and `rope_scaling` of transformers 4. Where
  /// more of them are there, they must say the same: versions differ in which one counts.
  void ReadRotary(double usual) {
    double base = reader.Real("rope_theta", usual, 1, 1e12);
    for (const char *key : {"partial_rotary_factor", "rotary_pct"})
      if (reader.Real(key, 1, 0, 1) != 1)
        reader.Refuse(key, "expected all of each head to be rotated");
    std::string said = reader.Has("rope_theta") ? "rope_theta" : ""; // what told the base
    std::string scaled;                                              // what told the scaling
    RopeScaling scaling;
    for (const std::string key : {"rope_scaling", "rope_parameters"}) {
      ConfigReader rope = reader.Object(key);
      if (!rope.IsThere())
        continue;
      const double theta = rope.Real("rope_theta", base, 1, 1e12);
      if (!said.empty() && theta != base)
        rope.Refuse("rope_theta", absl::StrCat("it is ", theta, ", but `", said, "` is ", base,
                                               "; remove the wrong one"));
      if (rope.Has("rope_theta"))
        said = absl::StrCat(key, ".rope_theta");
      base = theta;
      const RopeScaling found = ReadScaling(rope);
      if (rope.Good({"rope_type"}))
        rope.Finish({});
      reader.Take(rope);
      if (!scaled.empty() && rope.status().ok() && !(found == scaling))
        reader.Refuse(key, absl::StrCat("its rotary positions differ from those of `", scaled,
                                        "`; remove the wrong one"));
      scaling = found;
      scaled = key;
    }
    if (scaling.kind == RopeScaling::Kind::llama3)
      reader.Agree({"original_max_position_embeddings"},
                   "rope_scaling.original_max_position_embeddings", double(scaling.context));
    std::string text = absl::StrCat("base = ", ShortNumber(base));
    if (scaling.kind == RopeScaling::Kind::linear)
      absl::StrAppend(&text, ",\n scaling = linear(factor = ", ShortNumber(scaling.factor), ")");
    if (scaling.kind == RopeScaling::Kind::llama3)
      absl::StrAppend(&text, ",\n scaling = llama3(factor = ", ShortNumber(scaling.factor),
                      ", low = ", ShortNumber(scaling.low), ", high = ", ShortNumber(scaling.high),
                      ", context = ", scaling.context, ")");
    config.values["turns"] = text;
  }

  /// How many layers of `layer_types` have a window; none: it is not there.
  std::optional<int64_t> CountSliding() {
    const std::vector<std::string> types = reader.Words("layer_types");
    if (types.empty())
      return std::nullopt;
    if (const int64_t depth = config.Number("depth");
        !bad.count("depth") && int64_t(types.size()) != depth)
      reader.Refuse("layer_types", absl::StrCat("it has ", types.size(), " layers, but `",
                                                labels["depth"], "` is ", depth));
    int64_t sliding = 0;
    for (const std::string &type : types)
      if (type == "sliding_attention")
        ++sliding;
      else if (type != "full_attention")
        reader.Refuse("layer_types", absl::StrCat("`", type,
                                                  "`: expected full_attention or "
                                                  "sliding_attention"));
    return sliding;
  }

  /// The window of attention, and whether all layers have it. One that no layer uses may be there.
  void ReadWindow(const ConfigKey &key) {
    const bool always = key.window == ConfigKey::Window::always;
    const int64_t absent = key.fallback.is_null() ? 0 : key.fallback.get<int64_t>();
    const int64_t window = reader.Whole(key.key, absent, always ? 1 : 0, INT32_MAX);
    const bool none = reader.Names(key.key) && !reader.Has(key.key); // null
    bool some = (always ? window > 0 : reader.Flag("use_sliding_window", false)) && !none;
    bool all = always;
    if (const std::optional<int64_t> sliding = CountSliding()) {
      const bool is_all = *sliding == config.Number("depth");
      if (!always) {
        if (*sliding > 0 && !some)
          reader.Refuse("layer_types", absl::StrCat("some layers have a window, but `",
                                                    none ? "sliding_window` is null"
                                                         : "use_sliding_window` is not true"));
        some &= *sliding > 0;
        all = is_all;
      } else if (some ? !is_all : *sliding > 0) { // transformers would not read it
        reader.Refuse("layer_types",
                      absl::StrCat("expected ", some ? "sliding" : "full",
                                   "_attention in all layers of ", config.architecture,
                                   ", as `sliding_window` has it"));
      }
    }
    if (key.window == ConfigKey::Window::none && (window != 0 || some))
      reader.Refuse(key.key, absl::StrCat("no ", config.architecture, " has such a key"));
    if (!some)
      return;
    if (window == 0)
      reader.Refuse(key.key, "layers use it: expected at least 1");
    config.values["window"] = window;
    config.values["window_of_all"] = all;
  }

  ConfigReader &reader;
  ModelConfig &config;
  std::map<std::string, std::string> labels; // what told a value: "num_hidden_layers"
  std::set<std::string> bad;                 // values that were refused, or follow from such
};

} // namespace

void ReadByTable(ConfigReader &reader, ModelConfig &config) { TableReader(reader, config).Run(); }

} // namespace boa
