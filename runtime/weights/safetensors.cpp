//===- safetensors.cpp - Files of named tensors ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/safetensors.h"

#include "runtime/formats/halves.h"
#include "runtime/formats/json.h"
#include "runtime/support/memory_errors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace boa {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargestTensorHeader = 100 * 1000 * 1000;
// Where the tensors begin in a file that we write: as the reference writer
// does.
constexpr int64_t kHeaderAlignment = 8;

int64_t ElementBytes(const std::string &dtype) {
  return dtype == "F32" ? 4 : dtype == "BF16" || dtype == "F16" ? 2 : 0;
}

/// The nearest; of a value that is not finite, one of its kind.
uint16_t ToBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (!std::isfinite(value))
    return uint16_t(bits >> 16 | (std::isnan(value) ? 0x40 : 0));
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Makes `status` say which file it is about.
absl::Status Malformed(const std::string &path, const std::string &what) {
  return absl::InvalidArgumentError(absl::StrCat("`", path, "` is not a safetensors file: ", what));
}

/// A list of non-negative integers.
bool ReadIntegers(const Json &value, std::vector<int64_t> &out) {
  if (!value.is_array())
    return false;
  for (const Json &element : value) {
    if (!element.is_number_unsigned() || element.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      return false;
    out.push_back(element.get<int64_t>());
  }
  return true;
}

/// One entry of the header. Returns the fault, or nothing.
std::string ParseTensor(const std::string &name, const Json &entry, int64_t data_bytes,
                        Tensor &tensor) {
  tensor.name = name;
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets"))
    return "expected dtype, shape and data_offsets";
  if (!entry["dtype"].is_string())
    return "dtype is not a string";
  tensor.dtype = entry["dtype"].get<std::string>();
  if (!ReadIntegers(entry["shape"], tensor.shape))
    return "shape is not a list of sizes";
  std::vector<int64_t> offsets;
  if (!ReadIntegers(entry["data_offsets"], offsets) || offsets.size() != 2)
    return "data_offsets is not a pair of offsets";
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  if (tensor.begin > tensor.end || tensor.end > data_bytes)
    return absl::StrCat("data_offsets [", tensor.begin, ", ", tensor.end,
                        ") leave the file, which holds ", data_bytes, " bytes of tensors");
  const int64_t width = ElementBytes(tensor.dtype);
  if (width == 0) // of a type that nobody may ask for: Read refuses
    return "";
  int64_t bytes = width;
  for (int64_t size : tensor.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return "shape is too large";
  if (bytes != tensor.end - tensor.begin)
    return absl::StrCat("shape ", FormatShape(tensor.shape), " of ", tensor.dtype, " takes ", bytes,
                        " bytes but data_offsets span ", tensor.end - tensor.begin);
  return "";
}

} // namespace

std::string FormatShape(const std::vector<int64_t> &shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

bool IsReadable(const Tensor &tensor) { return ElementBytes(tensor.dtype) != 0; }

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

absl::StatusOr<SafetensorsWriter>
SafetensorsWriter::Create(const std::string &path, std::vector<Tensor> tensors,
                          const std::map<std::string, std::string> &metadata) {
  SafetensorsWriter writer;
  // Ordered, so that the file reads in the order of its data.
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  for (const Tensor &tensor : tensors) {
    const bool narrow = tensor.dtype == "BF16";
    const int64_t end = writer.expected + tensor.elements() * (narrow ? 2 : 4);
    header[tensor.name] = {{"dtype", narrow ? "BF16" : "F32"},
                           {"shape", tensor.shape},
                           {"data_offsets", {writer.expected, end}}};
    writer.expected = end;
    writer.ends.emplace_back(end, narrow);
  }
  std::string text = header.dump();
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');

  writer.path = path;
  absl::StatusOr<NewFile> file = NewFile::Create(path);
  if (!file.ok())
    return file.status();
  writer.file = *std::move(file);
  const uint64_t length = text.size();
  if (absl::Status status = writer.file.Append(&length, 8); !status.ok())
    return status;
  if (absl::Status status = writer.file.Append(text.data(), text.size()); !status.ok())
    return status;
  return writer;
}

absl::Status SafetensorsWriter::Append(const float *values, int64_t count) {
  // A piece may end in another tensor, of another type.
  while (count > 0) {
    while (tensor < ends.size() && position == ends[tensor].first)
      ++tensor;
    if (tensor == ends.size())
      return absl::InternalError(absl::StrCat("`", path, "`: more elements than announced"));
    const bool narrow = ends[tensor].second;
    const int64_t bytes = narrow ? 2 : 4;
    const int64_t here = std::min(count, (ends[tensor].first - position) / bytes);
    absl::Status status;
    if (narrow) {
      halves.resize(size_t(here));
      std::transform(values, values + here, halves.begin(), ToBF16);
      status = file.Append(halves.data(), here * bytes);
    } else {
      status = file.Append(values, here * bytes);
    }
    if (!status.ok())
      return status;
    position += here * bytes;
    values += here;
    count -= here;
  }
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Finish() {
  if (position != expected)
    return absl::InternalError(
        absl::StrCat("`", path, "`: ", position, " bytes of ", expected, " came"));
  return file.Publish();
}

std::string SafetensorsReader::Metadata(const std::string &key) const {
  auto it = metadata.find(key);
  return it == metadata.end() ? "" : it->second;
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(const std::string &path) {
  return WithinMemory(path, [&] { return ReadHeader(path); });
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::ReadHeader(const std::string &path) {
  SafetensorsReader reader;
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok())
    return file.status();
  reader.file = *std::move(file);
  const int64_t size = reader.file.size();
  if (size < 8)
    return Malformed(path, absl::StrCat("it has ", size, " bytes"));

  uint64_t length = 0;
  if (absl::Status status = reader.file.Read(0, &length, 8); !status.ok())
    return status;
  if (length > static_cast<uint64_t>(kLargestTensorHeader))
    return Malformed(path, absl::StrCat("a header of ", length, " bytes, where at most ",
                                        kLargestTensorHeader, " are allowed"));
  if (length > static_cast<uint64_t>(size - 8))
    return Malformed(path, absl::StrCat("a header of ", length, " bytes in a file of ", size));
  std::string text(length, '\0');
  if (absl::Status status = reader.file.Read(8, text.data(), length); !status.ok())
    return status;
  const absl::StatusOr<Json> header = ParseJson(text);
  if (!header.ok())
    return Malformed(path, absl::StrCat("its header: ", header.status().message()));
  if (!header->is_object())
    return Malformed(path, "the header is not a JSON object");

  reader.data = 8 + length;
  for (const auto &[name, entry] : header->items()) {
    if (name == "__metadata__") {
      for (const auto &[key, value] : entry.items())
        if (value.is_string())
          reader.metadata[key] = value.get<std::string>();
      continue;
    }
    Tensor tensor;
    std::string wrong = ParseTensor(name, entry, size - reader.data, tensor);
    if (!wrong.empty())
      return Malformed(path, absl::StrCat("tensor `", name, "`: ", wrong));
    reader.contents.push_back(std::move(tensor));
  }
  std::sort(reader.contents.begin(), reader.contents.end(), [](const Tensor &a, const Tensor &b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  for (size_t i = 0; i < reader.contents.size(); ++i) {
    const Tensor &tensor = reader.contents[i];
    if (i > 0 && tensor.begin < reader.contents[i - 1].end)
      return Malformed(path, absl::StrCat("tensors `", reader.contents[i - 1].name, "` and `",
                                          tensor.name, "` overlap"));
    reader.by_name[tensor.name] = i;
  }
  return reader;
}

const Tensor *SafetensorsReader::Find(const std::string &name) const {
  auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : &contents[it->second];
}

absl::Status SafetensorsReader::Read(const Tensor &tensor, int64_t first, int64_t count,
                                     float *values) const {
  const int64_t width = ElementBytes(tensor.dtype);
  if (width == 0)
    return absl::UnimplementedError(absl::StrCat("`", file.path(), "`: tensor `", tensor.name,
                                                 "` is ", tensor.dtype,
                                                 ", but only F32, BF16 and F16 can be read"));
  const int64_t offset = data + tensor.begin + first * width;
  if (width == 4)
    return file.Read(offset, values, count * 4);
  // Halves go to the upper part of the result and widen forward from there.
  auto *halves = reinterpret_cast<uint16_t *>(values) + count;
  if (absl::Status status = file.Read(offset, halves, count * 2); !status.ok())
    return status;
  for (int64_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, reinterpret_cast<char *>(values) + 2 * (count + i), 2);
    const float value = tensor.dtype == "BF16" ? FloatOfBf16(half) : FloatOfF16(half);
    std::memcpy(values + i, &value, 4);
  }
  return absl::OkStatus();
}

} // namespace boa
