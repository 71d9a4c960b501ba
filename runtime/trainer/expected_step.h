//===- expected_step.h - What a step should take ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Before a training begins, its program is simulated for a few steps. A person then knows how long
// the run takes, and how far it is from the bound of its busiest link.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_EXPECTED_STEP_H
#define BOA_RUNTIME_TRAINER_EXPECTED_STEP_H

#include "runtime/abi/program.h"
#include "runtime/trainer/trainer.h"

#include <cstdint>
#include <string>

namespace boa {

struct ExpectedStep {
  std::string speed;   // a sentence
  std::string warning; // of a drive that the run wears out; may be empty
};

/// `steps`: that the run has still to do. Says so where the machine states no rates.
ExpectedStep ExpectStep(const Program &, const EntryPoints &, int64_t steps);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_EXPECTED_STEP_H
