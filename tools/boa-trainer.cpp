//===- boa-trainer.cpp - The shell of a stand-alone trainer ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime and a main; the program stands behind it (tools/Payload.h). Needs
// no LLVM.
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/main.h"
#include "runtime/trainer/process.h"
#include "tools/Payload.h"

#include <dlfcn.h>

int main(int argc, char **argv) {
  boa::PrepareProcess(); // the program is written to a file in memory
  auto program = boa::LoadPayload();
  if (!program.ok())
    return boa::ExitStatus(program.status());
  auto entry = [&](const char *name) {
    return reinterpret_cast<boa_entry_point>(dlsym(*program, name));
  };
  return boa::RunWithinMemory([&] {
    return boa::TrainerMain(
        argc, argv, static_cast<const char *>(dlsym(*program, "boa_program")),
        {static_cast<const boa_kernel *>(dlsym(*program, "boa_kernel_table")),
         static_cast<const boa_device_image *>(dlsym(*program, "boa_device_image")),
         static_cast<const boa_optimizer *>(dlsym(*program, "boa_optimizer"))},
        {entry("boa_step"), entry("boa_drain"), entry("boa_evaluate")});
  });
}
