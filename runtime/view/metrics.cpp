//===- metrics.cpp - One JSON object for each step ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/metrics.h"

#include "runtime/engine/engine.h"
#include "runtime/formats/json.h"
#include "runtime/io/input_file.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace boa {
namespace {

/// Whether a line is of a step up to `after`. Adds its losses.
bool IsUntil(absl::string_view line, int64_t after, Losses &losses) {
  const nlohmann::json record = ParseJson(line).value_or(nlohmann::json());
  if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer() ||
      record["step"].get<int64_t>() > after)
    return false;
  for (auto [name, curve] :
       {std::pair("loss", &losses.training), std::pair("validation_loss", &losses.validation)})
    if (auto value = record.find(name); value != record.end() && value->is_number())
      curve->Add(record["step"].get<int64_t>(), value->get<double>());
  return true;
}

/// The lines at the beginning of a file that a resumed run keeps.
struct KeptLines {
  int64_t bytes = 0;
  bool open = false; // the last one lacks its newline
  Losses losses;
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
      if (!IsUntil(rest.substr(0, end), after, kept.losses)) {
        kept.open = false;
        return kept;
      }
      const size_t bytes = kept.open ? rest.size() : end + 1;
      kept.bytes += int64_t(bytes);
      rest.remove_prefix(bytes);
    }
    if (rest.size() == block.size()) { // none of ours
      kept.open = false;
      return kept;
    }
  }
  return kept;
}

/// Refuses a file whose first line is of another run, or of no run. A torn line, which a kill
/// leaves, may be any run's; older versions of boa named none.
absl::Status CheckRun(const std::string &path, const std::string &run) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok())
    return file.status();
  std::string first(size_t(std::min<int64_t>(file->size(), 1 << 16)), '\0');
  if (absl::Status status = file->Read(0, first.data(), int64_t(first.size())); !status.ok())
    return status;
  const size_t end = first.find('\n');
  const nlohmann::json record = ParseJson(first.substr(0, end)).value_or(nlohmann::json());
  const std::string begin = "{\"step\":";
  const size_t bytes = std::min(first.size(), begin.size());
  const bool names_run = record.is_object() && record.contains("run");
  const bool ours = first.compare(0, bytes, begin, 0, bytes) == 0 &&
                    (end == std::string::npos || record.is_object()) &&
                    (!names_run || record["run"] == run);
  return ours ? absl::OkStatus()
              : absl::FailedPreconditionError(absl::StrCat(
                    "--metrics: `", path,
                    "` is not of the run that is resumed; name its file, or a new one"));
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
  // In unified memory, the host's part counts as used first.
  peak_host_bytes = IsSeparate(program.machine) ? engine.PeakBytes(BOA_HOST)
                                                : std::min(program.arena_host, engine.PeakBytes());
  peak_device_bytes = engine.PeakBytes() - peak_host_bytes;
  if (!IsSeparate(program.machine))
    return;
  // Copies between the memories: the device reads and writes.
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
  if (!record.run.empty())
    line["run"] = record.run;
  line["loss"] = record.loss;
  line["lr"] = record.rate;
  if (record.gradient_norm)
    line["gradient_norm"] = *record.gradient_norm;
  line["tokens"] = record.tokens;
  if (!record.tokens_of.empty())
    line["tokens_of"] = record.tokens_of;
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

absl::Status Metrics::CheckNew(const std::string &path) {
  // Any other file is a stream, or fails when it is opened to write.
  std::error_code error;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error)) ||
      std::filesystem::file_size(path, error) == 0 || error)
    return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("--metrics: `", path,
                   "` holds another run's steps or other text; name a new file, or remove it"));
}

absl::StatusOr<Metrics> Metrics::Create(const std::string &path) {
  absl::StatusOr<OutputFile> file = OutputFile::Open(path);
  if (!file.ok())
    return file.status();
  if (!file->is_stream())
    if (absl::Status status = CheckNew(path); !status.ok())
      return status;
  Metrics metrics;
  metrics.file = *std::move(file);
  return metrics;
}

absl::StatusOr<Metrics> Metrics::Continue(const std::string &path, int64_t after,
                                          const std::string &run) {
  absl::StatusOr<OutputFile> file = OutputFile::Open(path);
  if (!file.ok())
    return file.status();
  Metrics metrics;
  metrics.file = *std::move(file);
  if (metrics.file.is_stream())
    return metrics;
  if (absl::Status status = CheckRun(path, run); !status.ok())
    return status;
  absl::StatusOr<KeptLines> kept = LinesUntil(path, after);
  if (!kept.ok())
    return kept.status();
  metrics.kept = kept->bytes;
  metrics.line_is_open = kept->open;
  metrics.former_losses = std::move(kept->losses);
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
