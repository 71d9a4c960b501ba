//===- HeldAdapters.h - The adapters that a state holds ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A commit records the adapters that were trained, in the words of a spec. A command on a state
// uses these, so that no command line has to repeat them. A spec with other adapters is refused
// (frontend/Frontend.h).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_HELDADAPTERS_H
#define BOA_TOOLS_HELDADAPTERS_H

#include "runtime/abi/settings.h"
#include "runtime/weights/peft_adapter.h"
#include "tools/Compiler.h"

#include "absl/status/status.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace boa {

/// Adds the adapters of a state to `compile`. `state` is a directory or one of its commits; if it
/// is empty, the spec names the directory. `at` chooses the commit of a step. If `bind` holds, a
/// spec with other adapters is refused. A state that does not exist adds nothing: opening it
/// reports that later.
absl::Status useHeldAdapters(const std::string &state, std::optional<int64_t> at, bool bind,
                             CompileRequest &compile);

/// Adds the adapters of a folder of PEFT. Refuses adapters of another model.
absl::Status useAdapter(const PeftAdapter &adapter, CompileRequest &compile);

/// Prints the adapters of a program if they came from `compile`, and not from the spec. `train`
/// holds the settings of the program.
void nameHeldAdapters(const CompileRequest &compile, const TrainSettings &train, std::FILE *out);

} // namespace boa

#endif // BOA_TOOLS_HELDADAPTERS_H
