//===- initial_values.h - Initial parameters --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Initial values as a function of (seed, group, entry, parameter, element): the
// same for any placement, chunking and number of threads. Normal values come
// from Box and Muller's transform in double precision.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_INITIAL_VALUES_H
#define BOA_RUNTIME_WEIGHTS_INITIAL_VALUES_H

#include "runtime/abi/program.h"

#include <cstdint>

namespace boa {

/// Elements [first, first + count) of parameter `parameter` of entry `entry` of
/// group `group`, both counted as the program lists them. Serial.
void InitialValues(const Program &, int64_t group, int64_t entry, int64_t parameter, int64_t first,
                   int64_t count, float *values);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_INITIAL_VALUES_H
