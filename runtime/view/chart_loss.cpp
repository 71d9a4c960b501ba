//===- chart_loss.cpp - The loss over the steps ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/charts.h"
#include "runtime/view/svg.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>

namespace boa {
namespace {

constexpr double kLossLeft = 76, kLossRight = 860, kLossWidth = 1020, kLossTop = 26,
                 kLossHeight = 260;
/// With more evaluations, dots would hide the line.
constexpr size_t kMostDots = 64;

struct LossSeries {
  const char *name, *style, *square; // one colour
  const std::vector<LossCurve::Point> &points;
};

std::string StepsOf(const LossCurve::Point &point) {
  return point.first == point.last ? absl::StrCat(point.first)
                                   : absl::StrCat(point.first, " to ", point.last);
}

std::string FormatLoss(double loss) { return absl::StrFormat("%.4f", loss); }

/// About so many marks between two losses, and the digits that they need behind the point.
std::pair<std::vector<double>, int> MarksBetween(double low, double high) {
  const std::vector<double> spaced = Ticks(high - low, 10, 5);
  const double space = spaced.size() > 1 ? spaced[1] : high - low;
  std::vector<double> marks;
  for (double at = std::ceil(low / space); at * space <= high; ++at)
    marks.push_back(at * space);
  return {marks, int(std::max(0.0, -std::floor(std::log10(space) + 1e-9)))};
}

} // namespace

std::string DrawLosses(const Losses &losses) {
  const std::vector<LossCurve::Point> &training = losses.training.points(),
                                      &validation = losses.validation.points();
  if (training.empty())
    return "";
  const LossSeries all[] = {{"training", "s0", "p0", training},
                            {"validation", "s1", "p2", validation}};
  double low = training[0].loss(), high = low;
  for (const LossSeries &series : all)
    for (const LossCurve::Point &point : series.points) {
      low = std::min(low, point.loss());
      high = std::max(high, point.loss());
    }
  const double margin = high > low ? 0.05 * (high - low) : 0.05 * std::max(std::abs(high), 1.0);
  low = low < 0 ? low - margin : std::max(low - margin, 0.0);
  high += margin;
  const int64_t first = training.front().first, last = training.back().last;
  auto middle = [](const LossCurve::Point &point) { return double(point.first + point.last) / 2; };
  auto x = [&](double step) {
    const double share = last > first ? (step - double(first)) / double(last - first) : 0.5;
    return kLossLeft + share * (kLossRight - kLossLeft);
  };
  auto y = [&](double loss) { return kLossTop + kLossHeight * (high - loss) / (high - low); };

  Svg svg(kLossWidth, kLossTop + kLossHeight + 40);
  svg.Text(kLossLeft - 8, kLossTop - 12, "loss", "axis", "end");
  const auto [marks, digits] = MarksBetween(low, high);
  for (double mark : marks) {
    svg.Line(kLossLeft, y(mark), kLossRight, y(mark), "grid");
    svg.Text(kLossLeft - 8, y(mark) + 4, absl::StrFormat("%.*f", digits, mark), "axis", "end");
  }
  const double bottom = kLossTop + kLossHeight;
  std::vector<double> steps = {double(first)};
  if (last > first)
    steps = MarksBetween(double(first), double(last)).first;
  steps.erase(std::remove_if(steps.begin(), steps.end(),
                             [](double step) { return step != std::floor(step); }),
              steps.end());
  constexpr double kApart = 0.05; // of the width, so that numbers do not touch
  if (steps.empty() || steps[0] - double(first) > kApart * double(last - first))
    steps.insert(steps.begin(), double(first));
  for (double step : steps) {
    svg.Line(x(step), bottom, x(step), bottom + 4, "grid");
    svg.Text(x(step), bottom + 17, absl::StrFormat("%.0f", step), "axis", "middle");
  }
  svg.Text((kLossLeft + kLossRight) / 2, bottom + 34, "step", "axis", "middle");

  std::string description;
  std::vector<std::pair<double, std::string>> labels;
  std::vector<std::pair<std::string, std::string>> legend;
  for (const LossSeries &series : all) {
    if (series.points.empty())
      continue;
    std::string path;
    for (const LossCurve::Point &point : series.points)
      absl::StrAppend(&path, path.empty() ? "M" : "L", Number(x(middle(point))), " ",
                      Number(y(point.loss())));
    svg.Path(path, absl::StrCat("line ", series.style));
    if (series.points.size() == 1 || (&series == &all[1] && series.points.size() <= kMostDots))
      for (const LossCurve::Point &point : series.points)
        svg.Circle(
            x(middle(point)), y(point.loss()), 3.5, absl::StrCat("dot ", series.style),
            absl::StrCat(series.name, ", step ", StepsOf(point), ": ", FormatLoss(point.loss())));
    const LossCurve::Point &begin = series.points.front(), &end = series.points.back();
    legend.emplace_back(series.square, series.name);
    labels.emplace_back(y(end.loss()), absl::StrCat(series.name, " ", FormatLoss(end.loss())));
    absl::StrAppend(&description, "The ", series.name, " loss is ", FormatLoss(begin.loss()),
                    " in step ", StepsOf(begin));
    if (series.points.size() > 1)
      absl::StrAppend(&description, " and ", FormatLoss(end.loss()), " in step ", StepsOf(end));
    description += ". ";
  }
  svg.Labels(kLossRight + 8, std::move(labels));

  std::vector<std::vector<std::string>> rows;
  auto evaluated = validation.begin();
  for (const LossCurve::Point &point : training) {
    std::string loss = "-";
    for (; evaluated != validation.end() && evaluated->last <= point.last; ++evaluated)
      loss = FormatLoss(evaluated->loss());
    rows.push_back({StepsOf(point), FormatLoss(point.loss()), loss});
  }
  return absl::StrCat(svg.Finish("The loss over the steps", description), Legend(legend),
                      FoldedTable({"step", "training loss", "validation loss"}, rows));
}

} // namespace boa
