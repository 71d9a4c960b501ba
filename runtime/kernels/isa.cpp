//===- isa.cpp ------------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/isa.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <atomic>
#include <iterator>

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
  // F alone is what Xeon Phi had.
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

Isa UsedIsa() { return Used().load(std::memory_order_relaxed); }

absl::Status UseIsa(absl::string_view name) {
  static const Isa best = Best();
  const auto *found = std::find(std::begin(kIsaNames), std::end(kIsaNames), name);
  if (found == std::end(kIsaNames)) {
    const auto *last = std::end(kIsaNames) - 1;
    return absl::InvalidArgumentError(
        absl::StrCat("expected \"", absl::StrJoin(std::begin(kIsaNames), last, "\", \""),
                     "\" or \"", *last, "\""));
  }
  const Isa isa = static_cast<Isa>(found - std::begin(kIsaNames));
  if (isa > best)
    return absl::FailedPreconditionError(
        absl::StrCat("this processor has ", IsaName(best), " at most"));
  Used() = isa;
  return absl::OkStatus();
}

} // namespace boa
