//===- OutlineLoops.cpp - Loop bodies to functions on the pool ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each kernel.parallel of kernel @k, with views %v0, %v1 of memory used in
// its body (or rows of one):
//
//   @k          stores their addresses in an array on the stack and calls
//               boa_rt_parallel_for(count, grain, @k_part0, array)
//   @k_part0    (data, begin, end): loads the addresses, calls the loop
//   @k_loop0    (%p0 noalias, %p1 noalias, begin, end): the body
//
// Loops that do the same with other memory share them, also those of other kernels. So a backward
// pass computes a forward pass again by the forward pass's code.
//
// Assumes that all else that the body uses from outside can be computed again
// there: constants, globals, and views with static offsets.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/MemoryAccess.h"
#include "passes/kernels/RegionOutlining.h"
#include "passes/target/cpu/CpuPasses.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

namespace boa {
#define GEN_PASS_DEF_CPUOUTLINELOOPS
#include "passes/target/cpu/CpuPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

constexpr StringLiteral kParallelFor = "boa_rt_parallel_for";

struct CpuOutlineLoops : boa::impl::CpuOutlineLoopsBase<CpuOutlineLoops> {
  void runOnOperation() override {
    distinct = {};
    functions = 0;
    int64_t count = 0;
    for (auto kernel : llvm::to_vector(getOperation().getOps<KernelOp>())) {
      SmallVector<kernel::ParallelOp> loops(kernel.getBody().front().getOps<kernel::ParallelOp>());
      count += int64_t(loops.size());
      for (auto [i, loop] : llvm::enumerate(loops))
        if (failed(outline(kernel, loop, i)))
          return signalPassFailure();
    }
    remark::passed(getOperation().getLoc(),
                   remark::RemarkOpts::name("outline-loops").category("boa-kernel"))
        << remark::metric("loops", count) << remark::metric("functions", functions);
  }

  LogicalResult outline(KernelOp kernel, kernel::ParallelOp loop, unsigned number) {
    FailureOr<Captures> captures = Captures::get(loop.getBodyRegion());
    if (failed(captures))
      return failure();
    std::string name = kernel.getSymName().str();
    std::string loopName = name + "_loop" + std::to_string(number);
    func::FuncOp body = distinct.findOrInsert(makeLoop(kernel, loop, *captures, loopName));
    functions += body.getSymName() == loopName;
    func::FuncOp part = distinct.findOrInsert(
        makePart(kernel, body, captures->memory.size(), name + "_part" + std::to_string(number)));
    makeCall(loop, *captures, part);
    loop.erase();
    return success();
  }

  /// Makes the function of the loop itself.
  func::FuncOp makeLoop(KernelOp kernel, kernel::ParallelOp loop, Captures &captures,
                        StringRef name) {
    Location loc = loop.getLoc();
    OpBuilder builder(kernel);
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    SmallVector<Type> inputs(captures.memory.size(), pointer);
    inputs.append(2, builder.getIndexType());
    auto func = func::FuncOp::create(builder, loc, name, builder.getFunctionType(inputs, {}));
    makeInternal(func);
    Block *entry = func.addEntryBlock();
    builder.setInsertionPointToStart(entry);
    IRMapping mapping;
    for (auto [i, memory] : llvm::enumerate(captures.memory)) {
      func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
      func.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(memory.getAlignment(kMemoryAlignment)));
      func.setArgAttr(i, LLVM::LLVMDialect::getNoUndefAttrName(), builder.getUnitAttr());
      mapping.map(
          memory.memref,
          kernel::ViewOp::create(builder, loc, memory.type, entry->getArgument(i), 0).getMemory());
    }
    for (Operation *op : captures.repeated)
      builder.clone(*op, mapping);
    unsigned count = captures.memory.size();
    mapping.map(loop.getBegin(), entry->getArgument(count));
    mapping.map(loop.getEnd(), entry->getArgument(count + 1));
    for (Operation &op : loop.getBodyRegion().front())
      builder.clone(op, mapping);
    func::ReturnOp::create(builder, loc);
    return func;
  }

  /// Makes the function that the pool calls: (data, begin, end).
  func::FuncOp makePart(KernelOp kernel, func::FuncOp body, unsigned views, StringRef name) {
    Location loc = body.getLoc();
    OpBuilder builder(kernel);
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    Type i64 = builder.getI64Type(), index = builder.getIndexType();
    auto func =
        func::FuncOp::create(builder, loc, name, builder.getFunctionType({pointer, i64, i64}, {}));
    makeInternal(func);
    Block *entry = func.addEntryBlock();
    builder.setInsertionPointToStart(entry);
    SmallVector<Value> operands;
    for (unsigned i = 0; i < views; ++i) {
      Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer, entry->getArgument(0),
                                       ArrayRef<LLVM::GEPArg>(i));
      operands.push_back(LLVM::LoadOp::create(builder, loc, pointer, slot));
    }
    for (unsigned i : {1, 2})
      operands.push_back(arith::IndexCastOp::create(builder, loc, index, entry->getArgument(i)));
    func::CallOp::create(builder, loc, body, operands);
    func::ReturnOp::create(builder, loc);
    return func;
  }

  /// Makes the call that replaces the loop.
  void makeCall(kernel::ParallelOp loop, Captures &captures, func::FuncOp part) {
    Location loc = loop.getLoc();
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    // The array is in the entry block: kernels are straight-line code.
    OpBuilder builder(loop);
    Type i64 = builder.getI64Type();
    Value size = LLVM::ConstantOp::create(builder, loc, i64,
                                          builder.getI64IntegerAttr(captures.memory.size()));
    Value array = LLVM::AllocaOp::create(builder, loc, pointer, pointer, size);
    for (auto [i, memory] : llvm::enumerate(captures.memory)) {
      Value address =
          kernel::offsetPointer(builder, loc, memory.base, builder.getI8Type(), memory.offset);
      Value slot =
          LLVM::GEPOp::create(builder, loc, pointer, pointer, array, ArrayRef<LLVM::GEPArg>(i));
      LLVM::StoreOp::create(builder, loc, address, slot);
    }
    auto callee = func::ConstantOp::create(builder, loc, part.getFunctionType(), part.getSymName());
    Value function =
        UnrealizedConversionCastOp::create(builder, loc, pointer, callee.getResult()).getResult(0);
    Value count = LLVM::ConstantOp::create(builder, loc, i64, loop.getCountAttr());
    Value grain = LLVM::ConstantOp::create(builder, loc, i64, loop.getGrainAttr());
    func::CallOp::create(builder, loc, declare(loop, {i64, i64, pointer, pointer}),
                         ValueRange{count, grain, function, array});
  }

  /// Lets LLVM inline and drop the function.
  void makeInternal(func::FuncOp func) {
    func.setPrivate();
    func->setAttr("llvm.linkage", LLVM::LinkageAttr::get(&getContext(), LLVM::Linkage::Internal));
  }

  func::FuncOp declare(kernel::ParallelOp loop, ArrayRef<Type> inputs) {
    if (auto func = getOperation().lookupSymbol<func::FuncOp>(kParallelFor))
      return func;
    OpBuilder builder = OpBuilder::atBlockBegin(getOperation().getBody());
    auto func = func::FuncOp::create(builder, loop.getLoc(), kParallelFor,
                                     builder.getFunctionType(inputs, {}));
    func.setPrivate();
    return func;
  }

  DistinctFunctions distinct; // loops and parts
  int64_t functions = 0;      // of loops
};

} // namespace
