//===- folder_export.cpp - Weights as a folder of Hugging Face ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/folder_export.h"

#include "runtime/abi/parts.h"
#include "runtime/support/interrupt.h"
#include "runtime/support/units.h"
#include "runtime/weights/adapters.h"
#include "runtime/weights/base_weights.h"
#include "runtime/weights/parameter_names.h"
#include "runtime/weights/rest_file.h"
#include "runtime/weights/weight_files.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace boa {
namespace {

/// Elements that are in memory at once.
constexpr int64_t kExportedAtOnce = int64_t{1} << 20;

/// A parameter in a tensor.
struct FilePiece {
  const Group *group;
  int64_t entry;
  const Parameter *parameter;
  TensorPart at;
};

/// A tensor of the folder: parameters, and what `rest` has between them.
struct Part {
  Tensor tensor;
  std::vector<FilePiece> pieces;
  const Tensor *rest = nullptr;
};

int64_t BytesOf(const Part &part, const FolderExport &options) {
  return part.tensor.elements() * (options.bf16 ? 2 : 4);
}

/// The groups as a state has them, where none is in parts.
std::vector<Group> WholeGroups(const Program &program) {
  std::vector<Group> groups = program.groups;
  for (Group &group : groups) {
    for (Parameter &parameter : group.parameters)
      parameter.shape = Parts(group, parameter).WholeShape();
    group.count = CountWholes(group);
    for (Parameter &parameter : group.parameters)
      parameter.split = -1;
  }
  return groups;
}

/// The tensors that parameters are, or are rows of. `rest` may be null. They refer to the groups.
absl::StatusOr<std::vector<Part>> NameParts(const Program &program,
                                            const std::vector<Group> &groups,
                                            const WeightFiles *rest, const FolderExport &options) {
  std::vector<Part> parts;
  std::map<std::string, size_t> names;
  const std::vector<std::vector<bool>> adapters = PartsOfAdapters(program);
  for (size_t g = 0; g < groups.size(); ++g)
    for (int64_t entry = 0; entry < groups[g].count; ++entry)
      for (size_t p = 0; p < groups[g].parameters.size(); ++p) {
        if (adapters[g][p])
          continue; // they are added to their weights
        const Group &group = groups[g];
        const Parameter &parameter = group.parameters[p];
        const ExternalTensor external = ExternalOf(entry, parameter);
        const std::string own = ParameterName(group, entry, parameter);
        if (external.name.empty())
          return absl::FailedPreconditionError(
              absl::StrCat("parameter ", group.name, ".", parameter.name,
                           " has no name in the folder: write as \"NAME\" behind its initial "
                           "value in the spec"));
        const auto [place, is_new] = names.try_emplace(external.name, parts.size());
        const bool whole = external.kind == ExternalTensor::all;
        if (!is_new && (whole || !parts[place->second].rest))
          return absl::FailedPreconditionError(
              absl::StrCat("two parameters are named ", external.name, ", one of them is ", own));
        if (is_new) {
          Part part;
          part.tensor.name = external.name;
          part.rest = whole || !rest ? nullptr : rest->Find(external.name);
          part.tensor.shape = part.rest ? part.rest->shape : parameter.shape;
          if (!whole && !part.rest)
            return absl::FailedPreconditionError(
                absl::StrCat("parameter ", own, " is rows of ", external.name,
                             ", whose other rows are not there: expected them in ", kRestFile,
                             " beside config.json"));
          parts.push_back(std::move(part));
        }
        Part &part = parts[place->second];
        const std::optional<TensorPart> at = external.In(part.tensor.shape, parameter.shape);
        if (!at)
          return absl::FailedPreconditionError(absl::StrCat(
              "parameter ", own, " has other rows than ", external.name, " of ", rest->path()));
        for (const FilePiece &other : part.pieces)
          if (at->Overlaps(parameter.elements(), other.at, other.parameter->elements()))
            return absl::FailedPreconditionError(absl::StrCat(
                "two parameters are the same part of ", external.name, ", one of them is ", own));
        part.pieces.push_back({&group, entry, &parameter, *at});
      }
  // Tensors that the model does not use.
  if (rest && !options.rows_of_rest)
    for (const auto &[name, tensor] : rest->tensors())
      if (!names.count(name)) {
        Part part;
        part.tensor.name = name;
        part.tensor.shape = tensor->shape;
        part.rest = tensor;
        parts.push_back(std::move(part));
      }
  for (Part &part : parts)
    part.tensor.dtype = options.bf16 ? "BF16" : "F32";
  return parts;
}

/// In order, as many to a file as fit it.
std::vector<std::vector<Part>> Shard(std::vector<Part> parts, const FolderExport &options) {
  std::vector<std::vector<Part>> shards;
  int64_t bytes = 0;
  for (Part &part : parts) {
    const int64_t more = BytesOf(part, options);
    if (shards.empty() || bytes + more > options.shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += more;
    shards.back().push_back(std::move(part));
  }
  return shards;
}

/// What of a parameter is in elements [first, first + count) of its tensor, to its place in
/// `values`.
absl::Status ReadPiece(const FilePiece &piece, int64_t first, int64_t count, MergedWeights &weights,
                       float *values) {
  const TensorPart &at = piece.at;
  const int64_t rows = piece.parameter->elements() / at.width;
  for (int64_t row = std::max<int64_t>(0, (first - at.begin - at.width) / at.stride); row < rows;
       ++row) {
    const int64_t of_row = at.begin + row * at.stride;
    if (of_row >= first + count)
      break;
    const int64_t begin = std::max(first, of_row), end = std::min(first + count, of_row + at.width);
    if (begin >= end)
      continue;
    if (absl::Status status =
            weights.Read(*piece.group, piece.entry, *piece.parameter,
                         row * at.width + (begin - of_row), end - begin, values + (begin - first));
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status WriteShard(const std::vector<Part> &parts, const std::string &path,
                        MergedWeights &weights, const WeightFiles *rest) {
  std::vector<Tensor> tensors;
  for (const Part &part : parts)
    tensors.push_back(part.tensor);
  // Readers refuse a file that does not say this.
  absl::StatusOr<SafetensorsWriter> writer =
      SafetensorsWriter::Create(path, std::move(tensors), {{"format", "pt"}});
  if (!writer.ok())
    return writer.status();
  std::vector<float> values(static_cast<size_t>(kExportedAtOnce));
  for (const Part &part : parts)
    for (int64_t first = 0; first < part.tensor.elements(); first += kExportedAtOnce) {
      if (Interrupted())
        return Interruption();
      const int64_t count = std::min(kExportedAtOnce, part.tensor.elements() - first);
      absl::Status status =
          part.rest ? rest->Read(*part.rest, first, count, values.data()) : absl::OkStatus();
      for (const FilePiece &piece : part.pieces)
        if (status.ok())
          status = ReadPiece(piece, first, count, weights, values.data());
      if (status.ok())
        status = writer->Append(values.data(), count);
      if (!status.ok())
        return status;
    }
  return writer->Finish();
}

absl::Status WriteIndex(const std::string &path, const std::vector<std::vector<Part>> &shards,
                        const std::vector<std::string> &names, int64_t bytes) {
  nlohmann::json index = {{"metadata", {{"total_size", bytes}}}};
  for (size_t i = 0; i < shards.size(); ++i)
    for (const Part &part : shards[i])
      index["weight_map"][part.tensor.name] = names[i];
  const std::string text = index.dump(2) + "\n";
  absl::StatusOr<NewFile> file = NewFile::Create(path);
  absl::Status status = file.status();
  if (status.ok())
    status = file->Append(text.data(), int64_t(text.size()));
  return status.ok() ? file->Publish() : status;
}

} // namespace

absl::Status CheckExportFolder(const Program &program, const std::string &folder,
                               const FolderExport &options) {
  std::error_code error;
  const bool exists = std::filesystem::exists(folder, error);
  if (exists && !std::filesystem::is_directory(folder, error))
    return absl::FailedPreconditionError(absl::StrCat("`", folder, "` is no folder"));
  if (exists && !std::filesystem::is_empty(folder, error))
    return absl::FailedPreconditionError(
        absl::StrCat("`", folder,
                     "` is not empty: name a folder that is not there yet, so that none of its "
                     "files is replaced"));
  int64_t bytes = 0;
  const std::vector<std::vector<bool>> adapters = PartsOfAdapters(program);
  for (size_t g = 0; g < program.groups.size(); ++g)
    for (size_t p = 0; p < program.groups[g].parameters.size(); ++p)
      if (options.adapters ? !IsFrozen(program.storages[size_t(program.groups[g].weights)])
                           : !adapters[g][p])
        bytes += program.groups[g].count * program.groups[g].parameters[p].elements() *
                 (options.bf16 ? 2 : 4);
  const std::string parent = std::filesystem::path(folder + "/").parent_path().parent_path();
  absl::StatusOr<DeviceSpace> space = SystemFiles().Space(exists           ? folder
                                                          : parent.empty() ? "."
                                                                           : parent);
  if (!space.ok())
    return space.status();
  if (bytes > space->free_bytes)
    return absl::ResourceExhaustedError(
        absl::StrCat("the disk of `", folder, "` is too full: the weights need ",
                     FormatBytes(bytes), " and ", FormatBytes(space->free_bytes), " are free"));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ExportFolder(FileSystem &disk, const Program &program,
                                     const std::string &from, const std::string &folder,
                                     const FolderExport &options) {
  std::optional<WeightFiles> rest;
  if (!options.rest.empty()) {
    absl::StatusOr<WeightFiles> opened = WeightFiles::Open(options.rest);
    if (!opened.ok())
      return opened.status();
    rest = *std::move(opened);
  }
  const std::vector<Group> groups = WholeGroups(program);
  absl::StatusOr<std::vector<Part>> parts =
      NameParts(program, groups, rest ? &*rest : nullptr, options);
  if (!parts.ok())
    return parts.status();
  absl::StatusOr<std::unique_ptr<BaseWeights>> weights = BaseWeights::Open(disk, program, from);
  if (!weights.ok())
    return weights.status();
  MergedWeights merged(program, **weights);
  int64_t bytes = 0;
  for (const Part &part : *parts)
    bytes += BytesOf(part, options);
  const std::vector<std::vector<Part>> shards = Shard(*std::move(parts), options);
  if (absl::Status status = disk.MakeDirectory(folder);
      !status.ok() && !absl::IsAlreadyExists(status))
    return status;
  std::vector<std::string> names;
  for (size_t i = 0; i < shards.size(); ++i) {
    names.push_back(shards.size() == 1
                        ? std::string(kWeightsFile)
                        : absl::StrFormat("model-%05d-of-%05d.safetensors", i + 1, shards.size()));
    if (absl::Status status = WriteShard(shards[i], absl::StrCat(folder, "/", names[i]), merged,
                                         rest ? &*rest : nullptr);
        !status.ok())
      return status;
  }
  if (shards.size() > 1)
    if (absl::Status status =
            WriteIndex(absl::StrCat(folder, "/", kWeightsIndex), shards, names, bytes);
        !status.ok())
      return status;
  return bytes;
}

} // namespace boa
