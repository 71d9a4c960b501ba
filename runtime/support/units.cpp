//===- units.cpp - Quantities for people to read --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cmath>
#include <ctime>

namespace boa {
namespace {

/// `value` scaled by powers of `base` into [1, 1000), where a unit is left.
template <size_t N> std::string Scale(double value, double base, const char *const (&units)[N]) {
  size_t unit = 0;
  // From 999.5 on, three digits would round to 1000 of the smaller unit.
  while (std::abs(value) >= 999.5 && unit + 1 < N) {
    value /= base;
    ++unit;
  }
  if (unit == 0)
    return absl::StrFormat("%.0f%s", value, units[0]);
  const int decimals = std::abs(value) >= 99.95 ? 0 : std::abs(value) >= 9.995 ? 1 : 2;
  return absl::StrFormat("%.*f%s", decimals, value, units[unit]);
}

} // namespace

std::string FormatBytes(double bytes) {
  return Scale(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB", " PiB"});
}

std::string FormatCount(double count) { return Scale(count, 1000, {"", " k", " M", " G", " T"}); }

std::string FormatWatts(double watts) { return Scale(watts, 1000, {" W", " kW", " MW", " GW"}); }

std::string FormatEnergy(double joules) {
  if (joules < 3600)
    return absl::StrFormat("%.3g J", joules);
  return Scale(joules / 3600, 1000, {" Wh", " kWh", " MWh", " GWh", " TWh"});
}

std::string FormatSeconds(double seconds) {
  if (seconds < 9.995)
    return absl::StrFormat("%.2f s", seconds);
  if (seconds < 59.95)
    return absl::StrFormat("%.1f s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600)
    return absl::StrFormat("%d m %02d s", whole / 60, whole % 60);
  if (whole < 100 * 3600)
    return absl::StrFormat("%d h %02d m", whole / 3600, whole / 60 % 60);
  constexpr double kDay = 86400, kYear = 365.25 * kDay;
  if (seconds < 2 * kYear)
    return absl::StrFormat("%.*f days", seconds < 99.95 * kDay ? 1 : 0, seconds / kDay);
  const double years = seconds / kYear;
  return (years < 99.95 ? absl::StrFormat("%.1f", years) : FormatCount(years)) + " years";
}

std::string FormatDate(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts = {};
  char text[64] = "at an unknown time";
  if (seconds > 0 && localtime_r(&time, &parts))
    std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

} // namespace boa
