//===- Adapters.h - Adapters of low rank ------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `adapters = lora(rank = R, alpha = S, targets = "STAGE.W")` of a train block (LoRA, Hu et al.
// 2021). AdapterNames.h says what targets may be. The checked model is rewritten, so nothing behind
// the checker knows adapters:
//
//   - Its own parameters are frozen, but those of `modules_to_save`.
//   - Each target W gets two parameters in its stage: W_lora_a [R, in], which begins uniform with
//     half width 1 / sqrt(in), and W_lora_b [out, R], which begins with zeros. They stand in the
//     order of the model, in whatever order the targets are written.
//   - y = linear(x, W, bias) becomes
//     y = linear(x, W, bias) + linear(S / R * linear(x, transpose(W_lora_a)), transpose(W_lora_b)).
//     With `rslora = true` the factor is S / sqrt(R), and with `dropout = P` the x of the adapter
//     is dropout(x). A stage that shares W shares both.
//
// The sum has the name that the product had in a plan. The product itself is `linear`, those of
// the adapter are `lora_a` and `lora_b`, the scaled one between them is `lora_scaled`, and what is
// left of x is `lora_dropout`.
//
// Every use of a target must be as the weight of `linear`, each time as W or each time as
// transpose(W). Anything else is an error that names the place.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_ADAPTERS_H
#define BOA_FRONTEND_ADAPTERS_H

#include "frontend/Settings.h"

namespace boa::frontend {

/// Rewrites the model of `spec` if the train block has adapters. Then `spec.base` is the model
/// before, and `spec.train.adapters` says them in full. Leaves it as it is after an error. `given`:
/// the settings of the train block.
void addAdapters(const Constants &constants, CheckContext context, const GivenSettings &given,
                 Spec &spec);

} // namespace boa::frontend

#endif // BOA_FRONTEND_ADAPTERS_H
