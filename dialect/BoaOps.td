//===- BoaOps.td - All ops of the dialect -------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
include "dialect/BoaComputeOps.td"
include "dialect/BoaModelOps.td"
include "dialect/BoaStepOps.td"
include "dialect/BoaStorageOps.td"
