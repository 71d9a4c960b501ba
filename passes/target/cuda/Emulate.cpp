//===- Emulate.cpp - The device's functions, a thread at a time -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes what --cuda-outline-launches leaves. What a function asks of its thread lies
// at fixed places of the structure that it is given (boa_emulated_thread in
// test/fake_cuda/emulated.h). All memory is of one space. Refuses ops of the gpu
// dialect of which it does not know what they do.
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/CudaPasses.h"

#include "llvm/Support/MathExtras.h"

namespace boa {
#define GEN_PASS_DEF_CUDAEMULATE
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// Where a field of boa_emulated_thread begins, in bytes.
enum Field : int32_t {
  kThread = 0,
  kBlock = 24,
  kBlockDim = 48,
  kGridDim = 72,
  kShared = 96,
  kBarrier = 104,
  kShuffle = 112,
  kFault = 120,
};
/// Of each array in shared memory.
constexpr int64_t kSharedAlignment = 64;
constexpr int32_t kWarp = 32;

MemRefType withoutSpace(Type type) {
  return MemRefType::Builder(cast<MemRefType>(type)).setMemorySpace(Attribute());
}

/// Makes a function of the host of one of the device.
class Emulation {
public:
  Emulation(gpu::GPUFuncOp from)
      : name(from.getName().str()), builder(from), loc(from.getLoc()),
        pointer(LLVM::LLVMPointerType::get(from.getContext())), i64(builder.getI64Type()),
        i32(builder.getI32Type()),
        func(func::FuncOp::create(builder, loc, name,
                                  builder.getFunctionType({pointer, pointer}, {}))) {
    unsigned inputs = from.getFunctionType().getNumInputs();
    unsigned shared = from.getNumWorkgroupAttributions();
    func.getBody().takeBody(from.getBody());
    from.erase();
    bindArguments(inputs, shared);
    func.walk([](Operation *op) {
      for (Value result : op->getResults())
        if (isa<MemRefType>(result.getType()))
          result.setType(withoutSpace(result.getType()));
    });
  }

  LogicalResult run() {
    WalkResult walked = func.walk([&](Operation *op) { return WalkResult(rewrite(op)); });
    return failure(walked.wasInterrupted());
  }

private:
  /// Arguments become what the array of arguments points at; shared memory is one region.
  void bindArguments(unsigned inputs, unsigned shared) {
    Block &entry = func.getBody().front();
    SmallVector<Value> memory(entry.getArguments());
    thread = entry.addArgument(pointer, loc);
    Value args = entry.addArgument(pointer, loc);
    builder.setInsertionPointToStart(&entry);
    Value base = shared ? field(kShared, pointer) : Value();
    int64_t bytes = 0;
    for (auto [i, from] : llvm::enumerate(memory)) {
      MemRefType type = withoutSpace(from.getType());
      Value to;
      if (i < inputs) {
        Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer, args,
                                         ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(i)));
        Value address = LLVM::LoadOp::create(builder, loc, pointer, slot);
        to = kernel::ViewOp::create(builder, loc, type,
                                    LLVM::LoadOp::create(builder, loc, pointer, address), 0);
      } else if (i < inputs + shared) {
        to = kernel::ViewOp::create(builder, loc, type, base, bytes);
        int64_t size = type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
        bytes += llvm::alignTo(size, kSharedAlignment);
      } else {
        to = memref::AllocaOp::create(builder, loc, type);
      }
      from.replaceAllUsesWith(to);
    }
    entry.eraseArguments(0, memory.size());
    func->setAttr(kSharedBytesAttr, builder.getI64IntegerAttr(bytes));
    func->setAttr(kArgumentsAttr, builder.getI64IntegerAttr(inputs));
  }

  LogicalResult rewrite(Operation *op) {
    builder.setInsertionPoint(op);
    loc = op->getLoc();
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](gpu::ThreadIdOp id) { return replace(id, place(kThread, id.getDimension())); })
        .Case([&](gpu::BlockIdOp id) { return replace(id, place(kBlock, id.getDimension())); })
        .Case([&](gpu::BlockDimOp id) { return replace(id, place(kBlockDim, id.getDimension())); })
        .Case([&](gpu::GridDimOp id) { return replace(id, place(kGridDim, id.getDimension())); })
        .Case([&](gpu::LaneIdOp lane) { return replace(lane, laneId()); })
        .Case([&](gpu::BarrierOp barrier) {
          call(kBarrier, Type(), {});
          barrier.erase();
          return success();
        })
        .Case([&](gpu::ShuffleOp shuffle) { return rewriteShuffle(shuffle); })
        .Case([&](gpu::ReturnOp end) {
          func::ReturnOp::create(builder, loc);
          end.erase();
          return success();
        })
        .Case([&](memref::LoadOp load) { return check(load.getMemRef(), load.getIndices()); })
        .Case([&](memref::StoreOp store) { return check(store.getMemRef(), store.getIndices()); })
        .Case([&](vector::LoadOp load) {
          return check(load.getBase(), load.getIndices(), load.getVectorType().getNumElements());
        })
        .Case([&](vector::StoreOp store) {
          return check(store.getBase(), store.getIndices(), store.getVectorType().getNumElements());
        })
        .Default([&](Operation *other) -> LogicalResult {
          if (isa<gpu::GPUDialect>(other->getDialect()))
            return other->emitOpError("is not emulated");
          return success();
        });
  }

  LogicalResult replace(Operation *op, Value by) {
    op->replaceAllUsesWith(ValueRange(by));
    op->erase();
    return success();
  }

  Value number(int32_t value) {
    return LLVM::ConstantOp::create(builder, loc, i32, builder.getI32IntegerAttr(value));
  }
  Value field(int32_t offset, Type type) {
    Value address = LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), thread,
                                        ArrayRef<LLVM::GEPArg>(offset));
    return LLVM::LoadOp::create(builder, loc, type, address);
  }
  Value place(Field of, gpu::Dimension dimension) {
    Value value = field(of + 8 * static_cast<int32_t>(dimension), i64);
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  }
  Value laneId() {
    auto multiplyAdd = [&](Value a, Value b, Value c) -> Value {
      return arith::AddIOp::create(builder, loc, arith::MulIOp::create(builder, loc, a, b), c);
    };
    using gpu::Dimension;
    Value linear = multiplyAdd(place(kThread, Dimension::z), place(kBlockDim, Dimension::y),
                               place(kThread, Dimension::y));
    linear = multiplyAdd(linear, place(kBlockDim, Dimension::x), place(kThread, Dimension::x));
    return arith::RemUIOp::create(builder, loc, linear,
                                  arith::ConstantIndexOp::create(builder, loc, kWarp));
  }

  /// The call of what a field points at, with the thread first.
  Value call(Field of, Type result, ArrayRef<Value> operands) {
    SmallVector<Value> all{field(of, pointer), thread};
    llvm::append_range(all, operands);
    SmallVector<Type> types;
    for (Value value : ArrayRef(all).drop_front())
      types.push_back(value.getType());
    Type returned = result ? result : LLVM::LLVMVoidType::get(builder.getContext());
    auto op = LLVM::CallOp::create(builder, loc, LLVM::LLVMFunctionType::get(returned, types), all);
    return result ? op.getResult() : Value();
  }

  LogicalResult rewriteShuffle(gpu::ShuffleOp shuffle) {
    Type type = shuffle.getValue().getType();
    if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() != 32 ||
        !shuffle.getValid().use_empty())
      return shuffle.emitOpError("is emulated of 32 bits, and does not say what is valid");
    int32_t mode = 0;
    switch (shuffle.getMode()) {
    case gpu::ShuffleMode::XOR:
      mode = 0;
      break;
    case gpu::ShuffleMode::UP:
      mode = 1;
      break;
    case gpu::ShuffleMode::DOWN:
      mode = 2;
      break;
    case gpu::ShuffleMode::IDX:
      mode = 3;
      break;
    }
    Value value = shuffle.getValue();
    if (!type.isInteger())
      value = arith::BitcastOp::create(builder, loc, i32, value);
    value = call(kShuffle, i32, {value, shuffle.getOffset(), shuffle.getWidth(), number(mode)});
    if (!type.isInteger())
      value = arith::BitcastOp::create(builder, loc, type, value);
    shuffle.getShuffleResult().replaceAllUsesWith(value);
    shuffle.erase();
    return success();
  }

  /// Ends the launch where an index, or the last of some side by side, is none of the memref's.
  LogicalResult check(Value memref, ValueRange indices, int64_t width = 1) {
    auto type = cast<MemRefType>(memref.getType());
    Value outside;
    for (auto [i, index] : llvm::enumerate(indices)) {
      int64_t extent = type.getDimSize(i) - (i + 1 == indices.size() ? width - 1 : 0);
      Value bound = arith::ConstantIndexOp::create(builder, loc, std::max<int64_t>(extent, 0));
      Value beyond = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, index, bound);
      outside = outside ? arith::OrIOp::create(builder, loc, outside, beyond).getResult() : beyond;
    }
    if (!outside)
      return success();
    auto branch = scf::IfOp::create(builder, loc, outside, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value words = LLVM::AddressOfOp::create(builder, loc, pointer, wordsFor(type));
    call(kFault, Type(), words);
    return success();
  }

  /// The constant that says what was left.
  std::string wordsFor(MemRefType type) {
    std::string text = name + ": an index is outside ";
    llvm::raw_string_ostream(text) << type << '\0';
    auto [entry, isNew] = words.try_emplace(text, name + "_fault" + std::to_string(words.size()));
    if (isNew) {
      OpBuilder before(func);
      auto array = LLVM::LLVMArrayType::get(before.getI8Type(), text.size());
      LLVM::GlobalOp::create(before, loc, array, /*isConstant=*/true, LLVM::Linkage::Internal,
                             entry->second, before.getStringAttr(text));
    }
    return entry->second;
  }

  std::string name;
  OpBuilder builder;
  Location loc;
  Type pointer, i64, i32;
  func::FuncOp func;
  Value thread;
  llvm::StringMap<std::string> words;
};

struct CudaEmulate : boa::impl::CudaEmulateBase<CudaEmulate> {
  void runOnOperation() override {
    auto device = getOperation().lookupSymbol<gpu::GPUModuleOp>(kDeviceModule);
    if (!device)
      return;
    SmallVector<gpu::GPUFuncOp> functions(device.getOps<gpu::GPUFuncOp>());
    for (gpu::GPUFuncOp func : functions)
      if (failed(Emulation(func).run()))
        return signalPassFailure();
  }
};

} // namespace
