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
#include "frontend/MovedSettings.h"
#include "frontend/Override.h"
#include "frontend/Parser.h"
#include "frontend/Printer.h"
#include "runtime/support/printable.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace boa::frontend {

/// What the train block says of adapters; null if it says nothing.
static const Field *findAdapters(const Program &program) {
  for (const TrainSyntax &train : program.trains)
    for (const Field &field : train.fields)
      if (field.key.text == "adapters" && field.value)
        return &field;
  return nullptr;
}

static bool lacksDropout(const Program &program) {
  const Field *adapters = findAdapters(program);
  if (!adapters || adapters->value->kind != Expr::Kind::Call)
    return false;
  for (const Argument &argument : adapters->value->arguments)
    if (argument.keyword && argument.keyword->text == "dropout")
      return false;
  return true;
}

static bool isOfAdapters(const std::string &option) {
  return option.rfind("train.adapters", 0) == 0;
}

static std::string optionOf(const HeldAdapters &held) { return "train.adapters=" + held.text; }

/// Refuses adapters that are not the held ones.
static void compareAdapters(const std::vector<InputText> &inputs,
                            std::vector<std::string> overrides, const HeldAdapters &held,
                            const Spec &spec, Location place, Diagnostics &diagnostics) {
  overrides.erase(std::remove_if(overrides.begin(), overrides.end(), isOfAdapters),
                  overrides.end());
  overrides.push_back(optionOf(held));
  const FrontendResult result = compileTexts(inputs, overrides);
  const std::string &found = spec.train.adapters;
  const std::string expected = result.spec ? result.spec->train.adapters : held.text;
  if (found != expected)
    diagnostics.error(place, "expected the adapters that " + held.of + " holds, " + expected +
                                 ", but found " + (found.empty() ? "none" : found) +
                                 ": leave adapters out to take those");
}

FrontendResult compileTexts(const std::vector<InputText> &inputs,
                            const std::vector<std::string> &overrides,
                            const std::optional<HeldAdapters> &held) {
  Sources sources;
  Diagnostics diagnostics;
  Program program;
  FrontendResult result;
  for (const InputText &input : inputs)
    parse(sources, sources.add(input.name, input.text, /*isOption=*/false), program, diagnostics);
  choosePlan(program);
  moveSettings(program);
  chooseMachine(program);
  // Before the options: one may replace the only use of a constant.
  std::vector<Name> unused;
  if (diagnostics.empty())
    unused = findUnusedConstants(program);
  if (diagnostics.empty() && held && !findAdapters(program))
    applyOverride(sources, sources.add(held->of, optionOf(*held), /*isOption=*/true), program,
                  diagnostics);
  std::optional<Location> ofAdapters;
  if (diagnostics.empty())
    for (const std::string &override : overrides) {
      const int32_t option = sources.add("--set", override, /*isOption=*/true);
      applyOverride(sources, option, program, diagnostics);
      if (isOfAdapters(override))
        ofAdapters = Location{option, 0, uint32_t(override.size())};
    }
  if (diagnostics.empty() && held && lacksDropout(program) && !held->dropout.empty())
    applyOverride(
        sources,
        sources.add(held->of, "train.adapters.dropout=" + held->dropout, /*isOption=*/true),
        program, diagnostics);
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
      compareAdapters(inputs, overrides, *held, *result.spec,
                      ofAdapters.value_or(adapters->value->location), diagnostics);
    if (!diagnostics.empty())
      result.spec.reset();
  }
  result.diagnostics = diagnostics.render(sources);
  return result;
}

/// Null with the reason if it cannot be read. Only regular files are opened, since the open of a
/// pipe blocks; a descriptor that the shell passed is open already, so it may be a pipe.
static FILE *openFile(const std::string &path, std::string &reason) {
  const bool own = path == "/dev/stdin" || path.rfind("/dev/fd/", 0) == 0;
  const int descriptor =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (own ? 0 : O_NONBLOCK));
  struct stat info;
  FILE *file = nullptr;
  if (descriptor < 0 || fstat(descriptor, &info) != 0)
    reason = std::strerror(errno);
  else if (!own && !S_ISREG(info.st_mode))
    reason = "it is not a regular file";
  else if (file = fdopen(descriptor, "rb"); !file)
    reason = std::strerror(errno);
  if (descriptor >= 0 && !file)
    close(descriptor);
  return file;
}

/// The contents of a file, one byte more than the lexer takes at most. False
/// with the reason where it cannot be read.
static bool readFile(const std::string &path, std::string &text, std::string &reason) {
  auto closeFile = [](FILE *file) { return file == stdin ? 0 : std::fclose(file); };
  std::unique_ptr<FILE, int (*)(FILE *)> file(path == "-" ? stdin : openFile(path, reason),
                                              closeFile);
  if (!file)
    return false;
  char buffer[1 << 16];
  while (text.size() <= Sources::kMaxBytes) {
    size_t bytes = std::fread(buffer, 1, sizeof buffer, file.get());
    text.append(buffer, bytes);
    if (bytes == 0)
      break;
  }
  if (std::ferror(file.get())) {
    reason = std::strerror(errno);
    return false;
  }
  return true;
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

/// Whether `path` was read into `input`; if not, `diagnostics` says why.
static bool readInput(const std::string &path, InputText &input, std::string &diagnostics) {
  input.name = path == "-" ? "<stdin>" : path;
  std::string reason;
  if (readFile(path, input.text, reason))
    return true;
  diagnostics += "error: cannot read '" + Printable(input.name) + "': " + reason + "\n";
  return false;
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
