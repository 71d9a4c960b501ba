//===- dnn.cpp - The graph interface of cuDNN -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Descriptors take the attributes of a table, of the type and number that it says, until
// they are finalized, and have them from then on. There is one engine; which configurations its
// heuristics give for a graph, each a letter, BOA_FAKE_CUDA says.
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/dnn_descriptor.h"
#include "test/fake_cuda/fake.h"
#include "test/fake_cuda/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

using namespace boa::fake;

struct cudnnContext {
  uint64_t alive;
  CUstream stream;
};

namespace {

constexpr uint64_t kAlive = 0xd11d11d11d11d11du;
/// What is proposed: what says that it sums in no order, what turns out not to be supported, what
/// adds up gradients as blocks end and does not say so. All else is as it should be.
constexpr char kInNoOrder = 'n', kUnsupported = 'u', kAtomics = 'a';
/// In place of proposals: the heuristics fail.
const char *const kFail = "e";

/// Of the mode that the descriptor of heuristics has.
const std::string &ProposalsOf(const DnnDescriptor &heuristic) {
  const DnnSettings &settings = GetDnnSettings();
  return heuristic.Number(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A ? settings.best
                                                                           : settings.fallback;
}

bool SumsInNoOrder(const DnnDescriptor &plan) {
  return plan.proposal == kInNoOrder || (plan.proposal == kAtomics && plan.graph->IsGradient());
}

size_t BytesOf(int type) {
  switch (type) {
  case CUDNN_TYPE_BOOLEAN:
    return 1;
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return 8;
  }
  return 4; // enumerations
}

struct Library {
  std::mutex mutex;
  std::map<void *, std::shared_ptr<DnnDescriptor>> descriptors;
  std::string last_error;

  static Library &Get() {
    static Library *const library = new Library; // outlives what is destroyed at exit
    return *library;
  }
};

/// A mistake of the caller.
cudnnStatus_t Refuse(const char *what, const std::string &words) {
  Library::Get().last_error = words;
  return Report(CUDNN_STATUS_BAD_PARAM, std::string(what) + ": " + words);
}

/// What the real one, too, says in an ordinary run.
cudnnStatus_t Decline(cudnnStatus_t status, const std::string &words) {
  Library::Get().last_error = words;
  return status;
}

std::shared_ptr<DnnDescriptor> Find(cudnnBackendDescriptor_t handle) {
  Library &library = Library::Get();
  std::lock_guard<std::mutex> lock(library.mutex);
  auto at = library.descriptors.find(handle);
  return at == library.descriptors.end() ? nullptr : at->second;
}

/// Of `what` that begins: with what it is to end, or success.
cudnnStatus_t Begin(const char *what) {
  return BeginCall(what) ? Decline(CUDNN_STATUS_INTERNAL_ERROR, "an error that was asked for")
                         : CUDNN_STATUS_SUCCESS;
}

} // namespace

extern "C" {

BOA_FAKE_API size_t cudnnGetVersion(void) { return GetDnnSettings().version; }

BOA_FAKE_API size_t cudnnGetCudartVersion(void) { return GetDnnSettings().cuda; }

BOA_FAKE_API const char *cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
  case CUDNN_STATUS_SUCCESS:
    return "CUDNN_STATUS_SUCCESS";
  case CUDNN_STATUS_NOT_INITIALIZED:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case CUDNN_STATUS_BAD_PARAM:
    return "CUDNN_STATUS_BAD_PARAM";
  case CUDNN_STATUS_NOT_SUPPORTED:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case CUDNN_STATUS_INTERNAL_ERROR:
    return "CUDNN_STATUS_INTERNAL_ERROR";
  case CUDNN_STATUS_EXECUTION_FAILED:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "CUDNN_STATUS_UNKNOWN";
}

BOA_FAKE_API void cudnnGetLastErrorString(char *message, size_t most) {
  snprintf(message, most, "%s", Library::Get().last_error.c_str());
  Library::Get().last_error.clear();
}

BOA_FAKE_API cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  if (cudnnStatus_t status = Begin(__func__))
    return status;
  CUcontext context = nullptr;
  if (cuCtxGetCurrent(&context) || !context)
    return Refuse(__func__, "no context is current on this thread");
  if (TakeOverhead())
    return Decline(CUDNN_STATUS_INTERNAL_ERROR, "out of device memory");
  *handle = new cudnnContext{kAlive, nullptr};
  return CUDNN_STATUS_SUCCESS;
}

// An error of what destroys leaves nothing behind.
BOA_FAKE_API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  const cudnnStatus_t status = Begin(__func__);
  if (!handle || handle->alive != kAlive)
    return Refuse(__func__, "of what is no handle");
  handle->alive = 0;
  delete handle;
  Library &library = Library::Get();
  std::lock_guard<std::mutex> lock(library.mutex);
  return library.descriptors.empty() ? status
                                     : Refuse(__func__, std::to_string(library.descriptors.size()) +
                                                            " descriptors are left");
}

BOA_FAKE_API cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream) {
  if (cudnnStatus_t status = Begin(__func__))
    return status;
  if (!handle || handle->alive != kAlive)
    return Refuse(__func__, "of what is no handle");
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

BOA_FAKE_API cudnnStatus_t cudnnBackendCreateDescriptor(int kind,
                                                        cudnnBackendDescriptor_t *descriptor) {
  if (cudnnStatus_t status = Begin(__func__))
    return status;
  if (!IsKind(kind))
    return Refuse(__func__, "the fake has no descriptor " + std::to_string(kind));
  auto made = std::make_shared<DnnDescriptor>();
  made->kind = kind;
  *descriptor = made.get();
  Library &library = Library::Get();
  std::lock_guard<std::mutex> lock(library.mutex);
  library.descriptors[made.get()] = made;
  return CUDNN_STATUS_SUCCESS;
}

BOA_FAKE_API cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  const cudnnStatus_t status = Begin(__func__);
  Library &library = Library::Get();
  std::lock_guard<std::mutex> lock(library.mutex);
  return library.descriptors.erase(descriptor)
             ? status
             : Refuse(__func__, "of what was destroyed, or never created");
}

BOA_FAKE_API cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, int attribute,
                                                    int type, int64_t count, const void *values) {
  if (cudnnStatus_t status = Begin(__func__))
    return status;
  std::shared_ptr<DnnDescriptor> d = Find(handle);
  if (!d || d->finalized)
    return Refuse(__func__, "of no descriptor, or of one that is finalized");
  const DnnRule *const rule = FindRule(d->kind, attribute);
  if (!rule || rule->type != type || count < rule->least || count > rule->most || !values)
    return Refuse(__func__, "the fake has no " + Name(d->kind, attribute) + " of " +
                                std::to_string(count) + " values of type " + std::to_string(type));
  DnnDescriptor::Attribute set;
  for (int64_t i = 0; i < count; ++i) {
    const size_t bytes = BytesOf(type);
    int64_t value = 0;
    memcpy(&value, static_cast<const char *>(values) + i * bytes, bytes);
    set.values.push_back(value);
    if (type != kDescriptor)
      continue;
    auto of = Find(reinterpret_cast<void *>(value));
    if (!of || !of->finalized || (rule->of < 0 ? !IsOp(of->kind) : of->kind != rule->of))
      return Refuse(__func__,
                    Name(d->kind, attribute) + " is no descriptor of its kind, or not finalized");
    set.of.push_back(std::move(of));
  }
  d->attributes[attribute] = std::move(set);
  return CUDNN_STATUS_SUCCESS;
}

BOA_FAKE_API cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  if (cudnnStatus_t status = Begin(__func__))
    return status;
  std::shared_ptr<DnnDescriptor> d = Find(handle);
  if (!d || d->finalized)
    return Refuse(__func__, "of no descriptor, or of one that is finalized");
  if (std::string fault = Complete(*d); !fault.empty())
    return Refuse(__func__, fault);
  if (d->kind == kPlan && d->proposal == kUnsupported)
    return Decline(CUDNN_STATUS_NOT_SUPPORTED, "a configuration that is not supported after all");
  if (d->kind == kHeuristic && ProposalsOf(*d) == kFail)
    return Decline(CUDNN_STATUS_NOT_SUPPORTED, "heuristics that fail");
  d->finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

BOA_FAKE_API cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t handle, int attribute,
                                                    int type, int64_t most, int64_t *count,
                                                    void *values) {
  if (cudnnStatus_t status = Begin(__func__))
    return status;
  std::shared_ptr<DnnDescriptor> d = Find(handle);
  if (!d || !d->finalized)
    return Refuse(__func__, "of no descriptor, or of one that is not finalized");
  auto is = [&](int kind, int which, int of) {
    return d->kind == kind && attribute == which && type == of;
  };
  // One of those that the caller made for it becomes what it asks for.
  auto give = [&](int kind, int64_t index, char proposal) -> cudnnStatus_t {
    std::shared_ptr<DnnDescriptor> into = Find(static_cast<void **>(values)[index]);
    if (!into || into->kind != kind || into->finalized)
      return Refuse(__func__, "into no fresh descriptor of the kind");
    into->graph = d->graph;
    into->proposal = proposal;
    into->finalized = true;
    return CUDNN_STATUS_SUCCESS;
  };
  if (is(kHeuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, kDescriptor)) {
    const std::string &proposals = ProposalsOf(*d);
    const int64_t found = d->graph->IsSupported() ? int64_t(proposals.size()) : 0;
    *count = most > 0 ? std::min(most, found) : found;
    for (int64_t i = 0; i < std::min(most, found); ++i)
      if (cudnnStatus_t status = give(kConfig, i, proposals[i]))
        return status;
    return CUDNN_STATUS_SUCCESS;
  }
  if (most < 1 || !values)
    return Refuse(__func__, "without a place for it");
  *count = 1;
  if (is(kConfig, CUDNN_ATTR_ENGINECFG_ENGINE, kDescriptor))
    return give(kEngine, 0, d->proposal);
  if (is(kEngine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE)) {
    *count = std::max<int64_t>(GetDnnSettings().notes, d->proposal == kInNoOrder ? 2 : 1);
    for (int64_t i = 0; i < std::min(most, *count); ++i)
      static_cast<int *>(values)[i] = i == 1 && d->proposal == kInNoOrder
                                          ? CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC
                                          : CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    return CUDNN_STATUS_SUCCESS;
  }
  if (is(kPlan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64)) {
    *static_cast<int64_t *>(values) = d->graph->WorkspaceBytes(d->proposal != kAtomics);
    return CUDNN_STATUS_SUCCESS;
  }
  return Refuse(__func__, "the fake gives no " + Name(d->kind, attribute));
}

BOA_FAKE_API cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                               cudnnBackendDescriptor_t plan_handle,
                                               cudnnBackendDescriptor_t pack_handle) {
  if (cudnnStatus_t status = Begin(__func__))
    return status;
  std::shared_ptr<DnnDescriptor> plan = Find(plan_handle), pack = Find(pack_handle);
  if (!handle || handle->alive != kAlive || !plan || plan->kind != kPlan || !plan->finalized ||
      !pack || pack->kind != kPack || !pack->finalized)
    return Refuse(__func__, "no handle, no plan or no pack, or they are not finalized");
  if (SumsInNoOrder(*plan))
    return Refuse(__func__, "a plan that sums in no order");
  const auto &ids = pack->attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).values;
  const auto &pointers = pack->attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).values;
  std::map<int64_t, int64_t> given;
  for (size_t i = 0; i < ids.size(); ++i)
    given[ids[i]] = pointers[i];
  const std::vector<DnnTensor> bound = plan->graph->Bound();
  if (given.size() != bound.size() || ids.size() != bound.size())
    return Refuse(__func__, std::to_string(ids.size()) + " pointers, where the plan has " +
                                std::to_string(bound.size()) + " tensors");
  // Values are read now; the rest when its turn comes.
  std::map<int64_t, float> numbers;
  std::vector<DeviceRange> ranges;
  std::vector<int64_t> in_memory;
  const auto workspace = CUdeviceptr(pack->Number(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
  const size_t workspace_bytes = size_t(plan->graph->WorkspaceBytes());
  for (const DnnTensor &tensor : bound) {
    const std::string name = "tensor " + std::to_string(tensor.id);
    auto at = given.find(tensor.id);
    if (at == given.end() || !at->second)
      return Refuse(__func__, "no pointer for " + name);
    if (tensor.by_value) {
      memcpy(&numbers[tensor.id], reinterpret_cast<const void *>(at->second), sizeof(float));
      continue;
    }
    const DeviceRange range = {CUdeviceptr(at->second),
                               size_t(tensor.Span() * tensor.ElementBytes()), name};
    if (range.address % tensor.alignment != 0)
      return Refuse(__func__, name + " is not as aligned as it says");
    if (workspace < range.address + range.bytes && range.address < workspace + workspace_bytes)
      return Refuse(__func__, "the workspace overlaps " + name);
    ranges.push_back(range);
    in_memory.push_back(tensor.id);
  }
  if (workspace % 16 != 0)
    return Refuse(__func__, "the workspace is not aligned to 16 bytes");
  ranges.push_back({workspace, workspace_bytes, "the workspace"});
  CUresult error = Enqueue(
      __func__, handle->stream, std::move(ranges),
      [graph = plan->graph, numbers, in_memory, workspace_bytes](const std::vector<char *> &data) {
        std::map<int64_t, float> values = numbers;
        std::map<int64_t, char *> memory;
        for (auto &[id, value] : values)
          memory[id] = reinterpret_cast<char *>(&value);
        for (size_t i = 0; i < in_memory.size(); ++i)
          memory[in_memory[i]] = data[i];
        memset(data.back(), 0xff, workspace_bytes);
        graph->Run(memory);
        memset(data.back(), 0xff, workspace_bytes);
        return std::string();
      });
  return error ? Decline(CUDNN_STATUS_EXECUTION_FAILED, "the driver's: " + std::to_string(error))
               : CUDNN_STATUS_SUCCESS;
}

} // extern "C"
