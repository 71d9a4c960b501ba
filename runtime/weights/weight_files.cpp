//===- weight_files.cpp - Tensors to begin from ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/weight_files.h"

#include "runtime/formats/json.h"
#include "runtime/io/folder_file.h"
#include "runtime/support/interrupt.h"
#include "runtime/support/limits.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <utility>

namespace boa {
namespace {

using Json = nlohmann::json;

/// More shards than any published model has. Each is an open file.
constexpr size_t kMostShards = 1000;
/// Of two tensors that are compared.
constexpr int64_t kComparedAtOnce = int64_t{1} << 16;

bool Exists(const std::string &path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

/// The name of a pickle in the folder; "" if there is none.
std::string FindPickle(const std::string &folder) {
  std::error_code error;
  std::set<std::string> found;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    for (const char *extension : {".bin", ".pt", ".pth", ".ckpt", ".pkl"})
      if (absl::EndsWith(name, extension) && name != "training_args.bin")
        found.insert(name);
  }
  return found.empty() ? "" : *found.begin();
}

} // namespace

absl::StatusOr<WeightFiles> WeightFiles::Open(const std::string &path) {
  WeightFiles opened;
  opened.name = path;
  std::error_code error;
  opened.folder = std::filesystem::is_directory(path, error);
  if (!opened.folder && IsGgufName(path)) {
    absl::StatusOr<GgufWeights> weights = GgufWeights::Open(path);
    if (!weights.ok())
      return weights.status();
    opened.gguf = *std::move(weights);
    for (const Tensor &tensor : opened.gguf->tensors())
      if (!opened.by_name.emplace(tensor.name, &tensor).second)
        return absl::InvalidArgumentError(
            absl::StrCat("`", path, "`: two tensors are `", tensor.name, "`"));
    return opened;
  }
  absl::Status status = opened.folder ? opened.OpenFolder() : opened.Add(path);
  if (!status.ok())
    return status;
  // Only now do the tensors stay where they are.
  for (size_t file = 0; file < opened.files.size(); ++file)
    for (const Tensor &tensor : opened.files[file].tensors()) {
      if (!opened.by_name.emplace(tensor.name, &tensor).second)
        return absl::InvalidArgumentError(
            absl::StrCat("`", path, "`: tensor `", tensor.name, "` is in two files"));
      opened.file_of[&tensor] = file;
    }
  return opened;
}

absl::Status WeightFiles::Add(const std::string &path) {
  absl::StatusOr<SafetensorsReader> reader = SafetensorsReader::Open(path);
  if (reader.ok())
    files.push_back(*std::move(reader));
  return reader.status();
}

absl::Status WeightFiles::OpenFolder() {
  const bool whole = Exists(absl::StrCat(name, "/", kWeightsFile));
  const bool sharded = Exists(absl::StrCat(name, "/", kWeightsIndex));
  if (whole && sharded)
    return absl::InvalidArgumentError(absl::StrCat("`", name, "` has both ", kWeightsFile, " and ",
                                                   kWeightsIndex,
                                                   ": remove the one that is not meant"));
  if (sharded)
    return OpenShards();
  if (!whole) {
    const std::string pickle = FindPickle(name);
    return absl::InvalidArgumentError(absl::StrCat(
        "`", name, "` has no ", kWeightsFile, " and no ", kWeightsIndex,
        pickle.empty()
            ? ""
            : absl::StrCat("; `", pickle,
                           "` is not read, since a file of pickles can run code: save the model "
                           "as safetensors where it is trusted")));
  }
  if (absl::Status status = CheckFolderFile(name, kWeightsFile); !status.ok())
    return status;
  return Add(absl::StrCat(name, "/", kWeightsFile));
}

absl::Status WeightFiles::OpenShards() {
  const std::string path = absl::StrCat(name, "/", kWeightsIndex);
  auto refuse = [&](const auto &...what) {
    return absl::InvalidArgumentError(absl::StrCat("`", path, "`: ", what...));
  };
  absl::StatusOr<std::string> text = ReadFolderFile(name, kWeightsIndex);
  if (!text.ok())
    return text.status();
  const absl::StatusOr<Json> read = ParseJson(*text);
  if (!read.ok())
    return refuse(read.status().message());
  const Json &index = *read;
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    return refuse("expected a JSON object whose `weight_map` has the file of each tensor");
  std::map<std::string, std::set<std::string>> shards; // tensors by file
  for (const auto &[tensor, file] : index["weight_map"].items()) {
    if (!file.is_string())
      return refuse("tensor `", tensor, "`: expected the name of a file");
    shards[file.get<std::string>()].insert(tensor);
  }
  if (shards.empty() || shards.size() > kMostShards)
    return refuse("expected 1 to ", kMostShards, " files but found ", shards.size());
  constexpr int64_t kOfProcess = 64; // files beside them
  if (const int64_t need = int64_t(shards.size()) + kOfProcess, most = MostOpenFiles(); need > most)
    return refuse("its ", shards.size(), " files are open at once, so the process needs ", need,
                  " open files, but may have ", most, "; `ulimit -n ", need, "` allows them");
  for (const auto &[shard, tensors] : shards) {
    if (!absl::EndsWith(shard, ".safetensors"))
      return refuse("`", shard, "` is no safetensors file");
    if (absl::Status status = CheckFolderFile(name, shard); !status.ok())
      return absl::Status(status.code(),
                          absl::StrCat(status.message(), ", which ", kWeightsIndex, " names"));
    if (absl::Status status = Add(absl::StrCat(name, "/", shard)); !status.ok())
      return status;
    for (const Tensor &tensor : files.back().tensors())
      if (!tensors.count(tensor.name))
        return refuse("`", shard, "` holds tensor `", tensor.name,
                      "`, which the index does not place there");
    for (const std::string &tensor : tensors)
      if (!files.back().Find(tensor))
        return refuse("expected tensor `", tensor, "` in `", shard, "`, which has none of it");
  }
  return absl::OkStatus();
}

const Tensor *WeightFiles::Find(const std::string &tensor) const {
  auto it = by_name.find(tensor);
  return it == by_name.end() ? nullptr : it->second;
}

std::string WeightFiles::Metadata(const std::string &key) const {
  return has_outside_names() ? "" : files[0].Metadata(key);
}

absl::Status WeightFiles::Read(const Tensor &tensor, int64_t first, int64_t count,
                               float *values) const {
  if (gguf)
    return gguf->Read(size_t(&tensor - gguf->tensors().data()), first, count, values);
  return files[file_of.at(&tensor)].Read(tensor, first, count, values);
}

absl::StatusOr<bool> WeightFiles::AreSame(const Tensor &a, const Tensor &b) const {
  if (a.dtype != b.dtype || a.shape != b.shape)
    return false;
  std::vector<float> of_a(kComparedAtOnce), of_b(kComparedAtOnce);
  for (int64_t first = 0; first < a.elements(); first += kComparedAtOnce) {
    if (Interrupted())
      return Interruption();
    const int64_t count = std::min(kComparedAtOnce, a.elements() - first);
    absl::Status status = Read(a, first, count, of_a.data());
    if (status.ok())
      status = Read(b, first, count, of_b.data());
    if (!status.ok())
      return status;
    if (std::memcmp(of_a.data(), of_b.data(), size_t(count) * sizeof(float)) != 0)
      return false;
  }
  return true;
}

} // namespace boa
