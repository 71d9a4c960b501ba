//===- Pipeline.h - From a model to a program -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_PIPELINE_H
#define BOA_PASSES_PIPELINE_H

#include "passes/target/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <string>

namespace boa {

/// The phase behind which the pipeline stops, so that the module can be looked at.
enum class Phase { model, step, storage, llvm };

/// Whether the program trains, computes the logits of a text (@predict), or continues a text with
/// a cache of keys and values (@prefill, @generate).
enum class Purpose { train, predict, generate };

struct PipelineOptions {
  Purpose purpose = Purpose::train;
  std::shared_ptr<const Target> target = Target::get({});
  KernelOptions kernels;
  bool onlyFits = false; // asked is whether it fits the memory: no trials that make it faster
  Phase stop = Phase::llvm;
  /// The kernels of an earlier program of this context, without their bodies: those are not
  /// compiled again, for programs that are simulated. A null module becomes that of this program.
  mlir::OwningOpRef<mlir::ModuleOp> *described = nullptr;
};

/// Runs from the model phase to `options.stop`. After Phase::llvm the module holds LLVM functions
/// @boa_step, @boa_drain, @boa_evaluate (or those of another purpose), the kernels,
/// @boa_kernel_table, @boa_program and, for a device of its own, @boa_device_image. It is a pure
/// function of the options; the passes read order, delay and places from boa.config @plan when they
/// run. Before Phase::storage ends, the kernels of a copy are compiled: the plan of memory includes
/// their workspace.
void buildPipeline(mlir::OpPassManager &pm, const PipelineOptions &options);

/// Registers `--boa-pipeline` for boa-opt.
void registerPipeline();

} // namespace boa

#endif // BOA_PASSES_PIPELINE_H
