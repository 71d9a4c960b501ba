//===- export_parameters.cpp - The file of trained weights ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/export_parameters.h"

#include "runtime/abi/parts.h"
#include "runtime/io/file_system.h"
#include "runtime/io/new_file.h"
#include "runtime/support/units.h"
#include "runtime/weights/check_parameters.h"
#include "runtime/weights/parameter_names.h"
#include "runtime/weights/parameter_storages.h"
#include "runtime/weights/safetensors.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <sys/stat.h>
#include <utility>
#include <vector>

namespace boa {
namespace {

/// Keys of an export's metadata.
constexpr char kComputation[] = "computation", kComputationHash[] = "computation_hash",
               kComputationVersion[] = "computation_version";

ShapesByName ShapesOf(const SafetensorsReader &reader) {
  ShapesByName shapes;
  for (const Tensor &tensor : reader.tensors())
    shapes[tensor.name] = tensor.shape;
  return shapes;
}

} // namespace

absl::Status ExportParameters(const Program &program, Engine &engine, const std::string &path,
                              int64_t step) {
  std::vector<Tensor> tensors;
  for (const Group &group : program.groups)
    for (int64_t entry = 0; entry < CountWholes(group); ++entry)
      for (const Parameter &parameter : group.parameters) {
        Tensor tensor;
        tensor.name = ParameterName(group, entry, parameter);
        tensor.shape = Parts(group, parameter).WholeShape();
        tensors.push_back(std::move(tensor));
      }
  absl::StatusOr<SafetensorsWriter> writer =
      SafetensorsWriter::Create(path, std::move(tensors),
                                {{"format", "boa"},
                                 {"model", program.model.name},
                                 {"step", absl::StrCat(step)},
                                 {kComputation, program.computation.text},
                                 {kComputationHash, program.computation.hash},
                                 {kComputationVersion, absl::StrCat(program.computation.version)}});
  if (!writer.ok())
    return writer.status();
  absl::Status status = ReadParameters(program, engine, [&](const float *values, int64_t count) {
    return writer->Append(values, count);
  });
  return status.ok() ? writer->Finish() : status;
}

bool IsExport(const Program &program, const std::string &path, const CommitRecord &commit) {
  constexpr int64_t kCoarse = 1; // seconds that the clock of a file system may be behind
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || info.st_mtim.tv_sec + kCoarse < commit.time)
    return false;
  absl::StatusOr<SafetensorsReader> file = SafetensorsReader::Open(path);
  return file.ok() && file->Metadata("model") == program.model.name &&
         file->Metadata("step") == absl::StrCat(commit.step) &&
         file->Metadata(kComputationHash) == program.computation.hash &&
         CheckParameters(program, path, ShapesOf(*file), Adapters::present).ok();
}

Computation ComputationOf(const WeightFiles &files) {
  Computation computation;
  if (!absl::SimpleAtoi(files.Metadata(kComputationVersion), &computation.version))
    return computation;
  computation.text = files.Metadata(kComputation);
  computation.hash = files.Metadata(kComputationHash);
  return computation;
}

int64_t BytesOfExport(const Program &program) {
  int64_t bytes = 0;
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters)
      bytes += group.count * parameter.elements() * int64_t(sizeof(float));
  return bytes;
}

absl::Status CheckExportSpace(const Program &program, const std::string &path) {
  const int64_t bytes = BytesOfExport(program);
  absl::StatusOr<DeviceSpace> space = SystemFiles().Space(ParentOf(path));
  if (!space.ok())
    return space.status();
  // One that was cut short is removed before the next is written.
  int64_t free = space->free_bytes;
  struct stat left;
  if (lstat(TemporaryName(path).c_str(), &left) == 0 && S_ISREG(left.st_mode))
    free += int64_t(left.st_blocks) * 512;
  if (bytes <= free)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the disk of `", ParentOf(path),
                   "` is too full for the trained weights: in addition to the state they "
                   "need ",
                   FormatBytes(bytes), " and ", FormatBytes(free), " are free; free ",
                   FormatBytes(bytes - free), " or name a file on another disk with --save"));
}

} // namespace boa
