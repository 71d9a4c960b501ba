//===- BoaOps.td - All ops of the dialect -------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By phase. These headings are the chapters of OPS.md.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Model phase: parameters and stages
//===----------------------------------------------------------------------===//
include "dialect/ConfigOp.td"
include "dialect/BoaModelOps.td"

//===----------------------------------------------------------------------===//
// Model phase: compute ops
//===----------------------------------------------------------------------===//
include "dialect/LinearOps.td"
include "dialect/BoaComputeOps.td"

//===----------------------------------------------------------------------===//
// Step phase
//===----------------------------------------------------------------------===//
// Values that cross layers, micro-batches or steps live in storages, indexed by
// (layer, micro_batch). This is scalar expansion: it makes loops distributable and
// interchangeable. Control is static: every bound is a constant. So a pass can
// enumerate the step exactly (passes/analysis/Enumeration.h) instead of approximating
// its dependences.
include "dialect/StorageOp.td"
include "dialect/BoaStepOps.td"

//===----------------------------------------------------------------------===//
// Storage phase
//===----------------------------------------------------------------------===//
// Every op here enqueues a command and returns at once. Each maps to one call of the
// runtime's C ABI (runtime/abi/abi.h, which states the memory model). The order of commands
// follows only from the buffers and the chunks that they read and write.
include "dialect/BoaStorageOps.td"
