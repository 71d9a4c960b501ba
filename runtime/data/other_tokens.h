//===- other_tokens.h - Whether tokens mean what they meant -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A commit keeps the settings of its data (Data::facts). They are compared with those of other
// data, and with a tokenizer that is given alone.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_OTHER_TOKENS_H
#define BOA_RUNTIME_DATA_OTHER_TOKENS_H

#include <map>
#include <string>

namespace boa {

/// Why the tokens of the data mean something else than those of the commit, or why masked training
/// would leave others alone; "" if they do not. Another tokenizer is taken where it makes the same
/// tokens.
std::string DescribeOtherTokens(const std::map<std::string, std::string> &committed,
                                const std::map<std::string, std::string> &now);

/// The same as a line of output, for a command that goes on.
std::string NoteOtherTokens(const std::map<std::string, std::string> &committed,
                            const std::map<std::string, std::string> &now);

/// A line of output if this file is not the tokenizer of the commit's data; "" if it is, if that
/// data had none, or if the file cannot be read.
std::string NoteOtherTokenizer(const std::map<std::string, std::string> &committed,
                               const std::string &tokenizer);

} // namespace boa

#endif // BOA_RUNTIME_DATA_OTHER_TOKENS_H
