//===- standalone.cpp - main() of a compiled trainer ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linked, as an object of its own, with the object that `boa compile` makes and
// with the runtime. Names what that object defines.
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/main.h"

extern "C" {
extern const char boa_program[];
extern const boa_kernel boa_kernel_table[];
void boa_step(boa_context *, int64_t step, int64_t pending);
void boa_drain(boa_context *, int64_t step, int64_t pending);
void boa_evaluate(boa_context *, int64_t step, int64_t pending);
}

int main(int argc, char **argv) {
  return boa::TrainerMain(argc, argv, boa_program, boa_kernel_table,
                          {boa_step, boa_drain, boa_evaluate});
}
