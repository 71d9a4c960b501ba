//===- process.h - What the system knows of this process --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_PROCESS_H
#define BOA_RUNTIME_TRAINER_PROCESS_H

#include "runtime/support/interrupt.h"

#include <cstdint>

namespace boa {

/// Bytes that this process made block devices read and write. The operating system counts them
/// (/proc/self/io); 0 if it does not.
struct DiskBytes {
  int64_t read = 0, written = 0;
};
DiskBytes ReadDiskBytes();

/// The peak of resident memory so far (VmHWM), in bytes.
int64_t PeakResidentBytes();

/// What main() does first. From then on, a write beyond the size limit of files (`ulimit -f`) is an
/// error and no signal, and as many files may be open as the system allows this process. Children
/// inherit both.
void PrepareProcess();

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_PROCESS_H
