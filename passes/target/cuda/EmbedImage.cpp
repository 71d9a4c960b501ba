//===- EmbedImage.cpp - The device's module as constants of the program ---===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes a module in the LLVM dialect. What runs it numbers its functions in the order
// in which they stand, as the launches do.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/CodeBuilder.h"
#include "passes/target/cuda/CudaPasses.h"

#include "mlir/Target/LLVM/ModuleToObject.h"

#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

namespace boa {
#define GEN_PASS_DEF_CUDAEMBEDIMAGE
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// The first bytes of a boa_emulated_module (test/fake_cuda/emulated.h).
constexpr StringRef kMagic("boa-emulated-1\0\0", 16);

/// Compiles the device's module to PTX for the target that has bf16 in instructions. Drivers of
/// CUDA 12 and later read it. Fails with an error if the module calls what nothing defines.
struct ModuleToPtx : LLVM::ModuleToObject {
  explicit ModuleToPtx(gpu::GPUModuleOp device)
      : ModuleToObject(*device, "nvptx64-nvidia-cuda", "sm_80", "+ptx80") {
    static std::once_flag once;
    std::call_once(once, [] {
      LLVMInitializeNVPTXTargetInfo();
      LLVMInitializeNVPTXTarget();
      LLVMInitializeNVPTXTargetMC();
      LLVMInitializeNVPTXAsmPrinter();
    });
  }

protected:
  FailureOr<SmallVector<char, 0>> moduleToObject(llvm::Module &code) override {
    // Nothing is linked to it: what was optimised away alone may lack a body.
    for (const llvm::Function &function : code)
      if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty())
        return module.emitError("the device's code calls `")
               << StringRef(function.getName()) << "`, which nothing defines";
    FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
    if (failed(machine))
      return failure();
    (*machine)->setOptLevel(llvm::CodeGenOptLevel::Aggressive);
    FailureOr<SmallString<0>> text =
        translateModuleToISA(code, **machine, [&] { return module.emitError(); });
    if (failed(text))
      return failure();
    return SmallVector<char, 0>(*text);
  }
};

struct CudaEmbedImage : boa::impl::CudaEmbedImageBase<CudaEmbedImage> {
  using CudaEmbedImageBase::CudaEmbedImageBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto device = module.lookupSymbol<gpu::GPUModuleOp>(kDeviceModule);
    if (!device)
      return;
    CodeBuilder b(OpBuilder::atBlockEnd(module.getBody()), module.getLoc());
    SmallVector<LLVM::LLVMFuncOp> functions;
    for (auto func : device.getOps<LLVM::LLVMFuncOp>())
      if (!func.isExternal())
        functions.push_back(func);
    const int64_t count = functions.size();

    SmallVector<std::string> names;
    for (LLVM::LLVMFuncOp func : functions) {
      names.push_back((func.getSymName() + "_name").str());
      b.addText(names.back(), func.getSymName() + Twine('\0'));
    }
    b.addAddresses("boa_device_names", LLVM::Linkage::Internal,
                   SmallVector<StringRef>(names.begin(), names.end()));

    // For benchmarks only: the runtime does not read it.
    auto sizes = LLVM::LLVMArrayType::get(b.getI64Type(), count);
    b.addConstant("boa_device_bytes", sizes, LLVM::Linkage::External, [&] {
      return llvm::map_to_vector(functions, [&](LLVM::LLVMFuncOp func) {
        auto memory = func->getAttrOfType<IntegerAttr>(kMemoryAttr);
        return number(b, memory ? memory.getInt() : 0);
      });
    });

    int64_t bytes = kMagic.size() + 2 * sizeof(int64_t);
    if (emulated) {
      embedTable(b, functions, names);
      for (Operation &op : llvm::make_early_inc_range(*device.getBody()))
        op.moveBefore(device);
    } else {
      auto ptx = ModuleToPtx(device).run();
      if (!ptx)
        return signalPassFailure();
      ptx->push_back('\0');
      bytes = ptx->size();
      b.addText("boa_device_module", StringRef(ptx->data(), ptx->size()));
    }
    device.erase();
    Type i64 = b.getI64Type();
    b.addConstant("boa_device_image", structure({b.pointer(), i64, b.pointer(), i64}),
                  LLVM::Linkage::External, [&] {
                    return CodeBuilder::Values{b.address("boa_device_module"), number(b, bytes),
                                               b.address("boa_device_names"), number(b, count)};
                  });
  }

  /// Embeds a boa_emulated_module.
  void embedTable(CodeBuilder &b, MutableArrayRef<LLVM::LLVMFuncOp> functions,
                  ArrayRef<std::string> names) {
    Type i64 = b.getI64Type(), row = structure({b.pointer(), b.pointer(), i64, i64});
    auto rows = LLVM::LLVMArrayType::get(row, functions.size());
    b.addConstant("boa_device_functions", rows, LLVM::Linkage::Internal, [&] {
      CodeBuilder::Values values;
      for (auto [func, name] : llvm::zip(functions, names)) {
        auto attribute = [&, func = func](StringRef of) {
          return number(b, func->getAttrOfType<IntegerAttr>(of).getInt());
        };
        values.push_back(
            b.aggregate(row, {b.address(name), b.address(func.getSymName()),
                              attribute(kSharedBytesAttr), attribute(kArgumentsAttr)}));
      }
      return values;
    });
    auto magic = LLVM::LLVMArrayType::get(b.getI8Type(), kMagic.size());
    b.addConstant("boa_device_module", structure({magic, i64, b.pointer()}),
                  LLVM::Linkage::Internal, [&] {
                    Value text = LLVM::ConstantOp::create(b, magic, b.getStringAttr(kMagic));
                    return CodeBuilder::Values{text, number(b, functions.size()),
                                               b.address("boa_device_functions")};
                  });
  }

  Type structure(ArrayRef<Type> types) {
    return LLVM::LLVMStructType::getLiteral(&getContext(), types);
  }
  /// A number in the LLVM dialect, which is all that follows this pass.
  static Value number(CodeBuilder &b, int64_t value) {
    return LLVM::ConstantOp::create(b, b.getI64Type(), b.getI64IntegerAttr(value));
  }
};

} // namespace
