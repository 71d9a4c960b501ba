//===- progress_line.h - How far a long work is -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_PROGRESS_LINE_H
#define BOA_RUNTIME_VIEW_PROGRESS_LINE_H

#include "runtime/support/units.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace boa {

/// A line of stderr that is written again and again, for a person who waits. It goes with its
/// owner. Where stderr is no terminal, there is none. One thread.
class ProgressLine {
public:
  explicit ProgressLine(std::string what = "", std::string (*format)(double) = FormatBytes)
      : what(std::move(what)), format(format) {}
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;
  ~ProgressLine() {
    if (any)
      std::fputs("\r\033[K", stderr);
  }

  void Show(int64_t done, int64_t of) {
    const auto now = std::chrono::steady_clock::now();
    if (now - shown < std::chrono::milliseconds(200) || !isatty(STDERR_FILENO))
      return;
    shown = now;
    std::fprintf(stderr, "\r%s%s of %s ", what.c_str(), format(double(done)).c_str(),
                 format(double(of)).c_str());
    any = true;
  }

private:
  std::string what;
  std::string (*format)(double);
  std::chrono::steady_clock::time_point shown;
  bool any = false;
};

} // namespace boa

#endif // BOA_RUNTIME_VIEW_PROGRESS_LINE_H
