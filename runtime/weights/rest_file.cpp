//===- rest_file.cpp - Tensors beside the parameters ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/rest_file.h"

#include "runtime/support/interrupt.h"
#include "runtime/weights/parameter_names.h"
#include "runtime/weights/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace boa {

absl::Status WriteRest(const WeightFiles &files, const Program &program,
                       const std::vector<std::string> &unused, const std::string &path) {
  std::set<std::string> names(unused.begin(), unused.end());
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters)
      for (int64_t entry = 0; entry < group.count; ++entry)
        if (ExternalTensor external = ExternalOf(entry, parameter);
            external.kind != ExternalTensor::all)
          names.insert(external.name);
  std::vector<Tensor> tensors;
  std::vector<const Tensor *> sources;
  for (const std::string &name : names)
    if (const Tensor *tensor = files.Find(name); tensor && IsReadable(*tensor)) {
      sources.push_back(tensor);
      tensors.push_back(*tensor);
    }
  if (tensors.empty())
    return absl::OkStatus();
  absl::StatusOr<SafetensorsWriter> writer =
      SafetensorsWriter::Create(path, std::move(tensors), {{"format", "pt"}});
  if (!writer.ok())
    return writer.status();
  constexpr int64_t kBlock = int64_t{1} << 20;
  std::vector<float> values(static_cast<size_t>(kBlock));
  for (const Tensor *tensor : sources)
    for (int64_t first = 0; first < tensor->elements(); first += kBlock) {
      if (Interrupted())
        return Interruption();
      const int64_t count = std::min(kBlock, tensor->elements() - first);
      absl::Status status = files.Read(*tensor, first, count, values.data());
      if (status.ok())
        status = writer->Append(values.data(), count);
      if (!status.ok())
        return status;
    }
  return writer->Finish();
}

} // namespace boa
