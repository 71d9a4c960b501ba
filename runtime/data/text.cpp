//===- text.cpp - A text as tokens ----------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/text.h"

#include "runtime/data/file_kinds.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace boa {
namespace {

class Text : public Source {
public:
  Text(std::string path, InputFile file, int64_t first, const SourceOptions &options)
      : path(std::move(path)), file(std::move(file)), first(first), context(options.context),
        masked(options.masked) {}

  std::string name() const override { return path; }
  const char *unit() const override { return "bytes"; }
  int64_t size() const override { return file.size() - first; }
  int64_t windows() const override { return std::max<int64_t>(size() - context, 0); }
  bool overlaps() const override { return true; }
  int64_t training_windows() const override {
    return std::max<int64_t>(first_validation_window() - context, 0);
  }
  int64_t first_validation_window() const override { return size() - size() / 10; }
  std::string Describe() const override { return FormatBytes(size()); }

  absl::Status Read(int64_t window, Window &to) const override {
    // Masked bytes see what follows, so that there is no padding (tokens.h).
    const int64_t begin = masked ? std::min(window, size() - context) : window;
    const int64_t count = std::min<int64_t>(context + 1, size() - begin);
    std::vector<uint8_t> bytes(context + 1);
    if (absl::Status status = file.Read(first + begin, bytes.data(), count); !status.ok())
      return status;
    to.tokens.assign(bytes.begin(), bytes.end());
    to.first = begin;
    to.content = count;
    to.untargeted.clear();
    to.begins.clear();
    for (int64_t i = begin; masked && i < window; ++i)
      to.untargeted.push_back(i - begin);
    for (int64_t i = count; !masked && i <= context; ++i)
      to.untargeted.push_back(i - 1);
    return absl::OkStatus();
  }

  /// Of masked bytes, the last one is a target, too.
  int64_t all_windows() const override {
    return std::max<int64_t>((size() - !masked + context - 1) / context, 0);
  }
  absl::Status ReadAny(int64_t window, Window &to) const override {
    return Read(window * context, to);
  }

  absl::StatusOr<std::vector<FilePrint>> Fingerprints() const override {
    absl::StatusOr<uint64_t> hash = HashOfFile(file, 64 << 10, 256);
    if (!hash.ok())
      return hash.status();
    return std::vector<FilePrint>{{path, *hash}};
  }

  absl::Status CheckVocabulary(int64_t vocab) const {
    if (vocab >= 256)
      return absl::OkStatus();
    std::vector<uint8_t> block(1 << 20);
    for (int64_t offset = first; offset < file.size(); offset += block.size()) {
      const int64_t count = std::min<int64_t>(block.size(), file.size() - offset);
      if (absl::Status status = file.Read(offset, block.data(), count); !status.ok())
        return status;
      for (int64_t i = 0; i < count; ++i)
        if (block[i] >= vocab)
          return absl::InvalidArgumentError(
              absl::StrCat("`", path, "`: byte ", static_cast<int>(block[i]), " at offset ",
                           offset + i, " is outside the vocabulary of ", vocab));
    }
    return absl::OkStatus();
  }

private:
  const std::string path;
  const InputFile file;
  const int64_t first; // byte of the text in the file
  const int64_t context;
  const bool masked;
};

} // namespace

absl::StatusOr<std::unique_ptr<Source>> OpenText(const DataSource &source,
                                                 const SourceOptions &options) {
  absl::StatusOr<InputFile> file = InputFile::Open(source.files);
  if (!file.ok()) {
    std::error_code error;
    const std::string whole = std::filesystem::absolute(source.files, error).string();
    return absl::Status(file.status().code(),
                        absl::StrCat("training data: ", file.status().message(),
                                     "\n  looked for: ", error ? source.files : whole));
  }
  if (absl::Status status = CheckKind(*file, Wanted::bytes); !status.ok())
    return status;
  absl::StatusOr<int64_t> first = BeginOfText(*file);
  if (!first.ok())
    return first.status();
  auto text = std::make_unique<Text>(source.files, *std::move(file), *first, options);
  if (absl::Status status = text->CheckVocabulary(options.vocab); !status.ok())
    return status;
  return text;
}

} // namespace boa
