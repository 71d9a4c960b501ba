//===- simulated_machine.cpp - What a simulated machine is --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What must be said of how fast it is, and where its chunks stand.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/simulated.h"

#include "runtime/state/dealer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

namespace boa {

bool HasSsdRates(const MachineSettings &machine) {
  return std::any_of(machine.ssd.begin(), machine.ssd.end(),
                     [](const SsdSettings &ssd) { return ssd.read > 0 || ssd.write > 0; });
}

absl::Status CheckSimulatedRates(const MachineSettings &machine, bool updates_on_device,
                                 bool on_ssd) {
  std::vector<std::string> missing;
  auto need = [&](int64_t rate, std::string what) {
    if (rate <= 0)
      missing.push_back(std::move(what));
  };
  need(machine.compute.f32, "device { compute = 300 TFLOP/s }, what kernels compute");
  need(machine.device_bandwidth.f32,
       "device { bandwidth = 2 TB/s }, what they read and write in memory");
  if (!updates_on_device)
    need(machine.optimizer, "host { optimizer = 50 GB/s }, what updates read and write in memory");
  if (IsSeparate(machine)) {
    need(machine.to_device, "device { to_device = 25 GB/s }, what is copied to its memory");
    need(machine.to_host, "device { to_host = 25 GB/s }, what is copied from its memory");
  }
  if (on_ssd && machine.ssd.empty())
    missing.push_back("ssd \"PATH\" { read = 7 GB/s  write = 5 GB/s }, where things live");
  for (const SsdSettings &ssd : machine.ssd) {
    // Without any, nothing may live there.
    if (!on_ssd && !HasSsdRates(machine))
      break;
    need(ssd.read, absl::StrCat("ssd \"", ssd.path, "\" { read = 7 GB/s }"));
    need(ssd.write, absl::StrCat("ssd \"", ssd.path, "\" { write = 5 GB/s }"));
  }
  if (missing.empty())
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot simulate machine `", machine.name,
                   "`: it does not say how fast it is; write in it, or give with --set "
                   "machine.device.compute=..., say:\n  ",
                   absl::StrJoin(missing, "\n  ")));
}

absl::Status CheckSimulatedRates(const Program &program) {
  const bool on_ssd = std::any_of(program.storages.begin(), program.storages.end(),
                                  [](const Storage &s) { return s.LivesOn(Home::ssd); });
  return CheckSimulatedRates(program.machine, program.UpdatesOnDevice(), on_ssd);
}

namespace {

class SimulatedExtents : public ChunkExtents {
public:
  explicit SimulatedExtents(const Program &program) {
    const size_t paths = std::max<size_t>(program.machine.ssd.size(), 1);
    Dealer dealer(StripeWeights(program.machine, paths));
    for (const Storage &storage : program.storages) {
      std::vector<uint8_t> &of = deals.emplace_back();
      chunks.push_back(storage.chunks);
      if (!storage.LivesOn(Home::ssd))
        continue;
      dealer.NextStorage();
      of.resize(storage.entry_count() * storage.chunks);
      for (size_t i = 0; i < of.size(); ++i)
        if (storage.HasExtent(int64_t(i) / storage.chunks, int32_t(i % storage.chunks)))
          of[i] = uint8_t(dealer.Deal(storage.chunk_bytes()));
    }
  }
  Extent Current(int32_t storage, int64_t entry, int32_t chunk) override {
    return {deals[storage][entry * chunks[storage] + chunk], 0};
  }
  Extent Next(int32_t storage, int64_t entry, int32_t chunk) override {
    return Current(storage, entry, chunk);
  }

private:
  std::vector<std::vector<uint8_t>> deals; // by storage: the path of each chunk
  std::vector<int32_t> chunks;
};

} // namespace

std::unique_ptr<ChunkExtents> CreateSimulatedExtents(const Program &program) {
  return std::make_unique<SimulatedExtents>(program);
}

} // namespace boa
