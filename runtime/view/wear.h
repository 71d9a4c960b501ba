//===- wear.h - What training costs an SSD ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An SSD may be written only so often: its data sheet states the bytes (TBW). From the bytes of a
// step follow the years of its life, and what each change of the spec would save. Commits and
// exports are left out, and so are writes of the drive's own.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_WEAR_H
#define BOA_RUNTIME_VIEW_WEAR_H

#include "runtime/abi/program.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace boa {

/// The bytes that some steps wrote to SSD, or would write.
struct Writes {
  double steps = 0, seconds = 0;
  std::map<std::string, int64_t> by_role;
  std::map<int32_t, int64_t> by_path;
  std::vector<std::string> paths; // their names; missing ones are those of the machine
};

/// One path at the rate of these steps.
struct PathWear {
  std::string path;
  double step = 0, day = 0; // bytes
  double endurance = 0;     // bytes; 0: not said
  double life = 0;          // seconds; 0: not known
};
/// Of the paths that are written.
std::vector<PathWear> WearOf(const Program &, const Writes &);

/// A change of the spec by which a step writes less.
struct Saving {
  std::string what;
  double bytes = 0; // a step
};
/// The largest first: 8-bit moments, frozen layers, roles in host memory. Changes that the spec has
/// already are left out.
std::vector<Saving> SavingsOf(const Program &, const Writes &);

/// The first path that wears out in so many seconds, as a sentence; "" if none does.
std::string FindWornOut(const std::vector<PathWear> &, double seconds);

/// The tables of both; "" if nothing is written.
std::string FormatWear(const Program &, const Writes &);

/// "600 TB", as data sheets have it.
std::string FormatEndurance(double bytes);

/// The name in a plan block of the place that a role has; "" if it has none there. Moments and
/// master weights are `optimizer`.
std::string PlaceOfRole(const Program &, const std::string &role);

} // namespace boa

#endif // BOA_RUNTIME_VIEW_WEAR_H
