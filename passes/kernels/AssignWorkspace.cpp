//===- AssignWorkspace.cpp - Static offsets for a kernel's temporaries ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes that the ops at the top of a kernel run in their order, with what is in
// their regions: launches, and those under a condition. A temporary lives from the
// first of them that uses it (or a view of it), wherever inside, to the last. Largest
// first, each at the lowest offset free during its life. Refuses allocations inside
// regions and of sizes that are not static.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/MemoryAccess.h"
#include "passes/kernels/KernelPasses.h"

#include "llvm/Support/MathExtras.h"

namespace boa {
#define GEN_PASS_DEF_ASSIGNWORKSPACE
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

struct Temporary {
  memref::AllocOp alloc;
  int64_t bytes = 0, alignment = kMemoryAlignment;
  int64_t first = 0, last = 0; // positions of top-level ops
  int64_t offset = 0;
};

struct AssignWorkspace : boa::impl::AssignWorkspaceBase<AssignWorkspace> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    Block &block = kernel.getBody().front();
    SmallVector<Temporary> temporaries;
    WalkResult status = kernel.walk([&](memref::AllocOp alloc) {
      if (!alloc.getType().hasStaticShape() || alloc->getBlock() != &block) {
        alloc.emitOpError("expected a static size at the top of a kernel");
        return WalkResult::interrupt();
      }
      Temporary temporary;
      temporary.alloc = alloc;
      temporary.alignment = std::max<int64_t>(kMemoryAlignment, alloc.getAlignment().value_or(1));
      temporary.bytes = llvm::alignTo(getBytes(alloc.getType()), kMemoryAlignment);
      temporaries.push_back(temporary);
      return WalkResult::advance();
    });
    if (status.wasInterrupted())
      return signalPassFailure();

    measureLives(block, temporaries);
    SmallVector<Temporary> own;
    llvm::copy_if(temporaries, std::back_inserter(own), isOfProgram);
    const int64_t ownTotal = place(own), total = place(temporaries);
    Value workspace = kernel.getArgument(1);
    for (Temporary &temporary : temporaries) {
      OpBuilder builder(temporary.alloc);
      auto view = kernel::ViewOp::create(builder, temporary.alloc.getLoc(),
                                         temporary.alloc.getType(), workspace, temporary.offset);
      temporary.alloc.replaceAllUsesWith(view.getMemory());
      temporary.alloc.erase();
    }
    int64_t apart = 0;
    for (const Temporary &temporary : temporaries)
      apart += temporary.bytes;
    remark::analysis(kernel.getLoc(), kernelRemark("assign-workspace"))
        << "in @" << kernel.getSymName() << ": "
        << remark::metric("temporaries", int64_t(temporaries.size()))
        << remark::metric("bytes", total) << remark::metric("apart", apart);
    kernel.setWorkspace(total);
    kernel.setScratch(total - ownTotal);
  }

  /// Whether anything uses it but the offer of attention to a library.
  static bool isOfProgram(const Temporary &temporary) {
    return !llvm::all_of(temporary.alloc->getUsers(), [](Operation *user) {
      return isa<kernel::OfferAttentionOp, kernel::OfferAttentionGradOp>(user);
    });
  }

  static void measureLives(Block &block, SmallVectorImpl<Temporary> &all) {
    llvm::DenseMap<Value, Temporary *> byRoot;
    for (Temporary &temporary : all) {
      temporary.first = -1;
      byRoot[temporary.alloc.getMemref()] = &temporary;
    }
    for (auto [position, op] : llvm::enumerate(block)) {
      for (const MemoryAccess &access : getMemoryAccesses(&op)) {
        Temporary *temporary = byRoot.lookup(access.root);
        if (!temporary)
          continue;
        if (temporary->first < 0)
          temporary->first = position;
        temporary->last = position;
      }
    }
  }

  /// Sets the offsets; returns the bytes needed.
  static int64_t place(SmallVectorImpl<Temporary> &all) {
    SmallVector<Temporary *> order;
    for (Temporary &temporary : all)
      order.push_back(&temporary);
    llvm::stable_sort(order, [](Temporary *a, Temporary *b) { return a->bytes > b->bytes; });
    int64_t total = 0;
    SmallVector<Temporary *> placed; // by offset
    for (Temporary *temporary : order) {
      int64_t offset = 0;
      for (Temporary *other : placed) {
        bool together = temporary->first <= other->last && other->first <= temporary->last;
        if (!together)
          continue;
        if (offset + temporary->bytes <= other->offset)
          break;
        offset = std::max(
            offset, int64_t(llvm::alignTo(other->offset + other->bytes, temporary->alignment)));
      }
      temporary->offset = offset;
      total = std::max(total, offset + temporary->bytes);
      auto *at = llvm::upper_bound(placed, temporary,
                                   [](auto *a, auto *b) { return a->offset < b->offset; });
      placed.insert(at, temporary);
    }
    return total;
  }
};

} // namespace
