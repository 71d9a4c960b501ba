//===- HeldAdapters.h - The adapters that a state holds ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A commit holds the adapters that were trained, as a spec writes them. A command on a state takes
// them, so that no command line has to repeat them. A spec that says others is refused
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

/// Puts the adapters into `compile` that a state holds. `state`: a directory, or a commit of it;
/// empty: the folder that the spec names. `at`: the commit of this step. Unless they `bind`, a spec
/// may have others. Nothing happens where there is no such state: opening it is an error later.
absl::Status useHeldAdapters(const std::string &state, std::optional<int64_t> at, bool bind,
                             CompileRequest &compile);

/// The same with those of a folder of PEFT. Refuses those of another model.
absl::Status useAdapter(const PeftAdapter &adapter, CompileRequest &compile);

/// Prints the adapters with which a spec was compiled, if it took them from `compile`. `train`: the
/// settings of the program.
void nameHeldAdapters(const CompileRequest &compile, const TrainSettings &train, std::FILE *out);

} // namespace boa

#endif // BOA_TOOLS_HELDADAPTERS_H
