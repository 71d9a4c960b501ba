//===- progress.cpp - The line of a step ----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/progress.h"

#include "runtime/support/printable.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <sys/ioctl.h>
#include <unistd.h>

namespace boa {
namespace {

/// "31% wait, ssd read": the link that compute waited for longest, and its
/// share.
std::string FormatBound(const StepRecord &record) {
  const std::pair<const std::string, double> *longest = nullptr;
  for (const auto &link : record.waited)
    if (!longest || link.second > longest->second)
      longest = &link;
  const double share = longest && record.seconds > 0 ? longest->second / record.seconds : 0;
  if (share < 0.01)
    return "compute-bound";
  // Transfers may be waited for before a step begins, too.
  return absl::StrFormat("%2.0f%% wait, %s", 100 * std::min(share, 1.0), longest->first);
}

int TerminalWidth(std::FILE *out) {
  winsize size;
  if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return 80;
}

} // namespace

std::string FormatStep(const StepRecord &record, int64_t steps, double left) {
  const std::string total = absl::StrCat(steps);
  const double speed = record.seconds > 0 ? record.tokens / record.seconds : 0;
  std::string text =
      absl::StrFormat("step %*d/%s", static_cast<int>(total.size()), record.step, total);
  if (std::isnan(record.loss))
    absl::StrAppendFormat(&text, "  %8s", FormatSeconds(record.seconds));
  else
    absl::StrAppendFormat(&text, "  loss %.4f  lr %.1e", record.loss, record.rate);
  absl::StrAppendFormat(&text, "  %6s tok/s", FormatCount(speed));
  // Blank where nothing is known or left, so that lines stand in columns.
  if (left > 0)
    absl::StrAppendFormat(&text, "  %8s left", FormatSeconds(left));
  else if (steps > 1)
    text.append(15, ' ');
  if (record.gradient_norm)
    absl::StrAppendFormat(&text, "  norm %-4.3g", *record.gradient_norm);
  absl::StrAppend(&text, "  ", FormatBound(record));
  return text;
}

std::string FitLine(std::string line, size_t width) {
  if (line.size() <= width)
    return line;
  for (size_t at; (at = line.find("   ")) != std::string::npos;)
    line.erase(at, 1);
  if (line.size() <= width)
    return line;
  size_t end = line.rfind("  ", width);
  return line.substr(0, end == std::string::npos ? width : end);
}

Progress::Progress(std::FILE *out, int64_t first, int64_t steps)
    : out(out), terminal(out && isatty(fileno(out))), first(first), steps(steps) {}

Progress::~Progress() {
  if (open_line)
    std::fputc('\n', out);
}

bool Progress::Stays(const StepRecord &record, Clock::time_point now) const {
  constexpr int64_t kDense = 100; // lines before they come at a tenth of the rate
  const int64_t done = record.step - first;
  int64_t interval = 1;
  while (done > kDense * interval)
    interval *= 10;
  return done % interval == 0 || record.step == steps || record.validation_loss ||
         now - stayed >= std::chrono::seconds(10);
}

void Progress::Step(const StepRecord &record) {
  if (!out)
    return;
  const Clock::time_point now = Clock::now();
  const bool stays = Stays(record, now);
  // Eyes need no more than ten lines a second; steps may take microseconds.
  if (!stays && (!terminal || now - shown < std::chrono::milliseconds(100)))
    return;
  shown = now;
  const double elapsed = std::chrono::duration<double>(now - start).count();
  // The first step reads what later ones keep: no measure for the rest.
  const int64_t done = record.step - first;
  const double left =
      done < 2 || std::isnan(record.loss) ? -1 : elapsed / done * (steps - record.step);
  const std::string line = FormatStep(record, steps, left);
  if (terminal)
    std::fprintf(out, "\r%s\033[K", FitLine(line, size_t(TerminalWidth(out)) - 1).c_str());
  else
    std::fputs(line.c_str(), out);
  if (stays) {
    std::fputc('\n', out);
    stayed = now;
  }
  open_line = !stays;
  std::fflush(out);
}

void Progress::Say(const std::string &text) {
  if (!out)
    return;
  if (open_line)
    std::fputc('\n', out);
  open_line = false;
  std::fprintf(out, "%s%s", Printable(text).c_str(),
               !text.empty() && text.back() == '\n' ? "" : "\n");
  std::fflush(out);
}

} // namespace boa
