//===- share.cpp - A device that processes share --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/share.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace boa::fake {
namespace {

/// A process and what it uses. What one that is gone had is free, whatever is written here.
struct Entry {
  std::atomic<int64_t> process;
  std::atomic<uint64_t> used;
};
constexpr int kEntries = 64;

bool IsGone(int64_t process) { return kill(pid_t(process), 0) != 0 && errno == ESRCH; }

Entry *Open(const char *path) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void *entries = MAP_FAILED;
  if (file >= 0 && ftruncate(file, kEntries * sizeof(Entry)) == 0)
    entries = mmap(nullptr, kEntries * sizeof(Entry), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (entries == MAP_FAILED) {
    perror("fake CUDA: BOA_FAKE_CUDA_SHARE");
    abort();
  }
  close(file);
  return static_cast<Entry *>(entries);
}

} // namespace

uint64_t UsedByOthers(uint64_t used) {
  static const char *const path = getenv("BOA_FAKE_CUDA_SHARE");
  if (!path)
    return 0;
  static Entry *const entries = Open(path);
  const int64_t self = getpid();
  uint64_t others = 0;
  bool said = false;
  for (Entry *entry = entries; entry != entries + kEntries; ++entry) {
    int64_t owner = entry->process;
    if (!said && owner != self && (!owner || IsGone(owner)) &&
        entry->process.compare_exchange_strong(owner, self))
      owner = self;
    if (owner == self) {
      entry->used = said ? 0 : used;
      said = true;
    } else if (owner && !IsGone(owner)) {
      others += entry->used;
    }
  }
  return others;
}

} // namespace boa::fake
