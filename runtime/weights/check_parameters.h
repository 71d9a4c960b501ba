//===- check_parameters.h - Tensors against the parameters ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_CHECK_PARAMETERS_H
#define BOA_RUNTIME_WEIGHTS_CHECK_PARAMETERS_H

#include "runtime/abi/program.h"

#include "absl/status/status.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace boa {

/// Shapes of tensors, by ParameterName.
using ShapesByName = std::map<std::string, std::vector<int64_t>>;

/// Whether the weights that a training begins with may lack all parts of its adapters, which then
/// have their initial values.
enum class Adapters { present, may_be_new };

/// Whether no tensor is a part of an adapter: half of them are not taken for none.
bool LacksAdapters(const Program &, const ShapesByName &);

/// FailedPrecondition if a parameter is missing or has another shape, or if a tensor is no
/// parameter. Names the first few. `of`: the file or state, for the message.
absl::Status CheckParameters(const Program &, const std::string &of, const ShapesByName &,
                             Adapters);

/// The same error for lines that the caller has found; Ok for none.
absl::Status DescribeMismatches(const Program &, const std::string &of,
                                const std::vector<std::string> &lines);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_CHECK_PARAMETERS_H
