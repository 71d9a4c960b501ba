//===- threads.h - Threads that may not start ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_THREADS_H
#define BOA_RUNTIME_SUPPORT_THREADS_H

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <functional>
#include <thread>

namespace boa {

/// Starts a thread that runs `run`. ResourceExhausted if the system allows no more of them:
/// "cannot start WHAT: ...". Then `thread` is as before. All threads of Boa start here, since
/// std::thread by itself throws.
absl::Status StartThread(absl::string_view what, std::thread &thread, std::function<void()> run);

/// The error of a start if `count` more threads cannot run at once. Others' libraries abort then.
absl::Status CheckThreads(absl::string_view what, int64_t count);

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_THREADS_H
