//===- EmitOptimizer.cpp - --kernel-emit-optimizer ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of runtime/abi/optimizer.h, for the host of every target. The loop over elements
// is a function of its own whose pointers are `noalias`, so that LLVM vectorises it. States in 8
// bits are decoded for a part of the chunk, updated in f32, and encoded again: a block of codes
// does not end where a parameter does.
//
//===----------------------------------------------------------------------===//
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/UpdateBody.h"
#include "runtime/abi/optimizer.h"

namespace boa {
#define GEN_PASS_DEF_EMITOPTIMIZER
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

constexpr llvm::StringLiteral kElementsFunction = "boa_update_elements";

class OptimizerEmitter : CodeBuilder {
public:
  OptimizerEmitter(ModuleOp module, OptimizerOp optimizer)
      : CodeBuilder(OpBuilder(module.getBodyRegion()), optimizer.getLoc()), module(module),
        optimizer(optimizer), states(optimizer.getStateTypes()),
        scalars(optimizer.getScalarCount()), i8(getI8Type()), i16(getI16Type()), i32(getI32Type()),
        i64(getI64Type()), f32(getF32Type()),
        hasLow(llvm::any_of(module.getOps<StorageOp>(),
                            [](StorageOp storage) { return storage.getRole() == Role::master; })) {}

  void emit() {
    emitPrepare();
    emitElements();
    emitUpdate();
  }

private:
  func::FuncOp begin(StringRef name, ArrayRef<Type> inputs, ArrayRef<Type> results) {
    setInsertionPointToEnd(module.getBody());
    auto func = func::FuncOp::create(*this, name, getFunctionType(inputs, results));
    setInsertionPointToStart(func.addEntryBlock());
    return func;
  }
  Value constant(int64_t value) { return integer(value, 64); }
  /// Runs `inner` for each `step`th number in [from, to), with bits that are put together.
  Value loopBits(Value from, Value to, int64_t step, Value bits,
                 llvm::function_ref<Value(Value, Value)> inner) {
    return loop(from, to, step, {bits},
                [&](Value i, Values &carried) { carried[0] = inner(i, carried[0]); })[0];
  }
  void loopOver(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> inner) {
    loop(from, to, step, {}, [&](Value i, Values &) { inner(i); });
  }
  /// Adds the bits of a value minus itself, which are zero if it is finite.
  Value checkFinite(Value bits, Value value) { return either(bits, bitsOf(subf(value, value))); }

  void emitPrepare() {
    func::FuncOp func = begin(kPrepareFunction, {i64, pointer()}, {});
    Values arguments{make<arith::SIToFPOp>(getF64Type(), func.getArgument(0))};
    for (NamedAttribute value : optimizer.getHyperparameters())
      arguments.push_back(make<arith::ConstantOp>(cast<FloatAttr>(value.getValue())));
    Values results = compute(optimizer.getPrepare().front(), arguments);
    for (auto [i, value] : llvm::enumerate(results))
      storeAt(value, func.getArgument(1), constant(int64_t(i)));
    func::ReturnOp::create(*this);
  }

  /// Emits a function of (weights, low, gradient, states..., scale, rate, decay, scalars..., begin,
  /// end, seed). It returns not 0 if a result is not finite. Codes are decoded before.
  void emitElements() {
    SmallVector<Type> inputs(3 + states.size(), pointer());
    inputs.append(3 + scalars, f32);
    inputs.append({i64, i64, i32});
    func::FuncOp func = begin(kElementsFunction, inputs, i32);
    func.setPrivate();
    func->setAttr("llvm.linkage",
                  LLVM::LinkageAttr::get(func.getContext(), LLVM::Linkage::Internal));
    for (unsigned i = 0; i < 3 + states.size(); ++i)
      func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), getUnitAttr());
    auto arguments = func.getArguments();
    Value weights = arguments[0], low = arguments[1], gradient = arguments[2];
    auto memory = arguments.slice(3, states.size());
    auto numbers = arguments.slice(3 + states.size(), 3 + scalars);
    const Value begin = arguments.drop_back(2).back(), end = arguments.drop_back().back();
    const Value seed = arguments.back();
    Value bad = loopBits(begin, end, 1, integer(0), [&](Value i, Value bits) {
      Value g = mulf(loadAt(gradient, f32, i), numbers[0]);
      Value w = hasLow ? joinMaster(*this, loadAt(weights, i16, i), loadAt(low, i16, i))
                       : loadAt(weights, f32, i);
      Values operands{w, g, numbers[1], numbers[2]};
      for (auto [state, address] : llvm::zip(states, memory))
        operands.push_back(state.second.isBF16() ? widen(*this, loadAt(address, i16, i))
                                                 : loadAt(address, f32, i));
      llvm::append_range(operands, numbers.drop_front(3));
      Values results = compute(optimizer.getUpdate().front(), operands);
      for (auto [number, state] : llvm::enumerate(states)) {
        Value value = results[1 + number];
        bits = checkFinite(bits, value);
        if (state.second.isBF16()) {
          Value element = make<arith::TruncIOp>(i32, i);
          value = narrow(*this, value, random(*this, seed, element, number));
        }
        storeAt(value, memory[number], i);
      }
      bits = checkFinite(bits, results[0]);
      if (hasLow) {
        auto [upper, lower] = splitMaster(*this, results[0]);
        storeAt(upper, weights, i);
        storeAt(lower, low, i);
      } else {
        storeAt(results[0], weights, i);
      }
      return bits;
    });
    func::ReturnOp::create(*this, bad);
  }

  /// The arguments of boa_optimizer.update.
  struct Arguments {
    Value weights, low, gradient, states, scalars, scale, ranges, count, begin, end, elements, seed;
  };

  void emitUpdate() {
    func::FuncOp func = begin(kUpdateFunction,
                              {pointer(), pointer(), pointer(), pointer(), pointer(), f32,
                               pointer(), i64, i64, i64, i64, i32},
                              i32);
    auto list = func.getArguments();
    const Arguments a{list[0], list[1], list[2], list[3], list[4],  list[5],
                      list[6], list[7], list[8], list[9], list[10], list[11]};
    Values memory, loaded;
    for (size_t i = 0; i < states.size(); ++i)
      memory.push_back(loadAt(a.states, pointer(), constant(int64_t(i))));
    for (unsigned i = 0; i < scalars; ++i)
      loaded.push_back(loadAt(a.scalars, f32, constant(i)));
    const bool coded = llvm::any_of(states, [](auto &state) { return isCode(state.second); });
    Value bad = coded ? updateParts(a, memory, loaded)
                      : updateRanges(a, memory, loaded, a.begin, a.end, integer(0));
    func::ReturnOp::create(*this, make<arith::ExtUIOp>(i32, isZero(bad)));
  }

  /// Updates elements [from, to), range by range.
  Value updateRanges(const Arguments &a, ValueRange memory, ValueRange loaded, Value from, Value to,
                     Value bad) {
    Type range = LLVM::LLVMStructType::getLiteral(context, {i64, i64, f32, f32});
    return loopBits(constant(0), a.count, 1, bad, [&](Value r, Value bits) {
      auto member = [&](int32_t which, Type type) -> Value {
        Value address = LLVM::GEPOp::create(*this, pointer(), range, a.ranges,
                                            ArrayRef<LLVM::GEPArg>{r, which});
        return LLVM::LoadOp::create(*this, type, address);
      };
      Value first = make<arith::MaxSIOp>(member(0, i64), from);
      Value last = make<arith::MinSIOp>(member(1, i64), to);
      Values operands{a.weights, a.low, a.gradient};
      llvm::append_range(operands, memory);
      operands.append({a.scale, member(2, f32), member(3, f32)});
      llvm::append_range(operands, loaded);
      operands.append({first, last, a.seed});
      auto call = func::CallOp::create(*this, kElementsFunction, i32, operands);
      return either(bits, call.getResult(0));
    });
  }

  Value updateParts(const Arguments &a, ArrayRef<Value> memory, ValueRange loaded) {
    Values scratch(memory);
    for (auto [state, place] : llvm::zip(states, scratch))
      if (isCode(state.second))
        place = LLVM::AllocaOp::create(*this, pointer(), f32, constant(BOA_UPDATE_PART),
                                       /*alignment=*/64);
    return loopBits(a.begin, a.end, BOA_UPDATE_PART, integer(0), [&](Value part, Value bits) {
      Value end = add(part, BOA_UPDATE_PART);
      // As if they began with the chunk.
      Values decoded(scratch);
      Value back = sub(constant(0), part);
      for (auto [number, state] : llvm::enumerate(states))
        if (isCode(state.second)) {
          decoded[number] = at(scratch[number], f32, back);
          decodePart(state.second, memory[number], a.elements, decoded[number], part, end);
        }
      bits = updateRanges(a, decoded, loaded, part, end, bits);
      for (auto [number, state] : llvm::enumerate(states))
        if (isCode(state.second))
          encodePart(state.second, memory[number], a, decoded[number], part, end, number);
      return bits;
    });
  }

  Value scalesOf(Value codes, Value elements) { return at(codes, i8, elements); }

  void decodePart(Type type, Value codes, Value elements, Value decoded, Value from, Value to) {
    Value scales = scalesOf(codes, elements);
    loopOver(from, to, BOA_STATE_BLOCK, [&](Value block) {
      Value scale = loadAt(scales, f32, div(block, BOA_STATE_BLOCK));
      loopOver(block, add(block, BOA_STATE_BLOCK), 1, [&](Value i) {
        storeAt(decode(*this, type, loadAt(codes, i8, i), scale), decoded, i);
      });
    });
  }

  void encodePart(Type type, Value codes, const Arguments &a, Value decoded, Value from, Value to,
                  unsigned number) {
    Value scales = scalesOf(codes, a.elements);
    loopOver(from, to, BOA_STATE_BLOCK, [&](Value block) {
      Value end = add(block, BOA_STATE_BLOCK);
      Value most = loopBits(block, end, 1, integer(0), [&](Value i, Value bits) {
        return make<arith::MaxUIOp>(bits, magnitude(*this, loadAt(decoded, f32, i)));
      });
      Value scale = floatOf(most);
      storeAt(scale, scales, div(block, BOA_STATE_BLOCK));
      loopOver(block, end, 1, [&](Value i) {
        Value bits = random(*this, a.seed, make<arith::TruncIOp>(i32, i), number);
        storeAt(encode(*this, type, loadAt(decoded, f32, i), scale, bits), codes, i);
      });
    });
  }

  ModuleOp module;
  OptimizerOp optimizer;
  SmallVector<std::pair<StringRef, Type>> states;
  const unsigned scalars;
  const Type i8, i16, i32, i64, f32;
  const bool hasLow;
};

struct EmitOptimizer : boa::impl::EmitOptimizerBase<EmitOptimizer> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OptimizerOp optimizer = findOptimizer(module);
    bool updates = false;
    module.walk([&](UpdateOp update) { updates = true; });
    if (!updates)
      return;
    if (!optimizer || !optimizer.hasBody()) {
      module.emitError("expected a boa.optimizer with a body: the program updates weights");
      return signalPassFailure();
    }
    OptimizerEmitter(module, optimizer).emit();
  }
};

} // namespace
