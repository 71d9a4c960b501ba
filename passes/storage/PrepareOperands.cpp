//===- PrepareOperands.cpp - --boa-prepare-operands -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes the forms that kernels ask for (#boa.prepared) before the loops that launch them. Assumes
// the storage phase, with memory assigned. Without it the forms are not counted, and
// --boa-assign-buffers may follow. A launch that is alone in its visit keeps its own way: the form
// would be made as often.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/analysis/Memory.h"
#include "runtime/abi/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_PREPAREOPERANDS
#include "passes/Passes.h.inc"

namespace {

/// A launch, and the outermost loop around it in which all that is prepared stays as it is.
struct Visit {
  LaunchOp launch;
  LoopOp loop;
  SmallVector<Value> buffers;

  /// How often the launch runs in a visit.
  int64_t count() {
    int64_t count = 1;
    for (auto inner = launch->getParentOfType<LoopOp>();;
         inner = inner->getParentOfType<LoopOp>()) {
      count *= inner.getTripCount();
      if (inner == loop)
        return count;
    }
  }
};

/// Finds the visit of a launch. Its loop is null if there is none that would save anything.
Visit findVisit(LaunchOp launch, PreparedAttr prepared) {
  Visit visit{launch, {}, {}};
  Operation *outer = nullptr;
  for (int64_t read : prepared.getReads()) {
    Value buffer = launch.getReads()[size_t(read)];
    visit.buffers.push_back(buffer);
    Operation *here = buffer.getParentBlock()->findAncestorOpInBlock(*launch);
    if (!outer || outer->isProperAncestor(here))
      outer = here;
  }
  auto isWrittenWithin = [&](Value buffer) {
    return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
      return outer->isProperAncestor(user) && hasEffect<MemoryEffects::Write>(user, buffer);
    });
  };
  visit.loop = dyn_cast<LoopOp>(outer);
  if (visit.loop && (visit.count() == 1 || llvm::any_of(visit.buffers, isWrittenWithin)))
    visit.loop = LoopOp();
  return visit;
}

struct PrepareOperands : impl::PrepareOperandsBase<PrepareOperands> {
  using PrepareOperandsBase::PrepareOperandsBase;

  /// The visits of a kernel. No two of them are at one time: they share a buffer.
  SmallVector<Visit> findVisits(KernelOp kernel) {
    SmallVector<Visit> visits;
    getOperation().walk([&](LaunchOp launch) {
      if (launch.getKernel() != kernel.getSymName() || launch.getPrepared())
        return;
      Visit visit = findVisit(launch, kernel.getPreparedAttr());
      auto meets = [&](Visit &other) {
        return other.loop->isAncestor(visit.loop) || visit.loop->isAncestor(other.loop);
      };
      if (visit.loop && llvm::none_of(visits, meets))
        visits.push_back(visit);
    });
    return visits;
  }

  /// Takes memory for the entry from what is left. Returns false if it does not fit.
  bool takeMemory(StorageOp storage) {
    ModuleOp module = getOperation();
    auto total = module->getAttrOfType<IntegerAttr>(kArenaAttr);
    auto onDevice = module->getAttrOfType<IntegerAttr>(kArenaDeviceAttr);
    if (!total || !onDevice)
      return true;
    const MachineSettings machine = Config(module).machine;
    const bool separate = Memory(module).isSeparate();
    const int64_t bytes = boa_slot_stride(storage.getChunkBytes());
    const int64_t sum = total.getInt() + bytes;
    int64_t device = onDevice.getInt() + bytes;
    const Checked limit =
        Checked(machine.device_memory) + (separate ? 0 : int64_t(machine.host_memory));
    const int64_t most = limit.AtMost(0) ? kMostBytes : limit.value_or(kMostBytes);
    if ((separate ? device : sum) > most)
      return false;
    // Of one memory the device's share is filled first.
    if (!separate && machine.device_memory)
      device = std::min<int64_t>(machine.device_memory, sum);
    Builder builder(module.getContext());
    module->setAttr(kArenaAttr, builder.getI64IntegerAttr(sum));
    module->setAttr(kArenaDeviceAttr, builder.getI64IntegerAttr(device));
    return true;
  }

  void insert(Visit &visit, StorageOp storage, PreparedAttr prepared) {
    OpBuilder builder(visit.loop);
    Location loc = visit.launch.getLoc();
    Value first = arith::ConstantIndexOp::create(builder, loc, 0);
    auto form = CreateOp::create(builder, loc,
                                 BufferType::get(&getContext(), prepared.getType(), Space::device),
                                 storage.getSymName(), ValueRange(first), Value(), 0);
    LaunchOp::create(builder, loc, prepared.getKernel().getValue(), visit.buffers, ValueRange(),
                     ValueRange(form), /*prepared=*/Value());
    visit.launch.getPreparedMutable().assign(form);
    builder.setInsertionPointAfter(visit.loop);
    ReleaseOp::create(builder, loc, form, /*retain=*/Value());
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (KernelOp kernel : llvm::to_vector(module.getOps<KernelOp>())) {
      PreparedAttr prepared = kernel.getPreparedAttr();
      SmallVector<Visit> visits = prepared ? findVisits(kernel) : SmallVector<Visit>();
      if (visits.empty())
        continue;
      OpBuilder builder(*module.getOps<StepOp>().begin());
      auto home = HomeAttr::get(&getContext(), Tier::device, 0);
      auto storage = StorageOp::create(
          builder, kernel.getLoc(), getStorageName(Role::prepared, kernel.getSymName()),
          ArrayRef<int64_t>{1}, prepared.getType(), StorageOp::makeHomes(home), Role::prepared,
          /*chunks=*/1, /*persistent=*/false, /*pools=*/ArrayAttr());
      auto name = remark::RemarkOpts::name("prepare-operands").category("boa-storage");
      if (!takeMemory(storage)) {
        remark::missed(kernel.getLoc(), name)
            << "memory is short of a form for @" << kernel.getSymName() << ": "
            << remark::metric("bytes", storage.getChunkBytes());
        storage.erase();
        continue;
      }
      int64_t launches = 0;
      for (Visit &visit : visits) {
        insert(visit, storage, prepared);
        launches += visit.count();
      }
      remark::passed(kernel.getLoc(), name)
          << "prepares what @" << kernel.getSymName()
          << " reads: " << remark::metric("visits", int64_t(visits.size()))
          << remark::metric("launches", launches)
          << remark::metric("bytes", storage.getChunkBytes());
    }
  }
};

} // namespace
} // namespace boa
