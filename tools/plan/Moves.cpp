//===- Moves.cpp ----------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/Moves.h"

#include <algorithm>

namespace boa {
namespace {

constexpr int kTenth = 10;

int &shareOf(Shares &shares, Space memory) {
  return memory == Space::device ? shares.device : shares.host;
}

} // namespace

void makeMoves(Choice &choice, const Moves &moves) {
  for (const auto &[role, memory, percent] : moves) {
    Shares &shares = choice.places[role];
    int &share = shareOf(shares, memory);
    share = std::clamp(share + percent, 0, share + shares.rest());
  }
}

std::vector<Moves> tenths(const Choice &choice, const std::vector<Space> &memories) {
  std::vector<Moves> all;
  for (const auto &[role, shares] : choice.places)
    for (Space memory : memories)
      for (int percent : {kTenth, -kTenth})
        all.push_back({{role, memory, percent}});
  return all;
}

std::vector<Moves> exchanges(const Choice &choice, const std::vector<RoleUse> &uses,
                             const std::vector<Space> &memories) {
  std::vector<Moves> all;
  for (Space memory : memories)
    for (const RoleUse &from : uses) {
      auto place = choice.places.find(from.role);
      if (place == choice.places.end())
        continue;
      Shares shares = place->second;
      const int there = shareOf(shares, memory);
      for (int percent : {std::min(kTenth, there), there}) {
        for (const RoleUse &to : uses)
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
