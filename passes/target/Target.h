//===- Target.h - What compiles kernels for a device ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_TARGET_H
#define BOA_PASSES_TARGET_TARGET_H

#include "dialect/Config.h"

#include "mlir/Pass/PassManager.h"

#include <cstdint>
#include <memory>

namespace boa {

/// The form of the functions of a device that is not the host. With `none` kernels cannot run, on
/// the host either, but their descriptions are complete.
enum class DeviceCode { ptx, emulated, none };

struct KernelOptions {
  DeviceCode code = DeviceCode::ptx;
  int64_t blockRows = 0; // the most rows of wide products at once; 0: the target chooses
};

/// A compiler of kernels for one kind of device. DeviceTraits (runtime/abi/settings.h) has what
/// else its kind means. A new target is a class in a folder of its own, behind `get`.
class Target {
public:
  virtual ~Target() = default;

  /// The target for the device of a machine, as its settings say.
  static std::shared_ptr<const Target> get(const MachineSettings &machine) {
    return TraitsOf(machine.device).has_image ? getCuda(machine) : getCpu();
  }

  /// Adds passes for a module. They turn the bodies of kernels, as --boa-outline-kernels leaves
  /// them, to the LLVM dialect, on (ptr buffers, ptr workspace, ptr queue), and set what workspace
  /// a kernel needs. Other functions only become llvm.func.
  virtual void buildKernels(mlir::OpPassManager &pm, const KernelOptions &options) const = 0;

private:
  static std::shared_ptr<const Target> getCpu();
  static std::shared_ptr<const Target> getCuda(const MachineSettings &machine);
};

/// Adds the dialects and external models that CUDA's passes use beyond those of kernels.
void registerCudaDialects(mlir::DialectRegistry &registry);

/// Registers passes and pipelines for boa-opt: `--cpu-kernel-pipeline`, `--cuda-kernel-pipeline`
/// and `--cuda-code-pipeline`.
void registerCpuPipeline();
void registerCudaPipeline();

} // namespace boa

#endif // BOA_PASSES_TARGET_TARGET_H
