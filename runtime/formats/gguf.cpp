//===- gguf.cpp - GGUF files ----------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/formats/gguf.h"

#include "runtime/formats/halves.h"
#include "runtime/support/memory_errors.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace boa {

/// Reads the header of a file, from the front, through a window.
class GgufHeader {
public:
  GgufHeader(GgufFile &out, int64_t size) : out(out), size(size) {}
  absl::Status Read();

private:
  template <typename... Args> absl::Status Refuse(const Args &...args) const {
    return absl::InvalidArgumentError(absl::StrCat("`", out.path(), "`: ", args...));
  }
  int64_t left() const { return size - window_begin - int64_t(at); }
  absl::Status Bytes(void *to, int64_t count, const std::string &what);
  template <typename T> absl::Status Number(T &value, const std::string &what) {
    return Bytes(&value, sizeof(T), what);
  }
  absl::Status Text(std::string &text, const std::string &what);
  absl::Status Scalar(uint32_t type, const std::string &key, GgufValue &value);
  absl::Status Value(const std::string &key, GgufValue &value);
  absl::Status TensorInfo(int64_t index, int64_t alignment);
  absl::Status Place(int64_t data);

  GgufFile &out;
  int64_t size;
  std::string window;
  int64_t window_begin = 0;
  size_t at = 0;       // in the window
  uint64_t values = 0; // of all keys until now
};

namespace {

// The largest published header has 12 MB, and 700,000 values. In memory a value takes up to 32
// bytes.
constexpr int64_t kLargestGgufHeader = 64 << 20;
constexpr uint64_t kMostTensors = 1 << 20, kMostKeys = 1 << 16, kMostValues = 8 << 20;
constexpr int64_t kLongestName = 1024;
constexpr uint32_t kText = 8, kList = 9, kFlag = 7;

/// Bytes of a number of the metadata; 0: no number.
int NumberBytes(uint32_t type) {
  constexpr int kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < 13 ? kBytes[type] : 0;
}

double NumberOf(uint32_t type, const char *bytes) {
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes, sizeof(value));
    return static_cast<double>(value);
  };
  switch (type) {
  case 0:
  case kFlag:
    return as(uint8_t());
  case 1:
    return as(int8_t());
  case 2:
    return as(uint16_t());
  case 3:
    return as(int16_t());
  case 4:
    return as(uint32_t());
  case 5:
    return as(int32_t());
  case 6:
    return as(float());
  case 10:
    return as(uint64_t());
  case 11:
    return as(int64_t());
  default:
    return as(double());
  }
}

struct TypeInfo {
  const char *name;
  int elements, bytes; // of a block; 0: cannot be read
};
TypeInfo InfoOf(uint32_t type) {
  switch (type) {
  case 0:
    return {"F32", 1, 4};
  case 1:
    return {"F16", 1, 2};
  case 2:
    return {"Q4_0", kGgufBlock, 18};
  case 3:
    return {"Q4_1", kGgufBlock, 20};
  case 8:
    return {"Q8_0", kGgufBlock, 34};
  case 30:
    return {"BF16", 1, 2};
  default:
    break;
  }
  constexpr const char *kOthers[] = {"",        "",      "",       "",      "Q4_2",    "Q4_3",
                                     "Q5_0",    "Q5_1",  "",       "Q8_1",  "Q2_K",    "Q3_K",
                                     "Q4_K",    "Q5_K",  "Q6_K",   "Q8_K",  "IQ2_XXS", "IQ2_XS",
                                     "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S",   "IQ4_XS",
                                     "I8",      "I16",   "I32",    "I64",   "F64",     "IQ1_M"};
  return {type < 30 ? kOthers[type] : "", 0, 0};
}

uint16_t HalfAt(const uint8_t *bytes) {
  uint16_t half;
  std::memcpy(&half, bytes, 2);
  return half;
}

/// One block, of one element or of 32.
void Widen(uint32_t type, const uint8_t *block, float *values) {
  switch (type) {
  case 0:
    std::memcpy(values, block, 4);
    return;
  case 1:
    *values = FloatOfF16(HalfAt(block));
    return;
  case 30:
    *values = FloatOfBf16(HalfAt(block));
    return;
  case 8: {
    const float scale = FloatOfF16(HalfAt(block));
    for (int i = 0; i < kGgufBlock; ++i)
      values[i] = scale * static_cast<int8_t>(block[2 + i]);
    return;
  }
  default: { // Q4_0, Q4_1: low halves of the bytes first
    const bool has_least = type == 3;
    const float scale = FloatOfF16(HalfAt(block));
    const float least = has_least ? FloatOfF16(HalfAt(block + 2)) : -8 * scale;
    const uint8_t *bytes = block + (has_least ? 4 : 2);
    for (int i = 0; i < kGgufBlock / 2; ++i) {
      values[i] = scale * (bytes[i] & 15) + least;
      values[i + kGgufBlock / 2] = scale * (bytes[i] >> 4) + least;
    }
  }
  }
}

} // namespace

int64_t GgufTensor::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

absl::Status GgufHeader::Bytes(void *to, int64_t count, const std::string &what) {
  if (count > left())
    return Refuse("the file ends within ", what);
  char *bytes = static_cast<char *>(to);
  while (count > 0) {
    if (at == window.size()) {
      window_begin += static_cast<int64_t>(window.size());
      at = 0;
      window.resize(std::min<int64_t>(1 << 20, size - window_begin));
      if (window_begin > kLargestGgufHeader)
        return Refuse("the header has more than ", kLargestGgufHeader, " bytes");
      if (absl::Status status =
              out.file->Read(window_begin, window.data(), static_cast<int64_t>(window.size()));
          !status.ok())
        return status;
    }
    const size_t part = std::min<size_t>(count, window.size() - at);
    std::memcpy(bytes, window.data() + at, part);
    bytes += part;
    at += part;
    count -= static_cast<int64_t>(part);
  }
  return absl::OkStatus();
}

absl::Status GgufHeader::Text(std::string &text, const std::string &what) {
  uint64_t length = 0;
  if (absl::Status status = Number(length, what); !status.ok())
    return status;
  if (length > static_cast<uint64_t>(std::min(left(), kLargestGgufHeader)))
    return Refuse(what, " has ", length, " bytes, more than the file");
  text.resize(length);
  return Bytes(text.data(), static_cast<int64_t>(length), what);
}

absl::Status GgufHeader::Scalar(uint32_t type, const std::string &key, GgufValue &value) {
  if (type == kText) {
    value.texts.emplace_back();
    return Text(value.texts.back(), key);
  }
  char bytes[8] = {};
  if (absl::Status status = Bytes(bytes, NumberBytes(type), key); !status.ok())
    return status;
  value.numbers.push_back(NumberOf(type, bytes));
  return absl::OkStatus();
}

absl::Status GgufHeader::Value(const std::string &key, GgufValue &value) {
  uint32_t type = 0;
  uint64_t count = 1;
  if (absl::Status status = Number(type, key); !status.ok())
    return status;
  value.is_list = type == kList;
  if (value.is_list) {
    if (absl::Status status = Number(type, key); !status.ok())
      return status;
    if (absl::Status status = Number(count, key); !status.ok())
      return status;
  }
  value.is_text = type == kText;
  value.is_flag = type == kFlag;
  const int64_t least = value.is_text ? 8 : NumberBytes(type);
  if (least == 0)
    return Refuse(key, type == kList ? " is a list of lists" : " has an unknown type");
  if (count > static_cast<uint64_t>(left() / least))
    return Refuse(key, " has ", count, " values, more than the file");
  // A file may be sparse: its size costs nothing.
  values += count;
  if (values > kMostValues)
    return Refuse(key, " has ", count, " values, with which the header has more than ",
                  kMostValues);
  if (value.is_text)
    value.texts.reserve(count);
  else
    value.numbers.reserve(count);
  for (uint64_t i = 0; i < count; ++i)
    if (absl::Status status = Scalar(type, key, value); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status GgufHeader::TensorInfo(int64_t index, int64_t alignment) {
  GgufTensor tensor;
  const std::string number = absl::StrCat("tensor ", index);
  if (absl::Status status = Text(tensor.name, number); !status.ok())
    return status;
  if (tensor.name.empty() || static_cast<int64_t>(tensor.name.size()) > kLongestName)
    return Refuse(number, " has a name of ", tensor.name.size(), " bytes");
  const std::string what = absl::StrCat("tensor `", absl::CHexEscape(tensor.name), "`");
  uint32_t dimensions = 0;
  if (absl::Status status = Number(dimensions, what); !status.ok())
    return status;
  if (dimensions > 4)
    return Refuse(what, " has ", dimensions, " dimensions, where at most 4 are allowed");
  int64_t elements = 1;
  for (uint32_t d = 0; d < dimensions; ++d) {
    uint64_t extent = 0;
    if (absl::Status status = Number(extent, what); !status.ok())
      return status;
    if (extent > static_cast<uint64_t>(INT64_MAX) ||
        __builtin_mul_overflow(elements, static_cast<int64_t>(extent), &elements))
      return Refuse(what, " is too large");
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(extent));
  }
  uint64_t offset = 0;
  if (absl::Status status = Number(tensor.type_number, what); !status.ok())
    return status;
  if (absl::Status status = Number(offset, what); !status.ok())
    return status;
  const TypeInfo info = InfoOf(tensor.type_number);
  tensor.type = *info.name ? info.name : absl::StrCat("type ", tensor.type_number);
  if (info.elements > 0) {
    const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % info.elements != 0)
      return Refuse(what, " has rows of ", row, " elements in blocks of ", info.elements);
    if (__builtin_mul_overflow(elements / info.elements, int64_t(info.bytes), &tensor.bytes))
      return Refuse(what, " is too large");
  }
  if (offset % alignment != 0 || offset > static_cast<uint64_t>(size))
    return Refuse(what, " begins at ", offset, ", which is not in the file or not aligned to ",
                  alignment);
  tensor.begin = static_cast<int64_t>(offset);
  out.contents.push_back(std::move(tensor));
  return absl::OkStatus();
}

/// Offsets from the beginning of the file, and none that overlap.
absl::Status GgufHeader::Place(int64_t data) {
  std::vector<const GgufTensor *> order;
  std::map<std::string, int> names;
  for (GgufTensor &tensor : out.contents) {
    tensor.begin += data;
    if (tensor.begin > size || tensor.bytes > size - tensor.begin)
      return Refuse("tensor `", absl::CHexEscape(tensor.name), "` of ", tensor.bytes, " bytes at ",
                    tensor.begin, " leaves the file of ", size);
    if (names[tensor.name]++)
      return Refuse("two tensors `", absl::CHexEscape(tensor.name), "`");
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const GgufTensor *a, const GgufTensor *b) {
    return std::pair(a->begin, a->bytes) < std::pair(b->begin, b->bytes);
  });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->begin + order[i - 1]->bytes > order[i]->begin)
      return Refuse("tensors `", absl::CHexEscape(order[i - 1]->name), "` and `",
                    absl::CHexEscape(order[i]->name), "` overlap");
  return absl::OkStatus();
}

absl::Status GgufHeader::Read() {
  char magic[4];
  uint32_t version = 0;
  uint64_t tensors = 0, keys = 0;
  if (absl::Status status = Bytes(magic, 4, "its first bytes"); !status.ok())
    return status;
  if (std::memcmp(magic, "GGUF", 4) != 0)
    return Refuse("it is no GGUF file");
  if (absl::Status status = Number(version, "the header"); !status.ok())
    return status;
  if (version != 2 && version != 3)
    return Refuse("GGUF version ", version, "; 2 and 3 can be read, little-endian");
  if (absl::Status status = Number(tensors, "the header"); !status.ok())
    return status;
  if (absl::Status status = Number(keys, "the header"); !status.ok())
    return status;
  if (tensors > kMostTensors || keys > kMostKeys)
    return Refuse("a header of ", keys, " keys and ", tensors, " tensors, where at most ",
                  kMostKeys, " and ", kMostTensors, " are allowed");
  for (uint64_t i = 0; i < keys; ++i) {
    std::string key;
    if (absl::Status status = Text(key, absl::StrCat("key ", i)); !status.ok())
      return status;
    if (key.empty() || static_cast<int64_t>(key.size()) > kLongestName)
      return Refuse("key ", i, " has a name of ", key.size(), " bytes");
    GgufValue value;
    if (absl::Status status = Value(absl::StrCat("`", absl::CHexEscape(key), "`"), value);
        !status.ok())
      return status;
    if (!out.metadata.emplace(key, std::move(value)).second)
      return Refuse("the key `", absl::CHexEscape(key), "` stands twice");
  }
  const int64_t alignment = out.Number("general.alignment", 32);
  if (alignment <= 0 || alignment > 1 << 20)
    return Refuse("general.alignment is ", alignment);
  for (uint64_t i = 0; i < tensors; ++i)
    if (absl::Status status = TensorInfo(static_cast<int64_t>(i), alignment); !status.ok())
      return status;
  const int64_t end = window_begin + static_cast<int64_t>(at);
  return Place((end + alignment - 1) / alignment * alignment);
}

absl::StatusOr<GgufFile> GgufFile::Open(const std::string &path) {
  GgufFile out;
  absl::StatusOr<std::unique_ptr<OpenFile>> file =
      SystemFiles().Open(SystemFiles().RealPath(path).value_or(path), {});
  if (!file.ok())
    return file.status();
  absl::StatusOr<int64_t> size = (*file)->Size();
  if (!size.ok())
    return size.status();
  out.name = path;
  out.file = *std::move(file);
  absl::Status status = WithinMemory(path, [&] { return GgufHeader(out, *size).Read(); });
  if (!status.ok())
    return status;
  return out;
}

std::vector<std::string> GgufFile::Keys() const {
  std::vector<std::string> keys;
  for (const auto &[key, value] : metadata)
    keys.push_back(key);
  return keys;
}

const GgufValue *GgufFile::Find(const std::string &key) const {
  auto it = metadata.find(key);
  return it == metadata.end() ? nullptr : &it->second;
}

std::string GgufFile::Text(const std::string &key, const std::string &absent) const {
  const GgufValue *value = Find(key);
  return value && value->is_text && !value->is_list ? value->texts[0] : absent;
}

int64_t GgufFile::Number(const std::string &key, int64_t absent) const {
  const GgufValue *value = Find(key);
  const bool is_number = value && !value->is_text && !value->is_list && !value->is_flag;
  // Larger numbers are no count or id of anything.
  return is_number && std::abs(value->numbers[0]) < 9e15 ? static_cast<int64_t>(value->numbers[0])
                                                         : absent;
}

bool GgufFile::Flag(const std::string &key, bool absent) const {
  const GgufValue *value = Find(key);
  return value && value->is_flag && !value->is_list ? value->numbers[0] != 0 : absent;
}

absl::Status GgufFile::Read(const GgufTensor &tensor, int64_t first, int64_t count,
                            float *values) const {
  const TypeInfo info = InfoOf(tensor.type_number);
  if (info.elements == 0)
    return absl::UnimplementedError(
        absl::StrCat("`", path(), "`: tensor `", tensor.name, "` is ", tensor.type,
                     ", but only F32, F16, BF16, Q8_0, Q4_0 and Q4_1 can be read"));
  if (first < 0 || count < 0 || first > tensor.elements() - count || first % info.elements != 0 ||
      count % info.elements != 0)
    return absl::InternalError(absl::StrCat("`", path(), "`: elements ", first, " to ",
                                            first + count, " of tensor `", tensor.name, "`"));
  std::vector<uint8_t> blocks;
  while (count > 0) {
    const int64_t part = std::min<int64_t>(count, 1 << 18);
    blocks.resize(part / info.elements * info.bytes);
    const int64_t offset = tensor.begin + first / info.elements * info.bytes;
    if (absl::Status status =
            file->Read(offset, blocks.data(), static_cast<int64_t>(blocks.size()));
        !status.ok())
      return status;
    for (int64_t i = 0; i < part / info.elements; ++i)
      Widen(tensor.type_number, blocks.data() + i * info.bytes, values + i * info.elements);
    first += part;
    count -= part;
    values += part;
  }
  return absl::OkStatus();
}

} // namespace boa
