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
#include "passes/Config.h"
#include "passes/Passes.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_INSERTOFFLOAD
#include "passes/Passes.h.inc"

namespace {

/// Which clause of `place` decides the tier of a role; empty: always memory.
StringRef placeOf(StringRef role) {
  return llvm::StringSwitch<StringRef>(role)
      .Cases({"master", "momentum", "variance"}, "optimizer")
      .Cases({"weights", "gradients", "checkpoints", "boundary_gradients", "saved"}, role)
      .Default("");
}

/// What an update changes of a group, by the first part of the storage's name.
constexpr StringLiteral kTrainedParts[] = {"weights", "low", "momentum", "variance"};

class Inserter {
public:
  Inserter(ModuleOp module, StepOp step) : module(module), step(step), builder(step) {}

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
      if (failed(checkDeclared(update, "gradients", update.getGroup())) ||
          failed(checkDeclared(update, "weights", update.getGroup())))
        return failure();
      insert(update);
    }
    for (GradientNormOp norm : norms) {
      if (failed(checkDeclared(norm, "gradients", norm.getGroup())))
        return failure();
      insert(norm);
    }
    return checkNothingLeft();
  }

private:
  BufferType bufferType(StringRef storage) {
    return BufferType::get(step.getContext(),
                           module.lookupSymbol<StorageOp>(storage).getEntryType());
  }
  Value prefetch(StringRef storage, ValueRange indices, Value chunk = {}, Value zero = {}) {
    auto op = PrefetchOp::create(builder, loc, TokenType::get(step.getContext()), storage, indices,
                                 chunk, chunk ? 1 : 0, zero);
    return AwaitOp::create(builder, loc, bufferType(storage), op);
  }
  void offload(Value buffer, StringRef storage, ValueRange indices, Value chunk = {}) {
    OffloadOp::create(builder, loc, TokenType::get(step.getContext()), buffer, storage, indices,
                      chunk, chunk ? 1 : 0);
  }
  void release(Value buffer) { ReleaseOp::create(builder, loc, buffer, Value()); }

  /// reads; launch; offload of what it wrote; release of all.
  LogicalResult insert(CallOp call) {
    builder.setInsertionPoint(call);
    loc = call.getLoc();
    SmallVector<Value> reads, updates, writes;
    for (Value input : call.getInputs()) {
      auto read = input.getDefiningOp<ReadOp>();
      if (!read)
        return call.emitOpError("expected operands that were read from storage");
      reads.push_back(prefetch(read.getStorage(), read.getIndices()));
    }
    SmallVector<std::pair<Value, Operation *>> stores;
    for (Value output : call.getOutputs()) {
      if (!output.hasOneUse())
        return call.emitOpError("expected each result to be stored exactly once");
      Operation *user = *output.user_begin();
      if (user->getBlock() != call->getBlock())
        return call.emitOpError("expected each result to be stored beside the call");
      for (auto [buffer, other] : stores)
        if (isSameEntry(user, other))
          return call.emitOpError("stores two results in one entry of @") << storageOf(user);
      if (auto write = dyn_cast<WriteOp>(user)) {
        writes.push_back(CreateOp::create(builder, loc, bufferType(write.getStorage()),
                                          write.getStorage(), movedUp(write.getIndices(), call),
                                          Value(), 0));
        stores.push_back({writes.back(), user});
      } else if (auto accumulate = dyn_cast<AccumulateOp>(user)) {
        updates.push_back(prefetch(accumulate.getStorage(), movedUp(accumulate.getIndices(), call),
                                   {}, movedUp({accumulate.getInitial()}, call).front()));
        stores.push_back({updates.back(), user});
      } else {
        return call.emitOpError("expected each result to be stored exactly once");
      }
    }
    LaunchOp::create(builder, loc, call.getCallee(), reads, updates, writes);
    for (auto [buffer, user] : stores) {
      loc = user->getLoc();
      if (auto write = dyn_cast<WriteOp>(user))
        offload(buffer, write.getStorage(), movedUp(write.getIndices(), call));
      else if (auto accumulate = cast<AccumulateOp>(user))
        offload(buffer, accumulate.getStorage(), movedUp(accumulate.getIndices(), call));
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

  /// The same indices, computed before the call rather than after it.
  SmallVector<Value> movedUp(ValueRange indices, CallOp call) {
    for (Value index : indices)
      if (Operation *def = index.getDefiningOp();
          def && def->getBlock() == call->getBlock() && call->isBeforeInBlock(def))
        moveToStart(def);
    return SmallVector<Value>(indices);
  }
  /// With what it is computed from.
  static void moveToStart(Operation *op) {
    op->moveBefore(op->getBlock(), op->getBlock()->begin());
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == op->getBlock())
        moveToStart(def);
  }

  /// Reads move down to the call that takes them, and its writes up to it: nothing
  /// on the way may touch their storage.
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

  static OperandRange indicesOf(Operation *store) {
    if (auto write = dyn_cast<WriteOp>(store))
      return write.getIndices();
    return cast<AccumulateOp>(store).getIndices();
  }
  static bool isSameEntry(Operation *a, Operation *b) {
    return isa<WriteOp, AccumulateOp>(a) && isa<WriteOp, AccumulateOp>(b) &&
           storageOf(a) == storageOf(b) &&
           llvm::equal(indicesOf(a), indicesOf(b), [](Value x, Value y) {
             IntegerAttr left, right;
             return x == y || (matchPattern(x, m_Constant(&left)) &&
                               matchPattern(y, m_Constant(&right)) && left == right);
           });
  }
  static StringRef storageOf(Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op))
      return read.getStorage();
    if (auto write = dyn_cast<WriteOp>(op))
      return write.getStorage();
    if (auto accumulate = dyn_cast<AccumulateOp>(op))
      return accumulate.getStorage();
    return {};
  }

  /// Whether an update or a norm touches a storage of its group.
  static bool touchesGroup(Operation *op, StringRef storage) {
    if (auto update = dyn_cast<OptimizerUpdateOp>(op))
      return llvm::any_of(kTrainedParts,
                          [&](StringRef part) {
                            return storage == getStorageName(part, update.getGroup());
                          }) ||
             storage == getStorageName("gradients", update.getGroup());
    if (auto norm = dyn_cast<GradientNormOp>(op))
      return storage == getStorageName("gradients", norm.getGroup());
    return false;
  }

  /// An access to `storage` in program order between two ops, of which the second
  /// may be in a loop after the first; only those that write if `writes`.
  static Operation *findBetween(Operation *from, Operation *to, StringRef storage, bool writes) {
    Operation *found = nullptr;
    auto look = [&](Operation *op) {
      if (op == to || op == from || found)
        return;
      // The other operands and results of the same call move with it.
      auto feeds = [](Operation *def, Operation *user) {
        return llvm::any_of(user->getOperands(),
                            [&](Value operand) { return operand.getDefiningOp() == def; });
      };
      bool same = isa<CallOp>(to) ? feeds(op, to) : feeds(from, op);
      bool touches = storageOf(op) == storage && !(writes && isa<ReadOp>(op));
      if (!same && (touches || touchesGroup(op, storage)))
        found = op;
    };
    Block *block = from->getBlock();
    Operation *end = block->findAncestorOpInBlock(*to);
    for (Operation *op = from->getNextNode(); op && op != end; op = op->getNextNode())
      op->walk(look);
    // In a loop around `to` everything comes before it, in an earlier iteration.
    if (end && end != to)
      end->walk(look);
    return found;
  }

  /// What an update needs must be declared.
  LogicalResult checkDeclared(Operation *op, StringRef role, StringRef group) {
    std::string name = getStorageName(role, group);
    if (module.lookupSymbol<StorageOp>(name))
      return success();
    return op->emitOpError("expected a storage @") << name;
  }

  /// Every value was moved: what is left has no kernel to go with.
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

  /// A loop over chunks that brings each one's state, updates it and writes it
  /// back.
  void insert(OptimizerUpdateOp update) {
    builder.setInsertionPoint(update);
    loc = update.getLoc();
    auto chunks = LoopOp::create(builder, loc, "chunk", update.getFirst(), update.getLast());
    // Nothing to bring where nothing is pending.
    if (update.getStep() == step.getPending())
      chunks.getGuardMutable().assign(step.getPending());
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(chunks.getBlock());
    Value chunk = chunks.getInductionVar(), layer = update.getLayer();
    std::string group = update.getGroup().str();
    Value gradient = prefetch(getStorageName("gradients", group), layer, chunk);
    SmallVector<std::pair<std::string, Value>> state;
    auto bring = [&](StringRef part) -> Value {
      std::string name = getStorageName(part, group);
      if (!module.lookupSymbol<StorageOp>(name))
        return {};
      state.push_back({name, prefetch(name, layer, chunk)});
      return state.back().second;
    };
    SmallVector<Value> parts;
    for (StringRef part : kTrainedParts)
      parts.push_back(bring(part));
    UpdateOp::create(builder, loc, group, chunk, update.getStep(), /*weights=*/parts[0], gradient,
                     /*low=*/parts[1], /*momentum=*/parts[2], /*variance=*/parts[3]);
    for (auto &[name, buffer] : state)
      offload(buffer, name, layer, chunk);
    release(gradient);
    for (auto &[name, buffer] : state)
      release(buffer);
    update.erase();
  }

  void insert(GradientNormOp norm) {
    builder.setInsertionPoint(norm);
    loc = norm.getLoc();
    Value gradient = prefetch(getStorageName("gradients", norm.getGroup()), norm.getLayer());
    NormOp::create(builder, loc, norm.getGroup(), gradient);
    release(gradient);
    norm.erase();
  }

  ModuleOp module;
  StepOp step;
  OpBuilder builder;
  Location loc = builder.getUnknownLoc();
};

struct InsertOffload : impl::InsertOffloadBase<InsertOffload> {
  using InsertOffloadBase::InsertOffloadBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Config place = Config::train(module).section("place");
    for (auto storage : module.getOps<StorageOp>())
      if (StringRef clause = placeOf(storage.getRole()); !clause.empty())
        if (auto tier = symbolizeTier(place.string(clause, "device")))
          storage.setTier(*tier);
    for (StepOp step : llvm::make_early_inc_range(module.getOps<StepOp>()))
      if (failed(Inserter(module, step).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace boa
