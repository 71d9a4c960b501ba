//===- GenericText.cpp ----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/GenericText.h"

#include "test/passes/random/GenericTokens.h"
#include "test/passes/random/GenericWords.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <vector>

using llvm::StringRef;

namespace boa::random {

namespace {

class Text : Parts {
public:
  Text(const std::string &text, Random &random) : Parts(text), random(random) {}

  std::string change(std::string &what) {
    using Way = bool (Text::*)();
    static const std::pair<const char *, Way> ways[] = {
        {"a number", &Text::number},
        {"a number of an attribute", &Text::numberOfAttribute},
        {"an attribute dropped", &Text::dropAttribute},
        {"an attribute's value", &Text::otherValue},
        {"an attribute added", &Text::addAttribute},
        {"another operand", &Text::otherOperand},
        {"an operand dropped or doubled", &Text::countOperands},
        {"a type in all places", &Text::typeEverywhere},
        {"a type", &Text::oneType},
        {"a region emptied", &Text::emptyRegion},
        {"arguments of a block", &Text::blockArguments},
        {"another region", &Text::otherRegion},
        {"an op dropped", &Text::dropOp},
        {"an op doubled", &Text::doubleOp},
        {"an op moved", &Text::moveOp},
        {"an op added", &Text::addOp},
        {"another symbol", &Text::otherSymbol},
        {"another op", &Text::otherOp}};
    for (int tries = 0; tries < 20 && !ops.empty(); ++tries) {
      const auto &[name, way] = ways[random.below(random.chance(0.3) ? 8 : std::size(ways))];
      where.clear();
      if ((this->*way)()) {
        what += (what.empty() ? "" : "; ") + std::string(name) + where;
        break;
      }
    }
    std::string text;
    for (const Token &token : tokens)
      text += token.space + token.text;
    return text;
  }

private:
  //===--------------------------------------------------------------------===//
  // Edits. Tokens stay where they are; the text of several is put into the first.
  //===--------------------------------------------------------------------===//

  void put(Range range, const std::string &text) {
    where =
        " at " + at(range.begin).take_front(40).str() + ": " + StringRef(text).take_front(60).str();
    for (int i = range.begin; i < range.end; ++i) {
      tokens[size_t(i)].text = i == range.begin ? text : "";
      if (i > range.begin)
        tokens[size_t(i)].space.clear();
    }
  }
  void insertBefore(int i, const std::string &text) {
    where = ": " + StringRef(text).take_front(80).str();
    tokens[size_t(i)].text = text + tokens[size_t(i)].text;
  }
  void dropItem(Range list, size_t which) {
    std::vector<Range> all = items(list);
    Range item = all[which];
    if (which + 1 < all.size())
      ++item.end; // the comma behind it
    else if (which > 0)
      --item.begin;
    put(item, "");
  }
  void doubleItem(Range list, size_t which) {
    Range item = items(list)[which];
    std::string text = textOf(item);
    put(item, text + ", " + text);
  }

  //===--------------------------------------------------------------------===//
  // Ways to change it
  //===--------------------------------------------------------------------===//

  bool isInType(int i) const {
    return llvm::any_of(types, [&](Range type) { return type.begin <= i && i < type.end; });
  }
  bool changeNumberIn(Range range) {
    std::vector<int> numbers;
    for (int i = range.begin; i < range.end; ++i)
      if (isNumber(at(i)) && !foreign[size_t(i)] && !isInType(i))
        numbers.push_back(i);
    if (numbers.empty())
      return false;
    const int i = random.pick(numbers);
    std::string text = random.pick(edgeNumbers());
    if (int64_t was = 0; random.chance(0.4) && !at(i).getAsInteger(10, was) && was < 1 << 30)
      text = std::to_string(random.pick({was - 1, was + 1, was * 2, was / 2}));
    if (at(i).contains('.'))
      text = random.pick({"0.0", "-1.0", "1.0e+300", "1.0e-300", "0.5", "1.0"});
    put({i, i + 1}, text);
    return true;
  }
  bool number() { return changeNumberIn({0, int(tokens.size())}); }
  bool numberOfAttribute() {
    const Op &op = random.pick(ops);
    return changeNumberIn(random.chance(0.8) ? op.properties : op.attributes);
  }

  bool dropAttribute() {
    if (dictionaries.empty())
      return false;
    Range list = random.pick(dictionaries);
    size_t count = items(list).size();
    if (count == 0)
      return false;
    dropItem(list, size_t(random.below(int64_t(count))));
    return true;
  }

  std::string anyValue() {
    if (random.chance(0.6) || dictionaries.empty())
      return random.pick(oddValues());
    Range list = random.pick(dictionaries);
    std::vector<Range> all = items(list);
    if (all.empty())
      return "unit";
    Range item = random.pick(all);
    return at(item.begin + 1) == "=" ? textOf({item.begin + 2, item.end}) : "unit";
  }

  /// Of an attribute of that name, elsewhere.
  std::string valueOf(StringRef name) {
    std::vector<std::string> values;
    for (Range list : dictionaries)
      for (Range item : items(list))
        if (at(item.begin) == name && at(item.begin + 1) == "=")
          values.push_back(textOf({item.begin + 2, item.end}));
    return random.pick(values);
  }

  bool otherValue() {
    if (dictionaries.empty())
      return false;
    std::vector<Range> all = items(random.pick(dictionaries));
    if (all.empty())
      return false;
    Range item = random.pick(all);
    if (at(item.begin + 1) != "=")
      return false;
    const std::string name = at(item.begin).str();
    put({item.begin + 2, item.end}, random.chance(0.5) ? valueOf(name) : anyValue());
    where = " of " + name + where;
    return true;
  }

  bool addAttribute() {
    std::string name = random.pick(attributeNames());
    if (random.chance(0.25) && !dictionaries.empty()) { // a name that stands elsewhere
      std::vector<Range> all = items(random.pick(dictionaries));
      if (!all.empty())
        name = at(random.pick(all).begin).str();
    }
    const std::string text = name + " = " + anyValue();
    if (random.chance(0.5) && !dictionaries.empty()) {
      Range list = random.pick(dictionaries);
      insertBefore(list.end, (list ? ", " : "") + text);
      return true;
    }
    const Op &op = random.pick(ops);
    if (op.attributes) {
      insertBefore(op.attributes.end, ", " + text);
      return true;
    }
    insertBefore(op.operandTypes.begin - 2, "{" + text + "} "); // before the colon
    return true;
  }

  bool otherOperand() {
    const size_t number = size_t(random.below(int64_t(ops.size())));
    const Op &op = ops[number];
    std::vector<Range> operands = items(op.operands), operandTypes = items(op.operandTypes);
    if (operands.empty() || operands.size() != operandTypes.size())
      return false;
    const size_t which = size_t(random.below(int64_t(operands.size())));
    // Of the same type, which an op not far before it uses.
    std::vector<std::string> same{textOf(operands[which])};
    for (size_t other = number - std::min<size_t>(number, 20); other < number; ++other) {
      std::vector<Range> values = items(ops[other].operands), of = items(ops[other].operandTypes);
      for (size_t i = 0; i < std::min(values.size(), of.size()); ++i)
        if (textOf(of[i]) == textOf(operandTypes[which]) && textOf(values[i]) != same[0])
          same.push_back(textOf(values[i]));
    }
    if (same.size() > 1)
      same.erase(same.begin());
    put(operands[which], random.pick(same));
    where += " of " + at(op.name).str();
    return true;
  }

  bool countOperands() {
    const Op &op = random.pick(ops);
    const size_t count = items(op.operands).size();
    if (count == 0 || count != items(op.operandTypes).size())
      return false;
    const size_t which = size_t(random.below(int64_t(count)));
    if (random.chance(0.5)) {
      dropItem(op.operands, which);
      dropItem(op.operandTypes, which);
    } else {
      doubleItem(op.operands, which);
      doubleItem(op.operandTypes, which);
    }
    where += " of " + at(op.name).str();
    return true;
  }

  std::string changedType(Range type) {
    std::vector<int> numbers, words;
    for (int i = type.begin; i < type.end; ++i) {
      if (isNumber(at(i)))
        numbers.push_back(i);
      if (llvm::is_contained(elementTypes(), at(i)))
        words.push_back(i);
    }
    if (random.chance(0.15) && !types.empty())
      return textOf(random.pick(types));
    std::vector<int> &from =
        numbers.empty() || (random.chance(0.4) && !words.empty()) ? words : numbers;
    if (from.empty())
      return "tensor<f32>";
    const int which = random.pick(from);
    std::string text;
    for (int i = type.begin; i < type.end; ++i) {
      std::string token = at(i).str();
      if (i == which && &from == &words)
        token = random.pick(elementTypes());
      else if (i == which)
        token = random.chance(0.1) ? "?" : random.pick(edgeNumbers());
      text += (i == type.begin ? "" : tokens[size_t(i)].space) + token;
    }
    return text;
  }

  bool typeEverywhere() {
    if (types.empty())
      return false;
    Range type = random.pick(types);
    const std::string was = textOf(type), is = changedType(type);
    for (Range other : types)
      if (textOf(other) == was)
        put(other, is);
    where = " " + was + ": " + is;
    return true;
  }
  bool oneType() {
    if (types.empty())
      return false;
    Range type = random.pick(types);
    put(type, changedType(type));
    return true;
  }

  /// The regions of an op, without braces.
  std::vector<Range> regionsOf(const Op &op) const {
    std::vector<Range> regions;
    for (Range region : items(op.regions))
      if (at(region.begin) == "{" && partner(region.begin) > 0)
        regions.push_back({region.begin + 1, partner(region.begin)});
    return regions;
  }
  std::vector<Range> allRegions() const {
    std::vector<Range> all;
    for (const Op &op : ops)
      if (at(op.name) != "\"builtin.module\"" || random.chance(0.02))
        for (Range region : regionsOf(op))
          all.push_back(region);
    return all;
  }
  bool emptyRegion() {
    std::vector<Range> all = allRegions();
    if (all.empty())
      return false;
    Range region = random.pick(all);
    const int first = region.begin; // ^bb0(%a: index):
    int end = first;
    if (at(first).starts_with("^")) {
      end = at(first + 1) == "(" ? partner(first + 1) + 1 : first + 1;
      ++end;
    }
    switch (random.below(3)) {
    case 0:
      put(region, "");
      return true;
    case 1:
      put(region, "^bb0:");
      return true;
    default:
      put({end, region.end}, "");
      return true;
    }
  }
  bool blockArguments() {
    std::vector<int> blocks;
    for (int i = 0; i + 1 < int(tokens.size()); ++i)
      if (at(i).starts_with("^") && startsLine(i) && at(i + 1) == "(" && partner(i + 1) > 0)
        blocks.push_back(i);
    if (blocks.empty())
      return false;
    const int block = random.pick(blocks);
    Range list{block + 2, partner(block + 1)};
    const size_t count = items(list).size();
    if (count == 0)
      return false;
    const size_t which = size_t(random.below(int64_t(count)));
    if (random.chance(0.3)) {
      dropItem(list, which);
    } else if (random.chance(0.4)) {
      insertBefore(list.end, ", %odd: index");
    } else {
      Range item = items(list)[which];
      put({item.begin + 2, item.end}, random.pick(elementTypes()));
    }
    return true;
  }
  bool otherRegion() {
    std::vector<Range> all = allRegions();
    if (all.empty())
      return false;
    Range to = random.pick(all), from = random.pick(all);
    if (from.begin <= to.begin && to.end <= from.end)
      return false;
    put(to, textOf(from));
    return true;
  }

  const Op &innerOp() {
    for (int tries = 0; tries < 10; ++tries)
      if (const Op &op = random.pick(ops); at(op.name) != "\"builtin.module\"")
        return op;
    return ops.back();
  }
  bool dropOp() {
    const Op op = innerOp();
    if (at(op.statement.begin).starts_with("%") && random.chance(0.8)) // its results have uses
      return false;
    const std::string name = at(op.name).str();
    put(op.statement, "");
    where = " " + name;
    return true;
  }
  bool doubleOp() {
    const Op op = innerOp();
    std::string text = textOf(op.statement);
    if (StringRef(text).starts_with("%")) // its results have other names
      text = "%again" + text.substr(1);
    const Op to = random.chance(0.6) ? op : innerOp();
    insertBefore(to.statement.begin, text + "\n");
    return true;
  }
  bool moveOp() {
    const Op op = innerOp(), to = innerOp();
    if (to.statement.begin >= op.statement.begin && to.statement.begin < op.statement.end)
      return false;
    const std::string text = textOf(op.statement);
    put(op.statement, "");
    insertBefore(to.statement.begin, text + "\n");
    return true;
  }
  bool addOp() {
    const Op to = random.chance(0.7) ? topLevelOp() : innerOp();
    insertBefore(to.statement.begin, random.pick(oddOps()) + "\n");
    return true;
  }
  const Op &topLevelOp() {
    for (int tries = 0; tries < 30; ++tries)
      if (const Op &op = random.pick(ops); tokens[size_t(op.statement.begin)].space == "\n  ")
        return op;
    return innerOp();
  }

  bool otherSymbol() {
    std::vector<int> symbols;
    for (int i = 0; i < int(tokens.size()); ++i)
      if (at(i).starts_with("@") && !foreign[size_t(i)])
        symbols.push_back(i);
    if (symbols.empty())
      return false;
    const int which = random.pick(symbols), other = random.pick(symbols);
    put({which, which + 1}, at(other).str());
    return true;
  }
  bool otherOp() {
    const Op op = innerOp(), other = innerOp();
    put({op.name, op.name + 1}, at(other.name).str());
    return true;
  }

  Random &random;
  std::string where;
};

} // namespace

std::string mutateText(const std::string &text, Random &random, std::string &changes) {
  std::string changed = text;
  for (int64_t count = random.pick({1, 1, 1, 1, 2, 3}); count; --count)
    changed = Text(changed, random).change(changes);
  return changed;
}

} // namespace boa::random
