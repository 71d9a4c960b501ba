//===- abi.cpp - The C ABI on the engine ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/impl.h"

namespace {

/// Holds the mutex for one call of the driver. At its end, ready work goes to the device.
struct Call {
  explicit Call(boa_context *context)
      : impl(*static_cast<boa::Engine::Impl *>(context)), lock(impl.mutex) {}
  ~Call() {
    impl.Pump();
    impl.HoldUp();
  }
  boa::Graph *operator->() {
    impl.mutex.AssertHeld(); // by `lock`
    return &impl.graph;
  }
  boa::Engine::Impl &impl;
  boa::MutexLock<> lock;
};

/// The buffers of an update, in the graph's order.
std::vector<boa_buffer> ListTrained(boa_buffer weights, boa_buffer low, boa_buffer gradient,
                                    int32_t count, const boa_buffer *states) {
  std::vector<boa_buffer> buffers{weights, low, gradient};
  buffers.insert(buffers.end(), states, states + count);
  return buffers;
}

} // namespace

#define BOA_CALL(RESULT, NAME, PARAMETERS, DONE)                                                   \
  RESULT boa_rt_##NAME(boa_context *context, BOA_PARAMETERS PARAMETERS) {                          \
    return Call(context)->DONE;                                                                    \
  }
#include "runtime/abi/calls.def"
