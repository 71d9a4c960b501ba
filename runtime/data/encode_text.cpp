//===- encode_text.cpp - Tokens of a text that may be larger than memory --===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/encode_text.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

namespace boa {
namespace {

// Without a place to cut it, a text is one part.
constexpr size_t kLargestPart = 1 << 30;

/// The bytes and lines of a text before a part.
struct TextPlace {
  int64_t bytes = 0, lines = 0;
};

/// The line of a part in which a token stands, found by trying each; from 1, or 0.
int64_t LineOf(absl::string_view part, int32_t token, Encoder &encoder, EncodeOptions options) {
  options.surround = false;
  std::vector<int32_t> tokens;
  for (int64_t line = 1; !part.empty(); ++line) {
    const size_t end = std::min(part.find('\n'), part.size() - 1) + 1;
    tokens.clear();
    if (encoder.Encode(part.substr(0, end), options, tokens).ok() &&
        std::find(tokens.begin(), tokens.end(), token) != tokens.end())
      return line;
    part.remove_prefix(end);
  }
  return 0;
}

} // namespace

int32_t FindBeyond(const std::vector<int32_t> &tokens, int64_t vocab) {
  const auto found =
      std::find_if(tokens.begin(), tokens.end(), [&](int32_t token) { return token >= vocab; });
  return found == tokens.end() ? -1 : *found;
}

absl::Status EncodeText(const InputFile &file, const TextOptions &options,
                        const std::shared_ptr<const Tokenizer> &tokenizer, Encoder &encoder,
                        const std::function<absl::Status(const std::vector<int32_t> &)> &take,
                        const std::function<absl::Status(int64_t)> &show) {
  EncodeOptions encode;
  encode.special = options.special;
  std::string part;
  std::vector<int32_t> tokens;
  absl::StatusOr<int64_t> begin = BeginOfText(file);
  if (!begin.ok())
    return begin.status();
  TextPlace before = {*begin, 0};
  for (int64_t at = *begin; at < file.size() || !part.empty();) {
    // Twice as much after each part without a place to cut, since all of it is looked at again.
    const int64_t count =
        std::min(std::max<int64_t>(options.part_bytes, part.size()), file.size() - at);
    const size_t old = part.size();
    part.resize(old + count);
    if (absl::Status status = file.Read(at, part.data() + old, count); !status.ok())
      return status;
    at += count;
    const bool is_last = at == file.size();
    const size_t cut = is_last ? part.size() : tokenizer->FindCut(part);
    if (cut == 0) {
      if (part.size() > kLargestPart)
        return absl::InvalidArgumentError(
            absl::StrCat("`", file.path(), "`: no place to cut it in ", part.size(),
                         " bytes; give a text of this tokenizer in smaller files"));
      continue;
    }
    tokens.clear();
    encode.closes = is_last;
    const absl::string_view whole = absl::string_view(part).substr(0, cut);
    absl::Status status = encoder.Encode(whole, encode, tokens);
    if (!status.ok())
      return absl::InvalidArgumentError(absl::StrCat(
          "`", file.path(), "`: ",
          before.bytes > *begin
              ? absl::StrCat("behind byte ", before.bytes, " (", before.lines, " lines): ")
              : "",
          status.message()));
    if (const int32_t token = FindBeyond(tokens, options.vocab); token >= 0) {
      const int64_t line = LineOf(whole, token, encoder, encode);
      return absl::InvalidArgumentError(
          absl::StrCat("`", file.path(), "`, line ", before.lines + std::max<int64_t>(line, 1),
                       line > 0 ? "" : " or behind it", ": token ", token,
                       " is outside the vocabulary of ", options.vocab));
    }
    status = take(tokens);
    if (!status.ok())
      return status;
    before.bytes += static_cast<int64_t>(cut);
    before.lines += std::count(part.begin(), part.begin() + cut, '\n');
    part.erase(0, cut);
    encode.begins = false;
    if (status = show(at); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

} // namespace boa
