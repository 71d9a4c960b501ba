//===- isa.cpp ------------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/isa.h"

#include <absl/strings/str_cat.h>

#include <atomic>

namespace boa {
namespace {

Isa Best() {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return Isa::kBaseline;
  if (!__builtin_cpu_supports("avx512f"))
    return Isa::kAvx2;
  // bf16 came after the other three.
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return Isa::kAvx512;
  return Isa::kAvx512Bf16;
#else
  return Isa::kBaseline;
#endif
}

std::atomic<Isa> &Used() {
  static std::atomic<Isa> used = Best();
  return used;
}

} // namespace

const char *IsaName(Isa isa) {
  switch (isa) {
  case Isa::kBaseline:
    return "baseline";
  case Isa::kAvx2:
    return "avx2";
  case Isa::kAvx512:
    return "avx512";
  case Isa::kAvx512Bf16:
    return "avx512_bf16";
  }
  return "";
}

Isa UsedIsa() { return Used().load(std::memory_order_relaxed); }

absl::Status UseIsa(absl::string_view name) {
  const Isa best = Best();
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (name != IsaName(isa))
      continue;
    if (isa > best)
      return absl::FailedPreconditionError(
          absl::StrCat("this processor has ", IsaName(best), " at most"));
    Used() = isa;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "expected \"baseline\", \"avx2\", \"avx512\" or \"avx512_bf16\"");
}

} // namespace boa
