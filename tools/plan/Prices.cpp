//===- Prices.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/Prices.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace boa {
namespace {

void raise(int64_t &rate) { rate += rate / 10; }

class Prices {
public:
  // With fewer chunks, which is much faster and gains as much.
  Prices(Trials &trials, const Found &found)
      : found(found),
        trial(trials.run(found.choice).fits ? trials.run(found.choice) : found.trial) {}

  std::vector<Price> run() {
    rate("operations of the device", [](MachineSettings &machine) {
      raise(machine.compute);
      raise(machine.compute_bf16);
      raise(machine.compute_attention);
      raise(machine.compute_attention_bf16);
    });
    rate("bandwidth of the device", [](MachineSettings &machine) {
      raise(machine.device_bandwidth);
      raise(machine.device_bandwidth_bf16);
    });
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
    return std::move(prices);
  }

private:
  /// `part`: of the seconds of a step.
  void add(const std::string &resource, double part) {
    if (1 - part >= 5e-4)
      prices.push_back({resource, part * found.trial.seconds});
  }

  void rate(const char *resource, llvm::function_ref<void(MachineSettings &)> more) {
    MachineSettings machine = trial.program.machine;
    more(machine);
    add(resource, Trials::simulate(trial, machine) / trial.seconds);
  }

  const Found &found;
  const Trial trial;
  std::vector<Price> prices;
};

} // namespace

std::vector<Price> pricesOf(Trials &trials, const Found &found) {
  return Prices(trials, found).run();
}

} // namespace boa
