//===- SpecText.cpp - A spec for an imported model ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One template for each kind of model. Linear weights of Hugging Face are [out, in], which
// `transpose` says; GPT-2's are [in, out].
//
//===----------------------------------------------------------------------===//
#include "tools/models/SpecText.h"

#include "frontend/Frontend.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace boa {
namespace {

/// As short as it can be, and as exact.
std::string number(double value) {
  constexpr double kWhole = 1e15;
  if (value == std::floor(value) && std::abs(value) < kWhole)
    return absl::StrCat(int64_t(value));
  char digits[40];
  return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

/// A parameter and the name of its tensor.
std::string param(const std::string &name, const std::string &shape, const std::string &init,
                  const std::string &tensor) {
  return absl::StrCat("    param ", name, ": [", shape, "] = ", init, " as \"", tensor, "\"\n");
}

class Writer {
public:
  Writer(const ModelConfig &config, const SpecOptions &options)
      : config(config), options(options),
        normal(absl::StrCat("normal(", number(config.deviation), ")")) {}

  std::string run() {
    std::string text =
        absl::StrCat("# ", config.architecture, ", imported from ", options.source, ".\n\n");
    if (config.family == Family::gpt2)
      absl::StrAppend(&text, gpt2());
    else if (config.family == Family::bert)
      absl::StrAppend(&text, bert());
    else
      absl::StrAppend(&text, llama());
    absl::StrAppend(&text, training());
    return frontend::formatText({"imported.boa", text}).after.value_or(text);
  }

private:
  std::string constants(const std::string &more) const {
    return absl::StrCat("model ", FamilyName(config.family), "(vocab = ", config.vocab,
                        ", context = ", options.context, ", width = ", config.width,
                        ", heads = ", config.heads, ",\n", more, ", depth = ", config.depth,
                        ") {\n");
  }

  /// `linear` of a weight that is [out, in], with its bias if it has one.
  static std::string linear(const std::string &x, const std::string &name, bool bias) {
    return absl::StrCat("linear(", x, ", transpose(", name, "_w)", bias ? ", " + name + "_b" : "",
                        ")");
  }
  std::string matrix(const std::string &name, const std::string &out, const std::string &in,
                     const std::string &tensor, bool bias) const {
    std::string text = param(name + "_w", absl::StrCat(out, ", ", in), normal, tensor + ".weight");
    return bias ? text + param(name + "_b", out, "zeros", tensor + ".bias") : text;
  }
  /// Weight and bias of a LayerNorm.
  std::string layerNorm(const std::string &name, const std::string &tensor) const {
    return param(name + "_w", "width", "ones",
                 tensor + (options.gammaBeta ? ".gamma" : ".weight")) +
           param(name + "_b", "width", "zeros", tensor + (options.gammaBeta ? ".beta" : ".bias"));
  }

  /// Behind the name of a table of positions that is longer than the context.
  const char *firstRows() const { return options.context < config.positions ? "[:]" : ""; }

  std::string rotary(const std::string &x, const char *heads) const {
    std::string text =
        absl::StrCat("rotary(", x, ", ", heads, ", base = ", number(config.rope_base));
    const RopeScaling &scaling = config.scaling;
    if (scaling.kind == RopeScaling::Kind::linear)
      absl::StrAppend(&text, ",\n scaling = linear(factor = ", number(scaling.factor), ")");
    if (scaling.kind == RopeScaling::Kind::llama3)
      absl::StrAppend(&text, ",\n scaling = llama3(factor = ", number(scaling.factor),
                      ", low = ", number(scaling.low), ", high = ", number(scaling.high),
                      ", context = ", scaling.context, ")");
    return text + ")";
  }

  std::string llama() const {
    const std::string base = options.headAlone ? "" : "model.";
    const std::string layer = base + "layers.*.", eps = ", eps = " + number(config.eps) + ")";
    const std::string attention = layer + "self_attn.", mlp = layer + "mlp.";
    const bool norms = config.family == Family::qwen3, bias = config.qkv_bias;
    auto rms = [&](const std::string &x, const std::string &w) {
      return absl::StrCat("rms_norm(", x, ", ", w, eps);
    };
    auto normed = [&](const std::string &x, const std::string &w, const char *heads) {
      return norms ? absl::StrCat("rms_norm(", x, ", ", w, ", eps = ", number(config.eps),
                                  ", heads = ", heads, ")")
                   : x;
    };
    return absl::StrCat(
        constants(absl::StrCat("kv_heads = ", config.kv_heads, ", head = ", config.head,
                               ", hidden = ", config.hidden)),
        "  stage embed(tokens: [context] token) -> [context, width] {\n",
        param("table", "vocab, width", normal, base + "embed_tokens.weight"),
        "    return embedding(table, tokens)\n  }\n\n",
        "  layer block(x: [context, width]) -> [context, width] repeat depth {\n",
        param("norm1", "width", "ones", layer + "input_layernorm.weight"),
        matrix("q", "heads * head", "width", attention + "q_proj", bias),
        matrix("k", "kv_heads * head", "width", attention + "k_proj", bias),
        matrix("v", "kv_heads * head", "width", attention + "v_proj", bias),
        norms ? param("q_norm", "head", "ones", attention + "q_norm.weight") +
                    param("k_norm", "head", "ones", attention + "k_norm.weight")
              : "",
        matrix("o", "width", "heads * head", attention + "o_proj", config.out_bias),
        "    let n = ", rms("x", "norm1"), "\n",
        "    let q = ", rotary(normed(linear("n", "q", bias), "q_norm", "heads"), "heads"), "\n",
        "    let k = ", rotary(normed(linear("n", "k", bias), "k_norm", "kv_heads"), "kv_heads"),
        "\n", "    let a = attention(q, k, ", linear("n", "v", bias),
        ", heads, kv_heads = kv_heads, causal",
        config.window_of_all ? absl::StrCat(", window = ", config.window) : "", ")\n",
        "    let h = x + ", linear("a", "o", config.out_bias), "\n\n",
        param("norm2", "width", "ones", layer + "post_attention_layernorm.weight"),
        matrix("gate", "hidden", "width", mlp + "gate_proj", config.hidden_bias),
        matrix("up", "hidden", "width", mlp + "up_proj", config.hidden_bias),
        matrix("down", "width", "hidden", mlp + "down_proj", config.hidden_bias),
        "    let m = ", rms("h", "norm2"), "\n    let g = silu(",
        linear("m", "gate", config.hidden_bias), ") * ", linear("m", "up", config.hidden_bias),
        "\n    return h + ", linear("g", "down", config.hidden_bias), "\n  }\n\n",
        "  stage head(x: [context, width], targets: [context] token) -> loss {\n",
        param("norm", "width", "ones", base + "norm.weight"),
        config.tied ? "" : param("w", "vocab, width", normal, "lm_head.weight"),
        "    return cross_entropy(linear(", rms("x", "norm"), ", transpose(",
        config.tied ? "embed.table" : "w", ")), targets)\n  }\n}\n\n");
  }

  std::string gelu(const std::string &x) const {
    return absl::StrCat("gelu(", x, config.exact_gelu ? ", exact)" : ")");
  }

  /// Conv1D has weights [in, out].
  std::string conv(const std::string &name, const std::string &in, const std::string &out,
                   const std::string &tensor) const {
    return param(name + "_w", absl::StrCat(in, ", ", out), normal, tensor + ".weight") +
           param(name + "_b", out, "zeros", tensor + ".bias");
  }

  std::string gpt2() const {
    const std::string base = options.headAlone ? "" : "transformer.";
    const std::string layer = base + "h.*.", eps = ", eps = " + number(config.eps) + ")";
    return absl::StrCat(
        constants(absl::StrCat("hidden = ", config.hidden)),
        "  stage embed(tokens: [context] token) -> [context, width] {\n",
        param("wte", "vocab, width", normal, base + "wte.weight"),
        param("wpe", "context, width", normal, base + "wpe.weight" + firstRows()),
        "    return embedding(wte, tokens) + wpe\n  }\n\n",
        "  layer block(x: [context, width]) -> [context, width] repeat depth {\n",
        layerNorm("ln1", layer + "ln_1"), conv("qkv", "width", "3 * width", layer + "attn.c_attn"),
        conv("out", "width", "width", layer + "attn.c_proj"),
        "    let q, k, v = split(linear(layer_norm(x, ln1_w, ln1_b", eps, ", qkv_w, qkv_b), 3)\n",
        "    let h = x + linear(attention(q, k, v, heads, causal), out_w, out_b)\n\n",
        layerNorm("ln2", layer + "ln_2"), conv("up", "width", "hidden", layer + "mlp.c_fc"),
        conv("down", "hidden", "width", layer + "mlp.c_proj"), "    let m = ",
        gelu(absl::StrCat("linear(layer_norm(h, ln2_w, ln2_b", eps, ", up_w, up_b)")),
        "\n    return h + linear(m, down_w, down_b)\n  }\n\n",
        "  stage head(x: [context, width], targets: [context] token) -> loss {\n",
        layerNorm("lnf", base + "ln_f"),
        config.tied ? "" : param("w", "vocab, width", normal, "lm_head.weight"),
        "    let logits = linear(layer_norm(x, lnf_w, lnf_b", eps, ", transpose(",
        config.tied ? "embed.wte" : "w",
        "))\n    return cross_entropy(logits, targets)\n  }\n}\n\n");
  }

  std::string bert() const {
    const std::string base = options.headAlone ? "" : "bert.", table = base + "embeddings.",
                      layer = base + "encoder.layer.*.", head = "cls.predictions.",
                      eps = ", eps = " + number(config.eps) + ")";
    return absl::StrCat(
        constants(absl::StrCat("hidden = ", config.hidden)),
        "  stage embed(tokens: [context] token) -> [context, width] {\n",
        param("wte", "vocab, width", normal, table + "word_embeddings.weight"),
        param("wpe", "context, width", normal, table + "position_embeddings.weight" + firstRows()),
        // All tokens are of the first type.
        param("type", "width", normal, table + "token_type_embeddings.weight[0]"),
        layerNorm("ln", table + "LayerNorm"),
        "    return layer_norm(embedding(wte, tokens) + wpe + type, ln_w, ln_b", eps, "\n  }\n\n",
        "  layer block(x: [context, width]) -> [context, width] repeat depth {\n",
        matrix("q", "width", "width", layer + "attention.self.query", true),
        matrix("k", "width", "width", layer + "attention.self.key", true),
        matrix("v", "width", "width", layer + "attention.self.value", true),
        matrix("o", "width", "width", layer + "attention.output.dense", true),
        layerNorm("ln1", layer + "attention.output.LayerNorm"), "    let a = attention(",
        linear("x", "q", true), ", ", linear("x", "k", true), ", ", linear("x", "v", true),
        ", heads)\n    let h = layer_norm(x + ", linear("a", "o", true), ", ln1_w, ln1_b", eps,
        "\n\n", matrix("up", "hidden", "width", layer + "intermediate.dense", true),
        matrix("down", "width", "hidden", layer + "output.dense", true),
        layerNorm("ln2", layer + "output.LayerNorm"), "    let m = ", gelu(linear("h", "up", true)),
        "\n    return layer_norm(h + ", linear("m", "down", true), ", ln2_w, ln2_b", eps,
        "\n  }\n\n", "  stage head(x: [context, width], targets: [context] token) -> loss {\n",
        matrix("dense", "width", "width", head + "transform.dense", true),
        layerNorm("ln", head + "transform.LayerNorm"),
        param("bias", "vocab", "zeros", head + "bias"), "    let t = layer_norm(",
        gelu(linear("x", "dense", true)), ", ln_w, ln_b", eps,
        "\n    return cross_entropy(linear(t, transpose(embed.wte), bias), targets)\n  }\n}\n\n");
  }

  std::string data() const {
    if (!options.data.empty())
      return options.data + "\n";
    return absl::StrCat("tokens(\"train.bin\"", config.vocab > 65536 ? ", uint32" : "",
                        ")  # what to train on, as tokens of this model\n");
  }

  std::string training() const {
    const std::string objective =
        config.family == Family::bert
            ? absl::StrCat("  objective = masked(probability = 0.15, token = ", options.maskToken,
                           ")\n")
            : "";
    return absl::StrCat("train ", FamilyName(config.family), " {\n", "  data = ", data(), objective,
                        "  batch = 8 sequences\n  steps = ", options.hasEpochs ? "3 epochs" : "100",
                        "\n", config.bf16 ? "  weights = bf16\n" : "",
                        options.lora ? adapters() + "  optimizer = adamw(lr = 2e-4)\n}\n\n"
                                     : "  optimizer = adamw(lr = 1e-5)\n}\n\n",
                        "plan {\n  micro_batch = 1\n  schedule = vertical\n  place = ssd\n}\n");
  }

  /// The usual ones: of rank 16, beside all matrices of layers. A tiny model has a lower rank.
  std::string adapters() const {
    constexpr int64_t kUsualRank = 16;
    const int64_t rank = std::min({kUsualRank, config.width, config.hidden,
                                   config.heads * config.head, config.kv_heads * config.head});
    return absl::StrCat("  adapters = lora(rank = ", rank, ", alpha = ", 2 * rank,
                        ", targets = \"all-linear\")\n");
  }

  const ModelConfig &config;
  const SpecOptions &options;
  const std::string normal;
};

/// Whether a builtin of this name has this in its signature.
bool hasSyntax(const char *builtin, const char *argument) {
  for (const frontend::BuiltinInfo &info : frontend::listBuiltins())
    if (absl::StartsWith(info.signature, absl::StrCat(builtin, "(")) &&
        absl::StrContains(info.signature, argument))
      return true;
  return false;
}

} // namespace

int64_t defaultContext(const ModelConfig &config) {
  constexpr int64_t kUsual = 1024;
  return std::min(config.positions, config.window > 0 && !config.window_of_all
                                        ? std::min(kUsual, config.window)
                                        : kUsual);
}

absl::Status checkSpec(const ModelConfig &config, int64_t context) {
  if (context > config.positions)
    return absl::InvalidArgumentError(absl::StrCat(
        "--context ", context, ": the model has positions for ", config.positions, " tokens"));
  if (config.window > 0 && !config.window_of_all && context > config.window)
    return absl::InvalidArgumentError(absl::StrCat(
        "--context ", context, ": some layers of this model reach back ", config.window,
        " tokens alone (`sliding_window`), which an import cannot "
        "write: expected at most ",
        config.window));
  const auto lacks = [&](const char *what) {
    return absl::UnimplementedError(
        absl::StrCat(config.architecture, ": this Boa has no ", what, ", which the model needs"));
  };
  if (config.window_of_all && !hasSyntax("attention", "window"))
    return lacks("window of attention (`sliding_window`)");
  if (config.scaling.kind != RopeScaling::Kind::none && !hasSyntax("rotary", "scaling"))
    return lacks(config.scaling.kind == RopeScaling::Kind::linear
                     ? "rotary positions of type `linear`"
                     : "rotary positions of type `llama3`");
  if (config.family == Family::qwen3 && !hasSyntax("rms_norm", "heads"))
    return lacks("rms_norm of each head (`q_norm`, `k_norm`)");
  if (config.exact_gelu && !hasSyntax("gelu", "exact"))
    return lacks("gelu by erf (`gelu`)");
  return absl::OkStatus();
}

std::string writeSpec(const ModelConfig &config, const SpecOptions &options) {
  return Writer(config, options).run();
}

void readNames(const ModelConfig &config, const std::function<bool(const std::string &)> &has,
               SpecOptions &options) {
  options.headAlone = config.family == Family::gpt2   ? has("wte.weight")
                      : config.family == Family::bert ? has("embeddings.word_embeddings.weight")
                                                      : has("embed_tokens.weight");
  options.gammaBeta =
      config.family == Family::bert &&
      has(absl::StrCat(options.headAlone ? "" : "bert.", "embeddings.LayerNorm.gamma"));
}

bool isUnused(const ModelConfig &config, const std::string &tensor) {
  return config.family == Family::bert &&
         (absl::StartsWith(tensor, "bert.pooler.") || absl::StartsWith(tensor, "pooler.") ||
          absl::StartsWith(tensor, "cls.seq_relationship."));
}

} // namespace boa
