//===- Emulate.cpp - The device's functions, a thread at a time -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes what --cuda-outline-launches leaves. What a function asks of its thread lies
// at fixed places of the structure that it is given (boa_emulated_thread in
// test/fake_cuda/emulated.h). All memory is of one space. What the device's code is
// optimised by is checked: where arguments are, and that no index leaves its memref.
// Refuses ops on threads and memory of which it does not know what they do.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/MemoryAccess.h"
#include "passes/target/cuda/CudaPasses.h"

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

namespace boa {
#define GEN_PASS_DEF_CUDAEMULATE
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// The fields of boa_emulated_thread, by the byte at which each begins.
enum Field : int32_t {
  kThread = 0,
  kBlock = 24,
  kShared = 96,
  kBarrier = 104,
  kShuffle = 112,
  kFault = 120,
  kMultiply = 128,
  kMatrices = 136,
  kCopy = 144,
  kGroup = 152,
  kWait = 160,
};
/// The alignment of each array in shared memory.
constexpr int64_t kSharedAlignment = 64;

MemRefType withoutSpace(Type type) {
  return MemRefType::Builder(cast<MemRefType>(type)).setMemorySpace(Attribute());
}

/// The attributes of an argument of the device's function, on which LLVM relies.
struct Promise {
  int64_t bytes, alignment = 1;
  bool apart = false; // noalias
  bool written = false;
};

SmallVector<Promise> getPromises(gpu::GPUFuncOp func) {
  SmallVector<Promise> promises;
  for (auto [i, input] : llvm::enumerate(func.getFunctionType().getInputs())) {
    auto type = cast<MemRefType>(input);
    int64_t bytes = type.getNumElements() * getElementBytes(type);
    Promise &promise = promises.emplace_back(Promise{bytes});
    if (auto alignment =
            func.getArgAttrOfType<IntegerAttr>(i, LLVM::LLVMDialect::getAlignAttrName()))
      promise.alignment = alignment.getInt();
    promise.apart = bool(func.getArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName()));
  }
  func.walk([&](memref::StoreOp store) {
    auto argument = dyn_cast<BlockArgument>(getMemoryRoot(store.getMemRef()));
    if (argument && argument.getArgNumber() < promises.size())
      promises[argument.getArgNumber()].written = true;
  });
  return promises;
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
    SmallVector<Promise> promises = getPromises(from);
    func.getBody().takeBody(from.getBody());
    if (Attribute memory = from->getAttr(kMemoryAttr))
      func->setAttr(kMemoryAttr, memory);
    from.erase();
    bindArguments(promises);
    func.walk([](Operation *op) {
      for (Value result : op->getResults())
        if (isa<MemRefType>(result.getType()))
          result.setType(withoutSpace(result.getType()));
    });
  }

  LogicalResult run() {
    WalkResult walked = func.walk([&](Operation *op) { return WalkResult(rewrite(op)); });
    for (Operation *op : llvm::reverse(tokens))
      op->erase();
    return failure(walked.wasInterrupted());
  }

private:
  /// Binds arguments to the places at which the array of arguments points. Shared memory is one
  /// region.
  void bindArguments(ArrayRef<Promise> promises) {
    Block &entry = func.getBody().front();
    SmallVector<Value> memory(entry.getArguments());
    thread = entry.addArgument(pointer, loc);
    Value args = entry.addArgument(pointer, loc);
    builder.setInsertionPointToStart(&entry);
    Value base = memory.size() > promises.size() ? field(kShared, pointer) : Value();
    SmallVector<Value> homes;
    int64_t bytes = 0;
    for (auto [i, from] : llvm::enumerate(memory)) {
      MemRefType type = withoutSpace(from.getType());
      Value to;
      if (i < promises.size()) {
        Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer, args,
                                         ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(i)));
        Value address = LLVM::LoadOp::create(builder, loc, pointer, slot);
        homes.push_back(LLVM::LoadOp::create(builder, loc, pointer, address));
        to = kernel::ViewOp::create(builder, loc, type, homes.back(), 0);
      } else {
        to = kernel::ViewOp::create(builder, loc, type, base, bytes);
        int64_t size = type.getNumElements() * getElementBytes(type);
        bytes += llvm::alignTo(size, kSharedAlignment);
      }
      from.replaceAllUsesWith(to);
    }
    entry.eraseArguments(0, memory.size());
    func->setAttr(kSharedBytesAttr, builder.getI64IntegerAttr(bytes));
    func->setAttr(kArgumentsAttr, builder.getI64IntegerAttr(promises.size()));
    checkArguments(homes, promises);
  }

  /// Lets the first thread end the launch if an argument is not where the device's code takes it to
  /// be: aligned, and apart from other memory that is written.
  void checkArguments(ArrayRef<Value> homes, ArrayRef<Promise> promises) {
    auto isAnywhere = [](const Promise &p) { return p.alignment == 1 && !p.apart; };
    if (llvm::all_of(promises, isAnywhere))
      return;
    Value is = integer(0);
    for (Field of : {kThread, kBlock})
      for (int32_t d = 0; d < 3; ++d)
        is = arith::OrIOp::create(builder, loc, is, field(of + 8 * d, i64));
    is = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, is, integer(0));
    auto first = scf::IfOp::create(builder, loc, is, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(first.thenBlock());
    SmallVector<Value> begins, ends;
    for (auto [i, promise] : llvm::enumerate(promises)) {
      begins.push_back(LLVM::PtrToIntOp::create(builder, loc, i64, homes[i]));
      ends.push_back(arith::AddIOp::create(builder, loc, begins[i], integer(promise.bytes)));
      if (promise.alignment > 1) {
        Value past = arith::AndIOp::create(builder, loc, begins[i], integer(promise.alignment - 1));
        faultIf(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, past, integer(0)),
                "argument " + Twine(i) + " is not at a multiple of " + Twine(promise.alignment));
      }
      for (unsigned j = 0; j < i; ++j) {
        const Promise &other = promises[j];
        if (!(promise.apart || other.apart) || !(promise.written || other.written))
          continue;
        using Predicate = arith::CmpIPredicate;
        Value begun = arith::CmpIOp::create(builder, loc, Predicate::ult, begins[i], ends[j]);
        Value before = arith::CmpIOp::create(builder, loc, Predicate::ult, begins[j], ends[i]);
        faultIf(arith::AndIOp::create(builder, loc, begun, before),
                "arguments " + Twine(j) + " and " + Twine(i) + " have memory in common");
      }
    }
  }

  LogicalResult rewrite(Operation *op) {
    builder.setInsertionPoint(op);
    loc = op->getLoc();
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](gpu::ThreadIdOp id) { return replace(id, place(kThread, id.getDimension())); })
        .Case([&](gpu::BlockIdOp id) { return replace(id, place(kBlock, id.getDimension())); })
        .Case([&](gpu::BarrierOp barrier) {
          call(kBarrier, Type(), {});
          barrier.erase();
          return success();
        })
        .Case([&](gpu::ShuffleOp shuffle) { return rewriteShuffle(shuffle); })
        .Case([&](NVVM::MmaOp product) { return rewriteProduct(product); })
        .Case([&](nvgpu::LdMatrixOp load) { return rewriteMatrices(load); })
        .Case([&](nvgpu::DeviceAsyncCopyOp copy) { return rewriteCopy(copy); })
        .Case([&](nvgpu::DeviceAsyncCreateGroupOp group) {
          call(kGroup, Type(), {});
          tokens.push_back(group);
          return success();
        })
        .Case([&](nvgpu::DeviceAsyncWaitOp wait) {
          call(kWait, Type(), number(wait.getNumGroups().value_or(0)));
          wait.erase();
          return success();
        })
        .Case([&](gpu::ReturnOp end) {
          func::ReturnOp::create(builder, loc);
          end.erase();
          return success();
        })
        .Case([&](memref::LoadOp load) { return check(load.getMemRef(), load.getIndices()); })
        .Case([&](memref::StoreOp store) { return check(store.getMemRef(), store.getIndices()); })
        .Default([&](Operation *other) -> LogicalResult {
          Dialect *dialect = other->getDialect();
          const bool isKnown = isMemoryOp(other) ||
                               (isa<vector::VectorDialect>(dialect) && isMemoryEffectFree(other));
          if (isa<gpu::GPUDialect, nvgpu::NVGPUDialect, NVVM::NVVMDialect>(dialect) ||
              (isa<memref::MemRefDialect, vector::VectorDialect>(dialect) && !isKnown))
            return other->emitOpError("is not emulated");
          return success();
        });
  }

  LogicalResult replace(Operation *op, Value by) {
    op->replaceAllUsesWith(ValueRange(by));
    op->erase();
    return success();
  }

  Value integer(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
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

  /// Calls the function at which a field points, with the thread first.
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
      return shuffle.emitOpError("is emulated for 32 bits only, and without its result `valid`");
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

  /// The address of the first of the elements that are accessed.
  Value addressOf(Value memref, ValueRange indices, int64_t elements) {
    (void)check(memref, indices);
    auto type = cast<MemRefType>(memref.getType());
    Value beyond = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ugt, indices.back(),
        arith::ConstantIndexOp::create(builder, loc, type.getShape().back() - elements));
    faultIf(beyond, "elements beside each other are outside a row");
    auto [strides, offset] = type.getStridesAndOffset();
    Value base = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref);
    Value at = arith::ConstantIndexOp::create(builder, loc, offset);
    for (auto [index, stride] : llvm::zip_equal(indices, strides))
      at = arith::AddIOp::create(
          builder, loc, at,
          arith::MulIOp::create(builder, loc, index,
                                arith::ConstantIndexOp::create(builder, loc, stride)));
    Value bytes = arith::MulIOp::create(
        builder, loc, at, arith::ConstantIndexOp::create(builder, loc, getElementBytes(type)));
    Value address = arith::IndexCastOp::create(builder, loc, i64,
                                               arith::AddIOp::create(builder, loc, base, bytes));
    return LLVM::IntToPtrOp::create(builder, loc, pointer, address);
  }

  /// The thread's own memory for registers that a call takes and returns.
  Value getRegisters() {
    if (!registers) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&func.getBody().front());
      registers = LLVM::AllocaOp::create(builder, loc, pointer, i32, number(10));
    }
    return registers;
  }
  Value registerAt(int64_t i) {
    return LLVM::GEPOp::create(builder, loc, pointer, i32, getRegisters(),
                               ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(i)));
  }

  LogicalResult rewriteProduct(NVVM::MmaOp product) {
    auto shape = product.getShape();
    if (shape.getM() != 16 || shape.getN() != 8 || shape.getK() != 16 ||
        product.getMultiplicandAPtxType() != NVVM::MMATypes::bf16)
      return product.emitOpError("is emulated for 16 x 8 x 16 of bf16 only");
    for (auto [i, operand] : llvm::enumerate(product->getOperands()))
      LLVM::StoreOp::create(builder, loc, operand, registerAt(i));
    call(kMultiply, Type(), getRegisters());
    Type type = product.getType();
    Value result = LLVM::UndefOp::create(builder, loc, type);
    for (int64_t i = 0; i < 4; ++i) {
      Value sum = LLVM::LoadOp::create(builder, loc, builder.getF32Type(), registerAt(6 + i));
      result = LLVM::InsertValueOp::create(builder, loc, result, sum, i);
    }
    return replace(product, result);
  }

  LogicalResult rewriteMatrices(nvgpu::LdMatrixOp load) {
    if (load.getNumTiles() != 4)
      return load.emitOpError("is emulated for four matrices only");
    Value row = addressOf(load.getSrcMemref(), load.getIndices(), /*elements=*/8);
    call(kMatrices, Type(), {row, number(load.getTranspose()), getRegisters()});
    Value all = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(load.getType()));
    auto pair = VectorType::get(2, builder.getBF16Type());
    for (int64_t i = 0; i < 4; ++i) {
      // Of i32, which its address is aligned to.
      Value word = LLVM::LoadOp::create(builder, loc, i32, registerAt(i));
      all = vector::InsertOp::create(builder, loc,
                                     LLVM::BitcastOp::create(builder, loc, pair, word), all, i);
    }
    return replace(load, all);
  }

  LogicalResult rewriteCopy(nvgpu::DeviceAsyncCopyOp copy) {
    const int64_t bytes = getElementBytes(cast<MemRefType>(copy.getSrc().getType()));
    const int64_t elements = copy.getDstElements().getSExtValue();
    if (bytes * elements != 16)
      return copy.emitOpError("is emulated for 16 bytes only");
    Value to = addressOf(copy.getDst(), copy.getDstIndices(), elements);
    Value read = copy.getSrcElements();
    Value from = addressOf(copy.getSrc(), copy.getSrcIndices(), read ? 1 : elements);
    Value count = number(static_cast<int32_t>(elements));
    if (read)
      count = arith::IndexCastOp::create(builder, loc, i32, read);
    count = arith::MulIOp::create(builder, loc, count, number(static_cast<int32_t>(bytes)));
    call(kCopy, Type(), {to, from, count});
    tokens.push_back(copy);
    return success();
  }

  /// Ends the launch if an index is outside the memref.
  LogicalResult check(Value memref, ValueRange indices) {
    auto type = cast<MemRefType>(memref.getType());
    Value outside;
    for (auto [i, index] : llvm::enumerate(indices)) {
      Value bound = arith::ConstantIndexOp::create(builder, loc, type.getDimSize(i));
      Value beyond = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, index, bound);
      outside = outside ? arith::OrIOp::create(builder, loc, outside, beyond).getResult() : beyond;
    }
    if (outside) {
      std::string text = "an index is outside ";
      llvm::raw_string_ostream(text) << type;
      faultIf(outside, text);
    }
    return success();
  }

  /// Ends the launch with these words if the condition holds.
  void faultIf(Value condition, const Twine &what) {
    auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    std::string text = (name + ": " + what + Twine('\0')).str();
    Value address = LLVM::AddressOfOp::create(builder, loc, pointer, constantOf(text));
    call(kFault, Type(), address);
  }

  /// The constant that holds a text.
  std::string constantOf(const std::string &text) {
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
  Value thread, registers;
  SmallVector<Operation *> tokens; // ops whose results only waits use
  llvm::StringMap<std::string> words;
};

struct CudaEmulate : boa::impl::CudaEmulateBase<CudaEmulate> {
  void runOnOperation() override {
    auto device = getOperation().lookupSymbol<gpu::GPUModuleOp>(kDeviceModule);
    if (!device)
      return;
    SmallVector<gpu::GPUFuncOp> functions(device.getOps<gpu::GPUFuncOp>());
    for (gpu::GPUFuncOp func : functions) {
      if (func.getNumPrivateAttributions() > 0) {
        func.emitOpError("is not emulated with memory of each thread's own");
        return signalPassFailure();
      }
      if (failed(Emulation(func).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
