//===- svg.h - Pieces of a page ---------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_SVG_H
#define BOA_RUNTIME_VIEW_SVG_H

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boa {

/// Text for elements and attributes. Bytes that are no UTF-8 and control characters show as
/// escapes.
std::string Escape(std::string_view text);

/// A time for people, also below a hundredth of a second: "3.21 ms".
std::string FormatTime(double seconds);

/// A picture of fixed size that scales with the page. Coordinates are in its own units. Classes are
/// those of page_style.cpp.
class Svg {
public:
  Svg(double width, double height) : width(width), height(height) {}

  /// `tip`: shown on hover, and read aloud.
  void Rect(double x, double y, double w, double h, const std::string &style,
            const std::string &tip = "");
  void Line(double x1, double y1, double x2, double y2, const std::string &style);
  void Path(const std::string &d, const std::string &style, const std::string &tip = "");
  void Circle(double x, double y, double r, const std::string &style, const std::string &tip = "");
  /// `anchor`: "start", "middle" or "end".
  void Text(double x, double y, const std::string &text, const std::string &style = "",
            const char *anchor = "start");
  /// Texts beside the ends of lines, by their y, moved apart where they would touch.
  void Labels(double x, std::vector<std::pair<double, std::string>> labels);
  /// `description`: its contents in words, for people who do not see it.
  std::string Finish(const std::string &title, const std::string &description) const;

private:
  double width, height;
  std::string body;
};

/// "12.5", with at most two digits behind the point.
std::string Number(double value);

/// About so many marks of an axis from 0 to `most`. `base` 10: at 1, 2 or 5 times a power of it.
/// 1024: at powers of two.
std::vector<double> Ticks(double most, double base, int about = 4);

/// A table, folded away below a picture. Cells are escaped here.
std::string FoldedTable(const std::vector<std::string> &heads,
                        const std::vector<std::vector<std::string>> &rows,
                        const std::string &summary = "Values");
std::string Table(const std::vector<std::string> &heads,
                  const std::vector<std::vector<std::string>> &rows);

/// Coloured squares with their words.
std::string Legend(const std::vector<std::pair<std::string, std::string>> &styles);

} // namespace boa

#endif // BOA_RUNTIME_VIEW_SVG_H
