//===- EmitUpdates.cpp - The optimizer as functions of the device ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Updates have the body of --kernel-emit-optimizer, and norms the order of sums of
// runtime/kernels/norm.cpp, so both make the host's bits. What the functions take is in
// runtime/abi/cuda_updates.h. Assumes the device's module, which --cuda-outline-launches makes.
//
//===----------------------------------------------------------------------===//

#include "dialect/Config.h"
#include "passes/kernels/UpdateBody.h"
#include "passes/target/cuda/CudaPasses.h"
#include "passes/target/cuda/EmitGroups.h"
#include "runtime/abi/cuda_updates.h"
#include "runtime/abi/optimizer.h"

namespace boa {
#define GEN_PASS_DEF_CUDAEMITUPDATES
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;
using namespace boa::cuda;

namespace {

using Predicate = CodeBuilder::Predicate;

static_assert(kChunkUnit % (kUpdateThreads * kUpdateElements) == 0,
              "a chunk is whole blocks of threads");
/// The number of threads that update one block of codes.
constexpr int64_t kThreadsOfBlock = BOA_STATE_BLOCK / kUpdateElements;
static_assert(kUpdateThreads % kThreadsOfBlock == 0);

/// Chunks and slots begin at multiples of more; the flag of an update of so much.
SmallVector<DeviceArgument> argumentsOf(ArrayRef<Type> types) {
  return llvm::map_to_vector(types,
                             [](Type type) { return DeviceArgument{type, kMemoryAlignment}; });
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

/// Emits the function update_GROUP.
class UpdateEmitter {
public:
  UpdateEmitter(ModuleOp module, GroupOp group)
      : group(group), optimizer(findOptimizer(module)), train(Config(module).train),
        elements(group.getChunkElements()), states(optimizer.getStateTypes()),
        hasLow(findStorage(module, Role::master, group.getSymName())) {}

  void emit(gpu::GPUModuleOp device) {
    Builder types(group.getContext());
    auto chunkOf = [&](Type type) { return MemRefType::get({elements}, type); };
    Type f32 = types.getF32Type(), i16 = types.getI16Type(), i32 = types.getI32Type();
    SmallVector<Type> inputs{MemRefType::get({kUpdateScalars + optimizer.getScalarCount()}, f32),
                             MemRefType::get({1}, i32), chunkOf(hasLow ? i16 : f32)};
    if (hasLow)
      inputs.push_back(chunkOf(i16));
    for (auto [name, type] : states) {
      inputs.push_back(chunkOf(isCode(type)    ? types.getIntegerType(8)
                               : type.isBF16() ? Type(i16)
                                               : Type(f32)));
      if (isCode(type))
        inputs.push_back(MemRefType::get({elements / BOA_STATE_BLOCK}, f32));
    }
    inputs.push_back(chunkOf(f32));
    SmallVector<Type> shared;
    if (llvm::any_of(states, [](auto &state) { return isCode(state.second); }))
      shared.push_back(getWorkgroupType({kUpdateThreads}, i32));
    FunctionBuilder builder(device, group.getLoc(),
                            DeviceName((kUpdatePrefix + getGroupName(group.getSymName())).str()),
                            argumentsOf(inputs), shared,
                            {elements / (kUpdateThreads * kUpdateElements), 1, 1}, kUpdateThreads);
    b = &builder;
    emitBody();
    builder.finish();
  }

private:
  /// The values of one element. A state in 8 bits is decoded.
  struct Element {
    Value index, weight, low, gradient;
    SmallVector<Value> states;
  };

  /// Emits all reads, then all writes: accesses side by side become one.
  void emitBody() {
    unsigned next = 2;
    Value weights = b->argument(next++), lows = hasLow ? b->argument(next++) : Value();
    SmallVector<Value> memory, scales;
    for (auto [name, type] : states) {
      memory.push_back(b->argument(next++));
      scales.push_back(isCode(type) ? b->argument(next++) : Value());
    }
    Value gradients = b->argument(next);
    thread = b->getThreadId();
    Value place = b->add(b->mul(b->getBlockId(), kUpdateThreads), thread);
    Value first = b->mul(place, kUpdateElements);
    // The elements of a thread are in one block of codes.
    Value block = b->div(place, kThreadsOfBlock);
    SmallVector<Value> scalars;
    for (unsigned i = 0; i < optimizer.getScalarCount(); ++i)
      scalars.push_back(b->load(b->argument(0), b->index(kUpdateScalars + i)));
    scale = constant(kGradientScale);
    Value position = positionOf(first),
          decay = perParam(position, [&](ParamOp param) {
            return float(param.getDecay(train.optimizer.weight_decay));
          });
    rate = constant(kRate);
    auto factorOf = [](ParamOp param) { return float(param.getRateFactor()); };
    if (llvm::any_of(group.getBody().getOps<ParamOp>(),
                     [&](ParamOp param) { return factorOf(param) != 1; }))
      rate = b->mulf(rate, perParam(position, factorOf));
    Value seed = b->bitsOf(constant(kSeed));
    SmallVector<Value> oldScales;
    for (Value of : scales)
      oldScales.push_back(of ? b->load(of, block) : Value());
    SmallVector<Element> all;
    for (int64_t i = 0; i < kUpdateElements; ++i) {
      Value index = b->add(first, i);
      Element element{
          index, b->load(weights, index), hasLow ? b->load(lows, index) : Value(), {}, {}};
      for (Value of : memory)
        element.states.push_back(b->load(of, index));
      element.gradient = b->load(gradients, index);
      all.push_back(std::move(element));
    }
    for (Element &element : all)
      update(element, decay, scalars, oldScales);
    for (auto [number, state] : llvm::enumerate(states)) {
      Value newScale;
      if (isCode(state.second)) {
        newScale = scaleOf(all, number);
        const Value to = scales[number];
        b->when(b->isZero(b->rem(thread, kThreadsOfBlock)), [&] { b->store(newScale, to, block); });
      }
      for (Element &element : all) {
        Value &value = element.states[number];
        if (state.second.isF32())
          continue;
        Value bits = random(*b, seed, b->toInteger(element.index), number);
        value =
            newScale ? encode(*b, state.second, value, newScale, bits) : narrow(*b, value, bits);
      }
    }
    for (const Element &element : all) {
      b->store(element.weight, weights, element.index);
      if (hasLow)
        b->store(element.low, lows, element.index);
      for (auto [value, of] : llvm::zip(element.states, memory))
        b->store(value, of, element.index);
    }
    b->when(notFinite, [&] { b->store(b->integer(1), b->argument(1), b->index(0)); });
  }

  Value constant(UpdateConstant which) { return b->load(b->argument(0), b->index(which)); }

  /// The position, in its entry, of a thread's first element.
  Value positionOf(Value first) {
    Value chunk = b->toIndex(b->bitsOf(constant(kChunkNumber)));
    return b->add(b->mul(chunk, elements), first);
  }

  /// A number of each parameter, for all elements of a thread. All of them are of one parameter,
  /// since parameters begin at larger multiples.
  Value perParam(Value position, llvm::function_ref<float(ParamOp)> numberOf) {
    Value selected;
    float last = 0;
    for (auto param : group.getBody().getOps<ParamOp>()) {
      const float number = numberOf(param);
      if (!selected)
        selected = b->number(number);
      else if (number != last)
        selected = b->select(b->isLess(position, group.getOffset(param.getSymName())), selected,
                             b->number(number));
      last = number;
    }
    return selected ? selected : b->number(0);
  }

  void update(Element &e, Value decay, ArrayRef<Value> scalars, ArrayRef<Value> scales) {
    Value weight = hasLow ? joinMaster(*b, e.weight, e.low) : e.weight;
    SmallVector<Value> operands{weight, b->mulf(e.gradient, scale), rate, decay};
    for (auto [number, state] : llvm::enumerate(states)) {
      Value value = e.states[number];
      operands.push_back(isCode(state.second)    ? decode(*b, state.second, value, scales[number])
                         : state.second.isBF16() ? widen(*b, value)
                                                 : value);
    }
    llvm::append_range(operands, scalars);
    SmallVector<Value> results = b->compute(optimizer.getUpdate().front(), operands);
    for (Value result : results)
      checkFinite(result);
    e.weight = results[0];
    if (hasLow)
      std::tie(e.weight, e.low) = splitMaster(*b, results[0]);
    e.states.assign(results.begin() + 1, results.end());
  }

  /// The greatest magnitude in the block of this thread.
  Value scaleOf(ArrayRef<Element> all, size_t number) {
    auto greater = [&](Value x, Value y) { return b->make<arith::MaxUIOp>(x, y); };
    Value most = magnitude(*b, all[0].states[number]);
    for (const Element &element : all.drop_front())
      most = greater(most, magnitude(*b, element.states[number]));
    Value memory = b->shared(0), lane = b->rem(thread, kThreadsOfBlock);
    b->barrier(); // the state before is read
    b->store(most, memory, thread);
    for (int64_t width = kThreadsOfBlock / 2; width > 0; width /= 2) {
      b->barrier();
      b->when(b->isLess(lane, width), [&] {
        Value other = b->load(memory, b->add(thread, width));
        b->store(greater(b->load(memory, thread), other), memory, thread);
      });
    }
    b->barrier();
    Value begin = b->sub(thread, lane);
    return b->floatOf(b->load(memory, begin));
  }

  /// Notes in `notFinite` whether this value, or one before it, is not finite.
  void checkFinite(Value value) {
    Value exponent = b->integer(0x7f800000);
    Value is = b->compare(Predicate::eq, b->both(b->bitsOf(value), exponent), exponent);
    notFinite = notFinite ? b->either(notFinite, is) : is;
  }

  GroupOp group;
  OptimizerOp optimizer;
  const TrainSettings train;
  const int64_t elements;
  SmallVector<std::pair<StringRef, Type>> states;
  const bool hasLow;
  FunctionBuilder *b = nullptr;
  Value thread, scale, rate, notFinite;
};

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// The iterations of a lane whose elements are read at once.
constexpr int64_t kUnrolled = 8;

/// Emits the function norm_GROUP.
void emitNorm(gpu::GPUModuleOp device, GroupOp group) {
  int64_t count = 0;
  for (auto param : group.getBody().getOps<ParamOp>())
    count += SumBlocks(param.getType().getNumElements());
  Builder types(group.getContext());
  Type f64 = types.getF64Type();
  FunctionBuilder b(
      device, group.getLoc(), DeviceName((kNormPrefix + getGroupName(group.getSymName())).str()),
      argumentsOf({MemRefType::get({group.getPaddedElements()}, types.getF32Type()),
                   MemRefType::get({count}, f64)}),
      {getWorkgroupType({kNormThreads}, f64)},
      {int64_t(llvm::divideCeil(count, kNormThreads / kSumLanes)), 1, 1}, kNormThreads);
  Value thread = b.getThreadId(), place = b.add(b.mul(b.getBlockId(), kNormThreads), thread);
  Value lane = b.rem(place, kSumLanes), which = b.div(place, kSumLanes);

  // Where the block begins and its parameter ends; of none, behind the last, nowhere.
  Value shift, end;
  int64_t before = 0;
  for (auto param : group.getBody().getOps<ParamOp>()) {
    int64_t offset = group.getOffset(param.getSymName()), size = param.getType().getNumElements();
    Value own = b.index(offset - before * kSumBlock), ownEnd = b.index(offset + size);
    shift = shift ? b.select(b.isLess(which, before), shift, own) : own;
    end = end ? b.select(b.isLess(which, before), end, ownEnd) : ownEnd;
    before += SumBlocks(size);
  }
  Value begin = b.add(b.mul(which, kSumBlock), shift);
  end = b.make<arith::MinSIOp>(end, b.add(begin, kSumBlock));

  auto addSquares = [&](Value from, int64_t times, Value sum) {
    SmallVector<Value> values;
    for (int64_t i = 0; i < times; ++i)
      values.push_back(b.load(b.argument(0), b.add(from, i * kSumLanes)));
    for (Value value : values) {
      Value wide = b.make<arith::ExtFOp>(f64, value);
      sum = b.addf(sum, b.mulf(wide, wide));
    }
    return sum;
  };
  constexpr int64_t kStep = kUnrolled * kSumLanes;
  Value zero = b.make<arith::ConstantOp>(b.getF64FloatAttr(0));
  Value first = b.add(begin, lane), whole = b.add(end, -(kStep - kSumLanes));
  SmallVector<Value> carried =
      b.loop(first, whole, kStep, {zero, first}, [&](Value at, SmallVector<Value> &next) {
        next[0] = addSquares(at, kUnrolled, next[0]);
        next[1] = b.add(at, kStep);
      });
  Value sum =
      b.loop(carried[1], end, kSumLanes, {carried[0]},
             [&](Value at, SmallVector<Value> &next) { next[0] = addSquares(at, 1, next[0]); })[0];

  Value memory = b.shared(0);
  b.store(sum, memory, thread);
  for (int64_t width = kSumLanes / 2; width > 0; width /= 2) {
    b.barrier();
    b.when(b.isLess(lane, width), [&] {
      Value other = b.load(memory, b.add(thread, width));
      b.store(b.addf(b.load(memory, thread), other), memory, thread);
    });
  }
  // Of the first lane its own last sum: nobody else wrote there.
  b.when(b.both(b.isZero(lane), b.isLess(which, count)),
         [&] { b.store(b.load(memory, thread), b.argument(1), which); });
  b.finish();
}

struct CudaEmitUpdates : boa::impl::CudaEmitUpdatesBase<CudaEmitUpdates> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto device = module.lookupSymbol<gpu::GPUModuleOp>(kDeviceModule);
    if (!device || Config(module).updateSpace() != Space::device)
      return;
    for (auto group : module.getOps<GroupOp>()) {
      if (!findStorage(module, Role::gradients, group.getSymName()))
        continue; // nothing is trained
      UpdateEmitter(module, group).emit(device);
      emitNorm(device, group);
    }
  }
};

} // namespace
