//===- template_date.cpp - The date that chat templates show --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/generate/template_date.h"

#include "runtime/data/data.h"
#include "runtime/state/commit_name.h"
#include "runtime/state/commit_reader.h"

namespace boa {

std::string TemplateDateOf(FileSystem &disk, const std::string &directory,
                           std::optional<int64_t> at) {
  const auto reader = CommitReader::Open(disk, directory, at);
  if (!reader.ok())
    return "";
  const auto &settings = (*reader)->saved().record.extra;
  const auto found = settings.find(kTemplateDate);
  return found == settings.end() ? "" : found->second;
}

std::string TemplateDateOf(const std::string &state) {
  const absl::StatusOr<CommitName> named = FindCommit(SystemFiles(), state);
  return named.ok() ? TemplateDateOf(SystemFiles(), named->directory, named->step) : "";
}

} // namespace boa
