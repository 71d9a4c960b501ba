//===- boa-opt.cpp - Any pass by itself -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/target/cpu/CpuPipeline.h"
#include "passes/target/cuda/CudaPipeline.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
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
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "the passes of Boa, one at a time\n", registry));
}
