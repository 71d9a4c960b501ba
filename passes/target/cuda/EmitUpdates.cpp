//===- EmitUpdates.cpp - The optimizer as functions of the device ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of runtime/kernels/optimizer.cpp, of one element or lane a thread: the same operations
// in the same order, none of them fused, so the same bits. What the functions take is in
// runtime/abi/cuda_updates.h. Assumes the device's module, which
// --cuda-outline-launches makes.
//
//===----------------------------------------------------------------------===//

#include "dialect/Config.h"
#include "passes/target/cuda/CudaPasses.h"
#include "passes/target/cuda/EmitGroups.h"
#include "runtime/abi/cuda_updates.h"

#include "mlir/Dialect/Math/IR/Math.h"

namespace boa {
#define GEN_PASS_DEF_CUDAEMITUPDATES
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;
using namespace boa::cuda;

namespace {

using Predicate = arith::CmpIPredicate;

static_assert(kChunkUnit % (kUpdateThreads * kUpdateElements) == 0,
              "a chunk is whole blocks of threads");

/// The code of a thread in a function of its own.
class FunctionBuilder : public ThreadBuilder {
public:
  FunctionBuilder(gpu::GPUModuleOp device, Location loc, const Twine &name, ArrayRef<Type> inputs,
                  ArrayRef<Type> shared, int64_t blocks, int64_t threads)
      : ThreadBuilder(OpBuilder::atBlockEnd(device.getBody()), loc) {
    // Chunks and slots begin at multiples of more; the flag of an update of so much.
    SmallVector<DeviceArgument> arguments = llvm::map_to_vector(
        inputs, [](Type type) { return DeviceArgument{type, kMemoryAlignment}; });
    func =
        createDeviceFunction(*this, loc, name, arguments, shared, {blocks, 1, 1}, {threads, 1, 1});
    setInsertionPointToStart(&func.getBody().front());
    thread = make<gpu::ThreadIdOp>(gpu::Dimension::x);
    place = add(mul(make<gpu::BlockIdOp>(gpu::Dimension::x), threads), thread);
  }
  void finish() { gpu::ReturnOp::create(*this, loc); }

  Value argument(unsigned i) { return func.getArgument(i); }
  Value shared(unsigned i) { return func.getWorkgroupAttributions()[i]; }
  Value bitsOf(Value value) { return make<arith::BitcastOp>(getI32Type(), value); }

  Value thread, place; // in its block, and among all threads of the launch

private:
  gpu::GPUFuncOp func;
};

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

/// update_GROUP.
class UpdateEmitter {
public:
  UpdateEmitter(ModuleOp module, GroupOp group)
      : group(group), train(Config(module).train), elements(group.getChunkElements()) {
    StringRef name = group.getSymName();
    hasLow = bool(findStorage(module, Role::master, name));
    hasMomentum = bool(findStorage(module, Role::momentum, name));
    adamw = train.optimizer.kind == OptimizerKind::adamw;
  }

  void emit(gpu::GPUModuleOp device) {
    Builder types(group.getContext());
    auto chunkOf = [&](Type type) { return MemRefType::get({elements}, type); };
    Type f32 = types.getF32Type(), i16 = types.getI16Type(), i32 = types.getI32Type();
    SmallVector<Type> inputs{MemRefType::get({kUpdateConstants}, f32), MemRefType::get({1}, i32)};
    inputs.push_back(chunkOf(hasLow ? i16 : f32));
    if (hasLow)
      inputs.push_back(chunkOf(i16));
    inputs.append(hasMomentum + adamw, chunkOf(f32));
    inputs.push_back(chunkOf(f32));
    FunctionBuilder builder(device, group.getLoc(),
                            kUpdatePrefix + getGroupName(group.getSymName()), inputs, {},
                            elements / (kUpdateThreads * kUpdateElements), kUpdateThreads);
    b = &builder;
    emitBody();
    builder.finish();
  }

private:
  /// What there is of one element.
  struct Element {
    Value index, weight, low, momentum, variance, gradient;
  };

  /// All that is read, then all that is written: accesses side by side become one.
  void emitBody() {
    unsigned next = 2;
    Value weights = b->argument(next++), lows = hasLow ? b->argument(next++) : Value();
    Value momenta = hasMomentum ? b->argument(next++) : Value();
    Value variances = adamw ? b->argument(next++) : Value(), gradients = b->argument(next);
    Value first = b->mul(b->place, kUpdateElements);
    for (int32_t i = 0; i < kUpdateConstants; ++i)
      c[i] = b->load(b->argument(0), b->index(i));
    Value decay = decayAt(first);
    SmallVector<Element> all;
    auto read = [&](Value memref, Value index) {
      return memref ? b->load(memref, index) : Value();
    };
    for (int64_t i = 0; i < kUpdateElements; ++i) {
      Value index = b->add(first, i);
      all.push_back({index, read(weights, index), read(lows, index), read(momenta, index),
                     read(variances, index), read(gradients, index)});
    }
    for (Element &element : all)
      update(element, decay);
    auto write = [&](Value value, Value memref, Value index) {
      if (memref)
        b->store(value, memref, index);
    };
    for (const Element &element : all) {
      write(element.weight, weights, element.index);
      write(element.low, lows, element.index);
      write(element.momentum, momenta, element.index);
      write(element.variance, variances, element.index);
    }
    b->when(notFinite, [&] { b->store(b->integer(1), b->argument(1), b->index(0)); });
  }

  /// Of all elements of a thread: parameters begin at multiples of more.
  Value decayAt(Value first) {
    Value none = b->number(0);
    if (train.optimizer.weight_decay == 0)
      return none;
    Value some = c[kDecay];
    Value chunk = b->make<arith::IndexCastOp>(b->getIndexType(), b->bitsOf(c[kChunkNumber]));
    Value position = b->add(b->mul(chunk, elements), first), decay;
    bool last = false;
    for (auto param : group.getBody().getOps<ParamOp>()) {
      bool decays = param.getType().getRank() >= 2;
      if (!decay)
        decay = decays ? some : none;
      else if (decays != last)
        decay = b->select(b->isLess(position, group.getOffset(param.getSymName())), decay,
                          decays ? some : none);
      last = decays;
    }
    return decay ? decay : none;
  }

  void update(Element &e, Value decay) {
    Value gradient = b->mulf(e.gradient, c[kGradientScale]), weight = loadWeight(e), direction;
    if (adamw) {
      e.momentum = b->addf(b->mulf(c[kBeta1], e.momentum), b->mulf(c[kRest1], gradient));
      e.variance =
          b->addf(b->mulf(c[kBeta2], e.variance), b->mulf(c[kRest2], b->mulf(gradient, gradient)));
      Value root = b->make<math::SqrtOp>(b->mulf(e.variance, c[kCorrection2]));
      direction =
          b->make<arith::DivFOp>(b->mulf(e.momentum, c[kCorrection1]), b->addf(root, c[kEps]));
      look(e.variance);
    } else if (hasMomentum) {
      direction = e.momentum = b->addf(b->mulf(c[kMomentum], e.momentum), gradient);
    } else {
      direction = gradient;
    }
    weight = b->subf(weight, b->mulf(c[kRate], b->addf(direction, b->mulf(decay, weight))));
    look(adamw ? e.momentum : direction);
    look(weight);
    storeWeight(e, weight);
  }

  /// The master: JoinMaster of runtime/kernels/optimizer.h.
  Value loadWeight(const Element &e) {
    if (!hasLow)
      return e.weight;
    Type i32 = b->getI32Type();
    Value high = b->make<arith::ShLIOp>(b->make<arith::ExtUIOp>(i32, e.weight), b->integer(16));
    Value bits = b->add(high, b->make<arith::ExtSIOp>(i32, e.low));
    return b->make<arith::BitcastOp>(b->getF32Type(), bits);
  }
  /// Its halves: MasterHigh and MasterLow.
  void storeWeight(Element &e, Value weight) {
    e.weight = weight;
    if (!hasLow)
      return;
    Type i16 = b->getI16Type();
    Value bits = b->bitsOf(weight), sixteen = b->integer(16);
    Value high = b->make<arith::ShRUIOp>(b->add(bits, b->integer(0x8000)), sixteen);
    Value low = b->make<arith::SubIOp>(bits, b->make<arith::ShLIOp>(high, sixteen));
    e.weight = b->make<arith::TruncIOp>(i16, high);
    e.low = b->make<arith::TruncIOp>(i16, low);
  }

  /// Whether this or another before is not finite.
  void look(Value value) {
    Value exponent = b->integer(0x7f800000);
    Value is = b->compare(Predicate::eq, b->both(b->bitsOf(value), exponent), exponent);
    notFinite = notFinite ? b->make<arith::OrIOp>(notFinite, is) : is;
  }

  GroupOp group;
  const TrainSettings train;
  const int64_t elements;
  bool hasLow, hasMomentum, adamw;
  FunctionBuilder *b = nullptr;
  Value c[kUpdateConstants], notFinite;
};

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// Iterations of a lane whose elements are read at once.
constexpr int64_t kUnrolled = 8;

/// norm_GROUP.
void emitNorm(gpu::GPUModuleOp device, GroupOp group) {
  int64_t count = 0;
  for (auto param : group.getBody().getOps<ParamOp>())
    count += SumBlocks(param.getType().getNumElements());
  Builder types(group.getContext());
  Type f64 = types.getF64Type();
  FunctionBuilder b(device, group.getLoc(), kNormPrefix + getGroupName(group.getSymName()),
                    {MemRefType::get({group.getPaddedElements()}, types.getF32Type()),
                     MemRefType::get({count}, f64)},
                    {getWorkgroupType({kNormThreads}, f64)},
                    llvm::divideCeil(count, kNormThreads / kSumLanes), kNormThreads);
  Value lane = b.rem(b.place, kSumLanes), which = b.div(b.place, kSumLanes);

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
  b.store(sum, memory, b.thread);
  for (int64_t width = kSumLanes / 2; width > 0; width /= 2) {
    b.barrier();
    b.when(b.isLess(lane, width), [&] {
      Value other = b.load(memory, b.add(b.thread, width));
      b.store(b.addf(b.load(memory, b.thread), other), memory, b.thread);
    });
  }
  // Of the first lane its own last sum: nobody else wrote there.
  b.when(b.both(b.isZero(lane), b.isLess(which, count)),
         [&] { b.store(b.load(memory, b.thread), b.argument(1), which); });
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
