//===- MemoryAdvice.h - What makes a step fit its memory --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_MEMORYADVICE_H
#define BOA_TOOLS_MEMORYADVICE_H

#include "runtime/abi/settings.h"
#include "tools/Compiler.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// How to make a spec fit that was refused for its memory, in lines for stderr. Compiles it with
/// other plans, up to its storage phase: each that is named fits. Empty where no plan can be
/// changed: of a module, and of a prediction.
std::string adviseOnMemory(const CompileRequest &request);

/// In how many blocks, above `blocks`, a vocabulary may stream, the fewest first.
std::vector<int64_t> moreVocabularyBlocks(int64_t vocab, int64_t blocks);

/// Whether a program with other limits of memory compiles.
struct FitResult {
  bool possible = false;
  std::optional<MemoryNeed> need; // none: it fits
};

/// Limits of memory that are enough, as --set takes them; empty: none was found. `need`: why it
/// does not fit now.
std::vector<std::string>
findMemory(const MachineSettings &machine, MemoryNeed need,
           llvm::function_ref<FitResult(const std::vector<std::string> &)> compileWith);

} // namespace boa

#endif // BOA_TOOLS_MEMORYADVICE_H
