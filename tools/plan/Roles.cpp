//===- Roles.cpp ----------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/Roles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <limits>

namespace boa {
namespace {

/// In a plan block the optimizer's storages are one role.
std::string planRole(const Program &program, const Storage &storage) {
  const bool state = llvm::any_of(program.optimizer.states, [&](const OptimizerState &each) {
    return each.name == storage.role;
  });
  if (state || storage.role == "master")
    return "optimizer";
  return llvm::is_contained(planRoles(), storage.role) ? storage.role : "";
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

/// The least bytes that still move if `room` bytes of memory hold what moves most.
double leastMoved(const std::vector<RoleUse> &roles, double room,
                  llvm::function_ref<double(const RoleUse &)> moved) {
  std::vector<const RoleUse *> order;
  for (const RoleUse &role : roles)
    if (role.bytes > 0)
      order.push_back(&role);
  llvm::sort(order, [&](const RoleUse *a, const RoleUse *b) {
    return moved(*a) / a->bytes > moved(*b) / b->bytes;
  });
  double sum = 0;
  for (const RoleUse *role : order) {
    const double held = std::min(room, role->bytes);
    room -= held;
    sum += moved(*role) * (1 - held / role->bytes);
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

std::vector<RoleUse> usesOf(const Program &program) {
  std::map<std::string, RoleUse> uses;
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
    RoleUse &use = uses[role];
    use.read += valueOf(traffic.read, name);
    use.written += valueOf(traffic.written, name);
    use.toDevice += valueOf(traffic.to_device, name);
    use.toHost += valueOf(traffic.to_host, name);
  }
  std::vector<RoleUse> list;
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

Choice spread(const Choice &base, const std::vector<RoleUse> &roles, Room room,
              const MachineSettings &machine) {
  const SsdRates ssd = ratesOf(machine);
  auto time = [&](const RoleUse &use) {
    return timeOf(use.read, ssd.read) + timeOf(use.written, ssd.write);
  };
  auto timeOfCopies = [&](const RoleUse &use) {
    return timeOf(use.toDevice, double(machine.to_device)) +
           timeOf(use.toHost, double(machine.to_host));
  };
  std::vector<const RoleUse *> order;
  for (const RoleUse &role : roles)
    if (base.places.count(role.role) && role.bytes > 0)
      order.push_back(&role);
  Choice choice = base;
  auto place = [&](double &left, int Shares::*tier, auto gain) {
    llvm::sort(order, [&](const RoleUse *a, const RoleUse *b) {
      return std::make_pair(-gain(*a) / a->bytes, a->role) <
             std::make_pair(-gain(*b) / b->bytes, b->role);
    });
    for (const RoleUse *role : order) {
      Shares &shares = choice.places[role->role];
      if (gain(*role) <= 0)
        continue;
      const int percent = int(std::min(double(shares.rest()), 100 * left / role->bytes));
      shares.*tier += std::max(percent, 0);
      left -= role->bytes * std::max(percent, 0) / 100;
    }
  };
  if (IsSeparate(machine))
    place(room.device, &Shares::device, [&](const RoleUse &use) {
      // Updates run in host memory.
      return use.role == "optimizer" ? 0 : timeOfCopies(use) + time(use);
    });
  place(room.host, &Shares::host, time);
  return choice;
}

Bound boundOf(const Trial &trial, const MachineSettings &machine) {
  const Program &program = trial.program;
  Bound bound;
  auto consider = [&](double seconds, const char *link) {
    if (seconds > bound.seconds)
      bound = {seconds, link};
  };
  double compute = 0, optimizer = 0;
  for (const LinkUse &use : trial.uses) {
    if (use.name == "compute")
      compute = 1e-9 * double(use.full_ns);
    if (use.name == "optimizer")
      optimizer = 1e-9 * double(use.full_ns);
  }
  const bool shared = program.UpdatesOnDevice() || machine.device != DeviceKind::cuda;
  consider(compute + (shared ? optimizer : 0), shared ? "compute and optimizer" : "compute");
  consider(optimizer, "optimizer");
  const std::vector<RoleUse> roles = usesOf(program);
  const SsdRates ssd = ratesOf(machine);
  const Room room = roomOf(machine);
  const double memory = room.device + room.host;
  auto least = [&](double within, auto moved) { return leastMoved(roles, within, moved); };
  consider(timeOf(least(memory, [](const RoleUse &use) { return use.read; }), ssd.read),
           "reads from SSD");
  consider(timeOf(least(memory, [](const RoleUse &use) { return use.written; }), ssd.write),
           "writes to SSD");
  consider(
      timeOf(least(memory, [](const RoleUse &use) { return use.read + use.written; }), ssd.both),
      "SSD");
  if (IsSeparate(machine)) {
    consider(timeOf(least(room.device, [](const RoleUse &use) { return use.toDevice; }),
                    double(machine.to_device)),
             "copies to device");
    consider(timeOf(least(room.device, [](const RoleUse &use) { return use.toHost; }),
                    double(machine.to_host)),
             "copies to host");
  }
  return bound;
}

} // namespace boa
