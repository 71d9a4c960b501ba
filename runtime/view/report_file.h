//===- report_file.h - The page of --report ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_REPORT_FILE_H
#define BOA_RUNTIME_VIEW_REPORT_FILE_H

#include "runtime/io/new_file.h"
#include "runtime/view/report.h"

#include "absl/status/status.h"

#include <string>
#include <vector>

namespace boa {

/// The files that `--report` writes: its own, and one with a temporary name before. None if `path`
/// is empty.
std::vector<FileUse> ReportOutputs(const std::string &path);
/// Refuses a path that cannot be written. An empty one is none.
absl::Status CheckReport(const std::string &path);
/// Writes the page. It appears complete, or not at all.
absl::Status WriteReport(const std::string &path, const Report &);

/// The bound of the program itself: its busiest link of the first simulated run.
void SetBoundOfLinks(Report &);

} // namespace boa

#endif // BOA_RUNTIME_VIEW_REPORT_FILE_H
