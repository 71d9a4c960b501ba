//===- Target.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/target/Target.h"

#include "passes/target/cpu/CpuPipeline.h"
#include "passes/target/cuda/CudaPipeline.h"

using namespace mlir;

namespace boa {
namespace {

struct CpuTarget : Target {
  void buildKernels(OpPassManager &pm, const KernelOptions &options) const override {
    buildCpuPipeline(pm, options);
  }
};

struct CudaTarget : Target {
  explicit CudaTarget(const MachineSettings &machine) : machine(machine) {}
  void buildKernels(OpPassManager &pm, const KernelOptions &options) const override {
    buildCudaPipeline(pm, machine, options);
  }
  MachineSettings machine;
};

} // namespace

std::shared_ptr<const Target> Target::get(const MachineSettings &machine) {
  if (TraitsOf(machine.device).has_image)
    return std::make_shared<CudaTarget>(machine);
  return std::make_shared<CpuTarget>();
}

} // namespace boa
