//===- GenericTokens.h - Generic IR as tokens ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_PASSES_RANDOM_GENERICTOKENS_H
#define BOA_TEST_PASSES_RANDOM_GENERICTOKENS_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace boa::random {

struct Token {
  std::string space, text; // what is before it
  int partner = -1;        // of a bracket
};

/// Tokens [begin, end).
struct Range {
  int begin = 0, end = 0;
  explicit operator bool() const { return end > begin; }
};

/// The parts of an op's statement. Lists are without their brackets.
struct Op {
  int name = 0;
  Range statement, operands, properties, regions, attributes, operandTypes, resultTypes;
};

/// All of a text: what tokens say, one after another, is the text.
std::vector<Token> tokenize(llvm::StringRef text);

bool isNumber(llvm::StringRef token);

/// A text's tokens, and where its ops, dictionaries and types are among them.
class Parts {
public:
  explicit Parts(llvm::StringRef text);

protected:
  llvm::StringRef at(int i) const {
    return i >= 0 && i < int(tokens.size()) ? llvm::StringRef(tokens[size_t(i)].text)
                                            : llvm::StringRef();
  }
  int partner(int i) const { return tokens[size_t(i)].partner; }
  bool startsLine(int i) const { return llvm::StringRef(tokens[size_t(i)].space).contains('\n'); }
  /// Between commas.
  std::vector<Range> items(Range list) const;
  std::string textOf(Range range) const;

  std::vector<Token> tokens;
  std::vector<Op> ops;
  std::vector<Range> dictionaries, types;
  /// Tokens of upstream's other dialects, which are left alone, but for boa's attributes there.
  std::vector<char> foreign;

private:
  bool isDictionary(int i) const;
  void findOp(int name);
};

} // namespace boa::random

#endif // BOA_TEST_PASSES_RANDOM_GENERICTOKENS_H
