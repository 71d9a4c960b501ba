//===- process.h - What the system knows of this process --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_PROCESS_H
#define BOA_RUNTIME_TRAINER_PROCESS_H

#include "absl/status/status.h"

#include <cstdint>
#include <string>

namespace boa {

/// Bytes that this process made block devices read and write, as counted by the
/// kernel (/proc/self/io): beside our own count. 0 where it does not tell.
struct DiskBytes {
  int64_t read = 0, written = 0;
};
DiskBytes ReadDiskBytes();

/// The peak of resident memory so far (VmHWM), in bytes.
int64_t PeakResidentBytes();

/// From here on a write beyond the limit of a file's size (`ulimit -f`) is an error, in this
/// process and those that it starts: SIGXFSZ is ignored. The first thing in main().
void IgnoreFileSizeSignal();

/// While it lives, the first SIGINT, SIGTERM, SIGHUP (the terminal is gone) or
/// SIGPIPE (who read the output is gone) is only remembered, so that a run can
/// commit before it leaves; what is written to a terminal or a pipe that is gone
/// fails and is lost. A second SIGINT ends the process at once with status 130;
/// others change nothing, since a terminal that closes sends several. A signal that
/// was ignored before (nohup, a job in the background) stays so. One at a time.
class InterruptGuard {
public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

  /// The first of them; 0: none yet.
  int signal() const;
  bool interrupted() const { return signal() != 0; }
};

/// kCancelled, and the signal that was the cause: the process that ends with it
/// has status 128 + signal, as a shell says of one that a signal killed.
absl::Status InterruptedError(int signal, const std::string &message);
/// The signal of such a status; 0: it is another.
int SignalOf(const absl::Status &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_PROCESS_H
