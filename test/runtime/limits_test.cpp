//===- limits_test.cpp - What the system leaves a process -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Trees of /proc and /sys/fs/cgroup as the two versions of control groups have them.
//
//===----------------------------------------------------------------------===//
#include "runtime/support/limits.h"

#include "runtime/device/memory.h"
#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sys/resource.h>

namespace boa {
namespace {

class Limits : public testing::Test {
protected:
  void Write(const std::string &name, const std::string &contents) {
    const std::string path = scratch.path(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << contents;
  }
  std::string Root() { return scratch.path() + "/"; }
  MemoryLeft Memory() { return MeasureMemoryLeft(Root()); }
  int64_t KiB() { return Memory().bytes / 1024; }
  int64_t KiBWithSwap() { return Memory().with_swap / 1024; }

  Limits() { Write("proc/meminfo", "MemTotal: 8000 kB\nMemFree: 10 kB\nMemAvailable: 6000 kB\n"); }
  Scratch scratch;
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST_F(Limits, WhatIsFree) {
  EXPECT_EQ(KiB(), 6000);
  EXPECT_EQ(KiBWithSwap(), 6000);
  EXPECT_EQ(Memory().total, 8000 * 1024);
  EXPECT_EQ(Memory().group, 0);
}

TEST_F(Limits, SwapIsTheMostThatCanBeHad) {
  Write("proc/meminfo",
        "MemTotal: 8000 kB\nMemAvailable: 6000 kB\nSwapTotal: 9 kB\nSwapFree: 500 kB\n");
  EXPECT_EQ(KiB(), 6000);
  EXPECT_EQ(KiBWithSwap(), 6500);
}

// Nothing is refused for want of a number.
TEST_F(Limits, AKernelThatDoesNotSayWhatIsFree) {
  Write("proc/meminfo", "MemTotal: 8000 kB\nMemFree: 10 kB\n");
  EXPECT_EQ(KiB(), 0);
  EXPECT_GT(KiBWithSwap(), int64_t{1} << 40);
}

// The kernel does not count as free what ZFS keeps for reads and gives back.
TEST_F(Limits, CachesOfZfsAreFree) {
  Write("proc/spl/kstat/zfs/arcstats", "13 1 0x01 123 33456 1 2\nname type data\n"
                                       "c_min                           4    102400\n"
                                       "size                            4    1126400\n");
  EXPECT_EQ(KiB(), 7000);
}

// The least that a group or one above it leaves.
TEST_F(Limits, LimitedByControlGroups) {
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("sys/fs/cgroup/a/b/memory.current", "1024\n");
  EXPECT_EQ(KiB(), 6000);
  Write("sys/fs/cgroup/a/memory.max", "3072000\n");
  Write("sys/fs/cgroup/a/memory.current", "1024000\n");
  EXPECT_EQ(KiB(), 2000);
  EXPECT_EQ(Memory().group, 3072000);
  Write("sys/fs/cgroup/a/b/memory.max", "102400\n");
  EXPECT_EQ(KiB(), 99);
  EXPECT_EQ(Memory().group, 102400);
}

// A container sees its own group as the root.
TEST_F(Limits, LimitedByTheRootOfANamespace) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "2048000\n");
  Write("sys/fs/cgroup/memory.current", "1024000\n");
  EXPECT_EQ(KiB(), 1000);
}

// A job that has read its data is charged with the cache of it.
TEST_F(Limits, CachesOfAGroupAreFree) {
  Write("proc/self/cgroup", "0::/a\n");
  Write("sys/fs/cgroup/a/memory.max", "4096000\n");
  Write("sys/fs/cgroup/a/memory.current", "4000000\n");
  Write("sys/fs/cgroup/a/memory.stat", "anon 900000\nfile 3000000\nshmem 52000\n"
                                       "inactive_file 2000000\nactive_file 900000\n"
                                       "slab_reclaimable 100000\n");
  EXPECT_EQ(Memory().bytes, 4096000 - 1000000);
}

// A group may have less swap than the machine, or none.
TEST_F(Limits, SwapOfAGroup) {
  Write("proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 6000 kB\nSwapFree: 500 kB\n");
  Write("proc/self/cgroup", "0::/a\n");
  Write("sys/fs/cgroup/a/memory.max", "1024000\n");
  Write("sys/fs/cgroup/a/memory.current", "0\n");
  EXPECT_EQ(KiBWithSwap(), 1500);
  Write("sys/fs/cgroup/a/memory.swap.max", "204800\n");
  Write("sys/fs/cgroup/a/memory.swap.current", "102400\n");
  EXPECT_EQ(KiBWithSwap(), 1100);
  Write("sys/fs/cgroup/a/memory.swap.max", "0\n");
  EXPECT_EQ(KiBWithSwap(), 1000);
}

TEST_F(Limits, LimitedByTheFirstVersionOfGroups) {
  Write("proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 6000 kB\nSwapFree: 500 kB\n");
  Write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a/b\n1:name=systemd:/\n0::/\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); // none
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "102400\n"); // less than the free swap
  EXPECT_EQ(KiB(), 6000);
  EXPECT_EQ(KiBWithSwap(), 6500);
  Write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2048000\n");
  Write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1024000\n");
  EXPECT_EQ(KiB(), 1000);
  EXPECT_EQ(KiBWithSwap(), 1500);
  Write("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 5\ntotal_inactive_file 102400\n"
                                              "total_active_file 204800\n");
  EXPECT_EQ(KiB(), 1300);
  // Of memory and swap together.
  Write("sys/fs/cgroup/memory/a/memory.memsw.limit_in_bytes", "2150400\n");
  Write("sys/fs/cgroup/memory/a/memory.memsw.usage_in_bytes", "1024000\n");
  EXPECT_EQ(KiBWithSwap(), 1400);
  Write("sys/fs/cgroup/memory/a/memory.swappiness", "0\n");
  EXPECT_EQ(KiBWithSwap(), 1300);
}

// A program that the kernel would kill is refused, with both numbers.
TEST_F(Limits, AProgramThatNeedsMore) {
  Program program;
  program.arena_device = 4 << 20;
  program.arena_host = 2 << 20;
  MemoryLeft left;
  left.total = 32 << 20;
  left.with_swap = 6 << 20;
  const auto error = [&] { return std::string(CheckMemoryLeft(program, left).message()); };
  EXPECT_EQ(error(), "");
  left.with_swap = 5 << 20;
  EXPECT_EQ(error(),
            "the program takes 6.00 MiB of this machine's memory, but 5.00 MiB of 32.0 MiB "
            "can be had now: end what else runs, or compile it with less memory in the "
            "machine block (`memory = auto`), so that more of it lives on SSD");
  left.group = 8 << 20;
  EXPECT_NE(error().find("of 32.0 MiB can be had now, within the 8.00 MiB of its control group:"),
            std::string::npos)
      << error();
  // A GPU has the device's.
  program.machine.device = DeviceKind::cuda;
  EXPECT_EQ(error(), "");
}

//===----------------------------------------------------------------------===//
// Processors
//===----------------------------------------------------------------------===//

TEST_F(Limits, ProcessorsOfTheAffinity) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(CountProcessors(Root()), CPU_COUNT(&all));
  int first = 0;
  while (!CPU_ISSET(first, &all))
    ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(CountProcessors(Root()), 1);
  sched_setaffinity(0, sizeof all, &all);
}

// Whole ones: a part of one is left to what reads and writes. Never none.
TEST_F(Limits, ProcessorsOfAQuota) {
  const int64_t all = CountProcessors(Root());
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(CountProcessors(Root()), all);
  Write("sys/fs/cgroup/a/cpu.max", "190000 100000\n");
  EXPECT_EQ(CountProcessors(Root()), 1);
  Write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(CountProcessors(Root()), 1);
  // More than there are.
  Write("sys/fs/cgroup/a/cpu.max", "1000000000 100000\n");
  EXPECT_EQ(CountProcessors(Root()), all);
}

TEST_F(Limits, ProcessorsOfAQuotaOfTheFirstVersion) {
  const int64_t all = CountProcessors(Root());
  Write("proc/self/cgroup", "5:cpu,cpuacct:/a/b\n4:memory:/a\n0::/\n");
  Write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(CountProcessors(Root()), all);
  Write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(CountProcessors(Root()), 1);
  Write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(CountProcessors(Root()), 1);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

TEST_F(Limits, OpenFilesAreRaised) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few = {64, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(MostOpenFiles(), 64);
  RaiseFileLimit();
  EXPECT_EQ(MostOpenFiles(), std::min<int64_t>(int64_t(limit.rlim_max), 1 << 20));
  setrlimit(RLIMIT_NOFILE, &limit);
}

} // namespace
} // namespace boa
