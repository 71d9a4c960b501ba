//===- Optimizers.cpp - The optimizers of the language --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A new optimizer is a text here, a word of OptimizerKind and its hyperparameters in
// runtime/abi/settings.def. The texts have states in 8 bits; other types replace these.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Optimizers.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace boa {

// Loshchilov and Hutter, arXiv 1711.05101:
//   m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2
//   w = w - rate (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay w)
// The betas stay below 1 in f32, where a moment would never change. The corrections are those of
// the rounded betas: 1 - 0.999f is 1.3e-5 less than 0.001.
static constexpr char kAdamW[] = R"mlir(
boa.optimizer @adamw {beta1 = 0.0, beta2 = 0.0, eps = 0.0}
    states {momentum = si8, variance = ui8} prepare {
^bb0(%t: f64, %beta1: f64, %beta2: f64, %eps: f64):
  %one = arith.constant 1.0 : f64
  %one_f32 = arith.constant 1.0 : f32
  %below_one = arith.constant 0x3F7FFFFF : f32
  %beta1_f32 = arith.truncf %beta1 : f64 to f32
  %beta2_f32 = arith.truncf %beta2 : f64 to f32
  %b1 = arith.minimumf %beta1_f32, %below_one : f32
  %b2 = arith.minimumf %beta2_f32, %below_one : f32
  %rest1 = arith.subf %one_f32, %b1 : f32
  %rest2 = arith.subf %one_f32, %b2 : f32
  %eps_f32 = arith.truncf %eps : f64 to f32
  %b1_f64 = arith.extf %b1 : f32 to f64
  %b2_f64 = arith.extf %b2 : f32 to f64
  %power1 = math.powf %b1_f64, %t : f64
  %power2 = math.powf %b2_f64, %t : f64
  %past1 = arith.subf %one, %power1 : f64
  %past2 = arith.subf %one, %power2 : f64
  %inverse1 = arith.divf %one, %past1 : f64
  %inverse2 = arith.divf %one, %past2 : f64
  %correction1 = arith.truncf %inverse1 : f64 to f32
  %correction2 = arith.truncf %inverse2 : f64 to f32
  boa.yield %b1, %rest1, %b2, %rest2, %eps_f32, %correction1, %correction2
      : f32, f32, f32, f32, f32, f32, f32
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32, %m: f32, %v: f32, %b1: f32, %rest1: f32,
     %b2: f32, %rest2: f32, %eps: f32, %correction1: f32, %correction2: f32):
  %old_m = arith.mulf %b1, %m : f32
  %new_m = arith.mulf %rest1, %g : f32
  %momentum = arith.addf %old_m, %new_m : f32
  %square = arith.mulf %g, %g : f32
  %old_v = arith.mulf %b2, %v : f32
  %new_v = arith.mulf %rest2, %square : f32
  %variance = arith.addf %old_v, %new_v : f32
  %mean = arith.mulf %momentum, %correction1 : f32
  %mean_square = arith.mulf %variance, %correction2 : f32
  %root = math.sqrt %mean_square : f32
  %divisor = arith.addf %root, %eps : f32
  %direction = arith.divf %mean, %divisor : f32
  %decayed = arith.mulf %weight_decay, %w : f32
  %sum = arith.addf %direction, %decayed : f32
  %change = arith.mulf %rate, %sum : f32
  %next = arith.subf %w, %change : f32
  boa.yield %next, %momentum, %variance : f32, f32, f32
}
)mlir";

// w = w - rate (g + decay w)
static constexpr char kSgd[] = R"mlir(
boa.optimizer @sgd {} states {} prepare {
^bb0(%t: f64):
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
  %decayed = arith.mulf %weight_decay, %w : f32
  %sum = arith.addf %g, %decayed : f32
  %change = arith.mulf %rate, %sum : f32
  %next = arith.subf %w, %change : f32
  boa.yield %next : f32
}
)mlir";

// m = momentum m + g; w = w - rate (m + decay w)
static constexpr char kSgdMomentum[] = R"mlir(
boa.optimizer @sgd {momentum = 0.0} states {momentum = si8} prepare {
^bb0(%t: f64, %momentum: f64):
  %share = arith.truncf %momentum : f64 to f32
  boa.yield %share : f32
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32, %m: f32, %share: f32):
  %old = arith.mulf %share, %m : f32
  %momentum = arith.addf %old, %g : f32
  %decayed = arith.mulf %weight_decay, %w : f32
  %sum = arith.addf %momentum, %decayed : f32
  %change = arith.mulf %rate, %sum : f32
  %next = arith.subf %w, %change : f32
  boa.yield %next, %momentum : f32, f32
}
)mlir";

// Chen et al., arXiv 2302.06675:
//   w = w - rate (sign(b1 m + (1 - b1) g) + decay w)        m = b2 m + (1 - b2) g
static constexpr char kLion[] = R"mlir(
boa.optimizer @lion {beta1 = 0.0, beta2 = 0.0} states {momentum = si8} prepare {
^bb0(%t: f64, %beta1: f64, %beta2: f64):
  %one = arith.constant 1.0 : f32
  %below_one = arith.constant 0x3F7FFFFF : f32
  %beta1_f32 = arith.truncf %beta1 : f64 to f32
  %beta2_f32 = arith.truncf %beta2 : f64 to f32
  %b1 = arith.minimumf %beta1_f32, %below_one : f32
  %b2 = arith.minimumf %beta2_f32, %below_one : f32
  %rest1 = arith.subf %one, %b1 : f32
  %rest2 = arith.subf %one, %b2 : f32
  boa.yield %b1, %rest1, %b2, %rest2 : f32, f32, f32, f32
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32, %m: f32, %b1: f32, %rest1: f32, %b2: f32,
     %rest2: f32):
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %minus_one = arith.constant -1.0 : f32
  %old = arith.mulf %b1, %m : f32
  %new = arith.mulf %rest1, %g : f32
  %mix = arith.addf %old, %new : f32
  %above = arith.cmpf ogt, %mix, %zero : f32
  %below = arith.cmpf olt, %mix, %zero : f32
  %negative = arith.select %below, %minus_one, %zero : f32
  %sign = arith.select %above, %one, %negative : f32
  %decayed = arith.mulf %weight_decay, %w : f32
  %sum = arith.addf %sign, %decayed : f32
  %change = arith.mulf %rate, %sum : f32
  %next = arith.subf %w, %change : f32
  %old_m = arith.mulf %b2, %m : f32
  %new_m = arith.mulf %rest2, %g : f32
  %momentum = arith.addf %old_m, %new_m : f32
  boa.yield %next, %momentum : f32, f32
}
)mlir";

static StringRef textOf(const OptimizerSettings &settings) {
  switch (settings.kind) {
  case OptimizerKind::adamw:
    return kAdamW;
  case OptimizerKind::lion:
    return kLion;
  case OptimizerKind::sgd:
    return settings.momentum > 0 ? kSgdMomentum : kSgd;
  }
  llvm_unreachable("an optimizer");
}

/// The settings of the names that are hyperparameters.
static DictionaryAttr fillHyperparameters(DictionaryAttr names, const OptimizerSettings &settings) {
  Builder builder(names.getContext());
  NamedAttrList values(names);
  settings.Visit([&](const SettingRow &row, const auto &member) {
    if constexpr (std::is_same_v<std::decay_t<decltype(member)>, double>)
      if (values.get(row.key))
        values.set(row.key, builder.getF64FloatAttr(member));
  });
  return values.getDictionary(names.getContext());
}

static DictionaryAttr storeStates(DictionaryAttr states, StateType stored) {
  Builder builder(states.getContext());
  NamedAttrList types(states);
  if (stored != StateType::int8)
    for (NamedAttribute state : states)
      types.set(state.getName(),
                TypeAttr::get(stored == StateType::bf16 ? Type(builder.getBF16Type())
                                                        : Type(builder.getF32Type())));
  return types.getDictionary(states.getContext());
}

OptimizerOp createOptimizer(ModuleOp module, const OptimizerSettings &settings) {
  MLIRContext *context = module.getContext();
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(textOf(settings), context);
  auto op = *parsed->getOps<OptimizerOp>().begin();
  op.setHyperparametersAttr(fillHyperparameters(op.getHyperparameters(), settings));
  op.setStatesAttr(storeStates(op.getStates(), settings.state));
  op->walk([&](Operation *inner) { inner->setLoc(module.getLoc()); });
  op->moveBefore(module.getBody(), module.getBody()->end());
  return op;
}

} // namespace boa
