//===- Cases.cpp - Every compute op, in several shapes --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op with a reference in plain loops. Sizes are chosen to be no multiples
// of a vector, a block or a tile, and once to be some.
//
//===----------------------------------------------------------------------===//

#include "test/gradients/Cases.h"

#include <cmath>
#include <string>

namespace boa::testing {

namespace {

using Operands = const std::vector<Operand> &;
using Arguments = const std::vector<Values> &;
using Results = std::vector<Values>;

std::string tensor(std::vector<int64_t> shape, const std::string &element = "ELT") {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + element + ">";
}

/// func.func @f with these arguments (%0 is the first), body and results.
std::string function(std::vector<std::string> types, const std::string &body,
                     const std::string &results, const std::string &resultTypes) {
  std::string text = "func.func @f(";
  for (size_t i = 0; i < types.size(); ++i)
    text += (i ? ", " : "") + std::string("%a") + std::to_string(i) + ": " + types[i];
  text += ") -> (" + resultTypes + ") {\n" + body + "\n  return " + results + " : " + resultTypes +
          "\n}\n";
  return text;
}

int64_t lastOf(const Operand &operand) { return operand.shape.back(); }

//===----------------------------------------------------------------------===//
// References
//===----------------------------------------------------------------------===//

/// y[i] = f(x[i], z[i % size of z]).
Reference elementwise(std::function<double(double, double)> f) {
  return [f](Operands, Arguments a) -> Results {
    Values y(a[0].size());
    for (size_t i = 0; i < y.size(); ++i)
      y[i] = f(a[0][i], a.size() > 1 ? a[1][i % a[1].size()] : 0);
    return {y};
  };
}

double geluOf(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

Reference linear(bool transpose) {
  return [=](Operands operands, Arguments a) -> Results {
    int64_t in = lastOf(operands[0]), rows = a[0].size() / in;
    int64_t out = a[1].size() / in;
    Values y(rows * out);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t o = 0; o < out; ++o) {
        double sum = a.size() > 2 ? a[2][o] : 0;
        for (int64_t i = 0; i < in; ++i)
          sum += a[0][r * in + i] * (transpose ? a[1][o * in + i] : a[1][i * out + o]);
        y[r * out + o] = sum;
      }
    return {y};
  };
}

Results layerNorm(Operands operands, Arguments a) {
  int64_t width = lastOf(operands[0]);
  Values y(a[0].size());
  for (size_t r = 0; r < y.size(); r += width) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < width; ++i)
      mean += a[0][r + i] / width;
    for (int64_t i = 0; i < width; ++i)
      variance += (a[0][r + i] - mean) * (a[0][r + i] - mean) / width;
    for (int64_t i = 0; i < width; ++i)
      y[r + i] = (a[0][r + i] - mean) / std::sqrt(variance + 1e-5) * a[1][i] + a[2][i];
  }
  return {y};
}

Results rmsNorm(Operands operands, Arguments a) {
  int64_t width = lastOf(operands[0]);
  Values y(a[0].size());
  for (size_t r = 0; r < y.size(); r += width) {
    double square = 0;
    for (int64_t i = 0; i < width; ++i)
      square += a[0][r + i] * a[0][r + i] / width;
    for (int64_t i = 0; i < width; ++i)
      y[r + i] = a[0][r + i] / std::sqrt(square + 1e-5) * a[1][i];
  }
  return {y};
}

Reference rotary(int64_t heads, double base, double sign) {
  return [=](Operands operands, Arguments a) -> Results {
    int64_t time = operands[0].shape[1], width = lastOf(operands[0]);
    int64_t d = width / heads, half = d / 2;
    Values y(a[0].size());
    for (size_t r = 0; r < y.size() / width; ++r)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < half; ++i) {
          double angle = sign * (r % time) * std::pow(base, -2.0 * i / d);
          size_t at = r * width + h * d + i;
          double u = a[0][at], v = a[0][at + half];
          y[at] = u * std::cos(angle) - v * std::sin(angle);
          y[at + half] = v * std::cos(angle) + u * std::sin(angle);
        }
    return {y};
  };
}

Reference attention(int64_t heads, int64_t kvHeads, bool causal) {
  return [=](Operands operands, Arguments a) -> Results {
    int64_t batch = operands[0].shape[0], time = operands[0].shape[1];
    int64_t width = lastOf(operands[0]), d = width / heads, kvWidth = kvHeads * d;
    Values y(a[0].size());
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < time; ++t) {
          int64_t kv = h / (heads / kvHeads), seen = causal ? t + 1 : time;
          const double *q = &a[0][(b * time + t) * width + h * d];
          Values p(seen);
          double max = -INFINITY, sum = 0;
          for (int64_t j = 0; j < seen; ++j) {
            const double *k = &a[1][(b * time + j) * kvWidth + kv * d];
            for (int64_t x = 0; x < d; ++x)
              p[j] += q[x] * k[x] / std::sqrt(d);
            max = std::max(max, p[j]);
          }
          for (double &value : p)
            sum += value = std::exp(value - max);
          for (int64_t j = 0; j < seen; ++j)
            for (int64_t x = 0; x < d; ++x)
              y[(b * time + t) * width + h * d + x] +=
                  p[j] / sum * a[2][(b * time + j) * kvWidth + kv * d + x];
        }
    return {y};
  };
}

Results embedding(Operands operands, Arguments a) {
  int64_t width = lastOf(operands[0]);
  Values y;
  for (double token : a[1])
    for (int64_t i = 0; i < width; ++i)
      y.push_back(a[0][static_cast<int64_t>(token) * width + i]);
  return {y};
}

Results crossEntropy(Operands operands, Arguments a) {
  int64_t vocab = lastOf(operands[0]);
  double loss = 0;
  int64_t counted = 0;
  for (size_t r = 0; r < a[1].size(); ++r) {
    if (a[1][r] < 0)
      continue;
    double sum = 0;
    for (int64_t i = 0; i < vocab; ++i)
      sum += std::exp(a[0][r * vocab + i]);
    loss += std::log(sum) - a[0][r * vocab + static_cast<int64_t>(a[1][r])];
    ++counted;
  }
  return {{loss / std::max<int64_t>(counted, 1)}};
}

//===----------------------------------------------------------------------===//
// The cases
//===----------------------------------------------------------------------===//

void addElementwise(std::vector<Case> &all) {
  for (std::vector<int64_t> shape : {std::vector<int64_t>{2, 3, 7}, {1, 5, 16}, {3, 33}}) {
    std::string type = tensor(shape), row = tensor({shape.back()});
    std::string suffix = "_" + std::to_string(shape.back());
    auto binary = [&](const std::string &op, const std::string &rhs) {
      return function({type, rhs}, "  %y = boa." + op + " %a0, %a1 : " + type + ", " + rhs, "%y",
                      type);
    };
    auto unary = [&](const std::string &op) {
      return function({type}, "  %y = boa." + op + " %a0 : " + type, "%y", type);
    };
    auto add = [](double x, double y) { return x + y; };
    auto mul = [](double x, double y) { return x * y; };
    all.push_back({"add" + suffix, binary("add", type), elementwise(add)});
    all.push_back({"add_row" + suffix, binary("add", row), elementwise(add)});
    all.push_back({"mul" + suffix, binary("mul", type), elementwise(mul)});
    all.push_back({"mul_row" + suffix, binary("mul", row), elementwise(mul)});
    all.push_back({"scale" + suffix,
                   function({type}, "  %y = boa.scale %a0 by 0.75 : " + type, "%y", type),
                   elementwise([](double x, double) { return 0.75 * x; })});
    all.push_back(
        {"gelu" + suffix, unary("gelu"), elementwise([](double x, double) { return geluOf(x); })});
    all.push_back({"silu" + suffix, unary("silu"),
                   elementwise([](double x, double) { return x / (1 + std::exp(-x)); })});
  }
  // [time, width] added to every sequence: position embedding.
  std::string type = tensor({3, 4, 5}), positions = tensor({4, 5});
  all.push_back({"add_positions",
                 function({type, positions}, "  %y = boa.add %a0, %a1 : " + type + ", " + positions,
                          "%y", type),
                 elementwise([](double x, double y) { return x + y; })});
}

void addShape(std::vector<Case> &all) {
  std::string whole = tensor({2, 3, 12}), a = tensor({2, 3, 7}), b = tensor({2, 3, 5});
  all.push_back(
      {"split",
       function({whole}, "  %y, %z = boa.split %a0 : (" + whole + ") -> (" + a + ", " + b + ")",
                "%y, %z", a + ", " + b),
       [](Operands, Arguments in) -> Results {
         Values y, z;
         for (size_t i = 0; i < in[0].size(); ++i)
           (i % 12 < 7 ? y : z).push_back(in[0][i]);
         return {y, z};
       }});
  all.push_back({"concat",
                 function({a, b}, "  %y = boa.concat %a0, %a1 : (" + a + ", " + b + ") -> " + whole,
                          "%y", whole),
                 [](Operands, Arguments in) -> Results {
                   Values y;
                   for (size_t r = 0; r < 6; ++r) {
                     y.insert(y.end(), &in[0][r * 7], &in[0][r * 7] + 7);
                     y.insert(y.end(), &in[1][r * 5], &in[1][r * 5] + 5);
                   }
                   return {y};
                 }});
  for (int64_t width : {5, 24}) {
    std::string from = tensor({3, 4, width}), to = tensor({width}, "WIDE");
    all.push_back({"sum_leading_" + std::to_string(width),
                   function({from}, "  %y = boa.sum_leading %a0 : " + from + " to " + to, "%y", to),
                   [=](Operands, Arguments in) -> Results {
                     Values y(width);
                     for (size_t i = 0; i < in[0].size(); ++i)
                       y[i % width] += in[0][i];
                     return {y};
                   },
                   0, false, /*differentiable=*/false});
  }
}

void addLinear(std::vector<Case> &all) {
  struct Shape {
    int64_t rows, in, out;
  };
  for (Shape s : {Shape{3, 5, 7}, Shape{4, 16, 8}, Shape{65, 3, 51}})
    for (bool transpose : {false, true})
      for (bool bias : {false, true}) {
        std::string x = tensor({2, s.rows, s.in}), y = tensor({2, s.rows, s.out});
        std::string w = transpose ? tensor({s.out, s.in}) : tensor({s.in, s.out});
        std::vector<std::string> types{x, w};
        std::string op = "  %y = boa.linear %a0, %a1", in = x + ", " + w;
        if (bias) {
          types.push_back(tensor({s.out}));
          op += " bias %a2";
          in += ", " + types.back();
        }
        if (transpose)
          op += " transpose";
        op += " : (" + in + ") -> " + y;
        all.push_back({"linear_" + std::to_string(s.out) + (bias ? "_bias" : "") +
                           (transpose ? "_transpose" : ""),
                       function(types, op, "%y", y), linear(transpose)});
      }
}

void addNorms(std::vector<Case> &all) {
  for (int64_t width : {7, 16, 37}) {
    std::string x = tensor({2, 5, width}), w = tensor({width});
    std::string suffix = "_" + std::to_string(width);
    all.push_back(
        {"layer_norm" + suffix,
         function({x, w, w},
                  "  %y = boa.layer_norm %a0, %a1, %a2 : " + x + ", " + w + ", " + w + " -> " + x,
                  "%y", x),
         layerNorm});
    all.push_back(
        {"rms_norm" + suffix,
         function({x, w}, "  %y = boa.rms_norm %a0, %a1 : " + x + ", " + w + " -> " + x, "%y", x),
         rmsNorm});
  }
}

void addAttention(std::vector<Case> &all) {
  struct Shape {
    int64_t batch, time, heads, kvHeads, d;
  };
  for (Shape s : {Shape{2, 5, 3, 3, 4}, Shape{1, 9, 4, 2, 8}, Shape{1, 70, 2, 1, 6}})
    for (bool causal : {false, true}) {
      std::string q = tensor({s.batch, s.time, s.heads * s.d});
      std::string k = tensor({s.batch, s.time, s.kvHeads * s.d});
      std::string lse = tensor({s.batch, s.heads, s.time}, "WIDE");
      std::string op = "  %y, %lse = boa.attention %a0, %a1, %a2 heads " + std::to_string(s.heads) +
                       ", " + std::to_string(s.kvHeads) + (causal ? " causal" : "") + " : (" + q +
                       ", " + k + ", " + k + ") -> (" + q + ", " + lse + ")";
      all.push_back({"attention_" + std::to_string(s.time) + (causal ? "_causal" : ""),
                     function({q, k, k}, op, "%y", q), attention(s.heads, s.kvHeads, causal)});
    }
  for (bool inverse : {false, true}) {
    std::string x = tensor({2, 5, 24});
    all.push_back({std::string("rotary") + (inverse ? "_inverse" : ""),
                   function({x},
                            std::string("  %y = boa.rotary %a0 heads 3 ") +
                                (inverse ? "inverse " : "") + "{base = 100.0 : f64} : " + x,
                            "%y", x),
                   rotary(3, 100, inverse ? -1 : 1)});
  }
}

void addEnds(std::vector<Case> &all) {
  for (int64_t width : {5, 16}) {
    std::string table = tensor({11, width}), tokens = tensor({2, 7}, "i32");
    std::string y = tensor({2, 7, width});
    all.push_back(
        {"embedding_" + std::to_string(width),
         function({table, tokens},
                  "  %y = boa.embedding %a0, %a1 : (" + table + ", " + tokens + ") -> " + y, "%y",
                  y),
         embedding, 11});
  }
  for (int64_t vocab : {5, 19, 64})
    for (bool ignored : {false, true}) {
      std::string logits = tensor({3, 4, vocab}), targets = tensor({3, 4}, "i32");
      all.push_back({"cross_entropy_" + std::to_string(vocab) + (ignored ? "_ignored" : ""),
                     function({logits, targets},
                              "  %y = boa.cross_entropy %a0, %a1 : (" + logits + ", " + targets +
                                  ") -> tensor<WIDE>",
                              "%y", "tensor<WIDE>"),
                     crossEntropy, vocab, ignored});
    }
}

//===----------------------------------------------------------------------===//
// Larger: several threads, several blocks of attention, several ops together
//===----------------------------------------------------------------------===//

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
  %l1 = boa.layer_norm %x, %n1, %b1 : $X$, $W$, $W$ -> $X$
  %qkv = boa.linear %l1, %qw bias %qb : ($X$, $WQ$, $Q1$) -> $Q$
  %q, %k, %v = boa.split %qkv : ($Q$) -> ($X$, $X$, $X$)
  %y, %lse = boa.attention %q, %k, %v heads $H$, $H$ causal : ($X$, $X$, $X$) -> ($X$, $L$)
  %o = boa.linear %y, %ow bias %ob : ($X$, $WW$, $W$) -> $X$
  %h = boa.add %x, %o : $X$, $X$
  %l2 = boa.layer_norm %h, %n2, %b2 : $X$, $W$, $W$ -> $X$
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

/// Llama: RMSNorm, rotary, grouped queries, SwiGLU, transposed weights.
std::string llamaBlock(int64_t batch, int64_t time, int64_t width, int64_t heads, int64_t kvHeads) {
  int64_t kv = width / heads * kvHeads, hidden = 2 * width + 6;
  return substitute(R"(
func.func @f(%x: $X$, %n1: $W$, %qw: $WW$, %kw: $KW$, %vw: $KW$, %ow: $WW$, %n2: $W$,
             %gw: $FW$, %uw: $FW$, %dw: $WF$) -> ($X$) {
  %l1 = boa.rms_norm %x, %n1 : $X$, $W$ -> $X$
  %q0 = boa.linear %l1, %qw transpose : ($X$, $WW$) -> $X$
  %k0 = boa.linear %l1, %kw transpose : ($X$, $KW$) -> $K$
  %v = boa.linear %l1, %vw transpose : ($X$, $KW$) -> $K$
  %q = boa.rotary %q0 heads $H$ : $X$
  %k = boa.rotary %k0 heads $G$ : $K$
  %y, %lse = boa.attention %q, %k, %v heads $H$, $G$ causal : ($X$, $K$, $K$) -> ($X$, $L$)
  %o = boa.linear %y, %ow transpose : ($X$, $WW$) -> $X$
  %h = boa.add %x, %o : $X$, $X$
  %l2 = boa.rms_norm %h, %n2 : $X$, $W$ -> $X$
  %g = boa.linear %l2, %gw transpose : ($X$, $FW$) -> $F$
  %u = boa.linear %l2, %uw transpose : ($X$, $FW$) -> $F$
  %s = boa.silu %g : $F$
  %m = boa.mul %s, %u : $F$, $F$
  %d = boa.linear %m, %dw transpose : ($F$, $WF$) -> $X$
  %out = boa.add %h, %d : $X$, $X$
  return %out : $X$
})",
                    {{"X", tensor({batch, time, width})},
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
  %h = boa.layer_norm %x, %n, %b : $X$, $W$, $W$ -> $X$
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

void addLarge(std::vector<Case> &all) {
  auto add = [&](Case c) {
    c.large = true;
    all.push_back(c);
  };
  std::string x = tensor({3, 70, 131}), w = tensor({131});
  add({"gelu_large", function({x}, "  %y = boa.gelu %a0 : " + x, "%y", x),
       elementwise([](double v, double) { return geluOf(v); })});
  add({"layer_norm_large",
       function({x, w, w},
                "  %y = boa.layer_norm %a0, %a1, %a2 : " + x + ", " + w + ", " + w + " -> " + x,
                "%y", x),
       layerNorm});
  std::string weight = tensor({131, 203}), y = tensor({3, 70, 203}), bias = tensor({203});
  add({"linear_large",
       function({x, weight, bias},
                "  %y = boa.linear %a0, %a1 bias %a2 : (" + x + ", " + weight + ", " + bias +
                    ") -> " + y,
                "%y", y),
       linear(false)});
  std::string q = tensor({2, 300, 256}), k = tensor({2, 300, 128}),
              lse = tensor({2, 4, 300}, "WIDE");
  for (bool causal : {false, true})
    add({std::string("attention_large") + (causal ? "_causal" : ""),
         function({q, k, k},
                  std::string("  %y, %lse = boa.attention %a0, %a1, %a2 heads 4, 2") +
                      (causal ? " causal" : "") + " : (" + q + ", " + k + ", " + k + ") -> (" + q +
                      ", " + lse + ")",
                  "%y", q),
         attention(4, 2, causal)});
  add({"gpt_block", gptBlock(2, 70, 48, 3), nullptr});
  add({"llama_block", llamaBlock(2, 70, 48, 4, 2), nullptr});
  add({"tied_ends", tiedEnds(3, 40, 24, 67), nullptr, 67});
  add({"biased_head", biasedHead(3, 40, 24, 67), nullptr, 67, /*ignored=*/true});
}

/// Weights in bf16, widened before use.
void addBfloat(std::vector<Case> &all) {
  std::string x = tensor({2, 5, 12}), y = tensor({2, 5, 9});
  std::string w = tensor({12, 9}), b = tensor({9});
  std::string half = tensor({12, 9}, "bf16"), halfBias = tensor({9}, "bf16");
  Case c{"linear_bf16",
         function({x, half, halfBias},
                  "  %w = boa.cast %a1 : " + half + " to " + w + "\n  %b = boa.cast %a2 : " +
                      halfBias + " to " + b + "\n  %y = boa.linear %a0, %w bias %b : (" + x + ", " +
                      w + ", " + b + ") -> " + y,
                  "%y", y),
         [](Operands operands, Arguments a) {
           std::vector<Values> rounded = a;
           for (size_t i : {1, 2})
             rounded[i] = roundTo(operands[i], a[i]);
           return linear(false)(operands, rounded);
         }};
  c.differentiable = false;
  all.push_back(c);
  std::string narrow = tensor({2, 5, 12}, "bf16");
  Case d{"cast_to_bf16",
         function({x}, "  %y = boa.cast %a0 : " + x + " to " + narrow, "%y", narrow),
         [narrow](Operands, Arguments a) -> Results {
           return {roundTo(Operand{{2, 5, 12}, "bf16"}, a[0])};
         }};
  d.differentiable = false;
  all.push_back(d);
  // Widened, squared and rounded again: casts are of one type but in bf16.
  for (int64_t width : {5, 64}) {
    std::string from = tensor({3, width}), wide = tensor({3, width}, "WIDE");
    Case e{"cast_" + std::to_string(width),
           function({from},
                    "  %w = boa.cast %a0 : " + from + " to " + wide + "\n  %s = boa.mul %w, %w : " +
                        wide + ", " + wide + "\n  %y = boa.cast %s : " + wide + " to " + from,
                    "%y", from),
           elementwise([](double v, double) { return v * v; })};
    all.push_back(e);
  }
}

} // namespace

const std::vector<Case> &cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> list;
    addElementwise(list);
    addShape(list);
    addLinear(list);
    addNorms(list);
    addAttention(list);
    addEnds(list);
    addLarge(list);
    addBfloat(list);
    return list;
  }();
  return all;
}

std::vector<Values> makeArguments(const Case &c, const std::vector<Operand> &operands) {
  std::vector<Values> arguments;
  for (const Operand &operand : operands) {
    Values values = randomValues(operand.size(), 17 + arguments.size());
    // Weights of whole blocks as a model would have them: activations stay near 1.
    if (!c.reference && operand.shape.size() == 2)
      for (double &value : values)
        value *= 0.15;
    if (operand.element == "i32")
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] =
            static_cast<double>(static_cast<int64_t>(std::abs(values[i]) * 1e6) % c.indices);
        if (c.ignored && i % 3 == 1)
          values[i] = -1;
      }
    arguments.push_back(values);
  }
  return arguments;
}

} // namespace boa::testing
