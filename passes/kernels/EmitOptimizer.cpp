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

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace boa {
#define GEN_PASS_DEF_EMITOPTIMIZER
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

constexpr llvm::StringLiteral kElementsFunction = "boa_update_elements";

class OptimizerEmitter {
public:
  OptimizerEmitter(ModuleOp module, OptimizerOp optimizer)
      : module(module), optimizer(optimizer), builder(module.getBodyRegion()),
        loc(optimizer.getLoc()), body(builder, loc), states(optimizer.getStateTypes()),
        scalars(optimizer.getScalarCount()) {
    pointer = LLVM::LLVMPointerType::get(module.getContext());
    i8 = builder.getIntegerType(8);
    i16 = builder.getI16Type();
    i32 = builder.getI32Type();
    i64 = builder.getI64Type();
    f32 = builder.getF32Type();
    hasLow = llvm::any_of(module.getOps<StorageOp>(),
                          [](StorageOp storage) { return storage.getRole() == Role::master; });
  }

  void emit() {
    emitPrepare();
    emitElements();
    emitUpdate();
  }

private:
  using Carried = llvm::function_ref<Value(Value at, Value carried)>;

  func::FuncOp begin(StringRef name, ArrayRef<Type> inputs, ArrayRef<Type> results) {
    builder.setInsertionPointToEnd(module.getBody());
    auto func = func::FuncOp::create(builder, loc, name, builder.getFunctionType(inputs, results));
    builder.setInsertionPointToStart(func.addEntryBlock());
    return func;
  }
  Value constant(int64_t value) { return body.integer(value, 64); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value mul(Value a, int64_t b) { return arith::MulIOp::create(builder, loc, a, constant(b)); }
  Value divide(Value a, int64_t b) { return arith::DivUIOp::create(builder, loc, a, constant(b)); }
  Value at(Value base, Type element, Value index) {
    return LLVM::GEPOp::create(builder, loc, pointer, element, base, ArrayRef<LLVM::GEPArg>(index));
  }
  Value load(Value base, Type element, Value index) {
    return LLVM::LoadOp::create(builder, loc, element, at(base, element, index));
  }
  void store(Value value, Value base, Value index) {
    LLVM::StoreOp::create(builder, loc, value, at(base, value.getType(), index));
  }
  /// Runs `inner` for each `step`th number in [from, to), with a carried value.
  Value loop(Value from, Value to, int64_t step, Value carried, Carried inner) {
    auto op = scf::ForOp::create(builder, loc, from, to, constant(step), carried);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(op.getBody());
    scf::YieldOp::create(builder, loc, inner(op.getInductionVar(), op.getRegionIterArg(0)));
    return op.getResult(0);
  }
  void loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> inner) {
    auto op = scf::ForOp::create(builder, loc, from, to, constant(step));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(op.getBody());
    inner(op.getInductionVar());
  }
  /// Adds the bits of a value minus itself, which are zero if it is finite.
  Value checkFinite(Value bits, Value value) {
    Value zero = arith::SubFOp::create(builder, loc, value, value);
    return arith::OrIOp::create(builder, loc, bits, body.bitsOf(zero));
  }

  void emitPrepare() {
    func::FuncOp func = begin(kPrepareFunction, {i64, pointer}, {});
    SmallVector<Value> arguments{
        arith::SIToFPOp::create(builder, loc, builder.getF64Type(), func.getArgument(0))};
    for (NamedAttribute value : optimizer.getHyperparameters())
      arguments.push_back(
          arith::ConstantOp::create(builder, loc, cast<FloatAttr>(value.getValue())));
    for (auto [i, value] : llvm::enumerate(body.clone(optimizer.getPrepare(), arguments)))
      store(value, func.getArgument(1), constant(int64_t(i)));
    func::ReturnOp::create(builder, loc);
  }

  /// Emits a function of (weights, low, gradient, states..., scale, rate, decay, scalars..., begin,
  /// end, seed). It returns not 0 if a result is not finite. Codes are decoded before.
  void emitElements() {
    SmallVector<Type> inputs(3 + states.size(), pointer);
    inputs.append(3 + scalars, f32);
    inputs.append({i64, i64, i32});
    func::FuncOp func = begin(kElementsFunction, inputs, i32);
    func.setPrivate();
    func->setAttr("llvm.linkage",
                  LLVM::LinkageAttr::get(func.getContext(), LLVM::Linkage::Internal));
    for (unsigned i = 0; i < 3 + states.size(); ++i)
      func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    auto arguments = func.getArguments();
    Value weights = arguments[0], low = arguments[1], gradient = arguments[2];
    auto memory = arguments.slice(3, states.size());
    auto numbers = arguments.slice(3 + states.size(), 3 + scalars);
    const Value begin = arguments.drop_back(2).back(), end = arguments.drop_back().back();
    const Value seed = arguments.back();
    Value bad = loop(begin, end, 1, body.integer(0), [&](Value i, Value bits) {
      Value g = arith::MulFOp::create(builder, loc, load(gradient, f32, i), numbers[0]);
      Value w = hasLow ? body.joinMaster(load(weights, i16, i), load(low, i16, i))
                       : load(weights, f32, i);
      SmallVector<Value> operands{w, g, numbers[1], numbers[2]};
      for (auto [state, address] : llvm::zip(states, memory))
        operands.push_back(state.second.isBF16() ? body.widen(load(address, i16, i))
                                                 : load(address, f32, i));
      llvm::append_range(operands, numbers.drop_front(3));
      SmallVector<Value> results = body.clone(optimizer.getUpdate(), operands);
      for (auto [number, state] : llvm::enumerate(states)) {
        Value value = results[1 + number];
        bits = checkFinite(bits, value);
        if (state.second.isBF16()) {
          Value element = arith::TruncIOp::create(builder, loc, i32, i);
          value = body.narrow(value, body.random(seed, element, number));
        }
        store(value, memory[number], i);
      }
      bits = checkFinite(bits, results[0]);
      if (hasLow) {
        auto [upper, lower] = body.splitMaster(results[0]);
        store(upper, weights, i);
        store(lower, low, i);
      } else {
        store(results[0], weights, i);
      }
      return bits;
    });
    func::ReturnOp::create(builder, loc, bad);
  }

  /// The arguments of boa_optimizer.update.
  struct Arguments {
    Value weights, low, gradient, states, scalars, scale, ranges, count, begin, end, elements, seed;
  };

  void emitUpdate() {
    func::FuncOp func = begin(
        kUpdateFunction,
        {pointer, pointer, pointer, pointer, pointer, f32, pointer, i64, i64, i64, i64, i32}, i32);
    auto list = func.getArguments();
    const Arguments a{list[0], list[1], list[2], list[3], list[4],  list[5],
                      list[6], list[7], list[8], list[9], list[10], list[11]};
    SmallVector<Value> memory, loaded;
    for (size_t i = 0; i < states.size(); ++i)
      memory.push_back(load(a.states, pointer, constant(int64_t(i))));
    for (unsigned i = 0; i < scalars; ++i)
      loaded.push_back(load(a.scalars, f32, constant(i)));
    const bool coded = llvm::any_of(states, [](auto &state) { return isCode(state.second); });
    Value zero = body.integer(0);
    Value bad = coded ? updateParts(a, memory, loaded)
                      : updateRanges(a, memory, loaded, a.begin, a.end, zero);
    Value finite = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, bad, zero);
    func::ReturnOp::create(builder, loc,
                           arith::ExtUIOp::create(builder, loc, i32, finite).getResult());
  }

  /// Updates elements [from, to), range by range.
  Value updateRanges(const Arguments &a, ValueRange memory, ValueRange loaded, Value from, Value to,
                     Value bad) {
    Type range = LLVM::LLVMStructType::getLiteral(module.getContext(), {i64, i64, f32, f32});
    return loop(constant(0), a.count, 1, bad, [&](Value r, Value bits) {
      auto member = [&](int32_t which, Type type) -> Value {
        Value address = LLVM::GEPOp::create(builder, loc, pointer, range, a.ranges,
                                            ArrayRef<LLVM::GEPArg>{r, which});
        return LLVM::LoadOp::create(builder, loc, type, address);
      };
      Value first = arith::MaxSIOp::create(builder, loc, member(0, i64), from);
      Value last = arith::MinSIOp::create(builder, loc, member(1, i64), to);
      SmallVector<Value> operands{a.weights, a.low, a.gradient};
      llvm::append_range(operands, memory);
      operands.append({a.scale, member(2, f32), member(3, f32)});
      llvm::append_range(operands, loaded);
      operands.append({first, last, a.seed});
      auto call = func::CallOp::create(builder, loc, kElementsFunction, i32, operands);
      return Value(arith::OrIOp::create(builder, loc, bits, call.getResult(0)));
    });
  }

  Value updateParts(const Arguments &a, ArrayRef<Value> memory, ValueRange loaded) {
    SmallVector<Value> scratch;
    for (auto [state, address] : llvm::zip(states, memory))
      scratch.push_back(isCode(state.second)
                            ? LLVM::AllocaOp::create(builder, loc, pointer, f32,
                                                     constant(BOA_UPDATE_PART), /*alignment=*/64)
                                  .getResult()
                            : address);
    return loop(a.begin, a.end, BOA_UPDATE_PART, body.integer(0), [&](Value part, Value bits) {
      Value end = add(part, constant(BOA_UPDATE_PART));
      // As if they began with the chunk.
      SmallVector<Value> decoded(scratch);
      Value back = arith::SubIOp::create(builder, loc, constant(0), part);
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
    loop(from, to, BOA_STATE_BLOCK, [&](Value block) {
      Value scale = load(scales, f32, divide(block, BOA_STATE_BLOCK));
      loop(block, add(block, constant(BOA_STATE_BLOCK)), 1,
           [&](Value i) { store(body.decode(type, load(codes, i8, i), scale), decoded, i); });
    });
  }

  void encodePart(Type type, Value codes, const Arguments &a, Value decoded, Value from, Value to,
                  unsigned number) {
    Value scales = scalesOf(codes, a.elements);
    loop(from, to, BOA_STATE_BLOCK, [&](Value block) {
      Value end = add(block, constant(BOA_STATE_BLOCK));
      Value most = loop(block, end, 1, body.integer(0), [&](Value i, Value bits) {
        Value size = body.magnitude(load(decoded, f32, i));
        return Value(arith::MaxUIOp::create(builder, loc, bits, size));
      });
      Value scale = body.floatOf(most);
      store(scale, scales, divide(block, BOA_STATE_BLOCK));
      loop(block, end, 1, [&](Value i) {
        Value element = arith::TruncIOp::create(builder, loc, i32, i);
        Value random = body.random(a.seed, element, number);
        store(body.encode(type, load(decoded, f32, i), scale, random), codes, i);
      });
    });
  }

  ModuleOp module;
  OptimizerOp optimizer;
  OpBuilder builder;
  Location loc;
  UpdateBody body;
  SmallVector<std::pair<StringRef, Type>> states;
  const unsigned scalars;
  Type pointer, i8, i16, i32, i64, f32;
  bool hasLow = false;
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
