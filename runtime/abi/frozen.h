//===- frozen.h - Names of what is stored apart -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The frozen parameters of a stage are a group by itself. Compiler and runtime know it by its
// name: group "frozen.block", storage "weights.frozen.block", saved parameter
// "frozen.block.qkv_w". A group whose entries are parts of the same parameters is "blocks.head",
// or "frozen.blocks.head". A user's names have no '.', so none can be mistaken for these.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_FROZEN_H
#define BOA_RUNTIME_ABI_FROZEN_H

namespace boa {

inline constexpr char kFrozenPrefix[] = "frozen.", kPartsPrefix[] = "blocks.";

} // namespace boa

#endif // BOA_RUNTIME_ABI_FROZEN_H
