//===- override.cpp - Values from the command line ------------------------===//
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
// known.
//
//===----------------------------------------------------------------------===//
#include "frontend/override.h"

#include "frontend/parser.h"

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
      error(whole(0, text.size()),
            "expected PATH=VALUE, such as train.steps=50, but found no '='");
      return;
    }
    if (!splitPath(text.substr(0, equals)))
      return;
    value = parseValue(sources, file, equals + 1, diagnostics);
    if (!value)
      return;
    if (path[0].text == "model")
      applyToModel();
    else if (path[0].text == "train")
      applyToTrain();
    else if (path[0].text == "machine")
      applyToMachine();
    else
      error(path[0].location, "expected a path that begins with model, train or machine but "
                              "found '" + path[0].text + "'" +
                                  didYouMean(path[0].text, {"model", "train", "machine"}));
  }

private:
  Location whole(size_t begin, size_t end) const {
    return {file, uint32_t(begin), uint32_t(end)};
  }
  void error(Location location, std::string message) {
    diagnostics.error(location, std::move(message));
  }

  bool splitPath(const std::string &text) {
    for (size_t at = 0; at <= text.size();) {
      size_t dot = std::min(text.find('.', at), text.size());
      size_t begin = std::min(text.find_first_not_of(" \t", at), dot);
      size_t end = dot;
      while (end > begin && (text[end - 1] == ' ' || text[end - 1] == '\t'))
        --end;
      if (begin == end) {
        error(whole(at, dot), "expected a name in the path of the option");
        return false;
      }
      path.push_back({text.substr(begin, end - begin), whole(begin, end)});
      at = dot + 1;
    }
    if (path.size() >= 2 && path.size() <= 3)
      return true;
    error(whole(0, text.size()), "expected a path of two or three names, such as train.steps");
    return false;
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
    if (program.trains.empty())
      return;
    std::vector<Field> &fields = program.trains[0].fields;
    if (path.size() == 2)
      return setField(fields, path[1]);
    if (path[1].text == "place")
      return setPlace(fields);
    for (Field &field : fields)
      if (field.key.text == path[1].text && !field.isBlock)
        return setArgument(*field.value);
    error(path[1].location, "the train block sets no '" + path[1].text + "' of which '" +
                                path[2].text + "' could be changed");
  }

  /// One role; place = ssd becomes a block in which all others keep that tier.
  void setPlace(std::vector<Field> &fields) {
    static constexpr const char *kRoles[] = {"weights",     "gradients",          "optimizer",
                                             "checkpoints", "boundary_gradients", "saved"};
    Field *place = nullptr;
    for (Field &field : fields)
      if (field.key.text == "place")
        place = &field;
    if (!place) {
      fields.emplace_back();
      place = &fields.back();
      place->key = path[1];
    }
    if (!place->isBlock && place->value && place->value->kind == Expr::Kind::Name)
      for (const char *role : kRoles) {
        Field field;
        field.key = {role, place->value->location};
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

  void setArgument(Expr &call) {
    if (call.kind == Expr::Kind::Name)
      call.kind = Expr::Kind::Call;
    if (call.kind != Expr::Kind::Call)
      return error(path[2].location,
                   "'" + path[1].text + "' has no part '" + path[2].text + "'");
    call.depth = std::max(call.depth, value->depth + 1);
    for (Argument &argument : call.arguments)
      if (argument.keyword && argument.keyword->text == path[2].text) {
        argument.value = std::move(value);
        return;
      }
    Argument argument;
    argument.keyword = path[2];
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
    if (path.size() != 3)
      return error(path[1].location,
                   "expected a path such as machine.host.memory or machine.device.memory");
    bool known = path[1].text == "device" || path[1].text == "host" || path[1].text == "ssd";
    if (!known)
      return error(path[1].location, "a machine has no setting '" + path[1].text + "'" +
                                         didYouMean(path[1].text, {"device", "host", "ssd"}));
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
    // Each ssd gets the value; a tree owns its parts, so it is parsed again.
    size_t begin = sources.get(file).text.find('=') + 1;
    for (Field *block : blocks) {
      if (!value)
        value = parseValue(sources, file, begin, diagnostics);
      setField(block->fields, path[2]);
    }
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
