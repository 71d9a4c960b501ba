//===- new_outputs.h - What a failed command would leave --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_IO_NEW_OUTPUTS_H
#define BOA_RUNTIME_IO_NEW_OUTPUTS_H

#include <set>
#include <string>
#include <vector>

namespace boa {

/// The files and folders that a command makes. The destructor removes those that were not there
/// before, unless Keep was called. So a command that fails leaves nothing. The destructor reports
/// no errors, because the command has its own to report.
class NewOutputs {
public:
  NewOutputs() = default;
  ~NewOutputs();
  NewOutputs(const NewOutputs &) = delete;
  NewOutputs &operator=(const NewOutputs &) = delete;

  using IsOwn = bool (*)(const std::string &name);
  /// A file that will be made.
  void Add(const std::string &path) { AddFolder(path, nullptr); }
  /// A folder for files of such names. Other files that a person puts there meanwhile stay.
  void AddFolder(const std::string &path, IsOwn is_own);
  void Keep() { outputs.clear(); }

private:
  struct Output {
    std::string path;
    IsOwn is_own;
    bool was_there;
    std::set<std::string> files; // of a folder, before the command
  };
  std::vector<Output> outputs;
};

} // namespace boa

#endif // BOA_RUNTIME_IO_NEW_OUTPUTS_H
