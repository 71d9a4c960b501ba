//===- dnn.cpp - Attention by cuDNN, where there is one -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A gradient that adds up in one order keeps the gradients of scores in the workspace:
// batch x heads x time x time. Where they are more than the program has scratch for, it is
// executed part by part, of fewer sequences, or fewer heads of one: as many in one as fit.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/dnn.h"

#include "runtime/abi/cuda_calls.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

namespace boa::cuda {

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

absl::Status DnnApi::Error(DnnResult result, const char *symbol) const {
  const char *name = GetErrorString.address(result);
  char words[512] = "";
  GetLastErrorString.address(words, sizeof(words));
  return absl::InternalError(absl::StrCat(symbol, ": ", name ? name : "error", " (",
                                          words[0] ? words : absl::StrCat(result).c_str(), ")"));
}

std::string DnnApi::Describe() const {
  return absl::StrCat("cuDNN ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

/// Opens cuBLASLt of the CUDA version that this cuDNN was built for. cuDNN opens it by the same
/// name, and calls abort() where it finds none.
static absl::Status OpenItsBlas(const DnnApi &dnn) {
  const int major = int(dnn.GetCudartVersion.address() / 1000);
  const std::string name = absl::StrCat("libcublasLt.so.", major);
  const std::string needs =
      absl::StrCat(dnn.Describe(), " is built for CUDA ", major, " and needs its cuBLASLt");
  return Library::Open("BOA_CUDA_BLAS", {name}, needs.c_str(), [&](Library library) {
    Entry<size_t> version;
    const char *missing = nullptr;
    library.Bind(version, "cublasLtGetVersion", missing);
    if (missing)
      return absl::FailedPreconditionError(absl::StrCat(library.path(), " has no ", missing));
    const int found = int(version.address() / 10000);
    if (found == major)
      return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(needs, ", but ", library.path(), " is for CUDA ", found));
  });
}

absl::StatusOr<std::unique_ptr<DnnApi>> DnnApi::Open() {
  constexpr int kMajor = 9;
  std::unique_ptr<DnnApi> api;
  auto use = [&](Library library) -> absl::Status {
    auto table = std::make_unique<DnnApi>();
    const char *missing = nullptr;
#define BOA_FIND(name, exported, result, arguments) library.Bind(table->name, #exported, missing);
    BOA_CUDA_DNN_FUNCTIONS(BOA_FIND)
#undef BOA_FIND
    if (missing)
      return absl::FailedPreconditionError(absl::StrCat(library.path(), " has no ", missing));
    table->version = int(table->GetVersion.address());
    if (table->version / 10000 != kMajor)
      return absl::FailedPreconditionError(
          absl::StrCat(library.path(), " is ", table->Describe(), ", not 9"));
    if (absl::Status status = OpenItsBlas(*table); !status.ok())
      return status;
    table->library = std::move(library);
    api = std::move(table);
    return absl::OkStatus();
  };
  if (absl::Status status =
          Library::Open("BOA_CUDA_DNN", {"libcudnn.so.9"}, "there is no cuDNN 9", use);
      !status.ok())
    return status;
  return api;
}

Dnn::~Dnn() {
  plans.clear();
  if (handle)
    api->Destroy.address(handle);
}

absl::Status Dnn::Open(Stream stream) {
  looked = true;
  const char *const named = std::getenv("BOA_CUDA_DNN");
  if (named && std::strcmp(named, "none") == 0) {
    lacking = "BOA_CUDA_DNN=none";
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<DnnApi>> opened = DnnApi::Open();
  absl::Status status = opened.status();
  if (status.ok()) {
    api = *std::move(opened);
    status = api->Call(api->Create, &handle);
  }
  if (status.ok())
    status = api->Call(api->SetStream, handle, stream);
  if (status.ok())
    return status;
  if (handle)
    api->Destroy.address(handle);
  handle = nullptr;
  api = nullptr;
  lacking = std::string(status.message());
  return named ? status : absl::OkStatus();
}

std::string Dnn::Describe() const {
  if (!looked)
    return "";
  bool any = false;
  for (const auto &[key, planned] : plans)
    any |= planned.is_taken;
  if (!any)
    return absl::StrCat("attention by the program's own kernels (", lacking, ")");
  return absl::StrCat("attention by ", api->Describe(), lacking.empty() ? "" : ", but not ",
                      lacking);
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

std::string Format(const AttentionShape &s) {
  return absl::StrCat(s.gradient ? "the gradient of attention" : "attention", " of ", s.batch,
                      " x ", s.time, ", ", s.heads, " heads of ", s.columns, " columns");
}

static absl::Status At(const AttentionShape &shape, const absl::Status &status) {
  return status.ok()
             ? status
             : absl::Status(status.code(), absl::StrCat(Format(shape), ": ", status.message()));
}

Dnn::Key Dnn::KeyOf(const Attention &a) {
  const AttentionShape &s = a.shape;
  return {s.gradient,
          s.causal,
          {s.batch, s.time, s.heads, s.kv_heads, s.columns},
          {s.q, s.k, s.v, s.y, s.dy, s.dq, s.dk, s.dv},
          a.scratch_bytes};
}

/// Why the library is not asked for it: what it would compute wrongly, or says that it does not
/// compute in one order. By NVIDIA's own interface to it (cudnn-frontend 1.32).
static std::string FindObjection(const Attention &a, int version, int capability) {
  const AttentionShape &s = a.shape;
  constexpr int64_t kElements = 8; // in 16 bytes
  for (int64_t stride : {s.columns, s.q, s.k, s.v, s.y, s.dy, s.dq, s.dk, s.dv})
    if (stride % kElements != 0)
      return "rows are not of whole 16 bytes";
  for (void *address : {a.q, a.k, a.v, a.y, a.lse, a.dy, a.dq, a.dk, a.dv, a.delta, a.scratch})
    if (reinterpret_cast<uintptr_t>(address) % 16 != 0)
      return "operands are not aligned to 16 bytes";
  if (version == 91000 || version == 91001)
    return "9.10.0 and 9.10.1 are known to be wrong";
  constexpr int64_t kTile = 128;
  if (s.gradient && version <= 91500 && s.time % kTile != 0)
    return "up to 9.15.0 its time must be a multiple of 128";
  constexpr int kBlackwell = 100;
  if (s.gradient && version < 91800 && capability >= kBlackwell)
    return "before 9.18 no order of sums is promised on this GPU";
  return "";
}

absl::Status Dnn::Plan(const Attention &attention, int capability, Stream stream) {
  if (!looked)
    if (absl::Status status = Open(stream); !status.ok())
      return status;
  auto [at, fresh] = plans.try_emplace(KeyOf(attention));
  if (!fresh)
    return absl::OkStatus();
  Planned &planned = at->second;
  planned.first = attention;
  if (!api)
    return absl::OkStatus();
  absl::Status status;
  if (std::string why = FindObjection(attention, api->version, capability); !why.empty())
    status = absl::UnimplementedError(why);
  else
    status = PlanParts(attention, planned);
  planned.is_taken = status.ok();
  if (!status.ok())
    Decline(planned, status);
  return absl::OkStatus();
}

void Dnn::Decline(Planned &planned, const absl::Status &why) {
  planned.is_taken = false; // the plan stays: some of it may be running
  absl::StrAppend(&lacking, lacking.empty() ? "" : "; ", At(planned.first.shape, why).message());
}

absl::Status Dnn::PlanParts(const Attention &attention, Planned &planned) {
  const AttentionShape &whole = attention.shape;
  DnnTarget target;
  target.handle = handle;
  // The statistics of a part must lie beside each other: all heads, or one sequence.
  std::vector<Part> parts;
  for (int64_t n = whole.batch; n >= 1; --n)
    if (whole.batch % n == 0)
      parts.push_back({n, whole.kv_heads});
  for (int64_t heads = whole.kv_heads - 1; heads >= 1; --heads)
    if (whole.kv_heads % heads == 0)
      parts.push_back({1, heads});
  bool all_align = true;
  for (const Part &part : parts) {
    AttentionShape shape = whole;
    shape.batch = part.sequences;
    shape.kv_heads = part.kv_heads;
    shape.heads = whole.heads / whole.kv_heads * part.kv_heads;
    if (LeastWorkspace(shape) > attention.scratch_bytes)
      continue;
    const bool is_whole = shape.batch == whole.batch && shape.heads == whole.heads;
    if (!is_whole && !boa_cuda_attention_parts_align(shape.batch * shape.heads * shape.time)) {
      all_align = false;
      continue;
    }
    auto plan = PlanAttention(*api, target, shape);
    if (!plan.ok())
      return plan.status();
    if ((*plan)->workspace_bytes > attention.scratch_bytes)
      continue;
    planned.part = part;
    planned.plan = *std::move(plan);
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat("it takes more than the ", attention.scratch_bytes, " bytes that there are",
                   all_align ? "" : ", or parts that are not aligned to 16 bytes"));
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

absl::StatusOr<bool> Dnn::Takes(const Attention &attention) const {
  auto found = plans.find(KeyOf(attention));
  if (found == plans.end())
    return At(attention.shape,
              absl::InternalError("it was not planned before the first step, which is an error of "
                                  "the compiler; go on from the last commit"));
  return found->second.is_taken;
}

absl::Status Dnn::Enqueue(const Attention &attention) {
  auto found = plans.find(KeyOf(attention)); // `Takes` found it
  return At(attention.shape, Run(attention, found->second));
}

absl::Status Dnn::SetStream(Stream stream) {
  return handle ? api->Call(api->SetStream, handle, stream) : absl::OkStatus();
}

absl::Status Dnn::Run(const Attention &attention, const Planned &planned) {
  const AttentionShape &s = attention.shape;
  absl::Status status;
  for (int64_t n = 0; n < s.batch && status.ok(); n += planned.part.sequences)
    for (int64_t head = 0; head < s.kv_heads && status.ok(); head += planned.part.kv_heads)
      status = Execute(attention, planned, n, head);
  return status;
}

absl::Status Dnn::Execute(const Attention &a, const Planned &planned, int64_t sequence,
                          int64_t kv_head) {
  const AttentionShape &s = a.shape;
  const int64_t head = kv_head * (s.heads / s.kv_heads);
  std::vector<int64_t> ids;
  std::vector<void *> pointers;
  auto add = [&](AttentionTensor id, void *address) {
    ids.push_back(id);
    pointers.push_back(address);
  };
  auto add_rows = [&](AttentionTensor id, void *address, int64_t stride, int64_t from) {
    const int64_t elements = sequence * s.time * stride + from * s.columns;
    add(id, static_cast<char *>(address) + elements * 2);
  };
  auto add_statistics = [&](AttentionTensor id, void *address) {
    add(id, static_cast<float *>(address) + (sequence * s.heads + head) * s.time);
  };
  float scale = float(1 / std::sqrt(double(s.columns))), one = 1;
  // From this version on the library treats infinity as what is never seen.
  constexpr int kInfinite = 91000;
  float never = api->version < kInfinite ? std::numeric_limits<float>::lowest()
                                         : -std::numeric_limits<float>::infinity();
  add_rows(kTensorQ, a.q, s.q, head);
  add_rows(kTensorK, a.k, s.k, kv_head);
  add_rows(kTensorV, a.v, s.v, kv_head);
  add_rows(kTensorY, a.y, s.y, head);
  add_statistics(kTensorLse, a.lse);
  add(kTensorScale, &scale);
  if (s.causal)
    add(kTensorNever, &never);
  if (s.gradient) {
    add_rows(kTensorDy, a.dy, s.dy, head);
    add_rows(kTensorDq, a.dq, s.dq, head);
    add_rows(kTensorDk, a.dk, s.dk, kv_head);
    add_rows(kTensorDv, a.dv, s.dv, kv_head);
    add_statistics(kTensorDelta, a.delta);
    add(kTensorOne, &one);
  }
  DnnDescriptors all(*api);
  DnnDescriptor pack = all.Create(dnn_descriptor::kVariantPack);
  all.SetAll(pack, dnn_attribute::kPackIds, dnn_type::kInt64, int64_t(ids.size()), ids.data());
  all.SetAll(pack, dnn_attribute::kPackPointers, dnn_type::kPointer, int64_t(pointers.size()),
             pointers.data());
  all.Set(pack, dnn_attribute::kPackWorkspace, dnn_type::kPointer, a.scratch);
  all.Finalize(pack);
  if (!all.status.ok())
    return all.status;
  return api->Call(api->Execute, handle, planned.plan->plan, pack);
}

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

/// Moves the operands to `memory`, each with its own place, but that slices of one product stay
/// beside each other in its rows; returns the bytes that they take, which may be asked of no
/// memory.
static int64_t LayOutTrial(Attention &a, uintptr_t memory) {
  const AttentionShape &s = a.shape;
  int64_t bytes = 0;
  auto move = [&](void *&address, int64_t size) {
    constexpr int64_t kAlignment = 256;
    address = reinterpret_cast<void *>(memory + uintptr_t(bytes));
    bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
  };
  const int64_t rows = s.batch * s.time;
  struct Slice {
    void *&address;
    int64_t stride, heads;
  };
  auto move_slices = [&](std::initializer_list<Slice> slices) {
    uintptr_t first = 0, moved = 0; // the slice that the next may be beside
    int64_t stride = 0;
    for (const Slice &slice : slices) {
      const auto at = reinterpret_cast<uintptr_t>(slice.address);
      const int64_t beside = int64_t(at - first), width = slice.heads * s.columns;
      if (slice.stride == stride && beside > 0 && beside + width * 2 <= stride * 2) {
        slice.address = reinterpret_cast<void *>(moved + uintptr_t(beside));
        continue;
      }
      first = at;
      stride = slice.stride;
      move(slice.address, rows * stride * 2);
      moved = reinterpret_cast<uintptr_t>(slice.address);
    }
  };
  move_slices({{a.q, s.q, s.heads}, {a.k, s.k, s.kv_heads}, {a.v, s.v, s.kv_heads}});
  move(a.y, rows * s.y * 2);
  move(a.lse, s.heads * rows * 4);
  move(a.dy, rows * s.dy * 2);
  move_slices({{a.dq, s.dq, s.heads}, {a.dk, s.dk, s.kv_heads}, {a.dv, s.dv, s.kv_heads}});
  move(a.delta, s.gradient ? s.heads * rows * 4 : 0);
  move(a.scratch, a.scratch_bytes);
  return bytes;
}

int64_t Dnn::TrialBytes() const {
  int64_t most = 0;
  for (const auto &[key, planned] : plans) {
    Attention attention = planned.first;
    if (planned.is_taken)
      most = std::max(most, LayOutTrial(attention, 0));
  }
  return most;
}

bool Dnn::Try(void *memory) {
  bool all = true;
  for (auto &[key, planned] : plans) {
    if (!planned.is_taken)
      continue;
    Attention attention = planned.first;
    LayOutTrial(attention, reinterpret_cast<uintptr_t>(memory));
    if (absl::Status status = Run(attention, planned); !status.ok()) {
      Decline(planned, status);
      all = false;
    }
  }
  return all;
}

} // namespace boa::cuda
