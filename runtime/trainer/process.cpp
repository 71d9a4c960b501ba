//===- process.cpp - What the system knows of this process ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/process.h"

#include "runtime/support/limits.h"

#include <csignal>
#include <fstream>
#include <string>

namespace boa {
namespace {

/// The number after `key` at the start of a line of a file in /proc, or 0.
int64_t ReadNumber(const char *path, const std::string &key) {
  std::ifstream file(path);
  std::string word;
  int64_t value = 0;
  while (file >> word)
    if (word == key && file >> value)
      return value;
  return 0;
}

} // namespace

DiskBytes ReadDiskBytes() {
  return {ReadNumber("/proc/self/io", "read_bytes:"), ReadNumber("/proc/self/io", "write_bytes:")};
}

int64_t PeakResidentBytes() { return ReadNumber("/proc/self/status", "VmHWM:") * 1024; }

void PrepareProcess() {
  std::signal(SIGXFSZ, SIG_IGN); // the write itself fails with EFBIG then
  RaiseFileLimit();
}

} // namespace boa
