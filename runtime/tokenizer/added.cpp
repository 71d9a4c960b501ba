//===- added.cpp - Tokens that are found in the text itself ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/added.h"

#include "runtime/tokenizer/unicode.h"

namespace boa {
namespace {

/// Where the last code point before `at` begins.
size_t Before(absl::string_view text, size_t at) {
  do
    --at;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80);
  return at;
}

bool IsWordAt(absl::string_view text, size_t at) {
  return (ClassifyAt(text, at).classes & kWord) != 0;
}

} // namespace

void AddedFinder::Add(const AddedToken &token, absl::string_view content) {
  uint32_t node = 0;
  for (char byte : content) {
    const uint64_t edge = static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
    auto [it, is_new] = edges.emplace(edge, static_cast<uint32_t>(nodes.size()));
    node = it->second;
    if (is_new)
      nodes.push_back(nullptr);
  }
  nodes[node] = &token;
  begins[static_cast<uint8_t>(content[0])] = true;
}

const AddedToken *AddedFinder::LongestAt(absl::string_view text, size_t at, size_t &bytes) const {
  const AddedToken *longest = nullptr;
  uint32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    auto it = edges.find(static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(text[i]));
    if (it == edges.end())
      break;
    node = it->second;
    if (nodes[node]) {
      longest = nodes[node];
      bytes = i + 1 - at;
    }
  }
  return longest;
}

bool AddedFinder::MayBeginAt(absl::string_view text, size_t at) const {
  if (!begins[static_cast<uint8_t>(text[at])])
    return false;
  uint32_t node = 0;
  for (; at < text.size(); ++at) {
    auto it = edges.find(static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(text[at]));
    if (it == edges.end())
      return false;
    node = it->second;
    if (nodes[node])
      return true;
  }
  return true;
}

void AddedFinder::Split(absl::string_view text, bool special, const PlainText &plain,
                        std::vector<Section> &sections) const {
  size_t done = 0; // sections reach to here
  auto next = plain.ranges.begin();
  for (size_t at = 0; at < text.size();) {
    while (next != plain.ranges.end() && next->second <= at)
      ++next;
    size_t bytes = 0;
    const AddedToken *token =
        begins[static_cast<uint8_t>(text[at])] ? LongestAt(text, at, bytes) : nullptr;
    if (token && plain.Hides(*token) && next != plain.ranges.end() && at + bytes > next->first) {
      // It is of what somebody wrote, at least in part. A shorter one may end before that.
      token = at < next->first ? LongestAt(text.substr(0, next->first), at, bytes) : nullptr;
    }
    if (!token) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + bytes;
    at = end;
    if (token->special && !special)
      continue;
    if (token->single_word && ((begin > 0 && IsWordAt(text, Before(text, begin))) ||
                               (end < text.size() && IsWordAt(text, end))))
      continue;
    if (token->left_strip)
      while (begin > done) {
        const size_t before = Before(text, begin);
        if (!(ClassifyAt(text, before).classes & kSpace))
          break;
        begin = before;
      }
    if (token->right_strip)
      while (end < text.size()) {
        const ClassAt here = ClassifyAt(text, end);
        if (!(here.classes & kSpace))
          break;
        end += here.bytes;
      }
    if (begin > done)
      sections.push_back({nullptr, text.substr(done, begin - done)});
    sections.push_back({token, text.substr(begin, end - begin)});
    at = done = end;
  }
  if (done < text.size())
    sections.push_back({nullptr, text.substr(done)});
}

} // namespace boa
