//===- pack.cpp - The cases of test/gradients, compiled -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   boa-pack-kernels DIR [--cpu NAME] [--device-code ptx|emulated] [--only REGEX]
//
// For each case DIR/NAME.so: forward and gradient for a GPU, in f32 and bf16, and, to compare
// with, for the CPU in f64. DIR/kernels.json says what they take. --only: cases whose names
// match.
//
//===----------------------------------------------------------------------===//
#include "passes/target/Target.h"
#include "test/gradients/Cases.h"
#include "test/gradients/Harness.h"
#include "tools/Link.h"

#include "nlohmann/json.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>

using namespace boa;
using namespace boa::testing;
using nlohmann::json;

static json Describe(const std::vector<Operand> &operands) {
  json all = json::array();
  for (const Operand &operand : operands)
    all.push_back({{"shape", operand.shape}, {"element", operand.element}});
  return all;
}

static json Describe(const std::vector<KernelTable> &tables) {
  json all = json::array();
  for (const KernelTable &table : tables)
    all.push_back({{"function", table.table.function},
                   {"frequencies", table.table.frequencies},
                   {"operand", Describe(std::vector{table.operand})}});
  return all;
}

int main(int argc, char **argv) {
  std::string directory, cpu = "host", only;
  DeviceCode device = DeviceCode::ptx;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--cpu")
      cpu = value, ++i;
    else if (word == "--only")
      only = value, ++i;
    else if (word == "--device-code" && (value == "ptx" || value == "emulated"))
      device = value == "ptx" ? DeviceCode::ptx : DeviceCode::emulated, ++i;
    else if (directory.empty() && word[0] != '-')
      directory = word;
    else
      return std::fprintf(stderr, "boa-pack-kernels: what is `%s`?\n", word.c_str()), 2;
  }
  if (directory.empty())
    return std::fprintf(stderr, "usage: boa-pack-kernels DIR [FLAG...]\n"), 2;
  std::filesystem::create_directories(directory);
  json packed = json::array();
  for (const Case &c : cases()) {
    if (!std::regex_search(c.name, std::regex(only)))
      continue;
    json kernels = json::array();
    std::vector<std::string> objects;
    for (const char *element : {"f64", "f32", "bf16"})
      for (bool gradient : {false, true}) {
        if (gradient && !c.differentiable)
          continue;
        const std::string symbol = std::string(element) + (gradient ? "_gradient" : "_forward");
        KernelObject made =
            compileToObject(withElement(c.text, element), gradient, device, symbol, cpu);
        objects.push_back(std::move(made.object));
        kernels.push_back({{"symbol", symbol},
                           {"arguments", Describe(made.arguments)},
                           {"results", Describe(made.results)},
                           {"tables", Describe(made.tables)},
                           {"workspace", made.workspace}});
      }
    absl::Status status = LinkShared(objects, directory + "/" + c.name + ".so");
    if (!status.ok())
      return std::fprintf(stderr, "%s\n", status.ToString().c_str()), 1;
    packed.push_back({{"case", c.name}, {"kernels", kernels}});
  }
  std::ofstream out(directory + "/kernels.json");
  out << packed.dump() << "\n";
  out.close();
  return out ? 0 : (std::fprintf(stderr, "cannot write %s\n", directory.c_str()), 1);
}
