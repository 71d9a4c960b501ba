//===- gguf.h - GGUF files ------------------------------------ -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Metadata and named tensors, little-endian, versions 2 and 3. The header is checked as a whole:
// counts fit the file, tensors lie within it and do not overlap, no name comes twice.
//
// Tensors of type F32, F16, BF16, Q8_0, Q4_0 and Q4_1 can be read; the others are refused by name.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_FORMATS_GGUF_H
#define BOA_RUNTIME_FORMATS_GGUF_H

#include "runtime/io/file_system.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boa {

/// A value of the metadata: texts or numbers, one or a list.
struct GgufValue {
  bool is_list = false, is_text = false, is_flag = false;
  std::vector<std::string> texts;
  std::vector<double> numbers;
};

struct GgufTensor {
  std::string name, type;
  std::vector<int64_t> shape;   // slowest first, other than in the file
  int64_t begin = 0, bytes = 0; // in the file
  uint32_t type_number = 0;
  int64_t elements() const;
};

/// Elements of a quantised block.
constexpr int kGgufBlock = 32;

class GgufFile {
public:
  static absl::StatusOr<GgufFile> Open(const std::string &path);

  const std::string &path() const { return name; } // as it was given
  /// Of the metadata, in order.
  std::vector<std::string> Keys() const;
  /// Null if there is none of that name.
  const GgufValue *Find(const std::string &key) const;
  /// The one value of a key; `absent` if there is no such key, or one of another kind.
  std::string Text(const std::string &key, const std::string &absent = "") const;
  int64_t Number(const std::string &key, int64_t absent) const;
  bool Flag(const std::string &key, bool absent) const;
  const std::vector<GgufTensor> &tensors() const { return contents; }

  /// Some elements of a tensor as f32. Quantised ones come in blocks: `first` is a multiple of
  /// kGgufBlock, and so is `count`, but for the end of the tensor.
  absl::Status Read(const GgufTensor &tensor, int64_t first, int64_t count, float *values) const;

private:
  friend class GgufHeader;
  std::string name;
  std::unique_ptr<OpenFile> file;
  std::map<std::string, GgufValue> metadata;
  std::vector<GgufTensor> contents;
};

} // namespace boa

#endif // BOA_RUNTIME_FORMATS_GGUF_H
