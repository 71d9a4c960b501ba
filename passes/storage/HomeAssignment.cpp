//===- HomeAssignment.cpp - From the plan's places to homes ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/storage/HomeAssignment.h"

#include "dialect/Config.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace boa {

namespace {

using Parts = ArrayRef<Placement::Part>;

class Placer {
public:
  Placer(StorageOp storage) : storage(storage), context(storage.getContext()) {}

  ArrayAttr place(Parts parts) {
    const int64_t layers = countLayers(), ofLayer = storage.getEntryCount() / layers;
    int64_t placed = 0;
    for (; parts.front().layers > 0; parts = parts.drop_front()) {
      // An entry that belongs to no layer is a part of the rest.
      const int64_t count = layers > 1 ? std::min(parts.front().layers, layers - placed) : 0;
      add(count * ofLayer, homeOn(parts.front(), 0));
      placed += count;
    }
    if (parts.size() == 1 || storage.getChunks() > 1)
      add((layers - placed) * ofLayer, chunkShares(parts));
    else
      addEntryShares(parts, layers - placed, ofLayer);
    return finish();
  }

private:
  HomeAttr homeOn(const Placement::Part &part, int64_t chunks) {
    return HomeAttr::get(context, getTier(part.tier), chunks);
  }

  /// The number of layers: the first dimension of parameters, and that before the micro-batches of
  /// activations.
  int64_t countLayers() {
    ArrayRef<int64_t> dims = storage.getDims();
    switch (storage.getRole()) {
    case Role::weights:
    case Role::gradients:
    case Role::master:
    case Role::state:
      return dims[0];
    default:
      return dims.size() > 1 ? dims[0] : 1;
    }
  }

  /// The homes of an entry's chunks: shares rounded to whole ones, the last has the rest.
  SmallVector<HomeAttr> chunkShares(Parts parts) {
    SmallVector<HomeAttr> homes;
    const int64_t chunks = storage.getChunks();
    int64_t left = chunks;
    for (const Placement::Part &part : parts) {
      int64_t count = &part == &parts.back()
                          ? left
                          : std::min<int64_t>(left, std::llround(part.share * double(chunks)));
      left -= count;
      if (count > 0)
        homes.push_back(homeOn(part, left == 0 ? 0 : count));
    }
    return homes;
  }

  /// Shares of each layer's entries. What rounding takes from one layer, the next gives back. So
  /// shares of all layers together are rounded once.
  void addEntryShares(Parts parts, int64_t layers, int64_t ofLayer) {
    SmallVector<int64_t> taken(parts.size());
    for (int64_t until = ofLayer; until <= layers * ofLayer; until += ofLayer) {
      int64_t left = ofLayer;
      for (auto [part, had] : llvm::zip(parts, taken)) {
        int64_t due = std::llround(part.share * double(until)) - had;
        int64_t count = &part == &parts.back() ? left : std::clamp<int64_t>(due, 0, left);
        add(count, homeOn(part, 0));
        had += count;
        left -= count;
      }
    }
  }

  /// Adds homes of the next `count` entries.
  void add(int64_t count, ArrayRef<HomeAttr> homes) {
    if (count == 0)
      return;
    end += count;
    if (!ranges.empty() && cast<EntryHomesAttr>(ranges.back()).getHomes() == homes)
      ranges.pop_back();
    ranges.push_back(EntryHomesAttr::get(context, end, homes));
  }

  ArrayAttr finish() {
    if (ranges.size() == 1)
      return StorageOp::makeHomes(cast<EntryHomesAttr>(ranges[0]).getHomes());
    return ArrayAttr::get(context, ranges);
  }

  StorageOp storage;
  MLIRContext *context;
  SmallVector<Attribute> ranges;
  int64_t end = 0; // of the entries that were placed
};

/// The place of a role in the plan; null if it stays on the device.
const Placement *findPlacement(Role role, const PlaceSettings &place) {
  const bool isOptimizer = role == Role::master || role == Role::state;
  const StringRef name = isOptimizer ? "optimizer" : stringifyRole(role);
  const Placement *found = nullptr;
  place.Visit([&](const SettingRow &row, const Placement &member) {
    if (name == row.key)
      found = &member;
  });
  return found;
}

} // namespace

void assignHomes(ModuleOp module) {
  const PlaceSettings settings = Config(module).plan.place;
  for (auto storage : module.getOps<StorageOp>()) {
    if (Attribute own = storage->removeDiscardableAttr(kPlaceAttr))
      storage.setHomesAttr(Placer(storage).place(readPlace(own).parts));
    else if (const Placement *place = findPlacement(storage.getRole(), settings))
      storage.setHomesAttr(Placer(storage).place(place->parts));
  }
}

} // namespace boa
