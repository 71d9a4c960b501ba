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
    getOperation()->walk([&](FunctionOpInterface func) {
      int64_t loops = 0, kept = 0;
      func->walk([&](scf::ForOp loop) {
        ++loops;
        auto outer = loop->getParentOfType<scf::ForOp>();
        if (!outer || outer->getAttr(kLoopAnnotationAttr) == annotation)
          return;
        outer->setAttr(kLoopAnnotationAttr, annotation);
        ++kept;
      });
      if (loops)
        remark::passed(func.getLoc(), kernelRemark("keep-outer-loops"))
            << "in @" << func.getName() << ": " << remark::metric("loops", loops)
            << remark::metric("kept", kept);
    });
  }
};

} // namespace
