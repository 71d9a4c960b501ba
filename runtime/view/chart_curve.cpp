//===- chart_curve.cpp - Tokens a second over the batch -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/units.h"
#include "runtime/view/charts.h"
#include "runtime/view/svg.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

namespace boa {
namespace {

constexpr double kCurveLeft = 96, kCurveRight = 780, kCurveWidth = 960, kCurveHeight = 240,
                 kCurveTop = 14;

struct Series {
  std::string name, style;
  std::vector<std::pair<int64_t, double>> points;
};

} // namespace

std::string DrawCurve(const std::vector<BatchPoint> &curve, int64_t batch) {
  if (curve.empty())
    return "";
  std::vector<Series> all;
  auto series = [&](const std::string &name, const std::string &style) -> Series & {
    for (Series &each : all)
      if (each.name == name)
        return each;
    return all.emplace_back(Series{name, style, {}});
  };
  int64_t least = curve[0].batch, largest = curve[0].batch;
  double most = 0;
  std::vector<std::vector<std::string>> rows;
  for (const BatchPoint &point : curve) {
    const std::string &order = point.order;
    const std::string colour = order == "vertical" ? "s0" : "s1";
    series(order, "line " + colour).points.emplace_back(point.batch, point.tokens_per_second);
    if (order == "vertical" && point.compute_roof > 0)
      series("compute alone", "roof ink").points.emplace_back(point.batch, point.compute_roof);
    if (point.traffic_roof > 0)
      series("transfers alone, " + order, "roof " + colour)
          .points.emplace_back(point.batch, point.traffic_roof);
    least = std::min(least, point.batch);
    largest = std::max(largest, point.batch);
    most = std::max({most, point.tokens_per_second, order == "vertical" ? point.compute_roof : 0});
    rows.push_back({order, absl::StrCat(point.batch), FormatCount(point.tokens_per_second),
                    FormatCount(point.compute_roof),
                    point.traffic_roof > 0 ? FormatCount(point.traffic_roof) : "-"});
  }
  most *= 1.12;
  const double doublings = std::max(std::log2(double(largest) / double(least)), 1.0);
  auto x = [&](int64_t at) {
    return kCurveLeft + 10 +
           std::log2(double(at) / double(least)) / doublings * (kCurveRight - kCurveLeft - 20);
  };
  auto y = [&](double tokens) {
    return kCurveTop + kCurveHeight * (1 - std::min(tokens / most, 1.0));
  };
  Svg svg(kCurveWidth + 60, kCurveTop + kCurveHeight + 40);
  for (double tick : Ticks(most, 10)) {
    svg.Line(kCurveLeft, y(tick), kCurveRight, y(tick), "grid");
    svg.Text(kCurveLeft - 8, y(tick) + 4, FormatCount(tick), "axis", "end");
  }
  std::vector<int64_t> batches;
  for (const BatchPoint &point : curve)
    batches.push_back(point.batch);
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  for (int64_t at : batches) {
    svg.Text(x(at), kCurveTop + kCurveHeight + 16, absl::StrCat(at),
             at == batch ? "axis strong" : "axis", "middle");
    if (at == batch)
      svg.Line(x(at), kCurveTop, x(at), kCurveTop + kCurveHeight, "grid");
  }
  svg.Text((kCurveLeft + kCurveRight) / 2, kCurveTop + kCurveHeight + 34, "sequences of a step",
           "axis", "middle");
  std::string description;
  std::vector<std::pair<double, std::string>> labels;
  for (const Series &each : all) {
    const bool roof = each.style.rfind("roof", 0) == 0;
    std::string path;
    double last = 0;
    for (const auto &[at, tokens] : each.points) {
      // A roof ends where it leaves the picture.
      if (tokens > most) {
        const bool first = path.empty();
        if (!first && last < most)
          absl::StrAppend(&path, "L", Number(x(at)), " ", Number(y(tokens)));
        last = tokens;
        if (first)
          continue;
        break;
      }
      absl::StrAppend(&path, path.empty() ? "M" : "L", Number(x(at)), " ", Number(y(tokens)));
      last = tokens;
    }
    svg.Path(path, each.style);
    for (const auto &[at, tokens] : each.points)
      if (!roof)
        svg.Circle(x(at), y(tokens), 3.5, "dot " + each.style.substr(5),
                   absl::StrCat(each.name, ", ", at, " sequences: ", FormatCount(tokens),
                                " tokens a second"));
    if (!path.empty())
      labels.emplace_back(y(last), each.name);
    if (!roof)
      absl::StrAppend(&description, each.name, " order reaches ",
                      FormatCount(each.points.back().second), " tokens a second with ",
                      each.points.back().first, " sequences. ");
  }
  svg.Labels(kCurveRight + 8, std::move(labels));
  return absl::StrCat(
      svg.Finish("Tokens a second over the batch", description),
      FoldedTable({"order", "sequences", "tokens a second", "compute alone", "transfers alone"},
                  rows));
}

} // namespace boa
