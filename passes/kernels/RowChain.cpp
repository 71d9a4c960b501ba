//===- RowChain.cpp - A wide product and the ops that reduce it -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/kernels/RowChain.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace boa;

namespace {

//===----------------------------------------------------------------------===//
// How an op reads rows
//===----------------------------------------------------------------------===//

bool beginsWith(RankedTensorType type, ArrayRef<int64_t> rows) {
  return type && type.getRank() >= int64_t(rows.size()) &&
         type.getShape().take_front(rows.size()) == rows;
}

std::optional<ChainMember> describe(kernel::GemmOp op, ArrayRef<int64_t> rows) {
  // If both are transposed, rows of one are columns of the other.
  if (op.getTransposeA() && op.getTransposeB())
    return std::nullopt;
  ChainMember member{op, SmallVector<bool>(op->getNumOperands(), false), op.getTransposeA()};
  SmallVector<OpOperand *> byRow{&op.getAMutable()};
  byRow.push_back(member.sums ? &op.getBMutable() : &op.getCMutable());
  for (OpOperand *operand : byRow) {
    RankedTensorType type = tensorOf(operand->get());
    if (!beginsWith(type, rows) || type.getRank() != int64_t(rows.size()) + 1)
      return std::nullopt;
    member.byRow[operand->getOperandNumber()] = true;
  }
  // Each block would add a bias once more, and round a narrow sum once more.
  if (member.sums && (op.getBias() || tensorOf(op.getC()).getElementType().isBF16()))
    return std::nullopt;
  return member;
}

std::optional<ChainMember> describe(linalg::LinalgOp op, ArrayRef<int64_t> rows) {
  unsigned count = rows.size();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  if (!op.hasPureTensorSemantics() || extents.size() < count ||
      ArrayRef(extents).take_front(count) != rows ||
      !llvm::all_equal(ArrayRef(iterators).take_front(count)))
    return std::nullopt;
  ChainMember member{op, {}, iterators[0] == utils::IteratorType::reduction};
  auto ofRows = [&](AffineExpr expr) {
    return llvm::any_of(llvm::seq(count), [&](unsigned d) { return expr.isFunctionOfDim(d); });
  };
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    bool byRow = llvm::any_of(map.getResults(), ofRows);
    if (byRow && (map.getNumResults() < count ||
                  map.getMajorSubMap(count) !=
                      AffineMap::getMultiDimIdentityMap(map.getNumDims(), op.getContext())
                          .getMajorSubMap(count) ||
                  llvm::any_of(map.getResults().drop_front(count), ofRows)))
      return std::nullopt;
    if (op.isDpsInit(&operand) &&
        (byRow == member.sums || (member.sums && getElementTypeOrSelf(operand.get()).isBF16())))
      return std::nullopt;
    member.byRow.push_back(byRow);
  }
  return member;
}

std::optional<ChainMember> describe(Operation *op, ArrayRef<int64_t> rows) {
  if (auto product = dyn_cast<kernel::GemmOp>(op))
    return describe(product, rows);
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
    return describe(linalg, rows);
  return std::nullopt;
}

std::string nameOf(Operation *op) { return op->getName().getStringRef().str() + " "; }

} // namespace

//===----------------------------------------------------------------------===//
// The chain
//===----------------------------------------------------------------------===//

/// Adds an op to the chain. Returns false if no rule says how the op reads rows. `wide` receives
/// its results of the product's width.
bool RowChain::add(Operation *op, SmallVectorImpl<Value> &wide) {
  if (contains(op))
    return true;
  std::optional<ChainMember> member = describe(op, rows);
  if (!member)
    return false;
  // A product ends the chain, unless it is added to a wide value.
  auto gemm = dyn_cast<kernel::GemmOp>(op);
  bool ends = gemm && op != product && !makes(gemm.getC());
  for (Value result : op->getResults()) {
    RankedTensorType made = tensorOf(result);
    if (member->sums || ends || made.getShape() != type.getShape())
      continue;
    wide.push_back(result);
    widest = std::max(widest, getElementBytes(made));
  }
  members.try_emplace(op, std::move(*member));
  return true;
}

SmallVector<Operation *> RowChain::getLate() const {
  SmallVector<Operation *> late;
  llvm::SmallPtrSet<Operation *, 8> isLate;
  auto needsChain = [&](Operation *op) {
    auto walked = op->walk([&](Operation *inner) {
      return llvm::any_of(inner->getOperands(),
                          [&](Value v) {
                            Operation *from = v.getDefiningOp();
                            return from && (contains(from) || isLate.contains(from));
                          })
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    return walked.wasInterrupted();
  };
  for (Operation *op = order.front(); op != order.back(); op = op->getNextNode())
    if (!contains(op) && needsChain(op)) {
      late.push_back(op);
      isLate.insert(op);
    }
  return late;
}

std::optional<std::string> RowChain::find() {
  SmallVector<Value> wide;
  if (!add(product, wide))
    return "its rows are not those of its operands";
  while (true) {
    while (!wide.empty())
      for (Operation *user : wide.pop_back_val().getUsers())
        if (!add(getOuter(user), wide))
          return nameOf(getOuter(user)) + "does not take it row by row";
    order.clear();
    for (auto &entry : members)
      order.push_back(entry.first);
    llvm::sort(order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    // An op between two ops of the chain belongs to it.
    llvm::SmallPtrSet<Operation *, 8> between;
    SmallVector<Operation *> late = getLate();
    llvm::SmallPtrSet<Operation *, 8> isLate(late.begin(), late.end());
    for (Operation *op : order)
      op->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (isLate.contains(operand.getDefiningOp()))
            between.insert(operand.getDefiningOp());
      });
    if (between.empty())
      return check();
    for (Operation *op : late)
      if (between.contains(op) && !add(op, wide))
        return nameOf(op) + "in the middle does not take rows one by one";
  }
}

/// Whether the body reads only its own row of the chain's values, and uses the index of the row
/// only for that.
bool RowChain::looksAtOwnRow(Operation *op) const {
  auto walked = op->walk([&](Operation *inner) {
    bool holds = true;
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      holds = index.getDim() >= rows.size() || llvm::all_of(index->getUses(), [&](OpOperand &use) {
                auto extract = dyn_cast<tensor::ExtractOp>(use.getOwner());
                return extract && makes(extract.getTensor()) &&
                       use.getOperandNumber() == index.getDim() + 1;
              });
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      if (makes(extract.getTensor())) {
        holds = !members.at(extract.getTensor().getDefiningOp()).sums;
        for (unsigned d = 0; holds && d < rows.size(); ++d) {
          Value at = extract.getIndices()[d];
          auto index = at.getDefiningOp<linalg::IndexOp>();
          // A constant may name the only index.
          holds = index ? index.getDim() == d : rows[d] == 1 && isZeroInteger(at);
        }
      }
    } else if (inner != op) {
      holds = llvm::none_of(inner->getOperands(), [&](Value value) { return makes(value); });
    }
    return holds ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walked.wasInterrupted();
}

/// Says why the chain cannot be computed by blocks. Each op must read the others' results row by
/// row. At least one must reduce rows, so that less than a row is left of each.
std::optional<std::string> RowChain::check() {
  bool reduces = false;
  for (Operation *op : order) {
    const ChainMember &member = members.at(op);
    for (OpOperand &operand : op->getOpOperands()) {
      if (!makes(operand.get()))
        continue;
      if (members.at(operand.get().getDefiningOp()).sums)
        return nameOf(op) + "needs a sum over all rows";
      if (!member.byRow[operand.getOperandNumber()])
        return nameOf(op) + "needs all rows at once";
    }
    if (!looksAtOwnRow(op))
      return nameOf(op) + "looks at other rows";
    if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
      reduces |=
          llvm::is_contained(ArrayRef(linalg.getIteratorTypesArray()).drop_front(rows.size()),
                             utils::IteratorType::reduction);
  }
  if (!reduces)
    return "nothing reduces its rows";
  return std::nullopt;
}
