//===- calls.h - System calls that are recorded and fail ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// calls.cpp defines fsync, fdatasync, pread, pwrite, statx, flock and the functions that open,
// rename and link. They stand before those of the C library in an executable that links them. So a
// test sees the calls that reach the kernel, and makes them fail.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_FAULTS_CALLS_H
#define BOA_TEST_RUNTIME_FAULTS_CALLS_H

#include <cstdint>
#include <string>
#include <vector>

namespace boa::calls {

/// What goes wrong. Calls are counted from 0, those of this name only.
struct Fault {
  std::string call; // "fsync"; openat counts as "open", renameat as "rename", linkat as "link"
  int64_t at = 0, times = 1;
  int error = 0;     // the errno of calls that fail; 0: none
  int64_t bytes = 0; // a transfer moves this many instead; 0: all of them
};

void Inject(Fault);
void Clear();

/// Begins a record; Recorded ends it. A line is "fsync data", "rename a b" or "pwrite data":
/// last parts of paths; of a descriptor, the path that the kernel knows.
/// Transfers to one file without another call between them are one line. Opens and locks are
/// left out.
void Record();
std::vector<std::string> Recorded();

/// The device asks for direct transfers in multiples of this; 0: as the kernel says.
void SetDirectAlignment(uint32_t bytes);

/// Every io_uring_enter of this thread, and of threads that it starts, fails with this errno.
/// Cannot be undone. False: the kernel has no seccomp.
bool RefuseRingOnThisThread(int error);

/// A fault of the ring of a thread, which occurs `times` times.
struct RingFault {
  enum Of { enter, transfer, wake } of = enter; // the call, or completions of these
  int error = 0;
  int64_t times = 1;
};
/// From now on every io_uring_enter of this thread passes through here. Completions of other
/// calls do not. False: the kernel has no seccomp, or this is no x86-64.
bool InterceptRingOnThisThread(RingFault);

} // namespace boa::calls

#endif // BOA_TEST_RUNTIME_FAULTS_CALLS_H
