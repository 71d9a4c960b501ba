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

#include "frontend/checker.h"
#include "frontend/override.h"
#include "frontend/parser.h"
#include "frontend/printer.h"
#include "runtime/printable.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace boa::frontend {

FrontendResult compileTexts(const std::vector<InputText> &inputs,
                            const std::vector<std::string> &overrides) {
  Sources sources;
  Diagnostics diagnostics;
  Program program;
  FrontendResult result;
  for (const InputText &input : inputs)
    parse(sources, sources.add(input.name, input.text, /*isOption=*/false), program, diagnostics);
  // Before the options: one may replace the only use of a constant.
  std::vector<Name> unused;
  if (diagnostics.empty())
    unused = findUnusedConstants(program);
  if (diagnostics.empty())
    for (const std::string &override : overrides)
      applyOverride(sources, sources.add("--set", override, /*isOption=*/true), program,
                    diagnostics);
  if (diagnostics.empty()) {
    result.ast = printProgram(program);
    result.spec = check(program, sources, diagnostics);
    // A misspelled use is one error, not two.
    if (result.spec && !unused.empty()) {
      result.spec.reset();
      for (const Name &name : unused)
        diagnostics.error(name.location, "constant '" + name.text + "' is never used");
    }
  }
  result.diagnostics = diagnostics.render(sources);
  return result;
}

/// The contents of a file, one byte more than the lexer takes at most. False
/// with the reason where it cannot be read.
static bool readFile(const std::string &path, std::string &text, std::string &reason) {
  auto closeFile = [](FILE *file) { return file == stdin ? 0 : std::fclose(file); };
  std::unique_ptr<FILE, int (*)(FILE *)> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"),
                                              closeFile);
  if (!file) {
    reason = std::strerror(errno);
    return false;
  }
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

FrontendResult compileFiles(const std::vector<std::string> &paths,
                            const std::vector<std::string> &overrides) {
  std::vector<InputText> inputs;
  FrontendResult failed;
  if (paths.empty())
    failed.diagnostics = "error: expected at least one spec file\n";
  for (const std::string &path : paths) {
    InputText input{path == "-" ? "<stdin>" : path, ""};
    std::string reason;
    if (!readFile(path, input.text, reason))
      failed.diagnostics += "error: cannot read '" + Printable(input.name) + "': " + reason + "\n";
    inputs.push_back(std::move(input));
  }
  if (!failed.diagnostics.empty())
    return failed;
  return compileTexts(inputs, overrides);
}

} // namespace boa::frontend
