//===- report_file.cpp - The page of --report -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/report_file.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <filesystem>
#include <unistd.h>

namespace boa {

std::vector<FileUse> ReportOutputs(const std::string &path) {
  if (path.empty())
    return {};
  return {{"--report", path}, {"--report", TemporaryName(path)}};
}

absl::Status CheckReport(const std::string &path) {
  if (path.empty())
    return absl::OkStatus();
  absl::Status status = CheckNewFile({"--report", path}, /*directory=*/true);
  // A rename would also replace a file that may not be written.
  std::error_code error;
  if (status.ok() && std::filesystem::exists(path, error) && access(path.c_str(), W_OK) != 0)
    status = absl::ErrnoToStatus(errno, absl::StrCat("cannot write `", path, "`"));
  return status;
}

absl::Status WriteReport(const std::string &path, const Report &report) {
  const std::string page = FormatReport(report);
  auto file = NewFile::Create(path);
  absl::Status status = file.status();
  if (status.ok())
    status = file->Append(page.data(), int64_t(page.size()));
  return status.ok() ? file->Publish() : status;
}

void SetBoundOfLinks(Report &report) {
  for (const StepRun &run : report.runs) {
    const auto links = AloneSeconds(*report.program, run);
    if (links.empty())
      continue;
    report.bound_seconds = links[0].second;
    report.bound_link = links[0].first;
    return;
  }
}

} // namespace boa
