//===- opened.h - A program on the GPU, for measurements -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GPU_OPENED_H
#define BOA_TEST_GPU_OPENED_H

#include "test/gpu/measures.h"
#include "test/gpu/step.h"
#include "test/gpu/timing.h"

#include "absl/strings/str_format.h"

#include <memory>
#include <string>

namespace boa::gputest {

/// "41.2%" of a rate in operations a second; "-" where that is not known.
inline std::string FormatShare(double operations, double milliseconds, double peak) {
  return peak > 0 && milliseconds > 0
             ? absl::StrFormat("%.1f%%", 100 * operations / milliseconds * 1e3 / peak)
             : "-";
}

/// Opens the GPU and the program, or says why not; null: it did.
struct Opened {
  std::unique_ptr<Session> session;
  std::unique_ptr<Step> step;

  bool Open(const char *what, const std::string &file) {
    auto made = Session::Open();
    absl::Status status = made.status();
    if (made.ok()) {
      session = *std::move(made);
      auto opened = Step::Open(*session, file);
      status = opened.status();
      if (opened.ok())
        step = *std::move(opened);
    }
    if (!status.ok())
      NotMeasured(what, status);
    return status.ok();
  }
  /// What is on the GPU goes before the context does.
  ~Opened() { step.reset(); }
};

/// After an error of what ran, nothing more can: a launch of it is no use to those behind.
inline bool IsUsable(const Session &session) { return session.Wait().ok(); }

} // namespace boa::gputest

#endif // BOA_TEST_GPU_OPENED_H
