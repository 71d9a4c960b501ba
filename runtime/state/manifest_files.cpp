//===- manifest_files.cpp - The two manifests of a state ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/manifest_files.h"

#include "runtime/state/checksum.h"
#include "runtime/state/commit_files.h"
#include "runtime/support/memory_errors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <optional>
#include <utility>
#include <vector>

namespace boa {

static absl::Status HoldsNone(const std::string &home) {
  return absl::NotFoundError(absl::StrCat(home, " holds no training state"));
}

static absl::StatusOr<ReadManifests> ReadBoth(Directory &directory) {
  const std::string &home = directory.path();
  const std::string paths[] = {absl::StrCat(home, "/", kManifest),
                               absl::StrCat(home, "/", kManifestCopy)};
  std::vector<absl::StatusOr<Manifest>> read;
  std::optional<uint64_t> before; // of the first text: memory holds one of them at a time
  for (const char *name : {kManifest, kManifestCopy}) {
    const std::string &path = paths[read.size()];
    absl::StatusOr<std::string> text = ReadSmallFile(directory, name);
    const std::optional<uint64_t> sum =
        text.ok() ? std::optional(Checksum(text->data(), int64_t(text->size()))) : std::nullopt;
    if (sum && !read.empty() && read[0].ok() && sum == before)
      return ReadManifests{*std::move(read[0]), ""};
    read.push_back(text.ok() ? ParseManifest(*text, path) : text.status());
    before = sum;
    // A manifest of another version may hold facts that this trainer does not know.
    if (absl::IsUnimplemented(read.back().status()))
      return read.back().status();
  }
  // What cannot be read may be the newer one.
  for (size_t i : {0, 1})
    if (const absl::Status &status = read[i].status(); !status.ok() && !IsLoss(status))
      return absl::Status(
          status.code(), absl::StrCat(status.message(), "; if ", paths[i],
                                      " stays unreadable, remove it: then the other one is taken"));
  if (read[0].ok() && read[1].ok()) {
    Manifest &first = *read[0], &second = *read[1];
    if (first.state != second.state)
      return absl::FailedPreconditionError(
          absl::StrFormat("%s and %s are of two states: remove the one that does not belong there",
                          paths[0], paths[1]));
    if (first.sequence == second.sequence)
      return ReadManifests{std::move(first), ""};
    const bool newer = second.sequence > first.sequence; // the second one
    return ReadManifests{std::move(newer ? second : first),
                         absl::StrCat(paths[newer ? 0 : 1], " is older than ", paths[newer ? 1 : 0],
                                      ": a commit was cut short")};
  }
  for (size_t i : {0, 1})
    if (read[i].ok())
      return ReadManifests{*std::move(read[i]), absl::IsNotFound(read[1 - i].status())
                                                    ? absl::StrCat(paths[1 - i], " is missing")
                                                    : std::string(read[1 - i].status().message())};
  for (size_t i : {0, 1})
    if (absl::IsNotFound(read[i].status())) {
      const absl::Status &other = read[1 - i].status();
      if (absl::IsNotFound(other))
        return HoldsNone(home);
      if (!absl::IsDataLoss(other))
        return other;
      return absl::DataLossError(absl::StrCat(other.message(), ", and ", paths[i],
                                              " is missing: restore ", home, " from a copy"));
    }
  // The caller hears first of another program's file, or of one that cannot be read.
  for (const absl::StatusOr<Manifest> &manifest : read)
    if (!absl::IsDataLoss(manifest.status()))
      return manifest.status();
  return absl::DataLossError(absl::StrCat(read[0].status().message(),
                                          ", and so is its copy: restore ", home, " from a copy"));
}

absl::StatusOr<ReadManifests> ReadRoot(Directory &home) {
  return WithinMemory(absl::StrCat(home.path(), "/", kManifest), [&] { return ReadBoth(home); });
}

/// A trainer drops commits and removes their files meanwhile. Then the manifests are others.
static absl::StatusOr<ReadManifests> ReadCommits(FileSystem &disk, Directory &home, bool tables) {
  constexpr int kTries = 1000;
  for (int tries = 1;; ++tries) {
    absl::StatusOr<ReadManifests> read = ReadBoth(home);
    if (!read.ok())
      return read;
    Manifest &manifest = read->manifest;
    CommitLoader loader(disk, home, manifest);
    bool lacks = false;
    for (SavedCommit &commit : manifest.commits) {
      absl::Status status = loader.Load(commit);
      if (status.ok() && tables)
        status = loader.LoadTables(commit);
      lacks |= absl::IsNotFound(status);
      if (absl::Status other = KeepFault(commit, status, home.path()); !other.ok())
        return other;
    }
    lacks |= !loader.notes().empty(); // of two copies, one may have gone
    read->commit_notes = loader.notes();
    if (!lacks || tries == kTries)
      return read;
    const absl::StatusOr<ReadManifests> now = ReadBoth(home);
    if (!now.ok() || now->manifest.sequence == manifest.sequence)
      return read;
  }
}

absl::StatusOr<ReadManifests> ReadManifest(FileSystem &disk, Directory &home, bool tables) {
  return WithinMemory(absl::StrCat(home.path(), "/", kManifest),
                      [&] { return ReadCommits(disk, home, tables); });
}

static absl::StatusOr<std::shared_ptr<Directory>> OpenHome(FileSystem &disk,
                                                           const std::string &home) {
  absl::StatusOr<std::shared_ptr<Directory>> directory = disk.OpenDirectory(home);
  return absl::IsNotFound(directory.status()) ? HoldsNone(home) : directory;
}

absl::StatusOr<ReadManifests> ReadRoot(FileSystem &disk, const std::string &home) {
  absl::StatusOr<std::shared_ptr<Directory>> directory = OpenHome(disk, home);
  return directory.ok() ? ReadRoot(**directory) : directory.status();
}

absl::StatusOr<ReadManifests> ReadManifest(FileSystem &disk, const std::string &home, bool tables) {
  absl::StatusOr<std::shared_ptr<Directory>> directory = OpenHome(disk, home);
  return directory.ok() ? ReadManifest(disk, **directory, tables) : directory.status();
}

absl::Status CheckUnchanged(Directory &home, const Manifest &manifest) {
  absl::StatusOr<ReadManifests> now = ReadRoot(home);
  if (!now.ok() && !absl::IsNotFound(now.status()))
    return now.status();
  if (!now.ok() ||
      (now->manifest.sequence <= manifest.sequence && now->manifest.state == manifest.state))
    return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      home.path(),
      " was changed by another process while this one opened it: run the same command again"));
}

absl::Status ManifestWriter::CheckOwn(Directory &directory) const {
  const std::string &home = directory.path();
  bool mine = false;
  for (const char *name : {kManifest, kManifestCopy}) {
    absl::StatusOr<std::string> text = ReadSmallFile(directory, name);
    if (!text.ok() && !absl::IsNotFound(text.status()) && !absl::IsDataLoss(text.status()))
      return text.status();
    if (text.ok() && Checksum(text->data(), int64_t(text->size())) == written) {
      mine = true;
      continue;
    }
    const std::string path = absl::StrCat(home, "/", name);
    const absl::Status found = text.ok() ? ParseManifest(*text, path).status() : text.status();
    if (found.ok() || absl::IsUnimplemented(found)) // of this version or another
      return absl::FailedPreconditionError(absl::StrCat(
          path, " was replaced while this process used the state: end the other process that "
                "writes there"));
  }
  if (!mine)
    return absl::DataLossError(
        absl::StrFormat("%s/%s and %s were removed or damaged while this process used the state: "
                        "restore %s from a copy",
                        home, kManifest, kManifestCopy, home));
  return absl::OkStatus();
}

/// The reader says what can be read again, so that no limit of its own is forgotten here.
static absl::Status CheckReadable(const std::string &home, absl::string_view text) {
  if (int64_t(text.size()) > kMostSmallBytes)
    return absl::ResourceExhaustedError(
        absl::StrFormat("cannot commit to %s: its manifest would have %d bytes, and at most %d are "
                        "read again: keep fewer commits",
                        home, text.size(), kMostSmallBytes));
  const absl::Status status = ParseManifest(text, absl::StrCat(home, "/", kManifest)).status();
  return status.ok() ? status
                     : absl::FailedPreconditionError(absl::StrCat(
                           "cannot commit to ", home,
                           ": its manifest could not be read again: ", status.message()));
}

absl::Status ManifestWriter::Write(Directory &home, Manifest &manifest) {
  if (written)
    if (absl::Status status = CheckOwn(home); !status.ok())
      return status;
  ++manifest.sequence;
  const std::string text = FormatManifest(manifest);
  if (absl::Status status = CheckReadable(home.path(), text); !status.ok())
    return status;
  for (const char *name : {kManifest, kManifestCopy})
    if (absl::Status status = ReplaceFile(home, name, text, kOwnerOnly); !status.ok())
      return status;
  written = Checksum(text.data(), int64_t(text.size()));
  return absl::OkStatus();
}

} // namespace boa
