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
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace boa {
namespace {

/// Models on which the bf16 instruction of AVX-512 was timed, or whose cores are the same.
/// `kernel-bench --products` says where a row is wrong.
struct Row {
  const char *vendor;
  int family, first_model, last_model;
  Isa use;
};
constexpr Row kTable[] = {
    // Zen 4: twice the rate of f32. (Models below 0x10 are Zen 3, without AVX-512.)
    {"AuthenticAMD", 0x19, 0x10, 0xff, Isa::kAvx512Bf16},
    // Zen 5: the same instruction, in vectors of full width.
    {"AuthenticAMD", 0x1a, 0x00, 0xff, Isa::kAvx512Bf16},
    // Sapphire and Emerald Rapids, Granite Rapids, whose AMX is hidden: 148 GFLOP/s a thread by
    // the instruction, 231 by FMA of f32 on widened operands.
    {"GenuineIntel", 0x06, 0x8f, 0x8f, Isa::kAvx512},
    {"GenuineIntel", 0x06, 0xcf, 0xcf, Isa::kAvx512},
    {"GenuineIntel", 0x06, 0xad, 0xae, Isa::kAvx512},
};

#ifdef __x86_64__
/// The registers of tiles are 8 KiB that Linux saves only for who asks: the process asks
/// once, for all of its threads (Documentation/arch/x86/xstate.rst).
bool MayUseTiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

const Processor &ThisOne() {
  static const Processor processor = ThisProcessor();
  return processor;
}

std::atomic<Isa> &Used() {
  static std::atomic<Isa> used = *ChooseIsa(ThisOne());
  return used;
}

} // namespace

int Processor::Family() const {
  const int family = signature >> 8 & 0xf;
  return family == 0xf ? family + static_cast<int>(signature >> 20 & 0xff) : family;
}

int Processor::Model() const {
  const int model = signature >> 4 & 0xf, base = signature >> 8 & 0xf;
  const bool is_extended = base == 0x6 || base == 0xf;
  return is_extended ? model + static_cast<int>(signature >> 16 & 0xf) * 16 : model;
}

Isa Processor::Last() const {
  if (!avx2)
    return Isa::kBaseline;
  if (!avx512)
    return Isa::kAvx2;
  if (!avx512_bf16)
    return Isa::kAvx512;
  return amx_bf16 ? Isa::kAmx : Isa::kAvx512Bf16;
}

Processor ThisProcessor() {
  Processor processor;
#ifdef __x86_64__
  uint32_t eax, vendor[3], ebx, ecx, edx;
  __cpuid(0, eax, vendor[0], vendor[2], vendor[1]); // EBX, EDX, ECX spell the name
  processor.vendor.assign(reinterpret_cast<const char *>(vendor), sizeof vendor);
  __cpuid(1, processor.signature, ebx, ecx, edx);
  // These ask the system as well: it must save the registers.
  processor.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  // F alone is what Xeon Phi had.
  processor.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  processor.avx512_bf16 = __builtin_cpu_supports("avx512bf16");
  processor.amx_bf16 =
      __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") && MayUseTiles();
#endif
  return processor;
}

absl::StatusOr<Isa> ChooseIsa(const Processor &processor, absl::string_view name) {
  const Isa last = processor.Last();
  if (!name.empty()) {
    const auto *found = std::find(std::begin(kIsaNames), std::end(kIsaNames), name);
    if (found == std::end(kIsaNames)) {
      const auto *end = std::end(kIsaNames) - 1;
      return absl::InvalidArgumentError(
          absl::StrCat("expected \"", absl::StrJoin(std::begin(kIsaNames), end, "\", \""),
                       "\" or \"", *end, "\""));
    }
    const Isa isa = static_cast<Isa>(found - std::begin(kIsaNames));
    if (isa > last)
      return absl::FailedPreconditionError(
          absl::StrCat("this processor has ", IsaName(last), " at most"));
    return isa;
  }
  // Only the bf16 instruction of AVX-512 may be slower than what comes before it.
  if (last != Isa::kAvx512Bf16)
    return last;
  for (const Row &row : kTable)
    if (processor.vendor == row.vendor && processor.Family() == row.family &&
        processor.Model() >= row.first_model && processor.Model() <= row.last_model)
      return row.use;
  // A processor that nobody timed. FMA of f32 is at its full rate on every processor with
  // AVX-512, and attention rounds less by it; the instruction can be a third slower.
  return Isa::kAvx512;
}

Isa UsedIsa() { return Used().load(std::memory_order_relaxed); }

absl::Status UseIsa(absl::string_view name) {
  const absl::StatusOr<Isa> isa = ChooseIsa(ThisOne(), name);
  if (isa.ok())
    Used() = *isa;
  return isa.status();
}

} // namespace boa
