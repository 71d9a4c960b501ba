//===- chart_bars.cpp - What each link must do ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/units.h"
#include "runtime/view/charts.h"
#include "runtime/view/colours.h"
#include "runtime/view/svg.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <array>

namespace boa {
namespace {

constexpr double kBarsLeft = 150, kBarsWidth = 900, kBarHeight = 16, kBarsRow = 26, kBarsTop = 18;

/// A link, and its bytes by part.
struct Flow {
  const char *name;
  const std::map<std::string, int64_t> &bytes;
};

} // namespace

std::vector<std::pair<std::string, double>> AloneSeconds(const Program &program,
                                                         const StepRun &run) {
  const bool shared = program.UpdatesOnDevice() || TraitsOf(program.machine.device).on_host;
  std::vector<std::pair<std::string, double>> links;
  double processors = 0;
  for (const LinkUse &use : run.uses) {
    const double seconds = double(use.full_ns) * 1e-9;
    if (shared && (use.name == "compute" || use.name == "optimizer"))
      processors += seconds;
    else if (seconds > 0)
      links.emplace_back(use.name, seconds);
  }
  if (processors > 0)
    links.emplace_back("compute and optimizer", processors);
  std::sort(links.begin(), links.end(), [](const auto &a, const auto &b) {
    return std::make_pair(-a.second, a.first) < std::make_pair(-b.second, b.first);
  });
  return links;
}

std::string DrawBound(const Report &report) {
  const StepRun &run = report.runs.front();
  auto simulated = std::find_if(report.runs.begin(), report.runs.end(),
                                [](const StepRun &each) { return !each.uses.empty(); });
  if (simulated == report.runs.end())
    return "";
  const auto links = AloneSeconds(*report.program, *simulated);
  if (links.empty())
    return "";
  double most = std::max(run.seconds, simulated->seconds);
  for (const auto &[name, seconds] : links)
    most = std::max(most, seconds);
  most *= 1.02;
  auto x = [&](double seconds) { return kBarsLeft + seconds / most * (kBarsWidth - kBarsLeft); };
  const double bottom = kBarsTop + double(links.size()) * kBarsRow;
  Svg svg(kBarsWidth + 60, bottom + 20);
  for (double tick : Ticks(most, 10, 6)) {
    svg.Line(x(tick), kBarsTop, x(tick), bottom, "grid");
    svg.Text(x(tick), bottom + 14, FormatTime(tick), "axis", "middle");
  }
  std::vector<std::vector<std::string>> rows;
  std::string description;
  double y = kBarsTop;
  for (const auto &[name, seconds] : links) {
    const std::string share = absl::StrFormat("%.0f%%", 100 * seconds / run.seconds);
    svg.Text(kBarsLeft - 8, y + kBarsRow / 2 + 4, name, "", "end");
    svg.Rect(kBarsLeft, y + (kBarsRow - kBarHeight) / 2, x(seconds) - kBarsLeft, kBarHeight,
             y == kBarsTop ? "bar" : "bar soft",
             absl::StrCat(name, ": ", FormatTime(seconds), ", ", share, " of the step"));
    // Beside the line of the step, not across it.
    const double end = x(seconds), line = x(run.seconds);
    svg.Text(end <= line && end + 56 > line ? line + 6 : end + 6, y + kBarsRow / 2 + 4,
             FormatTime(seconds), "");
    rows.push_back({name, FormatTime(seconds), share});
    absl::StrAppend(&description, name, " ", FormatTime(seconds), ". ");
    y += kBarsRow;
  }
  svg.Line(x(run.seconds), kBarsTop - 4, x(run.seconds), bottom, "rule");
  svg.Text(x(run.seconds), kBarsTop - 7, "the step", "axis", "end");
  if (report.bound_seconds > 0) {
    svg.Line(x(report.bound_seconds), kBarsTop - 4, x(report.bound_seconds), bottom, "limit");
    if (x(run.seconds) - x(report.bound_seconds) > 90)
      svg.Text(x(report.bound_seconds), kBarsTop - 7, "the bound", "axis", "end");
  }
  return absl::StrCat(svg.Finish("Seconds that each link must work in a step", description),
                      FoldedTable({"link", "alone", "of the step"}, rows));
}

std::string DrawTraffic(const Program &program, const StepRun &run) {
  std::vector<std::pair<std::string, std::array<double, kParts>>> flows;
  std::vector<std::string> heads = {"role"};
  double most = 0;
  for (const Flow &flow :
       {Flow{"from SSD", run.moved.read}, Flow{"to SSD", run.moved.written},
        Flow{"to device", run.moved.to_device}, Flow{"to host", run.moved.to_host}}) {
    std::array<double, kParts> parts = {};
    double sum = 0;
    for (const auto &[role, bytes] : flow.bytes) {
      parts[size_t(PartOfRole(program, role))] += double(bytes);
      sum += double(bytes);
    }
    if (sum <= 0)
      continue;
    flows.emplace_back(flow.name, parts);
    heads.push_back(flow.name);
    most = std::max(most, sum);
  }
  if (flows.empty())
    return "<p>Nothing moves: everything stays in its memory.</p>\n";
  most *= 1.02;
  const double bottom = kBarsTop + double(flows.size()) * kBarsRow;
  Svg svg(kBarsWidth + 60, bottom + 20);
  for (double tick : Ticks(most, 1024)) {
    const double x = kBarsLeft + tick / most * (kBarsWidth - kBarsLeft);
    svg.Line(x, kBarsTop, x, bottom, "grid");
    svg.Text(x, bottom + 14, FormatBytes(tick), "axis", "middle");
  }
  std::vector<bool> seen(kParts);
  std::string description;
  double y = kBarsTop;
  for (const auto &[name, parts] : flows) {
    double x = kBarsLeft, sum = 0;
    for (int part = 0; part < kParts; ++part)
      if (const double bytes = parts[size_t(part)]; bytes > 0) {
        const double width = bytes / most * (kBarsWidth - kBarsLeft);
        svg.Rect(x, y + (kBarsRow - kBarHeight) / 2, width, kBarHeight, StyleOf(Part(part)),
                 absl::StrCat(name, ", ", NameOf(Part(part)), ": ", FormatBytes(bytes)));
        seen[size_t(part)] = true;
        x += width;
        sum += bytes;
      }
    svg.Text(kBarsLeft - 8, y + kBarsRow / 2 + 4, name, "", "end");
    svg.Text(std::min(x + 6, kBarsWidth - 10), y + kBarsRow / 2 + 4, FormatBytes(sum), "");
    absl::StrAppend(&description, name, " ", FormatBytes(sum), ". ");
    y += kBarsRow;
  }
  std::vector<std::vector<std::string>> rows;
  for (int part = 0; part < kParts; ++part) {
    if (!seen[size_t(part)])
      continue;
    std::vector<std::string> &row = rows.emplace_back();
    row.push_back(NameOf(Part(part)));
    for (const auto &[name, parts] : flows)
      row.push_back(parts[size_t(part)] > 0 ? FormatBytes(parts[size_t(part)]) : "-");
  }
  return absl::StrCat(svg.Finish("Bytes that a step moves", description), LegendOf(seen),
                      FoldedTable(heads, rows));
}

} // namespace boa
