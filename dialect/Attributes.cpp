//===- Attributes.cpp - Discardable attributes of the dialect -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of all attributes boa.NAME: where each may stand, and what it may be. Passes read what
// earlier passes left, and rely on it. So it is checked here, for IR that comes from anywhere. A
// name that the table does not have is refused: nothing would read it.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "runtime/support/nearest.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace boa {

namespace {

//===----------------------------------------------------------------------===//
// What an attribute may be
//===----------------------------------------------------------------------===//

template <typename... Attrs> bool isOf(Attribute value) { return isa<Attrs...>(value); }

template <unsigned width, int64_t least> bool isCount(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isSignlessInteger(width) && number.getInt() >= least;
}

bool isBytes(Attribute value) {
  return isCount<64, 0>(value) && cast<IntegerAttr>(value).getInt() <= kMostBytes;
}

// It becomes a part of a storage's name.
bool isName(Attribute value) {
  auto name = dyn_cast<StringAttr>(value);
  auto isLetter = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  return name && !name.empty() && llvm::all_of(name.getValue(), isLetter);
}
bool isSaved(Attribute value) { return isa<UnitAttr>(value) || isName(value); }

bool isParam(Attribute value) {
  auto param = dyn_cast<SymbolRefAttr>(value);
  return param && param.getNestedReferences().size() == 1;
}

bool isAny(Attribute) { return true; }

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

enum Where : unsigned {
  onModule = 1 << 0,
  onFunction = 1 << 1,
  onArgument = 1 << 2,
  onResult = 1 << 3,
  inFunction = 1 << 4,
  onGroup = 1 << 5,
  onStorage = 1 << 6,
  onKernelArgument = 1 << 7,
  onKernelResult = 1 << 8,
};
constexpr std::pair<Where, StringLiteral> kPlaces[] = {
    {onModule, "a module"},
    {onFunction, "a function"},
    {onArgument, "an argument of a function"},
    {onResult, "a result of a function"},
    {inFunction, "an op in a function"},
    {onGroup, "a boa.group"},
    {onStorage, "a boa.storage"},
    {onKernelArgument, "an argument of a kernel"},
    {onKernelResult, "a result of a kernel"}};

struct Rule {
  StringLiteral name;
  unsigned where;
  bool (*fits)(Attribute);
  StringLiteral what;
};

constexpr StringLiteral kUnit = "without a value", kBytes = "an i64 of 0 to 2^56",
                        kIndex = "an i32 of at least 0";
constexpr Rule kRules[] = {
    {kParamAttr, onArgument | onResult, isParam, "the name of a parameter, @GROUP::@NAME,"},
    {kSavedAttr, onArgument | onResult, isSaved, "letters, digits and '_', or without a value,"},
    {kSumAttr, onArgument | onResult, isOf<UnitAttr>, kUnit},
    {kCacheAttr, onArgument, isOf<UnitAttr>, kUnit},
    {kCacheAttr, onResult, isCount<64, 0>, "the number of an argument"},
    {kNameAttr, inFunction, isName, "letters, digits and '_'"},
    {kActivationAttr, inFunction, isAny, ""}, // verifyActivation
    {kSharedAttr, inFunction, isOf<UnitAttr>, kUnit},
    {kPlaceAttr, onResult | onStorage, isPlace, "a place, as in boa.config @plan,"},
    {kLayerAttr, onGroup, isOf<UnitAttr>, kUnit},
    {kMostChunksAttr, onModule, isCount<64, 1>, "an i64 of at least 1"},
    {kWorkspaceAttr, onModule, isBytes, kBytes},
    {kAttentionScratchAttr, onModule, isBytes, kBytes},
    {kConstantsAttr, onModule, isBytes, kBytes},
    {kMemoryAttr, onFunction, isBytes, kBytes},
    {kSharedBytesAttr, onFunction, isBytes, kBytes},
    {kArgumentsAttr, onFunction, isCount<64, 0>, "an i64 of at least 0"},
    {kBufferAttr, onKernelArgument | onKernelResult, isCount<32, 0>, kIndex},
    {kOffsetAttr, onKernelArgument | onKernelResult, isBytes, kBytes},
    {kResultAttr, onKernelArgument, isCount<32, 0>, "the number of a result, an i32,"},
    {kArenaAttr, onModule, isBytes, kBytes},
    {kArenaDeviceAttr, onModule, isBytes, kBytes},
    {kComputesAttr, onModule, isCount<64, INT64_MIN>, "an i64"},
    {kCanonicalTextAttr, onModule, isOf<StringAttr>, "a text"},
};

LogicalResult refuseName(Operation *op, StringRef name) {
  std::vector<std::string> names;
  for (const Rule &rule : kRules)
    names.push_back(rule.name.str());
  InFlightDiagnostic diag = op->emitOpError("has an attribute that the dialect does not know: ")
                            << name;
  if (std::string near = NearestWord(name, names); !near.empty())
    diag << ", did you mean " << near << "?";
  return diag;
}

LogicalResult verify(Operation *op, NamedAttribute attr, unsigned where) {
  const StringRef name = attr.getName();
  unsigned allowed = 0;
  const Rule *here = nullptr;
  for (const Rule &rule : kRules)
    if (rule.name == name) {
      allowed |= rule.where;
      if (rule.where & where)
        here = &rule;
    }
  if (allowed == 0)
    return refuseName(op, name);
  if (!here) {
    InFlightDiagnostic diag = op->emitOpError("expected ") << name << " on ";
    llvm::interleave(
        llvm::make_filter_range(kPlaces, [&](auto &place) { return allowed & place.first; }),
        [&](auto &place) { diag << place.second; }, [&] { diag << " or "; });
    return diag;
  }
  if (here->fits(attr.getValue()))
    return success();
  return op->emitOpError("expected ")
         << name << " to be " << here->what << " but found " << attr.getValue();
}

unsigned placeOf(Operation *op) {
  if (isa<ModuleOp>(op))
    return onModule;
  if (isa<FunctionOpInterface>(op))
    return onFunction;
  if (isa<GroupOp>(op))
    return onGroup;
  if (isa<StorageOp>(op))
    return onStorage;
  return op->getParentOfType<FunctionOpInterface>() ? inFunction : 0;
}

//===----------------------------------------------------------------------===//
// Of arguments and results of a function
//===----------------------------------------------------------------------===//

/// Checks that a value is of one kind.
LogicalResult verifyKind(FunctionOpInterface func, DictionaryAttr attrs) {
  StringRef kind;
  for (StringRef name :
       {StringRef(kParamAttr), StringRef(kSavedAttr), StringRef(kSumAttr), StringRef(kCacheAttr)})
    if (attrs.contains(name)) {
      if (!kind.empty())
        return func.emitOpError("expected ") << kind << " or " << name << ", not both of one value";
      kind = name;
    }
  return success();
}

} // namespace

LogicalResult BoaDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  if (failed(verify(op, attr, placeOf(op))))
    return failure();
  return attr.getName() == kActivationAttr ? verifyActivation(op, attr.getValue()) : success();
}

LogicalResult BoaDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                   NamedAttribute attr) {
  if (failed(verify(op, attr, isa<KernelOp>(op) ? onKernelArgument : onArgument)))
    return failure();
  auto func = dyn_cast<FunctionOpInterface>(op);
  return func ? verifyKind(func, func.getArgAttrDict(index)) : success();
}

LogicalResult BoaDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                      NamedAttribute attr) {
  if (failed(verify(op, attr, isa<KernelOp>(op) ? onKernelResult : onResult)))
    return failure();
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func || failed(verifyKind(func, func.getResultAttrDict(index))))
    return failure(bool(func));
  if (attr.getName() == kCacheAttr) {
    const int64_t argument = cast<IntegerAttr>(attr.getValue()).getInt();
    if (argument >= int64_t(func.getNumArguments()) ||
        !func.getArgAttr(unsigned(argument), kCacheAttr) ||
        func.getArgumentTypes()[size_t(argument)] != func.getResultTypes()[index])
      return func.emitOpError("expected ")
             << kCacheAttr << " to be the number of a cache of type "
             << func.getResultTypes()[index] << " but found " << argument;
  }
  return success();
}

} // namespace boa
