//===- source.h - Where sequences come from ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A source has a number of windows, each of one token more than a sequence: the last one is a
// target only. It stays in its files, which may be larger than memory.
//
// Threads: all calls are const, and several threads may make them at once.
// Errors: each names the file. A read is complete, or it fails.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_SOURCE_H
#define BOA_RUNTIME_DATA_SOURCE_H

#include "runtime/abi/sources.h"
#include "runtime/data/token_cache.h"
#include "runtime/io/input_file.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace boa {

struct Window {
  std::vector<int32_t> tokens; // context + 1; 0 where padding stands
  int64_t first = 0;           // token of the source
  int64_t content = 0;         // tokens; padding follows them
  /// Positions whose next token is no target, perhaps some of them twice. Of a masked source,
  /// positions whose own token is none.
  std::vector<int64_t> untargeted;
  /// Positions at which documents begin, in any order. The first position need not be among them.
  std::vector<int64_t> begins;
};

struct FilePrint {
  std::string path;
  uint64_t hash = 0;
};
/// One hash of several files in their order.
uint64_t Combine(const std::vector<FilePrint> &);

class Source {
public:
  virtual ~Source() = default;

  /// As the user wrote it: a path, or `tokens("a/*.bin")`.
  virtual std::string name() const = 0;
  /// What it counts: "bytes" or "tokens".
  virtual const char *unit() const = 0;
  virtual int64_t size() const = 0;
  virtual int64_t windows() const = 0;
  /// Whether a window begins at each token, as in a text. Else each token is in one window.
  virtual bool overlaps() const = 0;
  /// One that overlaps has windows behind the last, too, as long as a token stands in them.
  virtual absl::Status Read(int64_t window, Window &) const = 0;
  /// All windows, in the order of the source: also those that are left out, since they have no
  /// target. Of a source that overlaps, those at multiples of the context.
  virtual int64_t all_windows() const = 0;
  virtual bool LeavesOut(int64_t) const { return false; }
  virtual absl::Status ReadAny(int64_t window, Window &) const = 0;
  /// Whether Read tells where documents begin. Else all is one document.
  virtual bool TellsDocuments() const { return false; }
  /// A hash of each file. A resumed run compares them.
  virtual absl::StatusOr<std::vector<FilePrint>> Fingerprints() const = 0;
  /// "3 files of 12,000 tokens".
  virtual std::string Describe() const = 0;

  /// The first windows, which are for training if the source is for validation, too.
  virtual int64_t training_windows() const = 0;
  /// The first window of the last tenth, which is for validation then. Windows between the two
  /// have parts in both.
  virtual int64_t first_validation_window() const = 0;
};

struct SourceOptions {
  int64_t vocab = 256, context = 0;
  bool masked = false; // a token is predicted where it stands, and not before
  CacheOptions cache;  // of text(...) and chat(...)
};

/// Opens all files, and checks what can be checked without reading all of them.
absl::StatusOr<std::unique_ptr<Source>> OpenSource(const DataSource &, const SourceOptions &);

/// The files of sources, in the order in which they are read, and those of their tokenizers and
/// templates. A pattern that matches nothing has none.
std::vector<std::string> FilesOf(const std::vector<DataSource> &);

/// A hash of a file's size and of blocks spread over it.
absl::StatusOr<uint64_t> HashOfFile(const InputFile &, int64_t block_bytes, int64_t blocks);

} // namespace boa

#endif // BOA_RUNTIME_DATA_SOURCE_H
