//===- PrepareProducts.cpp - Asks for weights as products take them -------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes kernels with bound arguments and definite memory. One buffer holds the forms of all
// products of a kernel, one behind the other: a matrix that is taken in two orientations has two.
//
//===----------------------------------------------------------------------===//

#include "dialect/Config.h"
#include "passes/target/cpu/CpuPasses.h"

#include "mlir/IR/Remarks.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

namespace boa {
#define GEN_PASS_DEF_CPUPREPAREPRODUCTS
#include "passes/target/cpu/CpuPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// A matrix as products take it, at an offset in the prepared buffer.
struct Form {
  kernel::ViewOp matrix;
  bool transposed, narrowA;
  int64_t offset, bytes;

  static Form get(kernel::GemmOp gemm, kernel::ViewOp matrix) {
    auto shape = cast<MemRefType>(matrix.getMemory().getType()).getShape();
    const int64_t rows = llvm::product_of(shape.drop_back()), columns = shape.back();
    const int64_t n = gemm.getTransposeB() ? rows : columns, k = rows * columns / n;
    auto a = cast<MemRefType>(gemm.getA().getType());
    return {matrix, gemm.getTransposeB(), a.getElementType().isBF16(), 0,
            k * int64_t(llvm::alignTo(n, 16)) * 4};
  }
  bool isSame(const Form &other) const {
    return matrix == other.matrix && transposed == other.transposed && narrowA == other.narrowA;
  }
  kernel::ArgumentOp buffer() { return matrix.getBase().getDefiningOp<kernel::ArgumentOp>(); }
};

struct CpuPrepareProducts : boa::impl::CpuPrepareProductsBase<CpuPrepareProducts> {
  using CpuPrepareProductsBase::CpuPrepareProductsBase;

  void runOnOperation() override {
    for (KernelOp kernel : llvm::to_vector(getOperation().getOps<KernelOp>()))
      ask(kernel);
  }

  /// The parameter that a product takes as its second operand, if it is large; else null. Entries
  /// of parameters are packed: of one dimension.
  kernel::ViewOp findParameter(KernelOp kernel, kernel::GemmOp gemm) {
    auto view = gemm.getB().getDefiningOp<kernel::ViewOp>();
    auto from = view ? view.getBase().getDefiningOp<kernel::ArgumentOp>() : kernel::ArgumentOp();
    if (!from || from.getIndex() >= kernel.getReads().size())
      return {};
    Attribute held = kernel.getReads()[from.getIndex()];
    auto type = cast<MemRefType>(view.getMemory().getType());
    const bool isEntry = cast<RankedTensorType>(cast<TypeAttr>(held).getValue()).getRank() == 1;
    const bool isKnown = type.getElementType().isF32() || type.getElementType().isBF16();
    return isEntry && isKnown && type.getNumElements() >= least ? view : kernel::ViewOp();
  }

  void ask(KernelOp kernel) {
    SmallVector<Form> forms;
    SmallVector<std::pair<kernel::GemmOp, size_t>> products; // and their forms
    int64_t bytes = 0;
    kernel.walk([&](kernel::GemmOp gemm) {
      kernel::ViewOp matrix = findParameter(kernel, gemm);
      if (!matrix)
        return;
      Form form = Form::get(gemm, matrix);
      auto *known = llvm::find_if(forms, [&](Form &other) { return form.isSame(other); });
      products.push_back({gemm, size_t(known - forms.begin())});
      if (known != forms.end())
        return;
      form.offset = bytes;
      bytes += form.bytes;
      forms.push_back(form);
    });
    if (forms.empty())
      return;
    // Tables come behind the prepared buffer.
    const int64_t number = int64_t(kernel.getBuffers().size());
    for (auto argument : kernel.getOps<kernel::ArgumentOp>())
      if (int64_t(argument.getIndex()) >= number)
        argument.setIndex(argument.getIndex() + 1);
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    Value address =
        kernel::ArgumentOp::create(builder, kernel.getLoc(), kernel.getArgument(0), number);
    for (auto [gemm, form] : products) {
      gemm.getPreparedMutable().assign(address);
      gemm.setPreparedOffset(forms[form].offset);
    }
    kernel.setPreparedAttr(makeKernel(kernel, forms, bytes));
    remark::analysis(kernel.getLoc(),
                     remark::RemarkOpts::name("cpu-prepare-products").category("boa-kernel"))
        << "@" << kernel.getSymName() << " asks for " << remark::metric("forms", forms.size())
        << remark::metric("bytes", bytes);
  }

  /// Adds the kernel that makes the forms.
  PreparedAttr makeKernel(KernelOp kernel, MutableArrayRef<Form> forms, int64_t bytes) {
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(kernel);
    Location loc = kernel.getLoc();
    llvm::SetVector<int64_t> read;
    int64_t moved = bytes;
    for (Form &form : forms) {
      read.insert(form.buffer().getIndex());
      auto type = cast<MemRefType>(form.matrix.getMemory().getType());
      moved += type.getNumElements() * type.getElementTypeBitWidth() / 8;
    }
    SmallVector<Attribute> reads;
    for (int64_t number : read)
      reads.push_back(kernel.getReads()[size_t(number)]);
    auto type = RankedTensorType::get({bytes / 4}, builder.getF32Type());
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    auto maker =
        KernelOp::create(builder, loc, (kernel.getSymName() + ".prepare").str(),
                         builder.getFunctionType({pointer, pointer, pointer}, {}), ArrayAttr(),
                         ArrayAttr(), PreparedAttr(), builder.getArrayAttr(reads),
                         builder.getTypeArrayAttr({}), builder.getTypeArrayAttr(type));
    maker.setCostsAttr(builder.getDictionaryAttr(builder.getNamedAttr(
        WordOf(ComputeType::f32), CostAttr::get(&getContext(), 0, moved, 0, 0, moved))));
    builder.setInsertionPointToStart(maker.addEntryBlock());
    auto argument = [&](int64_t number) -> Value {
      return kernel::ArgumentOp::create(builder, loc, maker.getArgument(0), number);
    };
    Value target = argument(int64_t(read.size()));
    for (Form &form : forms) {
      auto number = llvm::find(read, int64_t(form.buffer().getIndex())) - read.begin();
      Value matrix = kernel::ViewOp::create(builder, loc, form.matrix.getMemory().getType(),
                                            argument(number), form.matrix.getOffset());
      Value panels = kernel::ViewOp::create(builder, loc,
                                            MemRefType::get({form.bytes / 4}, builder.getF32Type()),
                                            target, form.offset);
      kernel::PrepareOp::create(builder, loc, matrix, panels, form.transposed, form.narrowA);
    }
    ReturnOp::create(builder, loc, ValueRange());
    return PreparedAttr::get(&getContext(), type, FlatSymbolRefAttr::get(maker.getSymNameAttr()),
                             read.getArrayRef());
  }
};

} // namespace
