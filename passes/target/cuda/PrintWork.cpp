//===- PrintWork.cpp - What kernels ask of a GPU, as a table --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes outlined launches. The whole of an operand counts once as read, written or both,
// even where a launch looks up a few rows by index. Attention that is offered to a library
// counts as the library's.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/MemoryAccess.h"
#include "passes/target/cuda/CudaPasses.h"

#include "llvm/Support/Format.h"

namespace boa {
#define GEN_PASS_DEF_CUDAPRINTWORK
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

enum Kind { launch, copy, product, attention, kinds };
constexpr const char *kNames[kinds] = {"launch", "copy", "product", "attention"};

struct Work {
  int64_t calls = 0, read = 0, written = 0, operations = 0;
  Work &operator+=(const Work &other) {
    calls += other.calls;
    read += other.read;
    written += other.written;
    operations += other.operations;
    return *this;
  }
};

int64_t bytesOf(Value memref) { return getBytes(memrefOf(memref)); }

std::string shapeOf(Value memref) {
  auto type = memrefOf(memref);
  std::string text;
  for (int64_t extent : type.getShape())
    text += std::to_string(extent) + "x";
  llvm::raw_string_ostream(text) << type.getElementType();
  return text;
}

/// Whether the function stores only values that it loaded.
bool onlyCopies(Operation *function) {
  bool stores = false;
  WalkResult walked = function->walk([&](memref::StoreOp store) {
    stores = true;
    return store.getValue().getDefiningOp<memref::LoadOp>() ? WalkResult::advance()
                                                            : WalkResult::interrupt();
  });
  return stores && !walked.wasInterrupted();
}

struct CudaPrintWork : boa::impl::CudaPrintWorkBase<CudaPrintWork> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<KernelOp>())
      print(kernel);
    markAllAnalysesPreserved();
  }

  void print(KernelOp kernel) {
    Work total[kinds];
    llvm::outs() << kernel.getSymName() << "\n";
    row("call", "read", "written", "operations", "what");
    for (Operation &op : kernel.getBody().front()) {
      std::string what;
      Work work{/*calls=*/1};
      Kind kind = kinds;
      llvm::raw_string_ostream out(what);
      if (auto call = dyn_cast<kernel::LaunchFuncOp>(op))
        kind = measure(call, work, out);
      else if (auto call = dyn_cast<kernel::GemmOp>(op))
        kind = measure(call, work, out);
      else if (auto call = dyn_cast<kernel::OfferAttentionOp>(op))
        kind = measureAttention(call, {call.getY(), call.getLse()}, 2, work, out);
      else if (auto call = dyn_cast<kernel::OfferAttentionGradOp>(op))
        kind = measureAttention(call, {call.getDq(), call.getDk(), call.getDv()}, 5, work, out);
      if (kind == kinds)
        continue;
      total[kind] += work;
      row(kNames[kind], std::to_string(work.read), std::to_string(work.written),
          work.operations ? std::to_string(work.operations) : "", what);
    }
    Work all;
    for (int kind = 0; kind < kinds; ++kind) {
      const Work &work = total[kind];
      all += work;
      row(("total " + Twine(kNames[kind])).str(), std::to_string(work.read),
          std::to_string(work.written), work.operations ? std::to_string(work.operations) : "",
          (Twine(work.calls) + " calls").str());
    }
    row("total", std::to_string(all.read), std::to_string(all.written),
        std::to_string(all.operations), (Twine(all.calls) + " calls").str());
    llvm::outs() << "\n";
  }

  static void row(StringRef call, StringRef read, StringRef written, StringRef operations,
                  StringRef what) {
    llvm::outs() << "  " << llvm::left_justify(call, 15) << llvm::right_justify(read, 14) << " "
                 << llvm::right_justify(written, 14) << " " << llvm::right_justify(operations, 16)
                 << "  " << what << "\n";
  }

  Kind measure(kernel::LaunchFuncOp call, Work &work, raw_ostream &what) {
    auto func = cast<gpu::GPUFuncOp>(getOperation().lookupSymbol(call.getFunction()));
    llvm::DenseSet<Value> reads, writes;
    for (const MemoryAccess &access : getMemoryAccesses(func))
      (access.write ? writes : reads).insert(access.root);
    for (auto [operand, argument] : llvm::zip(call.getOperands(), func.getArguments())) {
      const bool read = reads.contains(argument), written = writes.contains(argument);
      work.read += read ? bytesOf(operand) : 0;
      work.written += written ? bytesOf(operand) : 0;
      what << (read ? written ? "+" : "" : "=") << shapeOf(operand) << " ";
    }
    return onlyCopies(func) ? copy : launch;
  }

  static Kind measure(kernel::GemmOp call, Work &work, raw_ostream &what) {
    auto rows = [](Value memref) {
      auto type = memrefOf(memref);
      return type.getNumElements() / type.getShape().back();
    };
    const int64_t m = rows(call.getC()), n = memrefOf(call.getC()).getShape().back();
    const int64_t k =
        call.getTransposeA() ? rows(call.getA()) : memrefOf(call.getA()).getShape().back();
    work.read = bytesOf(call.getA()) + bytesOf(call.getB());
    work.written = bytesOf(call.getC());
    if (call.getBias())
      work.read += bytesOf(call.getBias());
    if (call.getAccumulate() || call.getAddend())
      work.read += work.written;
    work.operations = 2 * m * n * k;
    what << m << " x " << k << " x " << n << " to " << shapeOf(call.getC())
         << (call.getBias() ? " bias" : "") << (call.getAccumulate() ? " accumulate" : "")
         << (call.getAddend() ? " plus" : "");
    return product;
  }

  /// The operations of `products` of time x time x columns for each head and sequence.
  template <typename Op>
  static Kind measureAttention(Op call, ArrayRef<Value> results, int64_t products, Work &work,
                               raw_ostream &what) {
    for (Value result : results)
      work.written += bytesOf(result);
    for (Value operand : call->getOperands())
      if (operand != call.getScratch() && !llvm::is_contained(results, operand))
        work.read += bytesOf(operand);
    auto q = memrefOf(call.getQ());
    work.operations = 2 * products * q.getNumElements() * q.getDimSize(1);
    if (call.getCausal())
      work.operations /= 2;
    what << shapeOf(call.getQ()) << (call.getCausal() ? " causal" : "");
    return attention;
  }
};

} // namespace
