//===- trace.cpp - A timeline of what ran ---------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/trace.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace boa {
namespace {

/// A row of the viewer by its contents. Rows of one kind follow each other.
using RowKey = std::pair<TraceEvent::Row, int32_t>;

std::string RowName(const RowKey &key) {
  switch (key.first) {
  case TraceEvent::Row::compute:
    return "compute";
  case TraceEvent::Row::optimizer:
    return "optimizer";
  case TraceEvent::Row::to_device:
    return "to device";
  case TraceEvent::Row::to_host:
    return "to host";
  case TraceEvent::Row::read:
    return absl::StrCat("SSD ", key.second, " reads");
  case TraceEvent::Row::write:
    return absl::StrCat("SSD ", key.second, " writes");
  }
  return "";
}

/// The first lane that is free at an event's begin; opens one where none is.
size_t TakeLane(std::vector<int64_t> &lanes, const TraceEvent &event) {
  size_t lane = 0;
  while (lane < lanes.size() && lanes[lane] > event.begin_ns)
    ++lane;
  if (lane == lanes.size())
    lanes.push_back(0);
  lanes[lane] = event.end_ns;
  return lane;
}

std::string JsonLiteral(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Room for this many lanes in the numbers of a kind of row.
constexpr int kLanes = 1000;

std::string FormatMetadata(const std::string &kind, int row, const std::string &arguments) {
  return absl::StrFormat("{\"name\":\"%s\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{%s}}", kind,
                         row, arguments);
}

std::string FormatEvent(const TraceEvent &event, int row, int64_t origin) {
  // The format counts in microseconds.
  std::string text =
      absl::StrFormat("{\"name\":%s,\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f",
                      JsonLiteral(event.name), row, (event.begin_ns - origin) * 1e-3,
                      (event.end_ns - event.begin_ns) * 1e-3);
  if (event.bytes > 0) {
    const int64_t duration = std::max<int64_t>(event.end_ns - event.begin_ns, 1);
    absl::StrAppendFormat(&text, ",\"args\":{\"bytes\":%d,\"GB/s\":%.3f}", event.bytes,
                          static_cast<double>(event.bytes) / duration);
  }
  return text + "}";
}

} // namespace

absl::Status WriteTrace(OutputFile &file, const std::string &name, std::vector<TraceEvent> events) {
  if (absl::Status status = file.Cut(0); !status.ok())
    return status;
  std::sort(events.begin(), events.end(),
            [](const TraceEvent &a, const TraceEvent &b) { return a.begin_ns < b.begin_ns; });
  const int64_t origin = events.empty() ? 0 : events[0].begin_ns;
  std::map<RowKey, std::vector<int64_t>> lanes;
  for (const TraceEvent &event : events)
    lanes[{event.row, event.link}];
  std::map<RowKey, int> first_row;
  for (const auto &[key, unused] : lanes)
    first_row[key] = kLanes * (1 + static_cast<int>(first_row.size()));

  constexpr size_t kBlock = 1 << 20;
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  text += FormatMetadata("process_name", 0, "\"name\":" + JsonLiteral(name));
  for (const TraceEvent &event : events) {
    const RowKey key = {event.row, event.link};
    const size_t lane = TakeLane(lanes[key], event);
    absl::StrAppend(&text, ",\n", FormatEvent(event, first_row[key] + lane, origin));
    if (text.size() < kBlock)
      continue;
    if (absl::Status status = file.Append(text.data(), text.size()); !status.ok())
      return status;
    text.clear();
  }
  for (const auto &[key, ends] : lanes)
    for (size_t lane = 0; lane < ends.size(); ++lane) {
      const int row = first_row[key] + lane;
      std::string row_name = RowName(key);
      if (lane > 0)
        absl::StrAppend(&row_name, " +", lane);
      absl::StrAppend(
          &text, ",\n", FormatMetadata("thread_name", row, "\"name\":" + JsonLiteral(row_name)),
          ",\n", FormatMetadata("thread_sort_index", row, absl::StrCat("\"sort_index\":", row)));
    }
  text += "\n]}\n";
  return file.Append(text.data(), text.size());
}

} // namespace boa
