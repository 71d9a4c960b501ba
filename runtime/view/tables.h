//===- tables.h - Tables of memory and traffic ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes by role, as text: where storages live, what a memory holds, what moved. They are printed
// with --verbose, by simulations and by plans.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_TABLES_H
#define BOA_RUNTIME_VIEW_TABLES_H

#include "runtime/abi/program.h"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>

namespace boa {

/// Storages by role and home, with their sum.
std::string FormatStorages(const Program &);

/// The memory of a plan by role, the largest first: for the refusal of a plan that needs too much.
std::string FormatArena(const Program &, const std::string &tier);

/// A column of a table of traffic: its head, and bytes by role.
struct TrafficColumn {
  const char *head;
  const std::map<std::string, int64_t> &bytes;
};
/// "" where nothing moved.
std::string FormatTraffic(const char *title, std::initializer_list<TrafficColumn> columns);

} // namespace boa

#endif // BOA_RUNTIME_VIEW_TABLES_H
