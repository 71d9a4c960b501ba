//===- isa.h - Instruction sets that kernels are compiled for -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each has its own order of sums, so results differ between them within rounding:
// which one is used is a matter of the processor, and of what the system allows of it, or
// said by name.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_ISA_H
#define BOA_RUNTIME_KERNELS_ISA_H

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

namespace boa {

/// Each has all before it.
enum class Isa { kBaseline, kAvx2, kAvx512, kAvx512Bf16, kAmx };

/// The name of each, in that order: what tests and benchmarks go through.
inline constexpr const char *kIsaNames[] = {"baseline", "avx2", "avx512", "avx512_bf16", "amx"};

inline const char *IsaName(Isa isa) { return kIsaNames[static_cast<int>(isa)]; }

/// What matrix products and attention use: the last that this processor has, unless
/// UseIsa said otherwise.
Isa UsedIsa();

/// Says it by name; refused where the processor lacks it.
absl::Status UseIsa(absl::string_view name);

} // namespace boa

#endif // BOA_RUNTIME_KERNELS_ISA_H
