//===- StepOp.cpp - boa.step ----------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// boa.step @step(%step, %pending) traffic {
//   first read checkpoints 6094848, weights 6639616
//   ...
// } { ... }
//
// The attribute has bytes by run, direction and label: {first = {read = {weights = 12 : i64}}}.
//===----------------------------------------------------------------------===//

static constexpr StringRef kRuns[] = {"first", "second", "each"},
                           kDirections[] = {"read", "written", "to_device", "to_host"};

static LogicalResult verifyTraffic(StepOp step) {
  auto isBytes = [](NamedAttribute label) {
    auto bytes = dyn_cast<IntegerAttr>(label.getValue());
    return bytes && bytes.getType().isSignlessInteger(64) && bytes.getInt() >= 0;
  };
  auto isRow = [&](NamedAttribute direction) {
    auto labels = dyn_cast<DictionaryAttr>(direction.getValue());
    return labels && llvm::is_contained(kDirections, direction.getName().getValue()) &&
           llvm::all_of(labels, isBytes);
  };
  for (NamedAttribute run : step.getTraffic().value_or(DictionaryAttr::get(step.getContext())))
    if (auto rows = dyn_cast<DictionaryAttr>(run.getValue());
        !llvm::is_contained(kRuns, run.getName().getValue()) || !rows || rows.empty() ||
        !llvm::all_of(rows, isRow))
      return step.emitOpError("expected traffic to be bytes by run, direction and label but found ")
             << step.getTrafficAttr();
  return success();
}

/// Prints a label and its bytes. A label in quotes is no word of a row.
static std::string printBytes(NamedAttribute label) {
  const StringRef name = label.getName();
  const bool isWord = !llvm::is_contained(kRuns, name) && !name.empty() &&
                      !llvm::isDigit(name.front()) &&
                      llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  std::string text;
  llvm::raw_string_ostream out(text);
  out << (isWord ? "" : "\"");
  llvm::printEscapedString(name, out);
  out << (isWord ? " " : "\" ") << cast<IntegerAttr>(label.getValue()).getInt();
  return text;
}

static void printTrafficRow(OpAsmPrinter &printer, StringRef run, NamedAttribute direction) {
  static constexpr size_t kWidth = 100;
  std::string line = (run + " " + direction.getName().getValue()).str();
  StringRef separator = " ";
  printer.printNewline();
  for (NamedAttribute label : cast<DictionaryAttr>(direction.getValue())) {
    const std::string next = printBytes(label);
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

static void printTraffic(OpAsmPrinter &printer, DictionaryAttr traffic) {
  printer << " traffic {";
  printer.increaseIndent();
  for (StringRef run : kRuns)
    if (auto rows = traffic.getAs<DictionaryAttr>(run))
      for (NamedAttribute row : rows)
        printTrafficRow(printer, run, row);
  printer.decreaseIndent();
  printer.printNewline();
  printer << '}';
}

static ParseResult parseTraffic(OpAsmParser &parser, DictionaryAttr &traffic) {
  std::map<StringRef, std::map<StringRef, NamedAttrList>> runs;
  NamedAttrList *row = nullptr;
  if (parser.parseLBrace())
    return failure();
  while (failed(parser.parseOptionalRBrace())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef run, direction;
    if (succeeded(parser.parseOptionalKeyword(&run, kRuns))) {
      loc = parser.getCurrentLocation();
      if (parser.parseKeyword(&direction))
        return failure();
      if (!llvm::is_contained(kDirections, direction))
        return parser.emitError(loc, "expected read, written, to_device or to_host but found ")
               << direction;
      auto [place, isNew] = runs[run].try_emplace(direction);
      if (!isNew)
        return parser.emitError(loc, "counts ") << run << ' ' << direction << " twice";
      row = &place->second;
      continue;
    }
    std::string label;
    int64_t bytes;
    if (parser.parseKeywordOrString(&label))
      return failure();
    if (!row)
      return parser.emitError(loc, "expected first, second or each but found ") << label;
    if (parser.parseInteger(bytes))
      return failure();
    if (row->set(label, parser.getBuilder().getI64IntegerAttr(bytes)))
      return parser.emitError(loc, "counts ") << label << " twice";
    (void)parser.parseOptionalComma();
  }
  NamedAttrList all;
  for (auto &[run, rows] : runs) {
    NamedAttrList directions;
    for (auto &[direction, labels] : rows)
      directions.set(direction, labels.getDictionary(parser.getContext()));
    all.set(run, directions.getDictionary(parser.getContext()));
  }
  traffic = all.getDictionary(parser.getContext());
  return success();
}

//===----------------------------------------------------------------------===//
// boa.step
//===----------------------------------------------------------------------===//

// boa.step @step(%step, %pending) [traffic { ... }] { ... }
ParseResult StepOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> args;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parser.parseArgumentList(args, OpAsmParser::Delimiter::Paren))
    return failure();
  if (DictionaryAttr traffic; succeeded(parser.parseOptionalKeyword("traffic"))) {
    if (parseTraffic(parser, traffic))
      return failure();
    result.addAttribute(getTrafficAttrName(result.name), traffic);
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  if (Attribute traffic = result.attributes.get(getTrafficAttrName(result.name));
      traffic && !isa<DictionaryAttr>(traffic))
    return parser.emitError(parser.getNameLoc(),
                            "expected traffic to be bytes by run, direction and label but found ")
           << traffic;
  if (args.size() != 2)
    return parser.emitError(parser.getNameLoc(), "expected two arguments: step, pending");
  for (auto &arg : args)
    arg.type = parser.getBuilder().getIndexType();
  return parser.parseRegion(*result.addRegion(), args);
}

void StepOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(' << getStep() << ", " << getPending() << ')';
  if (DictionaryAttr traffic = getTrafficAttr())
    printTraffic(printer, traffic);
  printer.printOptionalAttrDictWithKeyword((*this)->getDiscardableAttrDictionary().getValue());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

/// Checks the uses of the numbers of steps. These grow without end: they say which update it is,
/// whether one is pending and in what direction a loop runs, but index nothing.
static LogicalResult verifyStepNumbers(StepOp step) {
  auto indexes = [](Operation *op, Value number) {
    auto access = dyn_cast<AccessOpInterface>(op);
    return isa<IndexOpInterface>(op) ||
           (access && (access.getChunk() == number ||
                       llvm::any_of(access.getAccesses(), [&](const StorageAccess &touched) {
                         return touched.chunk == number ||
                                llvm::is_contained(touched.indices, number);
                       })));
  };
  for (Value number : {step.getStep(), step.getPending()})
    for (Operation *user : number.getUsers())
      if (indexes(user, number))
        return user->emitOpError("uses the number of a step as an index");
  return success();
}

LogicalResult StepOp::verify() {
  if (!symbolizeEntryPoint(getSymName()))
    return emitOpError("expected @step, @drain, @evaluate, @predict, @prefill or @generate but "
                       "found @")
           << getSymName();
  const Type index = IndexType::get(getContext());
  if (getBlock()->getArgumentTypes() != ArrayRef<Type>({index, index}))
    return emitOpError("expected two arguments of its block, the indices step and pending");
  return verifyTraffic(*this);
}

/// Checks the number of iterations, since passes run each of them. Those of a loop over chunks
/// count as one if it can run as one and meets no retained copy.
static LogicalResult verifyIterations(StepOp step) {
  llvm::DenseSet<StringRef> retained; // storages
  step.walk([&](AccessOpInterface op) {
    if (Value buffer = op.getRetained())
      retained.insert(getStorageOf(buffer));
  });
  auto isOne = [&](LoopOp loop) {
    SmallVector<StringRef> opened;
    for (Operation &op : *loop.getBlock())
      for (Value buffer : op.getResults())
        if (StringRef storage = getStorageOf(buffer); !storage.empty())
          opened.push_back(storage);
    return loop.getOrder() == LoopOrder::forward && loop.canRunAsOne() && !opened.empty() &&
           llvm::none_of(opened, [&](StringRef storage) { return retained.contains(storage); });
  };
  Checked total = 0;
  WalkResult walked = step.walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    Checked runs = isOne(loop) ? 1 : loop.getTripCount();
    for (auto around = dyn_cast<LoopOp>(loop->getParentOp()); around;
         around = dyn_cast<LoopOp>(around->getParentOp()))
      runs *= around.getTripCount();
    total += runs;
    if (total.AtMost(kMostIterations))
      return WalkResult::advance();
    loop.emitOpError("brings the step to more than ")
        << kMostIterations << " iterations: the compiler runs each of them";
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

// Passes enumerate the program: they must know every op, and be able to compute
// every index.
LogicalResult StepOp::verifyRegions() {
  WalkResult walked = getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<LoopOp>(op);
        loop && loop.getGuard() && loop.getGuard() != getPending()) {
      op->emitOpError("expected the pending step of the boa.step as its guard");
      return WalkResult::interrupt();
    }
    auto isIndex = [](Type type) { return type.isIntOrIndex(); };
    if (isa<LoopOp, AccessOpInterface>(op) ||
        (isa<IndexOpInterface>(op) && llvm::all_of(op->getResultTypes(), isIndex)))
      return WalkResult::advance();
    if (llvm::any_of(op->getResultTypes(), isIndex))
      op->emitOpError("computes an index or a condition in a boa.step: expected boa.shift, "
                      "boa.at_first, boa.at_last, arith.andi or a constant");
    else
      op->emitOpError("is unknown in a boa.step: expected boa.loop, or an op of the step or of the "
                      "storage phase");
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted() || failed(verifyStepNumbers(*this)) ||
                 failed(verifyIterations(*this)));
}

StepOp findEntryPoint(ModuleOp module, EntryPoint entry) {
  return module.lookupSymbol<StepOp>(stringifyEntryPoint(entry));
}

void StepOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  static constexpr StringRef names[] = {"step", "pending"};
  if (!region.empty())
    for (auto [arg, name] : llvm::zip(region.getArguments(), names))
      setName(arg, name);
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/StepOp.cpp.inc"
