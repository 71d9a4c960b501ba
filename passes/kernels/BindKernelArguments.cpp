//===- BindKernelArguments.cpp - Kernels with the runtime's signature -----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes a kernel of static tensors whose arguments and results all say where
// they lie. Refuses one that does not, and an accumulator whose place is not its
// result's. Tables are bound, too: they lie behind the buffers.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/AngleTables.h"
#include "passes/kernels/KernelPasses.h"

namespace boa {
#define GEN_PASS_DEF_BINDKERNELARGUMENTS
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

struct Place {
  int64_t buffer, offset;
};

std::optional<Place> getPlace(DictionaryAttr attributes) {
  if (!attributes)
    return std::nullopt;
  auto buffer = attributes.getAs<IntegerAttr>(kBufferAttr);
  auto offset = attributes.getAs<IntegerAttr>(kOffsetAttr);
  if (!buffer || !offset)
    return std::nullopt;
  return Place{buffer.getInt(), offset.getInt()};
}

MemRefType memoryOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

struct BindKernelArguments : boa::impl::BindKernelArgumentsBase<BindKernelArguments> {
  void runOnOperation() override {
    if (failed(bind(getOperation())))
      signalPassFailure();
  }

  LogicalResult bind(KernelOp func) {
    Location loc = func.getLoc();
    Block &entry = func.getBody().front();
    unsigned count = func.getNumArguments();
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    Value buffers = entry.addArgument(pointer, loc);
    entry.addArgument(pointer, loc); // workspace
    entry.addArgument(pointer, loc); // queue

    OpBuilder builder = OpBuilder::atBlockBegin(&entry);
    SmallVector<std::pair<int64_t, Value>> pointers;
    auto view = [&](Place place, Type tensor) -> Value {
      auto *it = llvm::find_if(pointers, [&](auto &p) { return p.first == place.buffer; });
      if (it == pointers.end()) {
        pointers.emplace_back(place.buffer,
                              kernel::ArgumentOp::create(builder, loc, buffers, place.buffer));
        it = &pointers.back();
      }
      return kernel::ViewOp::create(builder, loc, memoryOf(tensor), it->second, place.offset);
    };

    SmallVector<Value> destinations(func.getNumResults());
    for (unsigned i = 0; i < count; ++i) {
      BlockArgument argument = entry.getArgument(i);
      std::optional<Place> place = getPlace(func.getArgAttrDict(i));
      if (!isa<RankedTensorType>(argument.getType()) || !place)
        return func.emitError() << "expected kernel argument " << i
                                << " to be a tensor with a buffer and an offset";
      Value memory = view(*place, argument.getType());
      auto result = func.getArgAttrOfType<IntegerAttr>(i, kResultAttr);
      if (result)
        destinations[result.getInt()] = memory;
      auto tensor = bufferization::ToTensorOp::create(builder, loc, argument.getType(), memory,
                                                      /*restrict=*/true,
                                                      /*writable=*/static_cast<bool>(result));
      argument.replaceAllUsesWith(tensor);
    }
    for (unsigned i = 0; i < func.getNumResults(); ++i) {
      std::optional<Place> place = getPlace(func.getResultAttrDict(i));
      if (!place)
        return func.emitError() << "expected kernel result " << i
                                << " to have a buffer and an offset";
      if (!destinations[i])
        destinations[i] = view(*place, func.getFunctionType().getResult(i));
    }

    bindTables(func, buffers);

    Operation *terminator = entry.getTerminator();
    builder.setInsertionPoint(terminator);
    for (auto [value, destination] : llvm::zip(terminator->getOperands(), destinations))
      bufferization::MaterializeInDestinationOp::create(builder, loc, /*result=*/Type(), value,
                                                        destination,
                                                        /*restrict=*/true, /*writable=*/true);
    ReturnOp::create(builder, loc, ValueRange());
    terminator->erase();

    entry.eraseArguments(0, count);
    func.removeArgAttrsAttr();
    func.removeResAttrsAttr();
    func.setFunctionType(FunctionType::get(&getContext(), {pointer, pointer, pointer}, {}));
    return success();
  }

  /// Binds each table once, in the order of its first use.
  static void bindTables(KernelOp kernel, Value buffers) {
    const int64_t first = int64_t(kernel.getBuffers().size());
    SmallVector<Attribute> tables;
    SmallVector<Value> tensors;
    for (auto angles : llvm::make_early_inc_range(kernel.getOps<kernel::AnglesOp>())) {
      OpBuilder builder(angles);
      Location loc = angles.getLoc();
      Type type = angles.getTable().getType();
      Attribute table = builder.getDictionaryAttr(
          {builder.getNamedAttr("frequencies", angles.getFrequenciesAttr()),
           builder.getNamedAttr("function", builder.getStringAttr(kernel::stringifyAngleFunction(
                                                angles.getFunction()))),
           builder.getNamedAttr("type", TypeAttr::get(type))});
      unsigned index = llvm::find(tables, table) - tables.begin();
      if (index == tables.size()) {
        Value pointer = kernel::ArgumentOp::create(builder, loc, buffers, first + index);
        Value memory = kernel::ViewOp::create(builder, loc, memoryOf(type), pointer, 0);
        tables.push_back(table);
        tensors.push_back(bufferization::ToTensorOp::create(builder, loc, type, memory,
                                                            /*restrict=*/true,
                                                            /*writable=*/false));
      }
      angles.replaceAllUsesWith(tensors[index]);
      angles.erase();
    }
    kernel.setTablesAttr(ArrayAttr::get(kernel.getContext(), tables));
  }
};

} // namespace
