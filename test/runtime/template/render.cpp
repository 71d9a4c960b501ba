//===- render.cpp - Renders a template, for check-templates ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// template_render FILE: reads a list of inputs as JSON, and prints a list of what the template
// makes of each.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/template/golden.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fputs("template_render FILE <INPUTS\n", stderr);
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string given((std::istreambuf_iterator<char>(std::cin)), {});
  const auto inputs = boa::jinja::Value::FromJson(given);
  if (!inputs.ok() || !inputs->is(boa::jinja::Kind::list)) {
    std::fprintf(stderr, "no list of inputs: %s\n", inputs.status().ToString().c_str());
    return 2;
  }
  const auto chat = boa::Template::Parse(text, argv[1]);
  nlohmann::json out = nlohmann::json::array();
  for (const boa::jinja::Value &input : inputs->list().items)
    out.push_back(boa::Outcome(chat, input));
  std::cout << out.dump() << "\n";
  return 0;
}
