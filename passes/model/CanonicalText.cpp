//===- CanonicalText.cpp --------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/model/CanonicalText.h"

#include "dialect/Boa.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <charconv>

using namespace mlir;

namespace boa {
namespace {

/// Prints a name: one word as it is, any other text in quotes, so that it stays on its line.
std::string printName(StringRef name) {
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; };
  if (!name.empty() && llvm::all_of(name, isWord))
    return name.str();
  std::string text;
  llvm::raw_string_ostream out(text);
  out << '"';
  llvm::printEscapedString(name, out);
  out << '"';
  return text;
}

/// Prints `[64, 192]`.
std::string printShape(ArrayRef<int64_t> shape) {
  return "[" +
         llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }),
                    ", ") +
         "]";
}

/// Prints the fewest digits that are read back as the same number.
std::string printReal(double value) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, std::end(digits), value).ptr);
}

/// Prints the value of an attribute without its type.
std::string printAttribute(Attribute attr) {
  if (auto flag = dyn_cast<BoolAttr>(attr))
    return flag.getValue() ? "true" : "false";
  if (auto whole = dyn_cast<IntegerAttr>(attr))
    return llvm::toString(whole.getValue(), 10, /*Signed=*/true);
  if (auto real = dyn_cast<FloatAttr>(attr))
    return printReal(real.getValueAsDouble());
  if (auto list = dyn_cast<ArrayAttr>(attr))
    return "[" + llvm::join(llvm::map_range(list, printAttribute), ", ") + "]";
  if (auto type = dyn_cast<TypeAttr>(attr))
    if (auto shaped = dyn_cast<ShapedType>(type.getValue()); shaped && shaped.hasRank())
      return printShape(shaped.getShape());
  if (auto dense = dyn_cast<DenseElementsAttr>(attr)) {
    if (dense.isSplat())
      return "all " + printAttribute(dense.getSplatValue<Attribute>());
    ArrayRef<char> data = dense.getRawData();
    return "data " + hashCanonicalText(StringRef(data.data(), data.size()));
  }
  std::string text;
  llvm::raw_string_ostream out(text);
  attr.print(out, /*elideType=*/true);
  return text;
}

/// Prints ` {causal, heads = 6}`, by name; nothing if there are none. The plan for an op is no part
/// of the computation.
std::string printAttributes(Operation *op) {
  SmallVector<std::string> parts;
  for (NamedAttribute attr : op->getAttrDictionary()) {
    if (isa_and_nonnull<BoaDialect>(attr.getNameDialect()))
      continue;
    std::string name = printName(attr.getName());
    parts.push_back(isa<UnitAttr>(attr.getValue())
                        ? name
                        : llvm::formatv("{0} = {1}", name, printAttribute(attr.getValue())).str());
  }
  return parts.empty() ? "" : " {" + llvm::join(parts, ", ") + "}";
}

/// Prints the body of one stage.
class BodyPrinter {
public:
  BodyPrinter(func::FuncOp func, StageOp stage, llvm::raw_ostream &out)
      : func(func), op(stage), stage(stage.getStageName()), out(out) {}

  void run() {
    Block &block = func.getBody().front();
    describeArguments();
    for (Operation &op : block.without_terminator())
      if (!isa<CastOp, DropoutOp>(op))
        describe(&op);
    SmallVector<std::string> returned;
    for (Value value : block.getTerminator()->getOperands()) {
      Operand operand = resolve(value);
      if (operand.node >= 0)
        print(unsigned(operand.node));
      returned.push_back(printOperand(operand));
    }
    out << "  return " << llvm::join(returned, ", ") << '\n';
  }

private:
  /// The computation of an op. Ops of one node compute the same.
  struct Node;
  /// A result of a node, or, if `node` is -1, an argument of the function.
  struct Operand {
    int64_t node = -1;
    unsigned result = 0; // or the number of the argument
    bool operator==(const Operand &other) const {
      return node == other.node && result == other.result;
    }
  };
  struct Node {
    std::string name, rest; // rest: attributes and shapes
    SmallVector<Operand> operands;
    llvm::BitVector leaves; // the arguments that it depends on, by rank
    unsigned line = 0;      // where it is printed, from 1; 0: not yet
  };

  void describeArguments() {
    const SmallVector<TakenAttr> takes = op.getTaken();
    unsigned inputs = 0;
    llvm::StringMap<unsigned> taken; // by how many arguments
    for (BlockArgument arg : func.getArguments()) {
      if (auto param = func.getArgAttrOfType<SymbolRefAttr>(arg.getArgNumber(), kParamAttr)) {
        StringRef group = getUserName(param.getRootReference().getValue());
        std::string name = printName(param.getLeafReference().getValue());
        arguments.push_back("@" + (group == stage ? name : printName(group) + "." + name));
        continue;
      }
      // The first dimension of an input counts sequences.
      auto type = dyn_cast<RankedTensorType>(arg.getType());
      if (type && type.getRank() > 0) {
        sequences = inputs == 0 ? type.getDimSize(0) : sequences;
        perSequence.insert(arg);
      }
      arguments.push_back(inputs < takes.size() ? printTaken(takes[inputs], inputs)
                                                : llvm::formatv("input{0}", inputs).str());
      ++inputs;
      // Several arguments may take one result.
      if (unsigned number = ++taken[arguments.back()]; number > 1)
        arguments.back() += "'" + std::to_string(number);
      out << "  " << arguments.back() << ' ' << shapeOf(arg) << '\n';
    }
    // The order of arguments is that of their first use.
    SmallVector<std::string> sorted(arguments);
    llvm::sort(sorted);
    for (const std::string &argument : arguments)
      ranks.push_back(unsigned(llvm::lower_bound(sorted, argument) - sorted.begin()));
  }

  /// Prints what an argument takes. The main input of a stage is the result before it, or the
  /// tokens.
  std::string printTaken(TakenAttr taken, unsigned number) {
    Operation *other = op->getPrevNode();
    while (other && !isa<StageOp>(other))
      other = other->getPrevNode();
    auto before = cast_or_null<StageOp>(other);
    StringRef name = taken.getFrom().getValue();
    const bool isFirst = !before && name == kTokens;
    const bool isBefore = before && taken == TakenAttr::get(before.getCalleeAttr());
    if (number == 0 && (isFirst || isBefore))
      return "input";
    if (op.getInput(taken))
      return printName(name);
    name.consume_back(getFunctionName("", StageFunction::forward));
    std::string text = "result(" + printName(name);
    if (taken.getNumber() != 0)
      text += "#" + std::to_string(taken.getNumber());
    return text + ")";
  }

  /// Prints the shape without the dimension of sequences.
  std::string shapeOf(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return "[?]";
    ArrayRef<int64_t> shape = type.getShape();
    if (perSequence.contains(value) && !shape.empty() && shape[0] == sequences)
      shape = shape.drop_front();
    return printShape(shape);
  }

  /// The operand of casts. A cast changes only the element type, which is no part of the
  /// computation. Dropout is a matter of training.
  static Value skipCasts(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isa<CastOp, DropoutOp>(op))
        break;
      value = op->getOperand(0);
    }
    return value;
  }
  Operand resolve(Value value) {
    value = skipCasts(value);
    if (auto arg = dyn_cast<BlockArgument>(value))
      return {-1, arg.getArgNumber()};
    return {int64_t(nodeOf.lookup(value.getDefiningOp())), cast<OpResult>(value).getResultNumber()};
  }

  void describe(Operation *op) {
    Node node;
    StringRef name = op->getName().getStringRef();
    name.consume_front("boa.");
    node.name = printName(name);
    for (Value operand : op->getOperands()) {
      if (perSequence.contains(skipCasts(operand)))
        perSequence.insert_range(op->getResults());
      node.operands.push_back(resolve(operand));
    }
    SmallVector<std::string> shapes;
    for (Value result : op->getResults())
      shapes.push_back(shapeOf(result));
    node.rest = llvm::formatv("{0} : {1}", printAttributes(op), llvm::join(shapes, ", "));
    node.leaves.resize(unsigned(arguments.size()));
    for (const Operand &operand : node.operands)
      node.leaves |= leavesOf(operand);
    if (mayChangePlaces(op) && comesBefore(node.operands[1], node.operands[0]))
      std::swap(node.operands[0], node.operands[1]);

    std::string key = node.name + node.rest;
    for (const Operand &operand : node.operands)
      key += llvm::formatv(";{0},{1}", operand.node, operand.result);
    auto [known, isNew] = nodeOfKey.try_emplace(key, unsigned(nodes.size()));
    if (isNew)
      nodes.push_back(std::move(node));
    nodeOf[op] = known->second;
  }

  /// Whether operands may change places: they have one shape, sequences apart. Ops that are not
  /// known here keep the order of their operands, which only makes the text stricter.
  bool mayChangePlaces(Operation *op) {
    return isa<AddOp, MulOp>(op) &&
           shapeOf(skipCasts(op->getOperand(0))) == shapeOf(skipCasts(op->getOperand(1)));
  }

  llvm::BitVector leavesOf(const Operand &operand) {
    if (operand.node >= 0)
      return nodes[size_t(operand.node)].leaves;
    llvm::BitVector leaf(unsigned(arguments.size()));
    leaf.set(ranks[operand.result]);
    return leaf;
  }

  /// Orders operands by their computation. No order of ops and no name of a value changes it. The
  /// arguments below them come first: then another op does not change the order of others. Nodes
  /// that differ do so in themselves or in an operand: this goes down to there.
  bool comesBefore(Operand a, Operand b) {
    llvm::BitVector leaves = leavesOf(a);
    leaves ^= leavesOf(b);
    if (int first = leaves.find_first(); first >= 0)
      return leavesOf(b).test(unsigned(first));
    while (!(a == b)) {
      if (a.node < 0 || b.node < 0)
        return a.node < 0 && (b.node >= 0 || arguments[a.result] < arguments[b.result]);
      if (a.node == b.node)
        return a.result < b.result;
      const Node &first = nodes[size_t(a.node)], &second = nodes[size_t(b.node)];
      if (first.name != second.name || first.rest != second.rest)
        return std::tie(first.name, first.rest) < std::tie(second.name, second.rest);
      if (first.operands.size() != second.operands.size())
        return first.operands.size() < second.operands.size();
      size_t i = 0;
      while (first.operands[i] == second.operands[i])
        ++i;
      a = first.operands[i];
      b = second.operands[i];
    }
    return false;
  }

  std::string printOperand(const Operand &operand) {
    if (operand.node < 0)
      return arguments[operand.result];
    std::string text = llvm::formatv("%{0}", nodes[size_t(operand.node)].line);
    return operand.result == 0 ? text : llvm::formatv("{0}#{1}", text, operand.result).str();
  }

  /// Prints the node after all nodes that it needs.
  void print(unsigned root) {
    SmallVector<std::pair<unsigned, unsigned>> path{{root, 0}}; // a node, and its next operand
    while (!path.empty()) {
      auto &[at, next] = path.back();
      Node &node = nodes[at];
      if (node.line == 0 && next < node.operands.size()) {
        const int64_t operand = node.operands[next++].node;
        if (operand >= 0)
          path.push_back({unsigned(operand), 0});
        continue;
      }
      path.pop_back();
      if (node.line != 0)
        continue;
      node.line = ++lines;
      SmallVector<std::string> operands;
      for (const Operand &operand : node.operands)
        operands.push_back(printOperand(operand));
      out << "  %" << node.line << " = " << node.name << (operands.empty() ? "" : " ")
          << llvm::join(operands, ", ") << node.rest << '\n';
    }
  }

  func::FuncOp func;
  StageOp op;
  StringRef stage;
  llvm::raw_ostream &out;
  SmallVector<std::string> arguments; // how each is printed
  SmallVector<unsigned> ranks;        // of each among them, by that text
  int64_t sequences = 0;              // in a micro-batch
  llvm::DenseSet<Value> perSequence;  // whose first dimension may count them
  std::vector<Node> nodes;
  llvm::DenseMap<Operation *, unsigned> nodeOf;
  llvm::StringMap<unsigned> nodeOfKey;
  unsigned lines = 0;
};

void printHeader(StringRef kind, StringRef name, uint64_t repeat, llvm::raw_ostream &out) {
  out << kind << ' ' << printName(name);
  if (repeat > 1)
    out << " repeat " << repeat;
  out << '\n';
}

void printParameters(ModuleOp module, StringRef group, llvm::raw_ostream &out) {
  for (ParamOp param : getParamsOf(module, group))
    out << "  param " << printName(param.getSymName()) << ' '
        << printShape(param.getType().getShape()) << '\n';
}

} // namespace

std::string printCanonicalText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  // What belongs to no stage, in IR that was written by hand.
  llvm::StringSet<> stages;
  for (auto stage : module.getOps<StageOp>())
    stages.insert(stage.getStageName());
  llvm::StringSet<> printed;
  for (auto group : module.getOps<GroupOp>())
    if (StringRef name = getUserName(group.getSymName());
        !stages.contains(name) && printed.insert(name).second) {
      printHeader("group", name, group.getRepeat(), out);
      printParameters(module, name, out);
    }
  for (auto stage : module.getOps<StageOp>()) {
    StringRef name = stage.getStageName();
    printHeader("stage", name, stage.getRepeat(), out);
    printParameters(module, name, out);
    if (auto func = module.lookupSymbol<func::FuncOp>(stage.getCallee()))
      BodyPrinter(func, stage, out).run();
  }
  return text;
}

std::string hashCanonicalText(StringRef text) {
  auto hash = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(text));
  return llvm::utohexstr(hash.high64, /*LowerCase=*/true, /*Width=*/16) +
         llvm::utohexstr(hash.low64, /*LowerCase=*/true, /*Width=*/16);
}

} // namespace boa
