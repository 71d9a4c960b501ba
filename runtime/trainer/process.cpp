//===- process.cpp - What the system knows of this process ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/process.h"

#include "absl/strings/numbers.h"

#include <atomic>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

namespace boa {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
constexpr char kSignalPayload[] = "boa/signal";

// Signal handlers reach nothing but globals. They run on any thread.
std::atomic<int> first_signal{0}, sigint_count{0};
static_assert(std::atomic<int>::is_always_lock_free);
struct sigaction previous[std::size(kSignals)];

void OnSignal(int signal) {
  if (signal == SIGINT && ++sigint_count > 1)
    _exit(128 + SIGINT);
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
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

// The write itself fails with EFBIG then.
void IgnoreFileSizeSignal() { std::signal(SIGXFSZ, SIG_IGN); }

InterruptGuard::InterruptGuard() {
  first_signal = sigint_count = 0;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  // The step in progress goes on undisturbed.
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &previous[i]);
    if (previous[i].sa_handler != SIG_IGN)
      sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < std::size(kSignals); ++i)
    sigaction(kSignals[i], &previous[i], nullptr);
}

int InterruptGuard::signal() const { return first_signal; }

const InterruptGuard &InterruptsUntilExit() {
  static const InterruptGuard &interrupts = *new InterruptGuard; // its end would restore signals
  return interrupts;
}

absl::Status InterruptedError(int signal, const std::string &message) {
  absl::Status status = absl::CancelledError(message);
  status.SetPayload(kSignalPayload, absl::Cord(absl::string_view(std::to_string(signal))));
  return status;
}

int SignalOf(const absl::Status &status) {
  int signal = 0;
  if (auto payload = status.GetPayload(kSignalPayload))
    (void)absl::SimpleAtoi(std::string(*payload), &signal);
  return signal;
}

} // namespace boa
