//===- Harness.cpp - Functions of compute ops, compiled and run -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gradients/Harness.h"

#include "dialect/Boa.h"
#include "passes/kernels/AngleTables.h"
#include "passes/kernels/EmitKernels.h"
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/target/Target.h"
#include "passes/target/cpu/Codegen.h"
#include "runtime/abi/abi.h"
#include "runtime/engine/symbols.h"
#include "test/gradients/EmulatedGpu.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

using namespace mlir;

namespace boa::testing {

void failTest(const std::string &message) {
  llvm::errs() << "test harness: " << message << "\n";
  std::abort();
}

namespace {

[[noreturn]] void fail(const Twine &message) { failTest(message.str()); }

/// Replaces @f by its vector-Jacobian product.
void differentiate(func::FuncOp func) {
  Block &block = func.getBody().front();
  auto terminator = cast<func::ReturnOp>(block.getTerminator());
  OpBuilder builder(terminator);
  Location loc = func.getLoc();
  llvm::DenseMap<Value, Value> gradients;
  auto accumulate = [&](Value value, Value gradient) {
    Value &sum = gradients[value];
    sum = sum ? Value(AddOp::create(builder, loc, sum, gradient)) : gradient;
  };
  unsigned arguments = block.getNumArguments();
  for (Value result : terminator.getOperands())
    accumulate(result, block.addArgument(result.getType(), loc));
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops)) {
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    SmallVector<Value> results, operands;
    for (Value result : op->getResults())
      results.push_back(gradients.lookup(result));
    if (!differentiable || llvm::none_of(results, [](Value v) { return !!v; }))
      continue;
    differentiable.buildVJP(builder, results, operands);
    for (auto [operand, gradient] : llvm::zip(op->getOperands(), operands))
      if (gradient)
        accumulate(operand, gradient);
  }
  SmallVector<Value> results;
  for (unsigned i = 0; i < arguments; ++i)
    if (Value gradient = gradients.lookup(block.getArgument(i)))
      results.push_back(gradient);
  func::ReturnOp::create(builder, loc, results);
  terminator.erase();
  func.setFunctionType(FunctionType::get(func.getContext(), block.getArgumentTypes(),
                                         TypeRange(ValueRange(results))));
}

/// Adds every result to a new argument that lies where it does.
void accumulateResults(func::FuncOp func) {
  Block &block = func.getBody().front();
  Operation *terminator = block.getTerminator();
  OpBuilder builder(terminator);
  for (OpOperand &result : terminator->getOpOperands()) {
    Value argument = block.addArgument(result.get().getType(), func.getLoc());
    result.set(AddOp::create(builder, func.getLoc(), argument, result.get()));
  }
  func.setFunctionType(
      FunctionType::get(func.getContext(), block.getArgumentTypes(), func.getResultTypes()));
}

Operand describe(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Operand operand;
  operand.shape = tensor.getShape().vec();
  llvm::raw_string_ostream(operand.element) << tensor.getElementType();
  return operand;
}

/// Those of the runtime; of a GPU the emulator's.
std::vector<HostSymbol> runtimeSymbols() {
  std::vector<HostSymbol> symbols;
  for (const RuntimeSymbol &symbol : RuntimeSymbols())
    symbols.push_back({symbol.name, symbol.address});
  for (HostSymbol &symbol : symbols)
    if (void *address = findEmulated(symbol.name))
      symbol.address = address;
  return symbols;
}

/// The form of kernels for a GPU, if BOA_TEST_TARGET wants them.
std::optional<DeviceCode> testedGpu() {
  const char *target = std::getenv("BOA_TEST_TARGET");
  if (!target || StringRef(target) == "cpu")
    return std::nullopt;
  if (StringRef(target) != "cuda")
    fail("BOA_TEST_TARGET: expected cpu or cuda but found `" + Twine(target) + "`");
  if (!findEmulated("boa_cuda_launch"))
    fail("BOA_TEST_TARGET=cuda: there is no emulator for this processor");
  return DeviceCode::emulated;
}

} // namespace

struct Compiled::Impl {
  std::vector<Operand> arguments, results;
  std::vector<KernelTable> tables;
  int64_t workspace = 0;
  std::unique_ptr<JitProgram> program;
  boa_kernel kernel = nullptr;
  boa_queue *queue = nullptr; // the device's functions; null on a CPU
};

Compiled::Compiled() : impl(std::make_unique<Impl>()) {}
Compiled::~Compiled() = default;
const std::vector<Operand> &Compiled::arguments() const { return impl->arguments; }
const std::vector<Operand> &Compiled::results() const { return impl->results; }
int64_t Compiled::workspace() const { return impl->workspace; }

const Compiled *Compiled::get(const std::string &text, bool gradient, bool accumulate,
                              int64_t blockRows) {
  static std::map<std::tuple<std::string, bool, bool, int64_t>, std::unique_ptr<Compiled>> known;
  auto &compiled = known[{text, gradient, accumulate, blockRows}];
  if (!compiled)
    compiled = create(text, gradient, accumulate, blockRows);
  return compiled.get();
}

namespace {

constexpr const char *kImage = "boa_device_image";

/// @f of a text, lowered to the LLVM dialect.
struct Lowered {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::vector<Operand> arguments, results;
  std::vector<KernelTable> tables;
  int64_t workspace = 0;
  bool isForGpu;

  Lowered(const std::string &text, bool gradient, bool accumulate, std::optional<DeviceCode> gpu,
          int64_t blockRows = 0);
};

Lowered::Lowered(const std::string &text, bool gradient, bool accumulate,
                 std::optional<DeviceCode> gpu, int64_t blockRows)
    : context(MLIRContext::Threading::DISABLED) {
  DialectRegistry registry;
  registry.insert<BoaDialect>();
  registerKernelDialects(registry);
  registerCudaDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    fail("the function does not parse:\n" + text);
  auto func = module->lookupSymbol<func::FuncOp>("f");
  if (!func)
    fail("no function @f in:\n" + text);
  if (gradient)
    differentiate(func);
  unsigned plain = func.getNumArguments();
  if (accumulate)
    accumulateResults(func);

  Builder builder(&context);
  SmallVector<Type> reads(func.getArgumentTypes().take_front(plain)), others(func.getResultTypes());
  auto kernel = accumulate ? KernelOp::replace(func, reads, others, {})
                           : KernelOp::replace(func, reads, {}, others);
  auto offset = builder.getI64IntegerAttr(0);
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    kernel.setArgAttr(i, kBufferAttr, builder.getI32IntegerAttr(i));
    kernel.setArgAttr(i, kOffsetAttr, offset);
    if (i >= plain)
      kernel.setArgAttr(i, kResultAttr, builder.getI32IntegerAttr(i - plain));
    else
      arguments.push_back(describe(kernel.getArgumentTypes()[i]));
  }
  for (unsigned i = 0; i < kernel.getNumResults(); ++i) {
    kernel.setResultAttr(i, kBufferAttr, builder.getI32IntegerAttr(plain + i));
    kernel.setResultAttr(i, kOffsetAttr, offset);
    results.push_back(describe(kernel.getResultTypes()[i]));
  }
  if (failed(verify(*module)))
    fail("the function does not verify:\n" + text);

  auto isDouble = [](const Operand &operand) { return operand.element == "f64"; };
  isForGpu = gpu && llvm::none_of(arguments, isDouble) && llvm::none_of(results, isDouble);
  MachineSettings machine;
  if (isForGpu)
    machine.device = DeviceKind::cuda;
  if (const char *library = std::getenv("BOA_TEST_LIBRARY");
      library && StringRef(library) == "none")
    machine.gemm = GemmKind::own;
  PassManager pm(&context);
  Target::get(machine)->buildKernels(pm, {gpu.value_or(DeviceCode::ptx), blockRows});
  if (failed(pm.run(*module)))
    fail("the pipeline failed on:\n" + text);
  workspace = int64_t(kernel.getWorkspace());
  for (Attribute attr : kernel.getTables())
    tables.push_back({getTable(attr), describe(getTableType(attr))});
  emitKernels(*module);
  if (const char *what = std::getenv("BOA_TEST_PRINT")) {
    if (StringRef(what) == "mlir")
      module->print(llvm::errs());
    else
      llvm::errs() << llvm::cantFail(StringRef(what) == "llvm" ? emitLLVMIR(*module)
                                                               : emitAssembly(*module));
  }
}

} // namespace

std::unique_ptr<Compiled> Compiled::create(const std::string &text, bool gradient, bool accumulate,
                                           int64_t blockRows) {
  Lowered lowered(text, gradient, accumulate, testedGpu(), blockRows);
  std::unique_ptr<Compiled> compiled(new Compiled());
  Impl &impl = *compiled->impl;
  impl.arguments = lowered.arguments;
  impl.results = lowered.results;
  impl.tables = lowered.tables;
  impl.workspace = lowered.workspace;
  auto program = JitProgram::create(*lowered.module, runtimeSymbols());
  if (!program)
    fail(llvm::toString(program.takeError()));
  impl.program = std::move(*program);
  auto kernel = impl.program->lookupAs<boa_kernel>("f");
  if (!kernel)
    fail(llvm::toString(kernel.takeError()));
  impl.kernel = *kernel;
  if (lowered.isForGpu) {
    auto image = impl.program->lookupAs<const boa_device_image *>(kImage);
    if (!image)
      fail(llvm::toString(image.takeError()));
    impl.queue = static_cast<boa_queue *>(const_cast<void *>((*image)->module));
  }
  return compiled;
}

KernelObject compileToObject(const std::string &text, bool gradient, std::optional<DeviceCode> gpu,
                             const std::string &name, const std::string &cpu) {
  Lowered lowered(text, gradient, /*accumulate=*/false, gpu);
  // Those of several kernels are linked together: what is not its own is within.
  for (Operation &op : *lowered.module->getBody()) {
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (function && !function.isExternal() && function.getName() != "f")
      function.setLinkage(LLVM::Linkage::Internal);
    auto global = dyn_cast<LLVM::GlobalOp>(op);
    if (global && global.getName() != kImage)
      global.setLinkage(LLVM::Linkage::Internal);
  }
  SymbolTable symbols(*lowered.module);
  auto rename = [&](StringRef from, const std::string &to) {
    if (Operation *op = symbols.lookup(from); op && failed(symbols.rename(op, to)))
      fail("cannot rename @" + from);
  };
  rename("f", name);
  rename(kImage, name + "_image");
  CodegenOptions options;
  options.cpu = cpu;
  auto object = emitObject(*lowered.module, runtimeSymbols(), options);
  if (!object)
    fail(llvm::toString(object.takeError()));
  return {std::string(object->begin(), object->end()), lowered.arguments, lowered.results,
          lowered.workspace, lowered.tables};
}

std::string compileWithoutRuntime(const std::string &text) {
  Lowered lowered(text, false, false, testedGpu());
  std::string said;
  ScopedDiagnosticHandler handler(lowered.module->getContext(),
                                  [&](Diagnostic &diagnostic) { said += diagnostic.str(); });
  auto program = JitProgram::create(*lowered.module, {});
  if (!program)
    return said + llvm::toString(program.takeError());
  auto kernel = (*program)->lookup("f");
  return kernel ? "" : llvm::toString(kernel.takeError());
}

std::vector<Values> Compiled::run(const std::vector<Values> &arguments,
                                  const std::vector<Values> &results) const {
  auto allocate = [](int64_t bytes) {
    // As devices promise; a guard at the end: writing past a buffer shows.
    size_t size = static_cast<size_t>((bytes + 64 + 255) / 256 * 256);
    void *memory = std::aligned_alloc(256, size);
    std::memset(memory, 0xff, size); // NaN: reading what nothing wrote shows
    return memory;
  };
  auto guarded = [](void *memory, int64_t bytes) {
    auto *end = static_cast<unsigned char *>(memory) + bytes;
    for (int i = 0; i < 64; ++i)
      if (end[i] != 0xff)
        return false;
    return true;
  };
  if (arguments.size() != impl->arguments.size())
    fail("wrong number of arguments");
  std::vector<void *> buffers;
  for (size_t i = 0; i < arguments.size(); ++i) {
    buffers.push_back(allocate(bytesOf(impl->arguments[i])));
    store(impl->arguments[i], arguments[i], buffers.back());
  }
  for (size_t i = 0; i < impl->results.size(); ++i) {
    buffers.push_back(allocate(bytesOf(impl->results[i])));
    if (!results.empty())
      store(impl->results[i], results[i], buffers.back());
  }
  for (const KernelTable &table : impl->tables) {
    Values all(table.table.elements());
    FillTable(table.table, all.data());
    buffers.push_back(allocate(bytesOf(table.operand)));
    store(table.operand, all, buffers.back());
  }
  void *workspace = allocate(impl->workspace);
  impl->kernel(buffers.data(), workspace, impl->queue);
  std::vector<Values> values;
  for (size_t i = 0; i < impl->results.size(); ++i) {
    void *buffer = buffers[arguments.size() + i];
    if (!guarded(buffer, bytesOf(impl->results[i])))
      fail("wrote past the end of a result");
    values.push_back(load(impl->results[i], buffer));
  }
  if (!guarded(workspace, impl->workspace))
    fail("wrote past the end of the workspace");
  for (void *buffer : buffers)
    std::free(buffer);
  std::free(workspace);
  return values;
}

} // namespace boa::testing
