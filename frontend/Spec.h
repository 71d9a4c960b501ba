//===- Spec.h - A checked specification -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the checker makes of a program: everything is resolved, every number is
// in range, every shape fits. Stage bodies are straight-line code over numbered
// values, in the vocabulary of the dialect's compute ops, so that IR generation
// translates one operation at a time and can fail at nothing. Depends on neither
// the tree nor MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_SPEC_H
#define BOA_FRONTEND_SPEC_H

#include "frontend/Source.h"

#include <array>

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

struct ParamSpec {
  std::string name;
  Shape shape;
  Init init = Init::Zeros;
  /// Normal: the deviation; Uniform: the half width.
  double scale = 0;
  Position position;
};

enum class OperationKind {
  Linear,
  Embedding,
  LayerNorm,
  RmsNorm,
  Gelu,
  Silu,
  Rotary,
  Attention,
  CrossEntropy,
  Add,
  Mul,
  Scale,
  Split,
};

/// One compute op: value numbers in, value numbers out. The operands stand in
/// the order of the op of this name in dialect/BoaComputeOps.td.
struct Operation {
  OperationKind kind;
  std::vector<uint32_t> operands;
  std::vector<uint32_t> results;
  /// Linear: the weight is [out, in].
  bool transpose = false;
  /// Attention.
  bool causal = false;
  int64_t heads = 0;
  int64_t kvHeads = 0;
  /// LayerNorm, RmsNorm: eps; Rotary: base; Scale: the factor.
  double number = 0;
  Position position;
};

/// A parameter that a stage takes: its own, or another stage's (tied).
struct ParamUse {
  uint32_t stage = 0;
  uint32_t param = 0;
  uint32_t value = 0;
};

struct StageSpec {
  std::string name;
  int64_t repeat = 1;
  bool isLayer = false;
  std::vector<ParamSpec> params;
  /// Values 0 .. arguments - 1 are the activations, in order.
  uint32_t arguments = 0;
  /// Own parameters first, then tied ones, in order of first use.
  std::vector<ParamUse> uses;
  std::vector<Shape> values;
  std::vector<Position> valuePositions;
  std::vector<Operation> operations;
  uint32_t result = 0;
  Position position;
  Position resultPosition;
};

struct ModelSpec {
  std::string name;
  std::vector<StageSpec> stages;
  Position position;
};

enum class Tier { Device, Host, Ssd };
/// Where chunks live: tiers in order, and the share of each; what is left is the last's.
struct Placement {
  struct Part {
    Tier tier = Tier::Device;
    double share = 1; // of all chunks
  };
  std::vector<Part> parts = {Part()};
};
enum class Role { Weights, Gradients, Optimizer, Checkpoints, BoundaryGradients, Saved };
inline constexpr size_t kRoles = 6;
inline constexpr std::array<const char *, kRoles> kRoleNames = {
    "weights", "gradients", "optimizer", "checkpoints", "boundary_gradients", "saved"};
inline constexpr std::array<const char *, 3> kTierNames = {"device", "host", "ssd"};
/// The instruction sets of runtime/kernels/isa.h, behind the choice of the fastest.
inline constexpr std::array<const char *, 6> kKernelNames = {"fastest", "baseline",    "avx2",
                                                             "avx512",  "avx512_bf16", "amx"};

struct OptimizerSpec {
  enum class Kind { AdamW, Sgd };
  enum class Rate { Constant, Linear, Cosine };
  Kind kind = Kind::AdamW;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weightDecay = 0;
  double momentum = 0;
  Rate rate = Rate::Constant;
  double peak = 1e-3, floor = 0;
  /// Steps.
  int64_t warmup = 0;
};

struct TrainSpec {
  /// A path; relative ones already joined to the folder of the spec file.
  std::string data;
  bool masked = false;
  double maskProbability = 0.15;
  int64_t maskToken = 0;
  int64_t vocab = 0, context = 0;
  /// Sequences.
  int64_t batch = 1, microBatch = 1;
  int64_t steps = 1, seed = 1;
  /// Greatest global gradient norm; 0: no clipping.
  double clip = 0;
  bool bf16Weights = false;
  bool bf16Compute = false;
  OptimizerSpec optimizer;
  /// It runs on the device, in its memory.
  bool updateOnDevice = false;
  /// 0: never.
  int64_t evaluateEvery = 0, evaluateBatches = 1;
  /// Steps, seconds; 0: not by these. At the end a commit is always made.
  int64_t commitEvery = 0;
  double commitSeconds = 300;
  /// Commits that are kept, the last among them.
  int64_t commitKeep = 1;
  /// A step whose gradient is not finite is left out, instead of ending the run.
  bool skipNonfinite = false;
  bool vertical = true;
  double delay = 0;
  int64_t prefetch = 1;
  bool recompute = true;
  std::array<Placement, kRoles> place = {};
  Position position;
};

struct SsdSpec {
  std::string path;
  /// Bytes per second; 0: not given.
  int64_t read = 0, write = 0;
  /// Of reads and writes together; 0: no limit.
  int64_t both = 0;
  /// Of one transfer, in nanoseconds.
  int64_t latency = 0;
};

struct MachineSpec {
  std::string name = "default";
  std::string device = "cpu";
  /// SSDs reach its memory, where that is not the host's.
  bool direct = false;
  /// Bytes; 0: no limit.
  int64_t deviceMemory = 0, hostMemory = 0;
  /// 0: all.
  int64_t threads = 0;
  /// Attention in bf16 is the program's own, whatever library there is.
  bool ownAttention = false;
  /// Of kKernelNames: the instruction set of a CPU's kernels.
  size_t kernels = 0;
  /// Rates, for who simulates the machine: operations or bytes in a second; 0: not said.
  int64_t compute = 0, computeBf16 = 0, deviceBandwidth = 0, toDevice = 0, toHost = 0;
  int64_t optimizer = 0, hostBandwidth = 0;
  std::vector<SsdSpec> ssds;
};

struct Spec {
  /// Names of the texts that positions point into.
  std::vector<std::string> files;
  ModelSpec model;
  TrainSpec train;
  MachineSpec machine;
};

} // namespace boa::frontend

#endif // BOA_FRONTEND_SPEC_H
