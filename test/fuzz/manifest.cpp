//===- manifest.cpp - Any text as a manifest, any block as a head ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input as it is, and its first line with a checksum that matches, so that
// what stands behind the checksum is reached. What is accepted, written and read
// again is the same.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/checksum.h"
#include "runtime/state/manifest.h"
#include "test/fuzz/support.h"

#include "absl/strings/str_format.h"

using namespace boa;

static std::string Sealed(const std::string &text) {
  std::string line = text.substr(0, text.find('\n')) + "\n";
  return absl::StrFormat("%sxxh3 %016x\n", line, Checksum(line.data(), int64_t(line.size())));
}

static void TryManifest(const std::string &text) {
  absl::StatusOr<Manifest> manifest = ParseManifest(text, "manifest");
  if (!manifest.ok())
    return;
  std::string written = FormatManifest(*manifest);
  absl::StatusOr<Manifest> again = ParseManifest(written, "manifest");
  fuzz::Require(again.ok() && FormatManifest(*again) == written, "a manifest is written whole");
  fuzz::Require(again->parameters == manifest->parameters && again->state == manifest->state &&
                    again->home == manifest->home && again->sequence == manifest->sequence &&
                    again->version == manifest->version &&
                    again->computation.text == manifest->computation.text &&
                    again->tokenizer == manifest->tokenizer &&
                    again->base.has_value() == manifest->base.has_value(),
                "a manifest comes back");
  fuzz::Require(again->commits.size() == manifest->commits.size(), "all commits come back");
  for (size_t i = 0; i < manifest->commits.size(); ++i)
    fuzz::Require(again->commits[i].record.step == manifest->commits[i].record.step &&
                      again->commits[i].record.extra == manifest->commits[i].record.extra &&
                      again->commits[i].record.plan == manifest->commits[i].record.plan &&
                      again->commits[i].record.samples == manifest->commits[i].record.samples,
                  "a commit comes back");
}

static void TryHead(const std::string &text) {
  absl::StatusOr<DataHead> head = ParseHead(text, "data");
  if (!head.ok() || text.size() > size_t(kStateBlock))
    return;
  std::string written = FormatHead(*head);
  fuzz::Require(written.size() == size_t(kStateBlock), "a head is a block");
  absl::StatusOr<DataHead> again = ParseHead(written, "data");
  fuzz::Require(again.ok() && again->state == head->state && again->path == head->path,
                "a head comes back");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  TryManifest(text);
  TryManifest(Sealed(text));
  TryHead(text);
  TryHead(Sealed(text));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return fuzz::MutateText(data, size, most, seed);
}
