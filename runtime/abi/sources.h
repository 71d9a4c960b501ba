//===- sources.h - What `train.data` names ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values of `data` and `validate` as text. The frontend writes it into the program, and
// users write it behind --data:
//
//   a/path.txt                                      a text; each byte is a token
//   tokens("shards/*.bin", uint16, end = 50256)     files of tokens; `tokenizer = "t.json"` tells
//                                                   which of them are special
//   text("a/*.txt", tokenizer = "t.json")           texts of which a tokenizer makes tokens; with
//                                                   `special = true` special tokens in them count
//   chat("a.jsonl", tokenizer = "t.json")           conversations, of which the answers are
//                                                   learnt; `template = "NAME"` is their form, or
//                                                   the path of a file of Jinja, and
//                                                   `template_values = {...}` its variables
//   text(..., packed = false), chat(..., ...)       each document begins a sequence of its own
//   mix(0.7 tokens("a/*.bin"), 0.3 chat(...))       samples of several, in shares
//
// A path that begins like a call is written with ./ before it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_SOURCES_H
#define BOA_RUNTIME_ABI_SOURCES_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace boa {

inline constexpr const char *kTokenTypes[] = {"uint8", "uint16", "uint32", "int32", "int64"};
inline constexpr size_t kMostSources = 64;

/// Chat templates that have a name (runtime/tokenizer/templates).
inline constexpr const char *kTemplateNames[] = {
    "chatml", "smollm2", "qwen2",        "qwen2.5",    "llama3",       "llama3.1",
    "gemma",  "gemma2",  "mistral-v0.2", "mistral-v1", "mistral-nemo", "mistral-v7"};

enum class SourceKind { bytes, tokens, text, chat };

struct DataSource {
  SourceKind kind = SourceKind::bytes;
  std::string files; // of bytes a path, else a path or a pattern
  // tokens
  std::string type;      // of kTokenTypes; empty: that of the header, or uint16
  int64_t end = -1;      // the token that ends a document; negative: none
  std::string tokenizer; // path of its file; empty: none, of tokens alone
  // text and chat
  bool special = false; // text: special tokens in it count as such
  std::string form;     // chat: name or path of the template; empty: that of the tokenizer
  std::string values;   // chat: variables of the template, an object of JSON; empty: none
  bool packed = true;   // false: each document begins a sequence
  double share = 1;     // in a mix

  bool is_tokenized() const { return kind == SourceKind::text || kind == SourceKind::chat; }
  /// Whether `form` is a path.
  bool has_template_file() const;
};

/// The name of a kind's call; "" of bytes.
const char *CallOf(SourceKind);

/// `tokens(...)`, without the share; of bytes the path.
std::string FormatSource(const DataSource &);
std::string FormatSources(const std::vector<DataSource> &);

/// Empty with an error if the text is a call that is wrong.
std::vector<DataSource> ParseSources(std::string_view text, std::string &error);

/// The first chat(...) of `data`; without one, a source that names no template.
DataSource ChatOf(std::string_view data);

/// The shares as whole numbers without a common divisor: {7, 3}. Empty if one of them is not above
/// 0 or has more than six decimals.
std::vector<int64_t> WholeShares(const std::vector<DataSource> &);

/// Whether a text would be read as a call.
bool IsSourceCall(std::string_view text);

} // namespace boa

#endif // BOA_RUNTIME_ABI_SOURCES_H
