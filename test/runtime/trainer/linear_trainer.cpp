//===- linear_trainer.cpp - The hand-written model as a process -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stand-alone trainer for tests that kill it. What the compiler would fix
// comes first, as key=value; the flags of any trainer follow.
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/main.h"

#include "test/runtime/trainer/linear.h"

#include "absl/strings/str_split.h"

#include <cstdlib>
#include <string>

int main(int argc, char **argv) {
  boa::linear::Options options;
  int i = 1;
  for (; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (argument[0] == '-' || equals == std::string::npos)
      break;
    const std::string key = argument.substr(0, equals);
    const std::string value = argument.substr(equals + 1);
    if (key == "data")
      options.data = value;
    else if (key == "tier")
      options.tier = value;
    else if (key == "type")
      options.weight_type = value;
    else if (key == "delayed")
      options.delayed = value == "1";
    else if (key == "commit")
      options.commit_every = std::atoll(value.c_str());
    else if (key == "evaluate")
      options.evaluate_every = std::atoll(value.c_str());
    else if (key == "clip")
      options.clip = std::atof(value.c_str());
    else if (key == "paths")
      options.paths = absl::StrSplit(value, ':');
    else if (key == "memory")
      options.device_memory = std::atoll(value.c_str());
  }
  argv[i - 1] = argv[0];
  return boa::TrainerMain(argc - i + 1, argv + i - 1, boa::linear::Descriptor(options),
                          boa::linear::kKernels, boa::linear::Entries(options));
}
