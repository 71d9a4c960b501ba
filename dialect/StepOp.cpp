//===- StepOp.cpp - boa.step ----------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ChunkLoops.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// boa.step @step(%step, %pending) traffic {
//   first read checkpoints 6094848, weights 6639616
//   ...
// } { ... }
//
// The attributes k*TrafficAttr, a line for each direction.
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

/// Whether the custom form can read the word back.
static bool isLabel(StringRef name) {
  return findRow(name) == std::end(kTrafficRows) && !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Whether the custom form can print {read = {weights = 12 : i64}, ...}: directions, labels and
/// bytes only.
static bool isPrintable(Attribute attr) {
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

/// Prints the traffic. Adds the attributes that it printed to `elided`.
static void printTraffic(OpAsmPrinter &printer, StepOp step, SmallVectorImpl<StringRef> &elided) {
  SmallVector<std::pair<StringRef, DictionaryAttr>> rows;
  for (const TrafficRow &row : kTrafficRows)
    if (Attribute attr = step->getDiscardableAttr(row.attr); isPrintable(attr)) {
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

/// Parses `weights 12, momentum 24`. If the list is empty, `next` becomes the first word after it,
/// if there is one.
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

static ParseResult parseTraffic(OpAsmParser &parser, NamedAttrList &attributes) {
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

//===----------------------------------------------------------------------===//
// boa.step
//===----------------------------------------------------------------------===//

void StepOp::build(OpBuilder &builder, OperationState &state, EntryPoint entry) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(stringifyEntryPoint(entry)));
  Block &block = state.addRegion()->emplaceBlock();
  block.addArguments({builder.getIndexType(), builder.getIndexType()},
                     {state.location, state.location});
}

// boa.step @step(%step, %pending) [traffic { ... }] { ... }
ParseResult StepOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> args;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parser.parseArgumentList(args, OpAsmParser::Delimiter::Paren) ||
      parseTraffic(parser, result.attributes) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
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
  SmallVector<StringRef> elided = {getSymNameAttrName()};
  printTraffic(printer, *this, elided);
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), elided);
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
  return success();
}

/// Checks the number of iterations, since passes run each of them.
static LogicalResult verifyIterations(StepOp step) {
  if (LoopOp loop = findLoopBeyond(step, kMostIterations))
    return loop.emitOpError("brings the step to more than ")
           << kMostIterations << " iterations: the compiler runs each of them";
  return success();
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
