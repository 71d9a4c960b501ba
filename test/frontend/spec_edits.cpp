//===- spec_edits.cpp - Random edits of a specification -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of test/e2e/run-edits that needs the frontend:
//
//   spec_edits changing|preserving SEED FILE    the specification after random edits
//
//===----------------------------------------------------------------------===//
#include "runtime/io/file_system.h"
#include "test/frontend/Edits.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

namespace boa {
namespace {

int Fail(const absl::Status &status) {
  std::cerr << "error: " << status.message() << "\n";
  return 1;
}

int PrintEdited(edits::Kind kind, unsigned seed, const std::string &path) {
  absl::StatusOr<std::string> text = ReadSmallFile(SystemFiles(), path);
  if (!text.ok())
    return Fail(text.status());
  std::mt19937 random(seed);
  std::cout << edits::EditSpec(*text, kind, random).text;
  return 0;
}

int Run(int argc, char **argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if ((command == "changing" || command == "preserving") && argc == 4)
    return PrintEdited(command == "changing" ? edits::Kind::changing : edits::Kind::preserving,
                       unsigned(std::atoll(argv[2])), argv[3]);
  std::cerr << "usage: spec_edits changing|preserving SEED FILE\n";
  return 2;
}

} // namespace
} // namespace boa

int main(int argc, char **argv) { return boa::Run(argc, argv); }
