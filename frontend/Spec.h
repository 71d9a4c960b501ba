//===- Spec.h - A checked specification -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The result of the checker: names are resolved, numbers are in range, shapes fit.
// Stage bodies are straight-line code over numbered values, in the vocabulary of the
// dialect's compute ops. So IR generation translates one operation at a time and
// cannot fail. Depends on neither the tree nor MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_SPEC_H
#define BOA_FRONTEND_SPEC_H

#include "frontend/Source.h"
#include "runtime/abi/settings.h"

namespace boa::frontend {

/// A dimension: its value, and how it was written.
struct Dim {
  int64_t value = 1;
  std::string text;
};

struct Shape {
  enum class Kind { Tensor, Tokens, Loss };
  Kind kind = Kind::Tensor;
  std::vector<Dim> dims;
  /// Activations have an implicit leading batch dimension, parameters none.
  bool batched = true;

  std::vector<int64_t> values() const;
  bool sameValues(const Shape &other) const { return values() == other.values(); }
  /// `[context, 3 * width] = [128, 768]`; only once where nothing is symbolic.
  std::string print() const;
};

enum class Init { Zeros, Ones, Normal, Uniform };

/// Two parameters of the same stage, whose product is added to a weight of linear.
struct AdapterSpec {
  uint32_t down = 0, up = 0;
  double alpha = 0;
  bool rslora = false;     // scaled by alpha / sqrt(rank)
  bool transposed = false; // the weight is [out, in]
};

struct ParamSpec {
  std::string name;
  Shape shape;
  Init init = Init::Zeros;
  /// Normal: the deviation; Uniform: the half width.
  double scale = 0;
  bool frozen = false;
  /// Of its learning rate, and its own weight decay.
  std::optional<double> lrScale, weightDecay;
  /// The name of its tensor in a folder of Hugging Face; in a layer, `*` is the layer's number.
  std::string external;
  std::optional<AdapterSpec> adapter;
  Position position;
};

enum class OperationKind {
  Linear,
  Embedding,
  LayerNorm,
  RmsNorm,
  Activation,
  Rotary,
  Attention,
  CrossEntropy,
  Add,
  Mul,
  Scale,
  Split,
  Dropout,
};

/// How the angles of a rotary embedding are scaled (boa.rotary in dialect/AttentionOps.td).
struct RotaryScaling {
  /// 0: they are not.
  double factor = 0;
  /// 0: all of them by the factor.
  int64_t context = 0;
  double low = 0, high = 0;
};

/// One compute op: value numbers in, value numbers out. The operands stand in
/// the order of the op of this name (dialect/OPS.md).
struct Operation {
  OperationKind kind;
  std::vector<uint32_t> operands;
  std::vector<uint32_t> results;
  /// Linear: the weight is [out, in].
  bool transpose = false;
  /// Activation: the name of its op, which is that of the builtin.
  std::string function;
  /// Activation: gelu by erf.
  bool exact = false;
  /// Attention, Rotary; of a norm 0: it is of the whole last dimension.
  int64_t heads = 0;
  /// Attention.
  bool causal = false;
  int64_t kvHeads = 0;
  /// Attention: how many keys a row sees; 0: all, or all before.
  int64_t window = 0;
  RotaryScaling scaling;
  /// LayerNorm, RmsNorm: eps; Rotary: base; Scale: the factor; Dropout: the probability.
  double number = 0;
  /// Dropout: which of its stage it is.
  int64_t site = 0;
  /// By which a plan finds its result: the name of its `let`, or that of the op.
  std::string name;
  /// What the plan says of its result, an inner activation.
  ActivationSettings plan;
  Position position;
};

/// A parameter that a stage takes: its own, or another stage's (tied).
struct ParamUse {
  uint32_t stage = 0;
  uint32_t param = 0;
  uint32_t value = 0;
};

/// What an argument of a stage takes.
struct TakenSpec {
  enum class Kind { Tokens, Targets, Result };
  Kind kind = Kind::Result;
  /// A result of an earlier stage.
  uint32_t stage = 0;
  uint32_t result = 0;

  bool operator==(const TakenSpec &other) const {
    return kind == other.kind && stage == other.stage && result == other.result;
  }
};

struct StageSpec {
  std::string name;
  int64_t repeat = 1;
  bool isLayer = false;
  std::vector<ParamSpec> params;
  /// Of the activations, in order: the first values.
  std::vector<TakenSpec> takes;
  /// Own parameters first, then tied ones, in order of first use.
  std::vector<ParamUse> uses;
  std::vector<Shape> values;
  std::vector<Position> valuePositions;
  std::vector<Operation> operations;
  std::vector<uint32_t> results;
  Position position;
  Position resultPosition;
};

struct ModelSpec {
  std::string name;
  std::vector<StageSpec> stages;
  Position position;
};

struct Spec {
  /// Names of the texts that positions point into.
  std::vector<std::string> files;
  ModelSpec model;
  /// The model without its adapters, if it has some.
  std::optional<ModelSpec> base;
  ModelSettings shape;
  TrainSettings train;
  PlanSettings plan;
  MachineSettings machine;
  /// Paths of the settings that the plan block gives, as --set takes them.
  std::vector<std::string> givenOfPlan;
  /// The same with their values, as they are written.
  std::vector<std::string> valuesOfPlan;
  /// Its blocks of activations, as text.
  std::vector<std::string> activationsOfPlan;
  /// Where the train block names its data.
  Position dataPosition;
};

} // namespace boa::frontend

#endif // BOA_FRONTEND_SPEC_H
