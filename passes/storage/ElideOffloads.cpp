//===- ElideOffloads.cpp - --boa-elide-offloads ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Drops what is written home and that nobody reads there, in part where a part is read.
// Decided on the enumerated program, so it is exact. Assumes the storage phase, after
// --boa-retain-buffers: what is taken up in memory is not read from home.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/TranslationValidation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_ELIDEOFFLOADS
#include "passes/Passes.h.inc"

namespace {

class DeadOffloads : public Tracer {
public:
  using ReadChunks = llvm::DenseMap<Operation *, llvm::BitVector>; // by offload

  DeadOffloads(ModuleOp module, ReadChunks &readChunks) : Tracer(module), readChunks(&readChunks) {}

  static unsigned run(ModuleOp module) {
    StepOp step = findEntryPoint(module, EntryPoint::step);
    if (!step)
      return 0;
    // What a step leaves on SSD, the next step or another entry point reads.
    ReadChunks readChunks;
    bool steady = runEntries(module, DeadOffloads(module, readChunks),
                             [](DeadOffloads &trace, StepOp entry, bool pending) {
                               trace.Tracer::run(entry, pending);
                               // A run that does not follow directly reads them from home.
                               for (const auto &copy : trace.retained)
                                 trace.markRead(copy->access);
                             });
    if (!steady)
      return 0;
    unsigned changed = 0;
    step.walk([&](OffloadOp offload) { changed += narrow(offload, readChunks); });
    return changed;
  }

  /// Adds the writers of what is there to the snapshot.
  Snapshot snapshot() const override {
    Snapshot all = Tracer::snapshot();
    for (auto storage : ModuleOp(module).getOps<StorageOp>())
      if (auto it = writers.find(storage); it != writers.end())
        for (const ChunkMap<Operation *> &entry : it->second)
          entry.forEach(0, storage.getChunks(), [&](ChunkMap<Operation *>::Run run) {
            all.insert(all.end(), {reinterpret_cast<intptr_t>(run.value), run.first});
          });
    return all;
  }

private:
  /// The offloads that wrote an entry's chunks; null if there are none.
  ChunkMap<Operation *> &writersOf(const Access &access) {
    StorageOp storage = access.storage;
    std::vector<ChunkMap<Operation *>> &all = writers[storage];
    if (all.empty())
      all.resize(storage.getEntryCount(), {0, int64_t(storage.getChunks()), nullptr});
    return all[access.entry];
  }

  void opened(Operation *op, const Buffer &buffer, const Position &at, bool retained) override {
    if (buffer.access.reads && !retained)
      markRead(buffer.access);
  }
  void markRead(const Access &access) {
    writersOf(access).forEach(access.first, access.count, [&](ChunkMap<Operation *>::Run run) {
      if (!run.value)
        return;
      llvm::BitVector &read = (*readChunks)[run.value];
      read.resize(StorageOp(access.storage).getChunks());
      read.set(run.first, run.first + run.count);
    });
  }
  /// Notes an offload. If an op moves some entries, those that are homes need nothing of it.
  void offloaded(OffloadOp op, const Access &access, const Buffer &buffer) override {
    const Access &held = buffer.access;
    bool moves = !buffer.home ||
                 memory.isHomeInAllEntries(held.storage, held.first, held.count, buffer.space);
    writersOf(access).set(access.first, access.count, moves ? op : nullptr);
  }

  static bool narrow(OffloadOp offload, const ReadChunks &readChunks) {
    auto storage =
        SymbolTable::lookupNearestSymbolFrom<StorageOp>(offload, offload.getStorageAttr());
    // Trained state outlives the program, and results are read after it, from their homes.
    Memory memory(storage->getParentOfType<ModuleOp>());
    Space space = offload.getBuffer().getType().getSpace();
    if (storage.isLiveOut() && (storage.getPersistent() ||
                                !memory.isHomeInAllEntries(storage, 0, storage.getChunks(), space)))
      return false;
    auto it = readChunks.find(offload);
    if (it == readChunks.end()) {
      offload.erase();
      return true;
    }
    int64_t first = it->second.find_first(), count = it->second.find_last() + 1 - first;
    if (!offload.isWholeEntry() || count == int64_t(storage.getChunks()))
      return false;
    OpBuilder builder(offload);
    offload.getFirstMutable().assign(
        arith::ConstantIndexOp::create(builder, offload.getLoc(), first).getResult());
    offload.setCount(count);
    return true;
  }

  llvm::DenseMap<Operation *, std::vector<ChunkMap<Operation *>>> writers; // of entries, by storage
  ReadChunks *readChunks;
};

struct ElideOffloads : impl::ElideOffloadsBase<ElideOffloads> {
  using ElideOffloadsBase::ElideOffloadsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto &computation = getAnalysis<CurrentComputation>();
    computation.get(); // before
    unsigned dead = DeadOffloads::run(module);
    remark::passed(module.getLoc(),
                   remark::RemarkOpts::name("elide-offloads").category("boa-storage"))
        << "dropped or narrowed " << remark::metric("offloads", int64_t(dead));
    if (failed(computation.checkSame("offloads were dropped that it needs")))
      return signalPassFailure();
    markAnalysesPreserved<CurrentComputation>();
  }
};

} // namespace
} // namespace boa
