//===- Codegen.cpp - Machine code from the LLVM dialect -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/target/cpu/Codegen.h"

#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <cmath>
#include <cstring>
#include <mutex>

using namespace mlir;
using namespace boa;

namespace {

llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

llvm::Expected<llvm::orc::JITTargetMachineBuilder> makeTarget(const CodegenOptions &options) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  if (options.cpu != "host") {
    builder->setCPU(options.cpu);
    builder->getFeatures() = llvm::SubtargetFeatures();
  }
  builder->setRelocationModel(llvm::Reloc::PIC_);
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
  return builder;
}

/// A module of LLVM's, and the machine that it is optimised for.
struct Translated {
  llvm::orc::JITTargetMachineBuilder target;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module = {};
};

llvm::Expected<Translated> translate(ModuleOp module, const CodegenOptions &options) {
  auto target = makeTarget(options);
  if (!target)
    return target.takeError();
  auto machine = target->createTargetMachine();
  if (!machine)
    return machine.takeError();
  Translated result{std::move(*target), std::move(*machine)};
  result.module = translateModuleToLLVMIR(module, *result.context, "boa");
  if (!result.module)
    return makeError("the module is not wholly in the LLVM dialect");
  result.module->setDataLayout(result.machine->createDataLayout());
  result.module->setTargetTriple(result.machine->getTargetTriple());
  // Vectorisation is decided by function: by name of processor and features.
  for (llvm::Function &function : *result.module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", result.machine->getTargetCPU());
    function.addFnAttr("target-features", result.machine->getTargetFeatureString());
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  auto optimize = makeOptimizingTransformer(/*optLevel=*/3, /*sizeLevel=*/0, result.machine.get());
  if (llvm::Error error = optimize(result.module.get()))
    return std::move(error);
  return result;
}

/// What LLVM's code generator may call by itself, and the f64 functions.
template <typename Function> void *address(Function *function) {
  return reinterpret_cast<void *>(function);
}
const HostSymbol kLibrary[] = {
    {"memcpy", address(std::memcpy)},
    {"memmove", address(std::memmove)},
    {"memset", address(std::memset)},
    {"exp", address<double(double)>(std::exp)},
    {"log", address<double(double)>(std::log)},
    {"pow", address<double(double, double)>(std::pow)},
    {"tanh", address<double(double)>(std::tanh)},
    {"expf", address<float(float)>(std::exp)},
    {"logf", address<float(float)>(std::log)},
    {"tanhf", address<float(float)>(std::tanh)},
};

} // namespace

//===----------------------------------------------------------------------===//
// In process
//===----------------------------------------------------------------------===//

JitProgram::JitProgram(std::unique_ptr<llvm::orc::LLJIT> jit) : jit(std::move(jit)) {
  this->jit->getExecutionSession().setErrorReporter(
      [this](llvm::Error error) { reported += llvm::toString(std::move(error)) + "; "; });
}
JitProgram::~JitProgram() = default;

llvm::Expected<std::unique_ptr<JitProgram>> JitProgram::create(ModuleOp module,
                                                               llvm::ArrayRef<HostSymbol> symbols,
                                                               const CodegenOptions &options) {
  auto translated = translate(module, options);
  if (!translated)
    return translated.takeError();

  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(translated->target)
                 .setLinkProcessSymbolsByDefault(false)
                 // No static initialisers, no thread-local storage.
                 .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                 .create();
  if (!jit)
    return jit.takeError();
  llvm::orc::SymbolMap map;
  auto define = [&](const HostSymbol &symbol) {
    map[(*jit)->mangleAndIntern(symbol.name)] = {llvm::orc::ExecutorAddr::fromPtr(symbol.address),
                                                 llvm::JITSymbolFlags::Exported};
  };
  llvm::for_each(llvm::ArrayRef(kLibrary), define);
  llvm::for_each(symbols, define);
  if (llvm::Error error =
          (*jit)->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(map))))
    return std::move(error);
  if (llvm::Error error = (*jit)->addIRModule(llvm::orc::ThreadSafeModule(
          std::move(translated->module), std::move(translated->context))))
    return std::move(error);
  return std::unique_ptr<JitProgram>(new JitProgram(std::move(*jit)));
}

llvm::Expected<void *> JitProgram::lookup(llvm::StringRef name) const {
  auto address = jit->lookup(name);
  if (!address)
    return makeError(llvm::Twine(reported) + llvm::toString(address.takeError()));
  return address->toPtr<void *>();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static llvm::Expected<llvm::SmallVector<char, 0>>
emit(ModuleOp module, const CodegenOptions &options, llvm::CodeGenFileType fileType) {
  auto translated = translate(module, options);
  if (!translated)
    return translated.takeError();
  llvm::SmallVector<char, 0> file;
  llvm::raw_svector_ostream stream(file);
  llvm::legacy::PassManager passes;
  if (translated->machine->addPassesToEmitFile(passes, stream, nullptr, fileType))
    return makeError("the target cannot emit files of this kind");
  passes.run(*translated->module);
  return file;
}

llvm::Expected<llvm::SmallVector<char, 0>> boa::emitObject(ModuleOp module,
                                                           const CodegenOptions &options) {
  return emit(module, options, llvm::CodeGenFileType::ObjectFile);
}

llvm::Expected<std::string> boa::emitAssembly(ModuleOp module, const CodegenOptions &options) {
  auto file = emit(module, options, llvm::CodeGenFileType::AssemblyFile);
  if (!file)
    return file.takeError();
  return std::string(file->begin(), file->end());
}

llvm::Expected<std::string> boa::emitLLVMIR(ModuleOp module, const CodegenOptions &options) {
  auto translated = translate(module, options);
  if (!translated)
    return translated.takeError();
  std::string text;
  llvm::raw_string_ostream stream(text);
  translated->module->print(stream, nullptr);
  return text;
}
