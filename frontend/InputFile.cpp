//===- InputFile.cpp - A file that may be a spec --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/InputFile.h"

#include "frontend/Source.h"
#include "runtime/support/printable.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace boa::frontend {

/// What people give in place of a spec, and how they come from it to one. Empty if it is no folder
/// that we know.
static std::string whatFolder(const std::string &path) {
  auto has = [&](const char *file) { return access((path + "/" + file).c_str(), F_OK) == 0; };
  const std::string name = Printable(path);
  if (has("manifest.json") || has("manifest.copy.json"))
    return "it is a state: give the spec that it was trained with, and --state " + name;
  if (has("adapter_config.json"))
    return "it is an adapter of PEFT: import its base model, and begin with boa train --from " +
           name;
  if (has("config.json"))
    return "it is a model's folder: boa import " + name + " -o SPEC makes a spec of it";
  return "";
}

/// As whatFolder, of a file's contents.
static std::string whatFile(const std::string &path, std::string_view text) {
  const std::string name = Printable(path);
  if (text.substr(0, 4) == "GGUF")
    return "it is a GGUF file: boa import " + name + " -o SPEC makes a spec of it";
  if (text.size() > 8 && text[8] == '{' && text.find('\0') < 8)
    return "it is a safetensors file: boa import makes a spec of the folder that holds it";
  if (text.substr(0, 1) == "{" || text.substr(0, 1) == "[")
    return "it is JSON: a spec names its data with `data`, and boa import MODEL -o SPEC --data " +
           name + " makes one";
  return "";
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
  else if (S_ISDIR(info.st_mode) && !whatFolder(path).empty())
    reason = whatFolder(path);
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
  if (std::ferror(file.get()))
    reason = std::strerror(errno);
  else
    reason = whatFile(path, text);
  return reason.empty();
}

bool readInput(const std::string &path, InputText &input, std::string &diagnostics) {
  input.name = path == "-" ? "<stdin>" : path;
  std::string reason;
  if (readFile(path, input.text, reason))
    return true;
  diagnostics += "error: cannot read '" + Printable(input.name) + "': " + reason + "\n";
  return false;
}

} // namespace boa::frontend
