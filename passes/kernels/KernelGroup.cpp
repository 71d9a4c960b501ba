//===- KernelGroup.cpp - What may be computed together --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelGroup.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace boa;

namespace {

SmallVector<int64_t> getExtents(TilingInterface op) {
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op.getOperation()))
    return linalg.getStaticLoopRanges();
  SmallVector<int64_t> extents;
  OpBuilder builder(op.getContext()); // our own domains are attributes
  for (Range range : op.getIterationDomain(builder))
    extents.push_back(*getConstantIntValue(range.size));
  return extents;
}

/// The extents as text: "[2, 64]".
std::string print(ArrayRef<int64_t> extents) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << llvm::interleaved_array(extents);
  return text;
}

} // namespace

std::optional<GroupMember> GroupMember::get(Operation *op) {
  auto tiling = dyn_cast<TilingInterface>(op);
  auto isStatic = [](Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    return memref ? memref.hasStaticShape() : !isa<ShapedType>(type);
  };
  if (!tiling || op->getNumResults() || !llvm::all_of(op->getOperandTypes(), isStatic))
    return std::nullopt;
  GroupMember member{op, getExtents(tiling), 0, false, getMemoryAccesses(op)};
  SmallVector<utils::IteratorType> iterators = tiling.getLoopIteratorTypes();
  auto isParallel = [](utils::IteratorType t) { return t == utils::IteratorType::parallel; };
  member.leading = llvm::find_if_not(iterators, isParallel) - iterators.begin();
  member.lastParallel = !iterators.empty() && isParallel(iterators.back());
  return member;
}

SmallVector<GroupMember> boa::getMembers(kernel::GroupOp group) {
  SmallVector<GroupMember> members;
  for (Operation &op : group.getBodyRegion().front())
    if (auto member = GroupMember::get(&op))
      members.push_back(std::move(*member));
  return members;
}

std::pair<SmallVector<GroupMember>, SmallVector<Operation *>>
boa::takeApart(kernel::GroupOp group) {
  SmallVector<GroupMember> members = getMembers(group);
  SmallVector<Operation *> memory;
  for (Operation &op : llvm::make_early_inc_range(group.getBodyRegion().front()))
    if (isMemoryOp(&op)) {
      op.moveBefore(group);
      memory.push_back(&op);
    }
  return {std::move(members), std::move(memory)};
}

GroupSpace GroupMember::getSpace() const {
  unsigned rank = extents.size();
  if (leading == 0 && rank > 1 && lastParallel)
    return {kernel::GroupAxis::Columns, {extents.back()}};
  unsigned rows = leading == rank && rank > 1 ? rank - 1 : leading;
  return {kernel::GroupAxis::Rows, llvm::to_vector(ArrayRef(extents).take_front(rows))};
}

std::optional<GroupFault> boa::findFault(const GroupSpace &space, const GroupMember &member,
                                         ArrayRef<GroupMember> others) {
  ArrayRef<int64_t> extents = space.extents;
  bool columns = space.axis == kernel::GroupAxis::Columns;
  ArrayRef<int64_t> own = member.extents;
  bool covers = columns
                    ? extents.size() == 1 && member.leading == 0 && member.lastParallel &&
                          own.back() == extents[0]
                    : member.leading >= extents.size() && own.take_front(extents.size()) == extents;
  if (!covers)
    return GroupFault{member.op, (columns ? "expected sums over rows, parallel in columns "
                                          : "expected parallel rows ") +
                                     print(extents) + " but found loops " + print(own)};
  auto conflict = [&](const GroupMember &other) {
    bool self = &other == &member;
    for (const MemoryAccess &a : member.accesses)
      for (const MemoryAccess &b : other.accesses) {
        // An op in place goes over both alike: each iteration has its own element.
        if (!mayConflict(a, b) || (self && a.memref == b.memref && a.map == b.map))
          continue;
        if (!columns && a.isByRow(extents.size()) && b.isByRow(extents.size()))
          continue;
        return true;
      }
    return false;
  };
  const bool shares = llvm::any_of(others, conflict);
  if (!shares && !conflict(member))
    return std::nullopt;
  std::string reason =
      shares ? "shares memory with another op, and one of them writes it" : "reads its own results";
  if (!columns)
    reason += ", not row by row of " + print(extents);
  return GroupFault{member.op, reason};
}

std::optional<GroupFault> boa::findFault(const GroupSpace &space, ArrayRef<GroupMember> members) {
  for (auto [i, member] : llvm::enumerate(members))
    if (std::optional<GroupFault> fault = findFault(space, member, members.take_front(i)))
      return fault;
  return std::nullopt;
}
