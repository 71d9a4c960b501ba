//===- refuse.h - An error of what the user wrote ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_REFUSE_H
#define BOA_RUNTIME_SUPPORT_REFUSE_H

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace boa {

/// InvalidArgument with these words.
template <typename... Args> absl::Status Refuse(const Args &...args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_REFUSE_H
