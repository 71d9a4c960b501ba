//===- FormKernelLoops.cpp - Linalg on memrefs to loops on the pool -------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three steps: ops are put into groups, each group becomes one kernel.parallel,
// and each op of it a loop nest inside. An op joins a group if it goes over the
// same rows (or columns) and the group's order is kept: what two members share
// and one writes is touched row by row by both. It may jump over ops that it
// does not depend on to get there.
//
// Assumes straight-line code on static memrefs whose indexing maps are
// projections; refuses others.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPasses.h"
#include "passes/target/cpu/LoopEmitter.h"
#include "passes/kernels/MemoryAccess.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"

namespace boa {
#define GEN_PASS_DEF_FORMKERNELLOOPS
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// Rows: parallel over leading dimensions. Columns: reduced over them, parallel
/// over the last. Serial: one result from everything.
enum class Kind { Rows, Columns, Serial };

struct Member {
  Operation *op;
  Kind kind;
  SmallVector<int64_t> extents; // of all iteration dimensions
  unsigned leading;             // parallel dimensions in front
  unsigned wanted;              // of them, how many make a row's index
  SmallVector<MemoryAccess> accesses;
};

std::optional<Member> classify(Operation *op) {
  Member member;
  member.op = op;
  member.accesses = getMemoryAccesses(op);
  if (auto scatter = dyn_cast<kernel::ScatterRowsOp>(op)) {
    member.kind = Kind::Columns;
    llvm::append_range(member.extents, cast<MemRefType>(scatter.getRows().getType()).getShape());
    member.leading = member.wanted = 0;
    return member;
  }
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return std::nullopt;
  member.extents = generic.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = generic.getIteratorTypesArray();
  unsigned rank = iterators.size();
  auto parallel = [](utils::IteratorType t) { return t == utils::IteratorType::parallel; };
  member.leading = std::distance(iterators.begin(), llvm::find_if_not(iterators, parallel));
  member.wanted = member.leading;
  if (member.leading == rank && rank > 1)
    member.wanted = rank - 1;
  if (member.leading > 0)
    member.kind = Kind::Rows;
  else
    member.kind = rank > 1 && parallel(iterators.back()) ? Kind::Columns : Kind::Serial;
  return member;
}

/// Members in order, and how many dimensions index a row.
struct Group {
  SmallVector<Member> members;
  unsigned rows = 0;

  /// Rows of the group with `member` in it; none if it does not fit.
  std::optional<unsigned> fit(const Member &member) const {
    const Member &first = members.front();
    if (member.kind != first.kind || member.kind == Kind::Serial)
      return std::nullopt;
    if (member.kind == Kind::Columns) {
      if (member.extents.back() != first.extents.back())
        return std::nullopt;
      for (const Member &other : members)
        if (mayConflict(member.accesses, other.accesses))
          return std::nullopt;
      return 0;
    }
    unsigned together = std::max(rows, member.wanted);
    for (const Member &other : members)
      if (other.leading < together)
        return std::nullopt;
    if (member.leading < together || ArrayRef(member.extents).take_front(together) !=
                                         ArrayRef(first.extents).take_front(together))
      return std::nullopt;
    // A larger row index must hold for the pairs already in the group too.
    SmallVector<const Member *> all;
    for (const Member &other : members)
      all.push_back(&other);
    all.push_back(&member);
    for (unsigned i = 0; i < all.size(); ++i)
      for (unsigned j = 0; j < i; ++j)
        for (const MemoryAccess &a : all[i]->accesses)
          for (const MemoryAccess &b : all[j]->accesses)
            if (mayConflict(a, b) && !(a.isByRow(together) && b.isByRow(together)))
              return std::nullopt;
    return together;
  }
};

/// Elements that one part of a loop should at least work on: starting a thread
/// of the pool costs some microseconds.
constexpr int64_t kElementsPerPart = 8192;

int64_t product(ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

/// Emits the group as one kernel.parallel at the builder's insertion point.
LogicalResult emitGroup(OpBuilder &builder, const Group &group) {
  const Member &first = group.members.front();
  Location loc = first.op->getLoc();
  int64_t count = 1, work = 0;
  for (const Member &member : group.members)
    work = std::max(work, product(member.extents));
  if (first.kind == Kind::Rows)
    count = product(ArrayRef(first.extents).take_front(group.rows));
  else if (first.kind == Kind::Columns)
    count = first.extents.back();
  int64_t each = std::max<int64_t>(work / count, 1);
  int64_t grain = std::max<int64_t>((kElementsPerPart + each - 1) / each, 1);
  // A part of columns is at least a cache line wide.
  if (first.kind == Kind::Columns)
    grain = std::max<int64_t>(grain, 16);
  auto parallel = kernel::ParallelOp::create(builder, loc, count, grain);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&parallel.getBodyRegion().front());
  LoopEmitter emitter(builder, loc);
  if (first.kind == Kind::Rows) {
    LogicalResult status = success();
    emitter.forRange(parallel.getBegin(), parallel.getEnd(), [&](Value row) {
      SmallVector<Value> index =
          emitter.delinearize(row, ArrayRef(first.extents).take_front(group.rows));
      for (const Member &member : group.members)
        if (failed(emitter.emitRow(cast<linalg::GenericOp>(member.op), index)))
          status = failure();
    });
    return status;
  }
  for (const Member &member : group.members) {
    if (auto scatter = dyn_cast<kernel::ScatterRowsOp>(member.op))
      emitter.emitScatter(scatter, parallel.getBegin(), parallel.getEnd());
    else if (failed(member.kind == Kind::Serial
                        ? emitter.emitRow(cast<linalg::GenericOp>(member.op), {})
                        : emitter.emitColumns(cast<linalg::GenericOp>(member.op),
                                              parallel.getBegin(), parallel.getEnd())))
      return failure();
  }
  return success();
}

struct FormKernelLoops : boa::impl::FormKernelLoopsBase<FormKernelLoops> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr))
      return;
    IRRewriter rewriter(&getContext());
    generalize(rewriter, func);
    Block &block = func.getBody().front();

    // Greedily: each op joins the first group in reach.
    SmallVector<Group> groups;
    struct Passed {  // what an op would jump over to join group `index`
      int64_t group; // -1: a library op
      SmallVector<MemoryAccess> accesses;
    };
    SmallVector<Passed> order;
    for (Operation &op : block.without_terminator()) {
      if (isMemoryOp(&op))
        continue;
      std::optional<Member> member = classify(&op);
      if (!member) {
        if (op.getNumRegions() || !isa<DestinationStyleOpInterface>(op)) {
          op.emitOpError("is not expected in a kernel here");
          return signalPassFailure();
        }
        order.push_back({-1, getMemoryAccesses(&op)});
        continue;
      }
      if (!join(groups, order, *member)) {
        groups.emplace_back();
        groups.back().rows = member->wanted;
        groups.back().members.push_back(*member);
        order.push_back({static_cast<int64_t>(groups.size()) - 1, member->accesses});
      }
    }

    for (const Group &group : groups) {
      Operation *point = group.members.front().op;
      for (const Member &member : group.members)
        hoistMemory(member.op, point);
      rewriter.setInsertionPoint(point);
      if (failed(emitGroup(rewriter, group)))
        return signalPassFailure();
      for (const Member &member : group.members)
        rewriter.eraseOp(member.op);
    }
  }

  /// Puts the member into the nearest group that it may join. Past a library
  /// op only for what a group has just written: what merely fits would be
  /// computed long before it is used.
  template <typename Order>
  static bool join(SmallVectorImpl<Group> &groups, Order &order, const Member &member) {
    bool far = false;
    for (auto &passed : llvm::reverse(order)) {
      far |= passed.group < 0;
      if (passed.group >= 0) {
        Group &group = groups[passed.group];
        bool near = !far || llvm::any_of(group.members, [&](const Member &m) {
          return mayConflict(m.accesses, member.accesses);
        });
        std::optional<unsigned> rows = near ? group.fit(member) : std::nullopt;
        if (rows) {
          group.rows = *rows;
          group.members.push_back(member);
          llvm::append_range(passed.accesses, member.accesses);
          return true;
        }
      }
      if (mayConflict(passed.accesses, member.accesses))
        return false;
    }
    return false;
  }

  /// Fills and copies to linalg.generic; copies of memory to itself disappear.
  static void generalize(IRRewriter &rewriter, func::FuncOp func) {
    SmallVector<linalg::LinalgOp> ops;
    func.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops) {
      auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
      if (generic && llvm::hasSingleElement(*generic.getBody()) &&
          generic.getInputs().size() == 1 && generic.getInputs()[0] == generic.getOutputs()[0]) {
        rewriter.eraseOp(op);
        continue;
      }
      rewriter.setInsertionPoint(op);
      if (!generic)
        (void)linalg::generalizeNamedOp(rewriter, op);
    }
  }
};

} // namespace
