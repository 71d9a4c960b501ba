//===- FitMemory.h - Streams what memory does not hold ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes that save transfers hold a buffer while other stages compute. Whether memory has room
// for that is known only with the workspace of the kernels. So a copy of the program is kept from
// before these passes. If the program does not fit, they run again on the copy, and stream some
// storages (Streaming.h): those whose buffers take most bytes for most of the time, as few as are
// enough. If all are not enough, the refusal names what the program needs then.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_STORAGE_FITMEMORY_H
#define BOA_PASSES_STORAGE_FITMEMORY_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <memory>

namespace boa {

/// A program of naive transfers, without functions. Two passes of one pipeline share it.
using NaiveProgram = std::shared_ptr<mlir::OwningOpRef<mlir::ModuleOp>>;

/// Shares the constants of a step: each op that a pass made brought its own.
void shareConstants(mlir::OpPassManager &pm);

/// The passes that save transfers, in order.
void buildTransfers(mlir::OpPassManager &pm, llvm::ArrayRef<std::string> streamed = {});

std::unique_ptr<mlir::Pass> createKeepNaiveProgram(NaiveProgram program);

/// How many storages it streams: as few as fit, or all of them.
enum class Streamed { few, all };

/// Runs --boa-assign-buffers on the program as it is. If memory is short, it runs again with
/// streamed storages. `placesWeights` says that --boa-place-weights follows. Then this pass streams
/// all storages or none, so that the program fits with all weights on SSD.
std::unique_ptr<mlir::Pass> createFitMemory(NaiveProgram program, Streamed streamed = Streamed::few,
                                            bool placesWeights = false);

} // namespace boa

#endif // BOA_PASSES_STORAGE_FITMEMORY_H
