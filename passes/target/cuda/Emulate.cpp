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

#include "passes/kernels/CodeBuilder.h"
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
    Promise &promise = promises.emplace_back(Promise{getBytes(type)});
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
class Emulation : CodeBuilder {
public:
  Emulation(gpu::GPUFuncOp from)
      : CodeBuilder(OpBuilder(from), from.getLoc()), name(from.getName().str()), i64(getI64Type()),
        i32(getI32Type()),
        func(func::FuncOp::create(*this, name, getFunctionType({pointer(), pointer()}, {}))) {
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
    Values memory(entry.getArguments()), homes;
    thread = entry.addArgument(pointer(), getLoc());
    Value args = entry.addArgument(pointer(), getLoc());
    setInsertionPointToStart(&entry);
    Value base = memory.size() > promises.size() ? field(kShared, pointer()) : Value();
    int64_t bytes = 0;
    for (auto [i, from] : llvm::enumerate(memory)) {
      MemRefType type = withoutSpace(from.getType());
      Value to;
      if (i < promises.size()) {
        Value address = loadAt(args, pointer(), static_cast<int32_t>(i));
        homes.push_back(LLVM::LoadOp::create(*this, pointer(), address));
        to = kernel::ViewOp::create(*this, type, homes.back(), 0);
      } else {
        to = kernel::ViewOp::create(*this, type, base, bytes);
        bytes += llvm::alignTo(getBytes(type), kSharedAlignment);
      }
      from.replaceAllUsesWith(to);
    }
    entry.eraseArguments(0, memory.size());
    func->setAttr(kSharedBytesAttr, getI64IntegerAttr(bytes));
    func->setAttr(kArgumentsAttr, getI64IntegerAttr(promises.size()));
    checkArguments(homes, promises);
  }

  /// Lets the first thread end the launch if an argument is not where the device's code takes it to
  /// be: aligned, and apart from other memory that is written.
  void checkArguments(ArrayRef<Value> homes, ArrayRef<Promise> promises) {
    auto isAnywhere = [](const Promise &p) { return p.alignment == 1 && !p.apart; };
    if (llvm::all_of(promises, isAnywhere))
      return;
    Value place;
    for (Field of : {kThread, kBlock})
      for (int32_t d = 0; d < 3; ++d) {
        Value along = field(of + 8 * d, i64);
        place = place ? either(place, along) : along;
      }
    when(isZero(place), [&] {
      Values begins, ends;
      for (auto [i, promise] : llvm::enumerate(promises)) {
        begins.push_back(LLVM::PtrToIntOp::create(*this, i64, homes[i]));
        ends.push_back(add(begins[i], promise.bytes));
        if (promise.alignment > 1)
          faultIf(compare(Predicate::ne, both(begins[i], promise.alignment - 1), integer(0, 64)),
                  "argument " + Twine(i) + " is not at a multiple of " + Twine(promise.alignment));
        for (unsigned j = 0; j < i; ++j) {
          const Promise &other = promises[j];
          if (!(promise.apart || other.apart) || !(promise.written || other.written))
            continue;
          faultIf(both(compare(Predicate::ult, begins[i], ends[j]),
                       compare(Predicate::ult, begins[j], ends[i])),
                  "arguments " + Twine(j) + " and " + Twine(i) + " have memory in common");
        }
      }
    });
  }

  LogicalResult rewrite(Operation *op) {
    setInsertionPoint(op);
    setLoc(op->getLoc());
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
          call(kWait, Type(), integer(wait.getNumGroups().value_or(0)));
          wait.erase();
          return success();
        })
        .Case([&](gpu::ReturnOp end) {
          func::ReturnOp::create(*this);
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

  Value field(int32_t offset, Type type) {
    return LLVM::LoadOp::create(*this, type, at(thread, getI8Type(), offset));
  }
  Value place(Field of, gpu::Dimension dimension) {
    return toIndex(field(of + 8 * static_cast<int32_t>(dimension), i64));
  }

  /// Calls the function at which a field points, with the thread first.
  Value call(Field of, Type result, ArrayRef<Value> operands) {
    Values all{field(of, pointer()), thread};
    llvm::append_range(all, operands);
    SmallVector<Type> types(ValueRange(all).drop_front().getTypes());
    Type returned = result ? result : LLVM::LLVMVoidType::get(context);
    auto op = LLVM::CallOp::create(*this, LLVM::LLVMFunctionType::get(returned, types), all);
    return result ? op.getResult() : Value();
  }

  LogicalResult rewriteShuffle(gpu::ShuffleOp shuffle) {
    Type type = shuffle.getValue().getType();
    if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() != 32 ||
        !shuffle.getValid().use_empty())
      return shuffle.emitOpError("is emulated for 32 bits only, and without its result `valid`");
    // In the order of test/fake_cuda/emulated.h.
    const std::array modes{gpu::ShuffleMode::XOR, gpu::ShuffleMode::UP, gpu::ShuffleMode::DOWN,
                           gpu::ShuffleMode::IDX};
    const int64_t mode = llvm::find(modes, shuffle.getMode()) - modes.begin();
    Value value = shuffle.getValue();
    if (!type.isInteger())
      value = bitsOf(value);
    value = call(kShuffle, i32, {value, shuffle.getOffset(), shuffle.getWidth(), integer(mode)});
    if (!type.isInteger())
      value = make<arith::BitcastOp>(type, value);
    shuffle.getShuffleResult().replaceAllUsesWith(value);
    shuffle.erase();
    return success();
  }

  /// The address of the first of the elements that are accessed.
  Value addressOf(Value memref, ValueRange indices, int64_t elements) {
    (void)check(memref, indices);
    auto type = memrefOf(memref);
    faultIf(compare(Predicate::ugt, indices.back(), index(type.getShape().back() - elements)),
            "elements beside each other are outside a row");
    auto [strides, offset] = type.getStridesAndOffset();
    Value place = memref::ExtractAlignedPointerAsIndexOp::create(*this, memref);
    Value element = index(offset);
    for (auto [index, stride] : llvm::zip_equal(indices, strides))
      element = add(element, mul(index, stride));
    place = add(place, mul(element, getElementBytes(type)));
    return LLVM::IntToPtrOp::create(*this, pointer(), toInteger(place, 64));
  }

  /// The thread's own memory for registers that a call takes and returns.
  Value getRegisters() {
    if (!registers) {
      InsertionGuard guard(*this);
      setInsertionPointToStart(&func.getBody().front());
      registers = LLVM::AllocaOp::create(*this, pointer(), i32, integer(10));
    }
    return registers;
  }
  Value registerAt(int32_t i, Type type) {
    return LLVM::LoadOp::create(*this, type, at(getRegisters(), i32, i));
  }

  LogicalResult rewriteProduct(NVVM::MmaOp product) {
    auto shape = product.getShape();
    if (shape.getM() != 16 || shape.getN() != 8 || shape.getK() != 16 ||
        product.getMultiplicandAPtxType() != NVVM::MMATypes::bf16)
      return product.emitOpError("is emulated for 16 x 8 x 16 of bf16 only");
    for (auto [i, operand] : llvm::enumerate(product->getOperands()))
      LLVM::StoreOp::create(*this, operand, at(getRegisters(), i32, static_cast<int32_t>(i)));
    call(kMultiply, Type(), getRegisters());
    Values sums;
    for (int32_t i = 0; i < 4; ++i)
      sums.push_back(registerAt(6 + i, getF32Type()));
    return replace(product, aggregate(product.getType(), sums));
  }

  LogicalResult rewriteMatrices(nvgpu::LdMatrixOp load) {
    if (load.getNumTiles() != 4)
      return load.emitOpError("is emulated for four matrices only");
    Value row = addressOf(load.getSrcMemref(), load.getIndices(), /*elements=*/8);
    call(kMatrices, Type(), {row, integer(load.getTranspose()), getRegisters()});
    Value all = arith::ConstantOp::create(*this, getZeroAttr(load.getType()));
    auto pair = VectorType::get(2, getBF16Type());
    for (int32_t i = 0; i < 4; ++i) {
      // Of i32, which its address is aligned to.
      Value word = LLVM::BitcastOp::create(*this, pair, registerAt(i, i32));
      all = vector::InsertOp::create(*this, word, all, i);
    }
    return replace(load, all);
  }

  LogicalResult rewriteCopy(nvgpu::DeviceAsyncCopyOp copy) {
    const int64_t bytes = getElementBytes(memrefOf(copy.getSrc()));
    const int64_t elements = copy.getDstElements().getSExtValue();
    if (bytes * elements != 16)
      return copy.emitOpError("is emulated for 16 bytes only");
    Value to = addressOf(copy.getDst(), copy.getDstIndices(), elements);
    Value read = copy.getSrcElements();
    Value from = addressOf(copy.getSrc(), copy.getSrcIndices(), read ? 1 : elements);
    Value count = read ? toInteger(read) : integer(elements);
    call(kCopy, Type(), {to, from, mul(count, bytes)});
    tokens.push_back(copy);
    return success();
  }

  /// Ends the launch if an index is outside the memref.
  LogicalResult check(Value memref, ValueRange indices) {
    auto type = memrefOf(memref);
    Value outside;
    for (auto [i, index] : llvm::enumerate(indices)) {
      Value beyond = compare(Predicate::uge, index, this->index(type.getDimSize(i)));
      outside = outside ? either(outside, beyond) : beyond;
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
    when(condition, [&] {
      std::string text = (name + ": " + what + Twine('\0')).str();
      call(kFault, Type(), address(constantOf(text)));
    });
  }

  /// The constant that holds a text.
  std::string constantOf(const std::string &text) {
    auto [entry, isNew] = words.try_emplace(text, name + "_fault" + std::to_string(words.size()));
    if (isNew)
      CodeBuilder(OpBuilder(func), getLoc()).addText(entry->second, text);
    return entry->second;
  }

  std::string name;
  Type i64, i32;
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
