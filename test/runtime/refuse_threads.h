//===- refuse_threads.h - A thread that may start no other ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_REFUSE_THREADS_H
#define BOA_TEST_RUNTIME_REFUSE_THREADS_H

#include "gtest/gtest.h"

#include <cerrno>
#include <cstddef>
#include <functional>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>

namespace boa {

/// The error that a start of `what` has then.
inline std::string CannotStart(const std::string &what) {
  return "cannot start " + what +
         ": Resource temporarily unavailable: allow the process more threads (ulimit -u) or more "
         "memory";
}

/// Runs `test` on a thread whose starts of threads fail, as where a limit of processes is reached.
inline void WithoutNewThreads(const std::function<void()> &test) {
  std::thread([&] {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EAGAIN & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      GTEST_SKIP() << "the kernel has no seccomp";
    test();
  }).join();
}

} // namespace boa

#endif // BOA_TEST_RUNTIME_REFUSE_THREADS_H
