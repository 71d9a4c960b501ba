//===- fiber.h - A stack to run on, and to leave ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A switch is inlined and jumps: nothing returns to where nobody called from, which a processor
// would have predicted otherwise. AddressSanitizer and ThreadSanitizer are told of every one.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_FIBER_H
#define BOA_TEST_FAKE_CUDA_FIBER_H

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BOA_ADDRESS_SANITIZER 1
#include <sanitizer/common_interface_defs.h>
#endif
#if __has_feature(thread_sanitizer)
#define BOA_THREAD_SANITIZER 1
#include <sanitizer/tsan_interface.h>
#endif
#endif

namespace boa::fake {

/// Leaves the stack's top at *save, what it saved there on it, and goes on from `load`, which is
/// what another left, or begins.
[[gnu::always_inline]] inline void SwitchStacks(void **save, void *load) {
  // Beyond what a function may have below its top.
  asm volatile("leaq -128(%%rsp), %%rsp\n\t"
               "pushq %%rbp\n\t"
               "leaq 1f(%%rip), %%rax\n\t"
               "pushq %%rax\n\t"
               "movq %%rsp, (%0)\n\t"
               "movq %1, %%rsp\n\t"
               "popq %%rax\n\t"
               "jmpq *%%rax\n\t"
               "1:\n\t"
               "popq %%rbp\n\t"
               "leaq 128(%%rsp), %%rsp"
               : "+D"(save), "+S"(load)
               :
               : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                 "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
#ifdef __AVX512F__
                 "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",
                 "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3",
                 "k4", "k5", "k6", "k7",
#endif
                 "cc", "memory");
}

class Fiber {
public:
  /// `index` among those that take turns: their stacks begin on different cache lines.
  explicit Fiber(int index);
  ~Fiber();
  Fiber(const Fiber &) = delete;

  /// What Resume will run next. Nothing is suspended.
  void Start(void (*function)(void *), void *data);
  /// Runs on this fiber until it suspends or the function returns; true: it returned.
  [[gnu::always_inline]] bool Resume();
  /// On the fiber: back to who resumed it.
  [[gnu::always_inline]] void Suspend();
  /// What is suspended is forgotten; nothing on the stack is destroyed.
  void Abandon();

  void Main(); // the bottom of the stack

private:
  void Prepare();

  static constexpr size_t kPage = 4096, kStack = 256 * 1024;
  char *Stack() const { return memory + kPage; }

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

inline bool Fiber::Resume() {
#ifdef BOA_ADDRESS_SANITIZER
  void *resumer = nullptr;
  __sanitizer_start_switch_fiber(&resumer, Stack(), kStack);
#endif
#ifdef BOA_THREAD_SANITIZER
  back_state = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(thread_state, 0);
#endif
  SwitchStacks(&back, top);
#ifdef BOA_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(resumer, nullptr, nullptr);
#endif
  return ended;
}

inline void Fiber::Suspend() {
#ifdef BOA_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(&fake_stack, back_bottom, back_bytes);
#endif
#ifdef BOA_THREAD_SANITIZER
  __tsan_switch_to_fiber(back_state, 0);
#endif
  SwitchStacks(&top, back);
#ifdef BOA_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack, &back_bottom, &back_bytes);
#endif
}

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_FIBER_H
