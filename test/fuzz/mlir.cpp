//===- mlir.cpp - Any text as a module ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is what `boa compile x.mlir --emit=llvm` reads, and goes the driver's
// own way; nothing is executed. It may not crash or hang, whatever the module
// says. Modules with anything but boa, func and arith in them are left out:
// upstream's other dialects are not ours to mend.
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"
#include "runtime/engine/symbols.h"
#include "test/fuzz/support.h"
#include "tools/Compiler.h"
#include "tools/Payload.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

using namespace boa;
using namespace mlir;

// What the driver would run with. Nothing is run here, so the runtime and the
// trainer need not be compiled.
const std::vector<RuntimeSymbol> &boa::RuntimeSymbols() {
  static const std::vector<RuntimeSymbol> none;
  return none;
}
absl::Status boa::AppendPayload(const std::string &, const std::string &, const std::string &) {
  return absl::UnimplementedError("no trainer is written here");
}

namespace {

/// Types and attributes live as long as their context: new ones now and then.
struct Contexts {
  Contexts() : plain(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    registry.insert<BoaDialect, func::FuncDialect, arith::ArithDialect>();
    plain.appendDialectRegistry(registry);
    plain.loadAllAvailableDialects();
  }
  MLIRContext plain;
  Compiler compiler;

  static Contexts &get() {
    static std::unique_ptr<Contexts> contexts;
    static int uses = 0;
    if (uses++ % 500 == 0)
      contexts = std::make_unique<Contexts>();
    return *contexts;
  }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // The lexer looks at the byte behind the text, which is 0 behind a file's.
  const std::string text(reinterpret_cast<const char *>(data), size);
  Contexts &contexts = Contexts::get();
  {
    ScopedDiagnosticHandler silent(&contexts.plain, [](Diagnostic &) { return success(); });
    if (!parseSourceString<ModuleOp>(text, ParserConfig(&contexts.plain)))
      return 0;
  }
  CompileRequest request;
  request.files = {fuzz::Scratch() + "/fuzz.mlir"};
  fuzz::WriteFile(request.files[0], text);
  auto module = contexts.compiler.load(request);
  fuzz::Require(module.ok(), "the driver parses what the dialects do");
  (*module)->getContext()->disableMultithreading();
  contexts.compiler.lower(**module, request, Phase::llvm).IgnoreError();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return fuzz::MutateText(data, size, most, seed);
}
