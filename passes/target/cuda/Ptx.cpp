//===- Ptx.cpp - PTX from the LLVM dialect --------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/target/cuda/Ptx.h"

#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;

namespace {

/// The target that has bf16 in instructions. Drivers of CUDA 12 and later read it.
constexpr const char *kProcessor = "sm_80", *kFeatures = "+ptx80";

llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> makeMachine() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return makeError(message);
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, kProcessor, kFeatures, llvm::TargetOptions(), /*RM=*/std::nullopt,
      /*CM=*/std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

} // namespace

llvm::Expected<std::string> boa::emitPtx(gpu::GPUModuleOp module) {
  auto machine = makeMachine();
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(module, context, "cuda");
  if (!translated)
    return makeError("the device's module is not wholly in the LLVM dialect");
  translated->setDataLayout((*machine)->createDataLayout());
  translated->setTargetTriple((*machine)->getTargetTriple());
  auto optimize = makeOptimizingTransformer(/*optLevel=*/3, /*sizeLevel=*/0, machine->get());
  if (llvm::Error error = optimize(translated.get()))
    return std::move(error);
  // Nothing is linked to it: what was optimised away alone may lack a body.
  for (const llvm::Function &function : *translated)
    if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty())
      return makeError("the device's code calls `" + function.getName() +
                       "`, which nothing defines");
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return makeError("the target cannot emit PTX");
  passes.run(*translated);
  return text.str().str();
}
