//===- svg.cpp - Pieces of a page -----------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/svg.h"

#include "runtime/support/printable.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>

namespace boa {

std::string Escape(std::string_view raw) {
  std::string text;
  for (char c : Printable(std::string(raw)))
    switch (c) {
    case '&':
      text += "&amp;";
      break;
    case '<':
      text += "&lt;";
      break;
    case '>':
      text += "&gt;";
      break;
    case '"':
      text += "&quot;";
      break;
    case '\'':
      text += "&#39;";
      break;
    default:
      text += c;
    }
  return text;
}

std::string FormatTime(double seconds) {
  if (seconds <= 0)
    return "0 s";
  if (seconds < 1e-3)
    return absl::StrFormat("%.3g us", seconds * 1e6);
  if (seconds < 1)
    return absl::StrFormat("%.3g ms", seconds * 1e3);
  return FormatSeconds(seconds);
}

std::string Number(double value) {
  std::string text = absl::StrFormat("%.2f", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text == "-0" ? "0" : text;
}

static std::string Tip(const std::string &tip) {
  return tip.empty() ? "/>" : absl::StrCat("><title>", Escape(tip), "</title>");
}

void Svg::Rect(double x, double y, double w, double h, const std::string &style,
               const std::string &tip) {
  absl::StrAppend(&body, "<rect x=\"", Number(x), "\" y=\"", Number(y), "\" width=\"",
                  Number(std::max(w, 0.0)), "\" height=\"", Number(std::max(h, 0.0)), "\" class=\"",
                  style, "\"", Tip(tip), tip.empty() ? "" : "</rect>");
}

void Svg::Line(double x1, double y1, double x2, double y2, const std::string &style) {
  absl::StrAppend(&body, "<line x1=\"", Number(x1), "\" y1=\"", Number(y1), "\" x2=\"", Number(x2),
                  "\" y2=\"", Number(y2), "\" class=\"", style, "\"/>");
}

void Svg::Path(const std::string &d, const std::string &style, const std::string &tip) {
  if (!d.empty())
    absl::StrAppend(&body, "<path d=\"", d, "\" class=\"", style, "\"", Tip(tip),
                    tip.empty() ? "" : "</path>");
}

void Svg::Circle(double x, double y, double r, const std::string &style, const std::string &tip) {
  absl::StrAppend(&body, "<circle cx=\"", Number(x), "\" cy=\"", Number(y), "\" r=\"", Number(r),
                  "\" class=\"", style, "\"", Tip(tip), tip.empty() ? "" : "</circle>");
}

void Svg::Text(double x, double y, const std::string &text, const std::string &style,
               const char *anchor) {
  absl::StrAppend(&body, "<text x=\"", Number(x), "\" y=\"", Number(y), "\" class=\"", style,
                  "\" text-anchor=\"", anchor, "\">", Escape(text), "</text>");
}

void Svg::Labels(double x, std::vector<std::pair<double, std::string>> labels) {
  constexpr double kApart = 14;
  std::sort(labels.begin(), labels.end());
  double above = -kApart;
  for (const auto &[y, label] : labels) {
    above = std::max(y, above + kApart);
    Text(x, above + 4, label, "axis");
  }
}

std::string Svg::Finish(const std::string &title, const std::string &description) const {
  return absl::StrCat("<svg viewBox=\"0 0 ", Number(width), " ", Number(height),
                      "\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"",
                      Escape(title), ". ", Escape(description), "\">", body, "</svg>\n");
}

std::vector<double> Ticks(double most, double base, int about) {
  std::vector<double> ticks;
  if (!(most > 0))
    return {0};
  const double rough = most / about;
  const double power = std::pow(base, std::floor(std::log(rough) / std::log(base)));
  double step = base * power;
  // The least one that gives no more ticks than that.
  for (double times : base == 1024 ? std::vector<double>{512, 256, 128, 64, 32, 16, 8, 4, 2, 1}
                                   : std::vector<double>{5, 2, 1})
    if (times * power >= rough)
      step = times * power;
  for (double at = 0; at <= most * 1.0001; at += step)
    ticks.push_back(at);
  return ticks;
}

std::string Table(const std::vector<std::string> &heads,
                  const std::vector<std::vector<std::string>> &rows) {
  std::string text = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string &head : heads)
    absl::StrAppend(&text, "<th scope=\"col\">", Escape(head), "</th>");
  text += "</tr></thead><tbody>\n";
  for (const std::vector<std::string> &row : rows) {
    text += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      absl::StrAppend(&text, i == 0 ? "<th scope=\"row\">" : "<td>", Escape(row[i]),
                      i == 0 ? "</th>" : "</td>");
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string FoldedTable(const std::vector<std::string> &heads,
                        const std::vector<std::vector<std::string>> &rows,
                        const std::string &summary) {
  return absl::StrCat("<details><summary>", Escape(summary), "</summary>", Table(heads, rows),
                      "</details>\n");
}

std::string Legend(const std::vector<std::pair<std::string, std::string>> &styles) {
  std::string text = "<p class=\"legend\">";
  for (const auto &[style, word] : styles)
    absl::StrAppend(&text,
                    "<span><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect "
                    "width=\"10\" height=\"10\" rx=\"2\" class=\"",
                    style, "\"/></svg>", Escape(word), "</span> ");
  return text + "</p>\n";
}

} // namespace boa
