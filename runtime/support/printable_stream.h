//===- printable_stream.h - A terminal's stream -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Texts that a model makes may hold any bytes, and a terminal obeys some of them.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_PRINTABLE_STREAM_H
#define BOA_RUNTIME_SUPPORT_PRINTABLE_STREAM_H

#include "runtime/support/printable.h"

#include <ostream>
#include <streambuf>
#include <string>

namespace boa {

/// Passes a text on as Printable shows it.
class PrintableStream : private std::streambuf, public std::ostream {
public:
  /// `to` outlives it.
  explicit PrintableStream(std::ostream &to) : std::ostream(this), to(to) {}

  /// Ends the text, and its last line.
  void Finish() {
    Show(text.Finish());
    if (last != '\n')
      Show("\n");
    to.flush();
  }

private:
  int_type overflow(int_type byte) override {
    const char one = traits_type::to_char_type(byte);
    return traits_type::eq_int_type(byte, traits_type::eof()) || xsputn(&one, 1) == 1
               ? traits_type::not_eof(byte)
               : traits_type::eof();
  }
  std::streamsize xsputn(const char *bytes, std::streamsize count) override {
    Show(text.Add({bytes, size_t(count)}));
    return to ? count : 0;
  }
  int sync() override { return to.flush() ? 0 : -1; }

  void Show(const std::string &shown) {
    to << shown;
    if (!shown.empty())
      last = shown.back();
  }

  std::ostream &to;
  PrintableText text;
  char last = '\n'; // that was shown; nothing ends as a line does
};

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_PRINTABLE_STREAM_H
