//===- chart_timeline.cpp - A step by resource ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane is cut into moments. The height is the share of the moment in which the
// resource was busy. The colour is its use. SSDs are one lane each way: the mean over them.
//
//===----------------------------------------------------------------------===//
#include "runtime/view/charts.h"
#include "runtime/view/colours.h"
#include "runtime/view/svg.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <array>
#include <set>

namespace boa {
namespace {

constexpr double kTimelineLeft = 96, kTimelineWidth = 960, kLane = 30, kGap = 10, kTimelineTop = 6;
constexpr int kTimelineMoments = 430;

const char *NameOfRow(TraceEvent::Row row) {
  constexpr const char *kNames[] = {"compute", "optimizer", "to device",
                                    "to host", "SSD reads", "SSD writes"};
  return kNames[int(row)];
}

struct Lane {
  std::vector<std::array<double, kParts>> busy; // shares of each moment
  std::set<int32_t> links;
  std::array<double, kParts> seconds = {};
  double bytes = 0;
};

using Lanes = std::map<TraceEvent::Row, Lane>;

Lanes CollectLanes(const Program &program, const StepRun &run) {
  const PartsOfEvents parts(program);
  const double all = double(run.end_ns - run.begin_ns), moment = all / kTimelineMoments;
  Lanes lanes;
  for (const TraceEvent &event : run.events) {
    const double begin = double(std::max(event.begin_ns, run.begin_ns) - run.begin_ns);
    const double end = double(std::min(event.end_ns, run.end_ns) - run.begin_ns);
    if (end <= begin)
      continue;
    Lane &lane = lanes[event.row];
    lane.busy.resize(kTimelineMoments);
    lane.links.insert(event.link);
    const int part = int(parts.Of(event));
    lane.seconds[size_t(part)] += (end - begin) * 1e-9;
    lane.bytes += double(event.bytes) * (end - begin) / double(event.end_ns - event.begin_ns);
    for (int m = int(begin / moment); m < kTimelineMoments && m * moment < end; ++m)
      lane.busy[size_t(m)][size_t(part)] +=
          (std::min(end, (m + 1) * moment) - std::max(begin, m * moment)) / moment;
  }
  for (auto &[row, lane] : lanes)
    for (auto &moments : lane.busy) {
      double sum = 0;
      for (double &share : moments)
        sum += share /= double(lane.links.size());
      // Transfers of one link may overlap.
      for (double &share : moments)
        share /= std::max(sum, 1.0);
    }
  return lanes;
}

/// The parts of a lane, one upon the other. Moments that are alike are one rectangle.
void DrawLane(Svg &svg, const Lane &lane, double top) {
  const double width = (kTimelineWidth - kTimelineLeft) / kTimelineMoments;
  for (int part = 0; part < kParts; ++part) {
    std::string path;
    for (size_t m = 0; m < lane.busy.size();) {
      auto extent = [&](size_t at) {
        double below = 0;
        for (int under = 0; under < part; ++under)
          below += lane.busy[at][size_t(under)];
        const double scale = kLane * 10; // to a tenth of a unit
        return std::pair(int(below * scale), int((below + lane.busy[at][size_t(part)]) * scale));
      };
      const auto [low, high] = extent(m);
      size_t end = m + 1;
      while (end < lane.busy.size() && extent(end) == std::pair(low, high))
        ++end;
      if (high > low)
        absl::StrAppend(&path, "M", Number(kTimelineLeft + double(m) * width), " ",
                        Number(top + kLane - low * 0.1), "h", Number(double(end - m) * width), "v",
                        Number((low - high) * 0.1), "h", Number(-double(end - m) * width), "z");
      m = end;
    }
    svg.Path(path, StyleOf(Part(part)));
  }
}

} // namespace

std::string DrawTimeline(const Program &program, const StepRun &run) {
  const Lanes lanes = CollectLanes(program, run);
  if (lanes.empty() || run.end_ns <= run.begin_ns)
    return "";
  const double seconds = double(run.end_ns - run.begin_ns) * 1e-9;
  const double bottom = kTimelineTop + double(lanes.size()) * (kLane + kGap);
  Svg svg(kTimelineWidth + 60, bottom + 22);
  for (double tick : Ticks(seconds, 10, 6)) {
    const double x = kTimelineLeft + tick / seconds * (kTimelineWidth - kTimelineLeft);
    svg.Line(x, kTimelineTop, x, bottom, "grid");
    svg.Text(x, bottom + 14, FormatTime(tick), "axis", "middle");
  }
  std::vector<bool> seen(kParts);
  std::vector<std::vector<std::string>> rows;
  std::string description = absl::StrCat("A step of ", FormatTime(seconds), ". ");
  double top = kTimelineTop;
  for (const auto &[row, lane] : lanes) {
    svg.Rect(kTimelineLeft, top, kTimelineWidth - kTimelineLeft, kLane, "lane");
    DrawLane(svg, lane, top);
    double busy = 0;
    for (const auto &moment : lane.busy)
      for (double share : moment)
        busy += share / kTimelineMoments;
    std::string parts;
    for (int part = 0; part < kParts; ++part)
      if (const double spent = lane.seconds[size_t(part)]; spent > 0) {
        seen[size_t(part)] = true;
        absl::StrAppend(&parts, parts.empty() ? "" : ", ", NameOf(Part(part)), " ",
                        FormatTime(spent / double(lane.links.size())));
      }
    const std::string share = absl::StrFormat("%.0f%%", 100 * busy);
    svg.Text(kTimelineLeft - 8, top + kLane / 2 + 4, NameOfRow(row), "", "end");
    svg.Text(kTimelineWidth + 6, top + kLane / 2 + 4, share, "strong");
    absl::StrAppend(&description, NameOfRow(row), " is busy for ", share, ". ");
    rows.push_back({NameOfRow(row), share, parts});
    top += kLane + kGap;
  }
  return absl::StrCat(svg.Finish("Timeline", description), LegendOf(seen),
                      FoldedTable({"resource", "busy", "with"}, rows));
}

} // namespace boa
