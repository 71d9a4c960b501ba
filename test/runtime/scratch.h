//===- scratch.h - A directory for one test ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_SCRATCH_H
#define BOA_TEST_RUNTIME_SCRATCH_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

namespace boa {

/// Memory, where it can be had: for tests that open a state very often.
inline std::string FastDirectory() {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                       : std::filesystem::temp_directory_path().string();
}

/// A fresh directory, removed with all in it at the end.
class Scratch {
public:
  /// In a directory that exists; by default where temporary files are.
  explicit Scratch(const std::string &parent = std::filesystem::temp_directory_path().string()) {
    std::string name = parent + "/boa-test-XXXXXX";
    if (const char *made = mkdtemp(name.data()))
      directory = made;
    else
      std::abort();
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  const std::string &path() const { return directory; }
  std::string path(const std::string &name) const { return directory + "/" + name; }

  std::string Write(const std::string &name, const std::string &contents) const {
    std::ofstream(path(name), std::ios::binary) << contents;
    return path(name);
  }

private:
  std::string directory;
};

inline std::string ReadWhole(const std::string &path) {
  std::ostringstream contents;
  contents << std::ifstream(path, std::ios::binary).rdbuf();
  return contents.str();
}

} // namespace boa

#endif // BOA_TEST_RUNTIME_SCRATCH_H
