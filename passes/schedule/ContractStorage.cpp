//===- ContractStorage.cpp - --boa-contract-storage -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Array contraction. Scalar expansion gave each micro-batch an entry of its own, so that loops
// could be distributed. If an order needs only one of them at a time, all share one entry.
// Assumes the step phase, in its final order. Legality: in every entry point, each read of an
// entry sees the write of its own micro-batch, and no other micro-batch writes the entry in
// between. The entry points are enumerated. What is illegal stays as it is, with a remark.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/TranslationValidation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_CONTRACTSTORAGE
#include "passes/Passes.h.inc"

namespace {

/// A storage whose dimension `dim` every access indexes with the micro-batch of its loop.
struct Candidate {
  StorageOp storage;
  unsigned dim;
  SmallVector<AccessOpInterface> accesses; // one each
  bool illegal = false;                    // a read would see another micro-batch
  llvm::DenseMap<int64_t, int64_t> last;   // by shared entry: the micro-batch that wrote it
};
bool isMicroBatch(Value index) {
  LoopOp loop = LoopOp::of(index);
  return loop && loop.getDimension() == Dimension::micro_batch;
}

/// The first dimension of several entries that all accesses index with the micro-batch of their
/// loop.
std::optional<unsigned> findDimension(StorageOp storage, ArrayRef<AccessOpInterface> accesses) {
  for (auto [dim, size] : llvm::enumerate(storage.getDims()))
    if (size > 1 && llvm::all_of(accesses, [&, dim = dim](AccessOpInterface op) {
          const SmallVector<StorageAccess> accesses = op.getAccesses();
          return accesses.size() == 1 && isMicroBatch(accesses[0].indices[dim]);
        }))
      return dim;
  return std::nullopt;
}

std::vector<Candidate> findCandidates(ModuleOp module) {
  llvm::MapVector<StorageOp, SmallVector<AccessOpInterface>> accesses;
  module.walk([&](AccessOpInterface op) {
    for (const StorageAccess &access : op.getAccesses())
      if (auto storage = module.lookupSymbol<StorageOp>(access.storage.getAttr()))
        accesses[storage].push_back(op);
  });
  std::vector<Candidate> candidates;
  for (auto &[storage, ops] : accesses) {
    // The trainer fills or reads an entry of these for each micro-batch.
    if (StorageOp(storage).isLiveIn() || StorageOp(storage).isLiveOut())
      continue;
    if (std::optional<unsigned> dim = findDimension(storage, ops)) {
      candidates.emplace_back();
      candidates.back().storage = storage;
      candidates.back().dim = *dim;
      candidates.back().accesses = std::move(ops);
    }
  }
  return candidates;
}

/// Runs an entry point, and marks the candidates that it makes illegal.
void checkLegal(StepOp step, RunNumbers numbers, MutableArrayRef<Candidate> candidates) {
  llvm::DenseMap<Operation *, std::pair<Candidate *, StorageAccess>> accesses;
  for (Candidate &candidate : candidates) {
    candidate.last.clear(); // nothing of an earlier run may be read
    for (AccessOpInterface op : candidate.accesses)
      accesses[op] = {&candidate, op.getAccesses()[0]};
  }
  auto visit = [&](Operation *op, const Position &at) {
    auto found = accesses.find(op);
    if (found == accesses.end())
      return;
    const auto &[candidate, access] = found->second;
    int64_t entry = 0;
    for (auto [dim, size] : llvm::enumerate(candidate->storage.getDims()))
      entry = entry * size + (dim == candidate->dim ? 0 : at.get(access.indices[dim]));
    const int64_t microBatch = at.get(access.indices[candidate->dim]);
    const bool fresh = !access.mayRead() || (access.fresh && at.test(access.fresh, false));
    auto last = candidate->last.find(entry);
    if (!fresh && (last == candidate->last.end() || last->second != microBatch))
      candidate->illegal = true;
    if (access.writes())
      candidate->last[entry] = microBatch;
  };
  auto all = [](LoopOp loop, int64_t) { return loop.canRunAsOne() ? int64_t(loop.getUpper()) : 1; };
  enumerate(step, numbers, visit, all);
}

void contract(Candidate &candidate) {
  SmallVector<int64_t> dims(candidate.storage.getDims());
  dims[candidate.dim] = 1;
  candidate.storage.setDims(dims);
  for (Operation *op : candidate.accesses) {
    OpBuilder builder(op);
    Value zero = arith::ConstantIndexOp::create(builder, op->getLoc(), 0);
    llvm::TypeSwitch<Operation *>(op).Case<ReadOp, WriteOp, AccumulateOp>(
        [&](auto access) { access.getIndicesMutable()[candidate.dim].set(zero); });
  }
}

struct ContractStorage : impl::ContractStorageBase<ContractStorage> {
  using ContractStorageBase::ContractStorageBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::vector<Candidate> candidates = findCandidates(module);
    for (StepOp step : module.getOps<StepOp>())
      // An even step may run in another order.
      for (RunNumbers numbers : {RunNumbers{1, 0}, RunNumbers{2, 1}})
        checkLegal(step, numbers, candidates);
    for (Candidate &candidate : candidates)
      if (candidate.illegal)
        remark::missed(candidate.storage.getLoc(),
                       remark::RemarkOpts::name("contract-storage").category("boa-schedule"))
            << "kept an entry of @" << candidate.storage.getSymName()
            << " for each micro-batch: one is read after another is written";
    llvm::erase_if(candidates, [](const Candidate &candidate) { return candidate.illegal; });
    if (candidates.empty())
      return markAllAnalysesPreserved();
    auto &computation = getAnalysis<CurrentComputation>();
    const TracedComputation &before = computation.get();
    for (Candidate &candidate : candidates)
      contract(candidate);
    TracedComputation after = TracedComputation::compute(module);
    // Reads have other entries now.
    const TracedComputation::Outcome *difference = findDifference(before.outcomes, after.outcomes);
    if (!difference)
      difference = findDifference(before.afterSteps, after.afterSteps);
    if (difference) {
      difference->of->emitOpError("would not be the same after ")
          << difference->run << ": contracting storages is illegal";
      return signalPassFailure();
    }
    computation.replace(std::move(after));
    markAnalysesPreserved<CurrentComputation>();
    for (Candidate &candidate : candidates)
      remark::passed(candidate.storage.getLoc(),
                     remark::RemarkOpts::name("contract-storage").category("boa-schedule"))
          << "gave all micro-batches one entry of @" << candidate.storage.getSymName();
  }
};

} // namespace
} // namespace boa
