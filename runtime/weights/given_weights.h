//===- given_weights.h - Weights from a file or a folder --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors that a program's parameters take their first values from (--weights). A tensor has
// the parameter's name elsewhere, if the spec gives one, or the name that Boa gives it.
//
// Every parameter has a tensor of its shape, in a type that can be read, or is a part of one that
// no other parameter has. Adapters may be new: then none of their parts has one, and each has its
// initial values. So has a parameter without a name elsewhere, where tensors have such names.
// Every other tensor is an error, except for:
//
//   - those that the caller does not want;
//   - buffers that models recompute: masks, positions, frequencies;
//   - a second copy, with the same bits, of a tensor of the vocabulary: a tied head.
//
// Each value that is read must be finite.
//
// Ownership: it owns the open files; the program outlives it. Threads: one. Memory: the headers.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_GIVEN_WEIGHTS_H
#define BOA_RUNTIME_WEIGHTS_GIVEN_WEIGHTS_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"
#include "runtime/weights/check_parameters.h"
#include "runtime/weights/parameter_names.h"
#include "runtime/weights/weight_files.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace boa {

class GivenWeights {
public:
  /// FailedPrecondition unless the tensors are those of the program. Names the first few that
  /// are not. `unwanted`: names of tensors to leave out.
  static absl::StatusOr<std::unique_ptr<GivenWeights>>
  Open(const Program &, const std::string &path, const std::vector<std::string> &unwanted,
       Adapters = Adapters::present);

  /// Tensors that were left out as second copies of others.
  const std::vector<std::string> &copies() const { return second; }
  /// A note of the parameters that have their initial values, but for parts of adapters; "": none.
  std::string NoteOfInitial() const;
  /// Of an export that says what its program computes; version 0 of any other file.
  Computation computation() const;
  /// Elements [first, first + count) of a parameter. Groups and parameters by their index.
  absl::Status Read(int64_t group, int64_t entry, int64_t parameter, int64_t first, int64_t count,
                    float *values) const;
  /// All parameters.
  absl::Status Fill(Engine &) const;

private:
  GivenWeights(const Program &program, WeightFiles opened)
      : program(program), files(std::move(opened)) {}
  void Match(Adapters, std::vector<std::string> &mismatches);
  absl::Status CheckRest(const std::vector<std::string> &unwanted,
                         std::vector<std::string> &mismatches);
  /// Elements of a tensor, which must be numbers.
  absl::Status ReadFinite(const Tensor &, int64_t first, int64_t count, float *values) const;

  const Program &program;
  const WeightFiles files;
  struct Taken {
    const Tensor *tensor = nullptr; // null: it has its initial values
    TensorPart part;                // where it is in the tensor
  };
  std::vector<std::vector<Taken>> taken; // by group; there by entry, then parameter
  std::vector<std::string> second;       // copies
  std::vector<std::string> initial;
};

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_GIVEN_WEIGHTS_H
