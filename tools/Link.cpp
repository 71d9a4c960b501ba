//===- Link.cpp -----------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/Link.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

#include <fstream>

namespace boa {

absl::Status LinkShared(const std::vector<std::string> &objects, const std::string &output) {
  auto linker = llvm::sys::findProgramByName("ld.lld-22", {"", "/usr/lib/llvm-22/bin"});
  if (!linker)
    linker = llvm::sys::findProgramByName("ld");
  if (!linker)
    return absl::NotFoundError("no linker found: install lld-22");
  std::vector<std::string> paths;
  llvm::scope_exit clean([&] {
    for (const std::string &path : paths)
      (void)llvm::sys::fs::remove(path);
  });
  std::vector<llvm::StringRef> command{*linker, "-shared", "-o", output, "-z", "noexecstack"};
  for (const std::string &object : objects) {
    paths.push_back(absl::StrCat(output, ".", paths.size(), ".o"));
    std::ofstream out(paths.back(), std::ios::binary);
    out << object;
    out.close();
    if (!out)
      return absl::UnavailableError(absl::StrCat("cannot write ", paths.back(),
                                                 ": choose another --output or free some space"));
  }
  command.insert(command.end(), paths.begin(), paths.end());
  std::string message;
  if (llvm::sys::ExecuteAndWait(*linker, command, std::nullopt, {}, 0, 0, &message) != 0)
    return absl::InternalError(absl::StrCat("linking ", output, " failed: ", message));
  return absl::OkStatus();
}

} // namespace boa
