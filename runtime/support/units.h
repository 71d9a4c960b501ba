//===- units.h - Quantities for people to read ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three significant digits and a unit. Bytes in powers of 1024, all else in
// powers of 1000.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_UNITS_H
#define BOA_RUNTIME_SUPPORT_UNITS_H

#include <cstdint>
#include <string>

namespace boa {

/// "0 B", "512 B", "4.00 KiB", "12.3 MiB", "1.25 GiB".
std::string FormatBytes(double bytes);
/// "950", "21.7 k", "10.8 M", "175 G".
std::string FormatCount(double count);
/// "350 W", "1.20 kW"; of joules "86.4 kWh", "232 J".
std::string FormatWatts(double watts);
std::string FormatEnergy(double joules);
/// "0.42 s", "12.3 s", "3 m 05 s", "1 h 02 m", "12.3 days", "4.2 years".
std::string FormatSeconds(double seconds);
/// "2026-11-24 09:30:00", in local time, of seconds since 1970.
std::string FormatDate(int64_t seconds);

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_UNITS_H
