//===- KeepOuterLoops.cpp - Loops around loops are not unrolled -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/target/cpu/CpuPasses.h"

namespace boa {
#define GEN_PASS_DEF_CPUKEEPOUTERLOOPS
#include "passes/target/cpu/CpuPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

struct CpuKeepOuterLoops : boa::impl::CpuKeepOuterLoopsBase<CpuKeepOuterLoops> {
  void runOnOperation() override {
    Builder builder(&getContext());
    auto unroll = LLVM::LoopUnrollAttr::get(&getContext(), /*disable=*/builder.getBoolAttr(true),
                                            {}, {}, {}, {}, {}, {});
    auto annotation = LLVM::LoopAnnotationAttr::get(&getContext(), {}, {}, {}, unroll, {}, {}, {},
                                                    {}, {}, {}, {}, {}, {}, {}, {});
    getOperation()->walk([&](scf::ForOp loop) {
      if (auto outer = loop->getParentOfType<scf::ForOp>())
        outer->setAttr(kLoopAnnotationAttr, annotation);
    });
  }
};

} // namespace
