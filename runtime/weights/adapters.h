//===- adapters.h - Weights with their adapters, and adapters alone --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The adapters of a commit (LoRA) on their way out: added to the weights that they adapt, or in a
// file as PEFT has it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_ADAPTERS_H
#define BOA_RUNTIME_WEIGHTS_ADAPTERS_H

#include "runtime/abi/program.h"
#include "runtime/io/file_system.h"
#include "runtime/weights/base_weights.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

/// The weights of a commit, each with its adapter added: w + scale * b a, in f32.
///
/// Ownership: program and weights outlive it. Threads: one. Memory: the adapter of one weight,
/// rank * (in + out) numbers, beside what BaseWeights holds. Errors: those of BaseWeights.
class MergedWeights {
public:
  MergedWeights(const Program &program, BaseWeights &weights)
      : program(program), weights(weights) {}

  /// Elements [first, first + count) of a parameter in an entry of its group.
  absl::Status Read(const Group &group, int64_t entry, const Parameter &parameter, int64_t first,
                    int64_t count, float *values);

private:
  absl::Status Hold(const Group &group, int64_t entry, const Parameter &parameter);

  const Program &program;
  BaseWeights &weights;
  // The adapter that was read last, as factors of its weight's shape: [rows, rank] with
  // the scale in it, and [rank, columns].
  const Parameter *held = nullptr;
  int64_t held_entry = 0, rank = 0;
  std::vector<float> left, right, sum;
};

/// A weight that has an adapter, in one entry of its group.
struct Adapted {
  int64_t group = 0, entry = 0;
  ParameterIndex down, up;
  Adapter adapter;
  int64_t rank = 0;
  std::string module; // that of its tensor: "model.layers.0.self_attn.q_proj"
};

/// All of them. FailedPrecondition if a weight has no name elsewhere that ends in ".weight".
absl::StatusOr<std::vector<Adapted>> FindAdapted(const Program &);

/// A parameter in one entry of its group, and its tensor in a file.
struct NamedParameter {
  std::string tensor; // "model.norm.weight"
  int64_t entry = 0;
  ParameterIndex at;
};

/// All parameters of the modules of which one is trained as a whole beside adapters.
/// FailedPrecondition if one is no whole tensor elsewhere, or has an adapter.
absl::StatusOr<std::vector<NamedParameter>> FindTrainedWhole(const Program &);

/// Why PEFT could not have what a program trains, of a model whose tensors have names elsewhere.
absl::Status CheckForPeft(const Program &);

/// Writes parameters of a commit, `from` as of --from. The file appears complete or not at all.
/// Memory: one chunk of each role. Returns the bytes of the tensors.
absl::StatusOr<int64_t> ExportTensors(FileSystem &, const Program &, const std::string &from,
                                      const std::string &path, bool bf16,
                                      const std::vector<NamedParameter> &);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_ADAPTERS_H
