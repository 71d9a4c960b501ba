//===- ShadowPrices.cpp ---------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/ShadowPrices.h"

#include "tools/plan/SearchSpace.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/ThreadPool.h"

#include <algorithm>

namespace boa {
namespace {

void raise(int64_t &rate) { rate += rate / 10; }
/// In each format.
template <typename Rates> void raiseAll(Rates &rates) {
  rates.Visit([](const SettingRow &, int64_t &rate) { raise(rate); });
}

class ShadowPrices {
public:
  // With fewer chunks, which is much faster and gains as much.
  ShadowPrices(Trials &trials, const FoundPlan &found)
      : trials(trials), found(found),
        trial(trials.run(found.choice).fits ? trials.run(found.choice) : found.trial) {}

  std::vector<ShadowPrice> run() {
    rate("operations of the device", [](MachineSettings &machine) {
      raiseAll(machine.compute);
      raiseAll(machine.compute_attention);
    });
    rate("bandwidth of the device",
         [](MachineSettings &machine) { raiseAll(machine.device_bandwidth); });
    rate("updates", [](MachineSettings &machine) { raise(machine.optimizer); });
    rate("copies", [](MachineSettings &machine) {
      raise(machine.to_device);
      raise(machine.to_host);
      raise(machine.both_ways);
    });
    rate("bandwidth of the host", [](MachineSettings &machine) { raise(machine.host_bandwidth); });
    rate("SSD", [](MachineSettings &machine) {
      for (SsdSettings &path : machine.ssd) {
        raise(path.read);
        raise(path.write);
        raise(path.both);
      }
    });
    simulateRates();
    const MachineSettings &machine = trials.config()->machine;
    const int64_t device = machine.device_memory, host = machine.host_memory;
    constexpr auto kDevice = &MachineSettings::device_memory, kHost = &MachineSettings::host_memory;
    if (IsSeparate(machine)) {
      memory("memory of the device", "machine.device.memory", kDevice, device / 10);
      memory("memory of the host", "machine.host.memory", kHost, host / 10);
    } else if (device > 0) {
      memory("memory", "machine.device.memory", kDevice, (device + host) / 10);
    } else {
      memory("memory", "machine.host.memory", kHost, host / 10);
    }
    return std::move(prices);
  }

private:
  /// `part`: of the seconds of a step.
  void add(const std::string &resource, double part) {
    if (1 - part >= 5e-4)
      prices.push_back({resource, part * found.trial.seconds});
  }

  void rate(const char *resource, llvm::function_ref<void(MachineSettings &)> more) {
    rates.push_back({resource, trial.program.machine, 0});
    more(rates.back().machine);
  }

  void simulateRates() {
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency());
    for (RaisedRate &each : rates)
      pool.async([&] { each.seconds = Trials::simulate(trial, each.machine); });
    pool.wait();
    for (const RaisedRate &each : rates)
      add(each.resource, each.seconds / trial.seconds);
  }

  /// `limit`: the one that is raised.
  void memory(const char *resource, const std::string &setting, int64_t MachineSettings::*limit,
              int64_t more) {
    MachineSettings machine = trials.config()->machine;
    if (machine.*limit == 0) // there is none
      return;
    machine.*limit += more;
    double seconds = trial.seconds;
    for (Choice choice : variants()) {
      choice.changes = {absl::StrCat(setting, "=", machine.*limit, " B")};
      seconds = std::min(seconds, refill(trials, choice, machine));
    }
    add(resource, seconds / trial.seconds);
  }

  /// The plan, and those whose kernels take more memory.
  std::vector<Choice> variants() const {
    std::vector<Choice> choices = {found.choice};
    const Config &config = *trials.config();
    if (!trials.isGiven("plan.micro_batch"))
      for (int64_t size = found.choice.microBatch + 1; size <= config.train.batch; ++size)
        if (config.train.batch % size == 0) {
          choices.push_back(found.choice);
          choices.back().microBatch = size;
          break;
        }
    const int64_t layers = countLayers(trial.program);
    if (found.choice.recompute && SearchSpace(trials).someLayersMayKeep() &&
        found.choice.keep + 1 < layers) {
      choices.push_back(found.choice);
      choices.back().keep =
          std::min(found.choice.keep + std::max<int64_t>(layers / 8, 1), layers - 1);
    }
    return choices;
  }

  Trials &trials;
  const FoundPlan &found;
  const Trial trial;
  struct RaisedRate {
    std::string resource;
    MachineSettings machine;
    double seconds; // of a step
  };
  std::vector<RaisedRate> rates;
  std::vector<ShadowPrice> prices;
};

} // namespace

std::vector<ShadowPrice> shadowPricesOf(Trials &trials, const FoundPlan &found) {
  return ShadowPrices(trials, found).run();
}

} // namespace boa
