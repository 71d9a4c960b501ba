//===- unicode.cpp - Code points, their classes, normal forms -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/unicode.h"

#include <algorithm>
#include <tuple>
#include <utf8proc.h>
#include <vector>

namespace boa {
namespace {

bool IsSpace(uint32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

/// Alphabetic code points that are no letters, marks or numbers, and the joiners.
bool IsOtherWord(uint32_t c) {
  return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
         (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189) || c == 0x200c ||
         c == 0x200d;
}

uint16_t ClassByCategory(uint32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LT:
    return kLetter | kUpper | kWord;
  case UTF8PROC_CATEGORY_LL:
    return kLetter | kLower | kWord;
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
    return kLetter | kUncased | kWord;
  case UTF8PROC_CATEGORY_MN:
    return kMark | kNonspacing | kWord;
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
    return kMark | kWord;
  case UTF8PROC_CATEGORY_ND:
    return kNumber | kDecimal | kWord;
  case UTF8PROC_CATEGORY_NL:
    return kNumber | kWord;
  case UTF8PROC_CATEGORY_NO:
    return kNumber;
  case UTF8PROC_CATEGORY_PC:
    return kPunct | kWord;
  case UTF8PROC_CATEGORY_PD:
  case UTF8PROC_CATEGORY_PS:
  case UTF8PROC_CATEGORY_PE:
  case UTF8PROC_CATEGORY_PI:
  case UTF8PROC_CATEGORY_PF:
  case UTF8PROC_CATEGORY_PO:
    return kPunct;
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CN:
  case UTF8PROC_CATEGORY_CO:
    return kOther;
  default:
    return 0;
  }
}

uint16_t ComputeClass(uint32_t c) {
  uint16_t classes = ClassByCategory(c);
  if (c > 32 && c < 127 && !(classes & (kLetter | kNumber)))
    classes |= kPunct;
  if (IsSpace(c))
    classes |= kSpace;
  if (c == '\r' || c == '\n')
    classes |= kNewline;
  if (IsOtherWord(c))
    classes |= kWord;
  return classes;
}

struct AsciiClasses {
  uint16_t of[128];
  AsciiClasses() {
    for (uint32_t c = 0; c < 128; ++c)
      of[c] = ComputeClass(c);
  }
};
const AsciiClasses kAscii;

/// The length of the valid sequence at `at`, 0 if there is none. `missing`: whether more bytes
/// could make it one.
int SequenceLength(absl::string_view text, size_t at, bool &missing) {
  missing = false;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80)
    return 1;
  const int length = lead >= 0xc2 && lead <= 0xdf   ? 2
                     : lead >= 0xe0 && lead <= 0xef ? 3
                     : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                    : 0;
  for (int i = 1; i < length; ++i) {
    if (at + i >= text.size()) {
      missing = true;
      return 0;
    }
    // Overlong forms, surrogates and code points above U+10FFFF show in the second byte.
    const uint8_t low = i == 1 && lead == 0xe0 ? 0xa0 : i == 1 && lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = i == 1 && lead == 0xed ? 0x9f : i == 1 && lead == 0xf4 ? 0x8f : 0xbf;
    if (byte(i) < low || byte(i) > high)
      return 0;
  }
  return length;
}

/// No code point below U+0300 changes in form C.
bool IsComposed(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return static_cast<uint8_t>(byte) < 0xcc; });
}

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return byte >= 0; });
}

std::string Encode(const std::vector<utf8proc_int32_t> &code_points, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i)
    AppendUtf8(static_cast<uint32_t>(code_points[i]), out);
  return out;
}

} // namespace

uint16_t ClassOf(uint32_t code_point) {
  return code_point < 128 ? kAscii.of[code_point] : ComputeClass(code_point);
}

CodePoint DecodeAt(absl::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(text[at + i]));
  };
  const uint32_t lead = byte(0);
  if (lead < 0x80)
    return {lead, 1};
  if (lead < 0xe0)
    return {(lead & 31) << 6 | (byte(1) & 63), 2};
  if (lead < 0xf0)
    return {(lead & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63), 3};
  return {(lead & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63), 4};
}

ClassAt ClassifyAt(absl::string_view text, size_t at) {
  const uint8_t lead = static_cast<uint8_t>(text[at]);
  if (lead < 128)
    return {kAscii.of[lead], 1};
  const CodePoint point = DecodeAt(text, at);
  return {ComputeClass(point.value), point.bytes};
}

void AppendUtf8(uint32_t code_point, std::string &out) {
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char *>(bytes), static_cast<size_t>(count));
}

size_t FindInvalidUtf8(absl::string_view text) {
  for (size_t at = 0; at < text.size();) {
    bool missing = false;
    const int length = SequenceLength(text, at, missing);
    if (length == 0)
      return at;
    at += length;
  }
  return absl::string_view::npos;
}

size_t IncompleteUtf8(absl::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const size_t at = text.size() - back;
    if ((static_cast<uint8_t>(text[at]) & 0xc0) == 0x80)
      continue; // not the first byte of a sequence
    bool missing = false;
    SequenceLength(text, at, missing);
    return missing ? back : 0;
  }
  return 0;
}

std::string Normalize(absl::string_view text, NormalForm form) {
  if (form == NormalForm::nfc ? IsComposed(text) : IsAscii(text))
    return std::string(text);
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const auto decompose =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  utf8proc_int32_t parts[64]; // the longest decomposition has 18
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeAt(text, at);
    at += point.bytes;
    int last = UTF8PROC_BOUNDCLASS_START;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(point.value), parts,
                                               64, decompose, &last);
    if (count > 0 && count <= 64)
      points.insert(points.end(), parts, parts + count);
    else
      points.push_back(static_cast<utf8proc_int32_t>(point.value));
  }
  // The order of marks. utf8proc's own takes quadratic time for a long run.
  std::vector<std::tuple<int, size_t, utf8proc_int32_t>> keys;
  const auto order = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (size_t i = 0; i < points.size();) {
    size_t end = i;
    while (end < points.size() && points[end] >= 0x300 && order(points[end]) != 0)
      ++end;
    // Marks of one order keep theirs: the key has the place.
    keys.clear();
    for (size_t k = i; k < end; ++k)
      keys.push_back({order(points[k]), k, points[k]});
    std::sort(keys.begin(), keys.end());
    for (size_t k = i; k < end; ++k)
      points[k] = std::get<2>(keys[k - i]);
    i = std::max(end, i + 1);
  }
  size_t count = points.size();
  if (form == NormalForm::nfc || form == NormalForm::nfkc) {
    const auto composed = utf8proc_normalize_utf32(
        points.data(), static_cast<utf8proc_ssize_t>(count),
        static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    count = composed < 0 ? count : static_cast<size_t>(composed);
  }
  return Encode(points, count);
}

std::string Lowercase(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeAt(text, at);
    at += point.bytes;
    if (point.value < 128)
      out.push_back(point.value >= 'A' && point.value <= 'Z' ? char(point.value + 32)
                                                             : char(point.value));
    else if (point.value == 0x130) // the one that becomes two
      out += "i\xcc\x87";
    else
      AppendUtf8(static_cast<uint32_t>(utf8proc_tolower(utf8proc_int32_t(point.value))), out);
  }
  return out;
}

std::string Without(absl::string_view text, uint16_t classes) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const ClassAt here = ClassifyAt(text, at);
    if (!(here.classes & classes))
      out.append(text.data() + at, here.bytes);
    at += here.bytes;
  }
  return out;
}

} // namespace boa
