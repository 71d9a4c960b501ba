//===- Habits.h - Spellings of other frameworks -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// People bring names from PyTorch and its trainers. One table says how Boa spells
// each; errors quote it, and `boa help pytorch` prints it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_HABITS_H
#define BOA_FRONTEND_HABITS_H

#include <string>
#include <string_view>
#include <vector>

namespace boa::frontend {

/// Where a habit shows. A name may mean one thing as a function and another as a setting.
enum class HabitKind { Sign, Word, Function, Setting, Value };

struct Habit {
  HabitKind kind;
  const char *written;
  /// How Boa spells it: ends a sentence.
  const char *spelling;
};

const std::vector<Habit> &habits();

/// Boa's spelling of `written`, or "".
std::string findHabit(HabitKind kind, std::string_view written);
/// The same behind a separator, or "".
std::string habitHint(HabitKind kind, std::string_view written, const char *separator = "; ");

} // namespace boa::frontend

#endif // BOA_FRONTEND_HABITS_H
