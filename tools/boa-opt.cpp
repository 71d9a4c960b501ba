//===- boa-opt.cpp - Any pass by itself -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/target/Target.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

namespace {
/// Runs after all others, so that arguments are printed with their names, as by boa.
struct NameArguments : mlir::PassWrapper<NameArguments, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NameArguments)
  void runOnOperation() override {
    if (auto module = mlir::dyn_cast<mlir::ModuleOp>(getOperation()))
      boa::nameArguments(module);
  }
};
} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<boa::BoaDialect>();
  boa::registerKernelDialects(registry);
  boa::registerCudaDialects(registry);
  mlir::registerAllPasses();
  boa::registerBoaSchedulePasses();
  boa::registerBoaKernelPasses();
  boa::registerCpuPipeline();
  boa::registerCudaPipeline();
  boa::registerPipeline();

  auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, "the passes of Boa, one at a time\n", registry);
  llvm::cl::getRegisteredOptions()
      .lookup("mlir-use-nameloc-as-prefix")
      ->addOccurrence(0, "", "true");
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldListPasses() || config.shouldShowDialects())
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
  config.setPassPipelineSetupFn([asked = config](mlir::PassManager &passes) {
    if (failed(asked.setupPassPipeline(passes)))
      return mlir::failure();
    passes.addPass(std::make_unique<NameArguments>());
    return mlir::success();
  });
  std::string error;
  auto from = mlir::openInputFile(input, &error);
  auto to = from ? mlir::openOutputFile(output, &error) : nullptr;
  if (!to) {
    llvm::errs() << error << '\n';
    return EXIT_FAILURE;
  }
  auto result = mlir::MlirOptMain(to->os(), std::move(from), registry, config);
  if (succeeded(result))
    to->keep();
  return mlir::asMainReturnCode(result);
}
