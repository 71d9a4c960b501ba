//===- InterpreterTest.cpp - The second opinion, on programs of a screen --===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Interpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace boa::random;

namespace {

class Interpreter : public testing::Test {
protected:
  Interpreter() { context.loadDialect<boa::BoaDialect, arith::ArithDialect, func::FuncDialect>(); }
  /// A step of these statements, with a trained storage @w and a transient @x on `tier`.
  Observations run(const std::string &statements, const std::string &tier = "ssd",
                   uint64_t garbage = 1) {
    auto module = parseSourceString<ModuleOp>(
        std::string(separate ? "boa.config @machine {memory = \"separate\"}\n" : "") +
            "boa.storage @w[1] : tensor<8xf32> on " + tier + " role weights chunks 2 persistent\n" +
            "boa.storage @input.tokens[2] : tensor<8xf32> on device role input chunks 2\n" +
            "boa.storage @x[2] : tensor<8xf32> on " + tier + " role checkpoints chunks 2\n" +
            "boa.step @step(%step, %pending) {\n" + "%c0 = arith.constant 0 : index\n" +
            "%c1 = arith.constant 1 : index\n%true = arith.constant true\n" + statements + "}\n",
        &context);
    EXPECT_TRUE(module) << statements;
    return module ? observe(*module, garbage) : Observations();
  }
  /// Whether trained state comes to the same.
  static bool same(const Observations &a, const Observations &b) {
    return findDifference(a, b, /*pending=*/true).empty();
  }

  MLIRContext context;
  bool separate = false;
};

const std::string kOpen = "%w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>\n";
const std::string kKernel = "boa.launch @k updates(%w : <tensor<8xf32>, device>)\n";
const std::string kHome = "boa.offload %w, @w[%c0] : <tensor<8xf32>, device>\n";
const std::string kClose = "boa.release %w : <tensor<8xf32>, device>\n";
const std::string kRetain = "boa.release %w retain %true : <tensor<8xf32>, device>\n";

} // namespace

// A buffer is memory of its own, but for one that is its chunks' home: where memory is one,
// those of device and host side by side are, too.
TEST_F(Interpreter, OffloadsMatterWhereABufferIsNotTheHome) {
  Observations with = run(kOpen + kKernel + kHome + kClose);
  EXPECT_EQ(with.undefined + with.fault, "");
  EXPECT_FALSE(same(with, run(kOpen + kKernel + kClose)));
  EXPECT_TRUE(same(with, run(kOpen + kKernel + kClose, "host")));
  EXPECT_TRUE(same(run(kOpen + kKernel + kClose, "device 1, host"), with));
  EXPECT_FALSE(same(run(kOpen + kKernel + kClose, "device 1, ssd"), with));
  separate = true;
  EXPECT_TRUE(same(run(kOpen + kKernel + kClose, "device"), with));
  EXPECT_FALSE(same(run(kOpen + kKernel + kClose, "device 1, host"), with));
}

// A retained copy is what the next step finds, whatever is at home.
TEST_F(Interpreter, RetainedCopiesAreTakenUp) {
  Observations with = run(kOpen + kKernel + kHome + kClose);
  Observations retained = run(kOpen + kKernel + kHome + kRetain);
  EXPECT_TRUE(same(with, retained));
  EXPECT_GT(retained.takenUp, 0);
  EXPECT_EQ(with.takenUp, 0);
}

// What is created is garbage, which is known, and another for each seed.
TEST_F(Interpreter, GarbageShows) {
  std::string create = "%w = boa.create @w[%c0] : <tensor<8xf32>, device>\n";
  Observations one = run(create + kKernel + kHome + kClose);
  EXPECT_NE(one.undefined, "");
  std::string write = "boa.launch @k writes(%w : <tensor<8xf32>, device>)\n";
  std::string read = "boa.launch @k reads(%w : <tensor<8xf32>, device>)\n";
  EXPECT_FALSE(same(run(create + read + kClose), run(create + read + kClose, "ssd", 2)));
  EXPECT_TRUE(
      same(run(create + write + read + kClose), run(create + write + read + kClose, "ssd", 2)));
  Observations stored = run(create + kHome + kClose);
  EXPECT_EQ(stored.undefined, "");
  EXPECT_TRUE(same(stored, run(create + kHome + kClose, "ssd", 2)));
}

// Each broken rule is told.
TEST_F(Interpreter, FaultsAreTold) {
  EXPECT_NE(run(kOpen).fault.find("never released"), std::string::npos);
  EXPECT_NE(run(kOpen + kClose + kClose).fault.find("after its release"), std::string::npos);
  EXPECT_NE(run(kOpen + kClose + kKernel).fault.find("after its release"), std::string::npos);
  std::string twice = kOpen +
                      "boa.launch @k reads(%w : <tensor<8xf32>, device>) "
                      "updates(%w : <tensor<8xf32>, device>)\n" +
                      kClose;
  EXPECT_NE(run(twice).fault.find("one memory"), std::string::npos);
  std::string part = "%p = boa.prefetch @w[%c0] chunk %c1 count 1 : <tensor<8xf32>, device>\n"
                     "boa.offload %p, @w[%c0] : <tensor<8xf32>, device>\n"
                     "boa.release %p : <tensor<8xf32>, device>\n";
  EXPECT_NE(run(part).fault.find("does not hold"), std::string::npos);
  std::string beyond = "%two = boa.shift %c1, 1\n"
                       "%x = boa.create @x[%two] : <tensor<8xf32>, device>\n";
  EXPECT_NE(run(beyond).fault.find("out of the bounds"), std::string::npos);
}

// A sum is the same in any order; what is set is that of the last.
TEST_F(Interpreter, OnlySumsMayBeReordered) {
  auto loop = [&](const char *order, const char *store) {
    return run("boa.loop micro_batch %m = 0 to 2 " + std::string(order) +
               " {\n%t = boa.read @input.tokens[%m] : tensor<8xf32>\n%first = boa.at_first %m\n" +
               store +
               "}\n%s = boa.read @x[%c0] : tensor<8xf32>\nboa.write %s, @w[%c0] : tensor<8xf32>\n");
  };
  const char *add = "boa.accumulate %t, @x[%c0] initial %first : tensor<8xf32>\n";
  const char *set = "boa.write %t, @x[%c0] : tensor<8xf32>\n";
  EXPECT_EQ(loop("forward", add).undefined, "");
  EXPECT_TRUE(same(loop("forward", add), loop("reverse", add)));
  EXPECT_FALSE(same(loop("forward", set), loop("reverse", set)));
}
