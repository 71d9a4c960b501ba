//===- abi.cpp - The C ABI on the engine ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/impl.h"

using boa::BufferRef;
using boa::Command;
using boa::CommandRef;
using boa::View;

/// Holds the mutex for one call of the driver, and submits what it made ready.
struct Call {
  explicit Call(boa_context *context)
      : impl(*static_cast<boa::Engine::Impl *>(context)), lock(impl.mutex) {}
  ~Call() { impl.Submit(lock); }
  boa::Engine::Impl &impl;
  std::unique_lock<std::mutex> lock;
};

extern "C" {

boa_buffer boa_rt_prefetch(boa_context *context, int32_t storage, int64_t entry, int32_t first,
                           int32_t count, int32_t space, int32_t zero) {
  return Call(context).impl.Open(storage, entry, first, count, space, /*bring=*/true, zero != 0);
}

boa_buffer boa_rt_create(boa_context *context, int32_t storage, int64_t entry, int32_t first,
                         int32_t count, int32_t space) {
  return Call(context).impl.Open(storage, entry, first, count, space, /*bring=*/false,
                                 /*zero=*/false);
}

void boa_rt_copy(boa_context *context, boa_buffer from, boa_buffer to, int32_t first,
                 int32_t count) {
  Call call(context);
  boa::Engine::Impl &impl = call.impl;
  const View *source = impl.error.ok() && from && to ? impl.Lookup(from) : nullptr;
  const View *target = source ? impl.Lookup(to) : nullptr;
  if (target &&
      impl.Expect(source->buffer->storage == target->buffer->storage &&
                      boa::Holds(*source, first, count) && boa::Holds(*target, first, count),
                  "copies chunks that a buffer does not hold"))
    impl.CopyChunks(source->buffer, target->buffer, first, count);
}

void boa_rt_offload(boa_context *context, boa_buffer handle, int32_t storage, int64_t entry,
                    int32_t first, int32_t count) {
  Call call(context);
  boa::Engine::Impl &impl = call.impl;
  const View *view = impl.error.ok() && handle ? impl.Lookup(handle) : nullptr;
  if (!view || !impl.Expect(storage == view->buffer->storage &&
                                impl.HasChunks(storage, entry, first, count) &&
                                boa::Holds(*view, first, count),
                            "offloads chunks that the buffer does not hold"))
    return;
  BufferRef buffer = view->buffer;
  impl.DropRetained(storage, entry, first, count);
  impl.Move(/*home=*/true, buffer, entry, first, count);
}

void boa_rt_release(boa_context *context, boa_buffer handle, int32_t retain) {
  Call call(context);
  if (call.impl.error.ok() && handle)
    call.impl.Release(handle, retain != 0);
}

void boa_rt_launch(boa_context *context, int32_t kernel, int32_t count, const boa_buffer *handles) {
  Call call(context);
  boa::Engine::Impl &impl = call.impl;
  const auto &kernels = impl.program.kernels;
  if (!impl.error.ok() || !impl.Expect(kernel >= 0 && kernel < int32_t(kernels.size()) &&
                                           count == int32_t(kernels[kernel].buffers.size()),
                                       "launches a kernel that the descriptor does not have"))
    return;
  CommandRef command = impl.New(Command::Kind::kernel);
  command->index = kernel;
  for (int32_t i = 0; i < count; ++i) {
    // A null buffer reaches the kernel as null.
    const View *view = handles[i] ? impl.Lookup(handles[i]) : nullptr;
    if (view && impl.Reachable(*view, BOA_DEVICE, "runs a kernel on a buffer in host memory")) {
      if (kernels[kernel].buffers[i].write)
        impl.Writes(command, *view->buffer, view->first, view->count);
      else
        impl.Reads(command, *view->buffer, view->first, view->count);
    }
    command->buffers.push_back(view ? view->buffer : nullptr);
    command->firsts.push_back(view ? view->first : 0);
    if (!impl.error.ok())
      return;
  }
  impl.Issue(command);
}

void boa_rt_update(boa_context *context, int32_t group, int32_t chunk, int64_t step,
                   boa_buffer weights, boa_buffer low, boa_buffer momentum, boa_buffer variance,
                   boa_buffer gradient) {
  Call call(context);
  boa::Engine::Impl &impl = call.impl;
  if (!impl.error.ok() || step == 0)
    return;
  const auto &groups = impl.program.groups;
  if (!impl.Expect(group >= 0 && group < int32_t(groups.size()) && weights && gradient,
                   "updates without weights or a gradient"))
    return;
  CommandRef command = impl.New(Command::Kind::update);
  command->index = group;
  command->chunk = chunk;
  command->step = step;
  for (boa_buffer handle : {weights, low, momentum, variance, gradient}) {
    const View *view = handle ? impl.Lookup(handle) : nullptr;
    if (view && impl.Reachable(*view, BOA_HOST, "updates a buffer in device memory") &&
        impl.Expect(boa::Holds(*view, chunk, 1), "updates a chunk that a buffer does not hold")) {
      if (handle == gradient)
        impl.Reads(command, *view->buffer, chunk, 1);
      else
        impl.Writes(command, *view->buffer, chunk, 1);
    }
    command->buffers.push_back(view ? view->buffer : nullptr);
  }
  if (impl.error.ok())
    impl.Issue(command);
}

void boa_rt_norm(boa_context *context, int32_t group, boa_buffer gradient) {
  Call call(context);
  boa::Engine::Impl &impl = call.impl;
  const View *view = impl.error.ok() ? impl.Lookup(gradient) : nullptr;
  if (!view ||
      !impl.Expect(group >= 0 && group < int32_t(impl.program.groups.size()),
                   "takes the norm of a group that it does not have") ||
      !impl.Reachable(*view, BOA_HOST, "takes the norm of a buffer in device memory"))
    return;
  CommandRef command = impl.New(Command::Kind::norm);
  command->index = group;
  command->first = view->first;
  command->count = view->count;
  impl.Reads(command, *view->buffer, view->first, view->count);
  command->buffers = {view->buffer};
  impl.Issue(command);
}

void boa_rt_norm_done(boa_context *context, int64_t step) {
  Call call(context);
  if (!call.impl.error.ok())
    return;
  CommandRef command = call.impl.New(Command::Kind::norm_done);
  command->step = step;
  call.impl.Issue(command);
}

} // extern "C"
