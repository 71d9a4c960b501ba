//===- EmitGroups.cpp - Groups to loops on the pool -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each kernel.group becomes one kernel.parallel over its parts. A row goes through
// all ops before the next; of columns each op goes through a whole range, which is
// its innermost loop, so that what it reads lies side by side. What one iteration
// of an op is, the op says (TilingInterface). LLVM keeps sums in registers and
// vectorises.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/CodeBuilder.h"
#include "passes/kernels/KernelGroup.h"
#include "passes/target/cpu/CpuPasses.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace boa {
#define GEN_PASS_DEF_CPUEMITGROUPS
#include "passes/target/cpu/CpuPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// The least iterations for a range of parts: starting a thread of the pool costs some
/// microseconds.
constexpr int64_t kIterationsPerRange = 8192;
/// The least width of a range of columns: a cache line.
constexpr int64_t kColumnsPerRange = 16;

/// Emits the iterations of the op with the first dimensions fixed to `row`. If columns are given,
/// the last dimension has only those.
LogicalResult emitOp(CodeBuilder &builder, const GroupMember &member, ArrayRef<Value> row,
                     std::optional<std::pair<Value, Value>> columns = {}) {
  builder.setLoc(member.op->getLoc());
  CodeBuilder::Values from, to, steps;
  for (int64_t extent : ArrayRef(member.extents).drop_front(row.size())) {
    from.push_back(builder.index(0));
    to.push_back(builder.index(extent));
    steps.push_back(builder.index(1));
  }
  if (columns)
    std::tie(from.back(), to.back()) = *columns;
  LogicalResult status = success();
  scf::buildLoopNest(builder, builder.getLoc(), from, to, steps,
                     [&](OpBuilder &inner, Location loc, ValueRange rest) {
                       SmallVector<Value> ivs(row);
                       llvm::append_range(ivs, rest);
                       status = cast<TilingInterface>(member.op).generateScalarImplementation(
                           inner, loc, ivs);
                     });
  return status;
}

int64_t getGrain(kernel::GroupOp group) {
  int64_t each = std::max<int64_t>(group.getWork() / group.getCount(), 1);
  bool columns = group.getAxis() == kernel::GroupAxis::Columns;
  int64_t grain = (kIterationsPerRange + each - 1) / each;
  return columns ? std::max(grain, kColumnsPerRange) : grain;
}

LogicalResult emitGroup(kernel::GroupOp group) {
  const auto [members, memory] = takeApart(group);
  CodeBuilder builder(OpBuilder(group), group.getLoc());
  auto parallel = kernel::ParallelOp::create(builder, group.getCount(), getGrain(group));
  builder.setInsertionPointToStart(&parallel.getBodyRegion().front());
  Value begin = parallel.getBegin(), end = parallel.getEnd();
  LogicalResult status = success();
  if (group.getAxis() == kernel::GroupAxis::Columns) {
    for (const GroupMember &member : members)
      status = failed(status) ? status : emitOp(builder, member, {}, {{begin, end}});
  } else {
    CodeBuilder::Values row;
    if (!group.getSpace().empty()) {
      auto loop = scf::ForOp::create(builder, begin, end, builder.index(1));
      builder.setInsertionPointToStart(loop.getBody());
      row = builder.delinearize(loop.getInductionVar(), group.getSpace());
    }
    for (const GroupMember &member : members)
      status = failed(status) ? status : emitOp(builder, member, row);
  }
  group.erase();
  return status;
}

struct CpuEmitGroups : boa::impl::CpuEmitGroupsBase<CpuEmitGroups> {
  void runOnOperation() override {
    for (auto group : llvm::to_vector(getOperation().getBody().front().getOps<kernel::GroupOp>()))
      if (failed(emitGroup(group)))
        return signalPassFailure();
  }
};

} // namespace
