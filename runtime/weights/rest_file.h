//===- rest_file.h - Tensors beside the parameters --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_REST_FILE_H
#define BOA_RUNTIME_WEIGHTS_REST_FILE_H

#include "runtime/abi/program.h"
#include "runtime/weights/weight_files.h"

#include "absl/status/status.h"

#include <string>
#include <vector>

namespace boa {

/// Tensors that belong to a model and not to its spec: rows and heads that it does not use.
inline constexpr char kRestFile[] = "rest.safetensors";

/// Keeps the tensors that an export needs and no parameter holds: `unused`, and those whose rows
/// are parameters.
absl::Status WriteRest(const WeightFiles &files, const Program &program,
                       const std::vector<std::string> &unused, const std::string &path);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_REST_FILE_H
