//===- SpecData.h - The data that a spec names ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_SPECDATA_H
#define BOA_TOOLS_SPECDATA_H

#include "runtime/trainer/describe_data.h"
#include "runtime/trainer/trainer.h"
#include "tools/Compiler.h"

#include "absl/status/status.h"

#include <ostream>

namespace boa {

/// Carries out `boa data`: nothing is compiled. `train` says where the state would be, where tokens
/// are kept, and perhaps other data.
absl::Status describeDataOf(const CompileRequest &compile, const TrainerOptions &train,
                            const DescribeDataOptions &describe, std::ostream &out);

/// Counts the steps of epochs, where the data are there and the tokens of their texts are made.
/// Elsewhere a training counts them, and they stay 0 until then.
void countSteps(Program &program);

} // namespace boa

#endif // BOA_TOOLS_SPECDATA_H
