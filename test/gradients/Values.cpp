//===- Values.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gradients/Values.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace boa::testing {

int64_t Operand::size() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

int64_t bytesOf(const Operand &operand) {
  int64_t each = operand.element == "f64" ? 8 : operand.element == "bf16" ? 2 : 4;
  return operand.size() * each;
}

void store(const Operand &operand, const Values &values, void *to) {
  if (static_cast<int64_t>(values.size()) != operand.size()) {
    std::fprintf(stderr, "wrong number of values\n");
    std::abort();
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (operand.element == "f64") {
      static_cast<double *>(to)[i] = values[i];
    } else if (operand.element == "f32") {
      static_cast<float *>(to)[i] = static_cast<float>(values[i]);
    } else if (operand.element == "i32") {
      static_cast<int32_t *>(to)[i] = static_cast<int32_t>(values[i]);
    } else { // bf16
      static_cast<uint16_t *>(to)[i] = toBfloat(static_cast<float>(values[i]));
    }
  }
}

Values load(const Operand &operand, const void *from) {
  Values values(operand.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (operand.element == "f64") {
      values[i] = static_cast<const double *>(from)[i];
    } else if (operand.element == "f32") {
      values[i] = static_cast<const float *>(from)[i];
    } else if (operand.element == "i32") {
      values[i] = static_cast<const int32_t *>(from)[i];
    } else {
      values[i] = fromBfloat(static_cast<const uint16_t *>(from)[i]);
    }
  }
  return values;
}

Values roundTo(const Operand &operand, const Values &values) {
  std::vector<char> memory(bytesOf(operand));
  store(operand, values, memory.data());
  return load(operand, memory.data());
}

Values randomValues(int64_t count, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  Values values(count);
  for (double &value : values)
    value = normal(engine);
  return values;
}

double largestError(const Values &a, const Values &b) {
  if (a.size() != b.size())
    return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double error = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    if (std::isnan(error)) // the largest error of all
      return INFINITY;
    largest = std::max(largest, error);
  }
  return largest;
}

double squareOf(const Values &values) {
  double sum = 0;
  for (double value : values)
    sum += value * value;
  return sum;
}

double relativeError(const Values &a, const Values &b) {
  Values difference = a;
  for (size_t i = 0; i < b.size(); ++i)
    difference[i] -= b[i];
  return std::sqrt(squareOf(difference) / squareOf(b));
}

std::string withElement(std::string text, const std::string &element) {
  for (size_t at; (at = text.find("ELT")) != std::string::npos;)
    text.replace(at, 3, element);
  for (size_t at; (at = text.find("WIDE")) != std::string::npos;)
    text.replace(at, 4, element == "bf16" ? "f32" : element);
  return text;
}

} // namespace boa::testing
