//===- Parts.cpp ----------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gradients/Parts.h"

#include <algorithm>
#include <cmath>

namespace boa::testing {

std::string tensor(std::vector<int64_t> shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + element + ">";
}

std::string function(std::vector<std::string> types, const std::string &body,
                     const std::string &results, const std::string &resultTypes) {
  std::string text = "func.func @f(";
  for (size_t i = 0; i < types.size(); ++i)
    text += (i ? ", " : "") + std::string("%a") + std::to_string(i) + ": " + types[i];
  text += ") -> (" + resultTypes + ") {\n" + body + "\n  return " + results + " : " + resultTypes +
          "\n}\n";
  return text;
}

static int64_t lastOf(const Operand &operand) { return operand.shape.back(); }

//===----------------------------------------------------------------------===//
// References
//===----------------------------------------------------------------------===//

Reference elementwise(std::function<double(double, double)> f) {
  return [f](Operands, Arguments a) -> Results {
    Values y(a[0].size());
    for (size_t i = 0; i < y.size(); ++i)
      y[i] = f(a[0][i], a.size() > 1 ? a[1][i % a[1].size()] : 0);
    return {y};
  };
}

static uint32_t mixed(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

Reference dropout(double probability, uint32_t site) {
  return [=](Operands operands, Arguments a) -> Results {
    const auto width = size_t(lastOf(operands[0]));
    Values y(a[0].size());
    for (size_t i = 0; i < y.size(); ++i) {
      const auto key = uint32_t(int32_t(a[1][i / width])), column = uint32_t(i % width);
      const uint32_t hash = mixed(mixed(mixed(key ^ site * 0x9e3779b9u) ^ column) + key);
      const bool kept = hash >= probability * 0x1p32;
      y[i] = key == 0 ? a[0][i] : kept ? a[0][i] / (1 - probability) : 0;
    }
    return {y};
  };
}

double geluOf(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

double exactGeluOf(double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }

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

// Of the whole last dimension, or of heads as wide as the weight.
Results layerNorm(Operands operands, Arguments a) {
  int64_t width = lastOf(operands[1]);
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
  int64_t width = lastOf(operands[1]);
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

Reference rotary(int64_t heads, double base, double sign, std::function<double(double)> scale) {
  return [=](Operands operands, Arguments a) -> Results {
    int64_t time = operands[0].shape[1], width = lastOf(operands[0]);
    int64_t d = width / heads, half = d / 2;
    Values y(a[0].size());
    for (size_t r = 0; r < y.size() / width; ++r)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < half; ++i) {
          double frequency = std::pow(base, -2.0 * i / d);
          double angle = sign * (r % time) * (scale ? scale(frequency) : frequency);
          size_t at = r * width + h * d + i;
          double u = a[0][at], v = a[0][at + half];
          y[at] = u * std::cos(angle) - v * std::sin(angle);
          y[at + half] = v * std::cos(angle) + u * std::sin(angle);
        }
    return {y};
  };
}

Reference attention(int64_t heads, int64_t kvHeads, bool causal, int64_t window) {
  return [=](Operands operands, Arguments a) -> Results {
    int64_t batch = operands[0].shape[0], time = operands[0].shape[1];
    int64_t width = lastOf(operands[0]), d = width / heads, kvWidth = kvHeads * d;
    Values y(a[0].size());
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < time; ++t) {
          int64_t kv = h / (heads / kvHeads), seen = causal ? t + 1 : time;
          int64_t first = window ? std::max<int64_t>(0, seen - window) : 0;
          auto isOther = [&](int64_t j) {
            return a.size() > 3 && a[3][size_t(b * time + j)] != a[3][size_t(b * time + t)];
          };
          while (isOther(first))
            ++first;
          while (isOther(seen - 1))
            --seen;
          const double *q = &a[0][(b * time + t) * width + h * d];
          Values p(seen);
          double max = -INFINITY, sum = 0;
          for (int64_t j = first; j < seen; ++j) {
            const double *k = &a[1][(b * time + j) * kvWidth + kv * d];
            for (int64_t x = 0; x < d; ++x)
              p[j] += q[x] * k[x] / std::sqrt(d);
            max = std::max(max, p[j]);
          }
          for (int64_t j = first; j < seen; ++j)
            sum += p[j] = std::exp(p[j] - max);
          for (int64_t j = first; j < seen; ++j)
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
// Cases of one op
//===----------------------------------------------------------------------===//

/// Of x and what else an op takes, to a tensor as x is.
Case makeRows(const std::string &name, const std::string &op, std::vector<int64_t> shape,
              Reference reference, int vectors, int64_t heads) {
  std::string x = tensor(shape), w = tensor({shape.back() / heads});
  std::vector<std::string> types{x};
  std::string in = "%a0", of = x;
  for (int i = 0; i < vectors; ++i) {
    types.push_back(w);
    in += ", %a" + std::to_string(i + 1);
    of += ", " + w;
  }
  if (heads > 1)
    in += " {heads = " + std::to_string(heads) + " : i64}";
  return {name, function(types, "  %y = boa." + op + " " + in + " : (" + of + ") -> " + x, "%y", x),
          std::move(reference)};
}

Case makeLayerNorm(const std::string &name, std::vector<int64_t> shape, int64_t heads) {
  return makeRows(name, "layer_norm", shape, layerNorm, 2, heads);
}

Case makeRmsNorm(const std::string &name, std::vector<int64_t> shape, int64_t heads) {
  return makeRows(name, "rms_norm", shape, rmsNorm, 1, heads);
}

Case makeUnary(const std::string &name, const std::string &op, std::vector<int64_t> shape,
               std::function<double(double)> f) {
  std::string x = tensor(shape);
  return {name, function({x}, "  %y = boa." + op + " : " + x, "%y", x),
          elementwise([f](double v, double) { return f(v); })};
}

Case makeBinary(const std::string &name, const std::string &op, std::vector<int64_t> shape,
                std::vector<int64_t> other, std::function<double(double, double)> f) {
  std::string x = tensor(shape), z = tensor(other);
  return {name, function({x, z}, "  %y = boa." + op + " %a0, %a1 : " + x + ", " + z, "%y", x),
          elementwise(f)};
}

Case makeLinear(const std::string &name, std::vector<int64_t> rows, int64_t in, int64_t out,
                bool transpose, bool bias) {
  std::vector<int64_t> from = rows, to = rows;
  from.push_back(in);
  to.push_back(out);
  std::string x = tensor(from), y = tensor(to);
  std::string w = transpose ? tensor({out, in}) : tensor({in, out});
  std::vector<std::string> types{x, w};
  std::string op = "  %y = boa.linear %a0, %a1", of = x + ", " + w;
  if (bias) {
    types.push_back(tensor({out}));
    op += " bias %a2";
    of += ", " + types.back();
  }
  if (transpose)
    op += " transpose";
  op += " : (" + of + ") -> " + y;
  return {name, function(types, op, "%y", y), linear(transpose)};
}

Case makeAttention(const std::string &name, const AttentionShape &s, bool causal, int64_t window,
                   int64_t documents) {
  std::string q = tensor({s.batch, s.time, s.heads * s.d});
  std::string k = tensor({s.batch, s.time, s.kvHeads * s.d});
  std::string lse = tensor({s.batch, s.heads, s.time}, "WIDE");
  const std::string starts = tensor({s.batch, s.time}, "i32");
  std::string op = std::string("  %y, %lse = boa.attention %a0, %a1, %a2") +
                   (documents ? " documents %a3" : "") + " heads " + std::to_string(s.heads) +
                   ", " + std::to_string(s.kvHeads) + (causal ? " causal" : "") +
                   (window ? " {window = " + std::to_string(window) + " : i64}" : "") + " : (" + q +
                   ", " + k + ", " + k + (documents ? ", " + starts : "") + ") -> (" + q + ", " +
                   lse + ")";
  std::vector<std::string> operands = {q, k, k};
  if (documents)
    operands.push_back(starts);
  Case made = {name, function(operands, op, "%y", q),
               attention(s.heads, s.kvHeads, causal, window)};
  made.indices = made.documents = documents;
  return made;
}

Case makeEmbedding(const std::string &name, int64_t vocab, int64_t width,
                   std::vector<int64_t> shape) {
  std::string table = tensor({vocab, width}), tokens = tensor(shape, "i32");
  shape.push_back(width);
  std::string y = tensor(shape);
  return {name,
          function({table, tokens},
                   "  %y = boa.embedding %a0, %a1 : (" + table + ", " + tokens + ") -> " + y, "%y",
                   y),
          embedding, vocab};
}

Case makeEmbeddingBlocks(const std::string &name, int64_t first, int64_t second, int64_t width,
                         std::vector<int64_t> shape) {
  const std::string x = tensor({first, width}), y = tensor({second, width}),
                    tokens = tensor(shape, "i32"), rows = tensor({shape[0], shape[1], width});
  auto block = [&](const char *to, const char *table, const char *from, const std::string &type) {
    return std::string("  %") + to + " = boa.embedding %" + table + ", %" + from + " partial : (" +
           type + ", " + tokens + ") -> " + rows + "\n";
  };
  return {name,
          function({x, y, tokens},
                   block("s", "a0", "a2", x) + "  %rest = boa.rebase %a2 by " +
                       std::to_string(first) + " : " + tokens + "\n" + block("t", "a1", "rest", y) +
                       "  %y = boa.add %s, %t : " + rows + ", " + rows,
                   "%y", rows),
          [=](Operands operands, Arguments a) -> Results {
            Operand whole = operands[0];
            whole.shape.front() = first + second;
            Values table = a[0];
            table.insert(table.end(), a[1].begin(), a[1].end());
            return embedding({whole, operands[2]}, {table, a[2]});
          },
          first + second};
}

Case makeCrossEntropy(const std::string &name, std::vector<int64_t> shape, int64_t vocab,
                      bool ignored) {
  std::string targets = tensor(shape, "i32");
  shape.push_back(vocab);
  std::string logits = tensor(shape);
  return {name,
          function({logits, targets},
                   "  %y = boa.cross_entropy %a0, %a1 : (" + logits + ", " + targets +
                       ") -> tensor<WIDE>",
                   "%y", "tensor<WIDE>"),
          crossEntropy, vocab, ignored};
}

Case makeCrossEntropyBlocks(const std::string &name, std::vector<int64_t> shape, int64_t first,
                            int64_t second, bool ignored) {
  const std::string targets = tensor(shape, "i32");
  const std::string values = tensor(shape, "WIDE"), two = values + ", " + values;
  const std::string x = tensor({shape[0], shape[1], first}),
                    y = tensor({shape[0], shape[1], second});
  auto block = [&](const char *to, const char *from, const char *logits, const std::string &type) {
    return std::string("  ") + to + " = boa.cross_entropy_block " + from + ", %" + logits + " : (" +
           two + ", " + targets + ", " + type + ") -> (" + two + ")\n";
  };
  return {name,
          function({x, y, targets},
                   "  %l0 = arith.constant dense<-1.0e30> : " + values +
                       "\n  %t0 = arith.constant dense<0.0> : " + values + "\n" +
                       block("%l1, %t1", "%l0, %t0, %a2", "a0", x) +
                       "  %rest = boa.rebase %a2 by " + std::to_string(first) + " : " + targets +
                       "\n" + block("%l2, %t2", "%l1, %t1, %rest", "a1", y) +
                       "  %y = boa.cross_entropy_end %l2, %t2, %a2 : (" + two + ", " + targets +
                       ") -> tensor<WIDE>",
                   "%y", "tensor<WIDE>"),
          [=](Operands operands, Arguments a) -> Results {
            Operand whole = operands[0];
            whole.shape.back() = first + second;
            Values logits;
            for (size_t r = 0; r < a[2].size(); ++r)
              for (auto [part, width] : {std::pair(&a[0], first), {&a[1], second}})
                logits.insert(logits.end(), &(*part)[r * size_t(width)],
                              &(*part)[r * size_t(width)] + width);
            return crossEntropy({whole, operands[2]}, {logits, a[2]});
          },
          first + second, ignored};
}

} // namespace boa::testing
