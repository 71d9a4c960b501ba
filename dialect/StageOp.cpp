//===- StageOp.cpp - boa.stage, its inputs, its functions' arguments -------===//
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

//===----------------------------------------------------------------------===//
// boa.stage
//===----------------------------------------------------------------------===//

// (@embed_forward, @embed_forward[1], @targets)
static ParseResult parseTakes(OpAsmParser &parser, ArrayAttr &takes) {
  SmallVector<Attribute> list;
  auto parse = [&]() -> ParseResult {
    StringAttr from;
    int64_t number = 0;
    if (parser.parseSymbolName(from) || (succeeded(parser.parseOptionalLSquare()) &&
                                         (parser.parseInteger(number) || parser.parseRSquare())))
      return failure();
    list.push_back(TakenAttr::get(FlatSymbolRefAttr::get(from), number));
    return success();
  };
  if (failed(parser.parseOptionalRParen()) &&
      (parser.parseCommaSeparatedList(parse) || parser.parseRParen()))
    return failure();
  takes = parser.getBuilder().getArrayAttr(list);
  return success();
}
static void printTakes(OpAsmPrinter &printer, Operation *, ArrayAttr takes) {
  llvm::interleaveComma(takes.getAsRange<TakenAttr>(), printer, [&](TakenAttr taken) {
    printer.printSymbolName(taken.getFrom().getValue());
    if (taken.getNumber() != 0)
      printer << '[' << taken.getNumber() << ']';
  });
  printer << ')';
}

void StageOp::build(OpBuilder &builder, OperationState &state, StringRef callee,
                    ArrayRef<TakenAttr> takes, uint64_t repeat) {
  build(builder, state, callee,
        builder.getArrayAttr(SmallVector<Attribute>(takes.begin(), takes.end())), repeat,
        IntegerAttr());
}

InputOp StageOp::getInput(TakenAttr taken) {
  return SymbolTable::lookupNearestSymbolFrom<InputOp>(*this, taken.getFrom());
}

static StringRef getStageNameOf(StringRef function) {
  function.consume_back(getFunctionName("", StageFunction::forward));
  return function;
}
StringRef StageOp::getStageName() { return getStageNameOf(getCallee()); }

/// The number of arguments of a function before its parameters.
static unsigned countActivations(FunctionOpInterface func) {
  unsigned count = 0;
  while (count < func.getNumArguments() && !func.getArgAttr(count, kParamAttr))
    ++count;
  return count;
}

static LogicalResult verifyParams(StageOp op, FunctionOpInterface callee,
                                  SymbolTableCollection &tables) {
  for (unsigned i = 0, e = callee.getNumArguments(); i != e; ++i) {
    auto param = callee.getArgAttrOfType<SymbolRefAttr>(i, kParamAttr);
    if (!param)
      continue;
    auto known = tables.lookupNearestSymbolFrom<ParamOp>(op, param);
    if (!known)
      return op.emitOpError("argument ") << i << " of @" << op.getCallee()
                                         << " names a parameter that does not exist: " << param;
    if (known.getType() != callee.getArgumentTypes()[i])
      return op.emitOpError("argument ")
             << i << " of @" << op.getCallee() << " has type " << callee.getArgumentTypes()[i]
             << " but " << param << " has type " << known.getType();
  }
  return success();
}

/// Checks that what an argument takes exists, and has the type of the argument.
static LogicalResult verifyTaken(StageOp op, TakenAttr taken, Type type,
                                 const llvm::SmallDenseSet<Attribute> &missing,
                                 SymbolTableCollection &tables) {
  FlatSymbolRefAttr from = taken.getFrom();
  if (missing.contains(from))
    return op.emitOpError("takes ") << from << ", which is no input and no earlier stage";
  SmallVector<Type> types;
  if (auto input = tables.lookupNearestSymbolFrom<InputOp>(op, from))
    types.push_back(input.getType());
  else if (auto func = tables.lookupNearestSymbolFrom<FunctionOpInterface>(op, from))
    types = llvm::to_vector(func.getResultTypes());
  const int64_t number = taken.getNumber(), count = int64_t(types.size());
  if (number < 0 || number >= count)
    return op.emitOpError("takes result ")
           << number << " of " << from << ", which returns " << count;
  if (types[number] != type)
    return op.emitOpError("takes ") << type << " of " << from << ", which is " << types[number];
  return success();
}

LogicalResult StageOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto callee = tables.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("expected a function named @") << getCallee();
  if (failed(verifyParams(*this, callee, tables)))
    return failure();
  if (auto saves = getSaves(); saves && (*saves < 1 || *saves >= getRepeat()))
    return emitOpError("expected 1 to ")
           << int64_t(getRepeat()) - 1 << " layers that save but found " << int64_t(*saves);
  auto isInput = [&](TakenAttr taken) {
    return bool(tables.lookupNearestSymbolFrom<InputOp>(*this, taken.getFrom()));
  };
  const SmallVector<TakenAttr> takes = getTaken();
  if (unsigned found = countActivations(callee); found != takes.size())
    return emitOpError("takes ") << takes.size() << " values but @" << getCallee() << " has "
                                 << found << " arguments before its parameters";
  // What it takes mostly stands shortly before it.
  llvm::SmallDenseSet<Attribute> missing, seen;
  for (TakenAttr taken : takes)
    if (!isInput(taken))
      missing.insert(taken.getFrom());
  StageOp before;
  for (Operation *op = (*this)->getPrevNode(); op && !(missing.empty() && before);
       op = op->getPrevNode())
    if (auto stage = dyn_cast<StageOp>(op)) {
      missing.erase(stage.getCalleeAttr());
      before = before ? before : stage;
    }
  const unsigned carried = getRepeat() > 1 ? callee.getNumResults() : 0;
  for (auto [i, taken] : llvm::enumerate(takes)) {
    Type type = callee.getArgumentTypes()[i];
    if (failed(verifyTaken(*this, taken, type, missing, tables)))
      return failure();
    if (i < carried && isInput(taken))
      return emitOpError("carries ")
             << taken.getFrom() << " from layer to layer: expected the result of a stage";
    // Gradients of the others are added up in one place. Integers have none.
    const bool apart =
        i < carried || (i == 0 && before && taken.getFrom() == before.getCalleeAttr());
    const bool mayRepeat = isa<IntegerType>(getElementTypeOrSelf(type)) &&
                           (taken.getFrom().getValue() == kTokens || !isInput(taken));
    if (!apart && !mayRepeat && !seen.insert(taken).second)
      return emitOpError("takes ") << taken.getFrom() << " twice";
  }
  for (unsigned i = 0; i < carried; ++i)
    if (i >= takes.size() || callee.getArgumentTypes()[i] != callee.getResultTypes()[i]) {
      InFlightDiagnostic diag =
          emitOpError("repeats, so its result must have the type of its input: ");
      if (i < takes.size())
        diag << callee.getArgumentTypes()[i];
      else
        diag << "none";
      return diag << " but it returns " << callee.getResultTypes()[i];
    }
  return success();
}

//===----------------------------------------------------------------------===//
// Names of arguments of a stage's functions
//===----------------------------------------------------------------------===//

/// The names of the arguments of one function, in order. The main activation is `x`. Behind its
/// activations a backward function takes the gradients of the results.
static SmallVector<StringRef> getArgumentNames(FunctionOpInterface func, StageFunction function,
                                               StageOp stage, unsigned carried) {
  if (function == StageFunction::sum)
    return SmallVector<StringRef>(func.getNumArguments(), "dy");
  const bool generates = function == StageFunction::prefill || function == StageFunction::generate;
  SmallVector<StringRef> activations, names;
  bool hasMain = false;
  for (auto [i, taken] : llvm::enumerate(stage.getTaken())) {
    StringRef from = taken.getFrom().getValue();
    if (from == kTargets && (generates || function == StageFunction::logits))
      continue;
    const bool isMain = !stage.getInput(taken) && (!hasMain || i < carried);
    hasMain |= isMain;
    activations.push_back(isMain ? "x" : getStageNameOf(from));
  }
  size_t next = 0;
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    if (auto param = func.getArgAttrOfType<SymbolRefAttr>(i, kParamAttr)) {
      names.push_back(param.getLeafReference().getValue());
    } else if (Attribute saved = func.getArgAttr(i, kSavedAttr)) {
      auto name = dyn_cast<StringAttr>(saved);
      names.push_back(name ? name.getValue() : "saved");
    } else if (func.getArgAttr(i, kCacheAttr)) {
      names.push_back("cache");
    } else if (next < activations.size()) {
      names.push_back(activations[next++]);
    } else {
      auto tensor = dyn_cast<RankedTensorType>(type);
      names.push_back(generates ? "positions" : tensor && tensor.getRank() == 0 ? "dloss" : "dy");
    }
  }
  return names;
}

void nameArguments(ModuleOp module) {
  for (auto stage : module.getOps<StageOp>()) {
    auto forward = module.lookupSymbol<FunctionOpInterface>(stage.getCallee());
    const unsigned results = forward ? forward.getNumResults() : 0;
    const unsigned carried = stage.getRepeat() > 1 ? results : 0;
    auto nameThose = [&](StringRef of, StageFunction function) {
      auto func = module.lookupSymbol<FunctionOpInterface>(getFunctionName(of, function));
      if (!func || func.isExternal())
        return;
      auto names = getArgumentNames(func, function, stage, carried);
      for (auto [arg, name] : llvm::zip_equal(func.getArguments(), names))
        if (!isa<NameLoc>(arg.getLoc()))
          arg.setLoc(NameLoc::get(StringAttr::get(module.getContext(), name), arg.getLoc()));
    };
    for (int kind = 0; kind <= int(getMaxEnumValForStageFunction()); ++kind)
      nameThose(stage.getStageName(), StageFunction(kind));
    for (unsigned i = 1; i < results; ++i)
      nameThose((stage.getStageName() + "." + Twine(i)).str(), StageFunction::sum);
  }
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/StageOp.cpp.inc"
