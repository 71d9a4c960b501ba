//===- AssignBuffers.cpp - --boa-assign-buffers ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes the arena exactly, by running the entry points on symbols, and writes down what
// each of them will move (boa.step: traffic). A pool of slots for each size in which buffers of a
// storage are taken in a space. Slots beyond the most that are live at once let the runtime
// look ahead; they are given up one by one where memory is short. If that is not enough,
// storages whose buffers are not live at the same time share slots. Refuses a program that
// does not fit, with the arithmetic; what it needs is in the diagnostic's metadata, too. Reads
// the workspace of compiled kernels. Where no kernel is compiled, reads the module's boa.workspace
// and boa.attention_scratch. Reads the module's boa.constants.
//
// The limits: where device and host are one memory, what was said of the two adds up; of
// which nothing was said (0, or absent) adds nothing: one limit alone is the limit of
// all. Where they are two memories, each has its own.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/analysis/Tracer.h"
#include "passes/storage/Arena.h"
#include "passes/storage/MemoryNeed.h"
#include "passes/storage/SlotPools.h"
#include "runtime/abi/abi.h"
#include "runtime/support/units.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/IR/Remarks.h"

#include <map>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_ASSIGNBUFFERS
#include "passes/Passes.h.inc"

namespace {

/// Counts live slots, and bytes moved.
class Enumeration : public Tracer {
public:
  Enumeration(ModuleOp module, SlotPools &needs) : Tracer(module), needs(needs) {}

  /// The bytes moved in one more run, by link and label; null if they are more than 64 bits hold.
  DictionaryAttr count(StepOp step, bool pending) {
    moved.clear();
    ofStep = step.getEntryPoint() == EntryPoint::step;
    run(step, pending);
    Builder builder(step.getContext());
    SmallVector<NamedAttribute> links;
    for (auto [link, name] : {std::pair(Link::ssdRead, "read"),
                              {Link::ssdWrite, "written"},
                              {Link::toDevice, "to_device"},
                              {Link::toHost, "to_host"}}) {
      SmallVector<NamedAttribute> roles;
      for (auto &[label, bytes] : moved[link]) {
        const int64_t sum = bytes.value_or(-1);
        if (sum < 0)
          return nullptr;
        if (sum > 0)
          roles.push_back(builder.getNamedAttr(label, builder.getI64IntegerAttr(sum)));
      }
      if (!roles.empty() || link == Link::ssdRead || link == Link::ssdWrite)
        links.push_back(builder.getNamedAttr(name, builder.getDictionaryAttr(roles)));
    }
    return builder.getDictionaryAttr(links);
  }

private:
  auto counter(StorageOp storage) {
    return [this, storage](Link link, int64_t bytes) mutable {
      moved[link][storage.getLabel().str()] += bytes;
    };
  }
  /// The need of a buffer. With one memory, the device's slots are everybody's.
  SlotNeed &needOf(const Buffer &buffer) {
    return needs.get(buffer.access.storage, memory.isSeparate() ? buffer.space : Space::device,
                     buffer.slotChunks());
  }

  void opened(Operation *op, const Buffer &buffer, const Position &, bool retained) override {
    if (retained || buffer.home)
      return;
    SlotNeed &need = needOf(buffer);
    needs.take(need);
    const Access &access = buffer.access;
    if (ofStep)
      need.streamed = std::max(need.streamed, access.parts);
    if (!access.reads)
      return;
    memory.transfer(access.chunks(), buffer.space, /*home=*/false, counter(access.storage));
    stage(access, buffer.space);
  }
  void offloaded(OffloadOp, const Access &access, const Buffer &buffer) override {
    if (buffer.home)
      return;
    memory.transfer(access.chunks(), buffer.space, /*home=*/true, counter(access.storage));
    stage(access, buffer.space);
  }
  /// Passes an access through the host chunk by chunk: one slot at least.
  void stage(const Access &access, Space space) {
    if (!memory.isStaged(access.chunks(), space))
      return;
    SlotNeed &need = needs.get(access.storage, Space::host, 1);
    needs.take(need);
    needs.giveBack(need);
  }
  void copied(CopyOp, const Buffer &from, const Buffer &to) override {
    memory.copy(to.access.storage, to.access.count, from.space, to.space,
                counter(to.access.storage));
  }
  void released(ReleaseOp, const Buffer &buffer, const Position &, bool retain) override {
    if (!retain && !buffer.home)
      needs.giveBack(needOf(buffer));
  }
  void dropped(const Buffer &buffer, Operation *) override { needs.giveBack(needOf(buffer)); }

  SlotPools &needs;
  bool ofStep = false;
  std::map<Link, std::map<std::string, Checked>> moved;
};

std::string inBytes(Checked size) {
  const int64_t bytes = size.value_or(-1);
  return bytes < 0 ? "more than 8 EiB" : FormatBytes(double(bytes));
}

struct AssignBuffers : impl::AssignBuffersBase<AssignBuffers> {
  using AssignBuffersBase::AssignBuffersBase;

  /// The bytes of all entries that live in one memory.
  int64_t residentBytes(StorageOp storage, Space space) {
    int64_t bytes = 0;
    for (const StorageOp::EntryRange &range : storage.getEntryRanges())
      for (const Memory::Piece &piece :
           memory->getPieces({storage, range.first, 0, int64_t(storage.getChunks())}))
        if (piece.space == space)
          bytes += range.count * boa_slot_stride(storage.getChunkBytes() * piece.count);
    return bytes;
  }

  /// The number of entries of which a buffer in that space takes a slot.
  int64_t countStreamed(SlotNeed &need) {
    StorageOp storage = need.storage;
    int64_t count = 0;
    for (const StorageOp::EntryRange &range : storage.getEntryRanges())
      if (!memory->isHome({storage, range.first, 0, int64_t(storage.getChunks())}, need.space))
        count += range.count;
    return count;
  }

  /// Enumerates all entry points, and writes down the bytes that each moves.
  LogicalResult findNeeds(ModuleOp module) {
    for (StepOp step : module.getOps<StepOp>()) {
      const bool isStep = step.getEntryPoint() == EntryPoint::step;
      needs.forgetLive();
      Enumeration tracer(module, needs);
      NamedAttrList traffic;
      bool counted = true; // in 64 bits
      auto run = [&](Enumeration &tracer, StepOp step, bool pending) {
        DictionaryAttr moved = tracer.count(step, pending);
        counted &= bool(moved);
        if (!counted)
          return;
        // The first step, after a commit, say, finds nothing in memory and nothing pending; the
        // second what that could leave.
        if (isStep && !traffic.get("second"))
          traffic.set(traffic.get("first") ? "second" : "first", moved);
        traffic.set("each", moved);
      };
      bool steady = true;
      if (isStep)
        steady = trainUntilSteady(tracer, step, run);
      else
        run(tracer, step, leavesUpdates(step));
      if (!counted)
        return step.emitOpError("moves more bytes in a run than 64 bits count");
      if (!steady)
        return emitNotSteady(step);
      step.setTrafficAttr(traffic.getDictionary(&getContext()));
    }
    return success();
  }

  /// The slots that looking ahead would use. Chunks are used one after another once a layer's
  /// gradient is complete: a whole entry of them is to stand ready then. If other buffers of the
  /// storage are larger, only as many chunks as a step streams are to stand ready (those of a
  /// delayed gradient), or none.
  int64_t wishedLookahead(SlotNeed &need, int64_t distance) {
    int64_t chunks = need.storage.getChunks();
    int64_t slots = need.chunks < chunks ? llvm::divideCeil(chunks, need.chunks) : 1;
    int64_t all = countStreamed(need) * slots;
    if (llvm::any_of(needs.of(need.storage),
                     [&](SlotNeed *other) { return other->chunks > need.chunks; })) {
      if (need.streamed == 0)
        return 0;
      slots = need.streamed;
    }
    return std::max<int64_t>(
        0, std::min(distance * std::max<int64_t>(slots, 2), all - need.pool->peak));
  }

  static int64_t bytesOf(Operation *op, StringRef name, int64_t otherwise = 0) {
    auto bytes = op->getAttrOfType<IntegerAttr>(name);
    return bytes ? bytes.getInt() : otherwise;
  }

  /// Finds the workspace of kernels, with the part that attention needs for cuDNN alone.
  void findWorkspace(ModuleOp module) {
    constants = bytesOf(module, kConstantsAttr);
    if (module.getOps<KernelOp>().empty()) {
      attentionScratch = bytesOf(module, kAttentionScratchAttr);
      workspace = bytesOf(module, kWorkspaceAttr, boa_slot_stride(0));
      return;
    }
    int64_t own = 0;
    workspace = 0;
    for (auto kernel : module.getOps<KernelOp>()) {
      workspace = std::max<int64_t>(workspace, kernel.getWorkspace());
      own = std::max<int64_t>(own, kernel.getWorkspace() - kernel.getScratch());
    }
    workspace = boa_slot_stride(workspace);
    attentionScratch = workspace - boa_slot_stride(own);
  }

  Arena &arenaOf(Space space) { return arenas[separate && space == Space::host ? 1 : 0]; }

  void setLimits(const MachineSettings &machine) {
    int64_t device = machine.device_memory, host = machine.host_memory;
    arenas[0].limit = Arena::limitOfDevice(machine);
    if (separate) {
      arenas[1].limit = host;
      arenas[0].given = inBytes(device) + " of device";
      arenas[1].given = inBytes(host) + " of host";
      return;
    }
    if (device == 0 && host == 0)
      arenas[0].given = "no limit";
    else if (device && host)
      arenas[0].given = llvm::formatv("{0} of device + {1} of host = {2}", inBytes(device),
                                      inBytes(host), inBytes(arenas[0].limit));
    else
      arenas[0].given = llvm::formatv(
          "{0} of {1}; nothing is said of {2}, which on the cpu is the same memory",
          inBytes(arenas[0].limit), device ? "device" : "host", device ? "host" : "device");
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    memory.emplace(module);
    separate = memory->isSeparate();
    needs = SlotPools();
    arenas[0] = arenas[1] = Arena();
    if (failed(findNeeds(module)))
      return signalPassFailure();
    Builder builder(module.getContext());
    findWorkspace(module);
    // Who refuses the program knows it, too.
    module->setAttr(kWorkspaceAttr, builder.getI64IntegerAttr(workspace));
    if (attentionScratch > 0)
      module->setAttr(kAttentionScratchAttr, builder.getI64IntegerAttr(attentionScratch));
    const Config config(module);
    const MachineSettings &machine = config.machine;
    setLimits(machine);

    // The device needs these, in its own memory or in the one that both share.
    Checked device = Checked(workspace) + constants;
    for (auto storage : module.getOps<StorageOp>())
      device += residentBytes(storage, Space::device);
    countUsed();
    for (Space space : {Space::device, Space::host})
      if (!arenaOf(space).fits() && failed(shareSlots(space)))
        return signalPassFailure();
    const SmallVector<SlotPool *> pools = findPools();
    for (SlotPool *pool : pools) {
      pool->slots = pool->peak;
      for (SlotNeed *need : pool->needs)
        pool->lookahead = std::max(pool->lookahead, wishedLookahead(*need, config.plan.prefetch));
    }
    giveAll(pools);
    // One more slot to each in turn, while memory lasts.
    for (bool given = true; given;) {
      given = false;
      for (SlotPool *pool : pools) {
        Arena &arena = arenaOf(pool->space());
        if (pool->lookahead == 0 || !arena.takes(pool->slotBytes()))
          continue;
        --pool->lookahead;
        ++pool->slots;
        arena.used += pool->slotBytes();
        given = true;
      }
    }
    setPools(module);
    // Each is at most kMostBytes.
    const int64_t total = (arenas[0].used + arenas[1].used).value_or(-1);
    setArenas(module, total, (separate ? arenas[0].used : device).value_or(-1));
    remark::analysis(module.getLoc(),
                     remark::RemarkOpts::name("assign-buffers").category("boa-storage"))
        << "arena of " << remark::metric("bytes", total);
  }

  /// Gives all wishes at once, where memory lasts: they may be many.
  void giveAll(ArrayRef<SlotPool *> pools) {
    Checked wished[2];
    for (SlotPool *pool : pools)
      wished[&arenaOf(pool->space()) - arenas] += Checked(pool->lookahead) * pool->slotBytes();
    if (!arenas[0].takes(wished[0]) || !arenas[1].takes(wished[1]))
      return;
    for (SlotPool *pool : pools) {
      arenaOf(pool->space()).used += Checked(pool->lookahead) * pool->slotBytes();
      pool->slots += std::exchange(pool->lookahead, 0);
    }
  }

  /// Lets pools share slots until the contents of a space fit. Costs overlap.
  LogicalResult shareSlots(Space space) {
    auto fits = [&] {
      countUsed();
      return arenaOf(space).fits();
    };
    return needs.shareUntil(space, fits) ? success() : refuse(space);
  }

  /// The pools in the order of the first storage of each.
  SmallVector<SlotPool *> findPools() {
    llvm::SetVector<SlotPool *> pools;
    for (auto storage : getOperation().getOps<StorageOp>())
      for (SlotNeed *need : needs.of(storage))
        pools.insert(need->pool);
    return pools.takeVector();
  }

  /// Counts homes, the needs of kernels on the device, and the slots that are live at once.
  void countUsed() {
    for (Arena &arena : arenas)
      arena.used = 0;
    arenaOf(Space::device).used += Checked(workspace) + constants;
    for (Space space : {Space::device, Space::host})
      for (auto storage : getOperation().getOps<StorageOp>())
        arenaOf(space).used += residentBytes(storage, space);
    for (SlotPool *pool : findPools())
      arenaOf(pool->space()).used += Checked(pool->peak) * pool->slotBytes();
  }

  void setPools(ModuleOp module) {
    int64_t shared = 0;
    for (SlotPool *pool : findPools())
      pool->shared = pool->needs.size() > 1 ? ++shared : 0;
    for (auto storage : module.getOps<StorageOp>()) {
      SmallVector<Attribute> pools;
      for (SlotNeed *need : needs.of(storage))
        pools.push_back(PoolAttr::get(module.getContext(), need->space, need->pool->slots,
                                      need->chunks, need->pool->shared));
      if (pools.empty())
        storage.removePoolsAttr();
      else
        storage.setPoolsAttr(ArrayAttr::get(module.getContext(), pools));
    }
  }

  /// Describes the entries that live in a memory: `24 entries x 8 MiB = 192 MiB`, or `12 of 24
  /// entries = 96 MiB`.
  std::string describeEntries(StorageOp storage, Space space, int64_t bytes) {
    int64_t entries = storage.getEntryCount(), there = 0;
    for (const StorageOp::EntryRange &range : storage.getEntryRanges())
      if (llvm::any_of(memory->getPieces({storage, range.first, 0, int64_t(storage.getChunks())}),
                       [&](const Memory::Piece &piece) { return piece.space == space; }))
        there += range.count;
    if (there == entries && storage.getEntryRanges().size() == 1)
      return llvm::formatv("{0} entries x {1} = {2}", entries, inBytes(bytes / entries),
                           inBytes(bytes));
    return llvm::formatv("{0} of {1} entries = {2}", there, entries, inBytes(bytes));
  }

  LogicalResult refuse(Space space) {
    const Arena &arena = arenaOf(space);
    std::string lines;
    auto line = [&](const Twine &name, const Twine &what) {
      lines += llvm::formatv("\n    {0,-28} {1}", name.str(), what.str());
    };
    auto isIn = [&](Space other) { return !separate || other == space; };
    for (auto storage : getOperation().getOps<StorageOp>()) {
      std::string slots;
      Checked bytes = 0;
      llvm::SmallDenseSet<Operation *> sharers;
      for (SlotNeed *need : needs.of(storage)) {
        const SlotPool &pool = *need->pool;
        if (!isIn(need->space))
          continue;
        if (pool.needs.front() != need) // its slots are in the line of the first
          continue;
        if (pool.needs.size() > 1)
          sharers.insert_range(
              llvm::map_range(pool.needs, [](SlotNeed *of) { return of->storage.getOperation(); }));
        slots += llvm::formatv("{0}{1} slots x {2}", slots.empty() ? "" : " + ", pool.peak,
                               inBytes(pool.slotBytes()));
        bytes += Checked(pool.peak) * pool.slotBytes();
      }
      if (!slots.empty())
        line(storage.getSymName(),
             slots + " = " + inBytes(bytes) +
                 (sharers.size() > 1 ? ", shared by " + std::to_string(sharers.size()) + " storages"
                                     : std::string()));
    }
    for (auto storage : getOperation().getOps<StorageOp>())
      for (Space other : {Space::device, Space::host})
        if (int64_t bytes = isIn(other) ? residentBytes(storage, other) : 0)
          line(storage.getSymName(), describeEntries(storage, other, bytes));
    if (isIn(Space::device))
      line("kernel workspace", inBytes(workspace - attentionScratch));
    if (isIn(Space::device) && attentionScratch > 0)
      line("scratch for cuDNN", inBytes(attentionScratch));
    if (isIn(Space::device) && constants > 0)
      line("constants of kernels", inBytes(constants));
    line("total", inBytes(arena.used));
    line("given", arena.given);
    MemoryNeed need;
    need.bytes = arena.used.value_or(INT64_MAX);
    if (separate)
      need.space = space;
    need.text = "it needs " + inBytes(arena.used) +
                (separate ? " of " + stringifySpace(space).str() + " memory" : "") +
                (arena.limit.AtMost(0) ? " but no machine has more than " + inBytes(kMostBytes)
                                       : " but the machine has " + inBytes(arena.limit));
    InFlightDiagnostic error = getOperation().emitError();
    error << (findEntryPoint(getOperation(), EntryPoint::step) ? "the training step"
                                                               : "the program")
          << " does not fit the memory given: " << need.text << lines;
    need.attachTo(*error.getUnderlyingDiagnostic(), &getContext());
    return error;
  }

  std::optional<Memory> memory;
  bool separate = false;
  SlotPools needs;
  int64_t workspace = 0, constants = 0; // of kernels
  int64_t attentionScratch = 0;         // of the workspace, for cuDNN alone
  Arena arenas[2];                      // device and host; the first alone where they are one
};

} // namespace
} // namespace boa
