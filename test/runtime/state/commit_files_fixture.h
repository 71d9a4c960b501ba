//===- commit_files_fixture.h - Files of commits, for tests -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_STATE_COMMIT_FILES_FIXTURE_H
#define BOA_TEST_RUNTIME_STATE_COMMIT_FILES_FIXTURE_H

#include "runtime/state/commit_files.h"
#include "runtime/state/manifest_files.h"
#include "runtime/state/saved_commit.h"
#include "test/runtime/state/state_fixture.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include <set>

namespace boa {

namespace fs = std::filesystem;

class CommitFilesTest : public StateTest {
protected:
  CommitFilesTest() : StateTest(FastDirectory()) { disk.through_cache = true; }

  void Put(const std::string &path, const std::string &text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  /// The names of sealed files of that kind; of all kinds if it is empty. Without their copies.
  std::set<std::string> Names(const std::string &kind = "") {
    std::set<std::string> names;
    for (const fs::directory_entry &entry : fs::directory_iterator(Path()))
      if (const std::string name = entry.path().filename().string();
          IsSealedName(name) && absl::StartsWith(name, kind) && !absl::StrContains(name, ".copy"))
        names.insert(name);
    return names;
  }
  static std::string SumOf(const std::string &name) { return name.substr(name.find('.') + 1, 32); }
  static std::string CopyOf(const std::string &name) {
    return absl::StrReplaceAll(name, {{".json", ".copy.json"}});
  }
  /// Removes a sealed file and its copy.
  void Remove(const std::string &name) {
    for (const std::string &one : {name, CopyOf(name)})
      fs::remove(Path() + "/" + one);
  }
  /// Writes both.
  void PutBoth(const std::string &name, const std::string &text) {
    for (const std::string &one : {name, CopyOf(name)})
      Put(Path() + "/" + one, text);
  }
  /// Replaces a text in the only file of a kind, and names it in the files above it.
  void Edit(const std::string &kind, const std::string &from, const std::string &to) {
    const std::string name = *Names(kind).begin();
    std::string line = ReadWhole(Path() + "/" + name);
    line.resize(line.find('\n'));
    const size_t at = line.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << line;
    line.replace(at, from.size(), to);
    line += "\n";
    line += absl::StrFormat("xxh3 %016x\n", Checksum(line.data(), int64_t(line.size())));
    const std::string sum = NameOfContents(line);
    Remove(name);
    PutBoth(SealedName(kind, sum), line);
    if (kind != "commit")
      return Edit("commit", SumOf(name), sum);
    for (const std::string &manifest : {Manifest(), Copy()}) {
      std::string text = ReadWhole(manifest);
      text = absl::StrReplaceAll(text.substr(0, text.find('\n') + 1), {{SumOf(name), sum}});
      Put(manifest,
          text + absl::StrFormat("xxh3 %016x\n", Checksum(text.data(), int64_t(text.size()))));
    }
  }
};

} // namespace boa

#endif // BOA_TEST_RUNTIME_STATE_COMMIT_FILES_FIXTURE_H
