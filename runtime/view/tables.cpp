//===- tables.cpp - Tables of memory and traffic --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/tables.h"

#include "runtime/abi/abi.h"
#include "runtime/state/state.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace boa {
namespace {

/// In the order of kRoles. States of the optimizer, which are other words, come after the master
/// weights, by name.
using Order = std::pair<size_t, std::string>;
Order RoleOrder(const std::string &role) {
  auto find = [](const std::string &word) {
    return size_t(std::find(std::begin(kRoles), std::end(kRoles), word) - std::begin(kRoles));
  };
  const size_t index = find(role);
  return index < std::size(kRoles) ? Order(index, "") : Order(find("master"), role);
}

std::string RoleLabel(const std::string &role) {
  if (role == "master")
    return "master (lower halves)";
  if (role == "boundary_gradients")
    return "boundary gradients";
  if (role == "saved")
    return "saved activations";
  return role;
}

/// The part of the workspace that no kernel of the program uses.
constexpr const char *kAttentionScratch = "scratch for cuDNN";

struct RowBytes {
  int64_t memory = 0, ssd = 0;
};

/// Rows of the table: by role, then tier.
using Homes = std::map<std::pair<Order, Home::Tier>, std::pair<std::string, RowBytes>>;

Homes CollectHomes(const Program &program) {
  Homes homes;
  const std::vector<int64_t> slots[] = {SlotBytes(program, BOA_DEVICE),
                                        SlotBytes(program, BOA_HOST)};
  for (size_t s = 0; s < program.storages.size(); ++s) {
    const Storage &storage = program.storages[s];
    auto row = [&](Home::Tier tier) -> RowBytes & {
      auto &[role, bytes] = homes[{RoleOrder(storage.role), tier}];
      role = storage.role;
      return bytes;
    };
    const int64_t extents = ExtentsOfChunk(IsShared(storage), program.train.commit_keep);
    for (Home::Tier tier : {Home::device, Home::host, Home::ssd}) {
      const int64_t bytes = storage.ChunksOn(tier) * storage.chunk_bytes();
      if (bytes > 0 && tier != Home::ssd)
        row(tier).memory += bytes;
      if (bytes > 0 && (tier == Home::ssd || storage.persistent))
        row(tier).ssd += bytes * extents;
    }
    // Slots are for what lives elsewhere.
    const Home::Tier streamed = storage.LivesOn(Home::ssd)    ? Home::ssd
                                : storage.LivesOn(Home::host) ? Home::host
                                                              : Home::device;
    for (const std::vector<int64_t> &in_space : slots)
      if (in_space[s] > 0)
        row(streamed).memory += in_space[s];
  }
  return homes;
}

} // namespace

std::string FormatStorages(const Program &program) {
  std::string text;
  absl::StrAppendFormat(&text, "\n  %-22s %-7s %11s %11s\n", "what", "home", "in memory", "on SSD");
  RowBytes total;
  for (const auto &[key, row] : CollectHomes(program)) {
    const auto &[role, home] = row;
    total.memory += home.memory;
    total.ssd += home.ssd;
    absl::StrAppendFormat(&text, "  %-22s %-7s %11s %11s\n", RoleLabel(role),
                          key.second == Home::ssd ? "SSD" : TierName(key.second),
                          FormatBytes(home.memory), home.ssd ? FormatBytes(home.ssd) : "-");
  }
  const int64_t arena = program.arena_device + program.arena_host;
  auto add = [&](const char *what, int64_t bytes) {
    if (bytes > 0)
      absl::StrAppendFormat(&text, "  %-22s %-7s %11s %11s\n", what, "", FormatBytes(bytes), "-");
  };
  add("workspace", arena - total.memory - program.attention_scratch);
  add(kAttentionScratch, program.attention_scratch);
  absl::StrAppendFormat(&text, "  %-22s %-7s %11s %11s\n", "total", "",
                        FormatBytes(std::max(arena, total.memory)), FormatBytes(total.ssd));
  return text;
}

std::string FormatArena(const Program &program, const std::string &tier) {
  std::map<std::string, int64_t> by_role;
  int64_t known = 0;
  const bool host = tier == "host";
  const std::vector<int64_t> slots = SlotBytes(program, host ? BOA_HOST : BOA_DEVICE);
  for (size_t s = 0; s < program.storages.size(); ++s) {
    const Storage &storage = program.storages[s];
    const int64_t bytes =
        slots[s] + storage.ChunksOn(host ? Home::host : Home::device) * storage.chunk_bytes();
    by_role[RoleLabel(storage.role)] += bytes;
    known += bytes;
  }
  const int64_t arena = tier == "host" ? program.arena_host : program.arena_device;
  const int64_t scratch = host ? 0 : program.attention_scratch;
  by_role["workspace"] = arena - known - scratch;
  by_role[kAttentionScratch] = scratch;
  std::vector<std::pair<int64_t, std::string>> rows;
  for (const auto &[role, bytes] : by_role)
    if (bytes > 0)
      rows.push_back({bytes, role});
  std::sort(rows.rbegin(), rows.rend());
  std::string text;
  for (const auto &[bytes, role] : rows)
    absl::StrAppendFormat(&text, "  %-22s %11s\n", role, FormatBytes(bytes));
  absl::StrAppendFormat(&text, "  %-22s %11s\n", "total", FormatBytes(arena));
  return text;
}

std::string FormatTraffic(const char *title, std::initializer_list<TrafficColumn> columns) {
  std::set<std::pair<Order, std::string>> roles;
  for (const TrafficColumn &column : columns)
    for (const auto &[role, bytes] : column.bytes)
      if (bytes > 0)
        roles.insert({RoleOrder(role), role});
  if (roles.empty())
    return "";
  std::string heads = absl::StrFormat("\n  %-22s", title), rows, totals;
  for (const auto &[order, role] : roles) {
    absl::StrAppendFormat(&rows, "  %-22s", RoleLabel(role));
    for (const TrafficColumn &column : columns) {
      auto it = column.bytes.find(role);
      absl::StrAppendFormat(&rows, " %11s", FormatBytes(it == column.bytes.end() ? 0 : it->second));
    }
    rows += '\n';
  }
  for (const TrafficColumn &column : columns) {
    int64_t total = 0;
    for (const auto &[role, bytes] : column.bytes)
      total += bytes;
    absl::StrAppendFormat(&heads, " %11s", column.head);
    absl::StrAppendFormat(&totals, " %11s", FormatBytes(total));
  }
  return absl::StrFormat("%s\n%s  %-22s%s\n", heads, rows, "total", totals);
}

} // namespace boa
