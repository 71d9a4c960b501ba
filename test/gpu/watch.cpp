//===- watch.cpp - How much device memory a command takes -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By asking what is free: before, and again and again while it runs. Where one process at a time
// may have the GPU, not at all.
//
//===----------------------------------------------------------------------===//
#include "test/gpu/peak.h"

#include "test/gpu/session.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace boa::gputest {

/// Whether no other process may have a context beside ours.
static bool IsExclusive(const Session &session) {
  constexpr int kComputeMode = 20, kExclusiveProcess = 3; // as cuda.h numbers them
  int mode = 0;
  return session.driver()
             .Call("asking after the GPU", session.driver().DeviceGetAttribute, &mode, kComputeMode,
                   cuda::Ordinal(0))
             .ok() &&
         mode == kExclusiveProcess;
}

int Watch(const std::string &file, char **command) {
  // The command comes first: no process has a context of before its fork. It waits.
  int ends[2];
  if (pipe(ends) != 0)
    return 1;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    char none;
    while (read(ends[0], &none, 1) > 0)
      continue;
    close(ends[0]);
    execvp(command[0], command);
    std::perror(command[0]);
    _exit(127);
  }
  close(ends[0]);
  auto session = Session::Open();
  size_t before = 0, free = 0, total = 0;
  const bool asks =
      session.ok() && !IsExclusive(**session) && (*session)->AskMemory(before, total).ok();
  if (!asks && session.ok())
    session->reset();
  close(ends[1]); // the child begins
  size_t least = before;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (asks && (*session)->AskMemory(free, total).ok())
      least = std::min(least, free);
    usleep(20'000);
  }
  if (asks)
    std::ofstream(file) << before - least << "\n";
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace boa::gputest
