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
#include "passes/storage/Arena.h"
#include "runtime/abi/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_PREPAREOPERANDS
#include "passes/Passes.h.inc"

namespace {

/// A launch, and the outermost loop around it through which its prepared buffers stay as they are.
struct Visit {
  LaunchOp launch;
  LoopOp loop = {};
  SmallVector<Value> buffers = {};
  int64_t count = 1; // of times that the launch runs in the loop
};

/// Finds the visit of a launch. Its loop is null if there is none that would save anything.
Visit findVisit(LaunchOp launch, PreparedAttr prepared) {
  Visit visit{launch};
  for (int64_t read : prepared.getReads())
    visit.buffers.push_back(launch.getReads()[size_t(read)]);
  auto keepsAll = [&](LoopOp loop) {
    return llvm::all_of(visit.buffers, [&](Value buffer) {
      return loop.isDefinedOutsideOfLoop(buffer) &&
             llvm::none_of(buffer.getUsers(), [&](Operation *user) {
               return loop->isAncestor(user) && hasEffect<MemoryEffects::Write>(user, buffer);
             });
    });
  };
  for (auto loop = launch->getParentOfType<LoopOp>(); loop && keepsAll(loop);
       loop = loop->getParentOfType<LoopOp>()) {
    visit.loop = loop;
    visit.count *= loop.getTripCount();
  }
  if (visit.count == 1)
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
    const int64_t bytes = boa_slot_stride(storage.getChunkBytes());
    Arena arena;
    arena.limit = Arena::limitOfDevice(machine);
    arena.used = (IsSeparate(machine) ? onDevice : total).getInt();
    if (!arena.takes(bytes))
      return false;
    setArenas(module, total.getInt() + bytes, onDevice.getInt() + bytes);
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
        launches += visit.count;
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
