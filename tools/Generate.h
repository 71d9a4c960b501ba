//===- Generate.h - boa sample and boa chat ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_GENERATE_H
#define BOA_TOOLS_GENERATE_H

#include "tools/CommandLine.h"

#include "absl/status/status.h"

namespace boa {

/// Text from a model, on standard output.
absl::Status runSample(Invocation &invocation);
/// A conversation with a model.
absl::Status runChat(Invocation &invocation);

} // namespace boa

#endif // BOA_TOOLS_GENERATE_H
