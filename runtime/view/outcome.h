//===- outcome.h - What a run says behind its last step ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_OUTCOME_H
#define BOA_RUNTIME_VIEW_OUTCOME_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"
#include "runtime/view/wear.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boa {

/// The part of a run that this process did.
struct Outcome {
  int64_t steps = 0; // done by this process
  int64_t last_step = 0;
  int64_t tokens = 0;
  double seconds = 0; // in steps
  double loss = 0;    // of the last step; not a number: a simulation has no loss
  /// The last evaluation, and the one with the least loss: its step, and the loss.
  std::optional<std::pair<int64_t, double>> validated, best;
  Traffic moved, predicted;                // measured, and from the plan
  std::map<int32_t, int64_t> written_to;   // bytes by SSD path
  std::vector<std::string> paths;          // their directories; empty: those of the machine
  int64_t disk_read = 0, disk_written = 0; // by the counts of the operating system
  bool measured = true;                    // whether these and resident_bytes are known
  /// The largest part of a memory in use, and its size.
  struct Memory {
    std::string name; // "" if the machine has only one
    int64_t peak_bytes = 0, allocated_bytes = 0;
  };
  std::vector<Memory> memories;
  int64_t run_ahead_bytes = 0; // most memory of commands that were not over
  int64_t resident_bytes = 0;  // peak of the process
  std::string state, saved;    // the state's directory, and the path of the weights; may be empty

  void Validated(int64_t step, double loss);
  void TakeMemory(const Program &, const Engine &);
  Writes writes() const { return {double(steps), seconds, moved.written, written_to, paths}; }
};

/// A few lines: the speed, the losses, the memory of the process, and where the results are.
std::string FormatSummary(const Outcome &);
/// The traffic beside the plan, the wear, and each memory.
std::string FormatMeasures(const Program &, const Outcome &);

} // namespace boa

#endif // BOA_RUNTIME_VIEW_OUTCOME_H
