//===- RandomTest.cpp - Random programs, and mutants ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Interpreter.h"
#include "test/passes/random/Passes.h"

#include "dialect/Boa.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace boa::random;

namespace {

int64_t setting(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

/// Attributes and types are never given back: a new one for every so many programs.
class Contexts {
public:
  MLIRContext &get() {
    if (uses++ % 200 == 0) {
      context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
      context->loadDialect<boa::BoaDialect, arith::ArithDialect, func::FuncDialect>();
    }
    return *context;
  }

private:
  std::unique_ptr<MLIRContext> context;
  int64_t uses = 0;
};

void report(const Tally &tally) {
  for (auto [kind, count] : tally.programs)
    llvm::outs() << name(kind) << ": " << count << " programs, of which "
                 << tally.meaningless.at(kind) << " mean nothing; "
                 << (tally.whole.count(kind) ? tally.whole.at(kind) : 0) << " came through\n";
  for (auto &[pass, count] : tally.refused)
    llvm::outs() << "refused by " << pass << ": " << count << "\n";
  if (std::getenv("BOA_RANDOM_MESSAGES"))
    for (auto &[message, count] : tally.messages)
      llvm::outs() << "  " << count << " x " << message << "\n";
  llvm::outs() << "of plain ones refused: " << tally.plainRefused
               << "; mended by a pass: " << tally.mended
               << "; retained copies taken up: " << tally.takenUp << "\n";
  llvm::outs().flush();
}

} // namespace

// Every pass keeps the meaning, or refuses.
TEST(Random, PassesKeepTheMeaningOrRefuse) {
  int64_t count = setting("BOA_RANDOM_PROGRAMS", 1000), only = setting("BOA_RANDOM_SEED", -1);
  int64_t most = setting("BOA_RANDOM_FAILURES", 3);
  Tally tally;
  Contexts contexts;
  int64_t failures = 0;
  for (int64_t seed = only < 0 ? 0 : only; seed < (only < 0 ? count : only + 1); ++seed) {
    std::string wrong = checkProgram(contexts.get(), seed, tally);
    if (wrong.empty())
      continue;
    ADD_FAILURE() << wrong;
    if (++failures == most)
      break;
  }
  report(tally);
}

int main(int argc, char **argv) {
  llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
