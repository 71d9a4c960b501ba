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
#include <cstring>
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

// A handler may interrupt SetStopNote, so there is no lock. It claims the current note, which then
// stays as it is: the next ones go to the other two places.
constexpr size_t kMostNote = 512; // less than a pipe takes at once
constexpr int kNoNote = -1;
char notes[3][kMostNote];
std::atomic<int> current_note{0}, claimed_note{kNoNote};

int64_t NowNs() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

/// In the handler of the first signal. Prints nothing where that would block.
void PrintNote() {
  int claim = kNoNote;
  do
    claimed_note = claim = current_note;
  while (current_note != claim);
  const size_t size = strlen(notes[claim]);
  pollfd output = {STDERR_FILENO, POLLOUT, 0};
  if (size > 0 && poll(&output, 1, 0) == 1 && (output.revents & POLLOUT) != 0)
    (void)!write(STDERR_FILENO, notes[claim], size);
  claimed_note = kNoNote;
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
  int next = 0;
  while (next == current_note || next == claimed_note)
    ++next;
  notes[next][text.copy(notes[next], kMostNote - 1)] = 0;
  current_note = next;
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
