//===- AssignBuffers.cpp - --boa-assign-buffers ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes the arena exactly, by enumerating the entry points, and writes down what
// each of them will move (boa.traffic). Slots beyond the most that are live at
// once let the runtime look ahead; they are given up one by one where memory is
// short. Refuses a program that does not fit, with the arithmetic. Reads
// boa.workspace of the kernels where they have it.
//
// The limit: on the CPU the device's memory and the host's are one, and the arena
// is in it whole, wherever its storages are placed. So what was said of the two
// adds up; of which nothing was said (0, or absent) adds nothing. One limit alone is
// the limit of all, and only where neither was said there is none.
//
//===----------------------------------------------------------------------===//
#include "passes/Config.h"
#include "passes/Passes.h"
#include "passes/analysis/StorageTrace.h"
#include "runtime/abi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_ASSIGNBUFFERS
#include "passes/Passes.h.inc"

namespace {

/// What one storage needs.
struct Need {
  int64_t live = 0, peak = 0; // slots
  int64_t slotChunks = 0;     // of the largest slot
  int64_t lookahead = 0;      // slots to look ahead, wished for
};

class Enumeration : public StorageTrace {
public:
  Enumeration(ModuleOp module, std::map<Operation *, Need> &needs)
      : StorageTrace(module), needs(needs) {}

  /// Live slots of each storage, and bytes moved by role, of one more run, where
  /// updates of an earlier step are `pending` or, as in the first step, are not.
  DictionaryAttr count(StepOp step, bool pending) {
    read.clear();
    written.clear();
    run(step, pending);
    Builder builder(step.getContext());
    auto dictionary = [&](const std::map<std::string, int64_t> &bytes) {
      SmallVector<NamedAttribute> attrs;
      for (auto &[role, count] : bytes)
        if (count)
          attrs.push_back(builder.getNamedAttr(role, builder.getI64IntegerAttr(count)));
      return builder.getDictionaryAttr(attrs);
    };
    return builder.getDictionaryAttr({builder.getNamedAttr("read", dictionary(read)),
                                      builder.getNamedAttr("written", dictionary(written))});
  }

private:
  static int64_t movedBytes(Access access) {
    return access.storage.getTier() == Tier::ssd ? access.getBytes() : 0;
  }
  static std::string roleOf(Access access) { return access.storage.getRole().str(); }

  void opened(Operation *op, const Buffer &buffer, const TraceState &state,
              bool retained) override {
    if (retained)
      return;
    Need &need = needs[StorageOp(buffer.access.storage)];
    need.peak = std::max(need.peak, ++need.live);
    need.slotChunks = std::max(need.slotChunks, buffer.access.count);
    auto prefetch = dyn_cast<PrefetchOp>(op);
    if (prefetch && !state.test(prefetch.getZero(), false))
      read[roleOf(buffer.access)] += movedBytes(buffer.access);
  }
  void offloaded(OffloadOp, const Access &access) override {
    written[roleOf(access)] += movedBytes(access);
  }
  void released(ReleaseOp, const Buffer &buffer, const TraceState &, bool retain) override {
    if (!retain)
      --needs[StorageOp(buffer.access.storage)].live;
  }
  void dropped(const Buffer &buffer, Operation *) override {
    --needs[StorageOp(buffer.access.storage)].live;
  }

  std::map<Operation *, Need> &needs;
  std::map<std::string, int64_t> read, written;
};

/// Three digits, in the unit that has them before the point.
std::string inBytes(int64_t bytes) {
  if (bytes < 1024)
    return llvm::formatv("{0} B", bytes).str();
  static constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  const char *unitName = units[unit];
  if (value >= 99.95)
    return llvm::formatv("{0:f0} {1}", value, unitName).str();
  return (value >= 9.995 ? llvm::formatv("{0:f1} {1}", value, unitName).str()
                         : llvm::formatv("{0:f2} {1}", value, unitName).str());
}

/// What the machine gives; 0: nothing was said.
struct Limit {
  int64_t device, host;

  bool isGiven() const { return device || host; }
  int64_t total() const { return device + host; }
  std::string inWords() const {
    if (device && host)
      return llvm::formatv("{0} of device + {1} of host = {2}", inBytes(device), inBytes(host),
                           inBytes(total()));
    return llvm::formatv("{0} of {1}; nothing is said of {2}, which on the cpu is the same memory",
                         inBytes(total()), device ? "device" : "host", device ? "host" : "device");
  }
};

struct AssignBuffers : impl::AssignBuffersBase<AssignBuffers> {
  using AssignBuffersBase::AssignBuffersBase;

  static int64_t slotBytes(StorageOp storage, const Need &need) {
    return boa_slot_stride(storage.getEntryBytes() / int64_t(storage.getChunks()) *
                           need.slotChunks);
  }
  static int64_t residentBytes(StorageOp storage) {
    return boa_slot_stride(storage.getEntryBytes()) * storage.getEntryCount();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::map<Operation *, Need> needs;
    for (StepOp step : module.getOps<StepOp>()) {
      step->removeAttr("boa.first_traffic");
      auto fresh = [&] {
        for (auto &[storage, need] : needs)
          need.live = 0;
        return Enumeration(module, needs);
      };
      Enumeration trace = fresh();
      if (step.getSymName() != "step") {
        step->setAttr("boa.traffic", trace.count(step, leavesUpdates(step)));
        continue;
      }
      // The first, after a commit, say, finds nothing in memory and nothing pending.
      Training training = trainUntilSteady(trace, step, [&](bool pending) {
        DictionaryAttr traffic = trace.count(step, pending);
        if (!step->hasAttr("boa.first_traffic"))
          step->setAttr("boa.first_traffic", traffic);
        step->setAttr("boa.traffic", traffic);
      });
      if (!training.steady) {
        (void)emitNotSteady(step);
        return signalPassFailure();
      }
    }

    int64_t distance = Config::train(module).integer("prefetch", 1);
    SmallVector<StorageOp> streamed;
    int64_t resident = 0, fixed = 0;
    for (auto storage : module.getOps<StorageOp>()) {
      if (storage.getTier() != Tier::ssd) {
        resident += residentBytes(storage);
        continue;
      }
      Need &need = needs[storage];
      if (need.slotChunks == 0) // never accessed
        need.slotChunks = 1;
      // Chunks are used one after another once a layer's gradient is complete: a
      // whole entry of them is to stand ready then.
      int64_t chunks = need.slotChunks < int64_t(storage.getChunks()) ? storage.getChunks() : 1;
      int64_t all = storage.getEntryCount() * chunks;
      need.lookahead = std::min(distance * std::max<int64_t>(chunks, 2), all - need.peak);
      need.lookahead = std::max<int64_t>(need.lookahead, 0);
      fixed += need.peak * slotBytes(storage, need);
      streamed.push_back(storage);
    }
    int64_t workspace = 0;
    for (auto func : module.getOps<LLVM::LLVMFuncOp>())
      if (auto bytes = func->getAttrOfType<IntegerAttr>("boa.workspace"))
        workspace = std::max(workspace, bytes.getInt());

    workspace = boa_slot_stride(workspace);
    Config machine = Config::machine(module);
    Limit limit{machine.integer("device_memory"), machine.integer("host_memory")};
    int64_t available = limit.isGiven() ? limit.total() - resident - fixed - workspace : INT64_MAX;
    if (available < 0)
      return refuse(streamed, needs, resident, workspace, limit);
    // One more slot to each in turn, while memory lasts.
    std::map<Operation *, int64_t> slots;
    for (StorageOp storage : streamed)
      slots[storage] = needs[storage].peak;
    for (bool given = true; given;) {
      given = false;
      for (StorageOp storage : streamed) {
        Need &need = needs[storage];
        int64_t bytes = slotBytes(storage, need);
        if (need.lookahead == 0 || bytes > available)
          continue;
        --need.lookahead;
        ++slots[storage];
        available -= bytes;
        given = true;
      }
    }
    int64_t total = resident + workspace;
    for (StorageOp storage : streamed) {
      storage.setSlots(slots[storage]);
      storage.setSlotChunks(needs[storage].slotChunks);
      total += slots[storage] * slotBytes(storage, needs[storage]);
    }
    Builder builder(module.getContext());
    module->setAttr("boa.arena", builder.getI64IntegerAttr(total));
    module->setAttr("boa.workspace", builder.getI64IntegerAttr(workspace));
    remark::analysis(module.getLoc(),
                     remark::RemarkOpts::name("assign-buffers").category("boa-storage"))
        << "arena of " << remark::metric("bytes", total);
  }

  void refuse(ArrayRef<StorageOp> streamed, std::map<Operation *, Need> &needs, int64_t resident,
              int64_t workspace, const Limit &limit) {
    int64_t total = resident + workspace;
    std::string lines;
    for (StorageOp storage : streamed) {
      const Need &need = needs[storage];
      int64_t bytes = slotBytes(storage, need);
      total += need.peak * bytes;
      lines += llvm::formatv("\n    {0,-28} {1} slots x {2} = {3}", storage.getSymName(), need.peak,
                             inBytes(bytes), inBytes(need.peak * bytes));
    }
    for (auto storage : getOperation().getOps<StorageOp>())
      if (storage.getTier() != Tier::ssd)
        lines += llvm::formatv(
            "\n    {0,-28} {1} entries x {2} = {3}", storage.getSymName(), storage.getEntryCount(),
            inBytes(boa_slot_stride(storage.getEntryBytes())), inBytes(residentBytes(storage)));
    lines += llvm::formatv("\n    {0,-28} {1}", "kernel workspace", inBytes(workspace));
    lines += llvm::formatv("\n    {0,-28} {1}", "total", inBytes(total));
    lines += llvm::formatv("\n    {0,-28} {1}", "given", limit.inWords());
    getOperation().emitError()
        << "the training step does not fit the memory given: it needs " << inBytes(total)
        << " but the machine has " << inBytes(limit.total()) << lines
        << "\n  give more memory, place more on ssd, or make micro_batch smaller";
    signalPassFailure();
  }
};

} // namespace
} // namespace boa
