//===- committed_settings.h - What a state says of its data -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A commit keeps the settings of its training. Two of them matter to a text that the model
// continues: the tokenizer of the data, and the date that chat templates show. Some templates write
// the date of today into a conversation. The one of the training is kept, so that the tokens, and
// texts of the model, are the same on another day.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_GENERATE_COMMITTED_SETTINGS_H
#define BOA_RUNTIME_GENERATE_COMMITTED_SETTINGS_H

#include "runtime/io/file_system.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace boa {

/// The settings of the commit of step `at`, or else of the last one (CommitRecord::extra). Empty:
/// it has none, or cannot be read, which is for others to report.
std::map<std::string, std::string> CommittedSettings(FileSystem &, const std::string &directory,
                                                     std::optional<int64_t> at);
/// The same of a state, named as DIR[@COMMIT].
std::map<std::string, std::string> CommittedSettings(const std::string &state);

/// The date that chat templates show; "": the settings have none.
std::string TemplateDateOf(const std::map<std::string, std::string> &settings);

} // namespace boa

#endif // BOA_RUNTIME_GENERATE_COMMITTED_SETTINGS_H
