//===- ConvertBoaToRuntime.cpp - --convert-boa-to-runtime -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each entry point becomes a function @boa_NAME(context, step, pending) in scf
// and func that calls what runtime/abi/calls.def lists. Loops stay loops, so code size and compile
// time do not depend on depth or on the number of micro-batches. Storages,
// groups and kernels become numbers: their positions in the descriptor
// (passes/target/runtime/Descriptor.h), in the order in which they stand in the module.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/kernels/CodeBuilder.h"
#include "passes/kernels/EmitKernels.h"
#include "passes/model/CanonicalText.h"
#include "passes/target/runtime/Descriptor.h"
#include "runtime/abi/abi.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_CONVERTBOATORUNTIME
#include "passes/Passes.h.inc"

namespace {

/// The position of each symbol among those of its kind, in the module's order: the descriptor's.
llvm::StringMap<int64_t> numberSymbols(ModuleOp module) {
  llvm::StringMap<int64_t> numbers;
  llvm::DenseMap<OperationName, int64_t> next;
  for (auto symbol : module.getOps<SymbolOpInterface>())
    numbers[symbol.getName()] = next[symbol->getName()]++;
  return numbers;
}

class EntryLowering : CodeBuilder {
public:
  EntryLowering(ModuleOp module, StepOp entry)
      : CodeBuilder(OpBuilder(entry), entry.getLoc()), module(module), entry(entry),
        numbers(numberSymbols(module)) {}

  void run() {
    Type i64 = getI64Type();
    auto func = func::FuncOp::create(*this, ("boa_" + entry.getSymName()).str(),
                                     getFunctionType({pointer(), i64, i64}, {}));
    Block *block = func.addEntryBlock();
    setInsertionPointToEnd(block);
    context = block->getArgument(0);
    buffers = LLVM::AllocaOp::create(*this, pointer(), i64, integer(maxBuffers(), 64), 8);
    map.map(entry.getStep(), toIndex(block->getArgument(1)));
    map.map(entry.getPending(), toIndex(block->getArgument(2)));
    lower(*entry.getBlock());
    func::ReturnOp::create(*this);
    entry.erase();
  }

private:
  int64_t maxBuffers() {
    int64_t most = 1;
    entry.walk(
        [&](LaunchOp launch) { most = std::max<int64_t>(most, buffersOf(launch.getKernel())); });
    entry.walk([&](UpdateOp update) { most = std::max<int64_t>(most, update.getStates().size()); });
    return most;
  }

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  Value numberOf(StringRef symbol) { return integer(numbers.lookup(symbol)); }
  /// A condition or an index of the program; 0 if it is null.
  Value toI32(Value value) {
    if (!value)
      return integer(0);
    if (value.getType().isInteger(1))
      return make<arith::ExtUIOp>(getI32Type(), get(value));
    return toInteger(get(value));
  }
  /// The value that stands for one of the program; the null buffer if it is null.
  Value get(Value value) { return value ? map.lookup(value) : integer(0, 64); }

  /// The number of an entry in row-major order.
  Value entryOf(StringRef name, OperandRange indices) {
    Value number;
    for (auto [at, dim] : llvm::zip(indices, module.lookupSymbol<StorageOp>(name).getDims()))
      number = number ? add(mul(number, dim), get(at)) : get(at);
    return toInteger(number, 64);
  }
  /// The arguments storage, entry, first chunk and number of chunks.
  template <typename OpTy> Values range(OpTy op) {
    auto storage = module.lookupSymbol<StorageOp>(op.getStorage());
    Value first = toI32(op.getFirst());
    int64_t count = op.isWholeEntry() ? int64_t(storage.getChunks()) : int64_t(op.getCount());
    return {numberOf(op.getStorage()), entryOf(op.getStorage(), op.getIndices()), first,
            integer(count)};
  }
  Value spaceOf(Value buffer) {
    const Space space = cast<BufferType>(buffer.getType()).getSpace();
    return integer(space == Space::host ? BOA_HOST : BOA_DEVICE);
  }

  //===--------------------------------------------------------------------===//
  // Calls
  //===--------------------------------------------------------------------===//

  Value call(StringRef name, ArrayRef<Value> operands, Type result = {}) {
    Values all{context};
    llvm::append_range(all, operands);
    TypeRange results = result ? TypeRange(result) : TypeRange();
    if (!module.lookupSymbol(name)) {
      OpBuilder first(module.getBodyRegion());
      auto func = func::FuncOp::create(first, module.getLoc(), name,
                                       getFunctionType(ValueRange(all).getTypes(), results));
      func.setPrivate();
    }
    auto op = func::CallOp::create(*this, name, results, all);
    return result ? op.getResult(0) : Value();
  }

  void lower(Block &block) {
    for (Operation &op : block)
      lower(&op);
  }

  void lower(Operation *op) {
    setLoc(op->getLoc());
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](LoopOp loop) { lowerLoop(loop); })
        .Case([&](ShiftOp shift) {
          map.map(shift.getResult(), add(get(shift.getIndex()), int64_t(shift.getBy())));
        })
        .Case([&](AtFirstOp at) { map.map(at.getResult(), ends.lookup(at.getIndex()).first); })
        .Case([&](AtLastOp at) { map.map(at.getResult(), ends.lookup(at.getIndex()).second); })
        .Case([&](PrefetchOp prefetch) {
          Values operands = range(prefetch);
          operands.append({spaceOf(prefetch.getBuffer()), toI32(prefetch.getZero())});
          map.map(prefetch.getBuffer(), call("boa_rt_prefetch", operands, getI64Type()));
        })
        .Case([&](CreateOp create) {
          Values operands = range(create);
          operands.push_back(spaceOf(create.getBuffer()));
          map.map(create.getBuffer(), call("boa_rt_create", operands, getI64Type()));
        })
        .Case([&](OffloadOp offload) {
          Values operands{get(offload.getBuffer())};
          llvm::append_range(operands, range(offload));
          call("boa_rt_offload", operands);
        })
        .Case([&](CopyOp copy) {
          auto create = copy.getTo().getDefiningOp<CreateOp>();
          Values operands{get(copy.getFrom()), get(copy.getTo())};
          llvm::append_range(operands, ArrayRef(range(create)).take_back(2));
          call("boa_rt_copy", operands);
        })
        .Case([&](ReleaseOp release) {
          call("boa_rt_release", {get(release.getBuffer()), toI32(release.getRetain())});
        })
        .Case([&](LaunchOp launch) {
          const int64_t count = buffersOf(launch.getKernel());
          storeBuffers(launch->getOperands(), count);
          call("boa_rt_launch", {numberOf(launch.getKernel()), integer(count), buffers});
        })
        .Case([&](UpdateOp update) {
          const int64_t count = update.getStates().size();
          storeBuffers(update.getStates(), count);
          call("boa_rt_update",
               {numberOf(update.getGroup()), toI32(update.getChunk()),
                toInteger(get(update.getStep()), 64), get(update.getWeights()),
                get(update.getLow()), get(update.getGradient()), integer(count), buffers});
        })
        .Case([&](FinishNormOp norm) {
          call("boa_rt_norm_done", toInteger(get(norm.getStep()), 64));
        })
        .Case([&](AccessOpInterface access) { lowerByName(access); })
        .Default([&](Operation *other) { clone(*other, map); });
  }

  /// Calls boa_rt_NAME for boa.NAME, with the numbers of what it names, then its operands.
  void lowerByName(Operation *op) {
    Values operands;
    for (StringAttr name : op->getName().getAttributeNames())
      if (auto symbol = op->getAttrOfType<FlatSymbolRefAttr>(name))
        operands.push_back(numberOf(symbol.getValue()));
    for (Value operand : op->getOperands())
      operands.push_back(operand.getType().isIndex() ? toInteger(get(operand), 64) : get(operand));
    call(("boa_rt_" + op->getName().stripDialect()).str(), operands);
  }

  /// The number of buffers that the runtime takes for a kernel: the prepared one may be null.
  int64_t buffersOf(StringRef kernel) {
    return int64_t(module.lookupSymbol<KernelOp>(kernel).getBuffers().size());
  }

  /// Stores the list that a call takes.
  void storeBuffers(ValueRange list, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      storeAt(get(i < int64_t(list.size()) ? list[i] : Value()), buffers, int32_t(i));
  }

  /// Counts up from 0; the induction variable is lower + i, or upper - 1 - i.
  void lowerLoop(LoopOp op) {
    Value some;
    if (Value guard = op.getGuard())
      some = compare(Predicate::ne, get(guard), index(0));
    when(some, [&] {
      loop(index(0), index(op.getTripCount()), 1, {}, [&](Value i, Values &) {
        auto up = [&] { return add(i, op.getLower()); };
        auto down = [&] { return sub(index(op.getUpper() - 1), i); };
        Value iv;
        switch (op.getOrder()) {
        case LoopOrder::forward:
          iv = up();
          break;
        case LoopOrder::reverse:
          iv = down();
          break;
        case LoopOrder::snake: {
          Value sum = add(get(op.getParity()), int64_t(op.getPhase()));
          Value odd = make<arith::TruncIOp>(getI1Type(), toInteger(sum, 64));
          iv = select(odd, down(), up());
          break;
        }
        }
        map.map(op.getInductionVar(), iv);
        Value isFirst = isZero(i);
        ends[op.getInductionVar()] = {isFirst,
                                      compare(Predicate::eq, i, index(op.getTripCount() - 1))};
        lower(*op.getBlock());
      });
    });
  }

  ModuleOp module;
  StepOp entry;
  llvm::StringMap<int64_t> numbers;
  Value context, buffers;
  IRMapping map;
  llvm::DenseMap<Value, std::pair<Value, Value>> ends; // at first, at last
};

/// Checks that names are known. Numbers stand for names from here on, and an unknown name would be
/// number 0.
LogicalResult checkNames(ModuleOp module) {
  WalkResult walked = module.walk([&](Operation *op) -> WalkResult {
    if (auto launch = dyn_cast<LaunchOp>(op);
        launch && !module.lookupSymbol<KernelOp>(launch.getKernel()))
      return launch.emitOpError("expected a kernel named @") << launch.getKernel();
    if (auto kernel = dyn_cast<KernelOp>(op);
        kernel && !llvm::all_of(kernel.getArgumentTypes(), LLVM::isCompatibleType))
      return kernel.emitOpError("expected a body in the LLVM dialect");
    if (auto access = dyn_cast<AccessOpInterface>(op); access && access.getQueue() == Queue::none)
      return op->emitOpError(
          "belongs to the step phase: expected the output of --boa-insert-offload");
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

struct ConvertBoaToRuntime : impl::ConvertBoaToRuntimeBase<ConvertBoaToRuntime> {
  using ConvertBoaToRuntimeBase::ConvertBoaToRuntimeBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkNames(module)))
      return signalPassFailure();
    std::string descriptor = describeProgram(module);
    module->removeAttr(kCanonicalTextAttr);
    CodeBuilder b(OpBuilder::atBlockEnd(module.getBody()), module.getLoc());
    SmallVector<StringRef> kernels;
    for (auto kernel : module.getOps<KernelOp>())
      kernels.push_back(kernel.getSymName());
    b.addAddresses("boa_kernel_table", LLVM::Linkage::External, kernels);
    if (module.lookupSymbol(kUpdateFunction)) // the program trains
      b.addAddresses("boa_optimizer", LLVM::Linkage::External, {kPrepareFunction, kUpdateFunction});
    for (StepOp entry : llvm::make_early_inc_range(module.getOps<StepOp>()))
      EntryLowering(module, entry).run();
    emitKernels(module);
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa<ConfigOp, StorageOp, GroupOp, OptimizerOp>(op))
        op.erase();
    b.addText("boa_program", descriptor + Twine('\0'), LLVM::Linkage::External);
  }
};

} // namespace
} // namespace boa
