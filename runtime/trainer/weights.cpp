//===- weights.cpp - Parameters in and out of a program's storages --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/weights.h"

#include "runtime/abi.h"
#include "runtime/optimizer.h"
#include "runtime/trainer/initialize.h"
#include "runtime/trainer/safetensors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <vector>

namespace boa {
namespace {

/// Puts elements [first, first + count) of a parameter of an entry at `values`.
using Source = std::function<absl::Status(int64_t group, int64_t entry, int64_t parameter,
                                          int64_t first, int64_t count, float *values)>;

/// A part of a parameter that lies in a chunk.
struct Piece {
  int64_t first = 0, count = 0; // elements of the parameter
  int64_t at = 0;               // where it begins in the chunk
};

Piece Intersect(const Group &group, const Parameter &parameter, int32_t chunk) {
  const int64_t chunk_begin = chunk * group.chunk_elements;
  const int64_t begin = std::max(parameter.offset, chunk_begin);
  const int64_t end =
      std::min(parameter.offset + parameter.elements(), chunk_begin + group.chunk_elements);
  return {begin - parameter.offset, std::max<int64_t>(end - begin, 0), begin - chunk_begin};
}

/// What holds one chunk of a group while it goes in or out.
struct ChunkBuffers {
  explicit ChunkBuffers(int64_t elements) : master(elements), high(elements), low(elements) {}
  std::vector<float> master;
  std::vector<uint16_t> high;
  std::vector<int16_t> low;
};

absl::Status WriteMaster(const Group &group, Engine &engine, int64_t entry, int32_t chunk,
                         ChunkBuffers &buffers) {
  if (group.weight_type == "f32")
    return engine.WriteChunk(group.weights, entry, chunk, buffers.master.data());
  for (int64_t i = 0; i < group.chunk_elements; ++i) {
    uint32_t bits;
    std::memcpy(&bits, buffers.master.data() + i, 4);
    buffers.high[i] = MasterHigh(bits);
    buffers.low[i] = MasterLow(bits);
  }
  absl::Status status = engine.WriteChunk(group.weights, entry, chunk, buffers.high.data());
  // A program that only predicts has no master weights.
  if (status.ok() && group.low >= 0)
    status = engine.WriteChunk(group.low, entry, chunk, buffers.low.data());
  return status;
}

void JoinHalves(ChunkBuffers &buffers) {
  for (size_t i = 0; i < buffers.master.size(); ++i) {
    const uint32_t bits = JoinMaster(buffers.high[i], buffers.low[i]);
    std::memcpy(buffers.master.data() + i, &bits, 4);
  }
}

absl::Status ReadMaster(const Group &group, Engine &engine, int64_t entry, int32_t chunk,
                        ChunkBuffers &buffers) {
  if (group.weight_type == "f32")
    return engine.ReadChunk(group.weights, entry, chunk, buffers.master.data());
  absl::Status status = engine.ReadChunk(group.weights, entry, chunk, buffers.high.data());
  if (status.ok() && group.low >= 0)
    status = engine.ReadChunk(group.low, entry, chunk, buffers.low.data());
  if (!status.ok())
    return status;
  JoinHalves(buffers);
  return absl::OkStatus();
}

absl::Status ZeroChunk(const Group &group, Engine &engine, int64_t entry, int32_t chunk,
                       const std::vector<float> &zeros) {
  for (int32_t storage : {group.momentum, group.variance})
    if (storage >= 0)
      if (absl::Status status = engine.WriteChunk(storage, entry, chunk, zeros.data());
          !status.ok())
        return status;
  return absl::OkStatus();
}

absl::Status FillGroup(const Program &program, int64_t g, Engine &engine, const Source &source) {
  const Group &group = program.groups[g];
  ChunkBuffers buffers(group.chunk_elements);
  std::vector<float> zeros(group.chunk_elements);
  for (int64_t entry = 0; entry < group.count; ++entry)
    for (int32_t chunk = 0; chunk < group.chunks; ++chunk) {
      // Between parameters and after the last one there are zeros.
      std::fill(buffers.master.begin(), buffers.master.end(), 0.0f);
      for (size_t p = 0; p < group.parameters.size(); ++p) {
        const Piece piece = Intersect(group, group.parameters[p], chunk);
        if (piece.count == 0)
          continue;
        if (absl::Status status =
                source(g, entry, p, piece.first, piece.count, buffers.master.data() + piece.at);
            !status.ok())
          return status;
      }
      absl::Status status = WriteMaster(group, engine, entry, chunk, buffers);
      if (status.ok())
        status = ZeroChunk(group, engine, entry, chunk, zeros);
      if (!status.ok())
        return status;
    }
  return absl::OkStatus();
}

absl::Status Fill(const Program &program, Engine &engine, const Source &source) {
  for (size_t g = 0; g < program.groups.size(); ++g)
    if (absl::Status status = FillGroup(program, g, engine, source); !status.ok())
      return status;
  return absl::OkStatus();
}

std::string Shape(const std::vector<int64_t> &shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

/// One line for each way in which the file is not of this model.
std::vector<std::string> Mismatches(const Program &program, const SafetensorsReader &reader) {
  std::vector<std::string> lines;
  std::set<std::string> known;
  for (const Group &group : program.groups)
    for (int64_t entry = 0; entry < group.count; ++entry)
      for (const Parameter &parameter : group.parameters) {
        const std::string name = ParameterName(group, entry, parameter);
        known.insert(name);
        const Tensor *tensor = reader.Find(name);
        if (!tensor)
          lines.push_back(absl::StrCat(name, ": expected ", Shape(parameter.shape),
                                       " but found no such tensor"));
        else if (tensor->shape != parameter.shape)
          lines.push_back(absl::StrCat(name, ": expected ", Shape(parameter.shape), " but found ",
                                       Shape(tensor->shape)));
      }
  for (const Tensor &tensor : reader.tensors())
    if (!known.count(tensor.name))
      lines.push_back(absl::StrCat(tensor.name, ": the model has no such parameter"));
  return lines;
}

absl::Status CheckMatches(const Program &program, const std::string &path,
                          const SafetensorsReader &reader) {
  constexpr size_t kShown = 5;
  const std::vector<std::string> lines = Mismatches(program, reader);
  if (lines.empty())
    return absl::OkStatus();
  std::string message =
      absl::StrCat("`", path, "` does not hold the weights of `", program.name, "`:");
  for (size_t i = 0; i < std::min(lines.size(), kShown); ++i)
    absl::StrAppend(&message, "\n  ", lines[i]);
  if (lines.size() > kShown)
    absl::StrAppend(&message, "\n  and ", lines.size() - kShown, " more");
  return absl::FailedPreconditionError(message);
}

absl::Status ExportChunk(const Group &group, int32_t chunk, float *master,
                         SafetensorsWriter &writer) {
  for (const Parameter &parameter : group.parameters) {
    const Piece piece = Intersect(group, parameter, chunk);
    if (piece.count == 0)
      continue;
    if (absl::Status status = writer.Append(master + piece.at, piece.count); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

} // namespace

std::string ParameterName(const Group &group, int64_t entry, const Parameter &parameter) {
  if (!group.layer)
    return absl::StrCat(group.name, ".", parameter.name);
  return absl::StrCat(group.name, ".", entry, ".", parameter.name);
}

absl::Status InitializeParameters(const Program &program, Engine &engine) {
  return Fill(program, engine,
              [&](int64_t group, int64_t entry, int64_t parameter, int64_t first, int64_t count,
                  float *values) {
                auto part = [&](int64_t begin, int64_t end) {
                  InitialValues(program, group, entry, parameter, first + begin, end - begin,
                                values + begin);
                };
                boa_rt_parallel_for(
                    count, /*grain=*/4096,
                    [](void *data, int64_t begin, int64_t end) {
                      (*static_cast<decltype(part) *>(data))(begin, end);
                    },
                    &part);
                return absl::OkStatus();
              });
}

absl::Status LoadParameters(const Program &program, Engine &engine, const std::string &path) {
  absl::StatusOr<SafetensorsReader> reader = SafetensorsReader::Open(path);
  if (!reader.ok())
    return reader.status();
  if (absl::Status status = CheckMatches(program, path, *reader); !status.ok())
    return status;
  return Fill(
      program, engine,
      [&](int64_t g, int64_t entry, int64_t p, int64_t first, int64_t count, float *values) {
        const Group &group = program.groups[g];
        const Tensor *tensor = reader->Find(ParameterName(group, entry, group.parameters[p]));
        return reader->Read(*tensor, first, count, values);
      });
}

namespace {

/// "weights.block" and "low.block" are of one group.
std::string AfterRole(const std::string &name) {
  const size_t dot = name.find('.');
  return dot == std::string::npos ? "" : name.substr(dot);
}

/// The storage of a role among those in another form that belongs to the group.
const SavedStorage *ForeignOf(const std::vector<SavedStorage> &foreign, const Program &program,
                              const Group &group, const std::string &role) {
  const std::string wanted = AfterRole(program.storages[group.weights].name);
  for (const SavedStorage &storage : foreign)
    if (storage.role == role && AfterRole(storage.name) == wanted)
      return &storage;
  return nullptr;
}

} // namespace

absl::Status ConvertMasters(const Program &program, Engine &engine, StateStore &state) {
  const std::vector<SavedStorage> foreign = state.Foreign();
  if (foreign.empty())
    return absl::OkStatus();
  for (const Group &group : program.groups) {
    const SavedStorage *weights = ForeignOf(foreign, program, group, "weights");
    const SavedStorage *low = ForeignOf(foreign, program, group, "master");
    if (!weights && !low)
      continue;
    const int64_t elements = group.chunk_elements;
    const bool halves = low != nullptr; // in the state
    if (!weights || weights->chunk_bytes != elements * (halves ? 2 : 4) ||
        (halves && low->chunk_bytes != elements * 2) || halves == (group.weight_type == "bf16"))
      return absl::FailedPreconditionError(absl::StrCat(
          "the state has the weights of `", group.name, "` in a form that is not known"));
    ChunkBuffers buffers(elements);
    // As long as a chunk of f32, and aligned as the disk wants it.
    std::unique_ptr<char, decltype(&std::free)> bytes(
        static_cast<char *>(std::aligned_alloc(BOA_BLOCK_BYTES, size_t(elements) * 4)), &std::free);
    if (!bytes)
      return absl::ResourceExhaustedError("no memory to convert the weights: free some");
    for (int64_t entry = 0; entry < group.count; ++entry)
      for (int32_t chunk = 0; chunk < group.chunks; ++chunk) {
        auto read = [&](const SavedStorage &storage, void *to) {
          absl::Status status = state.ReadForeign(storage.name, entry, chunk, bytes.get());
          if (status.ok())
            std::memcpy(to, bytes.get(), size_t(storage.chunk_bytes));
          return status;
        };
        absl::Status status =
            halves ? read(*weights, buffers.high.data()) : read(*weights, buffers.master.data());
        if (status.ok() && halves)
          status = read(*low, buffers.low.data());
        if (status.ok() && halves)
          JoinHalves(buffers);
        if (status.ok())
          status = WriteMaster(group, engine, entry, chunk, buffers);
        if (!status.ok())
          return status;
      }
  }
  return absl::OkStatus();
}

absl::Status ExportParameters(const Program &program, Engine &engine, const std::string &path) {
  // Parameters are in order of offset in their group, so chunks in order give
  // the elements in the order of the file.
  std::vector<Tensor> tensors;
  for (const Group &group : program.groups)
    for (int64_t entry = 0; entry < group.count; ++entry)
      for (const Parameter &parameter : group.parameters) {
        Tensor tensor;
        tensor.name = ParameterName(group, entry, parameter);
        tensor.shape = parameter.shape;
        tensors.push_back(std::move(tensor));
      }
  absl::StatusOr<SafetensorsWriter> writer = SafetensorsWriter::Create(
      path, std::move(tensors), {{"format", "boa"}, {"model", program.name}});
  if (!writer.ok())
    return writer.status();
  for (const Group &group : program.groups) {
    ChunkBuffers buffers(group.chunk_elements);
    for (int64_t entry = 0; entry < group.count; ++entry)
      for (int32_t chunk = 0; chunk < group.chunks; ++chunk) {
        absl::Status status = ReadMaster(group, engine, entry, chunk, buffers);
        if (status.ok())
          status = ExportChunk(group, chunk, buffers.master.data(), *writer);
        if (!status.ok())
          return status;
      }
  }
  return writer->Finish();
}

} // namespace boa
