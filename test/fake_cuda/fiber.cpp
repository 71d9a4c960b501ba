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

#ifdef BOA_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

extern "C" {
// Where a fiber begins: boa_fake_fiber_main of what is on top of its stack.
__attribute__((visibility("hidden"))) void boa_fake_begin();
__attribute__((visibility("hidden"), used)) void boa_fake_fiber_main(boa::fake::Fiber *fiber) {
  fiber->Main();
}
}

asm(R"(
.text
.p2align 4
.hidden boa_fake_begin
.globl boa_fake_begin
.type boa_fake_begin, @function
boa_fake_begin:
  .cfi_startproc
  .cfi_undefined rip
  popq %rdi
  xorl %ebp, %ebp
  call boa_fake_fiber_main
  ud2
  .cfi_endproc
.size boa_fake_begin, .-boa_fake_begin
)");

namespace boa::fake {

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
  __asan_unpoison_memory_region(Stack(), kStack);
#endif
#ifdef BOA_THREAD_SANITIZER
  thread_state = __tsan_create_fiber(0);
#endif
  fake_stack = nullptr;
  // As SwitchStacks leaves it, and aligned as where something is called.
  auto *frame = reinterpret_cast<void **>(Stack() + kStack - 64 - index % 48 * 64);
  frame -= 2;
  *--frame = this;
  *--frame = reinterpret_cast<void *>(&boa_fake_begin);
  top = frame;
  ended = true;
}

void Fiber::Start(void (*run)(void *), void *with) {
  function = run;
  data = with;
  ended = false;
}

void Fiber::Main() {
#ifdef BOA_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &back_bottom, &back_bytes);
#endif
  for (;;) {
    function(data);
    ended = true;
    Suspend();
  }
}

void Fiber::Abandon() {
#ifdef BOA_THREAD_SANITIZER
  __tsan_destroy_fiber(thread_state);
#endif
  Prepare();
}

} // namespace boa::fake
