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

#include "passes/kernels/CodeBuilder.h"
#include "passes/kernels/MemoryAccess.h"
#include "passes/kernels/RegionOutlining.h"
#include "passes/target/cpu/CpuPasses.h"

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
    remark::passed(getOperation().getLoc(), kernelRemark("outline-loops"))
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
    CodeBuilder b(OpBuilder(kernel), loop.getLoc());
    SmallVector<Type> inputs(captures.memory.size(), b.pointer());
    inputs.append(2, b.getIndexType());
    func::FuncOp func = begin(b, name, inputs);
    auto arguments = func.getArguments();
    IRMapping mapping;
    for (auto [i, memory] : llvm::enumerate(captures.memory)) {
      func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
      func.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(memory.getAlignment(kMemoryAlignment)));
      func.setArgAttr(i, LLVM::LLVMDialect::getNoUndefAttrName(), b.getUnitAttr());
      mapping.map(memory.memref,
                  kernel::ViewOp::create(b, memory.type, arguments[i], 0).getMemory());
    }
    for (Operation *op : captures.repeated)
      b.clone(*op, mapping);
    mapping.map(loop.getBodyRegion().getArguments(), arguments.take_back(2));
    for (Operation &op : loop.getBodyRegion().front())
      b.clone(op, mapping);
    func::ReturnOp::create(b);
    return func;
  }

  /// Makes the function that the pool calls: (data, begin, end).
  func::FuncOp makePart(KernelOp kernel, func::FuncOp body, unsigned views, StringRef name) {
    CodeBuilder b(OpBuilder(kernel), body.getLoc());
    func::FuncOp func = begin(b, name, {b.pointer(), b.getI64Type(), b.getI64Type()});
    CodeBuilder::Values operands;
    for (unsigned i = 0; i < views; ++i)
      operands.push_back(b.loadAt(func.getArgument(0), b.pointer(), i));
    for (Value bound : func.getArguments().drop_front())
      operands.push_back(b.toIndex(bound));
    func::CallOp::create(b, body, operands);
    func::ReturnOp::create(b);
    return func;
  }

  /// Makes the call that replaces the loop. The list is in the entry block: kernels are
  /// straight-line code.
  void makeCall(kernel::ParallelOp loop, Captures &captures, func::FuncOp part) {
    CodeBuilder b(OpBuilder(loop), loop.getLoc());
    Type i64 = b.getI64Type();
    Value list = b.makeList(captures.memory.size());
    for (auto [i, memory] : llvm::enumerate(captures.memory))
      b.storeAt(kernel::offsetPointer(b, b.getLoc(), memory.base, b.getI8Type(), memory.offset),
                list, int32_t(i));
    auto callee = func::ConstantOp::create(b, part.getFunctionType(), part.getSymName());
    Value function =
        UnrealizedConversionCastOp::create(b, b.pointer(), callee.getResult()).getResult(0);
    Value count = LLVM::ConstantOp::create(b, i64, loop.getCountAttr());
    Value grain = LLVM::ConstantOp::create(b, i64, loop.getGrainAttr());
    func::CallOp::create(b, declare(loop, {i64, i64, b.pointer(), b.pointer()}),
                         ValueRange{count, grain, function, list});
  }

  /// Begins a function that LLVM may inline and drop.
  static func::FuncOp begin(CodeBuilder &b, StringRef name, ArrayRef<Type> inputs) {
    auto func = func::FuncOp::create(b, name, b.getFunctionType(inputs, {}));
    func.setPrivate();
    func->setAttr("llvm.linkage", LLVM::LinkageAttr::get(b.getContext(), LLVM::Linkage::Internal));
    b.setInsertionPointToStart(func.addEntryBlock());
    return func;
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
