//===- SpecText.cpp - A spec for an imported model ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model block is the template of the family (runtime/weights/family.h), with these macros.
// Linear weights of Hugging Face are [out, in], which `transpose` says.
//
//===----------------------------------------------------------------------===//
#include "tools/models/SpecText.h"

#include "frontend/Frontend.h"
#include "runtime/template/template.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace boa {
namespace {

/// `linear` of a weight that is [out, in], with its bias if it has one; `matrix` has both
/// parameters. `normed` is by the weight and bias of `layer_norm`.
constexpr char kMacros[] = R"spec(
{% macro matrix(name, out, in, tensor, bias) %}
param {{ name }}_w: [{{ out }}, {{ in }}] = {{ normal }} as "{{ tensor }}.weight"
{%- if bias %}

param {{ name }}_b: [{{ out }}] = zeros as "{{ tensor }}.bias"
{%- endif %}
{% endmacro %}
{% macro linear(x, name, bias) %}
linear({{ x }}, transpose({{ name }}_w){{ ", " ~ name ~ "_b" if bias }})
{%- endmacro %}
{% macro layer_norm(name, tensor) %}
param {{ name }}_w: [width] = ones as "{{ tensor }}{{ norm_weight }}"
param {{ name }}_b: [width] = zeros as "{{ tensor }}{{ norm_bias }}"
{%- endmacro %}
{% macro normed(x, name) %}
layer_norm({{ x }}, {{ name }}_w, {{ name }}_b, eps = {{ eps }})
{%- endmacro %}
{% macro activation(x) %}{{ act }}({{ x }}{{ ", exact" if exact }}){% endmacro %}
{% macro rotary(x, heads) %}rotary({{ x }}, {{ heads }}, {{ turns }}){% endmacro %}
)spec";

/// What a template sees. Numbers that are not whole are as a spec has them.
jinja::Value globals(const ModelConfig &config, const SpecOptions &options) {
  std::vector<std::pair<jinja::Value, jinja::Value>> all;
  const auto add = [&](const std::string &name, jinja::Value value) {
    all.emplace_back(jinja::Value(name), std::move(value));
  };
  for (const auto &[name, value] : config.values.items())
    if (value.is_boolean())
      add(name, jinja::Value(value.get<bool>()));
    else if (value.is_number_integer())
      add(name, jinja::Value(value.get<int64_t>()));
    else
      add(name, jinja::Value(value.is_string() ? value.get<std::string>()
                                               : ShortNumber(value.get<double>())));
  const auto text = [&](const char *name, const std::string &value) {
    add(name, jinja::Value(value));
  };
  text("name", config.family->name);
  add("context", jinja::Value(options.context));
  text("normal",
       absl::StrCat("normal(", ShortNumber(config.values["deviation"].get<double>()), ")"));
  text("base", options.headAlone ? "" : config.family->base);
  text("norm_weight", options.gammaBeta ? ".gamma" : ".weight");
  text("norm_bias", options.gammaBeta ? ".beta" : ".bias");
  // Behind the name of a table of positions that is longer than the context.
  text("first_rows", options.context < config.Number("positions") ? "[:]" : "");
  text("window_of_all",
       config.Is("window_of_all") ? absl::StrCat(", window = ", config.Number("window")) : "");
  return jinja::Value::Mapping(std::move(all));
}

/// The usual ones: of rank 16, beside all matrices of layers. A tiny model has a lower rank.
std::string adapters(const ModelConfig &config) {
  constexpr int64_t kUsualRank = 16;
  const int64_t head = config.Number("head");
  const int64_t rank = std::min({kUsualRank, config.Number("width"), config.Number("hidden"),
                                 config.Number("heads") * head, config.Number("kv_heads") * head});
  return absl::StrCat("  adapters = lora(rank = ", rank, ", alpha = ", 2 * rank,
                      ", targets = \"all-linear\")\n");
}

std::string training(const ModelConfig &config, const SpecOptions &options) {
  const std::string data =
      !options.data.empty()
          ? options.data
          : absl::StrCat("tokens(\"train.bin\"", config.Number("vocab") > 65536 ? ", uint32" : "",
                         ")  # what to train on, as tokens of this model");
  const std::string objective =
      config.family->masked
          ? absl::StrCat("  objective = masked(probability = 0.15, token = ", options.maskToken,
                         ")\n")
          : "";
  return absl::StrCat("train ", config.family->name, " {\n  data = ", data, "\n", objective,
                      "  batch = 8 sequences\n  steps = ", options.hasEpochs ? "3 epochs" : "100",
                      "\n", config.bf16 ? "  weights = bf16\n" : "",
                      options.lora ? adapters(config) + "  optimizer = adamw(lr = 2e-4)\n}\n\n"
                                   : "  optimizer = adamw(lr = 1e-5)\n}\n\n",
                      "plan {\n  micro_batch = 1\n  schedule = vertical\n  place = ssd\n}\n");
}

} // namespace

int64_t defaultContext(const ModelConfig &config) {
  constexpr int64_t kUsual = 1024;
  const int64_t window = config.window_of_some();
  return std::min(config.Number("positions"), window > 0 ? std::min(kUsual, window) : kUsual);
}

absl::Status checkContext(const ModelConfig &config, int64_t context) {
  if (context > config.Number("positions"))
    return absl::InvalidArgumentError(absl::StrCat("context ", context,
                                                   ": the model has positions for ",
                                                   config.Number("positions"), " tokens"));
  if (const int64_t window = config.window_of_some(); window > 0 && context > window)
    return absl::InvalidArgumentError(absl::StrCat(
        "context ", context, ": some layers of this model reach back ", window,
        " tokens alone (`sliding_window`), which no spec can say: expected at most ", window));
  return absl::OkStatus();
}

absl::StatusOr<std::string> writeSpec(const ModelConfig &config, const SpecOptions &options) {
  absl::StatusOr<Template> parsed =
      Template::Parse(absl::StrCat(kMacros, config.family->spec), config.family->name);
  absl::StatusOr<Rendered> model =
      parsed.ok() ? parsed->Render(globals(config, options)) : parsed.status();
  if (!model.ok())
    return model.status();
  const std::string text =
      absl::StrCat("# ", config.architecture, ", imported from ", options.source, ".\n\n",
                   absl::StripAsciiWhitespace(model->text), "\n\n", training(config, options));
  return frontend::formatText({"imported.boa", text}).after.value_or(text);
}

void readNames(const ModelConfig &config, const std::vector<std::string> &tensors,
               SpecOptions &options) {
  for (const std::string &tensor : tensors) {
    options.headAlone |= tensor == config.family->first;
    options.gammaBeta |= absl::EndsWith(tensor, ".gamma");
  }
}

bool isUnused(const ModelConfig &config, const std::string &tensor) {
  const std::vector<std::string> &unused = config.family->unused;
  return std::any_of(unused.begin(), unused.end(), [&](const std::string &beginning) {
    return absl::StartsWith(tensor, beginning);
  });
}

} // namespace boa
