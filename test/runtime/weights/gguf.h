//===- gguf.h - GGUF files by hand ------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_WEIGHTS_GGUF_H
#define BOA_TEST_RUNTIME_WEIGHTS_GGUF_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace boa {

/// A GGUF file, key by key.
class Gguf {
public:
  /// All keys begin with `prefix`.
  explicit Gguf(std::string prefix) : prefix(std::move(prefix)) {}

  Gguf &Text(const std::string &key, const std::string &value) {
    Key(key, 8);
    Put(keys, value);
    return *this;
  }
  Gguf &Number(const std::string &key, uint32_t value) {
    Key(key, 4);
    Put(keys, value);
    return *this;
  }
  Gguf &Real(const std::string &key, float value) {
    Key(key, 6);
    Put(keys, value);
    return *this;
  }
  Gguf &Flag(const std::string &key, bool value) {
    Key(key, 7);
    Put(keys, uint8_t(value));
    return *this;
  }
  Gguf &List(const std::string &key, const std::vector<std::string> &values) {
    return List(key, 8, values);
  }
  template <typename T>
  Gguf &List(const std::string &key, uint32_t type, const std::vector<T> &values) {
    Key(key, 9);
    Put(keys, type);
    Put(keys, uint64_t(values.size()));
    for (const T &value : values)
      Put(keys, value);
    return *this;
  }
  /// A tensor of one dimension. A file has at most one.
  Gguf &Tensor(const std::string &name, const std::vector<float> &values) {
    Put(tensor, name);
    Put(tensor, uint32_t(1));
    Put(tensor, uint64_t(values.size()));
    Put(tensor, uint32_t(0)); // f32
    Put(tensor, uint64_t(0)); // where it begins
    for (float value : values)
      Put(data, value);
    return *this;
  }
  std::string Bytes() const {
    std::string all = "GGUF";
    Put(all, uint32_t(3));
    Put(all, uint64_t(tensor.empty() ? 0 : 1));
    Put(all, count);
    all += keys + tensor;
    if (!tensor.empty())
      all.resize((all.size() + 31) / 32 * 32);
    return all + data;
  }

private:
  void Key(const std::string &key, uint32_t type) {
    ++count;
    Put(keys, prefix + key);
    Put(keys, type);
  }
  template <typename T> static void Put(std::string &to, const T &value) {
    to.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  static void Put(std::string &to, const std::string &value) {
    Put(to, uint64_t(value.size()));
    to += value;
  }

  std::string prefix, keys, tensor, data;
  uint64_t count = 0; // of keys
};

} // namespace boa

#endif // BOA_TEST_RUNTIME_WEIGHTS_GGUF_H
