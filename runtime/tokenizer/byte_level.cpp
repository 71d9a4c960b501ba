//===- byte_level.cpp - Bytes written as printable characters -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/readers.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"

#include <array>
#include <utility>

namespace boa {
namespace {

/// The byte that a code point stands for; -1. Printable bytes of Latin-1 stand for themselves, the
/// others in their order for U+0100 and what follows.
struct Printables {
  std::array<int, 512> byte;
  Printables() {
    byte.fill(-1);
    int next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool itself = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      byte[itself ? b : next++] = b;
    }
  }
};

} // namespace

bool BytesOfPrintable(absl::string_view token, std::string &bytes) {
  static const Printables printables;
  bytes.clear();
  for (size_t at = 0; at < token.size();) {
    const CodePoint point = DecodeAt(token, at);
    const int byte = point.value < 512 ? printables.byte[point.value] : -1;
    if (byte < 0)
      return false;
    bytes.push_back(static_cast<char>(byte));
    at += point.bytes;
  }
  return true;
}

absl::Status MakeByteLevel(Definition &definition, const std::string &source) {
  absl::flat_hash_set<int32_t> added;
  for (const AddedToken &token : definition.added)
    added.insert(token.id);
  std::string bytes;
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    std::string &token = definition.tokens[id];
    if (BytesOfPrintable(token, bytes))
      token = bytes;
    else if (added.contains(static_cast<int32_t>(id)))
      token.clear(); // found in the text, not by merging
    else
      return RefuseFile(source, "token ", id, ", `", absl::CHexEscape(token),
                        "`, is not written in the characters that stand for bytes");
  }
  return absl::OkStatus();
}

} // namespace boa
