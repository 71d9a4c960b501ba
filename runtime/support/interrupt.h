//===- interrupt.h - Signals that end a process --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A guard notes the signals that would end the process. Whatever takes long asks Interrupted()
// and returns Interruption(). Who began it says what was kept, by InterruptedError, and main()
// ends with the status of the signal.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_INTERRUPT_H
#define BOA_RUNTIME_SUPPORT_INTERRUPT_H

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <chrono>
#include <string>

namespace boa {

/// While it lives, it only notes the first SIGINT, SIGTERM, SIGHUP (the terminal is gone) or
/// SIGPIPE (the reader of the output is gone). So a run can commit before it ends. Output to a
/// terminal or pipe that is gone is lost.
///
/// The first SIGINT or SIGTERM prints the note of SetStopNote. A second one, a quarter of a second
/// after the first or later, ends the process at once, with status 128 + signal. An earlier one is
/// ignored: `timeout` and other parents send a signal twice. A later SIGHUP or SIGPIPE is ignored,
/// too, since a terminal that closes sends several. A signal that was ignored before (nohup, a
/// background job) stays ignored. Only one guard may live at a time.
class InterruptGuard {
public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

  /// The first signal; 0: none yet.
  int signal() const;
  bool interrupted() const { return signal() != 0; }
};

/// The guard of a process that does one thing. It lives until the process ends, so that no signal
/// can take the place of the last message and its exit status.
const InterruptGuard &InterruptsUntilExit();

/// Whether the guard that lives has noted a signal. Any thread may ask.
bool Interrupted();
/// The same, and at least so long has passed since the signal and since `begin`.
bool InterruptedFor(std::chrono::nanoseconds, std::chrono::steady_clock::time_point begin);

/// What the end of the process waits for, from now on, for a person who sends a signal. Empty:
/// nothing that takes long. One thread sets it; it is cut after some hundred bytes.
void SetStopNote(absl::string_view note);

/// kCancelled, with the signal that was the cause. The process then ends with status 128 + signal,
/// like one that a signal killed.
absl::Status InterruptedError(int signal, const std::string &message);
/// The same for the signal that was noted, without a word of what was kept.
absl::Status Interruption();
/// The signal of such a status; 0: it has none.
int SignalOf(const absl::Status &);
/// Such a status with this message; any other as it is.
absl::Status IfInterrupted(const absl::Status &, const std::string &message);

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_INTERRUPT_H
