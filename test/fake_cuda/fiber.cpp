//===- fiber.cpp - A stack to run on, and to leave --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/fiber.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BOA_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define BOA_THREAD_SANITIZER 1
#endif
#endif

#ifdef BOA_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef BOA_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

extern "C" {
// Saves what a callee must preserve and the stack's top at *save; goes on from `load`.
__attribute__((visibility("hidden"))) void boa_fake_switch(void **save, void *load);
// Where a fiber begins: boa_fake_fiber_main of what is in r12.
__attribute__((visibility("hidden"))) void boa_fake_begin();
__attribute__((visibility("hidden"), used)) void boa_fake_fiber_main(boa::fake::Fiber *fiber) {
  fiber->Main();
}
}

asm(R"(
.text
.p2align 4
.hidden boa_fake_switch
.globl boa_fake_switch
.type boa_fake_switch, @function
boa_fake_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size boa_fake_switch, .-boa_fake_switch

.p2align 4
.hidden boa_fake_begin
.globl boa_fake_begin
.type boa_fake_begin, @function
boa_fake_begin:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  call boa_fake_fiber_main
  ud2
  .cfi_endproc
.size boa_fake_begin, .-boa_fake_begin
)");

namespace boa::fake {

namespace {
constexpr size_t kPage = 4096, kStack = 256 * 1024;
} // namespace

Fiber::Fiber(int index) : index(index) {
  void *pages = mmap(nullptr, kPage + kStack, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages, kPage, PROT_NONE) != 0) {
    perror("fake CUDA: a fiber's stack");
    abort();
  }
  memory = static_cast<char *>(pages);
  Prepare();
}

Fiber::~Fiber() {
#ifdef BOA_THREAD_SANITIZER
  __tsan_destroy_fiber(thread_state);
#endif
  munmap(memory, kPage + kStack);
}

void Fiber::Prepare() {
#ifdef BOA_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(memory + kPage, kStack);
#endif
#ifdef BOA_THREAD_SANITIZER
  thread_state = __tsan_create_fiber(0);
#endif
  fake_stack = nullptr;
  // As boa_fake_switch leaves it, and aligned as at a call.
  auto *frame = reinterpret_cast<uintptr_t *>(memory + kPage + kStack - 64 - index % 48 * 64);
  *--frame = 0;
  *--frame = 0;
  *--frame = reinterpret_cast<uintptr_t>(&boa_fake_begin);
  *--frame = 0;                                 // rbp
  *--frame = 0;                                 // rbx
  *--frame = reinterpret_cast<uintptr_t>(this); // r12
  for (int i = 0; i < 3; ++i)
    *--frame = 0; // r13, r14, r15
  top = frame;
  ended = true;
}

void Fiber::Start(void (*run)(void *), void *with) {
  function = run;
  data = with;
  ended = false;
}

bool Fiber::Resume() {
#ifdef BOA_ADDRESS_SANITIZER
  void *resumer = nullptr;
  __sanitizer_start_switch_fiber(&resumer, memory + kPage, kStack);
#endif
#ifdef BOA_THREAD_SANITIZER
  back_state = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(thread_state, 0);
#endif
  boa_fake_switch(&back, top);
#ifdef BOA_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(resumer, nullptr, nullptr);
#endif
  return ended;
}

void Fiber::SwitchBack() {
#ifdef BOA_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(&fake_stack, back_bottom, back_bytes);
#endif
#ifdef BOA_THREAD_SANITIZER
  __tsan_switch_to_fiber(back_state, 0);
#endif
  boa_fake_switch(&top, back);
#ifdef BOA_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack, &back_bottom, &back_bytes);
#endif
}

void Fiber::Suspend() { SwitchBack(); }

void Fiber::Main() {
#ifdef BOA_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &back_bottom, &back_bytes);
#endif
  for (;;) {
    function(data);
    ended = true;
    SwitchBack();
  }
}

void Fiber::Abandon() {
#ifdef BOA_THREAD_SANITIZER
  __tsan_destroy_fiber(thread_state);
#endif
  Prepare();
}

} // namespace boa::fake
