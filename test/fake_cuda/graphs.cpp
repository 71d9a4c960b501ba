//===- graphs.cpp - Captures and graphs -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stream that captures does nothing: what it is given becomes a graph, a line of nodes. A
// launch gives all of them to a stream, each with a delay of its own.
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/context.h"

namespace boa::fake {

static Driver &driver() { return Driver::Get(); }

CUresult Give(Stream &stream, const char *what, std::function<std::string()> run) {
  if (driver().capturing.load(std::memory_order_relaxed)) {
    std::lock_guard<std::mutex> lock(driver().captures_mutex);
    auto it = driver().captures.find(&stream);
    if (it != driver().captures.end() && it->second.invalidated)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (it != driver().captures.end()) {
      it->second.nodes.push_back({what, std::move(run)});
      return CUDA_SUCCESS;
    }
  }
  Stream::Work work;
  work.what = what;
  work.inject = LateInjection(what);
  work.run = std::move(run);
  stream.Push(std::move(work));
  return CUDA_SUCCESS;
}

/// Ends the captures of which this is so.
template <typename Ends> static CUresult Invalidate(Ends ends) {
  if (!driver().capturing.load(std::memory_order_relaxed))
    return CUDA_SUCCESS;
  CUresult error = CUDA_SUCCESS;
  std::lock_guard<std::mutex> lock(driver().captures_mutex);
  for (auto &[stream, capture] : driver().captures)
    if (ends(stream, capture)) {
      capture.invalidated = true;
      error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  return error;
}

CUresult RefuseCapturing(const Stream &stream) {
  return Invalidate([&](const Stream *one, const Capture &) { return one == &stream; });
}

CUresult RefuseUnsafe() {
  return Invalidate([](const Stream *, const Capture &capture) {
    return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
           (capture.mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
            capture.thread == std::this_thread::get_id());
  });
}

} // namespace boa::fake

using namespace boa::fake;

extern "C" {

BOA_FAKE_API CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
  Context *context;
  std::shared_ptr<Stream> stream;
  CUresult error;
  if ((error = BeginCallIn(__func__, context)) ||
      (error = FindStream(__func__, handle, context, stream)))
    return error;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return Report(CUDA_ERROR_INVALID_VALUE, "cuStreamBeginCapture_v2: unknown mode");
  std::lock_guard<std::mutex> lock(driver().captures_mutex);
  auto [it, fresh] = driver().captures.try_emplace(stream.get());
  if (!fresh)
    return CUDA_ERROR_ILLEGAL_STATE;
  it->second.thread = std::this_thread::get_id();
  it->second.mode = mode;
  ++driver().capturing;
  return CUDA_SUCCESS;
}

// The stream captures no more, whatever this ends with, but on another thread.
BOA_FAKE_API CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  Context *context = nullptr;
  std::shared_ptr<Stream> stream;
  CUresult error = BeginCall(__func__), found = FindContext(__func__, context);
  if (found && !GivesBack(found, context))
    return found;
  if (CUresult missing = FindStream(__func__, handle, context, stream))
    return missing;
  error = error ? error : found;
  *graph = nullptr;
  Capture capture;
  {
    std::lock_guard<std::mutex> lock(driver().captures_mutex);
    auto it = driver().captures.find(stream.get());
    if (it == driver().captures.end())
      return CUDA_ERROR_ILLEGAL_STATE;
    if (it->second.mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        it->second.thread != std::this_thread::get_id()) {
      it->second.invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    capture = std::move(it->second);
    driver().captures.erase(it);
    --driver().capturing;
  }
  if (error || capture.invalidated)
    return error ? error : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  auto made = std::make_shared<Graph>();
  made->context = context;
  {
    std::lock_guard<std::mutex> lock(context->mutex);
    made->nodes = &context->captured.emplace_back(std::move(capture.nodes));
  }
  *graph = driver().graphs.Add(std::move(made));
  return CUDA_SUCCESS;
}

// The device's memory that it takes is not given back before the context is.
BOA_FAKE_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *handle, CUgraph graph_handle,
                                                  unsigned long long flags) {
  Context *context;
  CUresult error;
  if ((error = BeginCallIn(__func__, context)))
    return error;
  auto graph = FindIn(__func__, driver().graphs, graph_handle, context, error);
  if (!graph)
    return error;
  if (flags)
    return Report(CUDA_ERROR_INVALID_VALUE, "cuGraphInstantiateWithFlags: the fake has no flags");
  if ((error = TakeOverhead()))
    return error;
  auto exec = std::make_shared<GraphExec>();
  static_cast<Graph &>(*exec) = *graph;
  *handle = driver().execs.Add(std::move(exec));
  return CUDA_SUCCESS;
}

/// The graph, and a stream that does not capture.
static CUresult FindExec(const char *what, CUgraphExec handle, CUstream stream_handle,
                         std::shared_ptr<GraphExec> &exec, std::shared_ptr<Stream> &stream) {
  Context *context;
  CUresult error;
  if ((error = BeginCallIn(what, context)) ||
      (error = FindStream(what, stream_handle, context, stream)) ||
      (error = RefuseCapturing(*stream)))
    return error;
  exec = FindIn(what, driver().execs, handle, context, error);
  return error;
}

BOA_FAKE_API CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  std::shared_ptr<GraphExec> exec;
  std::shared_ptr<Stream> stream;
  return FindExec(__func__, handle, stream_handle, exec, stream);
}

BOA_FAKE_API CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  std::shared_ptr<GraphExec> exec;
  std::shared_ptr<Stream> stream;
  if (CUresult error = FindExec(__func__, handle, stream_handle, exec, stream))
    return error;
  for (const Captured &node : *exec->nodes)
    if (CUresult error = Give(*stream, node.what, [&node] { return node.run(); }))
      return error;
  return CUDA_SUCCESS;
}

// What was launched of it runs nevertheless.
BOA_FAKE_API CUresult cuGraphExecDestroy(CUgraphExec handle) {
  Context *context = nullptr;
  CUresult error = BeginCallIn(__func__, context), missing;
  if (error && !GivesBack(error, context))
    return error;
  if (!FindIn(__func__, driver().execs, handle, context, missing))
    return missing;
  driver().execs.Remove(handle);
  return error;
}

BOA_FAKE_API CUresult cuGraphDestroy(CUgraph handle) {
  Context *context = nullptr;
  CUresult error = BeginCallIn(__func__, context), missing;
  if (error && !GivesBack(error, context))
    return error;
  if (!FindIn(__func__, driver().graphs, handle, context, missing))
    return missing;
  driver().graphs.Remove(handle);
  return error;
}

} // extern "C"
