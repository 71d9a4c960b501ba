//===- Frontend.cpp - From spec files to a checked specification ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of the phases. Each runs only where the one before it found no
// error: a message about what follows from a mistake helps nobody.
//
//===----------------------------------------------------------------------===//
#include "frontend/Frontend.h"

#include "frontend/Checker.h"
#include "frontend/Format.h"
#include "frontend/InputFile.h"
#include "frontend/MovedSettings.h"
#include "frontend/Override.h"
#include "frontend/Parser.h"
#include "frontend/Printer.h"
#include "runtime/support/printable.h"

namespace boa::frontend {

/// What the train block says of adapters; null if it says nothing.
static const Field *findAdapters(const Program &program) {
  for (const TrainSyntax &train : program.trains)
    for (const Field &field : train.fields)
      if (field.key.text == "adapters" && field.value)
        return &field;
  return nullptr;
}

/// Gives the program the held adapters, with their dropout. Returns the source of them.
static int32_t takeAdapters(const HeldAdapters &held, Sources &sources, Program &program,
                            Diagnostics &diagnostics) {
  std::string text = "train.adapters=" + held.text;
  if (!held.dropout.empty())
    text.insert(text.size() - 1, ", dropout = " + held.dropout);
  const int32_t option = sources.add(held.of, std::move(text), /*isOption=*/true);
  applyOverride(sources, option, program, diagnostics);
  return option;
}

/// Where the adapters are said that a program has: the last part of them that was replaced.
static Location placeOf(const Expr &adapters) {
  Location place = adapters.location;
  for (const Argument &argument : adapters.arguments)
    if (argument.value->location.file != adapters.location.file)
      place = argument.value->location;
  return place;
}

/// Refuses adapters that are not the held ones. Changes the program, which was checked.
static void compareAdapters(const HeldAdapters &held, const Spec &spec, Location place,
                            Sources &sources, Program &program, Diagnostics &diagnostics) {
  const std::string found = spec.train.adapters;
  if (found == held.text)
    return;
  // A folder has its own names of the same.
  Diagnostics ignored;
  takeAdapters(held, sources, program, ignored);
  const std::optional<Spec> other = check(program, sources, ignored);
  const std::string expected = other ? other->train.adapters : held.text;
  if (found != expected)
    diagnostics.error(place, "expected the adapters that " + held.of + " holds, " + expected +
                                 ", but found " + (found.empty() ? "none" : found) +
                                 ": leave adapters out to take those" + held.othersBy);
}

static void parseTexts(const std::vector<InputText> &inputs, Sources &sources, Program &program,
                       Diagnostics &diagnostics) {
  for (const InputText &input : inputs)
    parse(sources, sources.add(input.name, input.text, /*isOption=*/false), program, diagnostics);
  choosePlan(program);
  moveSettings(program);
  expandRates(program);
  chooseMachine(program);
}

static void applyOverrides(const std::vector<std::string> &overrides, Sources &sources,
                           Program &program, Diagnostics &diagnostics) {
  for (const std::string &override : overrides)
    applyOverride(sources, sources.add("--set", override, /*isOption=*/true), program, diagnostics);
}

std::optional<Outline> outlineTexts(const std::vector<InputText> &inputs,
                                    const std::vector<std::string> &overrides) {
  Sources sources;
  Diagnostics diagnostics, ignored;
  Program program;
  parseTexts(inputs, sources, program, diagnostics);
  if (!diagnostics.empty())
    return std::nullopt;
  applyOverrides(overrides, sources, program, ignored);
  MachineSettings machine;
  if (!program.machines.empty())
    checkMachine(program.machines[0], {sources, ignored}, machine);
  return Outline{FolderOfState(machine), findAdapters(program) != nullptr};
}

FrontendResult compileTexts(const std::vector<InputText> &inputs,
                            const std::vector<std::string> &overrides,
                            const std::optional<HeldAdapters> &held) {
  Sources sources;
  Diagnostics diagnostics;
  Program program;
  FrontendResult result;
  parseTexts(inputs, sources, program, diagnostics);
  // Before the options: one may replace the only use of a constant.
  std::vector<Name> unused;
  if (diagnostics.empty())
    unused = findUnusedConstants(program);
  int32_t taken = -1;
  if (diagnostics.empty() && held && !findAdapters(program))
    taken = takeAdapters(*held, sources, program, diagnostics);
  if (diagnostics.empty())
    applyOverrides(overrides, sources, program, diagnostics);
  if (diagnostics.empty()) {
    result.ast = printProgram(program);
    result.spec = check(program, sources, diagnostics);
    // A misspelled use is one error, not two.
    if (result.spec && !unused.empty()) {
      result.spec.reset();
      for (const Name &name : unused)
        diagnostics.error(name.location, "constant '" + name.text + "' is never used");
    }
    if (const Field *adapters = findAdapters(program);
        adapters && result.spec && held && held->bind)
      if (const Location place = placeOf(*adapters->value); place.file != taken)
        compareAdapters(*held, *result.spec, place, sources, program, diagnostics);
    if (!diagnostics.empty())
      result.spec.reset();
  }
  result.diagnostics = diagnostics.render(sources);
  return result;
}

FormatResult formatText(const InputText &input) {
  Sources sources;
  Diagnostics diagnostics;
  Program program;
  FormatResult result{input.text, std::nullopt, ""};
  int32_t file = sources.add(input.name, input.text, /*isOption=*/false);
  parse(sources, file, program, diagnostics);
  result.diagnostics = diagnostics.render(sources);
  if (!diagnostics.empty())
    return result;
  auto moved = moveSettings(sources, file, program);
  if (moved)
    moveSettings(program);
  const std::string before = printProgram(program);
  if (moved) {
    file = sources.add(input.name, *moved, /*isOption=*/false);
    program = Program();
    parse(sources, file, program, diagnostics);
  }
  std::string after = format(sources, file, program);
  // The author's file is overwritten with this.
  Program again;
  parse(sources, sources.add(input.name, after, /*isOption=*/false), again, diagnostics);
  if (diagnostics.empty() && printProgram(again) == before)
    result.after = std::move(after);
  else
    result.diagnostics = "error: cannot lay out '" + Printable(input.name) +
                         "' without changing what it says: this is a mistake of boa\n";
  return result;
}

FormatResult formatFile(const std::string &path) {
  InputText input;
  FormatResult failed;
  return readInput(path, input, failed.diagnostics) ? formatText(input) : failed;
}

std::vector<InputText> readFiles(const std::vector<std::string> &paths, std::string &diagnostics) {
  std::vector<InputText> inputs;
  if (paths.empty())
    diagnostics = "error: expected at least one spec file\n";
  for (const std::string &path : paths) {
    inputs.emplace_back();
    readInput(path, inputs.back(), diagnostics);
  }
  return inputs;
}

FrontendResult compileFiles(const std::vector<std::string> &paths,
                            const std::vector<std::string> &overrides,
                            const std::optional<HeldAdapters> &held) {
  FrontendResult failed;
  const std::vector<InputText> inputs = readFiles(paths, failed.diagnostics);
  return failed.diagnostics.empty() ? compileTexts(inputs, overrides, held) : failed;
}

} // namespace boa::frontend
