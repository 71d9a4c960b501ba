//===- source.cpp - The text of a template, for errors --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/source.h"

#include "runtime/support/printable.h"
#include "runtime/template/text.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace boa::jinja {

int64_t Source::LineOf(int32_t at) const {
  return 1 + std::count(text.begin(), text.begin() + std::min<size_t>(at, text.size()), '\n');
}

absl::Status Source::Error(absl::StatusCode code, int32_t at, absl::string_view message) const {
  const absl::string_view all = text;
  constexpr size_t kLongest = 2000; // a template may put a text of the user into a message
  std::string said = Printable(std::string(message.substr(0, kLongest)));
  if (message.size() > kLongest)
    said += "...";
  const size_t place = std::min<size_t>(at, all.size());
  size_t begin = place == 0 ? 0 : all.rfind('\n', place - 1) + 1; // npos + 1 is 0
  size_t end = std::min(all.find('\n', place), all.size());
  // Many templates are one long line.
  constexpr size_t kBefore = 40, kAfter = 60;
  absl::string_view more_before, more_after;
  if (place - begin > kBefore) {
    begin = place - kBefore;
    while ((static_cast<uint8_t>(all[begin]) & 0xc0) == 0x80)
      ++begin;
    more_before = "...";
  }
  if (end - place > kAfter) {
    end = place + kAfter;
    while ((static_cast<uint8_t>(all[end]) & 0xc0) == 0x80)
      --end;
    more_after = "...";
  }
  const absl::string_view before =
      Strip(all.substr(begin, place - begin), more_before.empty() ? kLeft : 0);
  const std::string shown = absl::StrCat(more_before, Printable(std::string(before)));
  return absl::Status(
      code, absl::StrCat("`", name, "`, line ", LineOf(at), ": ", said, "\n  ", shown,
                         Printable(std::string(all.substr(place, end - place))), more_after, "\n  ",
                         std::string(static_cast<size_t>(Length(shown)), ' '), "^"));
}

} // namespace boa::jinja
