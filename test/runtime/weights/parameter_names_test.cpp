//===- parameter_names_test.cpp - Parts of tensors ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/parameter_names.h"

#include "gtest/gtest.h"

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace boa {
namespace {

using Shape = std::vector<int64_t>;

std::optional<TensorPart> Find(const std::string &name, const Shape &tensor, const Shape &shape) {
  Parameter parameter;
  parameter.external = name;
  return ExternalOf(/*entry=*/3, parameter).In(tensor, shape);
}

/// The elements of the tensor that are those of a parameter, in its order.
Shape ElementsOf(const TensorPart &part, int64_t first, int64_t count) {
  Shape found;
  const absl::Status status = part.ForEachRun(first, count, [&](int64_t at, int64_t run) {
    for (int64_t i = 0; i < run; ++i)
      found.push_back(at + i);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok());
  return found;
}

TEST(ExternalTensor, HasTheNumberOfTheLayer) {
  Parameter parameter;
  parameter.external = "h.*.w[2:, 3:]";
  const ExternalTensor tensor = ExternalOf(3, parameter);
  EXPECT_EQ(tensor.name, "h.3.w");
  EXPECT_EQ(tensor.row, 2);
  EXPECT_EQ(tensor.column, 3);
}

TEST(ExternalTensor, FitsWhereThereAreEnoughRowsAndColumns) {
  const Shape tensor = {5, 4};
  for (const auto &[name, shape, begin] :
       std::vector<std::tuple<const char *, Shape, int64_t>>{{"w", {5, 4}, 0},
                                                             {"w[2]", {4}, 8},
                                                             {"w[:]", {3, 4}, 0},
                                                             {"w[2:]", {3, 4}, 8},
                                                             {"w[1:, 2:]", {4, 2}, 6},
                                                             {"w[:,:]", {2, 3}, 0}}) {
    const std::optional<TensorPart> part = Find(name, tensor, shape);
    ASSERT_TRUE(part) << name;
    EXPECT_EQ(part->begin, begin) << name;
  }
  for (const auto &[name, shape] :
       std::vector<std::pair<const char *, Shape>>{{"w", {4, 4}},
                                                   {"w[5]", {4}},
                                                   {"w[2]", {1, 4}},
                                                   {"w[3:]", {3, 4}},
                                                   {"w[:]", {3, 3}},
                                                   {"w[1:, 2:]", {4, 3}},
                                                   {"w[2:, 2:]", {4, 2}},
                                                   {"w[:, 1:]", {4}}})
    EXPECT_FALSE(Find(name, tensor, shape)) << name;
  EXPECT_TRUE(Find("b[3:]", {5}, {2}));
  EXPECT_FALSE(Find("b[:, 3:]", {5}, {2}));
}

TEST(TensorPart, RunsAreItsRows) {
  const TensorPart block = *Find("w[1:, 2:]", {5, 4}, {3, 2});
  EXPECT_EQ(ElementsOf(block, 0, 6), (Shape{6, 7, 10, 11, 14, 15}));
  EXPECT_EQ(ElementsOf(block, 1, 3), (Shape{7, 10, 11}));
  EXPECT_EQ(ElementsOf(*Find("w[1:]", {5, 4}, {2, 4}), 3, 3), (Shape{7, 8, 9}));
}

// A tensor of 5 x 6.
TEST(TensorPart, OverlapsWhereAnElementIsOfBoth) {
  const auto overlap = [](const char *one, const Shape &shape, const char *other,
                          const Shape &of_other) {
    const int64_t count = CountElements(shape), others = CountElements(of_other);
    const TensorPart a = *Find(one, {5, 6}, shape), b = *Find(other, {5, 6}, of_other);
    EXPECT_EQ(a.Overlaps(count, b, others), b.Overlaps(others, a, count));
    return a.Overlaps(count, b, others);
  };
  EXPECT_TRUE(overlap("w", {5, 6}, "w[4]", {6}));
  EXPECT_FALSE(overlap("w[:]", {2, 6}, "w[2:]", {3, 6}));
  EXPECT_TRUE(overlap("w[:]", {3, 6}, "w[2:]", {3, 6}));
  EXPECT_FALSE(overlap("w[:, :]", {5, 2}, "w[:, 2:]", {5, 4}));
  EXPECT_TRUE(overlap("w[:, :]", {5, 3}, "w[:, 2:]", {5, 4}));
  EXPECT_FALSE(overlap("w[:, :]", {2, 3}, "w[2:, :]", {3, 3}));
  EXPECT_TRUE(overlap("w[1]", {6}, "w[:, 5:]", {5, 1}));
  EXPECT_FALSE(overlap("w[4]", {6}, "w[:, 5:]", {4, 1}));
}

} // namespace
} // namespace boa
