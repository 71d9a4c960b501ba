//===- interrupt.cpp - Signals that end a process --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/interrupt.h"

#include "absl/strings/numbers.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <poll.h>
#include <string>
#include <time.h>
#include <unistd.h>

namespace boa {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
constexpr char kSignalPayload[] = "boa/signal";
constexpr int64_t kOneSignalNs = 250'000'000; // what comes within it may be the same one

// Signal handlers reach nothing but globals. They run on any thread.
std::atomic<int> first_signal{0};
std::atomic<int64_t> signal_ns{0}, asked_ns{0}; // times of the first, and first SIGINT or SIGTERM
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);
struct sigaction previous[std::size(kSignals)];

// A handler may interrupt SetStopNote, so there is no lock: it copies the note again if the version
// has changed meanwhile, and none while it is odd.
constexpr size_t kMostNote = 512; // less than a pipe takes at once
std::atomic<char> note[kMostNote];
std::atomic<uint32_t> note_version{0};

int64_t NowNs() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

/// In a handler. Prints nothing where that would block.
void PrintNote() {
  constexpr int kAttempts = 100;
  char text[kMostNote];
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const uint32_t version = note_version;
    size_t size = 0;
    while (size < kMostNote && (text[size] = note[size]) != 0)
      ++size;
    if (version % 2 != 0 || version != note_version)
      continue;
    pollfd output = {STDERR_FILENO, POLLOUT, 0};
    if (size > 0 && poll(&output, 1, 0) == 1 && (output.revents & POLLOUT) != 0)
      (void)!write(STDERR_FILENO, text, size);
    return;
  }
}

void OnSignal(int signal) {
  const int error = errno;
  const int64_t now = NowNs();
  if (signal == SIGINT || signal == SIGTERM) {
    int64_t asked = 0;
    const bool first = asked_ns.compare_exchange_strong(asked, now);
    if (!first && now - asked > kOneSignalNs)
      _exit(128 + signal);
    if (first)
      PrintNote();
  }
  int none = 0;
  int64_t never = 0;
  signal_ns.compare_exchange_strong(never, now); // first, for who sees the signal
  first_signal.compare_exchange_strong(none, signal);
  errno = error;
}

void Reset() {
  first_signal = 0;
  signal_ns = asked_ns = 0;
  SetStopNote("");
}

} // namespace

InterruptGuard::InterruptGuard() {
  Reset();
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
  Reset();
}

int InterruptGuard::signal() const { return first_signal; }

const InterruptGuard &InterruptsUntilExit() {
  static const InterruptGuard &interrupts = *new InterruptGuard; // its end would restore signals
  return interrupts;
}

bool Interrupted() { return first_signal != 0; }

bool InterruptedFor(std::chrono::nanoseconds least, std::chrono::steady_clock::time_point begin) {
  // steady_clock is CLOCK_MONOTONIC.
  const int64_t from = std::chrono::nanoseconds(begin.time_since_epoch()).count();
  return Interrupted() && NowNs() - std::max<int64_t>(signal_ns, from) >= least.count();
}

void SetStopNote(absl::string_view text) {
  ++note_version;
  const size_t size = std::min(text.size(), kMostNote - 1);
  for (size_t i = 0; i < size; ++i)
    note[i] = text[i];
  note[size] = 0;
  ++note_version;
}

absl::Status InterruptedError(int signal, const std::string &message) {
  absl::Status status = absl::CancelledError(message);
  status.SetPayload(kSignalPayload, absl::Cord(absl::string_view(std::to_string(signal))));
  return status;
}

absl::Status Interruption() { return InterruptedError(first_signal, "interrupted"); }

int SignalOf(const absl::Status &status) {
  int signal = 0;
  if (auto payload = status.GetPayload(kSignalPayload))
    (void)absl::SimpleAtoi(std::string(*payload), &signal);
  return signal;
}

absl::Status IfInterrupted(const absl::Status &status, const std::string &message) {
  const int signal = SignalOf(status);
  return signal != 0 ? InterruptedError(signal, message) : status;
}

} // namespace boa
