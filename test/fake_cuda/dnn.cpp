//===- dnn.cpp - The graph interface of cuDNN -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As much of it as attention needs. There is one engine. BOA_FAKE_CUDA says which configurations
// its heuristics give for a graph, a letter for each.
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/dnn_graph.h"
#include "test/fake_cuda/fake.h"
#include "test/fake_cuda/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>

using namespace boa::fake;

struct cudnnContext {
  uint64_t alive;
  CUstream stream;
};

namespace {

constexpr uint64_t kAlive = 0xd11d11d11d11d11du;
constexpr int kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR,
              kGraph = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
              kHeuristic = CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
              kConfig = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
              kEngine = CUDNN_BACKEND_ENGINE_DESCRIPTOR,
              kPlan = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
/// Proposals. The first says that it sums in no order, the second gets no plan, and the third adds
/// up gradients as blocks end without a note. All others are right.
constexpr char kInNoOrder = 'n', kUnsupported = 'u', kAtomics = 'a';
/// In place of proposals: the heuristics fail.
const char *const kFail = "e";

/// Of the mode that the descriptor of heuristics has.
const std::string &ProposalsOf(const DnnDescriptor &heuristic) {
  const DnnSettings &settings = GetDnnSettings();
  return heuristic.Get(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A ? settings.best
                                                                        : settings.fallback;
}

/// Attributes by the type of their values. All others are descriptors.
const std::map<int, std::set<int>> kAttributes = {
    {CUDNN_TYPE_DATA_TYPE,
     {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_ATTR_MATMUL_COMP_TYPE,
      CUDNN_ATTR_REDUCTION_COMP_TYPE}},
    {CUDNN_TYPE_INT64,
     {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_UNIQUE_ID,
      CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_ATTR_POINTWISE_AXIS,
      CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS}},
    {CUDNN_TYPE_BOOLEAN, {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_ATTR_TENSOR_IS_BY_VALUE}},
    {CUDNN_TYPE_HANDLE, {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE}},
    {CUDNN_TYPE_VOID_PTR,
     {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_ATTR_VARIANT_PACK_WORKSPACE}},
    {CUDNN_TYPE_POINTWISE_MODE, {CUDNN_ATTR_POINTWISE_MODE}},
    {CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, {CUDNN_ATTR_REDUCTION_OPERATOR}},
    {CUDNN_TYPE_HEUR_MODE, {CUDNN_ATTR_ENGINEHEUR_MODE}},
};

int TypeOf(int attribute) {
  for (const auto &[type, attributes] : kAttributes)
    if (attributes.count(attribute))
      return type;
  return kDescriptor;
}

size_t BytesOf(int type) {
  const bool eight = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_VOID_PTR ||
                     type == CUDNN_TYPE_HANDLE || type == kDescriptor;
  return eight ? 8 : type == CUDNN_TYPE_BOOLEAN ? 1 : 4; // an enumeration has four
}

struct Library {
  std::mutex mutex;
  std::map<void *, std::shared_ptr<DnnDescriptor>> descriptors;
  std::string last_error;
  int handles = 0;

  static Library &Get() {
    static Library *const library = new Library; // outlives what is destroyed at exit
    return *library;
  }
};

/// When the library is closed.
const struct AtEnd {
  ~AtEnd() {
    if (Library::Get().handles != 0)
      Report(CUDNN_STATUS_BAD_PARAM, "left when cuDNN was closed: a handle");
  }
} at_end;

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
  case CUDNN_STATUS_BAD_PARAM:
    return "CUDNN_STATUS_BAD_PARAM";
  case CUDNN_STATUS_NOT_SUPPORTED:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case CUDNN_STATUS_INTERNAL_ERROR:
    return "CUDNN_STATUS_INTERNAL_ERROR";
  case CUDNN_STATUS_EXECUTION_FAILED:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "another status";
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
  ++Library::Get().handles;
  return CUDNN_STATUS_SUCCESS;
}

// An error of what destroys leaves nothing behind.
BOA_FAKE_API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  const cudnnStatus_t status = Begin(__func__);
  if (!handle || handle->alive != kAlive)
    return Refuse(__func__, "of what is no handle");
  handle->alive = 0;
  delete handle;
  --Library::Get().handles;
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
  const std::string name = "attribute " + std::to_string(attribute);
  if (type != TypeOf(attribute) || count < 1 || !values)
    return Refuse(__func__, name + " has no values, or has not the type " + std::to_string(type));
  std::vector<int64_t> set(count);
  for (int64_t i = 0; i < count; ++i) {
    memcpy(&set[i], static_cast<const char *>(values) + i * BytesOf(type), BytesOf(type));
    if (type != kDescriptor)
      continue;
    const auto of = Find(reinterpret_cast<void *>(set[i]));
    if (!of || !of->finalized)
      return Refuse(__func__, name + " is no descriptor, or one that is not finalized");
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
  try {
    if (d->kind == kGraph)
      d->graph = std::make_shared<DnnGraph>(*d);
    if (d->kind == kHeuristic)
      d->graph = d->Of(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).graph;
    if (d->kind == kPlan) {
      const DnnDescriptor &config = d->Of(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      d->graph = config.graph;
      d->proposal = config.proposal;
    }
  } catch (const std::out_of_range &) {
    return Refuse(__func__, "an attribute is missing");
  }
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
  return Refuse(__func__, "the fake gives no attribute " + std::to_string(attribute));
}

BOA_FAKE_API cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                               cudnnBackendDescriptor_t plan_handle,
                                               cudnnBackendDescriptor_t pack_handle) {
  if (cudnnStatus_t status = Begin(__func__))
    return status;
  std::shared_ptr<DnnDescriptor> plan = Find(plan_handle), pack = Find(pack_handle);
  if (!handle || handle->alive != kAlive || !plan || !plan->finalized || !pack || !pack->finalized)
    return Refuse(__func__, "no handle, no plan or no pack, or they are not finalized");
  if (plan->proposal == kInNoOrder || (plan->proposal == kAtomics && plan->graph->IsGradient()))
    return Refuse(__func__, "a plan that sums in no order");
  const auto &ids = pack->attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto &pointers = pack->attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const std::vector<DnnTensor> bound = plan->graph->Bound();
  if (ids.size() != bound.size() || pointers.size() != bound.size())
    return Refuse(__func__, "not as many pointers as the plan has tensors");
  // Values are read now; the rest when its turn comes.
  std::map<int64_t, float> numbers;
  std::vector<DeviceRange> ranges;
  std::vector<int64_t> in_memory;
  const auto workspace = CUdeviceptr(pack->Get(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
  const auto workspace_bytes = size_t(plan->graph->WorkspaceBytes());
  for (const DnnTensor &tensor : bound) {
    const std::string name = "tensor " + std::to_string(tensor.id);
    const size_t at = std::find(ids.begin(), ids.end(), tensor.id) - ids.begin();
    if (at == ids.size() || !pointers[at])
      return Refuse(__func__, "no pointer for " + name);
    if (tensor.by_value) {
      memcpy(&numbers[tensor.id], reinterpret_cast<const void *>(pointers[at]), sizeof(float));
      continue;
    }
    const DeviceRange range = {CUdeviceptr(pointers[at]), size_t(tensor.Bytes()), name};
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
        std::string fault = graph->Run(memory);
        memset(data.back(), 0xff, workspace_bytes);
        return fault;
      });
  return error ? Decline(CUDNN_STATUS_EXECUTION_FAILED, "the driver's: " + std::to_string(error))
               : CUDNN_STATUS_SUCCESS;
}

} // extern "C"
