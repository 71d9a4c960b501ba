//===- StageOp.cpp - boa.stage, and its functions' arguments --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace boa {

std::string getFunctionName(StringRef stage, StageFunction function) {
  return (stage + "_" + stringifyStageFunction(function)).str();
}

void StageOp::build(OpBuilder &builder, OperationState &state, StringRef callee, uint64_t repeat,
                    ArrayRef<Attribute> sides) {
  build(builder, state, callee, repeat, sides.empty() ? ArrayAttr() : builder.getArrayAttr(sides),
        IntegerAttr(), /*targets=*/false, /*documents=*/false, /*dropout=*/false);
}

static StringRef getStageNameOf(StringRef function) {
  function.consume_back(getFunctionName("", StageFunction::forward));
  return function;
}
StringRef StageOp::getStageName() { return getStageNameOf(getCallee()); }

SmallVector<StringRef> StageOp::getSideNames() {
  SmallVector<StringRef> names;
  if (ArrayAttr sides = getSidesAttr())
    for (auto side : sides.getAsRange<FlatSymbolRefAttr>())
      names.push_back(getStageNameOf(side.getValue()));
  return names;
}

LogicalResult StageOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto callee = tables.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("expected a function named @") << getCallee();
  for (unsigned i = 0, e = callee.getNumArguments(); i != e; ++i) {
    auto param = callee.getArgAttrOfType<SymbolRefAttr>(i, kParamAttr);
    if (!param)
      continue;
    auto op = tables.lookupNearestSymbolFrom<ParamOp>(*this, param);
    if (!op)
      return emitOpError("argument ")
             << i << " of @" << getCallee() << " names a parameter that does not exist: " << param;
    if (op.getType() != callee.getArgumentTypes()[i])
      return emitOpError("argument ")
             << i << " of @" << getCallee() << " has type " << callee.getArgumentTypes()[i]
             << " but " << param << " has type " << op.getType();
  }
  if (auto saves = getSaves(); saves && (*saves < 1 || *saves >= getRepeat()))
    return emitOpError("expected 1 to ")
           << int64_t(getRepeat()) - 1 << " layers that save but found " << int64_t(*saves);
  if (!getSidesAttr())
    return success();
  llvm::SmallDenseSet<Attribute> earlier, seen;
  for (Operation *op = (*this)->getPrevNode(); op; op = op->getPrevNode())
    if (auto stage = dyn_cast<StageOp>(op))
      earlier.insert(stage.getCalleeAttr());
  for (Attribute side : getSidesAttr()) {
    if (!earlier.contains(side))
      return emitOpError("takes the result of ") << side << ", which is no earlier stage";
    if (!seen.insert(side).second)
      return emitOpError("takes the result of ") << side << " twice";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Names of arguments of a stage's functions
//===----------------------------------------------------------------------===//

/// The names of the arguments of one function, in order. Side inputs, after `x`, have the names of
/// their stages. The last activation that a backward function takes is the gradient of the stage's
/// result.
static SmallVector<StringRef> getArgumentNames(FunctionOpInterface func, StageFunction function,
                                               ArrayRef<StringRef> sides, bool takesTargets,
                                               bool takesDocuments) {
  SmallVector<StringRef> names;
  const bool generates = function == StageFunction::prefill || function == StageFunction::generate;
  size_t activations = 0;
  int64_t lastActivation = -1;
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    if (auto param = func.getArgAttrOfType<SymbolRefAttr>(i, kParamAttr)) {
      names.push_back(param.getLeafReference().getValue());
    } else if (Attribute saved = func.getArgAttr(i, kSavedAttr)) {
      auto name = dyn_cast<StringAttr>(saved);
      names.push_back(name ? name.getValue() : "saved");
    } else if (func.getArgAttr(i, kCacheAttr)) {
      names.push_back("cache");
    } else if (getElementTypeOrSelf(type).isInteger()) {
      const bool isDocuments = takesDocuments && i == (takesTargets ? 2 : 1);
      names.push_back(i == 0                   ? "tokens"
                      : generates              ? "positions"
                      : takesTargets && i == 1 ? "targets"
                      : isDocuments            ? "document_starts"
                                               : "dropout_keys");
    } else {
      names.push_back(activations > 0 && activations <= sides.size() ? sides[activations - 1]
                                                                     : "x");
      lastActivation = int64_t(i);
      ++activations;
    }
  }
  if ((function == StageFunction::backward || function == StageFunction::backward_saved) &&
      lastActivation >= 0)
    names[lastActivation] =
        cast<RankedTensorType>(func.getArgumentTypes()[lastActivation]).getRank() == 0 ? "dloss"
                                                                                       : "dy";
  if (function == StageFunction::sum)
    names = {"dy", "sum"};
  return names;
}

void nameArguments(ModuleOp module) {
  const auto stages = llvm::to_vector(module.getOps<StageOp>());
  for (StageOp stage : stages) {
    for (int kind = 0; kind <= int(getMaxEnumValForStageFunction()); ++kind) {
      const auto function = StageFunction(kind);
      auto func =
          module.lookupSymbol<FunctionOpInterface>(getFunctionName(stage.getStageName(), function));
      if (!func || func.isExternal())
        continue;
      const bool takesTargets = stage.getTargets() || stage == stages.back();
      auto names = getArgumentNames(func, function, stage.getSideNames(), takesTargets,
                                    stage.getDocuments());
      for (auto [arg, name] : llvm::zip_equal(func.getArguments(), names)) {
        Location place = arg.getLoc();
        if (auto named = dyn_cast<NameLoc>(place))
          place = named.getChildLoc();
        arg.setLoc(NameLoc::get(StringAttr::get(module.getContext(), name), place));
      }
    }
  }
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/StageOp.cpp.inc"
