//===- process.h - What the system knows of this process --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_PROCESS_H
#define BOA_RUNTIME_TRAINER_PROCESS_H

#include <cstdint>

namespace boa {

/// Bytes that this process made block devices read and write, as counted by the
/// kernel (/proc/self/io): beside our own count. 0 where it does not tell.
struct DiskBytes {
  int64_t read = 0, written = 0;
};
DiskBytes ReadDiskBytes();

/// The peak of resident memory so far (VmHWM), in bytes.
int64_t PeakResidentBytes();

/// While it lives, the first SIGINT or SIGTERM only sets a flag; a second one
/// ends the process at once with status 130. One at a time.
class InterruptGuard {
public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

  bool interrupted() const;
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_PROCESS_H
