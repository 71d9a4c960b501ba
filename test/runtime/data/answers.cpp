//===- answers.cpp - What a template says is learnt, to be read by hand ---===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// chat_answers TEMPLATE < RECORDS: the texts of each record, apart by ----, with brackets around
// what is learnt; or why there are none. The exit status is the number of records without texts.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/chat_form.h"
#include "runtime/data/conversation.h"
#include "runtime/data/records.h"

#include <cstdio>
#include <iostream>

using namespace boa;

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fputs("chat_answers TEMPLATE < RECORDS\n", stderr);
    return 2;
  }
  const absl::StatusOr<Template> jinja = OpenTemplate(argv[1]);
  if (!jinja.ok()) {
    std::cout << jinja.status().message() << "\n";
    return 1;
  }
  const ChatForm form(*jinja,
                      {{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}},
                       std::tm{5, 4, 13, 26, 6, 124, 5, 207, 0, 0, nullptr}});
  std::cout << "an answer ends with " << form.end().value_or("(not known)") << "\n";
  int failed = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const auto record = ParseRecord(line, [&](bool) { return &form.jinja(); });
    const auto texts = record.ok() ? form.Answers(record->conversation) : record.status();
    if (!texts.ok()) {
      ++failed;
      std::cout << "====\n" << texts.status().message() << "\n";
      continue;
    }
    std::cout << "====\n";
    for (size_t i = 0; i < texts->size(); ++i) {
      std::string text = (*texts)[i].text;
      for (auto range = (*texts)[i].targets.rbegin(); range != (*texts)[i].targets.rend(); ++range)
        text.insert(range->end, "]]").insert(range->begin, "[[");
      std::cout << (i > 0 ? "----\n" : "") << text << "\n";
    }
  }
  return failed;
}
