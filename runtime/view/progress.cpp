//===- progress.cpp - What a person sees of a run -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/progress.h"

#include "runtime/abi/abi.h"
#include "runtime/data/data.h"
#include "runtime/state/state.h"
#include "runtime/support/printable.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sys/ioctl.h>
#include <unistd.h>
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

/// "86 M parameters, 12 M of them frozen".
std::string CountParameters(const Program &program) {
  int64_t all = 0, frozen = 0;
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters) {
      const int64_t elements = group.count * parameter.elements();
      all += elements;
      frozen += IsFrozen(program.storages[size_t(group.weights)]) ? elements : 0;
    }
  return absl::StrCat(FormatCount(all), " parameters",
                      frozen ? absl::StrCat(", ", FormatCount(frozen), " of them frozen") : "");
}

std::string Limit(int64_t limit) {
  return limit > 0 ? absl::StrCat(" of ", FormatBytes(limit)) : " (no limit)";
}

std::string FormatHeadline(const Program &p, const std::string &data) {
  const TrainSettings &t = p.train;
  const int64_t sequences = p.MicroBatch() * p.MicroBatches();
  std::string text =
      absl::StrCat(p.model.name, ": ", CountParameters(p), "; ", p.ScheduleInWords(), "\n");
  absl::StrAppendFormat(&text, "%s of %d sequence%s (%d x %d) of %d tokens\n",
                        DescribeSteps(t) + (t.steps == 0 ? ", in steps" : ""), sequences,
                        sequences == 1 ? "" : "s", p.MicroBatches(), p.MicroBatch(),
                        p.model.context);
  text += data;
  if (const std::string note = DescribeUnusedTokens(DataOptions(p)); !note.empty() && !data.empty())
    absl::StrAppend(&text, note, "\n");
  return text;
}

/// "31% wait, ssd read": the link that compute waited for longest, and its
/// share.
std::string FormatBound(const StepRecord &record) {
  const std::pair<const std::string, double> *longest = nullptr;
  for (const auto &link : record.waited)
    if (!longest || link.second > longest->second)
      longest = &link;
  const double share = longest && record.seconds > 0 ? longest->second / record.seconds : 0;
  if (share < 0.01)
    return "compute-bound";
  // Transfers may be waited for before a step begins, too.
  return absl::StrFormat("%2.0f%% wait, %s", 100 * std::min(share, 1.0), longest->first);
}

int TerminalWidth(std::FILE *out) {
  winsize size;
  if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return 80;
}

using Roles = std::map<std::string, int64_t>;

/// A column of a table of traffic: its head, and bytes by role.
struct Column {
  const char *head;
  const Roles &bytes;
};

/// "" where nothing moved.
std::string FormatTraffic(const char *title, std::initializer_list<Column> columns) {
  std::set<std::pair<Order, std::string>> roles;
  for (const Column &column : columns)
    for (const auto &[role, bytes] : column.bytes)
      if (bytes > 0)
        roles.insert({RoleOrder(role), role});
  if (roles.empty())
    return "";
  std::string heads = absl::StrFormat("\n  %-22s", title), rows, totals;
  for (const auto &[order, role] : roles) {
    absl::StrAppendFormat(&rows, "  %-22s", RoleLabel(role));
    for (const Column &column : columns) {
      auto it = column.bytes.find(role);
      absl::StrAppendFormat(&rows, " %11s", FormatBytes(it == column.bytes.end() ? 0 : it->second));
    }
    rows += '\n';
  }
  for (const Column &column : columns) {
    int64_t total = 0;
    for (const auto &[role, bytes] : column.bytes)
      total += bytes;
    absl::StrAppendFormat(&heads, " %11s", column.head);
    absl::StrAppendFormat(&totals, " %11s", FormatBytes(total));
  }
  return absl::StrFormat("%s\n%s  %-22s%s\n", heads, rows, "total", totals);
}

std::string FormatTraffic(const Outcome &outcome) {
  const Traffic &moved = outcome.moved, &planned = outcome.predicted;
  std::string text = FormatTraffic("SSD traffic", {{"read", moved.read},
                                                   {"planned", planned.read},
                                                   {"written", moved.written},
                                                   {"planned", planned.written}});
  if (!text.empty() && outcome.measured)
    absl::StrAppendFormat(&text, "  %-22s %11s %11s %11s\n", "as the system counts",
                          FormatBytes(outcome.disk_read), "", FormatBytes(outcome.disk_written));
  return text + FormatTraffic("copies", {{"to device", moved.to_device},
                                         {"planned", planned.to_device},
                                         {"to host", moved.to_host},
                                         {"planned", planned.to_host}});
}

} // namespace

std::string FormatStart(const Program &program, const std::string &data) {
  std::string text = FormatHeadline(program, data);
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
  absl::StrAppendFormat(&text, "\n  device memory %s%s, host memory %s%s\n",
                        FormatBytes(program.arena_device), Limit(program.machine.device_memory),
                        FormatBytes(program.arena_host), Limit(program.machine.host_memory));
  absl::StrAppendFormat(&text, "  beside them at most %s of commands that wait\n",
                        FormatBytes(RunAheadBytes(program)));
  return text;
}

std::string FormatPlan(const Program &program) {
  const Traffic step = program.TrafficOfStep(/*earlier=*/2);
  return FormatStart(program) + FormatTraffic("each step moves", {{"from SSD", step.read},
                                                                  {"to SSD", step.written},
                                                                  {"to device", step.to_device},
                                                                  {"to host", step.to_host}});
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

std::string FormatStep(const StepRecord &record, int64_t steps, double left) {
  const std::string total = absl::StrCat(steps);
  const double speed = record.seconds > 0 ? record.tokens / record.seconds : 0;
  std::string text =
      absl::StrFormat("step %*d/%s", static_cast<int>(total.size()), record.step, total);
  if (std::isnan(record.loss))
    absl::StrAppendFormat(&text, "  %8s", FormatSeconds(record.seconds));
  else
    absl::StrAppendFormat(&text, "  loss %.4f", record.loss);
  absl::StrAppendFormat(&text, "  %6s tok/s", FormatCount(speed));
  // Blank where nothing is known or left, so that lines stand in columns.
  if (left > 0)
    absl::StrAppendFormat(&text, "  %8s left", FormatSeconds(left));
  else if (steps > 1)
    text.append(15, ' ');
  absl::StrAppend(&text, "  ", FormatBound(record));
  return text;
}

std::string FitLine(std::string line, size_t width) {
  if (line.size() <= width)
    return line;
  for (size_t at; (at = line.find("   ")) != std::string::npos;)
    line.erase(at, 1);
  if (line.size() <= width)
    return line;
  size_t end = line.rfind("  ", width);
  return line.substr(0, end == std::string::npos ? width : end);
}

void Outcome::TakeMemory(const Program &program, const Engine &engine) {
  run_ahead_bytes = engine.PeakRunAheadBytes();
  if (!IsSeparate(program.machine)) {
    memories = {{"", engine.PeakBytes(), engine.ArenaBytes()}};
    return;
  }
  memories = {{"device ", engine.PeakBytes(BOA_DEVICE), engine.ArenaBytes(BOA_DEVICE)},
              {"host ", engine.PeakBytes(BOA_HOST), engine.ArenaBytes(BOA_HOST)}};
}

std::string FormatOutcome(const Program &program, const Outcome &outcome) {
  std::string text =
      absl::StrFormat("%d step%s in %s, %s tokens/s\n", outcome.steps,
                      outcome.steps == 1 ? "" : "s", FormatSeconds(outcome.seconds),
                      FormatCount(outcome.seconds > 0 ? outcome.tokens / outcome.seconds : 0));
  if (!std::isnan(outcome.loss)) {
    absl::StrAppendFormat(&text, "step %d: loss %.4f", outcome.last_step, outcome.loss);
    if (outcome.validation_loss)
      absl::StrAppendFormat(&text, ", validation loss %.4f", *outcome.validation_loss);
    text += '\n';
  }
  text += FormatTraffic(outcome);
  text += FormatWear(program, outcome.writes());
  text += '\n';
  for (const Outcome::Memory &memory : outcome.memories)
    absl::StrAppendFormat(&text, "  %smemory in use at most %s of %s allocated\n", memory.name,
                          FormatBytes(memory.peak_bytes), FormatBytes(memory.allocated_bytes));
  absl::StrAppendFormat(&text, "  commands that waited took at most %s of %s\n",
                        FormatBytes(outcome.run_ahead_bytes), FormatBytes(RunAheadBytes(program)));
  if (outcome.measured)
    absl::StrAppendFormat(&text, "  resident at most %s\n", FormatBytes(outcome.resident_bytes));
  if (!outcome.saved.empty())
    absl::StrAppend(&text, "  weights saved to ", outcome.saved, "\n");
  return text;
}

Progress::Progress(std::FILE *out, int64_t first, int64_t steps)
    : out(out), terminal(out && isatty(fileno(out))), first(first), steps(steps),
      interval(std::max<int64_t>(1, (steps - first) / 20)) {}

Progress::~Progress() {
  if (open_line)
    std::fputc('\n', out);
}

void Progress::Step(const StepRecord &record) {
  const int64_t done = record.step - first;
  if (!out || (!terminal && done != 1 && done % interval != 0 && record.step != steps))
    return;
  const Clock::time_point now = Clock::now();
  // Eyes need no more than ten lines a second; steps may take microseconds.
  if (terminal && record.step != steps && now - shown < std::chrono::milliseconds(100))
    return;
  shown = now;
  const double elapsed = std::chrono::duration<double>(now - start).count();
  // The first step reads what later ones keep: no measure for the rest.
  const double left =
      done < 2 || std::isnan(record.loss) ? -1 : elapsed / done * (steps - record.step);
  const std::string line = FormatStep(record, steps, left);
  if (terminal) {
    std::fprintf(out, "\r%s\033[K", FitLine(line, size_t(TerminalWidth(out)) - 1).c_str());
    open_line = true;
  } else {
    std::fprintf(out, "%s\n", line.c_str());
  }
  std::fflush(out);
}

void Progress::Say(const std::string &text) {
  if (!out)
    return;
  if (open_line)
    std::fputc('\n', out);
  open_line = false;
  std::fprintf(out, "%s%s", Printable(text).c_str(),
               !text.empty() && text.back() == '\n' ? "" : "\n");
  std::fflush(out);
}

} // namespace boa
