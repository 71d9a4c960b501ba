//===- InsertOffload.cpp - --boa-insert-offload ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From values to buffers, one use at a time, with no attempt to be clever: what
// a later pass removes it can remove because this form is correct. Assumes the
// step phase. Refuses a call whose result is not stored, and a value that is read
// or written too far from its call to be moved there.
//
//===----------------------------------------------------------------------===//
#include "dialect/CallLayout.h"
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/analysis/TranslationValidation.h"
#include "passes/storage/HomeAssignment.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_INSERTOFFLOAD
#include "passes/Passes.h.inc"

namespace {

class Inserter {
public:
  Inserter(ModuleOp module, StepOp step)
      : module(module), step(step), updateSpace(Config(module).updateSpace()), builder(step) {}

  LogicalResult run() {
    SmallVector<CallOp> calls;
    SmallVector<OptimizerUpdateOp> optimizerUpdates;
    SmallVector<GradientNormOp> norms;
    step.walk([&](CallOp op) { calls.push_back(op); });
    step.walk([&](OptimizerUpdateOp op) { optimizerUpdates.push_back(op); });
    step.walk([&](GradientNormOp op) { norms.push_back(op); });
    for (CallOp call : calls)
      if (failed(checkMoves(call)))
        return failure();
    for (CallOp call : calls)
      if (failed(insert(call)))
        return failure();
    for (OptimizerUpdateOp update : optimizerUpdates) {
      if (failed(checkDeclared(update, Role::gradients, update.getGroup())) ||
          failed(checkDeclared(update, Role::weights, update.getGroup())))
        return failure();
      insert(update);
    }
    for (GradientNormOp norm : norms) {
      if (failed(checkDeclared(norm, Role::gradients, norm.getGroup())))
        return failure();
      insert(norm);
    }
    return checkNothingLeft();
  }

private:
  BufferType bufferType(StringRef storage, Space space) {
    return BufferType::get(step.getContext(),
                           module.lookupSymbol<StorageOp>(storage).getEntryType(), space);
  }
  Value prefetch(Space space, StringRef storage, ValueRange indices, Value chunk = {},
                 Value zero = {}) {
    return PrefetchOp::create(builder, loc, bufferType(storage, space), storage, indices, chunk,
                              chunk ? 1 : 0, zero);
  }
  void offload(Value buffer, StringRef storage, ValueRange indices, Value chunk = {}) {
    OffloadOp::create(builder, loc, buffer, storage, indices, chunk, chunk ? 1 : 0);
  }
  void release(Value buffer) { ReleaseOp::create(builder, loc, buffer, Value()); }

  /// Replaces a call by its reads, a launch, an offload of its results, and the release of all.
  LogicalResult insert(CallOp call) {
    builder.setInsertionPoint(call);
    loc = call.getLoc();
    SmallVector<Value> reads, updates, writes;
    for (Value input : call.getInputs()) {
      auto read = input.getDefiningOp<ReadOp>();
      if (!read)
        return call.emitOpError("expected operands that were read from storage");
      reads.push_back(prefetch(Space::device, read.getStorage(), read.getIndices()));
    }
    SmallVector<std::pair<Value, Operation *>> stores;
    for (Value output : call.getOutputs()) {
      if (!output.hasOneUse())
        return call.emitOpError("expected each result to be stored exactly once");
      Operation *user = *output.user_begin();
      if (user->getBlock() != call->getBlock())
        return call.emitOpError("expected each result to be stored beside the call");
      if (!isa<WriteOp, AccumulateOp>(user))
        return call.emitOpError("expected each result to be stored exactly once");
      const StringRef storage = storageOf(user);
      for (auto [buffer, other] : stores)
        if (isSameEntry(user, other))
          return call.emitOpError("stores two results in one entry of @") << storage;
      const StorageAccess stored = cast<AccessOpInterface>(user).getAccesses()[0];
      const SmallVector<Value> indices = hoistBefore(stored.indices, call);
      SmallVector<Value> &buffers = stored.mayRead() ? updates : writes;
      if (stored.mayRead())
        buffers.push_back(prefetch(Space::device, storage, indices, {},
                                   hoistBefore({stored.fresh}, call).front()));
      else
        buffers.push_back(CreateOp::create(builder, loc, bufferType(storage, Space::device),
                                           storage, indices, Value(), 0));
      stores.push_back({buffers.back(), user});
    }
    LaunchOp::create(builder, loc, call.getCallee(), reads, updates, writes,
                     /*prepared=*/Value());
    for (auto [buffer, user] : stores) {
      loc = user->getLoc();
      offload(buffer, storageOf(user), cast<AccessOpInterface>(user).getAccesses()[0].indices);
      user->erase();
    }
    for (ArrayRef<Value> buffers :
         {ArrayRef<Value>(reads), ArrayRef<Value>(updates), ArrayRef<Value>(writes)})
      for (Value buffer : buffers)
        release(buffer);
    SmallVector<Value> inputs(call.getInputs());
    call.erase();
    for (Value input : inputs)
      if (input.use_empty())
        input.getDefiningOp()->erase();
    return success();
  }

  /// Moves the computation of indices before the call. Returns the indices.
  SmallVector<Value> hoistBefore(ValueRange indices, CallOp call) {
    for (Value index : indices)
      if (Operation *def = index.getDefiningOp();
          def && def->getBlock() == call->getBlock() && call->isBeforeInBlock(def))
        moveToStart(def);
    return SmallVector<Value>(indices);
  }
  /// Moves an op, and the ops that compute its operands, to the start of its block.
  static void moveToStart(Operation *op) {
    op->moveBefore(op->getBlock(), op->getBlock()->begin());
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == op->getBlock())
        moveToStart(def);
  }

  /// Checks that moves are legal. Reads move down to the call that takes them, and its writes up to
  /// it: nothing on the way may touch their storage.
  LogicalResult checkMoves(CallOp call) {
    for (Value input : call.getInputs())
      if (auto read = input.getDefiningOp<ReadOp>())
        if (Operation *write = findBetween(read, call, read.getStorage(), /*writes=*/true)) {
          InFlightDiagnostic diag = call.emitOpError("takes a value of @")
                                    << read.getStorage()
                                    << " that is overwritten before the call: expected its read "
                                       "beside it";
          diag.attachNote(read.getLoc()) << "it is read here";
          diag.attachNote(write->getLoc()) << "and overwritten here";
          return diag;
        }
    for (Operation *user : call->getUsers()) {
      StringRef storage = storageOf(user);
      Operation *access = findBetween(call, user, storage, /*writes=*/false);
      if (!access && !storage.empty())
        access = findReaderBetween(call, user);
      if (storage.empty() || !access)
        continue;
      InFlightDiagnostic diag = call.emitOpError("has a result that is written to @")
                                << storage << " only after another access to it: expected its "
                                << "write beside it";
      diag.attachNote(access->getLoc()) << "the other access is here";
      diag.attachNote(user->getLoc()) << "it is written here";
      return diag;
    }
    return success();
  }

  static bool isSameEntry(Operation *a, Operation *b) {
    StorageAccess x = cast<AccessOpInterface>(a).getAccesses()[0];
    StorageAccess y = cast<AccessOpInterface>(b).getAccesses()[0];
    return x.storage == y.storage && llvm::equal(x.indices, y.indices, isSameIndex);
  }
  /// The storage that an op of the step phase reads or writes; empty for other ops.
  static StringRef storageOf(Operation *op) {
    if (!isa<ReadOp, WriteOp, AccumulateOp>(op))
      return {};
    return cast<AccessOpInterface>(op).getAccesses()[0].storage.getValue();
  }

  /// Finds an access to `storage` that runs between two ops. The second may be in a loop after the
  /// first. With `writes` it looks only for writes.
  static Operation *findBetween(Operation *from, Operation *to, StringRef storage, bool writes) {
    Operation *found = nullptr;
    auto visit = [&](Operation *op) {
      if (op == to || op == from || found)
        return;
      // The other operands and results of the same call move with it.
      auto feeds = [](Operation *def, Operation *user) {
        return llvm::any_of(user->getOperands(),
                            [&](Value operand) { return operand.getDefiningOp() == def; });
      };
      bool same = isa<CallOp>(to) ? feeds(op, to) : feeds(from, op);
      if (!same && touches(op, storage, writes))
        found = op;
    };
    Block *block = from->getBlock();
    Operation *end = block->findAncestorOpInBlock(*to);
    for (Operation *op = from->getNextNode(); op && op != end; op = op->getNextNode())
      op->walk(visit);
    // In a loop around `to` everything comes before it, in an earlier iteration.
    if (end && end != to)
      end->walk(visit);
    return found;
  }

  /// Splits an index into a base and a constant offset. The base is null if the index is constant.
  static std::pair<Value, int64_t> splitOffset(Value index) {
    int64_t by = 0;
    while (auto shift = index.getDefiningOp<ShiftOp>()) {
      by += int64_t(shift.getBy());
      index = shift.getIndex();
    }
    IntegerAttr constant;
    if (matchPattern(index, m_Constant(&constant)))
      return {Value(), by + constant.getInt()};
    return {index, by};
  }

  /// Finds a call between `call` and the store of its result that takes the earlier contents of the
  /// stored entry. That call's read moves down to it, while the store moves up.
  static Operation *findReaderBetween(CallOp call, Operation *store) {
    StorageAccess stored = cast<AccessOpInterface>(store).getAccesses()[0];
    auto mayReadStored = [&](Value input) {
      auto read = input.getDefiningOp<ReadOp>();
      return read && read.getStorageAttr() == stored.storage &&
             llvm::none_of(llvm::zip(read.getIndices(), stored.indices), [](auto indices) {
               auto [a, from] = splitOffset(std::get<0>(indices));
               auto [b, to] = splitOffset(std::get<1>(indices));
               return a == b && from != to;
             });
    };
    Operation *found = nullptr;
    Operation *end = call->getBlock()->findAncestorOpInBlock(*store);
    for (Operation *op = call->getNextNode(); op && op != end; op = op->getNextNode())
      op->walk([&](CallOp other) {
        if (!found && llvm::any_of(other.getInputs(), mayReadStored))
          found = other;
      });
    return found;
  }

  /// Checks that the storages of an update are declared.
  LogicalResult checkDeclared(Operation *op, Role role, StringRef group) {
    StorageOp storage = findStorage(module, role, group);
    if (storage && storage.getRole() == role)
      return success();
    InFlightDiagnostic error = op->emitOpError("expected a storage @")
                               << getStorageName(role, group);
    if (storage)
      error << " of role " << stringifyRole(role);
    return error;
  }

  /// Checks that every value was moved: any other has no kernel to go with.
  LogicalResult checkNothingLeft() {
    WalkResult walked = step.walk([](Operation *op) {
      if (auto read = dyn_cast<ReadOp>(op); read && read->use_empty()) {
        read.erase();
      } else if (!storageOf(op).empty()) {
        op->emitOpError("expected the operand or the result of a boa.call");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  /// Inserts a loop over chunks that brings each one's state, updates it and writes it back.
  void insert(OptimizerUpdateOp update) {
    builder.setInsertionPoint(update);
    loc = update.getLoc();
    auto chunks =
        LoopOp::create(builder, loc, Dimension::chunk, update.getFirst(), update.getLast());
    // Nothing to bring where nothing is pending.
    if (update.getStep() == step.getPending())
      chunks.getGuardMutable().assign(step.getPending());
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(chunks.getBlock());
    Value chunk = chunks.getInductionVar(), layer = update.getLayer();
    std::string group = update.getGroup().str();
    Value gradient = prefetch(updateSpace, getStorageName(Role::gradients, group), layer, chunk);
    SmallVector<std::pair<StringRef, Value>> trained;
    Value weights, low;
    SmallVector<Value> states;
    for (StorageOp storage : getTrainedStorages(module, group)) {
      StringRef name = storage.getSymName();
      Value buffer = prefetch(updateSpace, name, layer, chunk);
      trained.push_back({name, buffer});
      if (storage.getRole() == Role::weights)
        weights = buffer;
      else if (storage.getRole() == Role::master)
        low = buffer;
      else
        states.push_back(buffer);
    }
    UpdateOp::create(builder, loc, group, chunk, update.getStep(), weights, gradient, low, states);
    for (auto &[name, buffer] : trained)
      offload(buffer, name, layer, chunk);
    release(gradient);
    for (auto &[name, buffer] : trained)
      release(buffer);
    update.erase();
  }

  void insert(GradientNormOp norm) {
    builder.setInsertionPoint(norm);
    loc = norm.getLoc();
    Value gradient =
        prefetch(updateSpace, getStorageName(Role::gradients, norm.getGroup()), norm.getLayer());
    NormOp::create(builder, loc, norm.getGroup(), gradient);
    release(gradient);
    norm.erase();
  }

  ModuleOp module;
  StepOp step;
  const Space updateSpace; // kernels run on the device, the optimizer where the training says
  OpBuilder builder;
  Location loc = builder.getUnknownLoc();
};

struct InsertOffload : impl::InsertOffloadBase<InsertOffload> {
  using InsertOffloadBase::InsertOffloadBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    assignHomes(module);
    int64_t meaning = getAnalysis<CurrentComputation>().get().hash();
    for (StepOp step : llvm::make_early_inc_range(module.getOps<StepOp>()))
      if (failed(Inserter(module, step).run()))
        return signalPassFailure();
    module->setAttr(kComputesAttr, Builder(module.getContext()).getI64IntegerAttr(meaning));
  }
};

} // namespace
} // namespace boa
