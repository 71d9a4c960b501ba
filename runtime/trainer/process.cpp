//===- process.cpp - What the system knows of this process ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/process.h"

#include <csignal>
#include <fstream>
#include <string>
#include <unistd.h>

namespace boa {
namespace {

// Signal handlers reach nothing but globals.
volatile std::sig_atomic_t interrupt_count = 0;
struct sigaction previous_int, previous_term;

void OnInterrupt(int) {
  if (interrupt_count > 0)
    _exit(130);
  interrupt_count = 1;
}

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

InterruptGuard::InterruptGuard() {
  interrupt_count = 0;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigemptyset(&action.sa_mask);
  // The step in progress goes on undisturbed.
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &previous_int);
  sigaction(SIGTERM, &action, &previous_term);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_int, nullptr);
  sigaction(SIGTERM, &previous_term, nullptr);
}

bool InterruptGuard::interrupted() const { return interrupt_count > 0; }

} // namespace boa
