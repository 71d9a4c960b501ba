//===- KernelPipeline.cpp - From compute bodies to memory -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPipeline.h"
#include "passes/kernels/KernelPasses.h"

#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/TilingInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

#include <utility>

using namespace mlir;

void boa::registerKernelDialects(DialectRegistry &registry) {
  registry.insert<kernel::KernelDialect, arith::ArithDialect, bufferization::BufferizationDialect,
                  cf::ControlFlowDialect, func::FuncDialect, linalg::LinalgDialect,
                  LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                  tensor::TensorDialect, vector::VectorDialect>();
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerSubsetOpInterfaceExternalModels(registry);
  linalg::registerTilingInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

void boa::applyUntilNoneMatches(Operation *op, RewritePatternSet patterns) {
  GreedyRewriteConfig config;
  config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
  // Fails at a limit only.
  (void)applyPatternsGreedily(op, std::move(patterns), config);
}

void boa::buildKernelPipeline(OpPassManager &pm, const RowBlocks &blocks) {
  auto each = [&](std::unique_ptr<Pass> pass) { pm.addNestedPass<KernelOp>(std::move(pass)); };
  // Whatever is stored in bf16 is computed in f32.
  each(createWidenArithmetic());
  // Statistics that forward and backward share are found while ops are whole.
  each(createCSEPass());
  // First the library calls: they decide what is accumulated into what.
  each(createConvertBoaToBlas());
  each(createConvertBoaToLinalg());
  // The same reductions occur in a norm and in its gradient.
  each(createCSEPass());
  each(createFuseKernelElementwise());
  // Fusion leaves duplicates and unused producers behind.
  each(createCanonicalizerPass());
  each(createCSEPass());
  // Fused, it is known what is made of a product's rows before it is as wide no more.
  BlockRowsOptions blockRows;
  blockRows.bytes = blocks.bytes;
  blockRows.least = blocks.least;
  blockRows.rows = blocks.rows;
  each(createBlockRows(blockRows));
  // From here on results have definite memory to be computed in.
  each(createBindKernelArguments());
  pm.addPass(createBufferizeKernels());
  // One view for an accumulator and its result: copies to itself fall away.
  each(createCSEPass());
  each(createCanonicalizerPass());
  each(createElideKernelCopies());
}
