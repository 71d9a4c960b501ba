//===- isa.h - Instruction sets that kernels are compiled for -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each set has its own order of sums, so results differ between sets within rounding.
// The last set that a processor lists is not always its fastest. A table by processor
// model chooses one; a person may name another.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_ISA_H
#define BOA_RUNTIME_KERNELS_ISA_H

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <stdint.h>

#include <string>

namespace boa {

/// Each has all before it.
enum class Isa { kBaseline, kAvx2, kAvx512, kAvx512Bf16, kAmx };

/// The names, in that order. Tests and benchmarks loop over them.
inline constexpr const char *kIsaNames[] = {"baseline", "avx2", "avx512", "avx512_bf16", "amx"};

inline const char *IsaName(Isa isa) { return kIsaNames[static_cast<int>(isa)]; }

/// A processor's properties, from CPUID.
struct Processor {
  std::string vendor;     // "GenuineIntel"
  uint32_t signature = 0; // leaf 1, EAX: family, model and stepping
  bool avx2 = false;      // and FMA
  bool avx512 = false;    // F, BW, DQ and VL
  bool avx512_bf16 = false;
  bool amx_bf16 = false; // and the system grants its registers

  int Family() const;
  int Model() const;
  /// The last set that it can run.
  Isa Last() const;
};

Processor ThisProcessor();

/// The set whose kernels are the fastest on this processor, or the one called `name`. Refuses an
/// unknown name, and a set that the processor lacks.
absl::StatusOr<Isa> ChooseIsa(const Processor &, absl::string_view name = {});

/// The set that matrix products and attention use. The table chooses it for this processor,
/// unless UseIsa did.
Isa UsedIsa();

/// Chooses it by name, or by the table if the name is empty. Refuses a set that the processor
/// lacks.
absl::Status UseIsa(absl::string_view name);

} // namespace boa

#endif // BOA_RUNTIME_KERNELS_ISA_H
