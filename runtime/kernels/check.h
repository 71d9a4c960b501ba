//===- check.h - Kernels against plain loops, at start ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel may run on a processor that none of its authors had. So at start a small
// product by each kernel is compared with plain loops, which takes less than a
// millisecond. A kernel that differs stops the run: other kernels would give other
// bits, and nobody would learn of the fault. The error names the way out.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_CHECK_H
#define BOA_RUNTIME_KERNELS_CHECK_H

#include "runtime/kernels/gemm_block.h"
#include "runtime/kernels/isa.h"

#include <absl/status/status.h>

#include <functional>

namespace boa {

/// The kernels of products, one for each type of operands.
struct ProductKernels {
  std::function<void(const GemmF32 &)> f32;
  std::function<void(const GemmBf16 &)> f32_by_bf16;
  std::function<void(const GemmBf16Bf16 &)> bf16;
  std::function<void(const GemmAllBf16 &)> all_bf16;
};

/// The kernels of an instruction set that this processor has.
ProductKernels ProductsOf(Isa);

/// Compares kernels that pass for those of an instruction set above the baseline. The error
/// says which product differs and where, and names a set to use instead.
absl::Status CheckKernels(Isa, const ProductKernels &);

/// Compares the kernels of an instruction set, once in a process. The baseline is not
/// compared: nothing could replace it.
absl::Status CheckKernels(Isa);

} // namespace boa

#endif // BOA_RUNTIME_KERNELS_CHECK_H
