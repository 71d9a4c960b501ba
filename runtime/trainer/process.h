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

/// Bytes that this process made block devices read and write. The operating system counts them
/// (/proc/self/io); 0 if it does not.
struct DiskBytes {
  int64_t read = 0, written = 0;
};
DiskBytes ReadDiskBytes();

/// The peak of resident memory so far (VmHWM), in bytes.
int64_t PeakResidentBytes();

/// Ignores SIGXFSZ. From then on, a write beyond the size limit of files (`ulimit -f`) is an error,
/// in this process and its children. main() calls it first.
void IgnoreFileSizeSignal();

/// While it lives, it only notes the first SIGINT, SIGTERM, SIGHUP (the terminal is gone) or
/// SIGPIPE (the reader of the output is gone). So a run can commit before it ends. Output to a
/// terminal or pipe that is gone is lost. A second SIGINT ends the process at once with status 130.
/// Other signals change nothing, because a terminal that closes sends several. A signal that was
/// ignored before (nohup, a background job) stays ignored. Only one guard may live at a time.
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

/// The guard of a process that trains once. It lives until the process ends, so that no signal can
/// take the place of the last message and its exit status.
const InterruptGuard &InterruptsUntilExit();

/// kCancelled, with the signal that was the cause. The process then ends with status 128 + signal,
/// like one that a signal killed.
absl::Status InterruptedError(int signal, const std::string &message);
/// The signal of such a status; 0: it has none.
int SignalOf(const absl::Status &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_PROCESS_H
