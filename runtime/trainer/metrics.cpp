//===- metrics.cpp - One JSON object for each step ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/metrics.h"

#include "runtime/engine/engine.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <string>

namespace boa {
namespace {

/// Whether a line is of a step up to `after`.
bool IsUntil(absl::string_view line, int64_t after) {
  const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  return record.is_object() && record.contains("step") && record["step"].is_number_integer() &&
         record["step"].get<int64_t>() <= after;
}

/// The lines at the beginning of a file that a resumed run keeps.
struct KeptLines {
  int64_t bytes = 0;
  bool open = false; // the last one lacks its newline
};

/// The lines up to those of steps after `after`.
absl::StatusOr<KeptLines> LinesUntil(const std::string &path, int64_t after) {
  constexpr int64_t kBlock = 1 << 20; // more than any line has
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok())
    return file.status();
  KeptLines kept;
  while (kept.bytes < file->size()) {
    std::string block(size_t(std::min(kBlock, file->size() - kept.bytes)), '\0');
    if (absl::Status status = file->Read(kept.bytes, block.data(), int64_t(block.size()));
        !status.ok())
      return status;
    const bool last = kept.bytes + int64_t(block.size()) == file->size();
    absl::string_view rest = block;
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      kept.open = end == absl::string_view::npos;
      if (kept.open && !last)
        break; // the next block has all of it
      if (!IsUntil(rest.substr(0, end), after)) {
        kept.open = false;
        return kept;
      }
      const size_t bytes = kept.open ? rest.size() : end + 1;
      kept.bytes += int64_t(bytes);
      rest.remove_prefix(bytes);
    }
    if (rest.size() == block.size())
      return KeptLines{kept.bytes}; // none of ours
  }
  return kept;
}

} // namespace

void StepRecord::Take(const Program &program, const Counters &counters, const Engine &engine) {
  const Traffic &moved = counters.moved;
  flops = counters.flops;
  if (!moved.read.empty())
    read["ssd"] = moved.read;
  if (!moved.written.empty())
    written["ssd"] = moved.written;
  waited = {{"ssd read", counters.waited_read},
            {"ssd write", counters.waited_write},
            {"optimizer", counters.waited_optimizer}};
  // Of one memory what is used is of the host's part first.
  peak_host_bytes = program.machine.separate ? engine.PeakBytes(BOA_HOST)
                                             : std::min(program.arena_host, engine.PeakBytes());
  peak_device_bytes = engine.PeakBytes() - peak_host_bytes;
  if (!program.machine.separate)
    return;
  // Between the memories: what the device reads, and what it writes.
  read["host"] = moved.to_device;
  written["host"] = moved.to_host;
  waited["copies"] = counters.waited_copy;
  waited["launches"] = counters.waited_launch;
  launches = counters.launches;
  launch_calls = counters.launch_calls;
}

std::string FormatMetrics(const StepRecord &record) {
  nlohmann::ordered_json line;
  line["step"] = record.step;
  line["loss"] = record.loss;
  line["lr"] = record.rate;
  line["tokens"] = record.tokens;
  line["seconds"] = record.seconds;
  line["tokens_per_s"] = record.seconds > 0 ? record.tokens / record.seconds : 0.0;
  line["flops"] = record.flops;
  if (record.launches > 0) {
    line["launches"] = record.launches;
    line["launch_calls"] = record.launch_calls;
  }
  line["read"] = record.read;
  line["written"] = record.written;
  line["waited"] = record.waited;
  line["peak_device_bytes"] = record.peak_device_bytes;
  line["peak_host_bytes"] = record.peak_host_bytes;
  if (record.validation_loss)
    line["validation_loss"] = *record.validation_loss;
  return line.dump();
}

absl::StatusOr<Metrics> Metrics::Open(const std::string &path, int64_t after) {
  absl::StatusOr<OutputFile> file = OutputFile::Open(path);
  if (!file.ok())
    return file.status();
  Metrics metrics;
  metrics.file = *std::move(file);
  metrics.kept = 0;
  if (after <= 0 || metrics.file.is_stream())
    return metrics;
  absl::StatusOr<KeptLines> kept = LinesUntil(path, after);
  if (!kept.ok())
    return kept.status();
  metrics.kept = kept->bytes;
  metrics.line_is_open = kept->open;
  return metrics;
}

absl::Status Metrics::Write(const StepRecord &record) {
  if (kept >= 0)
    if (absl::Status status = file.Cut(kept); !status.ok())
      return status;
  const std::string line = absl::StrCat(line_is_open ? "\n" : "", FormatMetrics(record), "\n");
  kept = -1;
  line_is_open = false;
  absl::Status status = file.Append(line.data(), line.size());
  return file.reader_left() ? absl::OkStatus() : status;
}

} // namespace boa
