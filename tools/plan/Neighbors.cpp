//===- Neighbors.cpp ------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/Neighbors.h"

#include <algorithm>

namespace boa {
namespace {

constexpr int kTenth = 10;

int &shareOf(Shares &shares, Space memory) {
  return memory == Space::device ? shares.device : shares.host;
}

} // namespace

void applyNeighbor(Choice &choice, const Neighbor &neighbor) {
  for (const auto &[role, memory, percent] : neighbor) {
    Shares &shares = choice.places[role];
    int &share = shareOf(shares, memory);
    share = std::clamp(share + percent, 0, share + shares.rest());
  }
}

std::vector<Neighbor> tenthNeighbors(const Choice &choice, const std::vector<Space> &memories) {
  std::vector<Neighbor> all;
  for (const auto &[role, shares] : choice.places)
    for (Space memory : memories)
      for (int percent : {kTenth, -kTenth})
        all.push_back({{role, memory, percent}});
  return all;
}

std::vector<Neighbor> exchangeNeighbors(const Choice &choice, const std::vector<RoleTraffic> &uses,
                                        const std::vector<Space> &memories) {
  std::vector<Neighbor> all;
  for (Space memory : memories)
    for (const RoleTraffic &from : uses) {
      auto place = choice.places.find(from.role);
      if (place == choice.places.end())
        continue;
      Shares shares = place->second;
      const int there = shareOf(shares, memory);
      for (int percent : {std::min(kTenth, there), there}) {
        for (const RoleTraffic &to : uses)
          if (to.role != from.role && choice.places.count(to.role) && to.bytes > 0)
            if (const int more = int(percent * from.bytes / to.bytes); more > 0)
              all.push_back({{from.role, memory, -percent}, {to.role, memory, more}});
        for (Space other : memories)
          if (other != memory && percent > 0)
            all.push_back({{from.role, memory, -percent}, {from.role, other, percent}});
      }
    }
  return all;
}

} // namespace boa
