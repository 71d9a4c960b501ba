//===- disk.h - What an SSD reads and writes --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Direct transfers by the queue that trainings use (runtime/io), to and from one scratch file. The
// file loses its name as soon as it is open, so nothing of it is left, however the process ends.
// It takes at most a quarter of the free space.
//
// What transfers cost processors is measured by what they cost others: all threads compute
// products, alone and beside transfers. So interrupts and the work of a virtual machine's
// host count, which no account of a process has.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_PROBE_DISK_H
#define BOA_RUNTIME_PROBE_DISK_H

#include "runtime/probe/figures.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

struct DiskBudget {
  double seconds = 20;                      // of all transfers
  int64_t most_bytes = int64_t{16} << 30;   // of the scratch file
  int64_t least_bytes = int64_t{128} << 20; // a smaller file would say nothing
  bool depths = true;                       // find the depth that reaches the rate of reads
};

/// Measures the SSD of an existing directory. Adds to `warnings` what makes the figures doubtful.
absl::StatusOr<SsdFigures> MeasureDisk(const std::string &directory, const DiskBudget &,
                                       std::vector<std::string> &warnings);

/// What a phase moved: bytes, by equal parts of its time.
struct PhaseParts {
  std::vector<double> bytes;
  double part_seconds = 0;
  double moved = 0; // in all, with what was under way at the end

  /// Bytes a second of the second half: by then caches are full, where they are smaller than that.
  Figure Late(std::string how) const;
  /// Late rate by early rate: the first fifth of the phase.
  double Fall() const;
};

/// What makes figures doubtful: a rate that falls, or that no SSD has.
std::vector<std::string> DoubtsOf(const std::string &path, const PhaseParts &reads,
                                  const PhaseParts &writes);

} // namespace boa

#endif // BOA_RUNTIME_PROBE_DISK_H
