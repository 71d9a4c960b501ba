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

#include "passes/target/cuda/CudaPasses.h"
#include "passes/target/cuda/Ptx.h"

namespace boa {
#define GEN_PASS_DEF_CUDAEMBEDIMAGE
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// The first bytes of a boa_emulated_module (test/fake_cuda/emulated.h).
constexpr StringRef kMagic("boa-emulated-1\0\0", 16);

/// Adds constants to the program.
class Constants {
public:
  explicit Constants(ModuleOp module)
      : builder(OpBuilder::atBlockEnd(module.getBody())), loc(module.getLoc()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())), i64(builder.getI64Type()) {}

  void addText(StringRef name, StringRef text) {
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
    LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                           builder.getStringAttr(text));
  }

  /// Adds a constant. `make` gives its value, with the builder in the initialiser.
  void add(StringRef name, Type type, LLVM::Linkage linkage, function_ref<Value()> make) {
    auto global =
        LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, linkage, name, Attribute());
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&global.getInitializerRegion());
    LLVM::ReturnOp::create(builder, loc, make());
  }

  Value number(int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, i64, builder.getI64IntegerAttr(value));
  }
  Value address(StringRef name) { return LLVM::AddressOfOp::create(builder, loc, pointer, name); }
  Value text(StringRef value) {
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), value.size());
    return LLVM::ConstantOp::create(builder, loc, type, builder.getStringAttr(value));
  }
  /// Builds an array or a structure.
  Value aggregate(Type type, ArrayRef<Value> values) {
    Value result = LLVM::UndefOp::create(builder, loc, type);
    for (auto [i, value] : llvm::enumerate(values))
      result = LLVM::InsertValueOp::create(builder, loc, result, value,
                                           ArrayRef<int64_t>{static_cast<int64_t>(i)});
    return result;
  }
  Type structure(ArrayRef<Type> types) {
    return LLVM::LLVMStructType::getLiteral(builder.getContext(), types);
  }

  OpBuilder builder;
  Location loc;
  Type pointer, i64;
};

struct CudaEmbedImage : boa::impl::CudaEmbedImageBase<CudaEmbedImage> {
  using CudaEmbedImageBase::CudaEmbedImageBase;

  void runOnOperation() override {
    auto device = getOperation().lookupSymbol<gpu::GPUModuleOp>(kDeviceModule);
    if (!device)
      return;
    Constants constants(getOperation());
    SmallVector<LLVM::LLVMFuncOp> functions;
    for (auto func : device.getOps<LLVM::LLVMFuncOp>())
      if (!func.isExternal())
        functions.push_back(func);
    int64_t count = functions.size();

    SmallVector<std::string> names;
    for (LLVM::LLVMFuncOp func : functions) {
      names.push_back((func.getSymName() + "_name").str());
      constants.addText(names.back(), (func.getSymName() + Twine('\0')).str());
    }
    auto table = LLVM::LLVMArrayType::get(constants.pointer, count);
    constants.add("boa_device_names", table, LLVM::Linkage::Internal, [&] {
      SmallVector<Value> values;
      for (const std::string &name : names)
        values.push_back(constants.address(name));
      return constants.aggregate(table, values);
    });

    // For benchmarks only: the runtime does not read it.
    auto sizes = LLVM::LLVMArrayType::get(constants.i64, count);
    constants.add("boa_device_bytes", sizes, LLVM::Linkage::External, [&] {
      SmallVector<Value> values;
      for (LLVM::LLVMFuncOp func : functions) {
        auto memory = func->getAttrOfType<IntegerAttr>(kMemoryAttr);
        values.push_back(constants.number(memory ? memory.getInt() : 0));
      }
      return constants.aggregate(sizes, values);
    });

    int64_t bytes = 0;
    if (emulated) {
      bytes = embedTable(constants, functions, names);
      for (Operation &op : llvm::make_early_inc_range(*device.getBody()))
        op.moveBefore(device);
    } else {
      auto ptx = emitPtx(device);
      if (!ptx) {
        device.emitError(llvm::toString(ptx.takeError()));
        return signalPassFailure();
      }
      ptx->push_back('\0');
      bytes = ptx->size();
      constants.addText("boa_device_module", *ptx);
    }
    device.erase();
    Type image =
        constants.structure({constants.pointer, constants.i64, constants.pointer, constants.i64});
    constants.add("boa_device_image", image, LLVM::Linkage::External, [&] {
      return constants.aggregate(image,
                                 {constants.address("boa_device_module"), constants.number(bytes),
                                  constants.address("boa_device_names"), constants.number(count)});
    });
  }

  /// Embeds a boa_emulated_module. Returns its size.
  static int64_t embedTable(Constants &constants, MutableArrayRef<LLVM::LLVMFuncOp> functions,
                            ArrayRef<std::string> names) {
    int64_t count = functions.size();
    Type pointer = constants.pointer, i64 = constants.i64;
    Type row = constants.structure({pointer, pointer, i64, i64});
    auto rows = LLVM::LLVMArrayType::get(row, count);
    constants.add("boa_device_functions", rows, LLVM::Linkage::Internal, [&] {
      SmallVector<Value> values;
      for (auto [func, name] : llvm::zip(functions, names))
        values.push_back(constants.aggregate(
            row, {constants.address(name), constants.address(func.getSymName()),
                  constants.number(func->getAttrOfType<IntegerAttr>(kSharedBytesAttr).getInt()),
                  constants.number(func->getAttrOfType<IntegerAttr>(kArgumentsAttr).getInt())}));
      return constants.aggregate(rows, values);
    });
    auto magic = LLVM::LLVMArrayType::get(constants.builder.getI8Type(), kMagic.size());
    Type module = constants.structure({magic, constants.i64, constants.pointer});
    constants.add("boa_device_module", module, LLVM::Linkage::Internal, [&] {
      return constants.aggregate(module, {constants.text(kMagic), constants.number(count),
                                          constants.address("boa_device_functions")});
    });
    return kMagic.size() + 2 * sizeof(int64_t);
  }
};

} // namespace
