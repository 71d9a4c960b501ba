//===- memory.cpp - The memory of a CPU -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/memory.h"

#include "runtime/support/interrupt.h"
#include "runtime/support/limits.h"
#include "runtime/support/thread_pool.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"

#include <sys/mman.h>

#include <cstring>

namespace boa {

absl::Status MapArena(int64_t bytes, char *&arena) {
  if (bytes == 0)
    return absl::OkStatus();
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate the arena of ", bytes >> 20,
                     " MiB: give the process more memory or the program less"));
  arena = static_cast<char *>(memory);
  madvise(memory, bytes, MADV_HUGEPAGE);
  ParallelFor(
      bytes, 2 << 20,
      [](void *data, int64_t begin, int64_t end) {
        if (!Interrupted()) // of a terabyte it would take minutes
          std::memset(static_cast<char *>(data) + begin, 0, end - begin);
      },
      memory);
  return Interrupted() ? Interruption() : absl::OkStatus();
}

absl::Status CheckMemoryLeft(const Program &program, const MemoryLeft &left) {
  const int64_t device = TraitsOf(program.machine.device).on_host ? program.arena_device : 0;
  const int64_t need = device + program.arena_host;
  if (need <= left.with_swap)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the program takes ", FormatBytes(double(need)), " of this machine's memory, but ",
      FormatBytes(double(left.with_swap)), " of ", FormatBytes(double(left.total)),
      " can be had now",
      left.group > 0
          ? absl::StrCat(", within the ", FormatBytes(double(left.group)), " of its control group")
          : "",
      ": end what else runs, or compile it with less memory in the machine block (`memory = "
      "auto`), "
      "so that more of it lives on SSD"));
}

void UnmapArena(char *arena, int64_t bytes) {
  if (arena)
    munmap(arena, bytes);
}

namespace {

class UnifiedMemory : public Memory {
public:
  ~UnifiedMemory() override { UnmapArena(arena, bytes); }
  absl::Status Allocate(const int64_t (&sizes)[2]) override {
    bytes = sizes[BOA_DEVICE];
    return MapArena(bytes, arena);
  }
  char *Address(Side, Location where) const override {
    return where.space < 0 ? nullptr : arena + where.offset;
  }
  std::pair<char *, int64_t> HostArena() const override { return {arena, bytes}; }

private:
  char *arena = nullptr;
  int64_t bytes = 0;
};

} // namespace

std::unique_ptr<Memory> CreateUnifiedMemory() { return std::make_unique<UnifiedMemory>(); }

} // namespace boa
