//===- CompiledProgram.cpp - A program in this process --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/CompiledProgram.h"

#include "tools/MemoryAdvice.h"

#include <cstdio>
#include <utility>

namespace boa {

absl::Status withAdvice(absl::Status status, const Compiler &compiler,
                        const CompileRequest &request) {
  if (!status.ok() && compiler.memoryNeed())
    std::fputs(adviseOnMemory(request).c_str(), stderr);
  return status;
}

absl::Status CompiledProgram::compile(const CompileRequest &request) {
  auto made = compiler.jit(request);
  if (!made.ok())
    return withAdvice(made.status(), compiler, request);
  jit = *std::move(made);
  dataPlace = compiler.dataPlace();
  const char *text = nullptr;
  if (absl::Status status = find("boa_program", text); !status.ok())
    return status;
  auto parsed = ParseProgram(text);
  if (!parsed.ok())
    return parsed.status();
  program = *std::move(parsed);
  return absl::OkStatus();
}

absl::Status CompiledProgram::find(Kernels &kernels) {
  absl::Status status = find("boa_kernel_table", kernels.table);
  if (status.ok() && !program.optimizer.name.empty())
    status = find("boa_optimizer", kernels.optimizer);
  return status.ok() && TraitsOf(program.machine.device).has_image
             ? find("boa_device_image", kernels.image)
             : status;
}

} // namespace boa
