//===- generator.h - What may follow a text ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program compiled to continue one text, on an engine with trained weights. The program says
// which weights stay in memory. The others are read from a state, for each token, by the same
// schedule as in a training.
//
// With @prefill and @generate, keys and values of earlier positions are cached: a further token
// costs one position. Another text shares those of the beginning that it has in common with the
// last one. With @predict, each token computes the whole context again.
//
// A model sees a context of tokens. When a text is longer, the model sees its last ones. The
// oldest quarter of a full context is left out at once, and the rest computed again.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_GENERATE_GENERATOR_H
#define BOA_RUNTIME_GENERATE_GENERATOR_H

#include "runtime/abi/abi.h"
#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"
#include "runtime/state/commit_name.h"
#include "runtime/state/state.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace boa {

/// @prefill and @generate, or @predict alone.
struct GenerationEntries {
  boa_entry_point predict = nullptr, prefill = nullptr, generate = nullptr;
};

/// Where weights come from.
struct GenerationSource {
  /// A file or folder, or the directory of a state, whose last commit has them, or a commit
  /// (FindCommit); empty: that in `state`. Without a commit there, its file model.safetensors.
  std::string weights, state;
  bool changed_model = false; // also weights of another computation
};

/// Ownership: it owns the engine and the state. The program outlives it.
/// Threads: one.
class Generator {
public:
  /// Weights that stay in memory are read once, also from a state that is trained meanwhile. Others
  /// are read for each token. Then a state with the program's chunks may be trained, too; others
  /// are locked as by a training. FailedPrecondition if such weights are in no state.
  static absl::StatusOr<std::unique_ptr<Generator>>
  Create(const Program &, const Kernels &, const GenerationEntries &, const GenerationSource &);

  /// The logits of the token behind a text of at least one token. Valid until the next call.
  /// Between pieces of a long text it looks for a signal (Interrupted).
  absl::StatusOr<const float *> Logits(const std::vector<int32_t> &text);

  /// The tokens at the beginning of a first text of that many, which the model does not see.
  int64_t Unseen(int64_t size) const {
    const int64_t context = program.model.context;
    return size > context ? size - (context - context / 4) : 0;
  }

  /// Positions of texts that were computed until now; each counts as often as it was.
  int64_t Computed() const { return computed; }

  Engine &engine() { return *of; }

private:
  Generator(const Program &program, const GenerationEntries &entries)
      : program(program), entries(entries) {}
  absl::Status Open(const Kernels &, const GenerationSource &);
  absl::Status Fill(const Kernels &, const std::string &weights, bool is_state, bool changed_model);
  absl::Status Stream(const Kernels &, const CommitName &, bool changed_model);
  absl::Status FindPorts();
  absl::Status Explain(const absl::Status &) const;
  absl::StatusOr<const float *> Next(const std::vector<int32_t> &text);
  absl::StatusOr<const float *> Predict(const int32_t *tokens, int64_t count);
  absl::Status Prefill(const int32_t *tokens, int64_t until);
  absl::StatusOr<const float *> Generate(int32_t token);

  const Program &program;
  const GenerationEntries entries;
  std::unique_ptr<StateStore> state; // null: all weights stay in memory
  std::unique_ptr<Engine> of;
  // Storages: tokens and positions of @prefill, then of @generate; those of @predict.
  int32_t tokens[2] = {}, positions[2] = {}, logits = 0;
  std::vector<float> rows;     // of logits
  std::vector<int32_t> window; // tokens of @predict
  int64_t first = 0;           // token of the text that the model sees
  std::vector<int32_t> cached; // tokens from there whose keys and values are there
  int64_t computed = 0;
  int64_t runs = 0;
};

} // namespace boa

#endif // BOA_RUNTIME_GENERATE_GENERATOR_H
