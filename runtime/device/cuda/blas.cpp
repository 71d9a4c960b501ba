//===- blas.cpp - Matrix products of cuBLASLt -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library's matrices are column-major. What is row-major is there the transpose, so it
// is asked for c^T = op(b)^T op(a)^T: b comes first, and a bias of one value a column is one
// a row.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/blas.h"

#include "runtime/abi/cuda_calls.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace boa::cuda {

std::vector<std::string> BlasNames(int driver_version) {
  std::vector<std::string> names = {"libcublasLt.so.13", "libcublasLt.so.12"};
  if (driver_version < 13000)
    std::swap(names[0], names[1]);
  return names;
}

/// Variables by which the library multiplies f32 in fewer bits than it is asked for.
static absl::Status RefuseOtherArithmetic() {
  for (const char *variable : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION"}) {
    const char *const value = std::getenv(variable);
    if (value && *value && std::strcmp(value, "0") != 0)
      return absl::FailedPreconditionError(
          absl::StrCat(variable, "=", value,
                       " lets cuBLASLt multiply f32 in other arithmetic than f32: unset it"));
  }
  return absl::OkStatus();
}

bool Blas::IsMissing() {
  const absl::StatusOr<std::unique_ptr<Driver>> driver = Driver::Open();
  return driver.ok() &&
         absl::IsNotFound(
             Library::Open("BOA_CUDA_BLAS", BlasNames((*driver)->version()), "").status());
}

absl::StatusOr<std::unique_ptr<Blas>> Blas::Open(int driver_version) {
  if (absl::Status status = RefuseOtherArithmetic(); !status.ok())
    return status;
  std::unique_ptr<Blas> blas;
  absl::Status status = Library::Open("BOA_CUDA_BLAS", BlasNames(driver_version),
                                      "products on a GPU are cuBLASLt's, which this machine does "
                                      "not have: install CUDA's libcublas "
                                      "(12, or 13 for a driver of CUDA 13), or set "
                                      "machine.device.gemm=own",
                                      [&](Library library) {
                                        absl::StatusOr<std::unique_ptr<Blas>> begun =
                                            Use(std::move(library));
                                        if (begun.ok())
                                          blas = *std::move(begun);
                                        return begun.status();
                                      });
  if (!status.ok())
    return status;
  return blas;
}

absl::StatusOr<std::unique_ptr<Blas>> Blas::Use(Library library) {
  std::unique_ptr<Blas> blas(new Blas(std::move(library)));
  const char *lacking = nullptr;
#define BOA_FIND(name, exported, result, arguments)                                                \
  blas->library.Bind(blas->name, #exported, lacking);
  BOA_CUDA_BLAS_FUNCTIONS(BOA_FIND)
#undef BOA_FIND
  if (lacking)
    return absl::FailedPreconditionError(
        absl::StrCat(blas->library.path(), " has no ", lacking,
                     ": install CUDA's libcublas in version 12 or 13"));
  if (absl::Status status = blas->Call(blas->Create, &blas->handle); !status.ok())
    return absl::Status(status.code(), absl::StrCat(blas->library.path(), ": ", status.message()));
  return blas;
}

Blas::~Blas() {
  for (auto &[key, planned] : products) {
    if (planned.desc)
      MatmulDescDestroy.address(planned.desc);
    for (MatrixLayout layout : {planned.a, planned.b, planned.c})
      if (layout)
        MatrixLayoutDestroy.address(layout);
  }
  if (handle)
    Destroy.address(handle);
}

/// What to do about an error, and of which kind it is.
static std::pair<absl::StatusCode, const char *> BlasAdvice(BlasResult result) {
  using Code = absl::StatusCode;
  switch (result) {
  case kBlasNotInitialized:
    return {Code::kFailedPrecondition, "libcublas and the driver do not go together: install the "
                                       "one of the CUDA version that nvidia-smi shows"};
  case kBlasAllocFailed:
    return {Code::kResourceExhausted, "there is too little device memory beside the program's: end "
                                      "what else uses the GPU, or compile the program with less in "
                                      "`device cuda { memory = ... }`"};
  case kBlasInvalidValue:
    return {Code::kInternal, "which is an error of the compiler"};
  case kBlasArchMismatch:
  case kBlasNotSupported:
    return {Code::kUnimplemented, "install a newer libcublas, which may know this GPU"};
  default:
    return {Code::kInternal, "the system's log (dmesg) may say more; go on from the last commit"};
  }
}

absl::Status Blas::Error(BlasResult result, const char *symbol) const {
  const char *name = GetStatusName.address(result), *text = GetStatusString.address(result);
  auto [code, advice] = BlasAdvice(result);
  return absl::Status(code, absl::StrCat(symbol, ": ", name ? name : "error", " (",
                                         text ? text : absl::StrCat(result), "): ", advice));
}

std::string Format(const Product &p) {
  auto type = [](int32_t type) {
    return type == BOA_CUDA_F32 ? "f32" : type == BOA_CUDA_BF16 ? "bf16" : "tf32";
  };
  return absl::StrCat("product of ", p.m, " x ", p.k, " and ", p.k, " x ", p.n, ", ",
                      type(p.type_ab), " to ", type(p.type_c));
}

static absl::Status At(const Product &product, const absl::Status &status) {
  return status.ok()
             ? status
             : absl::Status(status.code(), absl::StrCat(Format(product), ": ", status.message()));
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// The library takes an addend in any case; where nothing is added, it does not read it.
static const void *Addend(const Product &p) { return p.addend ? p.addend : p.c; }

/// By the largest power of two, up to what the library asks after.
static uint32_t Alignment(const void *address) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(address) | 256;
  return uint32_t(bits & -bits);
}

Blas::Key Blas::KeyOf(const Product &p) {
  return {p.transpose_a,
          p.transpose_b,
          p.addend != nullptr,
          p.bias != nullptr,
          p.m,
          p.n,
          p.k,
          p.type_ab,
          p.type_c,
          p.lda,
          p.ldb,
          p.ldc,
          {Alignment(p.a), Alignment(p.b), Alignment(p.c), Alignment(p.bias), Alignment(p.addend)},
          p.scratch_bytes};
}

absl::Status Blas::Plan(const Product &product) {
  auto [at, fresh] = products.try_emplace(KeyOf(product));
  if (!fresh)
    return absl::OkStatus();
  at->second.first = product;
  absl::Status status = Describe(product, at->second);
  if (!status.ok())
    return At(product, status);
  absl::StatusOr<std::vector<MatmulHeuristic>> proposals = Propose(product, at->second, 1);
  if (proposals.ok())
    at->second.chosen = proposals->front();
  return At(product, proposals.status());
}

absl::Status Blas::Describe(const Product &p, Planned &planned) {
  const int type_ab = p.type_ab == BOA_CUDA_BF16 ? kReal16BF : kReal32F;
  const int type_c = p.type_c == BOA_CUDA_BF16 ? kReal16BF : kReal32F;
  const int compute = p.type_ab == BOA_CUDA_TF32 ? kComputeTf32 : kCompute32F;
  const int32_t first = p.transpose_b ? kOpT : kOpN, second = p.transpose_a ? kOpT : kOpN;
  const uint32_t epilogue = p.bias ? kEpilogueBias : kEpilogueDefault;
  absl::Status status = Call(MatmulDescCreate, &planned.desc, compute, kReal32F);
  auto set = [&](int attribute, const auto &value) {
    if (status.ok())
      status = Call(MatmulDescSetAttribute, planned.desc, attribute, &value, sizeof(value));
  };
  set(kDescTransA, first);
  set(kDescTransB, second);
  set(kDescEpilogue, epilogue);
  if (p.bias) {
    set(kDescBiasType, type_c);
    set(kDescBiasPointer, p.bias);
  }
  auto layout = [&](MatrixLayout &out, int type, int64_t rows, int64_t columns, int64_t stride) {
    // Of rows as they lie in memory, which are the library's columns.
    if (status.ok())
      status = Call(MatrixLayoutCreate, &out, type, columns, rows, stride);
  };
  layout(planned.a, type_ab, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda);
  layout(planned.b, type_ab, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.ldb);
  layout(planned.c, type_c, p.m, p.n, p.ldc);
  return status;
}

absl::StatusOr<std::vector<MatmulHeuristic>> Blas::Propose(const Product &p, const Planned &planned,
                                                           int most) {
  MatmulPreference preference = nullptr;
  absl::Status status = Call(MatmulPreferenceCreate, &preference);
  auto set = [&](int attribute, const auto &value) {
    if (status.ok())
      status = Call(MatmulPreferenceSetAttribute, preference, attribute, &value, sizeof(value));
  };
  set(kPrefWorkspaceBytes, uint64_t(p.scratch_bytes));
  set(kPrefReductions, kReductionInComputeType);
  set(kPrefAlignmentA, Alignment(p.b));
  set(kPrefAlignmentB, Alignment(p.a));
  set(kPrefAlignmentC, Alignment(Addend(p)));
  set(kPrefAlignmentD, Alignment(p.c));
  int found = 0;
  std::vector<MatmulHeuristic> proposals(most);
  if (status.ok())
    status = Call(MatmulAlgoGetHeuristic, handle, planned.desc, planned.b, planned.a, planned.c,
                  planned.c, preference, most, proposals.data(), &found);
  if (preference)
    MatmulPreferenceDestroy.address(preference);
  if (!status.ok())
    return status;
  if (found == 0)
    return absl::UnimplementedError(
        absl::StrCat(MatmulAlgoGetHeuristic.symbol,
                     " knows no algorithm for it on this GPU: install a newer libcublas"));
  if (proposals[0].state != 0)
    return Error(proposals[0].state, MatmulAlgoGetHeuristic.symbol);
  proposals.resize(found);
  return proposals;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Where a trial has what it reads, all of it in one place, what it writes, and scratch.
namespace {
struct Trial {
  int64_t result, scratch, bytes;
};
} // namespace

static Trial LayOutTrial(const Product &p) {
  auto bytes = [](int64_t rows, int64_t columns, int64_t stride, int32_t type) {
    constexpr int64_t kAlignment = 256;
    const int64_t all = ((rows - 1) * stride + columns) * (type == BOA_CUDA_BF16 ? 2 : 4);
    return (all + kAlignment - 1) / kAlignment * kAlignment;
  };
  const int64_t a =
      p.transpose_a ? bytes(p.k, p.m, p.lda, p.type_ab) : bytes(p.m, p.k, p.lda, p.type_ab);
  const int64_t b =
      p.transpose_b ? bytes(p.n, p.k, p.ldb, p.type_ab) : bytes(p.k, p.n, p.ldb, p.type_ab);
  Trial trial;
  const int64_t result = bytes(p.m, p.n, p.ldc, p.type_c);
  trial.result = std::max({a, b, bytes(1, p.n, p.n, p.type_c), p.addend ? result : 0});
  trial.scratch = trial.result + result;
  trial.bytes = trial.scratch + p.scratch_bytes;
  return trial;
}

int64_t Blas::TrialBytes() const {
  int64_t most = 0;
  for (const auto &[key, planned] : products)
    most = std::max(most, LayOutTrial(planned.first).bytes);
  return most;
}

Product Blas::OnTrial(const Product &planned, void *memory) {
  char *const begin = static_cast<char *>(memory);
  Product product = planned;
  const Trial trial = LayOutTrial(product);
  product.a = product.b = begin;
  product.bias = product.bias ? begin : nullptr;
  product.addend = product.addend ? begin : nullptr;
  product.c = begin + trial.result;
  product.scratch = product.scratch ? begin + trial.scratch : nullptr;
  return product;
}

absl::Status Blas::Try(void *memory, Stream stream) {
  for (const auto &[key, planned] : products) {
    const Product product = OnTrial(planned.first, memory);
    if (absl::Status status = Run(product, planned, stream); !status.ok())
      return At(product, status);
  }
  return absl::OkStatus();
}

absl::Status Blas::Enqueue(const Product &product, Stream stream) {
  auto found = products.find(KeyOf(product));
  if (found == products.end())
    return At(product, absl::InternalError("it was not planned before the first step, which is an "
                                           "error of the compiler; go on from the last commit"));
  return At(product, Run(product, found->second, stream));
}

absl::Status Blas::Run(const Product &p, const Planned &planned, Stream stream) const {
  // The pointer is the description's; all else in it is the same for all such products.
  if (p.bias)
    if (absl::Status status =
            Call(MatmulDescSetAttribute, planned.desc, kDescBiasPointer, &p.bias, sizeof(p.bias));
        !status.ok())
      return status;
  const float one = 1, beta = p.addend ? 1 : 0;
  return Call(Matmul, handle, planned.desc, &one, p.b, planned.b, p.a, planned.a, &beta, Addend(p),
              planned.c, p.c, planned.c, &planned.chosen.algo, p.scratch,
              planned.chosen.workspace_bytes, stream);
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// How long all products are measured, and each algorithm of one beside its first run.
constexpr std::chrono::seconds kMeasured{10};
constexpr float kEachMs = 2;
constexpr int kMostRuns = 10;
/// A later proposal is chosen where it takes less than this share of the time. A smaller
/// difference may be noise.
constexpr float kFaster = 0.98f;

absl::StatusOr<bool> Blas::WantsMeasuring() {
  const char *const value = std::getenv("BOA_CUDA_PRODUCTS");
  if (value && std::strcmp(value, "measured") != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("BOA_CUDA_PRODUCTS=", value, ": it is `measured`, or not set"));
  return value != nullptr;
}

absl::StatusOr<float> Blas::Time(const Driver &driver, const Product &product,
                                 const Planned &planned, Stream stream,
                                 const Event (&events)[2]) const {
  float each = 0;
  // The first run loads its kernel.
  for (int runs = 1, round = 0; round < 2; ++round) {
    absl::Status status = driver.Call("measuring", driver.EventRecord, events[0], stream);
    for (int i = 0; i < runs && status.ok(); ++i)
      status = Run(product, planned, stream);
    if (status.ok())
      status = driver.Call("measuring", driver.EventRecord, events[1], stream);
    if (status.ok())
      status = driver.Call("measuring", driver.EventSynchronize, events[1]);
    if (status.ok())
      status = driver.Call("measuring", driver.EventElapsedTime, &each, events[0], events[1]);
    if (!status.ok())
      return status;
    each /= float(runs);
    runs = std::clamp(int(kEachMs / std::max(each, 1e-3f)), 1, kMostRuns);
  }
  return each;
}

absl::Status Blas::ChooseFastest(const Driver &driver, Planned &planned, void *memory,
                                 Stream stream, const Event (&events)[2]) {
  // For operands that are aligned as the program's are, not as those of a trial.
  const absl::StatusOr<std::vector<MatmulHeuristic>> proposals =
      Propose(planned.first, planned, kCandidates);
  if (!proposals.ok())
    return proposals.status();
  const Product product = OnTrial(planned.first, memory);
  Planned candidate = planned;
  float least = 0;
  for (int i = 0; i < int(proposals->size()); ++i) {
    candidate.chosen = (*proposals)[i];
    if (candidate.chosen.state != 0)
      continue;
    const absl::StatusOr<float> each = Time(driver, product, candidate, stream, events);
    // A later proposal that fails is not chosen.
    if (!each.ok() && i == 0)
      return each.status();
    if (!each.ok() || (i > 0 && *each >= least * kFaster))
      continue;
    least = *each;
    planned.chosen = candidate.chosen;
    planned.choice = i;
  }
  return absl::OkStatus();
}

absl::Status Blas::Measure(const Driver &driver, void *memory, Stream stream) {
  Event events[2] = {};
  absl::Status status;
  for (Event &event : events)
    if (status.ok())
      status = driver.Call("making an event", driver.EventCreate, &event, 0u);
  const auto end = std::chrono::steady_clock::now() + kMeasured;
  for (auto &[key, planned] : products)
    if (status.ok() && std::chrono::steady_clock::now() < end)
      status = At(planned.first, ChooseFastest(driver, planned, memory, stream, events));
  measured = true;
  // Nothing uses them when they go.
  absl::Status over = driver.Call("waiting for a trial", driver.StreamSynchronize, stream);
  for (Event event : events)
    if (event)
      if (absl::Status destroyed = driver.Call("destroying an event", driver.EventDestroy, event);
          status.ok())
        status = std::move(destroyed);
  return status.ok() ? over : status;
}

uint64_t Blas::Fingerprint() const {
  uint64_t hash = 1469598103934665603u; // FNV-1a
  auto add = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  for (const auto &[key, planned] : products)
    std::apply(
        [&](const auto &...part) {
          auto one = [&](const auto &value) {
            if constexpr (std::is_integral_v<std::decay_t<decltype(value)>>)
              add(uint64_t(value));
            else
              for (uint32_t element : value)
                add(element);
          };
          (one(part), ...);
        },
        key);
  return hash;
}

std::string Blas::Choices() const {
  if (!measured)
    return "";
  std::string text;
  for (const auto &[key, planned] : products)
    text += char('0' + planned.choice);
  return absl::StrFormat("%s of products %016x", text, Fingerprint());
}

absl::StatusOr<bool> Blas::TakeChoices(const std::string &choices) {
  const std::string ending = absl::StrFormat(" of products %016x", Fingerprint());
  if (choices.size() != products.size() + ending.size() || !absl::EndsWith(choices, ending))
    return false;
  std::vector<MatmulHeuristic> chosen;
  for (const auto &[key, planned] : products) {
    const size_t choice = size_t(choices[chosen.size()] - '0');
    auto proposals = Propose(planned.first, planned, kCandidates);
    if (!proposals.ok())
      return At(planned.first, proposals.status());
    if (choice >= proposals->size() || (*proposals)[choice].state != 0)
      return false;
    chosen.push_back((*proposals)[choice]);
  }
  size_t i = 0;
  for (auto &[key, planned] : products) {
    planned.choice = choices[i] - '0';
    planned.chosen = chosen[i++];
  }
  measured = true;
  return true;
}

} // namespace boa::cuda
