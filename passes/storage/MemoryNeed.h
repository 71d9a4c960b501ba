//===- MemoryNeed.h - Memory that a refused program needs -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_STORAGE_MEMORYNEED_H
#define BOA_PASSES_STORAGE_MEMORYNEED_H

#include "dialect/Boa.h"

#include "mlir/IR/Diagnostics.h"

#include <optional>
#include <string>

namespace boa {

/// Why a program does not fit a memory. A refusal of `boa-assign-buffers` carries it as
/// metadata, so that nobody has to read its text.
struct MemoryNeed {
  std::string text;           // "it needs 2.00 GiB but the machine has 1.00 GiB"
  int64_t bytes = 0;          // 2 GiB
  std::optional<Space> space; // whose; none: the machine has one memory

  void attachTo(mlir::Diagnostic &diagnostic, mlir::MLIRContext *context) const;
  /// Reads the need of a diagnostic; none if it is about something else.
  static std::optional<MemoryNeed> of(mlir::Diagnostic &diagnostic);
};

} // namespace boa

#endif // BOA_PASSES_STORAGE_MEMORYNEED_H
