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
/// before, unless Keep was called: a command that fails leaves nothing. Errors: nobody hears of
/// one, since that of the command is the one to tell.
class NewOutputs {
public:
  NewOutputs() = default;
  ~NewOutputs();
  NewOutputs(const NewOutputs &) = delete;
  NewOutputs &operator=(const NewOutputs &) = delete;

  using IsOwn = bool (*)(const std::string &name);
  /// A file that will be made.
  void Add(const std::string &path) { AddFolder(path, nullptr); }
  /// A folder in which files of such names will be. What a person puts there meanwhile stays.
  void AddFolder(const std::string &path, IsOwn is_own);
  void Keep() { outputs.clear(); }

private:
  struct Output {
    std::string path;
    IsOwn is_own;
    bool was_there;
    std::set<std::string> files; // that it had, of a folder
  };
  std::vector<Output> outputs;
};

} // namespace boa

#endif // BOA_RUNTIME_IO_NEW_OUTPUTS_H
