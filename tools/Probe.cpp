//===- Probe.cpp - The machine, measured ----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/Probe.h"

#include "frontend/Frontend.h"
#include "runtime/io/file_system.h"
#include "runtime/io/input_file.h"
#include "runtime/io/new_file.h"
#include "runtime/probe/disk.h"
#include "runtime/probe/host.h"
#include "runtime/probe/machine_file.h"
#include "runtime/support/thread_pool.h"
#include "runtime/trainer/output_checks.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <unistd.h>

namespace boa {
namespace {

using U = FigureUnit;

void print(const std::string &text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout); // each row when it is known
}

/// A path as the machine names it, and the directory in which to measure.
struct Place {
  std::string path, directory;
};

/// A state need not be there yet: its disk is that of the directory that it will be in.
absl::StatusOr<Place> placeOf(const std::string &given) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(given, error).lexically_normal();
  if (!path.has_filename())
    path = path.parent_path();
  Place place{path.string(), path.string()};
  if (!std::filesystem::exists(path, error))
    place.directory = path.parent_path().string();
  if (auto opened = SystemFiles().OpenDirectory(place.directory); !opened.ok())
    return absl::Status(opened.status().code(),
                        absl::StrCat("--path ", given, ": ", opened.status().message()));
  if (absl::Status status = CheckWritable(place.path); !status.ok())
    return status;
  return place;
}

absl::StatusOr<std::vector<Place>> placesOf(const ProbeOptions &options) {
  std::vector<Place> places;
  for (const std::string &given :
       options.paths.empty() ? std::vector<std::string>{"state"} : options.paths) {
    absl::StatusOr<Place> place = placeOf(given);
    if (!place.ok())
      return place.status();
    for (const Place &other : places)
      if (other.path == place->path)
        return absl::InvalidArgumentError(absl::StrCat("--path ", given, " is given twice"));
    places.push_back(*std::move(place));
  }
  return places;
}

/// A person's file is not replaced.
absl::Status checkOutput(const std::string &path) {
  const FileUse output{"-o", path};
  absl::Status status = CheckOutputs({output}, {});
  if (status.ok())
    status = CheckNewFile(output, /*directory=*/true);
  absl::StatusOr<PathKind> kind = SystemFiles().Kind(path);
  if (!status.ok() || !kind.ok() || *kind == PathKind::nothing)
    return status.ok() ? kind.status() : status;
  absl::StatusOr<std::string> text = ReadInput(path);
  if (!text.ok())
    return text.status();
  if (text->rfind(kMachineFileHead, 0) == 0)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "-o: `", path, "` was not written by boa probe: name another file, or remove it"));
}

absl::Status writeFile(const std::string &path, const MachineFigures &figures) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const frontend::FormatResult laidOut =
      frontend::formatText({path, FormatMachineFile(figures, host)});
  if (!laidOut.after)
    return absl::InternalError(
        absl::StrCat("boa probe wrote what boa does not read:\n", laidOut.diagnostics));
  auto file = NewFile::Create(path);
  absl::Status status = file.status();
  if (status.ok())
    status = file->Append(laidOut.after->data(), int64_t(laidOut.after->size()));
  return status.ok() ? file->Publish() : status;
}

absl::Status measureDisks(const std::vector<Place> &places, bool quick, MachineFigures &figures) {
  DiskBudget budget;
  const double all = quick ? 4 : 20, least = quick ? 1.5 : 4;
  budget.seconds = std::max(all / double(places.size()), least);
  budget.depths = !quick;
  if (quick)
    budget.most_bytes = int64_t{1} << 30;
  std::map<uint64_t, std::string> disks;
  for (const Place &place : places) {
    absl::StatusOr<SsdFigures> ssd = MeasureDisk(place.directory, budget, figures.warnings);
    if (!ssd.ok())
      return ssd.status();
    ssd->path = place.path;
    print(absl::StrCat("  ", place.path, "\n", FormatRow("  reads", ssd->read, U::speed),
                       FormatRow("  writes", ssd->write, U::speed),
                       FormatRow("  both together", ssd->both, U::speed),
                       FormatRow("  latency", ssd->latency, U::time)));
    if (ssd->transfers.value > 0) {
      print(FormatRow("  by processors alone", ssd->transfers, U::speed));
      if (figures.transfers.value == 0 || ssd->transfers.value < figures.transfers.value)
        figures.transfers = ssd->transfers;
    }
    if (absl::StatusOr<DeviceSpace> space = SystemFiles().Space(place.directory); space.ok()) {
      auto [other, isNew] = disks.try_emplace(space->device, place.path);
      if (!isNew)
        figures.warnings.push_back(absl::StrCat(place.path, " and ", other->second,
                                                " are on one disk, which has these rates once"));
    }
    figures.ssds.push_back(*std::move(ssd));
  }
  return absl::OkStatus();
}

/// Kernels that nothing disturbs take the same time again and again.
void warnOfOtherWork(MachineFigures &figures) {
  constexpr double kQuiet = 0.1;
  double scatter = 0;
  for (const auto &[format, of] : figures.formats)
    scatter = std::max(scatter, of.product.scatter);
  if (scatter > kQuiet)
    figures.warnings.push_back(absl::StrFormat(
        "half of the products' rates lie within %.0f%% of each other: the machine was busy, and "
        "every rate may be better",
        100 * scatter));
}

} // namespace

absl::Status runProbe(const ProbeOptions &options) {
  absl::Status status = checkOutput(options.output);
  if (!status.ok())
    return status;
  absl::StatusOr<std::vector<Place>> places = placesOf(options);
  if (!places.ok())
    return places.status();
  MachineFigures figures;
  SetThreads(0);
  figures.threads = Threads();
  print("SSDs\n");
  status = measureDisks(*places, options.quick, figures);
  if (!status.ok())
    return status;
  figures.memory = FreeMemory(MeasureMemoryLeft());
  print("host\n" + FormatRow("memory", figures.memory, U::bytes));
  absl::StatusOr<Figure> bandwidth = MeasureBandwidth(options.quick);
  if (!bandwidth.ok())
    return bandwidth.status();
  figures.bandwidth = *bandwidth;
  absl::StatusOr<Figure> checksum = MeasureChecksums(options.quick);
  if (!checksum.ok())
    return checksum.status();
  figures.checksum = *checksum;
  status = measureKernels(options.quick, figures);
  if (!status.ok())
    return status;
  warnOfOtherWork(figures);
  // What one user reaches there is there for all of them.
  if (figures.bandwidth.value < figures.optimizer.value)
    figures.bandwidth = {figures.optimizer.value, 0, "as much as updates move"};
  print(FormatRow("memory bandwidth", figures.bandwidth, U::speed) +
        FormatRow("updates", figures.optimizer, U::speed) +
        FormatRow("checksums", figures.checksum, U::speed) + "kernels of " + figures.kernels +
        "\n");
  auto printFormats = [&](const char *what, Figure KernelFigures::*figure, U unit) {
    for (const auto &[format, of] : figures.formats)
      print(FormatRow(absl::StrCat(what, " ", WordOf(format)), of.*figure, unit));
  };
  printFormats("products", &KernelFigures::product, U::operations);
  printFormats("attention", &KernelFigures::attention, U::operations);
  printFormats("the rest", &KernelFigures::elementwise, U::speed);
  for (const std::string &warning : figures.warnings)
    print(absl::StrCat("warning: ", warning, "\n"));
  status = writeFile(options.output, figures);
  if (status.ok())
    print(absl::StrCat("wrote ", options.output, "; see it work: boa simulate examples/gpt.boa ",
                       options.output, "\n"));
  return status;
}

} // namespace boa
