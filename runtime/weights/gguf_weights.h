//===- gguf_weights.h - Tensors of a GGUF file ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The weights of a GGUF file as a folder of Hugging Face would have them: with those names, in
// those layouts. The file has two layouts of its own:
//
//   - "llama": the rows of queries and keys stand in pairs, (i, i + head / 2), for a rotation of
//     neighbours. Here the first halves of a head come first.
//   - transposed: matrices are [out, in]. Here they are [in, out].
//
// A tensor that is no weight of such a model keeps the name that the file gives it.
//
// Ownership: it owns the open file. Threads: Read from any. Memory: the header, and one row.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_GGUF_WEIGHTS_H
#define BOA_RUNTIME_WEIGHTS_GGUF_WEIGHTS_H

#include "runtime/formats/gguf.h"
#include "runtime/weights/safetensors.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

/// Whether a path has the name of a GGUF file.
bool IsGgufName(const std::string &path);

class GgufWeights {
public:
  /// Unimplemented for an architecture whose tensors Boa does not know.
  static absl::StatusOr<GgufWeights> Open(const std::string &path);

  /// The type of a quantised tensor is "F32", since it is read as f32. A type that cannot be read
  /// keeps its name.
  const std::vector<Tensor> &tensors() const { return contents; }
  /// Elements [first, first + count) of `tensors()[index]`, as f32.
  absl::Status Read(size_t index, int64_t first, int64_t count, float *values) const;

private:
  enum class Layout { same, paired, transposed };
  GgufWeights(GgufFile opened) : file(std::move(opened)) {}
  absl::Status Name(const std::string &architecture);
  absl::Status Copy(const GgufTensor &, int64_t first, int64_t count, float *values) const;

  GgufFile file;
  std::vector<Tensor> contents;
  std::vector<Layout> layouts;    // by tensor
  std::vector<int64_t> pair_rows; // rows of a head, by tensor
};

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_GGUF_WEIGHTS_H
