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

} // namespace

extern "C" {

boa_buffer boa_rt_prefetch(boa_context *context, int32_t storage, int64_t entry, int32_t first,
                           int32_t count, int32_t space, int32_t zero) {
  return Call(context)->Open(storage, entry, first, count, space, /*bring=*/true, zero != 0);
}

boa_buffer boa_rt_create(boa_context *context, int32_t storage, int64_t entry, int32_t first,
                         int32_t count, int32_t space) {
  return Call(context)->Open(storage, entry, first, count, space, /*bring=*/false, /*zero=*/false);
}

void boa_rt_copy(boa_context *context, boa_buffer from, boa_buffer to, int32_t first,
                 int32_t count) {
  Call(context)->Copy(from, to, first, count);
}

void boa_rt_offload(boa_context *context, boa_buffer buffer, int32_t storage, int64_t entry,
                    int32_t first, int32_t count) {
  Call(context)->Offload(buffer, storage, entry, first, count);
}

void boa_rt_release(boa_context *context, boa_buffer buffer, int32_t retain) {
  Call(context)->Release(buffer, retain != 0);
}

void boa_rt_launch(boa_context *context, int32_t kernel, int32_t count, const boa_buffer *buffers) {
  Call(context)->Launch(kernel, count, buffers);
}

void boa_rt_update(boa_context *context, int32_t group, int32_t chunk, int64_t step,
                   boa_buffer weights, boa_buffer low, boa_buffer gradient, int32_t count,
                   const boa_buffer *states) {
  std::vector<boa_buffer> buffers{weights, low, gradient};
  buffers.insert(buffers.end(), states, states + count);
  Call(context)->Update(group, chunk, step, buffers);
}

void boa_rt_norm(boa_context *context, int32_t group, boa_buffer gradient) {
  Call(context)->Norm(group, gradient);
}

void boa_rt_norm_done(boa_context *context, int64_t step) { Call(context)->NormDone(step); }

} // extern "C"
