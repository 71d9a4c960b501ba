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

#include "test/gradients/Parts.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace boa::testing {

namespace {

void addElementwise(std::vector<Case> &all) {
  auto add = [](double x, double y) { return x + y; };
  auto mul = [](double x, double y) { return x * y; };
  for (std::vector<int64_t> shape : {std::vector<int64_t>{2, 3, 7}, {1, 5, 16}, {3, 33}}) {
    std::string suffix = "_" + std::to_string(shape.back());
    all.push_back(makeBinary("add" + suffix, "add", shape, shape, add));
    all.push_back(makeBinary("add_row" + suffix, "add", shape, {shape.back()}, add));
    all.push_back(makeBinary("mul" + suffix, "mul", shape, shape, mul));
    all.push_back(makeBinary("mul_row" + suffix, "mul", shape, {shape.back()}, mul));
    all.push_back(
        makeUnary("scale" + suffix, "scale %a0 by 0.75", shape, [](double x) { return 0.75 * x; }));
    all.push_back(makeUnary("gelu" + suffix, "gelu %a0", shape, geluOf));
    all.push_back(makeUnary("silu" + suffix, "silu %a0", shape,
                            [](double x) { return x / (1 + std::exp(-x)); }));
  }
  // The keys 0 to 4: of the first nothing is dropped.
  for (int64_t width : {7, 32}) {
    const std::string x = tensor({2, 9, width}), keys = tensor({2, 9}, "i32");
    all.push_back(
        {"dropout_" + std::to_string(width),
         function({x, keys},
                  "  %y = boa.dropout %a0 keys %a1 : " + keys + " by 0.375 site 5 : " + x, "%y", x),
         dropout(0.375, 5), /*indices=*/5});
  }
  all.push_back(makeUnary("gelu_exact_33", "gelu %a0 exact", {3, 33}, exactGeluOf));
  // [time, width] added to every sequence: position embedding.
  all.push_back(makeBinary("add_positions", "add", {3, 4, 5}, {4, 5}, add));
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
      for (bool bias : {false, true})
        all.push_back(makeLinear("linear_" + std::to_string(s.out) + (bias ? "_bias" : "") +
                                     (transpose ? "_transpose" : ""),
                                 {2, s.rows}, s.in, s.out, transpose, bias));
}

void addNorms(std::vector<Case> &all) {
  for (int64_t width : {7, 16, 37}) {
    std::string suffix = "_" + std::to_string(width);
    all.push_back(makeLayerNorm("layer_norm" + suffix, {2, 5, width}));
    all.push_back(makeRmsNorm("rms_norm" + suffix, {2, 5, width}));
  }
  all.push_back(makeLayerNorm("layer_norm_heads", {2, 5, 21}, /*heads=*/3));
  all.push_back(makeRmsNorm("rms_norm_heads", {2, 5, 64}, /*heads=*/4));
}

void addAttention(std::vector<Case> &all) {
  for (AttentionShape s : {AttentionShape{2, 5, 3, 3, 4}, AttentionShape{1, 9, 4, 2, 8},
                           AttentionShape{1, 70, 2, 1, 6}})
    for (bool causal : {false, true})
      all.push_back(makeAttention("attention_" + std::to_string(s.time) + (causal ? "_causal" : ""),
                                  s, causal));
  // Windows that begin inside a block of keys, at one, and after the first row of a block.
  all.push_back(makeAttention("attention_window", {1, 70, 2, 1, 6}, /*causal=*/true, 9));
  all.push_back(makeAttention("attention_window_one", {2, 37, 2, 2, 8}, /*causal=*/true, 1));
  // Documents within a tile, over several, and of one row.
  for (bool causal : {false, true})
    all.push_back(makeAttention(std::string("attention_documents") + (causal ? "_causal" : ""),
                                {2, 70, 2, 1, 6}, causal, /*window=*/0, /*documents=*/30));
  all.push_back(makeAttention("attention_documents_window", {2, 70, 2, 2, 6}, /*causal=*/true,
                              /*window=*/9, /*documents=*/40));
  for (bool inverse : {false, true}) {
    std::string x = tensor({2, 5, 24});
    all.push_back({std::string("rotary") + (inverse ? "_inverse" : ""),
                   function({x},
                            std::string("  %y = boa.rotary %a0 heads 3 ") +
                                (inverse ? "inverse " : "") + "{base = 100.0 : f64} : " + x,
                            "%y", x),
                   rotary(3, 100, inverse ? -1 : 1)});
  }
  // Of the frequencies 1, 0.32, 0.1 and 0.03 two are between the bands.
  auto bands = [](double f) {
    const double wavelength = 2 * M_PI / f, factor = 8, low = 1, high = 4, context = 64;
    if (wavelength < context / high)
      return f;
    if (wavelength > context / low)
      return f / factor;
    const double smooth = (context / wavelength - low) / (high - low);
    return (1 - smooth) * f / factor + smooth * f;
  };
  auto linear = [](double f) { return f / 2.5; };
  const std::string x = tensor({2, 5, 16});
  auto addScaled = [&](const std::string &name, const std::string &attributes,
                       std::function<double(double)> scale) {
    all.push_back(
        {name,
         function({x},
                  "  %y = boa.rotary %a0 heads 2 {base = 100.0 : f64, " + attributes + "} : " + x,
                  "%y", x),
         rotary(2, 100, 1, scale)});
  };
  addScaled("rotary_linear", "factor = 2.5 : f64", linear);
  addScaled("rotary_llama3",
            "factor = 8.0 : f64, low = 1.0 : f64, high = 4.0 : f64, original_context = 64 : i64",
            bands);
}

void addEnds(std::vector<Case> &all) {
  for (int64_t width : {5, 16})
    all.push_back(makeEmbedding("embedding_" + std::to_string(width), 11, width, {2, 7}));
  for (int64_t width : {5, 16})
    all.push_back(
        makeEmbeddingBlocks("embedding_blocks_" + std::to_string(width), 7, 4, width, {2, 7}));
  for (int64_t vocab : {5, 19, 64})
    for (bool ignored : {false, true})
      all.push_back(
          makeCrossEntropy("cross_entropy_" + std::to_string(vocab) + (ignored ? "_ignored" : ""),
                           {3, 4}, vocab, ignored));
  for (bool ignored : {false, true})
    all.push_back(
        makeCrossEntropyBlocks(std::string("cross_entropy_blocks") + (ignored ? "_ignored" : ""),
                               {3, 4}, 19, 16, ignored));
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
    addLeast(list);
    addHuge(list);
    addBfloat(list);
    return list;
  }();
  return all;
}

//===----------------------------------------------------------------------===//
// What they are given, and what may come of it
//===----------------------------------------------------------------------===//

/// Of random values, documents of random lengths.
static Values startDocuments(const Values &random, int64_t time, int64_t longest) {
  Values starts(random.size());
  for (size_t first = 0; first < starts.size(); first += size_t(time))
    for (int64_t start = 0, end = 0; end < time; start = end) {
      end = start + 1 + int64_t(random[first + size_t(start)]) % longest;
      for (int64_t row = start; row < std::min(end, time); ++row)
        starts[first + size_t(row)] = double(start);
    }
  return starts;
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
    if (operand.element == "i32" && c.documents != 0)
      values = startDocuments(values, operand.shape.back(), c.documents);
    arguments.push_back(values);
  }
  return arguments;
}

std::vector<Values> makeSeeds(const std::vector<Operand> &results) {
  std::vector<Values> seeds;
  for (const Operand &result : results)
    seeds.push_back(randomValues(result.size(), 91 + seeds.size()));
  return seeds;
}

/// Largest |a - b| / max(|b|, what b's elements are like): in a gradient of a large vocabulary
/// all are small.
static double largestErrorOfScale(const Values &a, const Values &b) {
  const double scale = std::sqrt(squareOf(b) / double(b.size()));
  double largest = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double error = std::abs(a[i] - b[i]) / std::max(scale, std::abs(b[i]));
    if (std::isnan(error)) // the largest error of all
      return INFINITY;
    largest = std::max(largest, error);
  }
  return largest;
}

// In bf16 an op computes in f32 and rounds what it returns, once; for the gradient of attention it
// rounded its result, too, and may round what its products multiply. In a whole block every value
// is rounded that has one.
Difference compareWithDouble(const Case &c, const std::string &element, bool gradient,
                             const Values &got, const Values &want, MoreRoundings more) {
  if (got.size() != want.size())
    return {INFINITY, 0};
  const bool single = element == "f32";
  const bool attention = c.text.find("boa.attention") != std::string::npos;
  const bool biased = !gradient && c.text.find(" bias %") != std::string::npos;
  int roundings = 1;
  if (!c.reference || (attention && gradient) || (biased && more.products))
    roundings = 4;
  else if (attention && more.attention)
    roundings = 2;
  // Of a long row what comes out is small beside what was rounded on the way.
  if (!single && (!c.reference || (c.huge && attention && roundings > 1)))
    return {relativeError(got, want), roundings * kRounding};
  const double found = c.huge ? largestErrorOfScale(got, want) : largestError(got, want);
  if (!single)
    return {found, roundings * kRounding + 1e-5};
  return {found, gradient ? (c.large ? 5e-4 : 2e-5) : (c.large ? 3e-5 : 5e-6)};
}

} // namespace boa::testing
