//===- colours.cpp - One colour for a role, wherever it shows -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/colours.h"

#include "runtime/view/svg.h"
#include "runtime/view/wear.h"

#include "absl/strings/match.h"

namespace boa {

std::string NameOf(Part part) {
  constexpr const char *kNames[kParts] = {"weights",     "gradients",          "optimizer",
                                          "checkpoints", "boundary gradients", "saved activations",
                                          "all else",    "forward kernels",    "backward kernels"};
  return kNames[int(part)];
}

std::string StyleOf(Part part) { return "p" + std::to_string(int(part)); }

Part PartOfRole(const Program &program, const std::string &role) {
  const std::string place = PlaceOfRole(program, role);
  return place == "weights"              ? Part::weights
         : place == "gradients"          ? Part::gradients
         : place == "optimizer"          ? Part::optimizer
         : place == "checkpoints"        ? Part::checkpoints
         : place == "boundary_gradients" ? Part::boundary_gradients
         : place == "saved"              ? Part::saved
                                         : Part::rest;
}

PartsOfEvents::PartsOfEvents(const Program &program) {
  for (const Storage &storage : program.storages) {
    storages.push_back(PartOfRole(program, storage.role));
    by_name[storage.name] = storages.back();
  }
}

Part PartsOfEvents::Of(const TraceEvent &event) const {
  if (event.row == TraceEvent::Row::compute)
    return absl::StrContains(event.name, "backward")  ? Part::backward
           : absl::StrContains(event.name, "forward") ? Part::forward
                                                      : Part::rest;
  if (event.row == TraceEvent::Row::optimizer)
    return event.name == "copy" || event.name == "zero" ? Part::rest : Part::optimizer;
  auto found = by_name.find(std::string_view(event.name.data(), event.name.size()));
  return found == by_name.end() ? Part::rest : found->second;
}

std::string LegendOf(const std::vector<bool> &seen) {
  std::vector<std::pair<std::string, std::string>> styles;
  for (int part = 0; part < kParts; ++part)
    if (seen[size_t(part)])
      styles.emplace_back(StyleOf(Part(part)), NameOf(Part(part)));
  return Legend(styles);
}

} // namespace boa
