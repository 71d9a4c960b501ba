//===- host.cpp - The host's memory and processors ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/probe/host.h"

#include "runtime/abi/abi.h"
#include "runtime/state/checksum.h"
#include "runtime/support/thread_pool.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <atomic>
#include <time.h>
#include <utility>

namespace boa {
namespace {

// Beyond the caches of most processors, so that the numbers are of memory.
constexpr int64_t kManyBytes = 256 << 20;
constexpr int64_t kPart = 1 << 20; // of one thread at a time, as engine and checksums work

/// Runs `function` on parts of [0, bytes), on all threads.
template <typename Function> void OnAllThreads(int64_t bytes, Function function) {
  ParallelFor(
      bytes / kPart, 1,
      [](void *data, int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part)
          (*static_cast<Function *>(data))(part *kPart);
      },
      &function);
}

/// Bytes a second of several runs that each take so many bytes.
template <typename Run> std::vector<double> RatesOf(int64_t bytes, bool quick, Run run) {
  std::vector<double> rates;
  run(); // the first finds pages and caches cold
  for (int turn = 0; turn < (quick ? 5 : 11); ++turn) {
    const double begin = ProbeNow();
    run();
    rates.push_back(double(bytes) / (ProbeNow() - begin));
  }
  return rates;
}

std::string OnThreads() { return absl::StrCat(Threads(), Threads() == 1 ? " thread" : " threads"); }

} // namespace

double ProbeNow() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

absl::StatusOr<ProbeMemory> ProbeMemory::Allocate(int64_t bytes) {
  ProbeMemory made;
  made.bytes = (bytes + BOA_BLOCK_BYTES - 1) / BOA_BLOCK_BYTES * BOA_BLOCK_BYTES;
  made.memory.reset(static_cast<char *>(std::aligned_alloc(BOA_BLOCK_BYTES, size_t(made.bytes))));
  if (!made.memory)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", FormatBytes(double(bytes)), " to measure with"));
  // Upper halves of floats from 0.0078 to 0.0156, of both signs; no drive can compress them much.
  auto *halves = reinterpret_cast<uint16_t *>(made.memory.get());
  uint32_t random = 1;
  for (int64_t i = 0; i < made.bytes / 2; ++i) {
    random = random * 1664525 + 1013904223;
    halves[i] = uint16_t(0x3c00 | (random >> 16 & 0x807f));
  }
  return made;
}

Figure FreeMemory(const MemoryLeft &left) {
  Figure figure;
  figure.value = double(left.bytes);
  figure.how = absl::StrCat("of ", FormatBytes(double(left.total)),
                            left.group > 0 ? ", limited by its control group" : "");
  return figure;
}

absl::StatusOr<Figure> MeasureBandwidth(bool quick) {
  absl::StatusOr<ProbeMemory> from = ProbeMemory::Allocate(kManyBytes),
                              to = ProbeMemory::Allocate(kManyBytes);
  for (const absl::Status &status : {from.status(), to.status()})
    if (!status.ok())
      return status;
  // In place, so that no line is read that is only written.
  auto add = [&] {
    OnAllThreads(kManyBytes, [&](int64_t at) {
      auto *sums = reinterpret_cast<uint64_t *>(to->data() + at);
      const auto *addends = reinterpret_cast<const uint64_t *>(from->data() + at);
      for (int64_t i = 0; i < kPart / int64_t{sizeof(uint64_t)}; ++i)
        sums[i] += addends[i];
    });
  };
  return MedianOf(RatesOf(3 * kManyBytes, quick, add),
                  absl::StrCat("sums of ", FormatBytes(double(kManyBytes)), " on ", OnThreads()));
}

absl::StatusOr<Figure> MeasureChecksums(bool quick) {
  absl::StatusOr<ProbeMemory> memory = ProbeMemory::Allocate(kManyBytes);
  if (!memory.ok())
    return memory.status();
  std::atomic<uint64_t> all{0}; // so that no sum is left out
  auto sum = [&] {
    OnAllThreads(kManyBytes, [&](int64_t at) { all ^= Checksum(memory->data() + at, kPart); });
  };
  return MedianOf(RatesOf(kManyBytes, quick, sum),
                  absl::StrCat("chunks of ", FormatBytes(double(kPart)), " on ", OnThreads()));
}

} // namespace boa
