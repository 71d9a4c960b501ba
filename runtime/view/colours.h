//===- colours.h - One colour for a role, wherever it shows -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_COLOURS_H
#define BOA_RUNTIME_VIEW_COLOURS_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"

#include <string>
#include <vector>

namespace boa {

/// The use of a byte, or of a moment of work. Moments and master weights are one part, as in a plan
/// block.
enum class Part {
  weights,
  gradients,
  optimizer,
  checkpoints,
  boundary_gradients,
  saved,
  rest, // tokens, losses, a workspace
  forward,
  backward,
};
inline constexpr int kParts = 9;

/// "boundary gradients".
std::string NameOf(Part);
/// The class of its colour.
std::string StyleOf(Part);

Part PartOfRole(const Program &, const std::string &role);

/// Parts of events, whose names are those of kernels, storages and groups.
class PartsOfEvents {
public:
  explicit PartsOfEvents(const Program &);
  Part Of(const TraceEvent &) const;
  Part OfStorage(int32_t storage) const { return storages[size_t(storage)]; }

private:
  std::vector<Part> storages;
  std::map<std::string, Part, std::less<>> by_name;
};

/// The legend of the parts that are set.
std::string LegendOf(const std::vector<bool> &seen);

} // namespace boa

#endif // BOA_RUNTIME_VIEW_COLOURS_H
