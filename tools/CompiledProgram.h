//===- CompiledProgram.h - A program in this process ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_COMPILEDPROGRAM_H
#define BOA_TOOLS_COMPILEDPROGRAM_H

#include "runtime/abi/program.h"
#include "tools/Compiler.h"

#include "absl/status/status.h"

#include <memory>

namespace boa {

/// Says on stderr how a spec would fit that was refused for its memory.
absl::Status withAdvice(absl::Status status, const Compiler &, const CompileRequest &);

/// A program that was compiled in this process.
class CompiledProgram {
public:
  absl::Status compile(const CompileRequest &request);

  /// Its kernels; for a device of its own with their image.
  absl::Status find(Kernels &kernels);

  template <typename T> absl::Status find(llvm::StringRef name, T &to) {
    auto address = jit->lookupAs<T>(name);
    if (!address)
      return absl::InternalError(llvm::toString(address.takeError()));
    to = *address;
    return absl::OkStatus();
  }

  Program program;
  std::string dataPlace; // Compiler::dataPlace

private:
  Compiler compiler;
  std::unique_ptr<JitProgram> jit;
};

} // namespace boa

#endif // BOA_TOOLS_COMPILEDPROGRAM_H
