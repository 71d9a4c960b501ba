//===- chart_memory.cpp - Each memory over one step -----------------------===//
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

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace boa {
namespace {

constexpr double kMemoryLeft = 96, kMemoryWidth = 960, kMemoryHeight = 150, kMemoryTop = 16;
constexpr int kMemoryMoments = 430;

using Bytes = std::array<double, kParts>;

double Sum(const Bytes &bytes) {
  double sum = 0;
  for (double part : bytes)
    sum += part;
  return sum;
}

/// A memory of the machine. One that is shared has both spaces.
struct Memory {
  const char *name;
  std::vector<int32_t> spaces;
  double allocated, limit; // 0: none
};

std::vector<Memory> MemoriesOf(const Program &program) {
  const MachineSettings &machine = program.machine;
  const double device = double(program.arena_device), host = double(program.arena_host);
  if (IsSeparate(machine))
    return {{"device", {BOA_DEVICE}, device, double(machine.device_memory)},
            {"host", {BOA_HOST}, host, double(machine.host_memory)}};
  return {{"",
           {BOA_DEVICE, BOA_HOST},
           device + host,
           double(machine.device_memory + machine.host_memory)}};
}

/// Homes, the workspace and constants have their memory for the whole run.
Bytes FixedBytes(const Program &program, const Memory &memory, const PartsOfEvents &parts) {
  Bytes fixed = {};
  double known = 0;
  for (int32_t space : memory.spaces) {
    const std::vector<int64_t> slots = SlotBytes(program, space);
    const Home::Tier tier = space == BOA_HOST ? Home::host : Home::device;
    for (size_t s = 0; s < program.storages.size(); ++s) {
      const Storage &storage = program.storages[s];
      const double home = double(storage.ChunksOn(tier)) * double(storage.chunk_bytes());
      fixed[size_t(parts.OfStorage(int32_t(s)))] += home;
      known += home + double(slots[s]);
    }
  }
  fixed[size_t(Part::rest)] += std::max(memory.allocated - known, 0.0);
  return fixed;
}

/// By moment, the largest use in it.
std::vector<Bytes> CollectMoments(const Program &program, const StepRun &run, const Memory &memory,
                                  const PartsOfEvents &parts) {
  Bytes now = FixedBytes(program, memory, parts);
  std::map<std::pair<int32_t, int32_t>, double> levels; // of storages, by space
  std::vector<Bytes> moments(kMemoryMoments);
  const double moment = double(run.end_ns - run.begin_ns) / kMemoryMoments;
  size_t at = 0;
  auto reach = [&](size_t to) {
    for (; at < to; ++at)
      moments[at + 1] = now;
  };
  bool begun = false;
  for (const MemoryEvent &event : run.memory) {
    if (std::find(memory.spaces.begin(), memory.spaces.end(), event.space) == memory.spaces.end())
      continue;
    if (event.at_ns >= run.end_ns)
      break;
    if (event.at_ns >= run.begin_ns) {
      if (!std::exchange(begun, true))
        moments[0] = now;
      reach(std::min(size_t(double(event.at_ns - run.begin_ns) / moment),
                     size_t(kMemoryMoments - 1)));
    }
    double &level = levels[{event.storage, event.space}];
    now[size_t(parts.OfStorage(event.storage))] += double(event.bytes) - level;
    level = double(event.bytes);
    if (begun && Sum(now) > Sum(moments[at]))
      moments[at] = now;
  }
  if (!begun)
    moments[0] = now;
  reach(kMemoryMoments - 1);
  return moments;
}

std::string DrawOne(const Program &program, const StepRun &run, const Memory &memory) {
  const PartsOfEvents parts(program);
  const std::vector<Bytes> moments = CollectMoments(program, run, memory, parts);
  double peak = 0;
  Bytes most = {}, at_peak = {};
  for (const Bytes &bytes : moments) {
    for (int part = 0; part < kParts; ++part)
      most[size_t(part)] = std::max(most[size_t(part)], bytes[size_t(part)]);
    if (Sum(bytes) > peak) {
      peak = Sum(bytes);
      at_peak = bytes;
    }
  }
  if (peak <= 0)
    return "";
  // A limit that is far away would press the picture flat.
  const bool shows_limit = memory.limit > 0 && memory.limit < 2 * memory.allocated;
  const double top = 1.06 * std::max({memory.allocated, peak, shows_limit ? memory.limit : 0});
  const double seconds = double(run.end_ns - run.begin_ns) * 1e-9;
  auto y = [&](double bytes) { return kMemoryTop + kMemoryHeight * (1 - bytes / top); };
  const double width = (kMemoryWidth - kMemoryLeft) / kMemoryMoments;
  Svg svg(kMemoryWidth + 60, kMemoryTop + kMemoryHeight + 22);
  for (double tick : Ticks(top, 1024)) {
    svg.Line(kMemoryLeft, y(tick), kMemoryWidth, y(tick), "grid");
    svg.Text(kMemoryLeft - 8, y(tick) + 4, FormatBytes(tick), "axis", "end");
  }
  for (double tick : Ticks(seconds, 10, 6))
    svg.Text(kMemoryLeft + tick / seconds * (kMemoryWidth - kMemoryLeft),
             kMemoryTop + kMemoryHeight + 16, FormatTime(tick), "axis", "middle");
  std::vector<double> below(kMemoryMoments);
  std::vector<bool> seen(kParts);
  // Parts that seldom change lie below.
  constexpr Part kOrder[] = {Part::rest,      Part::weights,     Part::optimizer,
                             Part::gradients, Part::checkpoints, Part::boundary_gradients,
                             Part::saved};
  for (Part part : kOrder) {
    if (most[size_t(part)] <= 0)
      continue;
    seen[size_t(part)] = true;
    std::string upper, lower;
    for (int m = 0; m < kMemoryMoments; ++m) {
      const double from = below[size_t(m)], to = from + moments[size_t(m)][size_t(part)];
      const double left = kMemoryLeft + m * width;
      if (m == 0 || moments[size_t(m)] != moments[size_t(m - 1)]) {
        absl::StrAppend(&upper, m == 0 ? "M" : "L", Number(left), " ", Number(y(to)));
        lower = absl::StrCat("L", Number(left), " ", Number(y(from)), lower);
      }
      if (m + 1 == kMemoryMoments || moments[size_t(m)] != moments[size_t(m + 1)]) {
        absl::StrAppend(&upper, "L", Number(left + width), " ", Number(y(to)));
        lower = absl::StrCat("L", Number(left + width), " ", Number(y(from)), lower);
      }
      below[size_t(m)] = to;
    }
    svg.Path(absl::StrCat(upper, lower, "z"), StyleOf(part));
  }
  svg.Line(kMemoryLeft, y(memory.allocated), kMemoryWidth, y(memory.allocated), "rule");
  svg.Text(kMemoryWidth + 4, y(memory.allocated) + 4, "allocated", "axis");
  if (shows_limit) {
    const bool close = std::abs(y(memory.limit) - y(memory.allocated)) < 11;
    svg.Line(kMemoryLeft, y(memory.limit), kMemoryWidth, y(memory.limit), "limit");
    svg.Text(kMemoryWidth + 4, y(memory.limit) + (close ? -7 : 4), "limit", "axis");
  }
  std::vector<std::vector<std::string>> rows;
  for (Part part : kOrder)
    if (seen[size_t(part)])
      rows.push_back(
          {NameOf(part), FormatBytes(most[size_t(part)]), FormatBytes(at_peak[size_t(part)])});
  rows.push_back({"together", FormatBytes(peak), FormatBytes(peak)});
  std::string says = absl::StrCat("In use at most ", FormatBytes(peak), " of ",
                                  FormatBytes(memory.allocated), " that are allocated");
  absl::StrAppend(&says, memory.limit > 0
                             ? absl::StrCat("; the machine gives ", FormatBytes(memory.limit), ".")
                             : "; the machine names no limit.");
  const std::string name =
      *memory.name ? absl::StrCat("Memory of the ", memory.name) : std::string("Memory");
  return absl::StrCat("<h3>", name, "</h3>\n<p>", says, "</p>\n", svg.Finish(name, says),
                      LegendOf(seen), FoldedTable({"what", "at most", "at the peak"}, rows));
}

} // namespace

std::string DrawMemory(const Program &program, const StepRun &run) {
  std::string text;
  if (run.end_ns > run.begin_ns)
    for (const Memory &memory : MemoriesOf(program))
      text += DrawOne(program, run, memory);
  return text;
}

} // namespace boa
