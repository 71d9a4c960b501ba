//===- isa.cpp ------------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/isa.h"

#include <absl/strings/str_cat.h>

#include <atomic>

#ifdef __x86_64__
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace boa {
namespace {

#ifdef __x86_64__
/// The registers of tiles are 8 KiB that Linux saves only for who asks: the process asks
/// once, for all of its threads (Documentation/arch/x86/xstate.rst).
bool MayUseTiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

Isa Best() {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return Isa::kBaseline;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return Isa::kAvx2;
  if (!__builtin_cpu_supports("avx512bf16"))
    return Isa::kAvx512;
  if (!__builtin_cpu_supports("amx-tile") || !__builtin_cpu_supports("amx-bf16") || !MayUseTiles())
    return Isa::kAvx512Bf16;
  return Isa::kAmx;
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
  case Isa::kAmx:
    return "amx";
  }
  return "";
}

Isa UsedIsa() { return Used().load(std::memory_order_relaxed); }

absl::Status UseIsa(absl::string_view name) {
  static const Isa best = Best();
  for (Isa isa : kAllIsas) {
    if (name != IsaName(isa))
      continue;
    if (isa > best)
      return absl::FailedPreconditionError(
          absl::StrCat("this processor has ", IsaName(best), " at most"));
    Used() = isa;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "expected \"baseline\", \"avx2\", \"avx512\", \"avx512_bf16\" or \"amx\"");
}

} // namespace boa
