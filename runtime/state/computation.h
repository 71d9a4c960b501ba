//===- computation.h - Whether two programs compute the same ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state and the weights that it leaves belong to a computation, told by its canonical
// text (passes/model/CanonicalText.h prints it). Another program may go on with them only
// if a person says so, and is told what differs, in the words of a spec.
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

/// A line for each difference: `block: gelu became silu`. The texts may be any: where they
/// are no canonical texts, the first line that differs is quoted. None: they are equal.
/// Time and memory are bounded for any two texts.
std::vector<std::string> DescribeDifferences(absl::string_view before, absl::string_view after);

/// Compares the computation of a program with that of `where` (a state or a file, as
/// messages name it). Refuses another one unless it is `allowed`. Returns what a person
/// should know, or "". Of a state of version 0 StateStore::Open says what is not known.
/// `fit`: whether the parameters and storages do. Where they do not, nothing is allowed, and
/// the differences stand before that error: they are its cause.
absl::StatusOr<std::string> CheckComputation(const std::string &where, const Computation &saved,
                                             const Computation &ours, bool allowed,
                                             const absl::Status &fit = absl::OkStatus());

} // namespace boa

#endif // BOA_RUNTIME_STATE_COMPUTATION_H
