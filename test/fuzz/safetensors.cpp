//===- safetensors.cpp - Any bytes as a file of tensors -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input as a file, and as a header of the right length up to the first zero
// byte with tensors behind. What opens can be read, and what is written of it
// reads the same.
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/safetensors.h"
#include "test/fuzz/support.h"

#include <cstring>

using namespace boa;

namespace {

/// The bits: NaNs are to come back too.
using Values = std::vector<uint32_t>;

/// Every element of a tensor of one file, in two parts.
absl::StatusOr<Values> ReadWhole(const SafetensorsReader &reader, const Tensor &tensor) {
  const int64_t count = tensor.elements(), half = count / 2;
  Values values(size_t(count) + 1);
  auto *to = reinterpret_cast<float *>(values.data());
  for (auto [first, last] : {std::pair(int64_t(0), half), std::pair(half, count)})
    if (absl::Status status = reader.Read(tensor, first, last - first, to + first); !status.ok())
      return status;
  values.pop_back();
  return values;
}

void TryFile(const std::string &path) {
  absl::StatusOr<SafetensorsReader> reader = SafetensorsReader::Open(path);
  if (!reader.ok())
    return;
  std::vector<Tensor> readable;
  std::vector<Values> contents;
  for (const Tensor &tensor : reader->tensors()) {
    fuzz::Require(reader->Find(tensor.name) == &tensor, "a tensor is found by its name");
    if (tensor.dtype != "F32" && tensor.dtype != "F16" && tensor.dtype != "BF16") {
      float value = 0;
      fuzz::Require(!reader->Read(tensor, 0, 1, &value).ok(), "another type is refused");
      continue;
    }
    absl::StatusOr<Values> values = ReadWhole(*reader, tensor);
    fuzz::Require(values.ok(), "what was announced is there");
    readable.push_back(tensor);
    contents.push_back(*std::move(values));
  }

  const std::string copy = fuzz::Scratch() + "/copy";
  absl::StatusOr<SafetensorsWriter> writer = SafetensorsWriter::Create(copy, readable, {});
  fuzz::Require(writer.ok(), "tensors that were read can be written");
  for (const Values &values : contents)
    fuzz::Require(
        writer->Append(reinterpret_cast<const float *>(values.data()), int64_t(values.size())).ok(),
        "elements are taken");
  fuzz::Require(writer->Finish().ok(), "all elements came");
  absl::StatusOr<SafetensorsReader> again = SafetensorsReader::Open(copy);
  fuzz::Require(again.ok() && again->tensors().size() == readable.size(), "the copy opens");
  for (size_t i = 0; i < readable.size(); ++i) {
    const Tensor *tensor = again->Find(readable[i].name);
    fuzz::Require(tensor && tensor->shape == readable[i].shape, "the copy has its tensors");
    absl::StatusOr<Values> values = ReadWhole(*again, *tensor);
    fuzz::Require(values.ok() && *values == contents[i], "the copy has its elements");
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string input(reinterpret_cast<const char *>(data), size);
  const std::string path = fuzz::Scratch() + "/tensors";
  fuzz::WriteFile(path, input);
  TryFile(path);

  const size_t end = std::min(input.find('\0'), input.size());
  const uint64_t length = end;
  std::string framed(reinterpret_cast<const char *>(&length), 8);
  framed += input.substr(0, end);
  if (end < input.size())
    framed += input.substr(end + 1);
  fuzz::WriteFile(path, framed);
  TryFile(path);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return fuzz::MutateText(data, size, most, seed);
}
