//===- ChunkLoops.h - Loops whose iterations are one ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_CHUNKLOOPS_H
#define BOA_DIALECT_CHUNKLOOPS_H

#include "dialect/Boa.h"

namespace boa {

/// Whether each iteration of a loop over chunks has a chunk, and buffers, to itself. All
/// iterations may then run at once.
bool canRunAsOne(LoopOp loop);

/// The loop that brings a step to more than `most` iterations that passes run one by one; null if
/// there is none. The iterations of a loop over chunks count as one if it can run as one and meets
/// no retained copy.
LoopOp findLoopBeyond(StepOp step, int64_t most);

} // namespace boa

#endif // BOA_DIALECT_CHUNKLOOPS_H
