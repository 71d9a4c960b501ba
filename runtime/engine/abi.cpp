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

/// Holds the mutex for one call of the driver, and submits what it made ready.
struct Call {
  explicit Call(boa_context *context)
      : impl(*static_cast<boa::Engine::Impl *>(context)), lock(impl.mutex) {}
  ~Call() { impl.Submit(lock); }
  boa::Engine::Impl &impl;
  std::unique_lock<std::mutex> lock;
};

extern "C" {

boa_token boa_rt_prefetch(boa_context *context, int32_t storage, int64_t entry, int32_t first,
                          int32_t count, int32_t zero) {
  return Call(context).impl.Open(storage, entry, first, count, /*read=*/true, zero != 0);
}

boa_buffer boa_rt_await(boa_context *, boa_token token) {
  // A prefetch's token is its buffer's handle: waiting is in the graph.
  return token;
}

boa_buffer boa_rt_create(boa_context *context, int32_t storage, int64_t entry, int32_t first,
                         int32_t count) {
  return Call(context).impl.Open(storage, entry, first, count, /*read=*/false, /*zero=*/false);
}

boa_token boa_rt_offload(boa_context *context, boa_buffer handle, int32_t storage, int64_t entry,
                         int32_t first, int32_t count) {
  Call call(context);
  boa::Engine::Impl &impl = call.impl;
  BufferRef buffer = impl.error.ok() && handle ? impl.Lookup(handle) : nullptr;
  if (!buffer || buffer->home)
    return 0;
  if (!impl.Expect(storage == buffer->storage && impl.HasChunks(storage, entry, first, count) &&
                       boa::Holds(*buffer, first, count),
                   "offloads chunks that the buffer does not hold"))
    return 0;
  impl.DropRetained(storage, entry, first, count);
  CommandRef command = impl.New(Command::Kind::write);
  command->buffers = {buffer};
  command->storage = storage;
  command->entry = entry;
  command->first = first;
  command->count = count;
  impl.Reads(command, *buffer, first, count);
  for (int32_t c = first; c < first + count; ++c) {
    impl.PlaceChunk(*command, c, /*write=*/true);
    boa::Hazard &hazard = impl.storage_hazards[{storage, entry, c}];
    impl.DependOn(command, hazard.writer);
    for (const CommandRef &reader : hazard.readers)
      impl.DependOn(command, reader);
    hazard.readers.clear();
    hazard.writer = command;
  }
  impl.Issue(command);
  return 0;
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
    BufferRef buffer = handles[i] ? impl.Lookup(handles[i]) : nullptr;
    if (!impl.error.ok())
      return;
    // A null buffer reaches the kernel as null.
    if (buffer && kernels[kernel].buffers[i].write)
      impl.Writes(command, *buffer, buffer->first, buffer->count);
    else if (buffer)
      impl.Reads(command, *buffer, buffer->first, buffer->count);
    command->buffers.push_back(std::move(buffer));
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
    BufferRef buffer = handle ? impl.Lookup(handle) : nullptr;
    if (buffer &&
        impl.Expect(boa::Holds(*buffer, chunk, 1), "updates a chunk that a buffer does not hold")) {
      if (handle == gradient)
        impl.Reads(command, *buffer, chunk, 1);
      else
        impl.Writes(command, *buffer, chunk, 1);
    }
    command->buffers.push_back(std::move(buffer));
  }
  if (impl.error.ok())
    impl.Issue(command);
}

void boa_rt_norm(boa_context *context, int32_t group, boa_buffer gradient) {
  Call call(context);
  boa::Engine::Impl &impl = call.impl;
  BufferRef buffer = impl.error.ok() ? impl.Lookup(gradient) : nullptr;
  if (!buffer || !impl.Expect(group >= 0 && group < int32_t(impl.program.groups.size()),
                              "takes the norm of a group that it does not have"))
    return;
  CommandRef command = impl.New(Command::Kind::norm);
  command->index = group;
  impl.Reads(command, *buffer, buffer->first, buffer->count);
  command->buffers = {std::move(buffer)};
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
