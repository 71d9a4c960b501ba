//===- Override.cpp - Values from the command line ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An option rewrites the tree as if its value had been written in the file: the
// checker sees no difference, except that what is wrong with the value points at
// the option. Constants must exist, since nothing would use a new one; settings
// and arguments are added where they are absent, and the checker says which are
// known. A path of a file and a name of a template may stand without quotes, which a
// shell takes away.
//
//===----------------------------------------------------------------------===//
#include "frontend/Override.h"

#include "frontend/Parser.h"
#include "frontend/Settings.h"
#include "frontend/Token.h"
#include "runtime/abi/sources.h"

#include <algorithm>

namespace boa::frontend {

namespace {

class Override {
public:
  Override(const Sources &sources, int32_t file, Program &program, Diagnostics &diagnostics)
      : sources(sources), file(file), program(program), diagnostics(diagnostics) {}

  void apply() {
    const std::string &text = sources.get(file).text;
    size_t equals = text.find('=');
    if (equals == std::string::npos) {
      error(locate(0, text.size()),
            "expected PATH=VALUE, such as train.steps=50, but found no '='");
      return;
    }
    if (!splitPath(text.substr(0, equals)))
      return;
    value = parseOption(equals + 1);
    if (!value)
      return;
    if (path[0].text == "model")
      applyToModel();
    else if (path[0].text == "train")
      applyToTrain();
    else if (path[0].text == "plan")
      applyToPlan();
    else if (path[0].text == "machine")
      applyToMachine();
    else
      error(path[0].location, "expected a path that begins with model, train, plan or machine "
                              "but found '" +
                                  path[0].text + "'" +
                                  didYouMean(path[0].text, {"model", "train", "plan", "machine"}));
  }

private:
  Location locate(size_t begin, size_t end) const { return {file, uint32_t(begin), uint32_t(end)}; }
  void error(Location location, std::string message) {
    diagnostics.error(location, std::move(message));
  }

  static bool isPlainName(const std::string &name) {
    for (char c : name)
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
        return false;
    return !name.empty() && !(name[0] >= '0' && name[0] <= '9');
  }

  bool splitPath(const std::string &text) {
    for (size_t at = 0; at <= text.size();) {
      size_t dot = std::min(text.find('.', at), text.size());
      size_t begin = std::min(text.find_first_not_of(" \t", at), dot);
      size_t end = dot;
      while (end > begin && (text[end - 1] == ' ' || text[end - 1] == '\t'))
        --end;
      // What is no name could not be printed and parsed again.
      std::string name = text.substr(begin, end - begin);
      if (!isPlainName(name) || (!path.empty() && isReserved(name))) {
        error(locate(begin == end ? at : begin, end), "expected a name in the path of the option");
        return false;
      }
      path.push_back({name, locate(begin, end)});
      at = dot + 1;
    }
    if (path.size() >= 2 && path.size() <= 4) {
      if (std::string block = movedTo(path[0].text, path[1].text); !block.empty())
        path[0].text = block;
      return true;
    }
    std::string hint = path.size() < 2 ? didYouMeanSetting(path[0].text) : "";
    error(locate(0, text.size()),
          "expected a path of two to four names, such as train.steps" + hint);
    return false;
  }

  template <typename Predicate> bool isSetting(Predicate holds) const {
    const std::string whole = join();
    return std::any_of(
        WrittenSettings().begin(), WrittenSettings().end(),
        [&](const Setting &setting) { return setting.path == whole && holds(setting); });
  }
  bool isOfKind(SettingKind kind) const {
    return isSetting([&](const Setting &setting) { return setting.kind == kind; });
  }
  /// Whether `none` is a value.
  bool mayBeAbsent() const {
    return isSetting([](const Setting &setting) { return *setting.none != '\0'; });
  }
  /// Whether the value names a file or a folder.
  bool namesFile() const { return isOfKind(SettingKind::Path); }

  /// The value from byte `begin` on; a string without quotes where it names a
  /// file, a folder or a template, or is one pattern.
  ExprPtr parseOption(size_t begin) {
    const std::string &text = sources.get(file).text;
    size_t first = text.find_first_not_of(" \t\r\n", begin);
    const bool isCall = first != std::string::npos && IsSourceCall(text.substr(first));
    const bool isAbsent =
        first != std::string::npos && text.substr(first) == "none" && mayBeAbsent();
    const bool names = namesFile() || isOfKind(SettingKind::Text) ||
                       (isOfKind(SettingKind::Data) && !isCall && !isAbsent) ||
                       (isOfKind(SettingKind::Patterns) && first != std::string::npos &&
                        text[first] != '(' && !isAbsent);
    // What no string can hold is left to the parser to refuse.
    bool holds = first != std::string::npos && text.size() <= Sources::kMaxBytes;
    size_t end = holds ? text.find_last_not_of(" \t\r\n") + 1 : begin;
    for (size_t i = first; holds && i < end; ++i)
      holds = text[i] != '"' && text[i] != '\n' && text[i] != '\0';
    if (!names || !holds)
      return parseValue(sources, file, begin, diagnostics);
    auto string = std::make_unique<Expr>();
    string->kind = Expr::Kind::String;
    string->location = locate(first, end);
    string->name = text.substr(first, end - first);
    return string;
  }

  void applyToModel() {
    if (program.models.empty())
      return;
    if (path.size() != 2)
      return error(path[2].location, "a constant of the model has no part '" + path[2].text + "'");
    std::vector<std::string> names;
    for (ConstantSyntax &constant : program.models[0].constants) {
      names.push_back(constant.name.text);
      if (constant.name.text != path[1].text)
        continue;
      constant.value = std::move(value);
      return;
    }
    error(path[1].location, "model '" + program.models[0].name.text + "' has no constant '" +
                                path[1].text + "'" + didYouMean(path[1].text, names));
  }

  /// Sets `key` among fields, in place of a value or a block.
  void setField(std::vector<Field> &fields, const Name &key) {
    for (Field &field : fields)
      if (field.key.text == key.text) {
        field.value = std::move(value);
        field.isBlock = false;
        field.label.reset();
        field.labelIsString = false;
        field.fields.clear();
        return;
      }
    Field field;
    field.key = key;
    field.value = std::move(value);
    fields.push_back(std::move(field));
  }

  void applyToTrain() {
    if (!program.trains.empty())
      applyToBlock(program.trains[0].fields, "the train block");
  }

  void applyToPlan() {
    if (program.plans.empty())
      program.plans.push_back({path[0].location, {}, {}});
    std::vector<Field> &fields = program.plans[0].fields;
    if (path.size() > 2 && path[1].text == "place")
      return setPlace(fields);
    applyToBlock(fields, "the plan");
  }

  void applyToBlock(std::vector<Field> &fields, const char *block) {
    if (path.size() == 2)
      return setField(fields, path[1]);
    for (Field &field : fields)
      if (field.key.text == path[1].text && !field.isBlock)
        return setPart(*field.value);
    const std::string &of = path[1].text;
    if (hasPattern(path[0].text + "." + of))
      return error(path[1].location,
                   "settings of some " + of + " stand in the spec: " + of + " \"PATTERN\" { ... }");
    error(path[1].location, std::string(block) + " sets no '" + path[1].text + "' of which '" +
                                path[2].text + "' could be changed" + didYouMeanSetting(join()));
  }

  /// One role; place = ssd becomes a block in which all others keep that tier.
  void setPlace(std::vector<Field> &fields) {
    if (path.size() != 3)
      return refusePart(3);
    Field *place = nullptr;
    for (Field &field : fields)
      if (field.key.text == "place")
        place = &field;
    if (!place) {
      fields.emplace_back();
      place = &fields.back();
      place->key = path[1];
    }
    if (!place->isBlock && place->value && place->value->kind == Expr::Kind::Shares)
      return error(path[2].location, "place is given as shares of everything: expected --set of "
                                     "plan.place as a whole");
    if (!place->isBlock && place->value && place->value->kind == Expr::Kind::Name)
      for (const Setting *role : settingsOf("plan.place")) {
        Field field;
        field.key = {std::string(role->name()), place->value->location};
        field.value = std::make_unique<Expr>();
        field.value->kind = Expr::Kind::Name;
        field.value->name = place->value->name;
        field.value->location = place->value->location;
        place->fields.push_back(std::move(field));
      }
    place->value.reset();
    place->isBlock = true;
    setField(place->fields, path[2]);
  }

  /// The path, or its first names.
  std::string join(size_t names = 4) const {
    std::string text;
    for (size_t i = 0; i < std::min(names, path.size()); ++i)
      text += (i ? "." : "") + path[i].text;
    return text;
  }

  /// That what the first `names` names of the path mean has no part of the next.
  void refusePart(size_t names) {
    error(path[names].location,
          "'" + path[names - 1].text + "' has no part '" + path[names].text + "'");
  }

  /// The argument of a call that has a name, or stands where that one belongs.
  /// `depth` names of the path lead to the call.
  Argument *findArgument(Expr &call, const std::string &name, size_t depth) const {
    std::vector<const Setting *> rows = settingsOf(join(depth), call.name);
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      Argument &argument = call.arguments[i];
      if (argument.keyword ? argument.keyword->text == name
                           : i < rows.size() && rows[i]->name() == name)
        return &argument;
    }
    return nullptr;
  }

  /// Sets what path[2], path[3] ... name in the value of a setting.
  void setPart(Expr &setting) {
    std::vector<Expr *> calls;
    Expr *part = &setting;
    for (size_t i = 2; i < path.size(); ++i) {
      if (part->kind != Expr::Kind::Call && part->kind != Expr::Kind::Name)
        return refusePart(i);
      calls.push_back(part);
      if (i + 1 == path.size())
        break;
      Argument *argument =
          part->kind == Expr::Kind::Call ? findArgument(*part, path[i].text, i) : nullptr;
      if (!argument)
        return error(path[i].location, "'" + part->name + "' sets no '" + path[i].text +
                                           "' of which '" + path[i + 1].text +
                                           "' could be changed");
      part = argument->value.get();
    }
    // In the calls around it the value is deeper than where it was parsed.
    if (value->depth + int(calls.size()) > Expr::kMaxDepth)
      return error(value->location,
                   "the expression nests more than " + std::to_string(Expr::kMaxDepth) + " deep");
    setArgument(*calls.back());
    for (size_t i = calls.size(); i-- > 0;) {
      calls[i]->depth = 1;
      for (const Argument &argument : calls[i]->arguments)
        calls[i]->depth = std::max(calls[i]->depth, argument.value->depth + 1);
    }
  }

  void setArgument(Expr &call) {
    call.kind = Expr::Kind::Call;
    if (Argument *argument = findArgument(call, path.back().text, path.size() - 1)) {
      argument->value = std::move(value);
      return;
    }
    Argument argument;
    argument.keyword = path.back();
    argument.value = std::move(value);
    call.arguments.push_back(std::move(argument));
  }

  void applyToMachine() {
    if (program.machines.empty()) {
      MachineSyntax machine;
      machine.name = {"default", path[0].location};
      machine.location = path[0].location;
      program.machines.push_back(std::move(machine));
    }
    std::vector<Field> &fields = program.machines[0].fields;
    if (const auto [rate, format] = shortRate(join()); !rate.empty()) {
      path[2].text = rate;
      path.push_back({format, path[2].location});
    }
    const bool isOfFormat = path.size() == 4 && hasFormats(join(3));
    if (path.size() != 3 && !isOfFormat)
      return error(path[1].location,
                   "expected a path such as machine.host.memory or machine.device.memory" +
                       didYouMeanSetting(join()));
    bool known = path[1].text == "device" || path[1].text == "host" || path[1].text == "ssd";
    if (!known)
      return error(path[1].location,
                   "a machine has no setting '" + path[1].text + "'" + didYouMeanSetting(join()));
    std::vector<Field *> blocks;
    for (Field &field : fields)
      if (field.key.text == path[1].text && field.isBlock)
        blocks.push_back(&field);
    if (blocks.empty()) {
      Field block;
      block.key = path[1];
      block.isBlock = true;
      if (path[1].text == "device")
        block.label = Name{"cpu", path[1].location};
      if (path[1].text == "ssd") {
        block.label = Name{"state", path[1].location};
        block.labelIsString = true;
      }
      fields.push_back(std::move(block));
      blocks.push_back(&fields.back());
    }
    if (namesFile()) // machine.ssd.path
      return setFolder(blocks);
    // Each ssd gets the value; a tree owns its parts, so it is parsed again.
    size_t begin = sources.get(file).text.find('=') + 1;
    for (Field *block : blocks) {
      if (!value)
        value = parseValue(sources, file, begin, diagnostics);
      if (isOfFormat)
        setFormat(block->fields);
      else
        setField(block->fields, path[2]);
    }
  }

  /// Sets path[3] in a block path[2], which is added where none has it.
  void setFormat(std::vector<Field> &fields) {
    for (Field &rate : fields)
      for (Field &format : rate.fields)
        if (rate.key.text == path[2].text && format.key.text == path[3].text)
          return setField(rate.fields, path[3]);
    Field rate;
    rate.key = path[2];
    rate.isBlock = true;
    setField(rate.fields, path[3]);
    fields.push_back(std::move(rate));
  }

  /// The folder of the ssd, which is its label.
  void setFolder(const std::vector<Field *> &ssds) {
    if (ssds.size() > 1)
      return error(path[2].location, "the machine has " + std::to_string(ssds.size()) +
                                         " ssds, of which each needs a path of its own");
    if (value->kind != Expr::Kind::String)
      return error(value->location, "expected the path of a folder");
    ssds[0]->label = Name{value->name, value->location};
    ssds[0]->labelIsString = true;
  }

  const Sources &sources;
  int32_t file;
  Program &program;
  Diagnostics &diagnostics;
  std::vector<Name> path;
  ExprPtr value;
};

} // namespace

void applyOverride(const Sources &sources, int32_t file, Program &program,
                   Diagnostics &diagnostics) {
  Override(sources, file, program, diagnostics).apply();
}

} // namespace boa::frontend
