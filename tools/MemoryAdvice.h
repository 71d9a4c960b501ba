//===- MemoryAdvice.h - What makes a step fit its memory --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_MEMORYADVICE_H
#define BOA_TOOLS_MEMORYADVICE_H

#include "tools/Compiler.h"

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

/// How to make a spec fit that was refused for its memory, in lines for stderr. Compiles it with
/// other plans, up to its storage phase: each that is named fits. Empty where no plan can be
/// changed: of a module, and of a prediction.
std::string adviseOnMemory(const CompileRequest &request);

/// In how many blocks, above `blocks`, a vocabulary may stream, the fewest first.
std::vector<int64_t> moreVocabularyBlocks(int64_t vocab, int64_t blocks);

} // namespace boa

#endif // BOA_TOOLS_MEMORYADVICE_H
