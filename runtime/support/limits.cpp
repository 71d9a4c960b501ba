//===- limits.cpp - What the system leaves this process --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/limits.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>
#include <sched.h>
#include <sys/resource.h>
#include <vector>

namespace boa {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

/// The number behind `key` in a file of lines `key number ...`; a file of one number has no key.
/// -1: it has none ("max"), or there is no such file.
int64_t NumberIn(const std::string &path, const std::string &key = "") {
  std::ifstream file(path);
  int64_t number = 0;
  for (std::string word; file >> word;)
    if (key.empty() || (word == key && file >> word))
      return absl::SimpleAtoi(word, &number) ? number : -1;
  return -1;
}
int64_t NumberOr0(const std::string &path, const std::string &key = "") {
  return std::max<int64_t>(NumberIn(path, key), 0);
}

/// A group of this process, and those above it.
struct Groups {
  bool second = false;             // of version 2, where one group has all controllers
  std::vector<std::string> levels; // folders, each with a slash at its end
};

/// Those that limit `controller`. Where a mount or a namespace hides upper levels, they are
/// missing.
std::vector<Groups> FindGroups(const std::string &root, const std::string &controller) {
  std::vector<Groups> found;
  std::ifstream file(root + "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || fields[2].empty() || fields[2][0] != '/')
      continue;
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    const bool second = fields[1].empty();
    if (!second &&
        std::find(controllers.begin(), controllers.end(), controller) == controllers.end())
      continue;
    // Controllers that are mounted together have a folder of all their names, and mostly links.
    std::vector<std::string> tops = {root + "sys/fs/cgroup"};
    if (!second)
      tops = {absl::StrCat(tops[0], "/", controller), absl::StrCat(tops[0], "/", fields[1])};
    for (const std::string &top : tops) {
      Groups &groups = found.emplace_back();
      groups.second = second;
      for (std::string group = fields[2];; group.resize(std::max<size_t>(group.rfind('/'), 1))) {
        groups.levels.push_back(absl::StrCat(top, group == "/" ? "" : group, "/"));
        if (group.size() <= 1)
          break;
      }
    }
  }
  return found;
}

/// Caches of files are a group's own, and go before anything is killed.
struct GroupMemory {
  int64_t limit = -1; // -1: none
  int64_t left = 0, swap_left = kMost;
};

GroupMemory MeasureGroup(const std::string &folder, bool second) {
  GroupMemory memory;
  const std::string stat = folder + "memory.stat";
  memory.limit = NumberIn(folder + (second ? "memory.max" : "memory.limit_in_bytes"));
  const int64_t taken = NumberIn(folder + (second ? "memory.current" : "memory.usage_in_bytes"));
  if (memory.limit < 0 || taken < 0)
    return {};
  const int64_t cached =
      second ? NumberOr0(stat, "active_file") + NumberOr0(stat, "inactive_file") +
                   NumberOr0(stat, "slab_reclaimable")
             : NumberOr0(stat, "total_active_file") + NumberOr0(stat, "total_inactive_file");
  memory.left = std::max<int64_t>(memory.limit - std::max<int64_t>(taken - cached, 0), 0);
  if (second) {
    const int64_t most = NumberIn(folder + "memory.swap.max");
    if (most >= 0)
      memory.swap_left = std::max<int64_t>(most - NumberOr0(folder + "memory.swap.current"), 0);
  } else if (NumberIn(folder + "memory.swappiness") == 0) {
    memory.swap_left = 0;
  } else if (const int64_t both = NumberIn(folder + "memory.memsw.limit_in_bytes"); both >= 0) {
    // Of memory and swap together.
    const int64_t used = NumberOr0(folder + "memory.memsw.usage_in_bytes") - cached;
    memory.swap_left = std::max<int64_t>(both - std::max<int64_t>(used, 0) - memory.left, 0);
  }
  return memory;
}

/// What ZFS holds for reads, beyond the least that it keeps: the kernel does not count it as free.
int64_t CachedByZfs(const std::string &root) {
  std::ifstream file(root + "proc/spl/kstat/zfs/arcstats");
  int64_t size = 0, least = 0, number = 0;
  std::string name, type;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() == 3 && absl::SimpleAtoi(words[2], &number))
      (words[0] == "size" ? size : words[0] == "c_min" ? least : number) = number;
  }
  return std::max<int64_t>(size - least, 0);
}

/// Whole processors that a group's quota gives; kMost: no limit.
int64_t QuotaOf(const std::string &folder, bool second) {
  int64_t quota = -1, period = -1;
  if (second) {
    std::ifstream file(folder + "cpu.max"); // "max 100000" or "150000 100000"
    std::string first;
    file >> first >> period;
    if (!absl::SimpleAtoi(first, &quota))
      return kMost;
  } else {
    quota = NumberIn(folder + "cpu.cfs_quota_us");
    period = NumberIn(folder + "cpu.cfs_period_us");
  }
  return quota > 0 && period > 0 ? std::max<int64_t>(quota / period, 1) : kMost;
}

/// A mask of a fixed size would fail on a machine with more processors.
int64_t ProcessorsOfAffinity() {
  for (int most = CPU_SETSIZE; most <= CPU_SETSIZE * 64; most *= 2) {
    cpu_set_t *set = CPU_ALLOC(size_t(most));
    const size_t bytes = CPU_ALLOC_SIZE(size_t(most));
    const int count = set && sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0)
      return count;
  }
  return 1;
}

} // namespace

MemoryLeft MeasureMemoryLeft(const std::string &root) {
  const std::string meminfo = root + "proc/meminfo";
  const auto read = [&](const char *key) { return NumberOr0(meminfo, key) * 1024; };
  MemoryLeft left;
  left.total = read("MemTotal:");
  const int64_t swap = read("SwapFree:");
  left.with_swap = kMost; // an old kernel does not say what is free
  if (NumberIn(meminfo, "MemAvailable:") >= 0) {
    left.bytes = read("MemAvailable:") + CachedByZfs(root);
    left.with_swap = left.bytes + swap;
  }
  for (const Groups &groups : FindGroups(root, "memory"))
    for (const std::string &level : groups.levels) {
      const GroupMemory here = MeasureGroup(level, groups.second);
      // Version 1 writes a huge number for no limit.
      if (here.limit < 0 || here.limit >= left.total)
        continue;
      const int64_t most = here.left + std::min(swap, here.swap_left);
      if (here.left < left.bytes || most < left.with_swap)
        left.group = here.limit;
      left.bytes = std::min(left.bytes, here.left);
      left.with_swap = std::min(left.with_swap, most);
    }
  return left;
}

int64_t CountProcessors(const std::string &root) {
  int64_t count = ProcessorsOfAffinity();
  for (const Groups &groups : FindGroups(root, "cpu"))
    for (const std::string &level : groups.levels)
      count = std::min(count, QuotaOf(level, groups.second));
  return count;
}

void RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
    return;
  // Some programs that a child may be look at each that is allowed.
  constexpr rlim_t kEnough = 1 << 20;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough));
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int64_t MostOpenFiles() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > rlim_t(kMost))
    return kMost;
  return int64_t(limit.rlim_cur);
}

} // namespace boa
