//===- Codegen.cpp - Machine code from the LLVM dialect -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/target/cpu/Codegen.h"

#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
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

/// Whether LLVM generates code of this triple for a processor of that name: of other names it makes
/// a fatal error.
bool isProcessor(const llvm::Triple &triple, llvm::StringRef name) {
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  auto describe = [&](llvm::StringRef processor) {
    return std::unique_ptr<llvm::MCSubtargetInfo>(
        target->createMCSubtargetInfo(triple, processor, ""));
  };
  if (!target || !describe("")->isCPUStringValid(name))
    return false;
  return triple.getArch() != llvm::Triple::x86_64 || describe(name)->checkFeatures("+64bit");
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
    const llvm::Triple &triple = builder->getTargetTriple();
    if (!isProcessor(triple, options.cpu))
      return makeError("there is no processor `" + options.cpu + "` of " + triple.getArchName() +
                       "; `clang --print-supported-cpus` lists them");
    builder->setCPU(options.cpu);
    builder->getFeatures() = llvm::SubtargetFeatures();
  }
  builder->setRelocationModel(llvm::Reloc::PIC_);
  builder->setCodeGenOptLevel(options.optimize ? llvm::CodeGenOptLevel::Aggressive
                                               : llvm::CodeGenOptLevel::None);
  return builder;
}

/// A module of LLVM's, and the machine for which it is optimised.
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
  if (!options.optimize)
    return result;
  auto optimize = makeOptimizingTransformer(/*optLevel=*/3, /*sizeLevel=*/0, result.machine.get());
  if (llvm::Error error = optimize(result.module.get()))
    return std::move(error);
  return result;
}

/// The functions of the C library that generated code may call. LLVM calls some by itself, and
/// replaces calls by others: pow(2, x) by exp2(x), or sin and cos of one number by sincos. Where a
/// processor has no instruction for a rounding or fma, it calls those.
template <typename Function> void *address(Function *function) {
  return reinterpret_cast<void *>(function);
}
#define BOA_UNARY(name)                                                                            \
  {#name, address<double(double)>(std::name)}, { #name "f", address<float(float)>(std::name) }
#define BOA_BINARY(name)                                                                           \
  {#name, address<double(double, double)>(std::name)}, {                                           \
    #name "f", address<float(float, float)>(std::name)                                             \
  }
#define BOA_BY_NAME(name)                                                                          \
  {#name, address(::name)}, { #name "f", address(::name##f) }
const HostSymbol kLibrary[] = {
    {"memcpy", address(std::memcpy)},
    {"memmove", address(std::memmove)},
    {"memset", address(std::memset)},
    BOA_UNARY(ceil),
    BOA_UNARY(cos),
    BOA_UNARY(exp),
    BOA_UNARY(exp2),
    BOA_UNARY(floor),
    BOA_UNARY(log),
    BOA_UNARY(log10),
    BOA_UNARY(log2),
    BOA_UNARY(round),
    BOA_UNARY(sin),
    BOA_UNARY(tan),
    BOA_UNARY(tanh),
    BOA_UNARY(trunc),
    BOA_BINARY(fmod),
    BOA_BINARY(pow),
    BOA_BY_NAME(exp10),
    BOA_BY_NAME(fma),
    BOA_BY_NAME(ldexp),
    BOA_BY_NAME(roundeven),
    BOA_BY_NAME(sincos),
};
#undef BOA_UNARY
#undef BOA_BINARY
#undef BOA_BY_NAME

/// The function whose code has this place. The object is our own, so reading it does not fail.
llvm::StringRef findFunction(const llvm::object::ObjectFile &object,
                             const llvm::object::SectionRef &section, uint64_t offset) {
  llvm::StringRef found;
  uint64_t nearest = 0;
  for (const llvm::object::SymbolRef &symbol : object.symbols()) {
    if (llvm::cantFail(symbol.getType()) != llvm::object::SymbolRef::ST_Function ||
        llvm::cantFail(symbol.getSection()) != llvm::object::section_iterator(section))
      continue;
    const uint64_t address = llvm::cantFail(symbol.getAddress());
    if (address <= offset && address >= nearest) {
      nearest = address;
      found = llvm::cantFail(symbol.getName());
    }
  }
  return found;
}

/// Refuses machine code that refers to a symbol which it neither defines nor finds in `symbols` or
/// in kLibrary. The error stands at the function that does. LLVM decides only now what it calls.
LogicalResult checkSymbols(ModuleOp module, llvm::StringRef code,
                           llvm::ArrayRef<HostSymbol> symbols) {
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(code, "boa"));
  if (!object)
    return module.emitError("reading the generated code: ") << llvm::toString(object.takeError());
  llvm::StringSet<> known({"_GLOBAL_OFFSET_TABLE_"});
  for (llvm::ArrayRef<HostSymbol> list : {llvm::ArrayRef(kLibrary), symbols})
    for (const HostSymbol &symbol : list)
      known.insert(symbol.name);
  for (const llvm::object::SectionRef &relocations : (*object)->sections()) {
    const auto section = llvm::cantFail(relocations.getRelocatedSection());
    for (const llvm::object::RelocationRef &relocation : relocations.relocations()) {
      const auto symbol = relocation.getSymbol();
      if (symbol == (*object)->symbol_end())
        continue;
      const uint32_t flags = llvm::cantFail(symbol->getFlags());
      const llvm::StringRef name = llvm::cantFail(symbol->getName());
      if (!(flags & llvm::object::SymbolRef::SF_Undefined) || name.empty() || known.contains(name))
        continue;
      Operation *user =
          module.lookupSymbol(findFunction(**object, *section, relocation.getOffset()));
      return (user ? user : module.getOperation())
                 ->emitError("the code that is generated here calls `")
             << name << "`, which Boa's runtime does not have";
    }
  }
  return success();
}

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
  auto code = emitObject(module, symbols, options);
  if (!code)
    return code.takeError();
  auto target = makeTarget(options);
  if (!target)
    return target.takeError();

  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(*target))
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
  if (llvm::Error error = (*jit)->addObjectFile(
          llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(code->data(), code->size()), "boa")))
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
                                                           llvm::ArrayRef<HostSymbol> symbols,
                                                           const CodegenOptions &options) {
  auto file = emit(module, options, llvm::CodeGenFileType::ObjectFile);
  if (file && failed(checkSymbols(module, llvm::StringRef(file->data(), file->size()), symbols)))
    return makeError("");
  return file;
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
