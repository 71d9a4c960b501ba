//===- weight_files.h - Tensors to begin from -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors of one safetensors file, of one GGUF file (gguf_weights.h), or of a folder of Hugging
// Face: model.safetensors, or the files that model.safetensors.index.json names. Any folder is
// taken as hostile. The following are refused, by name:
//
//   - files that leave the folder, links (but those of the hub's own cache) and devices
//     (folder_file.h);
//   - an index that disagrees with its files;
//   - a folder whose weights are only pickles, which can run code when they are read.
//
// Ownership: it owns its open files. Threads: Read from any. Memory: the headers.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_WEIGHT_FILES_H
#define BOA_RUNTIME_WEIGHTS_WEIGHT_FILES_H

#include "runtime/weights/gguf_weights.h"
#include "runtime/weights/safetensors.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// Names of a folder's files.
inline constexpr char kWeightsFile[] = "model.safetensors",
                      kWeightsIndex[] = "model.safetensors.index.json";

class WeightFiles {
public:
  static absl::StatusOr<WeightFiles> Open(const std::string &path);

  const std::string &path() const { return name; }
  /// Whether its tensors have the names of Hugging Face: all but those of one safetensors file,
  /// which may be an export with Boa's.
  bool has_outside_names() const { return folder || gguf; }
  /// For messages: the types of tensors that `Read` takes.
  const char *readable_types() const {
    return gguf ? "F32, F16, BF16, Q8_0, Q4_0 and Q4_1" : "F32, BF16 and F16";
  }
  /// By name. The names of a folder's tensors are different.
  const std::map<std::string, const Tensor *> &tensors() const { return by_name; }
  /// Null: there is none.
  const Tensor *Find(const std::string &tensor) const;
  /// Of a safetensors file's `__metadata__`; "" of others.
  std::string Metadata(const std::string &key) const;
  /// Elements [first, first + count) of one of `tensors`, as f32.
  absl::Status Read(const Tensor &, int64_t first, int64_t count, float *values) const;
  /// Whether two of `tensors` have the same type, shape and values.
  absl::StatusOr<bool> AreSame(const Tensor &, const Tensor &) const;

private:
  absl::Status Add(const std::string &path);
  absl::Status OpenFolder();
  absl::Status OpenShards();

  std::string name;
  bool folder = false;
  std::vector<SafetensorsReader> files;
  std::optional<GgufWeights> gguf;               // then there are no `files`
  std::map<std::string, const Tensor *> by_name; // into `files` or `gguf`
  std::map<const Tensor *, size_t> file_of;
};

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_WEIGHT_FILES_H
