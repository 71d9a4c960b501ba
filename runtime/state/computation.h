//===- computation.h - Whether two programs compute the same ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state and its weights belong to a computation. The canonical text identifies it
// (passes/model/CanonicalText.h prints it). A program of another computation may go on with
// them only if the user allows it. The user sees the differences in the words of a spec.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_COMPUTATION_H
#define BOA_RUNTIME_STATE_COMPUTATION_H

#include "runtime/abi/program.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>
#include <vector>

namespace boa {

/// A line for each difference: `block: gelu became silu`. No line if the texts are equal. Of
/// texts that are not canonical it quotes the first line that differs. Time and memory are
/// bounded for any two texts.
std::vector<std::string> DescribeDifferences(absl::string_view before, absl::string_view after);

/// Whether a parameter is the table of an embedding, and another op takes it, too: the head is tied
/// to it.
bool IsTiedTable(const Computation &, absl::string_view group, absl::string_view parameter);

/// Compares the computation of a program with that of `where`: the name of a state or file, for
/// messages. FailedPrecondition if it is another one and not `allowed`. Returns a message for
/// the user, or "". For a computation of version 0, StateStore::Open makes the message.
/// `fit`: whether the parameters and storages fit. An error of it is returned in any case, after
/// the differences that cause it.
absl::StatusOr<std::string> CheckComputation(const std::string &where, const Computation &saved,
                                             const Computation &ours, bool allowed,
                                             const absl::Status &fit = absl::OkStatus());

} // namespace boa

#endif // BOA_RUNTIME_STATE_COMPUTATION_H
