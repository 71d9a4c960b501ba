//===- committed_settings.cpp - What a state says of its data -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/generate/committed_settings.h"

#include "runtime/data/data.h"
#include "runtime/state/commit_name.h"
#include "runtime/state/commit_reader.h"

namespace boa {

std::map<std::string, std::string> CommittedSettings(FileSystem &disk, const std::string &directory,
                                                     std::optional<int64_t> at) {
  const auto reader = CommitReader::Open(disk, directory, at);
  if (!reader.ok())
    return {};
  return (*reader)->saved().record.extra;
}

std::map<std::string, std::string> CommittedSettings(const std::string &state) {
  const absl::StatusOr<CommitName> named = FindCommit(SystemFiles(), state);
  if (!named.ok())
    return {};
  return CommittedSettings(SystemFiles(), named->directory, named->step);
}

std::string TemplateDateOf(const std::map<std::string, std::string> &settings) {
  const auto found = settings.find(kTemplateDate);
  return found == settings.end() ? "" : found->second;
}

} // namespace boa
