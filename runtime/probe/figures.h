//===- figures.h - What was measured of a machine ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_PROBE_FIGURES_H
#define BOA_RUNTIME_PROBE_FIGURES_H

#include "runtime/abi/settings.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace boa {

/// A number and how it was found. In bytes, bytes/s, operations/s or ns.
struct Figure {
  double value = 0; // 0: not measured
  /// Half of the samples differ by this part of the value, or less.
  double scatter = 0;
  std::string how;
};

/// The median. `samples` are not empty.
Figure MedianOf(std::vector<double> samples, std::string how);

/// A directory on an SSD.
struct SsdFigures {
  std::string path;
  Figure read, write, both, latency;
  Figure
      transfers; // that all processors together could move, if they did nothing else; 0: no limit
};

/// Of kernels in a format: products and attention in operations, the rest in bytes.
struct KernelFigures {
  Figure product, attention, elementwise;
};

struct MachineFigures {
  int64_t threads = 0;
  std::string kernels;         // the instruction set that kernels used
  bool names_kernels = false;  // it is not the one that Boa would choose
  Figure memory;               // that a process may take now
  Figure bandwidth, optimizer; // of the host's memory, and what updates make of it
  Figure checksum, transfers;  // of all threads together
  std::map<NumberFormat, KernelFigures> formats;
  std::vector<SsdFigures> ssds;
  std::vector<std::string> warnings;
};

} // namespace boa

#endif // BOA_RUNTIME_PROBE_FIGURES_H
