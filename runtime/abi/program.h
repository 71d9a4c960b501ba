//===- program.h - What a compiled program says of itself -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The descriptor that stands in every compiled program as JSON (boa_program),
// parsed. Field names in the JSON are the member names below, in snake_case as
// they stand; of settings the keys of runtime/abi/settings.def. All sizes in bytes unless the name
// says elements.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_PROGRAM_H
#define BOA_RUNTIME_ABI_PROGRAM_H

#include "runtime/abi/abi.h"
#include "runtime/abi/frozen.h"
#include "runtime/abi/optimizer.h"
#include "runtime/abi/settings.h"
#include "runtime/abi/tables.h"

#include "absl/status/statusor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boa {

/// Some chunks of an entry, and where they live between uses.
struct Home {
  enum Tier { device, host, ssd };
  Tier tier = ssd;
  int32_t chunks = 0;
};
const char *TierName(Home::Tier);

/// Some entries of a storage, one after another, and where the chunks of each live.
struct EntryHomes {
  int64_t entries = 0;
  std::vector<Home> homes; // in order; of all chunks
};

/// Slots of one size in one space (runtime/abi/abi.h).
struct SlotPool {
  int32_t space = 0; // "device" or "host" in the JSON
  int32_t chunks = 0;
  int32_t slots = 0;
  int32_t shared = 0; // storages that name this number share these slots; 0: of one storage alone
};

/// The purposes of storages, by which traffic is reported. In the order in which a person thinks
/// of them.
inline constexpr const char *kRoles[] = {
    "weights",
    "master", // lower halves of master weights
    "gradients",
    "checkpoints", // boundary activations
    "boundary_gradients",
    "saved", // activations kept for backward
    "tokens",
    "targets",
    "loss_gradients", // of the step's loss, by the loss of each micro-batch
    "loss",
    "logits",
    "document_starts", // of each token, the position where its document begins
    "dropout_keys",    // of each token in each layer, what its random choices follow from
    "positions",       // of tokens, in their text
    "cache",           // keys and values of earlier positions
    "prepared",        // weights in the form that a kernel asks for
};

struct Storage {
  std::string name;              // "weights.block"
  std::string role;              // of kRoles, or the name of a state of the optimizer
  std::vector<int64_t> entries;  // dimensions; entry index is row-major
  int64_t bytes = 0;             // of one entry, a multiple of 4096 * chunks
  int32_t chunks = 1;            // equal parts of an entry
  bool persistent = false;       // part of what a commit saves
  std::vector<EntryHomes> homes; // in order; of all entries
  std::vector<SlotPool> pools;

  int64_t entry_count() const;
  int64_t chunk_bytes() const { return bytes / chunks; }
  /// The homes of an entry's chunks, in order.
  const std::vector<Home> &HomesOf(int64_t entry) const;
  Home::Tier TierOf(int64_t entry, int32_t chunk) const;
  /// The chunks of all entries that live there.
  int64_t ChunksOn(Home::Tier) const;
  /// Whether one of its chunks lives there.
  bool LivesOn(Home::Tier) const;
  /// Whether a chunk has a place on SSD: it lives there, or a commit saves it.
  bool HasExtent(int64_t entry, int32_t chunk) const {
    return persistent || TierOf(entry, chunk) == Home::ssd;
  }
  /// Checks that `homes` name each chunk of each entry. The error says how many they name.
  absl::Status CheckHomes() const;
};

/// Of a tensor of that shape.
inline int64_t CountElements(const std::vector<int64_t> &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

/// Two parameters that are trained beside a frozen weight w of `linear`, in its stage. The program
/// computes linear(x, w) + scale * linear(linear(x, a), b), with a [rank, in] and b [out, rank].
struct Adapter {
  std::string down, up; // the names of a and b; empty: the weight has none
  double alpha = 0;
  bool transposed = false; // w is [out, in]
  bool rslora = false;     // the scale is alpha / sqrt(rank) instead of alpha / rank

  double Scale(int64_t rank) const {
    return alpha / (rslora ? std::sqrt(double(rank)) : double(rank));
  }
};

struct Parameter {
  std::string name; // "qkv_w"
  std::vector<int64_t> shape;
  int64_t offset = 0;    // elements, in its group's entry
  std::string init;      // "normal", "uniform", "ones" or "zeros"
  double init_scale = 0; // deviation, or half-width
  int64_t number = 0;    // among all parameters of the stage: initial values follow from it
  double lr_scale = 1;   // factor of the learning rate
  double decay = 0;      // weight decay
  /// Of its tensor in a folder of Hugging Face; in a layer, `*` is the layer's number. May be
  /// empty.
  std::string external = {};
  Adapter adapter = {}; // of this weight
  /// The entries of its group are parts of one parameter along this dimension
  /// (runtime/abi/parts.h), and `shape` is that of a part; -1: each is a parameter by itself.
  int64_t split = -1;

  int64_t elements() const { return CountElements(shape); }
};

/// Parameters that are stored, moved and updated together: those of one layer
/// (count = depth) or of one stage (count = 1), packed in one entry. Frozen ones are in a group
/// by itself, of the same name.
struct Group {
  std::string name;   // "block"
  int64_t number = 0; // among the names of groups: initial values follow from it
  int64_t count = 1;
  bool layer = false;   // repeats, if only once: names have an index
  int64_t elements = 0; // of one entry, padded: chunks * chunk_elements
  int32_t chunks = 1;
  int64_t chunk_elements = 0;
  std::string weight_type; // "f32" or "bf16"
  std::vector<Parameter> parameters;
  // Storage ids; -1 if there is no such storage.
  int32_t weights = -1, low = -1, gradient = -1;
  /// Storage ids: all states of the optimizer, in its order, if the group has a gradient.
  std::vector<int64_t> states;
};

/// A state that the optimizer keeps of each element.
struct OptimizerState {
  std::string name; // "momentum"
  std::string type; // as it is stored, of kStateTypes
};
/// si8 and ui8 are codes with a scale for each block of elements (runtime/abi/optimizer.h).
inline constexpr const char *kStateTypes[] = {"f32", "bf16", "si8", "ui8"};
inline bool IsCode(const std::string &state_type) { return state_type.back() == '8'; }
/// Of a chunk of so many elements.
int64_t StateBytes(const std::string &state_type, int64_t elements);

/// The program's boa.optimizer.
struct Optimizer {
  std::string name; // "adamw"; empty: the program updates nothing
  std::vector<OptimizerState> states;
  int64_t scalars = 0;   // that all updates of a step take
  std::string body = {}; // a hash of what its functions compute; may be empty
};

struct KernelBuffer {
  bool read = false, write = false;
};

/// What a call of a kernel costs in one format: its operations, and the bytes that it moves in its
/// memory. Of the operations, those of matrix products and of attention. Of the bytes, those of all
/// other ops.
struct KernelCost {
  double flops = 0, bytes = 0;
  double product_flops = 0, attention_flops = 0, elementwise_bytes = 0;
};

struct Kernel {
  std::string name; // "block_forward"
  std::vector<KernelBuffer> buffers;
  int64_t workspace = 0;                         // bytes
  std::map<NumberFormat, KernelCost> costs = {}; // of an op: the format of its first operand
  std::vector<int64_t> tables = {}; // of the program's: their addresses follow those of the buffers

  /// The operations of a call, in all formats.
  double flops() const {
    return std::accumulate(costs.begin(), costs.end(), 0.0,
                           [](double sum, const auto &cost) { return sum + cost.second.flops; });
  }
};

/// Bytes that one call of an entry point moves, by role: from and to SSD, and
/// where memories are separate from host to device memory and back.
struct Traffic {
  std::map<std::string, int64_t> read, written, to_device, to_host;

  void Add(const Traffic &);
};

/// The function of the parameters that a program computes, as a canonical text of the
/// model phase. It leaves out batch, element types, initialisers, names and order.
struct Computation {
  int32_t version = 0; // of the canonical form; 0: unknown, and the rest is empty
  std::string text, hash;
};
/// Far beyond the text of any model.
constexpr size_t kMostComputationText = size_t{1} << 20, kMostComputationHash = 128;

struct Program {
  int32_t abi = 0;
  ModelSettings model;
  TrainSettings train;
  PlanSettings plan;
  MachineSettings machine;
  Computation computation;
  Optimizer optimizer;
  std::vector<Storage> storages;
  std::vector<Group> groups;
  std::vector<Kernel> kernels;
  std::vector<AngleTable> tables;           // that kernels read
  int64_t arena_device = 0, arena_host = 0; // what assign-buffers sized
  // Parts of arena_device: tables and constants of kernels, which are beside the arena, and the
  // part of the workspace for cuDNN alone.
  int64_t constants = 0, attention_scratch = 0;
  // By entry point. "first_step" finds nothing in memory or pending. "second_step" follows the
  // first step, and "step" follows any later one.
  std::map<std::string, Traffic> traffic;

  /// The space whose buffers updates and norms take. Of unified memory it means nothing.
  int32_t UpdateSpace() const { return plan.update == UpdatePlace::device ? BOA_DEVICE : BOA_HOST; }
  /// Whether updates and norms run on a device that has a memory of its own, and in it.
  bool UpdatesOnDevice() const { return IsSeparate(machine) && UpdateSpace() == BOA_DEVICE; }
  /// Sequences of a micro-batch, and micro-batches of a step.
  int64_t MicroBatch() const { return SequencesOfMicroBatch(train, plan); }
  int64_t MicroBatches() const { return CountMicroBatches(train, plan); }
  /// Whether it takes where the documents of a sequence begin.
  bool TakesDocuments() const {
    return std::any_of(storages.begin(), storages.end(),
                       [](const Storage &storage) { return storage.role == "document_starts"; });
  }
  /// Whether it takes keys for dropout.
  bool TakesDropout() const {
    return std::any_of(storages.begin(), storages.end(),
                       [](const Storage &storage) { return storage.role == "dropout_keys"; });
  }
  /// The plan in words, for the start table.
  std::string ScheduleInWords() const;
  /// The traffic of a step that follows `earlier` others directly.
  Traffic TrafficOfStep(int64_t earlier) const;
};

/// The compiled kernels and the optimizer of a program.
struct Kernels {
  Kernels(const boa_kernel *table, const boa_device_image *image = nullptr,
          const boa_optimizer *optimizer = nullptr)
      : table(table), image(image), optimizer(optimizer) {}
  const boa_kernel *table;        // in the descriptor's order
  const boa_device_image *image;  // for a device of its own; null on a CPU
  const boa_optimizer *optimizer; // null if the program updates nothing
};

/// Bytes that the update of a chunk reads and writes: the weight's master and the states both, the
/// gradient only read.
int64_t UpdateBytes(const Program &, const Group &);
/// Bytes of each storage's slots in a space. A shared pool counts once, for the first storage that
/// shares it, at the size that the largest one needs.
std::vector<int64_t> SlotBytes(const Program &, int32_t space);
/// The name of a group in a state, which its weights have behind their role: "block",
/// "frozen.block", "blocks.head".
std::string StoredName(const Program &, const Group &);
/// A parameter of a program, by its group's index and its own.
struct ParameterIndex {
  int64_t group = 0, parameter = 0;
};
/// The parameter of that name in the stage of a group. What is frozen and what is trained of a
/// stage are two groups.
std::optional<ParameterIndex> FindParameter(const Program &, const Group &, std::string_view name);
bool HasAdapters(const Program &);
/// The parameters that are a part of an adapter: by group, then parameter.
std::vector<std::vector<bool>> PartsOfAdapters(const Program &);
/// Whether the entries are parts of the same parameters (runtime/abi/parts.h).
bool IsOfParts(const Group &);
/// "block.qkv_w" of the saved parameters "block.qkv_w" and "frozen.block.qkv_w".
std::string_view UserName(std::string_view saved);
bool IsFrozen(std::string_view saved);
/// Weights that no step changes: a state has them once, whatever commits it keeps.
bool IsFrozen(const Storage &);
/// By storage: whether it is a state of the optimizer. Each is zero before its first update.
std::vector<bool> StatesOfOptimizer(const Program &);

absl::StatusOr<Program> ParseProgram(std::string_view json);

/// Multiplier of the peak for `step`, counted from 1, times the peak.
double LearningRate(const OptimizerSettings &, int64_t step, int64_t steps);

} // namespace boa

#endif // BOA_RUNTIME_ABI_PROGRAM_H
