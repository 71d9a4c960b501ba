//===- BlockRows.cpp - Computes wide products by blocks of rows ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes straight-line kernels of products and linalg on tensors, after fusion. Writes a chain
// (RowChain.h) out once for each block of rows (RowBlocks.h), one block behind the other. A block
// computes its rows as before. Only sums over rows are added up block by block.
//
// Refuses, with a remark, chains in which an op needs other rows than its own.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/RowBlocks.h"
#include "passes/kernels/RowChain.h"

#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace boa {
#define GEN_PASS_DEF_BLOCKROWS
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// The most blocks of a product, since each is code of its own.
constexpr int64_t kMaxBlocks = 64;

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

class ChainRewriter {
public:
  explicit ChainRewriter(const RowChain &chain) : chain(chain) {}

  /// Clones the chain for each of the blocks, and erases its ops.
  void rewrite(ArrayRef<RowBlock> blocks);

private:
  bool isUsedOutside(Value value) const {
    return llvm::any_of(value.getUsers(),
                        [&](Operation *user) { return !chain.contains(chain.getOuter(user)); });
  }
  void emit(OpBuilder &builder, const RowBlock &block, bool first);

  const RowChain &chain;
  /// The results that ops outside use, with their values after the blocks so far.
  llvm::MapVector<Value, Value> whole;
};

void ChainRewriter::emit(OpBuilder &builder, const RowBlock &block, bool first) {
  IRMapping made;                      // from results to those of this block
  llvm::DenseMap<Value, Value> slices; // of values from outside
  auto empty = [&](Location loc, RankedTensorType of) -> Value {
    RankedTensorType part = block.getType(of);
    return tensor::EmptyOp::create(builder, loc, part.getShape(), part.getElementType());
  };
  for (Operation *op : chain.getOps()) {
    Location loc = op->getLoc();
    const ChainMember &member = chain.getMember(op);
    auto style = cast<DestinationStyleOpInterface>(op);
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      bool init = style.isDpsInit(&operand);
      Value sum = init ? whole.lookup(style.getTiedOpResult(&operand)) : Value();
      Operation *from = value.getDefiningOp();
      if (!member.byRow[operand.getOperandNumber()]) {
        operands.push_back(init ? sum : value);
      } else if (Value here = made.lookupOrNull(value)) {
        operands.push_back(here);
      } else if (init && isa_and_nonnull<tensor::EmptyOp>(from)) {
        operands.push_back(empty(loc, tensorOf(value)));
      } else if (auto fill = dyn_cast_or_null<linalg::FillOp>(init ? from : nullptr)) {
        operands.push_back(
            linalg::FillOp::create(builder, loc, fill.getInputs()[0], empty(loc, tensorOf(value)))
                .getResult(0));
      } else if (init) {
        operands.push_back(block.extract(builder, loc, sum ? sum : value));
      } else {
        Value &part = slices[value];
        if (!part)
          part = block.extract(builder, loc, value);
        operands.push_back(part);
      }
    }
    Operation *clone = builder.clone(*op, made);
    clone->setOperands(operands);
    if (auto gemm = dyn_cast<kernel::GemmOp>(clone))
      gemm.setAccumulate(gemm.getAccumulate() || (member.sums && !first));
    for (auto [result, part] : llvm::zip(op->getResults(), clone->getResults())) {
      if (!member.sums)
        part.setType(block.getType(tensorOf(result)));
      auto it = whole.find(result);
      if (it != whole.end())
        it->second = member.sums ? Value(part) : block.insert(builder, loc, part, it->second);
    }
  }
}

void ChainRewriter::rewrite(ArrayRef<RowBlock> blocks) {
  SmallVector<Operation *> late = chain.getLate();
  Operation *next = chain.getOps().back()->getNextNode();
  OpBuilder builder(next);
  for (Operation *op : chain.getOps())
    for (OpResult result : op->getResults()) {
      bool sums = chain.getMember(op).sums;
      if (!sums && !isUsedOutside(result))
        continue;
      Value init = cast<DestinationStyleOpInterface>(op).getTiedOpOperand(result)->get();
      if (!sums && (chain.makes(init) ||
                    isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(init.getDefiningOp())))
        init = tensor::EmptyOp::create(builder, op->getLoc(), tensorOf(result).getShape(),
                                       tensorOf(result).getElementType());
      whole[result] = init;
    }
  for (const RowBlock &block : blocks)
    emit(builder, block, &block == blocks.begin());
  for (auto [result, value] : whole)
    result.replaceUsesWithIf(
        value, [&](OpOperand &use) { return !chain.contains(chain.getOuter(use.getOwner())); });
  for (Operation *op : late)
    op->moveBefore(next);
  // Then the ops that only they used: memory of all rows.
  llvm::SetVector<Operation *> last;
  auto erase = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *from = operand.getDefiningOp(); from && !chain.contains(from))
        last.insert(from);
    op->erase();
  };
  llvm::for_each(llvm::reverse(chain.getOps()), erase);
  while (!last.empty())
    if (Operation *op = last.pop_back_val(); isOpTriviallyDead(op))
      erase(op);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct BlockRows : boa::impl::BlockRowsBase<BlockRows> {
  using BlockRowsBase::BlockRowsBase;

  void runOnOperation() override {
    SmallVector<kernel::GemmOp> products(getOperation().getBody().front().getOps<kernel::GemmOp>());
    llvm::DenseSet<Operation *> gone;
    for (kernel::GemmOp product : products)
      if (!gone.contains(product) && widens(product))
        tryBlocks(product, gone);
  }

  static bool widens(kernel::GemmOp product) {
    int64_t columns = tensorOf(product.getC()).getShape().back();
    return !product.getTransposeA() && columns > tensorOf(product.getA()).getShape().back();
  }

  void tryBlocks(kernel::GemmOp product, llvm::DenseSet<Operation *> &gone) {
    Location loc = product.getLoc();
    auto remark = kernelRemark("block-rows");
    RowChain chain(product);
    std::optional<std::string> why = chain.find();
    int64_t count = llvm::product_of(chain.getRows());
    RowLimits limits{rows};
    if (!rows) {
      limits.least = std::max<int64_t>(least, 1);
      limits.count = kMaxBlocks;
      limits.most = std::max({bytes / chain.getBytesPerRow(), limits.least,
                              int64_t(llvm::divideCeil(count, limits.count))});
    }
    SmallVector<RowBlock> blocks = divideRows(chain.getRows(), limits);
    if (blocks.size() == 1)
      return;
    if (why) {
      remark::missed(loc, remark) << remark::reason("{0}", *why);
      return;
    }
    remark::passed(loc, remark) << remark::metric("rows", count)
                                << remark::metric("blocks", int64_t(blocks.size()))
                                << remark::metric("of", blocks.front().getCount())
                                << remark::metric("to", blocks.back().getCount());
    gone.insert_range(chain.getOps());
    ChainRewriter(chain).rewrite(blocks);
  }
};

} // namespace
