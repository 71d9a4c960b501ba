//===- TracerStep.cpp - What the ops of the step phase do -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Tracer.h"
#include "passes/analysis/ValueNumber.h"

using namespace mlir;
using namespace boa::value_number;

namespace boa {

void Tracer::read(ReadOp op, const Position &at) {
  for (const Access &access : accessesOf(op, at)) {
    values[op.getValue()] = use(op, access, homeOf(access));
    valueRead(op, access, homeOf(access));
  }
}

void Tracer::write(WriteOp op, const Position &at) {
  for (const Access &access : accessesOf(op, at))
    homeOf(access).set(access.first, access.count, make(op, values.lookup(op.getValue())));
}

void Tracer::accumulate(AccumulateOp op, const Position &at) {
  for (const Access &access : accessesOf(op, at)) {
    if (access.fresh)
      homeOf(access).set(access.first, access.count, kZeros);
    addTo(op, access, homeOf(access), values.lookup(op.getValue()));
  }
}

void Tracer::call(CallOp op) {
  uint64_t inputs = hashOf(op.getCallee());
  for (Value input : op.getInputs())
    inputs = mix(inputs, values.lookup(input));
  workDone += term(inputs);
  for (auto [i, output] : llvm::enumerate(op.getOutputs()))
    values[output] = resultOf(inputs, i);
}

void Tracer::optimizerUpdate(OptimizerUpdateOp op, const Position &at) {
  auto group = module.lookupSymbol<GroupOp>(op.getGroup());
  int64_t layer = at.get(op.getLayer());
  if (layer < 0 || layer >= int64_t(group.getRepeat()) || op.getFirst() >= op.getLast() ||
      int64_t(op.getLast()) > group.getChunks())
    return violation(op, "updates layer " + Twine(layer) + ", chunks " + Twine(op.getFirst()) +
                             " to " + Twine(op.getLast()) + ", of a group with " +
                             Twine(group.getRepeat()) + " layers of " + Twine(group.getChunks()) +
                             " chunks");
  int64_t step = at.get(op.getStep());
  if (step == 0)
    return;
  // The gradient, the weights, then the other parts that an update changes.
  SmallVector<Versions *> parts;
  SmallVector<Access> accesses = accessesOf(op, at);
  for (const Access &access : accesses) {
    parts.push_back(&homeOf(access));
    valueRead(op, access, *parts.back());
  }
  if (!accesses.empty() &&
      !updateChunks(op, op.getGroup(), step, accesses.front().first, accesses.front().count, parts))
    undefinedRead(op, accesses.front());
}

void Tracer::gradientNorm(GradientNormOp op, const Position &at) {
  for (const Access &access : accessesOf(op, at)) {
    gradientSum += term(use(op, access, homeOf(access)));
    valueRead(op, access, homeOf(access));
  }
}

void Tracer::finishNorm(FinishNormOp op, const Position &at) {
  norms[at.get(op.getStep())] = mix(gradientSum, 1);
  gradientSum = 0;
}

} // namespace boa
