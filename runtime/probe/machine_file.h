//===- machine_file.h - Figures as text -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_PROBE_MACHINE_FILE_H
#define BOA_RUNTIME_PROBE_MACHINE_FILE_H

#include "runtime/probe/figures.h"

#include "absl/status/status.h"

#include <string>

namespace boa {

/// How a machine file of a probe begins. No other file is replaced by one.
inline constexpr char kMachineFileHead[] = "# Written by `boa probe`";

/// The machine in the language, `name` made a name of it. A comment above each rate says how it
/// was measured. `boa fmt` would change nothing of it but blanks.
std::string FormatMachineFile(const MachineFigures &, const std::string &name);

/// Refuses a path that no text of the language can hold.
absl::Status CheckWritable(const std::string &path);

/// A figure in the language: "187.3 GFLOP/s", "2.148 GB/s", "22.4 GiB", "81.2 us".
enum class FigureUnit { bytes, speed, operations, time };
std::string FormatFigure(double value, FigureUnit);

/// A line of the table for people: what it is, the number, its scatter, how it was found.
std::string FormatRow(const std::string &what, const Figure &, FigureUnit);

} // namespace boa

#endif // BOA_RUNTIME_PROBE_MACHINE_FILE_H
