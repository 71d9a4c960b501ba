//===- master.h - Halves of master weights ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The form of weights that are stored as bf16 (runtime/abi/optimizer.h).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_MASTER_H
#define BOA_RUNTIME_KERNELS_MASTER_H

#include <cstdint>

namespace boa {

inline uint16_t MasterHigh(uint32_t bits) { return uint16_t((bits + 0x8000u) >> 16); }
inline int16_t MasterLow(uint32_t bits) {
  return int16_t(bits - (uint32_t(MasterHigh(bits)) << 16));
}
inline uint32_t JoinMaster(uint16_t high, int16_t low) {
  return (uint32_t(high) << 16) + uint32_t(int32_t(low));
}

} // namespace boa

#endif // BOA_RUNTIME_KERNELS_MASTER_H
