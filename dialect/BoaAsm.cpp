//===- BoaAsm.cpp - Printed names, and the clause of traffic --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value is named after its meaning: an index after the axis of its loop, a buffer after
// the role of its storage. The description of the dialect lists the names.
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// Names of entries of storages
//===----------------------------------------------------------------------===//

/// `made`: a result that is written, as opposed to an operand that is read.
static StringRef getRoleName(StorageOp storage, bool made) {
  switch (storage.getRole()) {
  case Role::weights:
    return "w";
  case Role::master:
    return "low";
  case Role::gradients:
    return "g";
  case Role::checkpoints:
    return made ? "y" : "x";
  case Role::boundary_gradients:
    return made ? "dx" : "dy";
  case Role::loss_gradients:
    return "dloss";
  default:
    return storage.getLabel();
  }
}

static bool isLayerIndex(Value index) {
  if (auto shift = index.getDefiningOp<ShiftOp>())
    index = shift.getIndex();
  auto arg = dyn_cast<BlockArgument>(index);
  auto loop = arg ? dyn_cast_or_null<LoopOp>(arg.getOwner()->getParentOp()) : LoopOp();
  return loop && loop.getDimension() == Dimension::layer;
}

/// Empty for a storage that does not exist. Outside the loop over layers several entries with
/// one role are live side by side: there the name adds the stage, or the layer's number.
static std::string getEntryName(Operation *op, FlatSymbolRefAttr name, ValueRange indices,
                                bool chunk, bool made) {
  auto storage = name ? SymbolTable::lookupNearestSymbolFrom<StorageOp>(op, name) : StorageOp();
  if (!storage)
    return {};
  std::string result = getRoleName(storage, made).str();
  // "weights.block", "saved.block.bf16", "saved.block.q"
  auto [stage, type] = storage.getSymName().split('.').second.split('.');
  APInt layer;
  if (!indices.empty() && !isLayerIndex(indices.front())) {
    if (!stage.empty())
      result += ("." + stage).str();
    else if (matchPattern(indices.front(), m_ConstantInt(&layer)))
      result += "." + std::to_string(layer.getSExtValue());
  }
  if (!type.empty())
    result += ("." + type).str();
  return chunk ? result + ".c" : result;
}

void ReadOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getValue(), getEntryName(*this, getStorageAttr(), getIndices(), false, /*made=*/false));
}
void PrefetchOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getBuffer(), getEntryName(*this, getStorageAttr(), getIndices(), bool(getFirst()),
                                    /*made=*/false));
}
void CreateOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getBuffer(), getEntryName(*this, getStorageAttr(), getIndices(), bool(getFirst()),
                                    /*made=*/true));
}

// A result is named after the storage in which it is put.
void CallOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (Value result : getOutputs()) {
    std::string name;
    for (Operation *user : result.getUsers()) {
      if (auto write = dyn_cast<WriteOp>(user))
        name = getEntryName(user, write.getStorageAttr(), write.getIndices(), false, /*made=*/true);
      else if (auto add = dyn_cast<AccumulateOp>(user))
        name = getEntryName(user, add.getStorageAttr(), add.getIndices(), false, /*made=*/true);
      if (!name.empty())
        break;
    }
    setName(result, name);
  }
}

//===----------------------------------------------------------------------===//
// Names of indices and conditions
//===----------------------------------------------------------------------===//

void StepOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  static constexpr StringRef names[] = {"step", "pending"};
  if (!region.empty())
    for (auto [arg, name] : llvm::zip(region.getArguments(), names))
      setName(arg, name);
}

void LoopOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (!region.empty() && region.getNumArguments() > 0)
    setName(region.getArgument(0), stringifyDimension(getDimension()).take_front());
}

void ShiftOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  const int64_t by = getBy();
  setName(getResult(), by > 0 ? "next" : by < 0 ? "previous" : "");
}
void AtFirstOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), isLayerIndex(getIndex()) ? "begin" : "first");
}
void AtLastOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), isLayerIndex(getIndex()) ? "end" : "last");
}

//===----------------------------------------------------------------------===//
// Names of arguments of a stage's functions
//===----------------------------------------------------------------------===//

/// The arguments of one function, in order. Side inputs, after `x`, have the names of their
/// stages. The last activation that a backward function takes is the gradient of the stage's
/// result.
static SmallVector<StringRef> getArgumentNames(FunctionOpInterface func, StageFunction function,
                                               ArrayRef<StringRef> sides, bool takesTargets) {
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
      names.push_back(i == 0                   ? "tokens"
                      : generates              ? "positions"
                      : takesTargets && i == 1 ? "targets"
                                               : "document_starts");
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
      auto names = getArgumentNames(func, function, stage.getSideNames(), takesTargets);
      for (auto [arg, name] : llvm::zip_equal(func.getArguments(), names)) {
        Location place = arg.getLoc();
        if (auto named = dyn_cast<NameLoc>(place))
          place = named.getChildLoc();
        arg.setLoc(NameLoc::get(StringAttr::get(module.getContext(), name), place));
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// boa.step @step(%step, %pending) traffic {
//   first read checkpoints 6094848, weights 6639616
//   ...
// } { ... }
//===----------------------------------------------------------------------===//

namespace {
struct TrafficRow {
  StringRef word;
  StringLiteral attr;
};
} // namespace
static constexpr TrafficRow kTrafficRows[] = {
    {"first", kFirstTrafficAttr}, {"second", kSecondTrafficAttr}, {"each", kTrafficAttr}};
static constexpr StringLiteral kDirections[] = {"read", "written", "to_device", "to_host"};

static const TrafficRow *findRow(StringRef run) {
  return llvm::find_if(kTrafficRows, [&](const TrafficRow &row) { return row.word == run; });
}

/// A word that the custom form can read back.
static bool isLabel(StringRef name) {
  return findRow(name) == std::end(kTrafficRows) && !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// {read = {weights = 12 : i64}, ...}: directions, labels and bytes only.
static bool isTraffic(Attribute attr) {
  auto directions = dyn_cast_or_null<DictionaryAttr>(attr);
  return directions && !directions.empty() &&
         llvm::all_of(directions, [](NamedAttribute direction) {
           auto roles = dyn_cast<DictionaryAttr>(direction.getValue());
           return roles && llvm::is_contained(kDirections, direction.getName().getValue()) &&
                  llvm::all_of(roles, [](NamedAttribute role) {
                    auto bytes = dyn_cast<IntegerAttr>(role.getValue());
                    return isLabel(role.getName()) && bytes &&
                           bytes.getType().isSignlessInteger(64);
                  });
         });
}

static void printTrafficRow(OpAsmPrinter &printer, StringRef run, NamedAttribute direction) {
  static constexpr size_t kWidth = 100;
  std::string line = (run + " " + direction.getName().getValue()).str();
  StringRef separator = " ";
  printer.printNewline();
  for (NamedAttribute role : cast<DictionaryAttr>(direction.getValue())) {
    const std::string next =
        (role.getName().getValue() + " " + Twine(cast<IntegerAttr>(role.getValue()).getInt()))
            .str();
    if (line.size() + separator.size() + next.size() > kWidth) {
      printer << line << ',';
      printer.printNewline();
      line = "  ";
      separator = "";
    }
    line += (separator + next).str();
    separator = ", ";
  }
  printer << line;
}

void printTraffic(OpAsmPrinter &printer, StepOp step, SmallVectorImpl<StringRef> &elided) {
  SmallVector<std::pair<StringRef, DictionaryAttr>> rows;
  for (const TrafficRow &row : kTrafficRows)
    if (Attribute attr = step->getDiscardableAttr(row.attr); isTraffic(attr)) {
      rows.emplace_back(row.word, cast<DictionaryAttr>(attr));
      elided.push_back(row.attr);
    }
  if (rows.empty())
    return;
  printer << " traffic {";
  printer.increaseIndent();
  for (auto [run, directions] : rows)
    for (NamedAttribute direction : directions)
      printTrafficRow(printer, run, direction);
  printer.decreaseIndent();
  printer.printNewline();
  printer << '}';
}

/// weights 12, momentum 24. If the list is empty, `next` becomes the first word after it, if
/// there is one.
static ParseResult parseBytes(OpAsmParser &parser, DictionaryAttr &result, StringRef &next) {
  NamedAttrList labels;
  StringRef label;
  SMLoc loc = parser.getCurrentLocation();
  bool more = succeeded(parser.parseOptionalKeyword(&label));
  if (more && findRow(label) != std::end(kTrafficRows)) {
    next = label;
    more = false;
  }
  while (more) {
    int64_t bytes;
    if (parser.parseInteger(bytes))
      return failure();
    if (labels.set(label, parser.getBuilder().getI64IntegerAttr(bytes)))
      return parser.emitError(loc, "counts ") << label << " twice";
    more = succeeded(parser.parseOptionalComma());
    loc = parser.getCurrentLocation();
    if (more && parser.parseKeyword(&label))
      return failure();
  }
  result = labels.getDictionary(parser.getContext());
  return success();
}

ParseResult parseTraffic(OpAsmParser &parser, NamedAttrList &attributes) {
  if (failed(parser.parseOptionalKeyword("traffic")))
    return success();
  NamedAttrList rows[std::size(kTrafficRows)];
  if (parser.parseLBrace())
    return failure();
  StringRef next;
  while (!next.empty() || failed(parser.parseOptionalRBrace())) {
    StringRef run = std::exchange(next, {}), direction;
    SMLoc loc = parser.getCurrentLocation();
    if (run.empty() && parser.parseKeyword(&run))
      return failure();
    const TrafficRow *row = findRow(run);
    if (row == std::end(kTrafficRows))
      return parser.emitError(loc, "expected first, second or each but found ") << run;
    loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&direction))
      return failure();
    if (!llvm::is_contained(kDirections, direction))
      return parser.emitError(loc, "expected read, written, to_device or to_host but found ")
             << direction;
    DictionaryAttr labels;
    if (parseBytes(parser, labels, next))
      return failure();
    if (rows[row - kTrafficRows].set(direction, labels))
      return parser.emitError(loc, "counts ") << run << ' ' << direction << " twice";
  }
  for (auto [row, directions] : llvm::zip_equal(kTrafficRows, rows))
    if (!directions.empty())
      attributes.set(row.attr, directions.getDictionary(parser.getContext()));
  return success();
}

} // namespace boa
