//===- commit_files.cpp - The files of commits on disk --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commit_files.h"

#include "runtime/state/checksum.h"
#include "runtime/state/manifest_files.h"
#include "runtime/state/saved_commit.h"
#include "runtime/state/sealed.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace boa {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static std::string PathOf(const Directory &folder, const std::string &name) {
  return absl::StrCat(folder.path(), "/", name);
}

bool IsLoss(const absl::Status &status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsFailedPrecondition(status);
}

/// The text of a copy, which is what its name says.
static absl::StatusOr<std::string> ReadSealed(Directory &folder, const char *kind,
                                              const std::string &sum, bool copy) {
  const std::string name = SealedName(kind, sum, copy);
  absl::StatusOr<std::string> text = ReadSmallFile(folder, name);
  if (text.ok() && NameOfContents(*text) != sum)
    return Damaged(PathOf(folder, name), "its contents are not those of its name");
  return text;
}

/// Both copies have the same text, so neither is newer. What cannot be read may be whole.
absl::StatusOr<std::string> CommitLoader::Read(Directory &folder, const char *kind,
                                               const std::string &sum) {
  const std::string name = PathOf(folder, sum);
  if (const auto found = failed.find(name); found != failed.end())
    return found->second;
  absl::StatusOr<std::string> text = ReadSealed(folder, kind, sum, /*copy=*/false);
  const absl::Status first = text.status();
  if (first.ok() || absl::IsResourceExhausted(first))
    return text;
  text = ReadSealed(folder, kind, sum, /*copy=*/true);
  if (!text.ok())
    return failed[name] = !IsLoss(first) ? first
                          : IsLoss(text.status())
                              ? absl::Status(first.code(),
                                             absl::StrCat(first.message(), ", and so is its copy"))
                              : text.status();
  of_copies.push_back(absl::StrCat(first.message(), ": its copy is taken"));
  return text;
}

absl::Status CommitLoader::Load(SavedCommit &commit) {
  const std::string file = PathOf(home, SealedName(kCommitFile, commit.sum));
  absl::StatusOr<std::string> text = Read(home, kCommitFile, commit.sum);
  if (!text.ok())
    return text.status();
  std::string sum;
  absl::StatusOr<SavedCommit> read = ParseCommit(*text, file, manifest.paths, sum);
  if (!read.ok())
    return read.status();
  if (read->record.step != commit.record.step)
    return Damaged(file, "its step is not that of the manifest");
  std::shared_ptr<const SavedModel> &model = models[sum];
  if (!model) {
    text = Read(home, kModelFile, sum);
    if (!text.ok())
      return text.status();
    absl::StatusOr<SavedModel> parsed =
        ParseModel(*text, PathOf(home, SealedName(kModelFile, sum)));
    if (!parsed.ok())
      return parsed.status();
    parsed->sum = sum;
    model = std::make_shared<const SavedModel>(*std::move(parsed));
  }
  read->sum = commit.sum;
  read->model = model;
  if (!IsCountable(*read))
    return Damaged(file, "it has more elements than files hold");
  commit = *std::move(read);
  return absl::OkStatus();
}

absl::Status CommitLoader::LoadPart(const SavedPart &part) {
  const SavedPath &path = manifest.paths[size_t(part.path)];
  absl::StatusOr<std::string> text = Read(home, kPartFile, part.sum);
  if (IsLoss(text.status()) && path.directory != manifest.home) {
    absl::StatusOr<std::shared_ptr<Directory>> other = disk.OpenDirectory(path.directory);
    if (absl::IsNotFound(other.status())) // a disk that is not there now has lost nothing
      return absl::UnknownError(other.status().message());
    if (!other.ok())
      return other.status();
    text = Read(**other, kPartFile, part.sum);
  }
  if (!text.ok())
    return text.status();
  auto tables = ParsePart(*text, PathOf(home, SealedName(kPartFile, part.sum)), manifest.paths);
  if (!tables.ok())
    return tables.status();
  for (size_t i = 0; i < tables->size(); ++i)
    if (const std::shared_ptr<ChunkTable> &table = (*tables)[i]) {
      table->part = part;
      table->index = int32_t(i);
    }
  parts[part.sum] = *std::move(tables);
  return absl::OkStatus();
}

absl::Status CommitLoader::LoadTables(SavedCommit &commit) {
  for (const SavedPart &part : commit.parts)
    if (parts.count(part.sum) == 0)
      if (absl::Status status = LoadPart(part); !status.ok())
        return status;
  std::vector<bool> lists(manifest.paths.size());
  for (int32_t path : commit.paths)
    lists[size_t(path)] = true;
  for (SavedTable &table : commit.tables) {
    const auto damage = [&] {
      return Damaged(
          PathOf(home, SealedName(kCommitFile, commit.sum)),
          absl::StrCat("its parts do not have each chunk of ", table.storage.name, " once"));
    };
    for (const auto &[part, index] : table.places) {
      const auto &of = parts[commit.parts[size_t(part)].sum];
      if (size_t(index) >= of.size() || !of[size_t(index)])
        return damage();
      table.tables.push_back(of[size_t(index)]);
    }
    if (!IsTiled(table))
      return damage();
    // Only these are opened.
    for (const auto &one : table.tables)
      for (const SavedChunk &chunk : one->chunks)
        if (size_t(chunk.extent.file) >= lists.size() || !lists[size_t(chunk.extent.file)])
          return Damaged(PathOf(home, SealedName(kCommitFile, commit.sum)),
                         absl::StrCat("it does not list a path of ", table.storage.name));
  }
  return absl::OkStatus();
}

absl::Status KeepFault(SavedCommit &commit, const absl::Status &status, const std::string &home) {
  if (!commit.fault.ok() || status.ok())
    return absl::OkStatus();
  // Another version is none of our business, and want of memory or descriptors is no fault of it.
  if (absl::IsUnimplemented(status) || absl::IsResourceExhausted(status))
    return status;
  const bool is_lost = IsLoss(status);
  SavedCommit bare;
  bare.record.step = commit.record.step;
  bare.sum = commit.sum;
  bare.fault =
      is_lost ? absl::DataLossError(absl::StrCat(
                    "the commit of step ", bare.record.step, " is lost: ", status.message(),
                    "; go on from another commit (--at, or DIR@STEP), or restore ", home,
                    " from a copy"))
              : absl::Status(status.code(),
                             absl::StrCat("the commit of step ", bare.record.step,
                                          " cannot be read: ", status.message(),
                                          "; go on from another commit (--at, or DIR@STEP). If "
                                          "the file stays unreadable, remove it and its copy: "
                                          "then the commit is lost"));
  commit = std::move(bare);
  return absl::OkStatus();
}

absl::Status LoadAllTables(FileSystem &disk, Directory &home, Manifest &manifest, int64_t step,
                           std::vector<std::string> &notes) {
  CommitLoader loader(disk, home, manifest);
  std::vector<SavedCommit> whole;
  for (SavedCommit &commit : manifest.commits) {
    const absl::Status status = commit.fault.ok() ? loader.LoadTables(commit) : commit.fault;
    if (absl::Status other = KeepFault(commit, status, home.path()); !other.ok())
      return other;
    if (!commit.fault.ok() && commit.record.step == step)
      return commit.fault;
    if (!commit.fault.ok())
      notes.push_back(absl::StrCat(commit.fault.message(), absl::IsDataLoss(commit.fault)
                                                               ? ": it is dropped"
                                                               : ". It stays until then"));
    if (!absl::IsDataLoss(commit.fault))
      whole.push_back(std::move(commit));
  }
  notes.insert(notes.end(), loader.notes().begin(), loader.notes().end());
  manifest.commits = std::move(whole);
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

/// Writes files of the home, with the permissions of the manifest that is there.
class Writer {
public:
  Writer(Directory &home, std::optional<int> permissions) : home(home), permissions(permissions) {}

  /// The sum of the text. `readable`: of the reader that is to read it again, so that no limit is
  /// forgotten here.
  absl::StatusOr<std::string> Write(const char *kind, const std::string &text,
                                    const absl::Status &readable) {
    if (!readable.ok())
      return absl::Status(readable.code(),
                          absl::StrCat("cannot commit to ", home.path(), ": its ", kind,
                                       " could not be read again: ", readable.message()));
    const std::string sum = NameOfContents(text);
    for (bool copy : {false, true})
      if (!Holds(kind, sum, copy))
        if (absl::Status status =
                PutFile(home, SealedName(kind, sum, copy), text, permissions, kOwnerOnly);
            !status.ok())
          return status;
    return sum;
  }

  bool Holds(const char *kind, const std::string &sum) const {
    return Holds(kind, sum, /*copy=*/false) && Holds(kind, sum, /*copy=*/true);
  }

private:
  /// Whether the file can be read, is what its name says, and has the permissions of the manifest.
  bool Holds(const char *kind, const std::string &sum, bool copy) const {
    const absl::StatusOr<std::optional<int>> found =
        PermissionsOf(home, SealedName(kind, sum, copy));
    return found.ok() && *found && (!permissions || *found == permissions) &&
           ReadSealed(home, kind, sum, copy).ok();
  }

  Directory &home;
  const std::optional<int> permissions;
};

/// Lists the parts and the paths of a commit, whose tables all have a part.
void NameParts(SavedCommit &commit) {
  std::map<std::string, int32_t> known;
  std::set<int32_t> paths;
  commit.parts.clear();
  for (SavedTable &table : commit.tables) {
    table.places.clear();
    for (const auto &one : table.tables) {
      const auto [part, fresh] = known.insert({one->part.sum, int32_t(commit.parts.size())});
      if (fresh)
        commit.parts.push_back(one->part);
      table.places.push_back({part->second, one->index});
      for (const SavedChunk &chunk : one->chunks)
        if (paths.empty() || *paths.rbegin() != chunk.extent.file)
          paths.insert(chunk.extent.file);
    }
  }
  commit.paths.assign(paths.begin(), paths.end());
}

} // namespace

absl::Status WriteCommit(Directory &home, const Manifest &manifest, SavedCommit &commit) {
  absl::StatusOr<std::optional<int>> permissions = PermissionsOf(home, kManifest);
  if (!permissions.ok())
    return permissions.status();
  Writer writer(home, *permissions);
  // Tables of a part that went or changed since it was read are written again.
  std::vector<std::shared_ptr<ChunkTable>> fresh;
  std::map<std::string, bool> holds;
  for (const SavedTable &table : commit.tables)
    for (const auto &one : table.tables) {
      const std::string &sum = one->part.sum;
      if (!sum.empty() && one->part.path == 0 && holds.count(sum) == 0)
        holds[sum] = writer.Holds(kPartFile, sum);
      if (sum.empty() || (one->part.path == 0 && !holds[sum]))
        fresh.push_back(one);
    }
  if (!fresh.empty()) {
    const std::string text = FormatPart(fresh, manifest.paths);
    absl::StatusOr<std::string> sum =
        writer.Write(kPartFile, text, ParsePart(text, kPartFile, manifest.paths).status());
    if (!sum.ok())
      return sum.status();
    for (size_t i = 0; i < fresh.size(); ++i) {
      fresh[i]->part = {/*path=*/0, *sum}; // the home
      fresh[i]->index = int32_t(i);
    }
  }
  NameParts(commit);
  if (!writer.Holds(kModelFile, commit.model->sum)) {
    const std::string text = FormatModel(*commit.model);
    if (absl::Status status =
            writer.Write(kModelFile, text, ParseModel(text, kModelFile).status()).status();
        !status.ok())
      return status;
  }
  std::string model;
  const std::string text = FormatCommit(commit, manifest.paths);
  absl::StatusOr<std::string> sum = writer.Write(
      kCommitFile, text, ParseCommit(text, kCommitFile, manifest.paths, model).status());
  if (!sum.ok())
    return sum.status();
  commit.sum = *std::move(sum);
  return home.Sync();
}

bool IsSealedFile(Directory &directory, const std::string &name) {
  if (!IsSealedName(name))
    return false;
  const std::string wanted =
      absl::StrCat("{\"format\":\"boa-", name.substr(0, name.find('.')), "\"");
  const absl::StatusOr<std::unique_ptr<OpenFile>> file = directory.Open(name, {});
  const absl::StatusOr<int64_t> size = file.ok() ? (*file)->Size() : file.status();
  if (!size.ok())
    return false;
  std::string begin(size_t(std::min(*size, int64_t(wanted.size()))), '\0');
  if (!(*file)->Read(0, begin.data(), int64_t(begin.size())).ok())
    return false;
  if (!absl::EndsWith(name, ".tmp"))
    return begin == wanted;
  // A power loss may leave zeros in the place of what was not synced.
  return absl::StartsWith(wanted, begin) || begin.find_first_not_of('\0') == begin.npos;
}

void RemoveUnnamed(Directory &home, const Manifest &manifest) {
  std::set<std::string> named;
  const auto add = [&](const char *kind, const std::string &sum) {
    for (bool copy : {false, true})
      named.insert(SealedName(kind, sum, copy));
  };
  bool knows_all = true; // that the commits name
  for (const SavedCommit &commit : manifest.commits) {
    add(kCommitFile, commit.sum);
    knows_all &= commit.fault.ok();
    if (!commit.fault.ok())
      continue;
    add(kModelFile, commit.model->sum);
    for (const SavedPart &part : commit.parts)
      add(kPartFile, part.sum);
  }
  const absl::StatusOr<std::vector<std::string>> names = home.List();
  if (!names.ok())
    return;
  for (const std::string &name : *names)
    if (named.count(name) == 0 && (knows_all || absl::StartsWith(name, kCommitFile)) &&
        IsSealedFile(home, name))
      home.Unlink(name).IgnoreError();
}

} // namespace boa
