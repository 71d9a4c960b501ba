//===- sealed.cpp - Lines of JSON with a checksum -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/sealed.h"

#include "runtime/formats/json.h"
#include "runtime/state/checksum.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace boa {

std::string SealedBegin(const char *format, int32_t version) {
  return absl::StrCat(R"({"format":")", format, R"(","version":)", version, ",");
}

std::string SealText(std::string line) {
  line += '\n';
  absl::StrAppendFormat(&line, "xxh3 %016x\n", Checksum(line.data(), int64_t(line.size())));
  return line;
}

std::string Seal(const char *format, int32_t version, const Json &json) {
  return SealText(absl::StrCat(SealedBegin(format, version), json.dump().substr(1)));
}

absl::Status Damaged(const std::string &path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, " is damaged (", what, ")"));
}

/// Whether this may be a text of Seal with one wrong byte or a missing piece. Otherwise another
/// program wrote it.
static bool MayBeOurs(absl::string_view text, const char *format) {
  constexpr absl::string_view kBegin = "{\"format\":\"boa-";
  if (text.substr(0, kBegin.size()) == kBegin.substr(0, text.size()))
    return true;
  return text.find_first_not_of('\0') == absl::string_view::npos ||
         absl::StrContains(text, format) || absl::StrContains(text, "\nxxh3 ");
}

absl::StatusOr<Json> Unseal(absl::string_view text, const std::string &path, const char *format,
                            int32_t version) {
  size_t end = text.find('\n');
  absl::string_view line = text.substr(0, end == absl::string_view::npos ? text.size() : end + 1);
  absl::Status foreign = absl::FailedPreconditionError(
      absl::StrCat(path, " is not of a training state: move it away, or choose another directory"));
  std::string sum = absl::StrFormat("xxh3 %016x\n", Checksum(line.data(), int64_t(line.size())));
  if (text.substr(line.size()) != sum)
    return MayBeOurs(text, format) ? Damaged(path, "truncated, or its checksum does not match")
                                   : foreign;
  absl::StatusOr<Json> json = ParseJson(line);
  if (!json.ok())
    return Damaged(path, json.status().message());
  if (!json->is_object() || json->value("format", Json()) != Json(format))
    return foreign;
  const Json found = json->value("version", Json());
  if (found == Json(version))
    return json;
  return absl::UnimplementedError(
      absl::StrFormat("%s has version %s and this trainer knows %d: use the trainer that made it",
                      path, found.dump(), version));
}

std::string Escape(const std::string &text) { return absl::CHexEscape(text); }

bool Unescape(const Json &value, size_t most, std::string &text) {
  return value.is_string() && absl::CUnescape(value.get_ref<const std::string &>(), &text) &&
         text.size() <= most;
}

bool IsSum(absl::string_view text) {
  return text.size() == kSumDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

} // namespace boa
