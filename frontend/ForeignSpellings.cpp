//===- ForeignSpellings.cpp - Spellings of other frameworks ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/ForeignSpellings.h"

namespace boa::frontend {

static std::vector<ForeignSpelling> makeSpellings() {
  constexpr auto kSign = SpellingKind::Sign, kWord = SpellingKind::Word,
                 kFunction = SpellingKind::Function, kSetting = SpellingKind::Setting,
                 kValue = SpellingKind::Value;

  const char *activations = "the activations here are gelu(x) and silu(x)";
  const char *norms = "the norms here are layer_norm(x, w, b) and rms_norm(x, w)";
  const char *product = "linear(x, w) multiplies by a parameter";
  const char *transposed = "linear(x, transpose(w)) multiplies by a transposed parameter";
  const char *views = "shapes are declared; only split(x, parts) cuts the last dimension";
  const char *noModule = "functions stand by themselves: linear(x, w), gelu(x)";
  const char *moves = "the machine block and the plan's place say where tensors live";
  const char *types = "types are set in the train block: compute = bf16, weights = bf16";

  const char *layers = "write layer NAME(x: [context, width]) -> [context, width] repeat N { ... }";
  const char *names = "write param w: [width] = ones for a parameter, let h = ... for a value";
  const char *imports = "functions are built in; files are given together on the command line";

  const char *epochs = "write steps = 3 epochs";
  const char *accumulation =
      "write plan { micro_batch = N }; each step accumulates batch / micro_batch of them";
  const char *rate = "write optimizer = adamw(lr = 1e-3)";
  const char *course = "write adamw(lr = cosine(peak = 1e-3, warmup = 100, floor = 1e-4))";
  const char *norm = "write clip = 1.0";
  const char *precision = "write compute = bf16";
  const char *text = "write data = \"file.txt\"";
  const char *recompute =
      "write plan { schedule = vertical(recompute = true) }, which is the default";
  const char *saves = "write commit = every(200) or every(5 min)";
  const char *evaluates = "write evaluate = every(200, batches = 16)";
  const char *context = "the sequence length is the model's constant context";

  const char *lora = "write adapters = lora(rank = 8, alpha = 16, targets = \"all-linear\")";
  const char *apart = "write packed = false in text(...) or chat(...)";
  const char *answers = "of chat(...), answers of the assistant alone are learnt";
  const char *adamw = "write adamw(lr = 1e-3)";
  const char *half = "the 16-bit type is bf16";
  const char *single = "the 32-bit type is f32";

  return {
      {kSign, "@", product},
      {kSign, "//", "comments begin with #, and one / divides"},

      {kWord, "import", imports},
      {kWord, "from", imports},
      {kWord, "class", "write model NAME(vocab = 256, context = 64, ...) { ... }"},
      {kWord, "def", "write stage NAME(x: [context, width]) -> [context, width] { ... }"},
      {kWord, "for", layers},
      {kWord, "while", layers},
      {kWord, "if", "a model has no branches"},
      {kWord, "self", names},
      {kWord, "nn", noModule},
      {kWord, "torch", noModule},
      {kWord, "F", noModule},

      {kFunction, "Linear", "declare param w: [in, out] = normal(0.02), then linear(x, w)"},
      {kFunction, "Embedding",
       "declare param wte: [vocab, width] = normal(0.02), then embedding(wte, tokens)"},
      {kFunction, "LayerNorm", "declare params w and b: [width], then layer_norm(x, w, b)"},
      {kFunction, "RMSNorm", "declare param w: [width] = ones, then rms_norm(x, w)"},
      {kFunction, "Parameter", "write param w: [width] = ones"},
      {kFunction, "MultiheadAttention", "write attention(q, k, v, heads, causal)"},
      {kFunction, "scaled_dot_product_attention", "write attention(q, k, v, heads, causal)"},
      {kFunction, "CrossEntropyLoss", "write cross_entropy(logits, targets)"},
      {kFunction, "GELU", "write gelu(x, exact); gelu(x) is the one by tanh"},
      {kFunction, "SiLU", "write silu(x)"},
      {kFunction, "ReLU", activations},
      {kFunction, "relu", activations},
      {kFunction, "relu2", activations},
      {kFunction, "leaky_relu", activations},
      {kFunction, "elu", activations},
      {kFunction, "selu", activations},
      {kFunction, "celu", activations},
      {kFunction, "mish", activations},
      {kFunction, "tanh", activations},
      {kFunction, "sigmoid", activations},
      {kFunction, "softplus", activations},
      {kFunction, "swish", "silu(x) is the same"},
      {kFunction, "swiglu", "write silu(a) * b"},
      {kFunction, "geglu", "write gelu(a) * b"},
      {kFunction, "glu", "write silu(a) * b or gelu(a) * b"},
      {kFunction, "batch_norm", norms},
      {kFunction, "group_norm", norms},
      {kFunction, "norm", norms},
      {kFunction, "softmax", "attention(...) and cross_entropy(...) have their own"},
      {kFunction, "Softmax", "attention(...) and cross_entropy(...) have their own"},
      {kFunction, "log_softmax", "cross_entropy(...) has its own"},
      {kFunction, "dropout", "what is trained here is trained without"},
      {kFunction, "Dropout", "what is trained here is trained without"},
      {kFunction, "matmul", product},
      {kFunction, "mm", product},
      {kFunction, "bmm", product},
      {kFunction, "dense", "write linear(x, w, b)"},
      {kFunction, "add", "write a + b"},
      {kFunction, "mul", "write a * b"},
      {kFunction, "cat", "only split(x, parts) is there, not its inverse"},
      {kFunction, "concat", "only split(x, parts) is there, not its inverse"},
      {kFunction, "chunk", "write split(x, parts)"},
      {kFunction, "rope", "write rotary(x, heads)"},
      {kFunction, "view", views},
      {kFunction, "reshape", views},
      {kFunction, "permute", views},
      {kFunction, "flatten", views},
      {kFunction, "contiguous", views},
      {kFunction, "transpose", transposed},
      {kFunction, "T", transposed},
      {kFunction, "mT", transposed},
      {kFunction, "to", moves},
      {kFunction, "cuda", moves},
      {kFunction, "half", types},
      {kFunction, "bfloat16", types},
      {kFunction, "float", types},
      {kFunction, "Sequential", layers},
      {kFunction, "ModuleList", layers},

      {kSetting, "lora", lora},
      {kSetting, "peft", lora},
      {kSetting, "lora_config", lora},
      {kSetting, "r", "write rank = 8"},
      {kSetting, "lora_r", "write rank = 8 in lora(...)"},
      {kSetting, "lora_alpha", "write alpha = 16"},
      {kSetting, "target_modules", "write targets = (\"q_proj\", \"v_proj\")"},
      {kSetting, "lora_target_modules", "write targets = (\"q_proj\", \"v_proj\")"},
      {kSetting, "lora_target_linear", "write targets = \"all-linear\""},
      {kSetting, "bias", "adapters here train no biases; modules_to_save names parameters"},
      {kSetting, "use_rslora", "write rslora = true"},
      {kSetting, "lora_dropout", "write dropout = 0.05"},
      {kSetting, "epochs", epochs},
      {kSetting, "num_epochs", epochs},
      {kSetting, "max_epochs", epochs},
      {kSetting, "num_train_epochs", epochs},
      {kSetting, "max_steps", "write steps = N"},
      {kSetting, "num_steps", "write steps = N"},
      {kSetting, "max_iters", "write steps = N"},
      {kSetting, "batch_size", "write batch = N sequences"},
      {kSetting, "gradient_accumulation", accumulation},
      {kSetting, "gradient_accumulation_steps", accumulation},
      {kSetting, "accumulate_grad_batches", accumulation},
      {kSetting, "grad_accum", accumulation},
      {kSetting, "micro_batch_size", "write micro_batch = N"},
      {kSetting, "per_device_train_batch_size", "write micro_batch = N"},
      {kSetting, "learning_rate", rate},
      {kSetting, "warmup_steps", course},
      {kSetting, "warmup_iters", course},
      {kSetting, "lr_scheduler", course},
      {kSetting, "scheduler", course},
      {kSetting, "max_grad_norm", norm},
      {kSetting, "grad_clip", norm},
      {kSetting, "clip_grad_norm", norm},
      {kSetting, "gradient_clip_val", norm},
      {kSetting, "fp16", precision},
      {kSetting, "bf16", precision},
      {kSetting, "amp", precision},
      {kSetting, "dtype", precision},
      {kSetting, "precision", precision},
      {kSetting, "mixed_precision", precision},
      {kSetting, "dataset", text},
      {kSetting, "train_data", text},
      {kSetting, "packing", apart},
      {kSetting, "sample_packing", apart},
      {kSetting, "train_on_inputs", answers},
      {kSetting, "assistant_only_loss", answers},
      {kSetting, "completion_only_loss", answers},
      {kSetting, "gradient_checkpointing", recompute},
      {kSetting, "save_steps", saves},
      {kSetting, "save_every", saves},
      {kSetting, "checkpoint", saves},
      {kSetting, "eval_steps", evaluates},
      {kSetting, "eval_interval", evaluates},
      {kSetting, "seq_len", context},
      {kSetting, "block_size", context},
      {kSetting, "max_length", context},
      {kSetting, "max_seq_length", context},
      {kSetting, "sequence_len", context},
      {kSetting, "cutoff_len", context},
      {kSetting, "loss", "write objective = next_token or masked(token = N)"},

      {kValue, "AdamW", adamw},
      {kValue, "Adam", adamw},
      {kValue, "SGD", "write sgd(lr = 0.1)"},
      {kValue, "fp16", half},
      {kValue, "float16", half},
      {kValue, "half", half},
      {kValue, "bfloat16", half},
      {kValue, "fp32", single},
      {kValue, "float32", single},
      {kValue, "float", single},
      {kValue, "gpu", "a GPU's memory is device"},
      {kValue, "cuda", "a GPU's memory is device"},
      {kValue, "cpu", "the CPU's memory is host"},
      {kValue, "disk", "an SSD is ssd"},
      {kValue, "nvme", "an SSD is ssd"},
  };
}

const std::vector<ForeignSpelling> &foreignSpellings() {
  static const std::vector<ForeignSpelling> table = makeSpellings();
  return table;
}

std::string findSpelling(SpellingKind kind, std::string_view written) {
  for (const ForeignSpelling &foreign : foreignSpellings())
    if (foreign.kind == kind && foreign.written == written)
      return foreign.spelling;
  return "";
}

std::string spellingHint(SpellingKind kind, std::string_view written, const char *separator) {
  std::string spelling = findSpelling(kind, written);
  return spelling.empty() ? "" : separator + spelling;
}

} // namespace boa::frontend
