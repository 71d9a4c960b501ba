//===- Probe.h - The machine, measured --------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PROBE_H
#define BOA_TOOLS_PROBE_H

#include "runtime/probe/figures.h"

#include "absl/status/status.h"

#include <functional>
#include <string>
#include <vector>

namespace boa {

struct ProbeOptions {
  std::vector<std::string> paths; // of states; none: "state"
  std::string output = "machine.boa";
  bool quick = false;
};

/// Measures this machine, prints a table, and writes a machine file.
absl::Status runProbe(const ProbeOptions &);

/// The part of it that needs the compiler: products, attention, what is between them, updates.
/// Chooses the instruction set whose kernels are the fastest here.
absl::Status measureKernels(bool quick, MachineFigures &);

} // namespace boa

#endif // BOA_TOOLS_PROBE_H
