//===- Phases.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The list is read from the pass manager that buildPipeline fills. A pass manager gives no pass
// away, so each pass is printed, and parsed again where it runs.
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Phases.h"

#include "passes/Passes.h"
#include "passes/kernels/KernelPasses.h"
#include "passes/target/cpu/CpuPasses.h"
#include "passes/target/cuda/CudaPasses.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mlir;

namespace boa::random {

// Where the form of a program changes.
static constexpr StringRef kBeginnings[] = {"boa-verify-model",
                                            "boa-build-generation",
                                            "boa-build-step",
                                            "boa-vertical-schedule",
                                            "boa-verify-step",
                                            "boa-hoist-prefetch",
                                            "boa-verify-storage",
                                            "kernel-widen-arithmetic",
                                            "cpu-emit-groups",
                                            "cuda-read-addends-in-place",
                                            "cuda-emit-groups",
                                            "kernel-assign-workspace",
                                            "gpu.module(kernel-expand-math",
                                            "boa-assign-buffers",
                                            "convert-boa-to-runtime"};

/// Those of buildPipeline, so that a text can name them.
static void registerPasses() {
  registerBoaSchedulePasses();
  registerBoaKernelPasses();
  registerBoaCpuPasses();
  registerBoaCudaPasses();
  registerCanonicalizerPass();
  registerCSEPass();
  registerLoopInvariantCodeMotionPass();
  memref::registerExpandStridedMetadataPass();
  arith::registerArithExpandOpsPass();
  registerLowerAffinePass();
  registerSCFToControlFlowPass();
  registerConvertToLLVMPass();
  registerReconcileUnrealizedCastsPass();
}

/// The text of a pass; "": the list leaves it out.
static std::string textOf(Pass &pass) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  pass.printAsTextualPipeline(stream);
  // It streams storages of the program that another pass kept, which a mutant may not have met.
  if (text == "unknown<FitMemory>")
    return "boa-assign-buffers";
  // PTX takes the time of many mutants. Passes without an argument keep something for others.
  if (StringRef(text).starts_with("cuda-embed-image") || StringRef(text).starts_with("unknown<"))
    return "";
  return text;
}

static std::vector<PhasePass> makePasses(Purpose purpose, DeviceKind device) {
  PipelineOptions options;
  options.purpose = purpose;
  MachineSettings machine;
  machine.device = device;
  machine.gemm = GemmKind::own;
  options.target = Target::get(machine);
  OpPassManager pm(ModuleOp::getOperationName());
  buildPipeline(pm, options);
  std::vector<PhasePass> passes;
  for (Pass &pass : pm) {
    const std::string text = textOf(pass);
    if (text.empty())
      continue;
    const bool begins =
        llvm::any_of(kBeginnings, [&](StringRef name) { return StringRef(text).contains(name); });
    passes.push_back({text, begins, StringRef(text).starts_with("boa-verify-")});
  }
  return passes;
}

const std::vector<PhasePass> &passesOf(Purpose purpose, DeviceKind device) {
  static std::map<std::pair<Purpose, DeviceKind>, std::vector<PhasePass>> all;
  if (all.empty())
    registerPasses();
  auto [found, isNew] = all.try_emplace({purpose, device});
  if (isNew)
    found->second = makePasses(purpose, device);
  return found->second;
}

ArrayRef<StringRef> beginnings() { return kBeginnings; }

std::string pipelineOf(const std::vector<PhasePass> &passes) {
  return llvm::join(llvm::map_range(passes, [](const PhasePass &pass) { return pass.text; }), ",");
}

} // namespace boa::random
