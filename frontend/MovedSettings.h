//===- MovedSettings.h - Settings that moved to another block ---*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `schedule`, `place`, `micro_batch` and `update` once stood in the train block. Specs may
// still have them there (kSettingAliases): the checker sees them in the plan, and `boa fmt`
// rewrites the spec. `compute` and `compute_bf16` of a device are short for compute { f32 } and
// compute { bf16 }: the checker sees these.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_MOVEDSETTINGS_H
#define BOA_FRONTEND_MOVEDSETTINGS_H

#include "frontend/AST.h"

#include <optional>

namespace boa::frontend {

/// Moves the settings in the tree.
void moveSettings(Program &program);

/// Writes out the short forms of rates in the tree.
void expandRates(Program &program);

/// The text of a file with the settings in a plan block, together with their comments; nothing
/// if none has to move. The plan is the file's own, or a new one behind the train block.
std::optional<std::string> moveSettings(const Sources &sources, int32_t file,
                                        const Program &program);

} // namespace boa::frontend

#endif // BOA_FRONTEND_MOVEDSETTINGS_H
