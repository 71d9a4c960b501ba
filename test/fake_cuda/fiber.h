//===- fiber.h - A stack to run on, and to leave ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// AddressSanitizer and ThreadSanitizer are told of every switch.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_FIBER_H
#define BOA_TEST_FAKE_CUDA_FIBER_H

#include <cstddef>

namespace boa::fake {

class Fiber {
public:
  /// `index` among those that take turns: their stacks begin on different cache lines.
  explicit Fiber(int index);
  ~Fiber();
  Fiber(const Fiber &) = delete;

  /// What Resume will run next. Nothing is suspended.
  void Start(void (*function)(void *), void *data);
  /// Runs on this fiber until it suspends or the function returns; true: it returned.
  bool Resume();
  /// On the fiber: back to who resumed it.
  void Suspend();
  /// What is suspended is forgotten; nothing on the stack is destroyed.
  void Abandon();

  void Main(); // the bottom of the stack

private:
  void Prepare();
  void SwitchBack();

  char *memory; // a page that faults, then the stack
  const int index;
  void *top = nullptr;  // where this one left off
  void *back = nullptr; // where who resumed it did
  void (*function)(void *) = nullptr;
  void *data = nullptr;
  bool ended = true;
  // For the sanitizers.
  [[maybe_unused]] void *fake_stack = nullptr;
  [[maybe_unused]] const void *back_bottom = nullptr;
  [[maybe_unused]] size_t back_bytes = 0;
  [[maybe_unused]] void *thread_state = nullptr, *back_state = nullptr;
};

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_FIBER_H
