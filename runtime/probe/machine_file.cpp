//===- machine_file.cpp - Figures as text ---------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/probe/machine_file.h"

#include "runtime/support/printable.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <iterator>

namespace boa {
namespace {

struct Units {
  double base;
  std::vector<const char *> names; // of 1, the base, and so on
};

const Units &UnitsOf(FigureUnit unit) {
  // A size that has no unit is passed over: there is no kFLOP/s.
  static const Units kUnits[] = {{1024, {"B", "KiB", "MiB", "GiB", "TiB"}},
                                 {1000, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"}},
                                 {1000, {"FLOP/s", "", "MFLOP/s", "GFLOP/s", "TFLOP/s"}},
                                 {1000, {"ns", "us", "ms", "s"}}};
  return kUnits[int(unit)];
}

std::string Scatter(const Figure &figure) {
  return figure.scatter > 0 ? absl::StrFormat("half within %.1f%%", 100 * figure.scatter) : "";
}

/// Lines of a block of the file.
class Block {
public:
  explicit Block(std::string head) : text(absl::StrCat("  ", head, " {\n")) {}
  void Add(const char *name, const char *what, const Figure &figure, FigureUnit unit) {
    if (figure.value <= 0)
      return;
    absl::StrAppend(&text, "    # ", what, figure.how.empty() ? "" : ": ", figure.how);
    if (const std::string scatter = Scatter(figure); !scatter.empty())
      absl::StrAppend(&text, "; ", scatter);
    absl::StrAppend(&text, "\n    ", name, " = ", FormatFigure(figure.value, unit), "\n");
  }
  void Set(const char *name, const std::string &value) {
    absl::StrAppend(&text, "    ", name, " = ", value, "\n");
  }
  void AddFormats(const char *name, const char *what, const MachineFigures &figures,
                  Figure KernelFigures::*figure, FigureUnit unit) {
    Block block(name);
    for (const auto &[format, of] : figures.formats)
      block.Add(WordOf(format).c_str(), absl::StrCat(what, " in ", WordOf(format)).c_str(),
                of.*figure, unit);
    text += block.Finish();
  }
  std::string Finish() { return absl::StrCat(text, "  }\n"); }

private:
  std::string text;
};

/// Letters, digits and `_`, no digit first.
std::string NameOf(std::string text) {
  for (char &c : text)
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return text.empty() || absl::ascii_isdigit(static_cast<unsigned char>(text[0])) ? "m_" + text
                                                                                  : text;
}

} // namespace

std::string FormatFigure(double value, FigureUnit unit) {
  const Units &units = UnitsOf(unit);
  size_t which = 0;
  while (which + 1 < units.names.size() && (value >= 0.9995 * units.base || !*units.names[which])) {
    value /= units.base;
    ++which;
  }
  const int decimals = which == 0        ? 0
                       : value >= 999.95 ? 0
                       : value >= 99.995 ? 1
                       : value >= 9.9995 ? 2
                                         : 3;
  return absl::StrFormat("%.*f %s", decimals, value, units.names[which]);
}

absl::Status CheckWritable(const std::string &path) {
  if (path.find_first_of("\"\n") == std::string::npos && Printable(path) == path)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot name `", Printable(path),
                   "` in a machine file: it has a quote, a control character or bytes that are no "
                   "UTF-8"));
}

std::string FormatMachineFile(const MachineFigures &figures, const std::string &name) {
  std::string text =
      absl::StrCat(kMachineFileHead, ", which measured what stands below. Rates from "
                                     "data sheets do\n# as well. A training with "
                                     "this machine keeps to the rates of its SSDs.\n");
  for (const std::string &warning : figures.warnings)
    absl::StrAppend(&text, "# Warning: ", warning, "\n");
  using U = FigureUnit;
  Block device("device cpu"), host("host");
  if (figures.names_kernels)
    device.Set("kernels", figures.kernels);
  using K = KernelFigures;
  device.AddFormats("compute", "products", figures, &K::product, U::operations);
  device.AddFormats("compute_attention", "attention", figures, &K::attention, U::operations);
  device.AddFormats("bandwidth", "all between them", figures, &K::elementwise, U::speed);
  host.Add("memory", "free for a process", figures.memory, U::bytes);
  host.Add("bandwidth", "of memory", figures.bandwidth, U::speed);
  host.Add("optimizer", "updates", figures.optimizer, U::speed);
  host.Add("checksum", "checksums", figures.checksum, U::speed);
  host.Add("transfers", "by processors that do nothing but transfers", figures.transfers, U::speed);
  absl::StrAppend(&text, "\nmachine ", NameOf(name), " {\n", device.Finish(), host.Finish());
  for (const SsdFigures &ssd : figures.ssds) {
    Block block(absl::StrCat("ssd \"", ssd.path, "\""));
    block.Add("read", "reads alone", ssd.read, U::speed);
    block.Add("write", "writes alone", ssd.write, U::speed);
    block.Add("both", "both at once, together", ssd.both, U::speed);
    block.Add("latency", "a read", ssd.latency, U::time);
    text += block.Finish();
  }
  return text + "}\n";
}

std::string FormatRow(const std::string &what, const Figure &figure, FigureUnit unit) {
  std::string how = Scatter(figure);
  if (!figure.how.empty())
    how = absl::StrCat(figure.how, how.empty() ? "" : "; ", how);
  return absl::StrFormat("  %-22s %14s   %s\n", what, FormatFigure(figure.value, unit), how);
}

} // namespace boa
