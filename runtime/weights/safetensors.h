//===- safetensors.h - Files of named tensors -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The safetensors format: the header's length in 8 bytes, little-endian; the
// header, JSON {name: {dtype, shape, data_offsets}}; then the tensors' bytes.
// Reader and writer are streams: memory holds the header and the caller's buffer, never
// the model.
//
// A writer's file appears under its name complete and on disk, or not at all. A reader
// refuses a header above 100 MB or in another form. It also refuses offsets that leave the
// file, overlap or do not match the shape, and types that it cannot convert to f32.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_SAFETENSORS_H
#define BOA_RUNTIME_WEIGHTS_SAFETENSORS_H

#include "runtime/io/input_file.h"
#include "runtime/io/new_file.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace boa {

struct Tensor {
  std::string name;
  std::string dtype; // "F32", "BF16" or "F16"; to write: of the first two
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0; // bytes, from the end of the header

  int64_t elements() const;
};

/// "[4, 8]".
std::string FormatShape(const std::vector<int64_t> &shape);

/// Whether it can be converted to f32. Only then do its elements fit its bytes.
bool IsReadable(const Tensor &);

/// Writes tensors one after another.
class SafetensorsWriter {
public:
  /// Announces all tensors, in the order of their elements. Computes the offsets. `metadata` goes
  /// into `__metadata__`.  A type that is not given is F32.
  static absl::StatusOr<SafetensorsWriter>
  Create(const std::string &path, std::vector<Tensor> tensors,
         const std::map<std::string, std::string> &metadata);

  /// Of one tensor. BF16 is rounded to the nearest, and of two as near to the even one.
  absl::Status Append(const float *values, int64_t count);
  /// Syncs, then renames to the final name. All elements must be written.
  absl::Status Finish();

private:
  SafetensorsWriter() = default;

  std::string path;
  NewFile file;
  int64_t position = 0, expected = 0;         // bytes of tensors
  std::vector<std::pair<int64_t, bool>> ends; // of tensors, and whether each is BF16
  size_t tensor = 0;                          // that position is in
  std::vector<uint16_t> halves;
};

class SafetensorsReader {
public:
  static absl::StatusOr<SafetensorsReader> Open(const std::string &path);

  /// Null: the file has no tensor of this name.
  const Tensor *Find(const std::string &name) const;
  /// The value of a key of `__metadata__`; "" if it has none.
  std::string Metadata(const std::string &key) const;
  const std::vector<Tensor> &tensors() const { return contents; }

  /// Elements [first, first + count) of a tensor of this file, as f32.
  absl::Status Read(const Tensor &, int64_t first, int64_t count, float *values) const;

private:
  static absl::StatusOr<SafetensorsReader> ReadHeader(const std::string &path);

  InputFile file;
  int64_t data = 0;             // where the tensors begin in the file
  std::vector<Tensor> contents; // by offset
  std::map<std::string, size_t> by_name;
  std::map<std::string, std::string> metadata;
};

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_SAFETENSORS_H
