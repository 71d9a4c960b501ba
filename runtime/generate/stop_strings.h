//===- stop_strings.h - Strings that end a text -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_GENERATE_STOP_STRINGS_H
#define BOA_RUNTIME_GENERATE_STOP_STRINGS_H

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace boa {

/// Ends a text before the first of some strings, which comes in pieces. Text that one of them may
/// begin with waits for the next piece.
class StopStrings {
public:
  explicit StopStrings(std::vector<std::string> strings) : strings(std::move(strings)) {}

  /// The part of the text that can be written now.
  std::string Add(const std::string &piece) {
    waiting += piece;
    size_t end = std::string::npos, keep = 0;
    for (const std::string &stop : strings) {
      end = std::min(end, waiting.find(stop));
      for (size_t length = std::min(stop.size(), waiting.size()); length > keep; --length)
        if (waiting.compare(waiting.size() - length, length, stop, 0, length) == 0)
          keep = length;
    }
    found = end != std::string::npos;
    const size_t count = found ? end : waiting.size() - keep;
    std::string text = waiting.substr(0, count);
    waiting.erase(0, found ? waiting.size() : count);
    return text;
  }
  /// Whether one of them was found. The text is over.
  bool Found() const { return found; }
  /// The rest of a text that ends by itself.
  std::string Finish() { return std::exchange(waiting, ""); }

private:
  std::vector<std::string> strings;
  std::string waiting;
  bool found = false;
};

} // namespace boa

#endif // BOA_RUNTIME_GENERATE_STOP_STRINGS_H
