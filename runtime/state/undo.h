//===- undo.h - Removes what a failed opening made --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_UNDO_H
#define BOA_RUNTIME_STATE_UNDO_H

#include "runtime/io/file_system.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace boa {

/// The files and directories that an opening made. The destructor removes them unless Keep was
/// called.
///
/// Ownership: it keeps the directories of its files open; the file system outlives it.
/// Threads: one. Errors: nobody hears of one. The first file that cannot be removed ends the
/// removal. If there may be commits, their manifests go first, so that none names what is gone: the
/// data file then names its owner. Else the first manifest goes after it, and names the owner.
class Undo {
public:
  explicit Undo(FileSystem &disk) : disk(disk) {}
  ~Undo();
  Undo(const Undo &) = delete;
  Undo &operator=(const Undo &) = delete;

  /// A name that exists now or will soon.
  void AddFile(std::shared_ptr<Directory> directory, std::string name) {
    files.push_back({std::move(directory), std::move(name)});
  }
  /// The files of commits that will be there (saved_commit.h).
  void AddCommits(std::shared_ptr<Directory> directory) { homes.push_back(std::move(directory)); }
  void AddDirectory(std::string path) { directories.push_back(std::move(path)); }
  void Keep() {
    files.clear();
    homes.clear();
    directories.clear();
  }

private:
  FileSystem &disk;
  std::vector<std::pair<std::shared_ptr<Directory>, std::string>> files;
  std::vector<std::shared_ptr<Directory>> homes;
  std::vector<std::string> directories;
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_UNDO_H
