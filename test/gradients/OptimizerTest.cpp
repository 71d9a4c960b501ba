//===- OptimizerTest.cpp - Compiled optimizers against references ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/model/Optimizers.h"
#include "passes/target/cpu/Codegen.h"
#include "passes/target/cpu/CpuPasses.h"
#include "test/runtime/reference_optimizer.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

#include <random>

using namespace mlir;

namespace boa {
namespace {

constexpr int64_t kElements = 3 * BOA_UPDATE_PART;
/// Parameters of other rates, with a gap behind the first: the second begins in the middle of a
/// block.
const boa_update_range kRanges[] = {{0, 1003, 2.5e-2f, 0.1f}, {1008, kElements, 1e-2f, 0}};
const float kScale = 0.7f;

/// The functions of an optimizer, compiled.
class Compiled {
public:
  Compiled(const OptimizerSettings &settings, bool split) {
    DialectRegistry registry;
    registry.insert<BoaDialect>();
    registerKernelDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    // An update, so that there is something to compile, and halves of masters.
    module = parseSourceString<ModuleOp>(std::string(R"mlir(
      boa.group @a repeat 1 { boa.param @w : tensor<8xf32> = "ones" }
      boa.storage @weights.a[1] : tensor<2048xf32> on device role weights persistent
      boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
      boa.step @step(%step, %pending) {
        %c0 = arith.constant 0 : index
        %w = boa.prefetch @weights.a[%c0] : <tensor<2048xf32>, host>
        %g = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, host>
        boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>, host>)
            gradient(%g : <tensor<2048xf32>, host>)
      }
    )mlir") + (split ? "boa.storage @low.b[1] : tensor<2048xi16> on device role master" : ""),
                                         &context);
    OptimizerOp op = createOptimizer(*module, settings);
    states = op.getStateTypes().size();
    PassManager pm(&context);
    pm.addPass(createEmitOptimizer());
    pm.addNestedPass<func::FuncOp>(createSCFToControlFlowPass());
    pm.addPass(createCpuConvertKernelToLLVM());
    pm.addPass(createReconcileUnrealizedCastsPass());
    EXPECT_TRUE(succeeded(pm.run(*module)));
    for (Operation &inner : llvm::make_early_inc_range(*module->getBody()))
      if (isa<StepOp, StorageOp, GroupOp, OptimizerOp>(inner))
        inner.erase();
    auto made = JitProgram::create(*module, {});
    if (!made) {
      ADD_FAILURE() << llvm::toString(made.takeError());
      return;
    }
    program = std::move(*made);
    auto find = [&](auto &function, StringRef name) {
      auto address = program->lookupAs<std::decay_t<decltype(function)>>(name);
      ASSERT_TRUE(bool(address));
      function = *address;
    };
    find(functions.prepare, kPrepareFunction);
    find(functions.update, kUpdateFunction);
  }

  boa_optimizer functions = {};
  size_t states = 0;

private:
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<JitProgram> program;
};

/// A chunk of everything, and its update.
struct Chunk {
  explicit Chunk(bool split) : split(split), states(2, std::vector<float>(kElements)) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < kElements; ++i) {
      weights.push_back(normal(random) * 0.02f);
      // As in a model: rows whose gradients differ by orders of magnitude.
      gradient.push_back(normal(random) * 1e-2f * std::pow(10.0f, float(i / 64 % 4)));
      uint32_t bits;
      std::memcpy(&bits, &weights.back(), sizeof bits);
      high.push_back(MasterHigh(bits));
      low.push_back(MasterLow(bits));
    }
  }

  bool Update(const boa_optimizer &with, int64_t step, int64_t begin = 0, int64_t end = kElements,
              uint32_t seed = 5) {
    float scalars[BOA_MOST_SCALARS];
    with.prepare(step, scalars);
    void *const addresses[] = {states[0].data(), states[1].data()};
    void *const values = split ? static_cast<void *>(high.data()) : weights.data();
    return with.update(values, split ? low.data() : nullptr, gradient.data(), addresses, scalars,
                       kScale, kRanges, 2, begin, end, kElements, seed) != 0;
  }

  float Weight(int64_t i) const {
    if (!split)
      return weights[i];
    const uint32_t bits = JoinMaster(high[i], low[i]);
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  bool operator==(const Chunk &other) const {
    for (int i : {0, 1})
      if (std::memcmp(states[i].data(), other.states[i].data(), kElements * 4) != 0)
        return false;
    return weights == other.weights && high == other.high && low == other.low;
  }

  const bool split;
  std::vector<float> weights, gradient;
  std::vector<uint16_t> high;
  std::vector<int16_t> low;
  std::vector<std::vector<float>> states; // f32, or less
};

OptimizerSettings Settings(OptimizerKind kind, double momentum = 0,
                           StateType state = StateType::f32) {
  OptimizerSettings settings;
  settings.kind = kind;
  settings.momentum = momentum;
  settings.beta2 = kind == OptimizerKind::lion ? 0.99 : 0.95;
  settings.state = state;
  return settings;
}

/// All optimizers of the language.
const OptimizerSettings kAll[] = {Settings(OptimizerKind::adamw), Settings(OptimizerKind::sgd),
                                  Settings(OptimizerKind::sgd, 0.9), Settings(OptimizerKind::lion)};

/// One element, in double, by the formulas of the papers.
struct Reference {
  double w, m = 0, v = 0;
  void Step(const OptimizerSettings &s, int64_t step, double g, double rate, double decay) {
    double direction = g;
    switch (s.kind) {
    case OptimizerKind::adamw:
      m = s.beta1 * m + (1 - s.beta1) * g;
      v = s.beta2 * v + (1 - s.beta2) * g * g;
      direction = m / (1 - std::pow(s.beta1, double(step))) /
                  (std::sqrt(v / (1 - std::pow(s.beta2, double(step)))) + s.eps);
      break;
    case OptimizerKind::sgd:
      direction = m = s.momentum * m + g;
      break;
    case OptimizerKind::lion: {
      const double mix = s.beta1 * m + (1 - s.beta1) * g;
      direction = mix > 0 ? 1 : mix < 0 ? -1 : 0;
      m = s.beta2 * m + (1 - s.beta2) * g;
      break;
    }
    }
    w -= rate * (direction + decay * w);
  }
};

/// The root mean square of what ten steps move the weights in the reference, and of the
/// difference to `chunk` after them.
std::pair<double, double> Compare(const OptimizerSettings &settings, Chunk &chunk,
                                  const boa_optimizer &with) {
  std::vector<Reference> references;
  for (int64_t i = 0; i < kElements; ++i)
    references.push_back({chunk.Weight(i)});
  const std::vector<Reference> before = references;
  std::vector<float> gradient = chunk.gradient;
  for (int64_t step = 1; step <= 10; ++step) {
    for (int64_t i = 0; i < kElements; ++i)
      chunk.gradient[i] = gradient[(i + step) % 64 + i / 64 * 64];
    EXPECT_TRUE(chunk.Update(with, step));
    for (const boa_update_range &range : kRanges)
      for (int64_t i = range.begin; i < range.end; ++i)
        references[i].Step(settings, step, double(chunk.gradient[i]) * kScale, range.rate,
                           range.decay);
  }
  double moved = 0, wrong = 0;
  for (int64_t i = 0; i < kElements; ++i) {
    moved += std::pow(references[i].w - before[i].w, 2);
    wrong += std::pow(references[i].w - chunk.Weight(i), 2);
  }
  return {std::sqrt(moved / kElements), std::sqrt(wrong / kElements)};
}

TEST(Optimizer, AgreesWithDouble) {
  for (const OptimizerSettings &settings : kAll)
    for (bool split : {false, true}) {
      Compiled compiled(settings, split);
      Chunk chunk(split);
      const auto [moved, wrong] = Compare(settings, chunk, compiled.functions);
      EXPECT_LT(wrong, 1e-5 * moved) << WordOf(settings.kind) << " " << split;
    }
}

// States are rounded at random, in blocks whose values differ by three orders of magnitude. Lion
// takes a sign, which a little difference turns.
TEST(Optimizer, NarrowStatesAgreeWithDouble) {
  for (OptimizerSettings settings : kAll)
    for (StateType state : {StateType::bf16, StateType::int8}) {
      if (settings.kind == OptimizerKind::sgd && settings.momentum == 0)
        continue;
      settings.state = state;
      Compiled compiled(settings, true);
      Chunk chunk(true);
      const auto [moved, wrong] = Compare(settings, chunk, compiled.functions);
      EXPECT_LT(wrong, (state == StateType::bf16 ? 0.05 : 0.2) * moved) << WordOf(settings.kind);
      EXPECT_GT(wrong, 1e-5 * moved) << "states were not rounded";
    }
}

/// The bits of plain loops that the processor does not fuse.
TEST(Optimizer, AdamWMakesTheBitsOfPlainLoops) {
  for (bool split : {false, true}) {
    Compiled compiled(Settings(OptimizerKind::adamw), split);
    reference_settings = Settings(OptimizerKind::adamw);
    Chunk chunk(split), plain(split);
    for (int64_t step : {1, 2, 1000}) {
      EXPECT_TRUE(chunk.Update(compiled.functions, step));
      EXPECT_TRUE(plain.Update(kReferenceAdamW, step));
    }
    EXPECT_TRUE(chunk == plain);
  }
}

TEST(Optimizer, PartsChangeNoBit) {
  for (StateType state : {StateType::f32, StateType::bf16, StateType::int8}) {
    Compiled compiled(Settings(OptimizerKind::adamw, 0, state), true);
    Chunk whole(true), parts(true);
    for (int64_t step = 1; step <= 3; ++step) {
      EXPECT_TRUE(whole.Update(compiled.functions, step));
      for (int64_t begin : {2, 0, 1})
        EXPECT_TRUE(parts.Update(compiled.functions, step, begin * BOA_UPDATE_PART,
                                 (begin + 1) * BOA_UPDATE_PART));
    }
    EXPECT_TRUE(whole == parts) << WordOf(state);
  }
}

// Of the range behind the gap and of the last element, too.
TEST(Optimizer, NoticesWhatIsNotFinite) {
  for (OptimizerSettings settings : kAll)
    for (StateType state : {StateType::f32, StateType::bf16, StateType::int8}) {
      settings.state = state;
      Compiled compiled(settings, false);
      for (int64_t at : {int64_t(5), int64_t(1002), int64_t(1008), kElements - 1})
        for (float value : {INFINITY, -INFINITY, NAN}) {
          Chunk chunk(false);
          chunk.gradient[at] = value;
          EXPECT_FALSE(chunk.Update(compiled.functions, 1)) << WordOf(settings.kind) << at;
        }
      Chunk gap(false);
      gap.gradient[1005] = NAN; // no parameter's
      EXPECT_TRUE(gap.Update(compiled.functions, 1));
    }
}

// What a state becomes in mean over many seeds is what it is in f32, within blocks whose values
// differ by three orders of magnitude.
TEST(Optimizer, RoundingHasTheRightMean) {
  for (StateType state : {StateType::bf16, StateType::int8}) {
    // Without a rate, and with half of the momentum forgotten: m = 0.5 m + 0.5 g.
    OptimizerSettings settings = Settings(OptimizerKind::sgd, 0.5, state), full = settings;
    full.state = StateType::f32;
    Compiled narrow(settings, false), wide(full, false);
    Chunk exact(false);
    EXPECT_TRUE(exact.Update(wide.functions, 1));
    EXPECT_TRUE(exact.Update(wide.functions, 2));
    std::vector<double> mean(kElements);
    constexpr int kSeeds = 400;
    for (uint32_t seed = 0; seed < kSeeds; ++seed) {
      Chunk chunk(false);
      EXPECT_TRUE(chunk.Update(narrow.functions, 1, 0, kElements, seed * 77 + 1));
      const std::vector<float> before = chunk.weights;
      // The second update moves the weights by the state: w' = w - rate (0.5 m + g).
      EXPECT_TRUE(chunk.Update(narrow.functions, 2, 0, kElements, seed * 91 + 3));
      for (int64_t i = 1008; i < kElements; ++i)
        mean[i] += (before[i] - chunk.weights[i]) / kSeeds;
    }
    double wrong = 0, all = 0;
    for (int64_t i = 1008; i < kElements; ++i) {
      wrong += mean[i] - exact.states[0][i] * 1e-2;
      all += std::abs(exact.states[0][i] * 1e-2);
    }
    EXPECT_LT(std::abs(wrong), 1e-3 * all) << WordOf(state);
  }
}

} // namespace
} // namespace boa
