//===- PlaceWeights.cpp - --boa-place-weights -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes the storage phase, in which any home is legal, and kernels whose workspace is known.
// Asks --boa-assign-buffers what fits.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>
#include <tuple>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_PLACEWEIGHTS
#include "passes/Passes.h.inc"

namespace {

/// Whether the entry is one of `resident` out of `count`, as evenly as they go.
bool isResident(int64_t entry, int64_t resident, int64_t count) {
  return (entry + 1) * resident / count > entry * resident / count;
}

void place(StorageOp storage, int64_t resident) {
  MLIRContext *context = storage.getContext();
  const int64_t count = storage.getEntryCount();
  SmallVector<Attribute> ranges;
  auto homeOf = [&](int64_t entry) {
    return isResident(entry, resident, count) ? Tier::device : Tier::ssd;
  };
  for (int64_t first = 0, end; first < count; first = end) {
    for (end = first + 1; end < count && homeOf(end) == homeOf(first); ++end)
      ;
    HomeAttr home = HomeAttr::get(context, homeOf(first), 0);
    ranges.push_back(EntryHomesAttr::get(context, end == count && first == 0 ? 0 : end, home));
  }
  storage.setHomesAttr(ArrayAttr::get(context, ranges));
}

class Placer {
public:
  explicit Placer(ModuleOp module) : module(module) {
    for (auto storage : module.getOps<StorageOp>())
      if (storage.getRole() == Role::weights)
        weights.push_back(storage);
    // Single entries first, the largest of them at the front: a streamed one takes a slot, too.
    llvm::sort(weights, [](StorageOp a, StorageOp b) {
      return std::tuple(a.getEntryCount() > 1, -a.getEntryBytes(), a.getSymName()) <
             std::tuple(b.getEntryCount() > 1, -b.getEntryBytes(), b.getSymName());
    });
  }

  void run() {
    for (StorageOp storage : weights)
      place(storage, 0);
    // One entry more than the program needs, so that a read may run ahead.
    for (StorageOp storage : weights)
      ahead = std::max(ahead, storage.getEntryCount() > 1 ? storage.getEntryBytes() : 0);
    if (!fits())
      ahead = 0;
    if (!fits())
      return; // --boa-assign-buffers says why
    int64_t layers = 0;
    for (StorageOp storage : weights) {
      if (storage.getEntryCount() > 1) {
        layers = std::max(layers, storage.getEntryCount());
        continue;
      }
      place(storage, 1);
      if (!fits())
        place(storage, 0);
    }
    int64_t most = 0; // layers that fit
    for (int64_t above = layers + 1; above - most > 1;) {
      const int64_t half = (most + above) / 2;
      placeLayers(half, layers);
      (fits() ? most : above) = half;
    }
    placeLayers(most, layers);
  }

private:
  void placeLayers(int64_t resident, int64_t layers) {
    for (StorageOp storage : weights)
      if (const int64_t count = storage.getEntryCount(); count > 1)
        place(storage, resident * count / layers);
  }

  bool fits() {
    OwningOpRef<ModuleOp> copy = module.clone();
    MachineSettings machine = Config(module).machine;
    // Nothing is read ahead while all weights are in memory.
    const bool streams =
        llvm::any_of(weights, [](StorageOp storage) { return storage.livesOn(Tier::ssd); });
    int64_t &limit = machine.device_memory ? machine.device_memory : machine.host_memory;
    if (streams && limit <= ahead)
      return false;
    limit -= streams ? ahead : 0;
    writeConfig(*copy, kMachineConfig, machine);
    ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) { return success(); });
    PassManager pm(module.getContext());
    pm.addPass(createAssignBuffers());
    return succeeded(pm.run(*copy));
  }

  ModuleOp module;
  SmallVector<StorageOp> weights;
  int64_t ahead = 0;
};

struct PlaceWeights : impl::PlaceWeightsBase<PlaceWeights> {
  using PlaceWeightsBase::PlaceWeightsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const MachineSettings machine = Config(module).machine;
    if (machine.device_memory == 0 && machine.host_memory == 0)
      return;
    Placer(module).run();
    int64_t entries = 0, resident = 0;
    for (auto storage : module.getOps<StorageOp>()) {
      if (storage.getRole() != Role::weights)
        continue;
      entries += storage.getEntryCount();
      for (int64_t entry = 0; entry < storage.getEntryCount(); ++entry)
        resident += storage.getHomeRanges(entry).front().tier != Tier::ssd;
    }
    remark::passed(module.getLoc(),
                   remark::RemarkOpts::name("place-weights").category("boa-storage"))
        << "in memory: " << remark::metric("resident", resident) << " of "
        << remark::metric("entries", entries) << " entries of weights";
  }
};

} // namespace
} // namespace boa
