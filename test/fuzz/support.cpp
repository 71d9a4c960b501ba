//===- support.cpp - What the fuzz targets share --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fuzz/support.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <unistd.h>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

// Of what is linked, only Boa is instrumented. Memory that LLVM's allocators
// hand out in the library, and poison in our own translation units, is no fault.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0:detect_container_overflow=0:detect_leaks=0";
}
extern "C" const char *__ubsan_default_options() { return "print_stacktrace=1"; }

namespace boa::fuzz {
namespace {

/// The text in parts: words, numbers, and what is between them.
enum class Kind { word, number, other };
struct Part {
  Kind kind;
  std::string text;
};

Kind KindOf(const std::vector<Part> &parts, char c) {
  const Kind before = parts.empty() ? Kind::other : parts.back().kind;
  if (std::isdigit(static_cast<unsigned char>(c)) && before != Kind::word)
    return Kind::number;
  if (c == 'x' && before == Kind::number) // between dimensions
    return Kind::other;
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? Kind::word : Kind::other;
}

std::vector<Part> Split(std::string_view text) {
  std::vector<Part> parts;
  for (char c : text) {
    const Kind kind = KindOf(parts, c);
    if (parts.empty() || kind == Kind::other || parts.back().kind != kind)
      parts.push_back({kind, ""});
    parts.back().text += c;
  }
  return parts;
}

const char *const kEdges[] = {"0",
                              "1",
                              "2",
                              "3",
                              "255",
                              "256",
                              "4096",
                              "65536",
                              "2147483647",
                              "2147483648",
                              "4294967296",
                              "4611686018427387904",
                              "9223372036854775807",
                              "9223372036854775808",
                              "18446744073709551615",
                              "340282366920938463463374607431768211456",
                              "1e308",
                              "1e-320"};

class Mutator {
public:
  Mutator(std::string_view text, unsigned seed) : random(seed), text(text) {}

  std::string Run() {
    for (size_t times = 1 + Below(3); times > 0; --times)
      switch (Below(8)) {
      case 0:
      case 1:
      case 2:
        Number();
        break;
      case 3:
      case 4:
        Word();
        break;
      case 5:
        Any();
        break;
      default:
        Line();
      }
    return text;
  }

private:
  size_t Below(size_t count) { return count ? random() % count : 0; }

  /// The place of a random part of `kind`; none: the number of parts.
  size_t Pick(const std::vector<Part> &parts, Kind kind) {
    std::vector<size_t> found;
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i].kind == kind)
        found.push_back(i);
    return found.empty() ? parts.size() : found[Below(found.size())];
  }

  void Join(const std::vector<Part> &parts) {
    text.clear();
    for (const Part &part : parts)
      text += part.text;
  }

  void Number() {
    auto parts = Split(text);
    const size_t at = Pick(parts, Kind::number);
    if (at == parts.size())
      return;
    std::string &number = parts[at].text;
    const long long value = std::strtoll(number.c_str(), nullptr, 10);
    switch (Below(6)) {
    case 0:
      number = kEdges[Below(std::size(kEdges))];
      break;
    case 1:
      number = std::to_string(value < INT64_MAX ? value + 1 : value);
      break;
    case 2:
      number = std::to_string(value - 1);
      break;
    case 3:
      number = std::to_string(value / 2);
      break;
    case 4:
      number = std::to_string(Below(100));
      break;
    default:
      number = parts[Pick(parts, Kind::number)].text;
    }
    Join(parts);
  }

  void Word() {
    auto parts = Split(text);
    const size_t at = Pick(parts, Kind::word);
    if (at == parts.size())
      return;
    parts[at].text = parts[Pick(parts, Kind::word)].text;
    Join(parts);
  }

  void Any() {
    auto parts = Split(text);
    if (parts.empty())
      return;
    const size_t at = Below(parts.size());
    if (Below(2))
      parts.erase(parts.begin() + at);
    else
      parts.insert(parts.begin() + at, parts[Below(parts.size())]);
    Join(parts);
  }

  void Line() {
    const char end = std::count(text.begin(), text.end(), '\n') > 3 ? '\n' : ',';
    std::vector<std::string> lines(1);
    for (char c : text) {
      lines.back() += c;
      if (c == end)
        lines.emplace_back();
    }
    const size_t at = Below(lines.size()), other = Below(lines.size());
    switch (Below(3)) {
    case 0:
      lines.erase(lines.begin() + at);
      break;
    case 1: {
      std::string copy = lines[at];
      lines.insert(lines.begin() + other, copy);
      break;
    }
    default:
      std::swap(lines[at], lines[other]);
    }
    text.clear();
    for (const std::string &line : lines)
      text += line;
  }

  std::minstd_rand random;
  std::string text;
};

} // namespace

void Require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

const std::string &Scratch() {
  static const struct Folder {
    Folder() {
      const char *parent = std::getenv("BOA_FUZZ_SCRATCH");
      path = std::string(parent ? parent : "/dev/shm") + "/boa-fuzz-" + std::to_string(getpid());
      std::filesystem::create_directories(path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  } folder;
  return folder.path;
}

void WriteFile(const std::string &path, std::string_view contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(contents.data(), static_cast<std::streamsize>(contents.size()));
}

size_t MutateText(uint8_t *data, size_t size, size_t most, unsigned seed) {
  if (size == 0 || seed % 4 == 0)
    return LLVMFuzzerMutate(data, size, most);
  std::string text = Mutator({reinterpret_cast<char *>(data), size}, seed).Run();
  size = std::min(text.size(), most);
  std::copy_n(text.begin(), size, data);
  return size;
}

} // namespace boa::fuzz
