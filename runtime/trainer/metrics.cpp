//===- metrics.cpp - One JSON object for each step ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/metrics.h"

#include "nlohmann/json.hpp"

#include <fstream>

namespace boa {
namespace {

/// The lines of the file up to those of steps after `after`; "" if there is
/// none.
std::string LinesUntil(const std::string &path, int64_t after) {
  std::string kept, line;
  std::ifstream file(path);
  while (after > 0 && std::getline(file, line)) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer() ||
        record["step"].get<int64_t>() > after)
      break;
    kept += line + '\n';
  }
  return kept;
}

} // namespace

std::string FormatMetrics(const StepRecord &record) {
  nlohmann::ordered_json line;
  line["step"] = record.step;
  line["loss"] = record.loss;
  line["lr"] = record.rate;
  line["tokens"] = record.tokens;
  line["seconds"] = record.seconds;
  line["tokens_per_s"] = record.seconds > 0 ? record.tokens / record.seconds : 0.0;
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
  const std::string kept = LinesUntil(path, after);
  absl::StatusOr<File> file = File::Create(path);
  if (!file.ok())
    return file.status();
  Metrics metrics;
  metrics.file = *std::move(file);
  if (absl::Status status = metrics.file.Append(kept.data(), kept.size()); !status.ok())
    return status;
  return metrics;
}

absl::Status Metrics::Write(const StepRecord &record) {
  const std::string line = FormatMetrics(record) + '\n';
  return file.Append(line.data(), line.size());
}

} // namespace boa
