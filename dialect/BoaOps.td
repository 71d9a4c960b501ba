//===- BoaOps.td - All ops of the dialect -------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One file for each family, by phase. A file with ops of two phases stands twice. These headings
// are the chapters of OPS.md.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Model phase: parameters and stages
//===----------------------------------------------------------------------===//
include "dialect/ConfigOp.td"
include "dialect/ParamOps.td"
include "dialect/OptimizerOps.td"
include "dialect/StageOp.td"

//===----------------------------------------------------------------------===//
// Model phase: compute ops
//===----------------------------------------------------------------------===//
include "dialect/LinearOps.td"
include "dialect/ElementwiseOps.td"
include "dialect/ShapeOps.td"
include "dialect/NormalisationOps.td"
include "dialect/AttentionOps.td"
include "dialect/EmbeddingOps.td"
include "dialect/CrossEntropyOps.td"

//===----------------------------------------------------------------------===//
// Step phase
//===----------------------------------------------------------------------===//
// Values that cross layers, micro-batches or steps live in storages, indexed by
// (layer, micro_batch). This is scalar expansion: it makes loops distributable and
// interchangeable. Control is static: every bound is a constant. So a pass can
// enumerate the step exactly (passes/analysis/Enumeration.h) instead of approximating
// its dependences.
include "dialect/StorageOp.td"
include "dialect/StepOp.td"
include "dialect/LoopOps.td"
include "dialect/EntryOps.td"
include "dialect/CallOps.td"
include "dialect/UpdateOps.td"

//===----------------------------------------------------------------------===//
// Storage phase
//===----------------------------------------------------------------------===//
// Every op here enqueues a command and returns at once. Each maps to one call of the
// runtime's C ABI (runtime/abi/abi.h, which states the memory model). The order of commands
// follows only from the buffers and the chunks that they read and write.
include "dialect/TransferOps.td"
include "dialect/KernelOp.td"
include "dialect/CallOps.td"
include "dialect/UpdateOps.td"
