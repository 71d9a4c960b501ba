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

#include "passes/kernels/KernelGroup.h"
#include "passes/target/cpu/CpuPasses.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace boa {
#define GEN_PASS_DEF_EMITGROUPS
#include "passes/target/cpu/CpuPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// Iterations that a range of parts should at least have: starting a thread of the
/// pool costs some microseconds.
constexpr int64_t kIterationsPerRange = 8192;
/// A range of columns is at least a cache line wide.
constexpr int64_t kColumnsPerRange = 16;

class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  void forRange(Value begin, Value end, function_ref<void(Value)> body) {
    Value one = constant(1);
    scf::ForOp::create(builder, loc, begin, end, one, ValueRange(),
                       [&](OpBuilder &, Location, Value iv, ValueRange) {
                         body(iv);
                         scf::YieldOp::create(builder, loc);
                       });
  }

  /// The index in a space of these extents that `linear` stands for.
  SmallVector<Value> delinearize(Value linear, ArrayRef<int64_t> extents) {
    SmallVector<Value> index(extents.size());
    for (unsigned i = extents.size() - 1; i > 0; --i) {
      Value extent = constant(extents[i]);
      index[i] = arith::RemUIOp::create(builder, loc, linear, extent);
      linear = arith::DivUIOp::create(builder, loc, linear, extent);
    }
    index[0] = linear;
    return index;
  }

  /// The iterations of the op with the first dimensions fixed to `ivs`; in the last
  /// one, if a range is given, only those in it.
  LogicalResult emit(const GroupMember &member, SmallVector<Value> &ivs, Value begin = {},
                     Value end = {}) {
    unsigned dim = ivs.size(), rank = member.extents.size();
    if (dim == rank)
      return cast<TilingInterface>(member.op).generateScalarImplementation(builder, loc, ivs);
    bool ranged = begin && dim + 1 == rank;
    LogicalResult status = success();
    forRange(ranged ? begin : constant(0), ranged ? end : constant(member.extents[dim]),
             [&](Value iv) {
               ivs.push_back(iv);
               status = emit(member, ivs, begin, end);
               ivs.pop_back();
             });
    return status;
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }

  OpBuilder &builder;
  Location loc;
};

int64_t getGrain(kernel::GroupOp group) {
  int64_t each = std::max<int64_t>(group.getWork() / group.getCount(), 1);
  bool columns = group.getAxis() == kernel::GroupAxis::Columns;
  int64_t grain = (kIterationsPerRange + each - 1) / each;
  return columns ? std::max(grain, kColumnsPerRange) : grain;
}

LogicalResult emitGroup(OpBuilder &builder, kernel::GroupOp group) {
  SmallVector<GroupMember> members;
  for (Operation &op : llvm::make_early_inc_range(group.getBodyRegion().front()))
    if (auto member = GroupMember::get(&op))
      members.push_back(std::move(*member));
    else
      op.moveBefore(group); // memory: of a temporary each row has its own place
  builder.setInsertionPoint(group);
  Location loc = group.getLoc();
  auto parallel = kernel::ParallelOp::create(builder, loc, group.getCount(), getGrain(group));
  builder.setInsertionPointToStart(&parallel.getBodyRegion().front());
  Value begin = parallel.getBegin(), end = parallel.getEnd();
  Emitter emitter(builder, loc);
  LogicalResult status = success();
  bool columns = group.getAxis() == kernel::GroupAxis::Columns;
  auto emitAll = [&](SmallVector<Value> row) {
    for (const GroupMember &member : members)
      if (failed(columns ? emitter.emit(member, row, begin, end) : emitter.emit(member, row)))
        status = failure();
  };
  if (columns || group.getSpace().empty())
    emitAll({});
  else
    emitter.forRange(begin, end,
                     [&](Value part) { emitAll(emitter.delinearize(part, group.getSpace())); });
  group.erase();
  return status;
}

struct EmitGroups : boa::impl::EmitGroupsBase<EmitGroups> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr))
      return;
    OpBuilder builder(func);
    for (auto group : llvm::to_vector(func.getBody().front().getOps<kernel::GroupOp>()))
      if (failed(emitGroup(builder, group)))
        return signalPassFailure();
  }
};

} // namespace
