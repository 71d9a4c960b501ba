//===- Compiler.cpp -------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/Compiler.h"

#include "dialect/Config.h"
#include "frontend/IRGen.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/target/Target.h"
#include "runtime/data/tokens.h"
#include "runtime/device/cuda/blas.h"
#include "runtime/device/simulated.h"
#include "runtime/engine/symbols.h"
#include "runtime/io/file_system.h"
#include "runtime/io/input_file.h"
#include "runtime/io/new_file.h"
#include "runtime/support/printable.h"
#include "runtime/support/threads.h"
#include "runtime/support/units.h"
#include "runtime/trainer/loss_settings.h"
#include "runtime/trainer/output_checks.h"
#include "tools/Link.h"
#include "tools/Payload.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/Threading.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

using namespace mlir;

namespace boa {
namespace {

/// Diagnostics were printed: nothing is left to say.
absl::Status alreadyPrinted() { return absl::InvalidArgumentError(""); }

/// An error without a text was printed as a diagnostic.
absl::Status fromLLVM(llvm::Error error, llvm::StringRef doing) {
  const std::string text = llvm::toString(std::move(error));
  return text.empty() ? alreadyPrinted()
                      : absl::InternalError(absl::StrCat(doing.str(), ": ", text));
}

/// While it lives, diagnostics of the passes go to stderr, with the user's own line,
/// of which a terminal need not obey what stands in it.
class Diagnostics {
public:
  /// A quiet one adds them to `said` instead.
  Diagnostics(MLIRContext *context, bool quiet, std::string &said)
      : quiet(quiet), said(said), out(text), handler(sources, context, out) {}
  ~Diagnostics() {
    if (quiet)
      said += Printable(text);
    else
      std::fputs(Printable(text).c_str(), stderr);
  }
  llvm::SourceMgr sources;

private:
  bool quiet;
  std::string &said;
  std::string text;
  llvm::raw_string_ostream out;
  SourceMgrDiagnosticHandler handler;
};

/// Keeps the name of the pass that failed first.
class FailedPass : public PassInstrumentation {
public:
  explicit FailedPass(std::string &name) : name(name) {}
  void runAfterPassFailed(Pass *pass, Operation *) override {
    if (name.empty())
      name = pass->getName().str();
  }

private:
  std::string &name;
};

} // namespace

absl::Status readTexts(CompileRequest &request) {
  std::string diagnostics;
  if (request.texts.empty())
    request.texts = frontend::readFiles(request.files, diagnostics);
  std::fputs(diagnostics.c_str(), stderr);
  return diagnostics.empty() ? absl::OkStatus() : alreadyPrinted();
}

bool mayChangeKernels(llvm::StringRef change) {
  return !change.starts_with("plan.place=") && !change.contains(".memory=") &&
         !change.contains(".delay=");
}

std::string KernelStore::find(const std::string &key) const {
  const std::lock_guard<std::mutex> lock(mutex);
  auto found = kernels.find(key);
  return found == kernels.end() ? "" : found->second;
}

void KernelStore::add(const std::string &key, std::string bytecode) {
  const std::lock_guard<std::mutex> lock(mutex);
  kernels.emplace(key, std::move(bytecode));
}

Compiler::Compiler(bool quiet, KernelStore *store) : quiet(quiet), store(store) {
  DialectRegistry registry;
  registry.insert<BoaDialect>();
  registerKernelDialects(registry);
  registerCudaDialects(registry);
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  context = std::make_unique<MLIRContext>(registry);
  // Users see their spec, not our IR.
  context->printOpOnDiagnostic(false);
  // Others compile at the same time, on the other cores. LLVM aborts where a thread cannot start.
  if (store ||
      !CheckThreads("the compiler's threads", llvm::hardware_concurrency().compute_thread_count())
           .ok())
    context->disableMultithreading();
}
Compiler::~Compiler() = default;

void Compiler::print(const std::string &diagnostics) {
  if (quiet)
    said += diagnostics;
  else
    std::fputs(diagnostics.c_str(), stderr);
}

absl::StatusOr<std::string> Compiler::printSyntax(const CompileRequest &request) {
  frontend::FrontendResult result =
      frontend::compileFiles(request.files, request.overrides, request.held);
  print(result.diagnostics);
  if (!result.spec)
    return alreadyPrinted();
  return result.ast;
}

static std::string describe(const frontend::Spec &spec) {
  double parameters = 0;
  std::string layers;
  for (const frontend::StageSpec &stage : spec.model.stages) {
    for (const frontend::ParamSpec &param : stage.params) {
      double elements = double(stage.repeat);
      for (int64_t dim : param.shape.values())
        elements *= double(dim);
      parameters += elements;
    }
    if (stage.isLayer)
      absl::StrAppend(&layers, layers.empty() ? "" : ", ", stage.repeat, " x ", stage.name);
  }
  const TrainSettings &train = spec.train;
  const int64_t microBatch = SequencesOfMicroBatch(train, spec.plan);
  return absl::StrCat(spec.model.name, ": ", FormatCount(parameters), " parameters, ", layers, "; ",
                      WordOf(spec.plan.schedule), " on ", WordOf(spec.machine.device), "\n",
                      DescribeSteps(train), train.steps == 0 ? ", in steps" : "", " of ",
                      train.batch, train.batch == 1 ? " sequence" : " sequences", " (",
                      CountMicroBatches(train, spec.plan), " x ", microBatch, ") of ",
                      spec.shape.context, " tokens from ", train.data, "\n");
}

/// The notes that a training prints, or the error that it ends with.
static std::string notesOf(const TrainSettings &train) {
  std::string text = DescribeWarmup(train);
  if (!text.empty())
    text += "\n";
  for (auto [setting, data] :
       {std::pair("data", &train.data), std::pair("validate", &train.validate)}) {
    std::string ignored;
    const std::vector<DataSource> sources =
        data->empty() ? std::vector<DataSource>() : ParseSources(*data, ignored);
    for (const DataSource &source : sources) {
      const bool isFile = source.kind == SourceKind::bytes;
      std::error_code error;
      if (isFile ? !std::filesystem::exists(source.files, error) : FindFiles(source.files).empty())
        absl::StrAppend(&text, "note: ", isFile ? "there is no file " : "no file matches ",
                        Printable(source.files), ", which `", setting,
                        "` names: a training needs it\n");
    }
  }
  return text;
}

absl::StatusOr<std::string> Compiler::check(const CompileRequest &request) {
  frontend::FrontendResult result =
      frontend::compileFiles(request.files, request.overrides, request.held);
  print(result.diagnostics);
  if (!result.spec)
    return alreadyPrinted();
  // The steps of this phase need no memory.
  MachineSettings &machine = result.spec->machine;
  machine.device_memory = std::max<int64_t>(machine.device_memory, 0);
  machine.host_memory = std::max<int64_t>(machine.host_memory, 0);
  Diagnostics diagnostics(context.get(), quiet, said);
  OwningOpRef<ModuleOp> module = frontend::generateModel(*result.spec, *context);
  if (failed(verify(*module)))
    return alreadyPrinted();
  if (absl::Status status = lower(*module, request, Phase::step); !status.ok())
    return status;
  print(notesOf(result.spec->train));
  return describe(*result.spec);
}

absl::StatusOr<OwningOpRef<ModuleOp>> Compiler::load(const CompileRequest &request) {
  auto module = parse(request);
  if (!module.ok() || request.target.empty())
    return module;
  MachineSettings machine = Config(**module).machine;
  machine.device = *ParseWord<DeviceKind>(request.target);
  machine.memory = TraitsOf(machine.device).memory;
  writeConfig(**module, kMachineConfig, machine);
  return module;
}

absl::StatusOr<OwningOpRef<ModuleOp>> Compiler::parse(const CompileRequest &request) {
  context->loadAllAvailableDialects();
  said.clear();
  if (request.isModule()) {
    Diagnostics diagnostics(context.get(), quiet, said);
    absl::StatusOr<std::string> text = ReadInput(request.files[0]);
    if (!text.ok())
      return text.status();
    diagnostics.sources.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(*text, request.files[0]), llvm::SMLoc());
    auto module = parseSourceFile<ModuleOp>(diagnostics.sources, context.get());
    if (!module)
      return alreadyPrinted();
    return module;
  }
  frontend::FrontendResult result =
      request.texts.empty()
          ? frontend::compileFiles(request.files, request.overrides, request.held)
          : frontend::compileTexts(request.texts, request.overrides, request.held);
  print(result.diagnostics);
  if (!result.spec)
    return alreadyPrinted();
  frontend::IRGenOptions options;
  if (request.purpose != Purpose::train)
    options.batch = options.microBatch = 1;
  if (request.unlimited)
    result.spec->machine.device_memory = result.spec->machine.host_memory = 0;
  if (request.base && result.spec->base)
    result.spec->model = *std::move(result.spec->base);
  return frontend::generateModel(*result.spec, *context, options);
}

absl::Status Compiler::lower(ModuleOp module, const CompileRequest &request, Phase stop) {
  Diagnostics diagnostics(context.get(), quiet, said);
  need.reset();
  bool explained = false;
  ScopedDiagnosticHandler noteNeed(context.get(), [&](Diagnostic &diagnostic) {
    explained |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    if (auto found = MemoryNeed::of(diagnostic))
      need = std::move(found);
    return failure(); // to be printed
  });
  const MachineSettings machine = Config(module).machine;
  PipelineOptions options;
  options.target = Target::get(machine);
  options.kernels.code = request.deviceCode == "ptx" ? DeviceCode::ptx : DeviceCode::emulated;
  options.kernels.blockRows = request.blockRows;
  options.onlyFits = request.onlyFits;
  // No kernel runs, but the memory that they need is that of the machine's device.
  if (request.simulate)
    options.kernels.code = DeviceCode::none;
  options.stop = stop;
  options.purpose = request.purpose;
  if (options.purpose == Purpose::generate && !TraitsOf(machine.device).continues_texts)
    return absl::InvalidArgumentError(
        "attention to a cache has no kernel for a GPU yet: add --no-cache, or --target cpu");
  if (!request.kernels.empty())
    options.described = &findKernels(request.kernels);
  const bool isFirst = options.described && !*options.described;
  PassManager pm(context.get());
  if (!request.dump.empty()) {
    context->disableMultithreading();
    pm.enableIRPrintingToFileTree(
        [](Pass *, Operation *) { return false; }, [](Pass *, Operation *) { return true; },
        /*printModuleScope=*/true, /*printAfterOnlyOnChange=*/true,
        /*printAfterOnlyOnFailure=*/false, request.dump, OpPrintingFlags().printNameLocAsPrefix());
    nameArguments(module);
  }
  buildPipeline(pm, options);
  std::string failed;
  pm.addInstrumentation(std::make_unique<FailedPass>(failed));
  const bool done = succeeded(pm.run(module));
  if (!done && !explained)
    module.emitError("the pass ") << failed
                                  << " failed without a reason: this is a fault of Boa, "
                                     "please report it with the spec";
  if (isFirst)
    storeKernels(request.kernels);
  return done ? absl::OkStatus() : alreadyPrinted();
}

/// Null: they were not compiled yet.
OwningOpRef<ModuleOp> &Compiler::findKernels(const std::string &key) {
  OwningOpRef<ModuleOp> &found = described[key];
  if (!found && store)
    if (const std::string bytecode = store->find(key); !bytecode.empty())
      found = parseSourceString<ModuleOp>(bytecode, context.get());
  return found;
}

void Compiler::storeKernels(const std::string &key) {
  std::string bytecode;
  llvm::raw_string_ostream out(bytecode);
  if (store && described[key] && succeeded(writeBytecodeToFile(*described[key], out)))
    store->add(key, std::move(bytecode));
}

absl::StatusOr<std::string> Compiler::printPtx(ModuleOp module) {
  auto image = module.lookupSymbol<LLVM::GlobalOp>("boa_device_module");
  auto text = image ? llvm::dyn_cast_if_present<StringAttr>(image.getValueOrNull()) : StringAttr();
  if (!text)
    return absl::InvalidArgumentError(
        "--emit=ptx: the machine's device is a CPU, which has none: add --target cuda");
  return text.getValue().rtrim('\0').str();
}

/// Compiling takes longer than this.
static absl::Status checkRates(ModuleOp module) {
  const Config config(module);
  const bool onDevice = IsSeparate(config.machine) && config.updateSpace() == Space::device;
  // Whether anything lives on an SSD, the compiled program knows.
  return CheckSimulatedRates(config.machine, onDevice, /*on_ssd=*/false);
}

/// A program that runs here multiplies by itself if this machine has no cuBLASLt. Only the library
/// has TF32: then the run ends with an error.
static void useOwnProducts(ModuleOp module) {
  MachineSettings machine = Config(module).machine;
  if (!TraitsOf(machine.device).has_libraries || machine.gemm == GemmKind::own ||
      machine.products == ProductKind::tf32 || !cuda::Blas::IsMissing())
    return;
  machine.gemm = GemmKind::own;
  writeConfig(module, kMachineConfig, machine);
}

/// The functions that a program may call: the runtime's, or those in their place.
static std::vector<HostSymbol> symbolsOf(const CompileRequest &request) {
  std::vector<HostSymbol> symbols = request.replaced;
  for (const RuntimeSymbol &symbol : RuntimeSymbols())
    if (llvm::none_of(request.replaced, [&](const HostSymbol &other) {
          return llvm::StringRef(other.name) == symbol.name;
        }))
      symbols.push_back({symbol.name, symbol.address});
  return symbols;
}

static std::string dataPlaceOf(ModuleOp module) {
  auto config = module.lookupSymbol<ConfigOp>(kTrainConfig);
  auto place = config ? dyn_cast<FileLineColLoc>(config.getLoc()) : FileLineColLoc();
  return place
             ? absl::StrCat(place.getFilename().str(), ":", place.getLine(), ":", place.getColumn())
             : "";
}

absl::StatusOr<std::unique_ptr<JitProgram>> Compiler::jit(const CompileRequest &request) {
  need.reset();
  auto module = load(request);
  if (!module.ok())
    return module.status();
  place = dataPlaceOf(**module);
  if (!request.simulate)
    useOwnProducts(**module);
  else if (absl::Status status = checkRates(**module); !status.ok())
    return status;
  if (request.mostChunks > 0)
    (**module)->setAttr(kMostChunksAttr,
                        Builder(context.get()).getI64IntegerAttr(request.mostChunks));
  if (absl::Status status = lower(**module, request, Phase::llvm); !status.ok())
    return status;
  CodegenOptions codegen;
  codegen.cpu = request.cpu;
  codegen.optimize = !request.simulate;
  Diagnostics diagnostics(context.get(), quiet, said);
  auto program = JitProgram::create(**module, symbolsOf(request), codegen);
  if (!program)
    return fromLLVM(program.takeError(), "compiling the program");
  return std::move(*program);
}

absl::Status Compiler::writeTrainer(const CompileRequest &request, const std::string &path) {
  auto module = load(request);
  if (!module.ok())
    return module.status();
  // Both names, since a file with the temporary name is removed.
  if (absl::Status status = CheckOutputs({{"-o", path}, {"-o", TemporaryName(path)}},
                                         FilesOfData(Config(**module).train));
      !status.ok())
    return status;
  if (absl::Status status = lower(**module, request, Phase::llvm); !status.ok())
    return status;
  CodegenOptions codegen;
  codegen.cpu = request.cpu;
  Diagnostics diagnostics(context.get(), quiet, said);
  auto object = emitObject(**module, symbolsOf(request), codegen);
  if (!object)
    return fromLLVM(object.takeError(), "compiling the trainer");

  // Object file, to shared object, to the end of a copy of the trainer's shell.
  // In a directory that nobody else may write to.
  std::string directory = path + ".XXXXXX";
  if (!mkdtemp(directory.data()))
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a directory beside ", path));
  llvm::scope_exit clean([&] { (void)llvm::sys::fs::remove_directories(directory); });
  const std::string library = directory + "/program.so";
  if (absl::Status status = LinkShared({std::string(object->data(), object->size())}, library);
      !status.ok())
    return status;
  static int anchor;
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, &anchor);
  llvm::SmallString<256> shell(llvm::sys::path::parent_path(self));
  llvm::sys::path::append(shell, "boa-trainer");
  return AppendPayload(shell.str().str(), library, path);
}

} // namespace boa
