//===- RoleTraffic.cpp ----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/RoleTraffic.h"

#include "runtime/view/wear.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace boa {
namespace {

std::string planRole(const Program &program, const Storage &storage) {
  return PlaceOfRole(program, storage.role);
}

double valueOf(const std::map<std::string, int64_t> &bytes, const std::string &role) {
  auto found = bytes.find(role);
  return found == bytes.end() ? 0 : double(found->second);
}

/// Bytes a second of all paths together.
struct SsdRates {
  double read = 0, write = 0, both = 0;
};
SsdRates ratesOf(const MachineSettings &machine) {
  SsdRates rates;
  for (const SsdSettings &ssd : machine.ssd) {
    rates.read += double(ssd.read);
    rates.write += double(ssd.write);
    rates.both += double(ssd.both > 0 ? ssd.both : ssd.read + ssd.write);
  }
  return rates;
}

double timeOf(double bytes, double rate) { return rate > 0 ? bytes / rate : 0; }

/// Seconds of a step's kernels and of its updates. `shared`: one processor does both.
struct Busy {
  double compute = 0, optimizer = 0;
  bool shared = false;
};
Busy busyOf(const Trial &trial) {
  Busy work;
  for (const LinkUse &use : trial.uses) {
    if (use.name == "compute")
      work.compute = 1e-9 * double(use.full_ns);
    if (use.name == "optimizer")
      work.optimizer = 1e-9 * double(use.full_ns);
  }
  const Program &program = trial.program;
  work.shared = program.UpdatesOnDevice() || TraitsOf(program.machine.device).on_host;
  return work;
}

/// The bytes that storages of one role move, with the bytes of the largest of them.
struct Moved {
  double bytes = 0, largest = 0, moved = 0;

  /// How often a byte of it moves at most. Some entries move less often than others: the largest
  /// storage has those that move most, and all that moves is taken for its own.
  double times() const { return largest > 0 ? std::ceil(moved / largest) : 0; }
};

/// The least bytes that still move if `room` bytes of memory hold what moves most often.
double leastMoved(std::vector<Moved> roles, double room) {
  llvm::sort(roles, [](const Moved &a, const Moved &b) { return a.times() > b.times(); });
  double sum = 0;
  for (const Moved &role : roles) {
    const double held = std::min(room, role.bytes);
    room -= held;
    sum += std::max(role.moved - held * role.times(), 0.0);
  }
  return sum;
}

} // namespace

const std::vector<std::string> &planRoles() {
  static const std::vector<std::string> roles = [] {
    std::vector<std::string> names;
    PlaceSettings().Visit([&](const SettingRow &row, const Placement &) {
      names.push_back(llvm::StringRef(row.path).rsplit('.').second.str());
    });
    return names;
  }();
  return roles;
}

std::vector<RoleTraffic> trafficByRole(const Program &program) {
  std::map<std::string, RoleTraffic> uses;
  const Traffic traffic = program.TrafficOfStep(/*earlier=*/2);
  std::map<std::string, std::string> planRoleOf; // each role's traffic counts once
  for (const Storage &storage : program.storages) {
    const std::string role = planRole(program, storage);
    if (role.empty())
      continue;
    uses[role].bytes += double(storage.bytes) * double(storage.entry_count());
    planRoleOf[storage.role] = role;
  }
  for (const auto &[name, role] : planRoleOf) {
    RoleTraffic &use = uses[role];
    use.read += valueOf(traffic.read, name);
    use.written += valueOf(traffic.written, name);
    use.toDevice += valueOf(traffic.to_device, name);
    use.toHost += valueOf(traffic.to_host, name);
  }
  std::vector<RoleTraffic> list;
  for (auto &[role, use] : uses) {
    use.role = role;
    list.push_back(use);
  }
  return list;
}

Room roomOf(const MachineSettings &machine) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  const double device = double(machine.device_memory), host = double(machine.host_memory);
  if (IsSeparate(machine))
    return {device > 0 ? device : kNoLimit, host > 0 ? host : kNoLimit};
  return {0, device + host > 0 ? device + host : kNoLimit};
}

Room roomLeft(const Program &program) {
  Room room = roomOf(program.machine);
  if (IsSeparate(program.machine)) {
    room.device -= double(program.arena_device);
    room.host -= double(program.arena_host);
  } else {
    room.host -= double(program.arena_device + program.arena_host);
  }
  return room;
}

Choice placeGreedily(const Choice &base, const std::vector<RoleTraffic> &roles, Room room,
                     const Program &program) {
  const MachineSettings &machine = program.machine;
  const SsdRates ssd = ratesOf(machine);
  auto time = [&](const RoleTraffic &use) {
    return timeOf(use.read, ssd.read) + timeOf(use.written, ssd.write);
  };
  auto timeOfCopies = [&](const RoleTraffic &use) {
    return timeOf(use.toDevice, double(machine.to_device)) +
           timeOf(use.toHost, double(machine.to_host));
  };
  std::vector<const RoleTraffic *> order;
  for (const RoleTraffic &role : roles)
    if (base.places.count(role.role) && role.bytes > 0)
      order.push_back(&role);
  Choice choice = base;
  auto place = [&](double &left, int Shares::*tier, auto gain) {
    llvm::sort(order, [&](const RoleTraffic *a, const RoleTraffic *b) {
      return std::make_pair(-gain(*a) / a->bytes, a->role) <
             std::make_pair(-gain(*b) / b->bytes, b->role);
    });
    for (const RoleTraffic *role : order) {
      Shares &shares = choice.places[role->role];
      if (gain(*role) <= 0)
        continue;
      const int percent = int(std::min(double(shares.rest()), 100 * left / role->bytes));
      shares.*tier += std::max(percent, 0);
      left -= role->bytes * std::max(percent, 0) / 100;
    }
  };
  if (IsSeparate(machine))
    place(room.device, &Shares::device, [&](const RoleTraffic &use) {
      // An update takes its state from the memory in which it runs.
      const bool onHost = use.role == "optimizer" && !program.UpdatesOnDevice();
      return onHost ? 0 : timeOfCopies(use) + time(use);
    });
  place(room.host, &Shares::host, time);
  return choice;
}

Bound longest(const Limits &limits) {
  Bound bound;
  for (const auto &[link, seconds] : limits)
    if (seconds > bound.seconds)
      bound = {seconds, link};
  return bound;
}

Limits limitsOfTransfers(const Program &program, const MachineSettings &machine, bool saved) {
  std::map<std::string, Moved> roles;
  for (const Storage &storage : program.storages) {
    if (planRole(program, storage).empty() || (storage.role == "saved" && !saved))
      continue;
    Moved &role = roles[storage.role];
    const double bytes = double(storage.bytes) * double(storage.entry_count());
    role.bytes += bytes;
    role.largest = std::max(role.largest, bytes);
  }
  const Traffic traffic = program.TrafficOfStep(/*earlier=*/2);
  auto least = [&](double room, std::initializer_list<const std::map<std::string, int64_t> *> of) {
    std::vector<Moved> list;
    for (const auto &[name, role] : roles) {
      list.push_back(role);
      for (const std::map<std::string, int64_t> *bytes : of)
        list.back().moved += valueOf(*bytes, name);
    }
    return leastMoved(std::move(list), room);
  };
  Limits limits;
  const SsdRates ssd = ratesOf(machine);
  const Room room = roomOf(machine);
  const double memory = room.device + room.host;
  limits["reads from SSD"] = timeOf(least(memory, {&traffic.read}), ssd.read);
  limits["writes to SSD"] = timeOf(least(memory, {&traffic.written}), ssd.write);
  limits["SSD"] = timeOf(least(memory, {&traffic.read, &traffic.written}), ssd.both);
  if (IsSeparate(machine)) {
    limits["copies to device"] =
        timeOf(least(room.device, {&traffic.to_device}), double(machine.to_device));
    limits["copies to host"] =
        timeOf(least(room.device, {&traffic.to_host}), double(machine.to_host));
  }
  return limits;
}

Limits limitsOf(const Trial &trial, const MachineSettings &machine, bool saved) {
  Limits limits = limitsOfTransfers(trial.program, machine, saved);
  const Busy work = busyOf(trial);
  if (work.shared) {
    limits["compute and optimizer"] = work.compute + work.optimizer;
  } else {
    limits["compute"] = work.compute;
    limits["optimizer"] = work.optimizer;
  }
  return limits;
}

std::optional<double> tokensThatHideSsd(const Trial &trial) {
  const Program &program = trial.program;
  double readFixed = 0, writtenFixed = 0, read = 0, written = 0;
  for (const RoleTraffic &use : trafficByRole(program)) {
    const bool isFixed =
        use.role == "weights" || use.role == "gradients" || use.role == "optimizer";
    (isFixed ? readFixed : read) += use.read;
    (isFixed ? writtenFixed : written) += use.written;
  }
  const SsdRates ssd = ratesOf(program.machine);
  if (ssd.read == 0 || readFixed + read + writtenFixed + written == 0)
    return std::nullopt;
  const Busy work = busyOf(trial);
  const double fixedWork = work.shared ? work.optimizer : 0;
  double times = 0;   // as many tokens as now
  bool fewer = false; // it is fewer tokens that hide it
  auto add = [&](double fixed, double growing, double rate) {
    const double excess = timeOf(fixed, rate) - fixedWork;
    const double gain = work.compute - timeOf(growing, rate); // with as many tokens as now
    if (gain > 0)
      times = std::max(times, excess / gain);
    else if (excess > 0)
      times = std::numeric_limits<double>::infinity();
    else
      fewer |= gain < 0;
  };
  add(readFixed, read, ssd.read);
  add(writtenFixed, written, ssd.write);
  add(readFixed + writtenFixed, read + written, ssd.both);
  if (times == 0 || fewer)
    return std::nullopt;
  return times * double(program.train.batch) * double(program.model.context);
}

} // namespace boa
