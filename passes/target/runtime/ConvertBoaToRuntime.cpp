//===- ConvertBoaToRuntime.cpp - --convert-boa-to-runtime -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each entry point becomes a function @boa_NAME(context, step, pending) in scf
// and func that calls runtime/abi/abi.h. Loops stay loops, so code size and compile
// time do not depend on depth or on the number of micro-batches. Storages,
// groups and kernels become numbers: their positions in the descriptor
// (passes/target/runtime/Descriptor.h), in the order in which they stand in the module.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/kernels/EmitKernels.h"
#include "passes/model/CanonicalText.h"
#include "passes/target/runtime/Descriptor.h"
#include "runtime/abi/abi.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

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

class EntryLowering {
public:
  EntryLowering(ModuleOp module, StepOp entry)
      : module(module), entry(entry), builder(module.getBodyRegion()),
        numbers(numberSymbols(module)) {}

  void run() {
    builder.setInsertionPoint(entry);
    loc = entry.getLoc();
    Type i64 = builder.getI64Type(), pointer = LLVM::LLVMPointerType::get(builder.getContext());
    auto func = func::FuncOp::create(builder, loc, ("boa_" + entry.getSymName()).str(),
                                     builder.getFunctionType({pointer, i64, i64}, {}));
    Block *block = func.addEntryBlock();
    builder.setInsertionPointToEnd(block);
    context = block->getArgument(0);
    buffers = LLVM::AllocaOp::create(builder, loc, pointer, i64, constant(maxBuffers()), 8);
    map.map(entry.getStep(), toIndex(block->getArgument(1)));
    map.map(entry.getPending(), toIndex(block->getArgument(2)));
    lower(*entry.getBlock());
    func::ReturnOp::create(builder, loc);
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

  Value constant(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 64); }
  Value constant32(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 32); }
  Value constantIndex(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value toIndex(Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  }
  Value toI64(Value index) {
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
  }
  /// A condition or an index of the program; 0 if it is null.
  Value toI32(Value value) {
    if (!value)
      return constant32(0);
    if (value.getType().isInteger(1))
      return arith::ExtUIOp::create(builder, loc, builder.getI32Type(), get(value));
    return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), get(value));
  }
  /// The value that stands for one of the program; the null buffer if it is null.
  Value get(Value value) { return value ? map.lookup(value) : constant(0); }

  /// The number of an entry in row-major order.
  Value entryOf(StringRef name, OperandRange indices) {
    auto storage = module.lookupSymbol<StorageOp>(name);
    Value number = constantIndex(0);
    for (auto [index, dim] : llvm::zip(indices, storage.getDims())) {
      number = arith::MulIOp::create(builder, loc, number, constantIndex(dim));
      number = arith::AddIOp::create(builder, loc, number, get(index));
    }
    return toI64(number);
  }
  /// The arguments storage, entry, first chunk and number of chunks.
  template <typename OpTy> SmallVector<Value> range(OpTy op) {
    auto storage = module.lookupSymbol<StorageOp>(op.getStorage());
    Value first = toI32(op.getFirst());
    int64_t count = op.isWholeEntry() ? int64_t(storage.getChunks()) : int64_t(op.getCount());
    return {constant32(numbers.lookup(op.getStorage())), entryOf(op.getStorage(), op.getIndices()),
            first, constant32(count)};
  }

  static int64_t spaceOf(Value buffer) {
    return cast<BufferType>(buffer.getType()).getSpace() == Space::host ? BOA_HOST : BOA_DEVICE;
  }

  //===--------------------------------------------------------------------===//
  // Calls
  //===--------------------------------------------------------------------===//

  Value call(StringRef name, ArrayRef<Value> operands, Type result = {}) {
    SmallVector<Value> all{context};
    llvm::append_range(all, operands);
    TypeRange results = result ? TypeRange(result) : TypeRange();
    if (!module.lookupSymbol(name)) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(module.getBody());
      auto func =
          func::FuncOp::create(builder, module.getLoc(), name,
                               builder.getFunctionType(ValueRange(all).getTypes(), results));
      func.setPrivate();
    }
    auto op = func::CallOp::create(builder, loc, name, results, all);
    return result ? op.getResult(0) : Value();
  }

  void lower(Block &block) {
    for (Operation &op : block)
      lower(&op);
  }

  void lower(Operation *op) {
    loc = op->getLoc();
    Type i64 = builder.getI64Type();
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](LoopOp loop) { lowerLoop(loop); })
        .Case([&](ShiftOp shift) {
          map.map(shift.getResult(), arith::AddIOp::create(builder, loc, get(shift.getIndex()),
                                                           constantIndex(shift.getBy())));
        })
        .Case([&](AtFirstOp at) { map.map(at.getResult(), ends.lookup(at.getIndex()).first); })
        .Case([&](AtLastOp at) { map.map(at.getResult(), ends.lookup(at.getIndex()).second); })
        .Case([&](PrefetchOp prefetch) {
          SmallVector<Value> operands = range(prefetch);
          operands.push_back(constant32(spaceOf(prefetch.getBuffer())));
          operands.push_back(toI32(prefetch.getZero()));
          map.map(prefetch.getBuffer(), call("boa_rt_prefetch", operands, i64));
        })
        .Case([&](CreateOp create) {
          SmallVector<Value> operands = range(create);
          operands.push_back(constant32(spaceOf(create.getBuffer())));
          map.map(create.getBuffer(), call("boa_rt_create", operands, i64));
        })
        .Case([&](OffloadOp offload) {
          SmallVector<Value> operands{get(offload.getBuffer())};
          llvm::append_range(operands, range(offload));
          call("boa_rt_offload", operands);
        })
        .Case([&](CopyOp copy) {
          auto create = copy.getTo().getDefiningOp<CreateOp>();
          SmallVector<Value> operands{get(copy.getFrom()), get(copy.getTo())};
          llvm::append_range(operands, ArrayRef(range(create)).take_back(2));
          call("boa_rt_copy", operands);
        })
        .Case([&](ReleaseOp release) {
          Value retain = toI32(release.getRetain());
          call("boa_rt_release", {get(release.getBuffer()), retain});
        })
        .Case([&](LaunchOp launch) {
          const int64_t count = buffersOf(launch.getKernel());
          storeBuffers(launch->getOperands(), count);
          call("boa_rt_launch",
               {constant32(numbers.lookup(launch.getKernel())), constant32(count), buffers});
        })
        .Case([&](UpdateOp update) {
          storeBuffers(update.getStates(), update.getStates().size());
          call("boa_rt_update",
               {constant32(numbers.lookup(update.getGroup())), toI32(update.getChunk()),
                toI64(get(update.getStep())), get(update.getWeights()), get(update.getLow()),
                get(update.getGradient()), constant32(update.getStates().size()), buffers});
        })
        .Case([&](FinishNormOp norm) { call("boa_rt_norm_done", toI64(get(norm.getStep()))); })
        .Case([&](AccessOpInterface access) { lowerByName(access); })
        .Default([&](Operation *other) { builder.clone(*other, map); });
  }

  /// Calls boa_rt_NAME for boa.NAME, with the numbers of what it names, then its operands.
  void lowerByName(Operation *op) {
    SmallVector<Value> operands;
    for (StringAttr name : op->getName().getAttributeNames())
      if (auto symbol = op->getAttrOfType<FlatSymbolRefAttr>(name))
        operands.push_back(constant32(numbers.lookup(symbol.getValue())));
    for (Value operand : op->getOperands())
      operands.push_back(operand.getType().isIndex() ? toI64(get(operand)) : get(operand));
    call(("boa_rt_" + op->getName().stripDialect()).str(), operands);
  }

  /// The number of buffers that the runtime takes for a kernel: the prepared one may be null.
  int64_t buffersOf(StringRef kernel) {
    return int64_t(module.lookupSymbol<KernelOp>(kernel).getBuffers().size());
  }

  /// Stores the list that a call takes.
  void storeBuffers(ValueRange list, int64_t count) {
    Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
    Type i64 = builder.getI64Type();
    for (int64_t i = 0; i < count; ++i) {
      Value slot = LLVM::GEPOp::create(builder, loc, pointer, i64, buffers,
                                       ArrayRef<LLVM::GEPArg>{int32_t(i)});
      Value buffer = i < int64_t(list.size()) ? list[i] : Value();
      LLVM::StoreOp::create(builder, loc, get(buffer), slot);
    }
  }

  /// Counts up from 0; the induction variable is lower + i, or upper - 1 - i.
  void lowerLoop(LoopOp loop) {
    OpBuilder::InsertionGuard outside(builder);
    if (Value guard = loop.getGuard()) {
      Value some = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, get(guard),
                                         constantIndex(0));
      auto ifOp = scf::IfOp::create(builder, loc, some, /*withElseRegion=*/false);
      builder.setInsertionPointToStart(ifOp.thenBlock());
    }
    Value zero = constantIndex(0), one = constantIndex(1);
    Value lower = constantIndex(loop.getLower()), top = constantIndex(loop.getUpper() - 1);
    Value last = constantIndex(loop.getTripCount() - 1);
    auto forOp = scf::ForOp::create(builder, loc, zero, constantIndex(loop.getTripCount()), one);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(forOp.getBody());
    Value i = forOp.getInductionVar();
    auto up = [&] { return arith::AddIOp::create(builder, loc, lower, i).getResult(); };
    auto down = [&] { return arith::SubIOp::create(builder, loc, top, i).getResult(); };
    Value iv;
    switch (loop.getOrder()) {
    case LoopOrder::forward:
      iv = up();
      break;
    case LoopOrder::reverse:
      iv = down();
      break;
    case LoopOrder::snake: {
      Value sum = arith::AddIOp::create(builder, loc, get(loop.getParity()),
                                        constantIndex(loop.getPhase()));
      Value odd = arith::TruncIOp::create(builder, loc, builder.getI1Type(), toI64(sum));
      iv = arith::SelectOp::create(builder, loc, odd, down(), up());
      break;
    }
    }
    map.map(loop.getInductionVar(), iv);
    auto equals = [&](Value bound) {
      return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, i, bound).getResult();
    };
    ends[loop.getInductionVar()] = {equals(zero), equals(last)};
    this->lower(*loop.getBlock());
  }

  ModuleOp module;
  StepOp entry;
  OpBuilder builder;
  llvm::StringMap<int64_t> numbers;
  Value context, buffers;
  IRMapping map;
  llvm::DenseMap<Value, std::pair<Value, Value>> ends; // at first, at last
  Location loc = builder.getUnknownLoc();
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

/// Emits @boa_program: the descriptor, a C string.
void emitDescriptor(ModuleOp module, const std::string &json) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  std::string text = json;
  text.push_back('\0');
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
  LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/true,
                         LLVM::Linkage::External, "boa_program", builder.getStringAttr(text));
}

/// Emits the addresses of functions, in order.
void emitTable(ModuleOp module, StringRef symbol, ArrayRef<StringRef> names) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = module.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto type = LLVM::LLVMArrayType::get(pointer, names.size());
  auto table = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                                      LLVM::Linkage::External, symbol, Attribute());
  builder.createBlock(&table.getInitializerRegion());
  Value value = LLVM::UndefOp::create(builder, loc, type);
  for (auto [i, name] : llvm::enumerate(names)) {
    Value address = LLVM::AddressOfOp::create(builder, loc, pointer, name);
    value =
        LLVM::InsertValueOp::create(builder, loc, value, address, ArrayRef<int64_t>{int64_t(i)});
  }
  LLVM::ReturnOp::create(builder, loc, value);
}

/// Emits @boa_kernel_table, and @boa_optimizer if the program trains.
void emitTables(ModuleOp module) {
  SmallVector<StringRef> kernels;
  for (auto kernel : module.getOps<KernelOp>())
    kernels.push_back(kernel.getSymName());
  emitTable(module, "boa_kernel_table", kernels);
  if (module.lookupSymbol(kUpdateFunction))
    emitTable(module, "boa_optimizer", {kPrepareFunction, kUpdateFunction});
}

struct ConvertBoaToRuntime : impl::ConvertBoaToRuntimeBase<ConvertBoaToRuntime> {
  using ConvertBoaToRuntimeBase::ConvertBoaToRuntimeBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkNames(module)))
      return signalPassFailure();
    std::string descriptor = describeProgram(module);
    module->removeAttr(kCanonicalTextAttr);
    emitTables(module);
    for (StepOp entry : llvm::make_early_inc_range(module.getOps<StepOp>()))
      EntryLowering(module, entry).run();
    emitKernels(module);
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa<ConfigOp, StorageOp, GroupOp, OptimizerOp>(op))
        op.erase();
    emitDescriptor(module, descriptor);
  }
};

} // namespace
} // namespace boa
