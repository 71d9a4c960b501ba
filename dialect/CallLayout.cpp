//===- CallLayout.cpp -----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/CallLayout.h"

#include "llvm/Support/MathExtras.h"

#include <functional>

using namespace mlir;

namespace boa {

/// The alignment of saved values, which is that of parameters: 64 bytes in any type.
static constexpr int64_t kSavedAlignment = 32; // elements

namespace {
/// Collects slots in the order: activations, then packs by first appearance.
class LayoutBuilder {
public:
  explicit LayoutBuilder(FunctionOpInterface func) : func(func) {}

  void add(unsigned position, Type type, DictionaryAttr attrs) {
    auto tensor = cast<RankedTensorType>(type);
    if (Attribute saved = attrs ? attrs.get(kSavedAttr) : Attribute())
      return pack(CallSlot::Kind::saved, position, tensor, saved);
    if (Attribute cache = attrs ? attrs.get(kCacheAttr) : Attribute())
      return pack(CallSlot::Kind::cache, position, tensor, cache);
    if (auto param = attrs ? attrs.getAs<SymbolRefAttr>(kParamAttr) : SymbolRefAttr())
      return addParam(position, tensor, param);
    bool sum = attrs && attrs.contains(kSumAttr);
    single.push_back(
        {sum ? CallSlot::Kind::sum : CallSlot::Kind::activation, "", {position}, {0}, tensor});
  }

  SmallVector<CallSlot> finish() {
    llvm::append_range(single, packs);
    return std::move(single);
  }

private:
  CallSlot &getPack(CallSlot::Kind kind, StringRef group, RankedTensorType type) {
    for (CallSlot &slot : packs)
      if (slot.kind == kind && slot.group == group &&
          (kind == CallSlot::Kind::group || slot.type.getElementType() == type.getElementType()))
        return slot;
    packs.push_back({kind, group.str(), {}, {}, type});
    return packs.back();
  }
  void pack(CallSlot::Kind kind, unsigned position, RankedTensorType type, Attribute mark) {
    auto name = dyn_cast<StringAttr>(mark);
    CallSlot &slot = getPack(kind, name ? name.getValue() : "",
                             RankedTensorType::get({0}, type.getElementType()));
    int64_t offset = slot.type.getNumElements();
    slot.positions.push_back(position);
    slot.offsets.push_back(offset);
    int64_t end = llvm::alignTo(offset + type.getNumElements(), kSavedAlignment);
    slot.type = RankedTensorType::get({end}, type.getElementType());
  }
  void addParam(unsigned position, RankedTensorType type, SymbolRefAttr param) {
    auto group = SymbolTable::lookupNearestSymbolFrom<GroupOp>(func, param.getRootReference());
    CallSlot &slot =
        getPack(CallSlot::Kind::group, getGroupName(param.getRootReference()),
                RankedTensorType::get({group.getPaddedElements()}, type.getElementType()));
    slot.positions.push_back(position);
    slot.offsets.push_back(group.getOffset(param.getLeafReference()));
  }

  FunctionOpInterface func;
  SmallVector<CallSlot> single, packs;
};
} // namespace

std::string CallLayout::findFault(FunctionOpInterface func) {
  auto check = [&](Type type, DictionaryAttr attrs) -> std::string {
    std::string text;
    llvm::raw_string_ostream stream(text);
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape()) {
      stream << "takes or returns " << type << ", which is no tensor of static shape";
      return text;
    }
    if (!hasByteSize(tensor)) {
      stream << "takes or returns " << type << ", which is no tensor of 1 to 2^40 elements of "
             << "whole bytes";
      return text;
    }
    auto param = attrs ? attrs.getAs<SymbolRefAttr>(kParamAttr) : SymbolRefAttr();
    if (!param)
      return text;
    auto op = SymbolTable::lookupNearestSymbolFrom<ParamOp>(func, param);
    if (!op)
      stream << "names a parameter that does not exist: " << param;
    else if (op.getType().getShape() != tensor.getShape())
      stream << "has " << type << " but " << param << " is " << op.getType();
    return text;
  };
  std::string why;
  for (unsigned i = 0; why.empty() && i < func.getNumArguments(); ++i)
    why = check(func.getArgumentTypes()[i], func.getArgAttrDict(i));
  for (unsigned i = 0; why.empty() && i < func.getNumResults(); ++i)
    why = check(func.getResultTypes()[i], func.getResultAttrDict(i));
  return why;
}

static bool isUpdate(const CallSlot &slot) {
  return slot.kind == CallSlot::Kind::group || slot.kind == CallSlot::Kind::sum ||
         slot.kind == CallSlot::Kind::cache;
}
SmallVector<CallSlot> CallLayout::updates() const {
  return llvm::filter_to_vector(outputs, isUpdate);
}
SmallVector<CallSlot> CallLayout::writes() const {
  return llvm::filter_to_vector(outputs, std::not_fn(isUpdate));
}

CallLayout CallLayout::get(FunctionOpInterface func) {
  CallLayout layout;
  LayoutBuilder inputs(func), outputs(func);
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
    if (!func.getArgAttr(i, kCacheAttr))
      inputs.add(i, type, func.getArgAttrDict(i));
  for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
    outputs.add(i, type, func.getResultAttrDict(i));
  layout.inputs = inputs.finish();
  layout.outputs = outputs.finish();
  return layout;
}

} // namespace boa
