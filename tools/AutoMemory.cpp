//===- AutoMemory.cpp - `memory = auto` -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/AutoMemory.h"

#include "runtime/device/cuda/gpu.h"
#include "runtime/support/limits.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"

namespace boa {
namespace {

constexpr int64_t kMiB = 1 << 20;
/// A trainer takes this much beside its arena at most. A sixteenth is left to the page cache.
constexpr int64_t kOfProcess = 512 * kMiB, kOfSystem = 16;
/// Code, cuBLASLt's and cuDNN's own memory and the functions' local memory, which grows with
/// the GPU.
constexpr int64_t kOfLibraries = 1024 * kMiB, kOfLocal = 64;

constexpr char kDevicePath[] = "machine.device.memory", kHostPath[] = "machine.host.memory";

absl::Status refuseTooLittle(const char *path, int64_t free) {
  return absl::ResourceExhaustedError(
      absl::StrCat(path, " = auto: of this machine's memory ", FormatBytes(double(free)),
                   " are free, too little for a training: end what else runs, or give a size"));
}

absl::StatusOr<int64_t> freeOnGpu() {
  const auto gpu = cuda::Gpu::Open();
  if (!gpu.ok())
    return absl::Status(gpu.status().code(),
                        absl::StrCat(kDevicePath, " = auto: ", gpu.status().message(),
                                     "; give a size to compile for another "
                                     "machine"));
  const int64_t kept = kOfLibraries + (*gpu)->total_bytes() / kOfLocal;
  const int64_t free = (*gpu)->free_bytes();
  if (free <= kept)
    return refuseTooLittle(kDevicePath, free);
  return free - kept;
}

} // namespace

absl::Status replaceAutoMemory(CompileRequest &request) {
  if (request.isModule())
    return absl::OkStatus();
  std::string diagnostics;
  // Standard input can be read only once.
  std::vector<frontend::InputText> texts = request.texts;
  if (texts.empty())
    texts = frontend::readFiles(request.files, diagnostics);
  if (!diagnostics.empty())
    return absl::OkStatus();
  request.texts = texts;
  const frontend::FrontendResult result =
      frontend::compileTexts(texts, request.overrides, request.held);
  if (!result.spec)
    return absl::OkStatus();
  const MachineSettings &machine = result.spec->machine;
  bool ofDevice = machine.device_memory == kAuto, ofHost = machine.host_memory == kAuto;
  auto replace = [&](const char *path, int64_t bytes) {
    request.overrides.push_back(absl::StrCat(path, "=", bytes, " B"));
  };
  const DeviceKind device =
      request.target.empty() ? machine.device : *ParseWord<DeviceKind>(request.target);
  const bool onGpu = !TraitsOf(device).on_host;
  if (ofDevice && onGpu) {
    const absl::StatusOr<int64_t> free = freeOnGpu();
    if (!free.ok())
      return free.status();
    replace(kDevicePath, *free);
    ofDevice = false;
  }
  if (!ofDevice && !ofHost)
    return absl::OkStatus();
  const int64_t free = MeasureMemoryLeft().bytes;
  int64_t bytes = free - free / kOfSystem - kOfProcess;
  const char *path = ofDevice ? kDevicePath : kHostPath;
  if (bytes <= 0)
    return refuseTooLittle(path, free);
  if (ofDevice && ofHost) {
    bytes /= 2;
  } else if (!onGpu) {
    const int64_t other = ofDevice ? machine.host_memory : machine.device_memory;
    if (other >= bytes)
      return absl::ResourceExhaustedError(
          absl::StrCat(path, " = auto: of this machine's memory ", FormatBytes(double(free)),
                       " are free, but ", ofDevice ? kHostPath : kDevicePath, " asks for ",
                       FormatBytes(double(other)), ": give it less"));
    bytes -= other;
  }
  if (ofDevice)
    replace(kDevicePath, bytes);
  if (ofHost)
    replace(kHostPath, bytes);
  return absl::OkStatus();
}

} // namespace boa
