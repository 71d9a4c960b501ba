//===- spec.cpp - Any bytes as a specification ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a spec, machines included; what follows a zero byte are overrides,
// a line each. Checks besides the sanitizers: there is a spec or a diagnostic and
// never both; what the printer writes parses and prints the same again; a layout
// keeps the tree and stays; a spec is IR that verifies.
//
//===----------------------------------------------------------------------===//
#include "frontend/Frontend.h"
#include "frontend/IRGen.h"
#include "test/fuzz/support.h"

#include "mlir/IR/Verifier.h"

using namespace boa;
using namespace boa::frontend;

/// Types and attributes live as long as their context: a new one now and then.
static mlir::MLIRContext &freshContext() {
  static std::unique_ptr<mlir::MLIRContext> context;
  static int uses = 0;
  if (uses++ % 2000 == 0)
    context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  return *context;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  std::vector<std::string> overrides;
  if (size_t zero = text.find('\0'); zero != std::string::npos) {
    for (size_t begin = zero + 1; begin < text.size();) {
      size_t end = std::min(text.find('\n', begin), text.size());
      overrides.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    text.resize(zero);
  }
  FrontendResult result = compileTexts({{"fuzz.boa", text}}, overrides);
  fuzz::Require(result.spec.has_value() == result.diagnostics.empty(), "a spec or diagnostics");
  if (!result.ast.empty()) {
    FrontendResult again = compileTexts({{"fuzz.boa", result.ast}});
    fuzz::Require(again.ast == result.ast, "what is printed parses and prints the same");
  }
  if (FormatResult layout = formatText({"fuzz.boa", text}); layout.after) {
    FormatResult again = formatText({"fuzz.boa", *layout.after});
    fuzz::Require(again.after == layout.after, "a layout that was made stays");
  } else {
    // Errors of the text begin with its name, and may quote anything.
    fuzz::Require(layout.diagnostics.rfind("error: cannot lay out", 0) != 0,
                  "a layout keeps the tree");
  }
  if (!result.spec)
    return 0;
  for (bool predict : {false, true}) {
    IRGenOptions options;
    if (predict)
      options.batch = options.microBatch = 1;
    auto module = generateModel(*result.spec, freshContext(), options);
    fuzz::Require(module && mlir::succeeded(mlir::verify(*module)), "a spec is IR that verifies");
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return fuzz::MutateText(data, size, most, seed);
}
