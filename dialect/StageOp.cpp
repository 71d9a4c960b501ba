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

//===----------------------------------------------------------------------===//
// boa.stage
//===----------------------------------------------------------------------===//

// (@embed_forward, @embed_forward[1], targets)
static ParseResult parseTakes(OpAsmParser &parser, ArrayAttr &takes) {
  SmallVector<Attribute> list;
  auto parse = [&]() -> ParseResult {
    StringAttr stage;
    int64_t number = 0;
    if (succeeded(parser.parseOptionalSymbolName(stage))) {
      if (succeeded(parser.parseOptionalLSquare()) &&
          (parser.parseInteger(number) || parser.parseRSquare()))
        return failure();
      list.push_back(TakenAttr::get(FlatSymbolRefAttr::get(stage), number));
      return success();
    }
    FailureOr<Role> input = FieldParser<Role>::parse(parser);
    if (succeeded(input))
      list.push_back(TakenAttr::get(parser.getContext(), *input));
    return failure(failed(input));
  };
  if (failed(parser.parseOptionalRParen()) &&
      (parser.parseCommaSeparatedList(parse) || parser.parseRParen()))
    return failure();
  takes = parser.getBuilder().getArrayAttr(list);
  return success();
}
static void printTakes(OpAsmPrinter &printer, Operation *, ArrayAttr takes) {
  llvm::interleaveComma(takes.getAsRange<TakenAttr>(), printer, [&](TakenAttr taken) {
    if (!taken.getStage())
      printer << stringifyRole(taken.getRole());
    else
      printer.printSymbolName(taken.getStage().getValue());
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
  FlatSymbolRefAttr stage = taken.getStage();
  if (!stage) {
    if (llvm::is_contained({Role::tokens, Role::targets, Role::document_starts, Role::dropout_keys},
                           taken.getRole()) &&
        taken.getNumber() == 0)
      return success();
    return op.emitOpError("takes ") << stringifyRole(taken.getRole())
                                    << ": expected tokens, targets, document_starts, dropout_keys "
                                       "or the result of a stage";
  }
  if (taken.getRole() != Role::checkpoints || missing.contains(stage))
    return op.emitOpError("takes the result of ") << stage << ", which is no earlier stage";
  auto from = tables.lookupNearestSymbolFrom<FunctionOpInterface>(op, stage);
  const int64_t results = from ? from.getNumResults() : 0;
  if (taken.getNumber() < 0 || taken.getNumber() >= results)
    return op.emitOpError("takes result ")
           << taken.getNumber() << " of " << stage << ", which returns " << results;
  if (Type given = from.getResultTypes()[taken.getNumber()]; given != type)
    return op.emitOpError("takes ")
           << type << " as the result of " << stage << ", which returns " << given;
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
  const SmallVector<TakenAttr> takes = getTaken();
  if (unsigned found = countActivations(callee); found != takes.size())
    return emitOpError("takes ") << takes.size() << " values but @" << getCallee() << " has "
                                 << found << " arguments before its parameters";
  // What it takes mostly stands shortly before it.
  llvm::SmallDenseSet<Attribute> missing, seen;
  for (TakenAttr taken : takes)
    if (taken.getStage())
      missing.insert(taken.getStage());
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
    if (i < carried && !taken.getStage())
      return emitOpError("carries ") << stringifyRole(taken.getRole())
                                     << " from layer to layer: expected the result of a stage";
    // Gradients of the others are added up in one place. Integers have none.
    const bool apart = i < carried || (i == 0 && before && taken.getStage() &&
                                       taken.getStage() == before.getCalleeAttr());
    const bool mayRepeat = isa<IntegerType>(getElementTypeOrSelf(type)) &&
                           llvm::is_contained({Role::tokens, Role::checkpoints}, taken.getRole());
    if (!apart && !mayRepeat && !seen.insert(taken).second)
      return emitOpError("takes the ")
             << (taken.getStage() ? "result of @" : "")
             << (taken.getStage() ? taken.getStage().getValue() : stringifyRole(taken.getRole()))
             << " twice";
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

/// The name of an argument that takes `taken`. The main activation is `x`.
static StringRef getName(TakenAttr taken, bool isMain) {
  if (!taken.getStage())
    return stringifyRole(taken.getRole());
  return isMain ? "x" : getStageNameOf(taken.getStage().getValue());
}

/// The names of the arguments of one function, in order. Behind its activations a backward function
/// takes the gradients of the results.
static SmallVector<StringRef> getArgumentNames(FunctionOpInterface func, StageFunction function,
                                               StageOp stage, unsigned carried) {
  if (function == StageFunction::sum)
    return SmallVector<StringRef>(func.getNumArguments(), "dy");
  const bool generates = function == StageFunction::prefill || function == StageFunction::generate;
  SmallVector<StringRef> activations, names;
  bool hasMain = false;
  for (auto [i, taken] : llvm::enumerate(stage.getTaken())) {
    if (taken.getRole() == Role::targets && (generates || function == StageFunction::logits))
      continue;
    const bool isMain = taken.getStage() && (!hasMain || i < carried);
    hasMain |= isMain;
    activations.push_back(getName(taken, isMain));
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
      for (auto [arg, name] : llvm::zip_equal(func.getArguments(), names)) {
        Location place = arg.getLoc();
        if (auto named = dyn_cast<NameLoc>(place))
          place = named.getChildLoc();
        arg.setLoc(NameLoc::get(StringAttr::get(module.getContext(), name), place));
      }
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
