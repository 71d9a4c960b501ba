//===- LargeCases.cpp - Whole blocks, and sizes at either end -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where kernels for a device change their shape: a row of one element and rows that a warp,
// a block's registers or nothing but memory holds; more rows than a grid has in its second
// dimension; lists longer than a block's; vocabulary and context of today's models.
//
//===----------------------------------------------------------------------===//

#include "test/gradients/Parts.h"

#include <cmath>

namespace boa::testing {

namespace {

/// Text with each $NAME$ replaced by what it stands for.
std::string substitute(std::string text,
                       const std::vector<std::pair<std::string, std::string>> &types) {
  for (const auto &[name, type] : types)
    for (size_t at; (at = text.find("$" + name + "$")) != std::string::npos;)
      text.replace(at, name.size() + 2, type);
  return text;
}

/// GPT-2: pre-norm attention and feed-forward with residuals.
std::string gptBlock(int64_t batch, int64_t time, int64_t width, int64_t heads) {
  return substitute(R"(
func.func @f(%x: $X$, %n1: $W$, %b1: $W$, %qw: $WQ$, %qb: $Q1$, %ow: $WW$, %ob: $W$,
             %n2: $W$, %b2: $W$, %fw: $WF$, %fb: $F1$, %pw: $FW$, %pb: $W$) -> ($X$) {
  %l1 = boa.layer_norm %x, %n1, %b1 : ($X$, $W$, $W$) -> $X$
  %qkv = boa.linear %l1, %qw bias %qb : ($X$, $WQ$, $Q1$) -> $Q$
  %q, %k, %v = boa.split %qkv : ($Q$) -> ($X$, $X$, $X$)
  %y, %lse = boa.attention %q, %k, %v heads $H$, $H$ causal : ($X$, $X$, $X$) -> ($X$, $L$)
  %o = boa.linear %y, %ow bias %ob : ($X$, $WW$, $W$) -> $X$
  %h = boa.add %x, %o : $X$, $X$
  %l2 = boa.layer_norm %h, %n2, %b2 : ($X$, $W$, $W$) -> $X$
  %f = boa.linear %l2, %fw bias %fb : ($X$, $WF$, $F1$) -> $F$
  %g = boa.gelu %f : $F$
  %p = boa.linear %g, %pw bias %pb : ($F$, $FW$, $W$) -> $X$
  %out = boa.add %h, %p : $X$, $X$
  return %out : $X$
})",
                    {{"X", tensor({batch, time, width})},
                     {"W", tensor({width})},
                     {"WQ", tensor({width, 3 * width})},
                     {"Q1", tensor({3 * width})},
                     {"Q", tensor({batch, time, 3 * width})},
                     {"WW", tensor({width, width})},
                     {"WF", tensor({width, 4 * width})},
                     {"F1", tensor({4 * width})},
                     {"FW", tensor({4 * width, width})},
                     {"F", tensor({batch, time, 4 * width})},
                     {"L", tensor({batch, heads, time}, "WIDE")},
                     {"H", std::to_string(heads)}});
}

/// Llama: RMSNorm, rotary, grouped queries, SwiGLU, transposed weights. Qwen 3 has norms of each
/// head of queries and keys, too.
std::string llamaBlock(int64_t batch, int64_t time, int64_t width, int64_t heads, int64_t kvHeads,
                       bool headNorms = false) {
  int64_t kv = width / heads * kvHeads, hidden = 2 * width + 6;
  const std::string norms = R"(  %qn = boa.rms_norm %q0, %n3 {heads = $H$ : i64} : ($X$, $D$) -> $X$
  %kn = boa.rms_norm %k0, %n4 {heads = $G$ : i64} : ($K$, $D$) -> $K$)";
  return substitute(R"(
func.func @f(%x: $X$, %n1: $W$, %qw: $WW$, %kw: $KW$, %vw: $KW$, %ow: $WW$, %n2: $W$,
             %gw: $FW$, %uw: $FW$, %dw: $WF$$NORMARGUMENTS$) -> ($X$) {
  %l1 = boa.rms_norm %x, %n1 : ($X$, $W$) -> $X$
  %q0 = boa.linear %l1, %qw transpose : ($X$, $WW$) -> $X$
  %k0 = boa.linear %l1, %kw transpose : ($X$, $KW$) -> $K$
  %v = boa.linear %l1, %vw transpose : ($X$, $KW$) -> $K$
$NORMS$  %q = boa.rotary %$Q$ heads $H$ : $X$
  %k = boa.rotary %$KEYS$ heads $G$ : $K$
  %y, %lse = boa.attention %q, %k, %v heads $H$, $G$ causal : ($X$, $K$, $K$) -> ($X$, $L$)
  %o = boa.linear %y, %ow transpose : ($X$, $WW$) -> $X$
  %h = boa.add %x, %o : $X$, $X$
  %l2 = boa.rms_norm %h, %n2 : ($X$, $W$) -> $X$
  %g = boa.linear %l2, %gw transpose : ($X$, $FW$) -> $F$
  %u = boa.linear %l2, %uw transpose : ($X$, $FW$) -> $F$
  %s = boa.silu %g : $F$
  %m = boa.mul %s, %u : $F$, $F$
  %d = boa.linear %m, %dw transpose : ($F$, $WF$) -> $X$
  %out = boa.add %h, %d : $X$, $X$
  return %out : $X$
})",
                    {{"NORMARGUMENTS", headNorms ? ", %n3: $D$, %n4: $D$" : ""},
                     {"NORMS", headNorms ? norms + "\n" : ""},
                     {"Q", headNorms ? "qn" : "q0"},
                     {"KEYS", headNorms ? "kn" : "k0"},
                     {"D", tensor({width / heads})},
                     {"X", tensor({batch, time, width})},
                     {"W", tensor({width})},
                     {"WW", tensor({width, width})},
                     {"KW", tensor({kv, width})},
                     {"K", tensor({batch, time, kv})},
                     {"FW", tensor({hidden, width})},
                     {"WF", tensor({width, hidden})},
                     {"F", tensor({batch, time, hidden})},
                     {"L", tensor({batch, heads, time}, "WIDE")},
                     {"H", std::to_string(heads)},
                     {"G", std::to_string(kvHeads)}});
}

/// Embedding with positions, norm, tied head and loss: one table used twice.
std::string tiedEnds(int64_t batch, int64_t time, int64_t width, int64_t vocab) {
  return substitute(R"(
func.func @f(%tokens: $I$, %targets: $I$, %table: $V$, %positions: $P$, %n: $W$, %b: $W$)
    -> (tensor<WIDE>) {
  %e = boa.embedding %table, %tokens : ($V$, $I$) -> $X$
  %x = boa.add %e, %positions : $X$, $P$
  %h = boa.layer_norm %x, %n, %b : ($X$, $W$, $W$) -> $X$
  %logits = boa.linear %h, %table transpose : ($X$, $V$) -> $L$
  %loss = boa.cross_entropy %logits, %targets : ($L$, $I$) -> tensor<WIDE>
  return %loss : tensor<WIDE>
})",
                    {{"I", tensor({batch, time}, "i32")},
                     {"V", tensor({vocab, width})},
                     {"P", tensor({time, width})},
                     {"W", tensor({width})},
                     {"X", tensor({batch, time, width})},
                     {"L", tensor({batch, time, vocab})}});
}

/// A head by itself, with a bias, of logits that are scaled.
std::string biasedHead(int64_t batch, int64_t time, int64_t width, int64_t vocab) {
  return substitute(R"(
func.func @f(%x: $X$, %targets: $I$, %w: $W$, %b: $B$) -> (tensor<WIDE>) {
  %y = boa.linear %x, %w bias %b : ($X$, $W$, $B$) -> $L$
  %logits = boa.scale %y by 0.5 : $L$
  %loss = boa.cross_entropy %logits, %targets : ($L$, $I$) -> tensor<WIDE>
  return %loss : tensor<WIDE>
})",
                    {{"I", tensor({batch, time}, "i32")},
                     {"W", tensor({width, vocab})},
                     {"B", tensor({vocab})},
                     {"X", tensor({batch, time, width})},
                     {"L", tensor({batch, time, vocab})}});
}

/// A head whose vocabulary is one block.
std::string blockHead(int64_t batch, int64_t time, int64_t width, int64_t vocab) {
  return substitute(R"(
func.func @f(%x: $X$, %targets: $I$, %w: $W$) -> (tensor<WIDE>) {
  %logits = boa.linear %x, %w transpose : ($X$, $W$) -> $L$
  %none = arith.constant dense<-1.0e30> : $S$
  %zero = arith.constant dense<0.0> : $S$
  %log, %logit = boa.cross_entropy_block %none, %zero, %targets, %logits
      : ($S$, $S$, $I$, $L$) -> ($S$, $S$)
  %loss = boa.cross_entropy_end %log, %logit, %targets : ($S$, $S$, $I$) -> tensor<WIDE>
  return %loss : tensor<WIDE>
})",
                    {{"I", tensor({batch, time}, "i32")},
                     {"W", tensor({vocab, width})},
                     {"S", tensor({batch, time}, "WIDE")},
                     {"X", tensor({batch, time, width})},
                     {"L", tensor({batch, time, vocab})}});
}

double siluOf(double x) { return x / (1 + std::exp(-x)); }

} // namespace

void addLarge(std::vector<Case> &all) {
  auto add = [&](Case c) {
    c.large = true;
    all.push_back(c);
  };
  add(makeUnary("gelu_large", "gelu %a0", {3, 70, 131}, geluOf));
  add(makeLayerNorm("layer_norm_large", {3, 70, 131}));
  add(makeLinear("linear_large", {3, 70}, 131, 203, /*transpose=*/false, /*bias=*/true));
  for (bool causal : {false, true}) {
    add(makeAttention(std::string("attention_large") + (causal ? "_causal" : ""),
                      {2, 300, 4, 2, 64}, causal));
    all.back().slowEmulated = !causal; // the other has all that it has, and a mask
  }
  // Some rows see none of the first keys that their block of rows sees.
  add(makeAttention("attention_large_window", {2, 300, 4, 2, 16}, /*causal=*/true, 130));
  add(makeAttention("attention_large_documents", {2, 300, 4, 2, 16}, /*causal=*/true, /*window=*/0,
                    /*documents=*/200));
  add({"gpt_block", gptBlock(2, 70, 48, 3), nullptr});
  // As wide as the example: six columns of a row for each lane.
  add({"gpt_block_192", gptBlock(1, 5, 192, 3), nullptr});
  add({"llama_block", llamaBlock(2, 70, 48, 4, 2), nullptr});
  add({"qwen_block", llamaBlock(2, 70, 48, 4, 2, /*headNorms=*/true), nullptr});
  add({"tied_ends", tiedEnds(3, 40, 24, 67), nullptr, 67});
  add({"biased_head", biasedHead(3, 40, 24, 67), nullptr, 67, /*ignored=*/true});
  add({"block_head", blockHead(3, 40, 24, 67), nullptr, 67, /*ignored=*/true});
}

void addLeast(std::vector<Case> &all) {
  auto add = [](double x, double y) { return x + y; };
  all.push_back(makeBinary("add_least", "add", {1, 1, 1}, {1, 1, 1}, add));
  all.push_back(makeBinary("add_row_least", "add", {1, 3, 1}, {1}, add));
  all.push_back(makeUnary("silu_least", "silu %a0", {1, 1, 3}, siluOf));
  all.push_back(makeLayerNorm("layer_norm_least", {1, 1, 2}));
  all.push_back(makeRmsNorm("rms_norm_least", {1, 1, 1}));
  all.push_back(makeLinear("linear_least", {1, 1}, 1, 1, /*transpose=*/false, /*bias=*/true));
  for (bool causal : {false, true})
    all.push_back(makeAttention(std::string("attention_least") + (causal ? "_causal" : ""),
                                {1, 1, 1, 1, 1}, causal));
  all.push_back(makeAttention("attention_warp", {1, 33, 1, 1, 33}, /*causal=*/true));
  all.push_back(makeEmbedding("embedding_least", 2, 1, {1, 1}));
  all.push_back(makeCrossEntropy("cross_entropy_least", {1, 1}, 2, /*ignored=*/false));
}

void addHuge(std::vector<Case> &all) {
  auto push = [&](Case c) {
    c.large = c.huge = true;
    all.push_back(c);
  };
  auto add = [](double x, double y) { return x + y; };
  // Rows: of more than a warp holds, than a block holds, than fit its registers; many.
  for (int64_t width : {1027, 17001, 33001}) {
    const std::string suffix = "_" + std::to_string(width);
    push(makeLayerNorm("layer_norm" + suffix, {1, 3, width}));
    push(makeRmsNorm("rms_norm" + suffix, {1, 3, width}));
    push(makeCrossEntropy("cross_entropy" + suffix, {1, 3}, width, /*ignored=*/true));
  }
  push(makeUnary("silu_33001", "silu %a0", {1, 3, 33001}, siluOf));
  push(makeBinary("add_rows_33003", "add", {3, 11001, 5}, {5}, add));
  push(makeLayerNorm("layer_norm_rows_33003", {3, 11001, 5}));
  push(makeRmsNorm("rms_norm_rows_33003", {3, 11001, 5}));
  push(makeLinear("linear_rows_33003", {3, 11001}, 3, 5, /*transpose=*/false, /*bias=*/true));
  push(makeCrossEntropy("cross_entropy_rows_33003", {3, 11001}, 5, /*ignored=*/true));
  // A vocabulary.
  constexpr int64_t vocab = 128256;
  push(makeCrossEntropy("cross_entropy_128256", {1, 5}, vocab, /*ignored=*/true));
  push(makeLinear("linear_128256", {1, 5}, 7, vocab, /*transpose=*/true, /*bias=*/true));
  push({"head_128256", biasedHead(1, 20, 7, vocab), nullptr, vocab, /*ignored=*/true});
  push(makeEmbedding("embedding_128256", vocab, 5, {2, 700}));
  // On a GPU its products are split.
  push({"ends_large", tiedEnds(1, 512, 128, 4099), nullptr, 4099});
  // Tokens of which some, or all, are the same: more than are listed at once.
  push(makeEmbedding("embedding_repeats", 37, 72, {3, 700}));
  push(makeEmbedding("embedding_repeats_one", 1, 13, {1, 1100}));
  // A context, and heads.
  push(makeAttention("attention_8192_causal", {1, 8192, 1, 1, 8}, /*causal=*/true));
  all.back().slowEmulated = true;
  push(makeAttention("attention_1027_causal", {1, 1027, 1, 1, 8}, /*causal=*/true));
  for (bool causal : {false, true})
    push(makeAttention(std::string("attention_head_128") + (causal ? "_causal" : ""),
                       {1, 201, 2, 1, 128}, causal));
  push(makeAttention("attention_head_160", {1, 67, 2, 2, 160}, /*causal=*/true));
  std::string x = tensor({1, 8192, 6});
  push({"rotary_8192",
        function({x}, "  %y = boa.rotary %a0 heads 1 {base = 10000.0 : f64} : " + x, "%y", x),
        rotary(1, 10000, 1)});
}

} // namespace boa::testing
