//===- trace.h - A timeline of what ran -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The engine's commands in the Trace Event Format, which ui.perfetto.dev and
// chrome://tracing open. Compute, the optimizer, copies in each direction between two
// memories, and each SSD's reads and writes have a row each. Events of one row must nest,
// so transfers that overlap get further rows below.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_TRACE_H
#define BOA_RUNTIME_VIEW_TRACE_H

#include "runtime/engine/engine.h"
#include "runtime/io/output_file.h"

#include "absl/status/status.h"

#include <vector>

namespace boa {

/// Replaces the contents of `file`. `name`: the process's name in the viewer.
absl::Status WriteTrace(OutputFile &file, const std::string &name, std::vector<TraceEvent> events);

} // namespace boa

#endif // BOA_RUNTIME_VIEW_TRACE_H
