//===- Codegen.h - Machine code from the LLVM dialect -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last step, in process: a module in the LLVM dialect is optimised for a
// processor and either run (JitProgram) or written as an object file. The code may
// call the runtime's table of symbols (runtime/engine/symbols.h) and a few functions of the C
// library; any other call is an error at compile time.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CPU_CODEGEN_H
#define BOA_PASSES_TARGET_CPU_CODEGEN_H

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llvm::orc {
class LLJIT;
}

namespace boa {

/// A function or object that compiled code may refer to.
struct HostSymbol {
  const char *name;
  void *address;
};

struct CodegenOptions {
  /// "host", or an LLVM processor name: "x86-64-v3" runs wherever AVX2 does.
  std::string cpu = "host";
  /// Not for a simulation: kernels do not run, so to optimise the code takes longer than it saves.
  bool optimize = true;
};

/// A module compiled into this process.
class JitProgram {
public:
  /// `symbols`: the functions that the code may call; usually the runtime's table.
  static llvm::Expected<std::unique_ptr<JitProgram>> create(mlir::ModuleOp module,
                                                            llvm::ArrayRef<HostSymbol> symbols,
                                                            const CodegenOptions &options = {});
  ~JitProgram();

  /// The address of a function or global of the module.
  llvm::Expected<void *> lookup(llvm::StringRef name) const;

  template <typename Function> llvm::Expected<Function> lookupAs(llvm::StringRef name) const {
    llvm::Expected<void *> address = lookup(name);
    if (!address)
      return address.takeError();
    return reinterpret_cast<Function>(*address);
  }

private:
  explicit JitProgram(std::unique_ptr<llvm::orc::LLJIT> jit);
  /// The linker's errors: symbols that it did not find. Outlives the session.
  std::string reported;
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

/// A relocatable, position-independent object file. Code that calls something that is neither in
/// `symbols` nor a known function of the C library is refused: a diagnostic stands at its function,
/// and the error has no text.
llvm::Expected<llvm::SmallVector<char, 0>> emitObject(mlir::ModuleOp module,
                                                      llvm::ArrayRef<HostSymbol> symbols,
                                                      const CodegenOptions &options = {});

/// The optimised LLVM IR, as text.
llvm::Expected<std::string> emitLLVMIR(mlir::ModuleOp module, const CodegenOptions &options = {});
/// Assembly of the optimised code, as text.
llvm::Expected<std::string> emitAssembly(mlir::ModuleOp module, const CodegenOptions &options = {});

} // namespace boa

#endif // BOA_PASSES_TARGET_CPU_CODEGEN_H
