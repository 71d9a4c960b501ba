//===- proposals.cpp ------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/gpu/proposals.h"

#include "runtime/abi/cuda_calls.h"
#include "test/gpu/timing.h"

#include "absl/strings/str_cat.h"

namespace boa::gputest {

using namespace boa::cuda;

template <typename... P, typename... A>
absl::Status Proposals::Call(const Entry<BlasResult, P...> &entry, A... arguments) const {
  const BlasResult result = entry.address(arguments...);
  return result == 0
             ? absl::OkStatus()
             : absl::InternalError(absl::StrCat(entry.symbol, ": ", GetStatusName.address(result)));
}

absl::StatusOr<std::unique_ptr<Proposals>> Proposals::Open(int driver_version) {
  std::unique_ptr<Proposals> made;
  auto use = [&](Library library) -> absl::Status {
    std::unique_ptr<Proposals> one(new Proposals);
    const char *lacking = nullptr;
#define BOA_FIND(name, exported, result, arguments) library.Bind(one->name, #exported, lacking);
    BOA_CUDA_BLAS_FUNCTIONS(BOA_FIND)
#undef BOA_FIND
    if (lacking)
      return absl::NotFoundError(absl::StrCat(library.path(), " has no ", lacking));
    one->library = std::move(library);
    absl::Status status = one->Call(one->Create, &one->handle);
    if (status.ok())
      made = std::move(one);
    return status;
  };
  if (absl::Status status =
          Library::Open("BOA_CUDA_BLAS", BlasNames(driver_version), "there is no cuBLASLt", use);
      !status.ok())
    return status;
  return made;
}

Proposals::~Proposals() {
  if (handle)
    Destroy.address(handle);
}

absl::StatusOr<std::vector<double>> Proposals::Measure(const Session &session, const Product &p,
                                                       int most) {
  MatmulDesc desc = nullptr;
  MatrixLayout a = nullptr, b = nullptr, c = nullptr;
  MatmulPreference preference = nullptr;
  // Column-major is the transpose of row-major: b comes first.
  const int type_ab = p.type_ab == BOA_CUDA_BF16 ? kReal16BF : kReal32F;
  const int type_c = p.type_c == BOA_CUDA_BF16 ? kReal16BF : kReal32F;
  const int compute = p.type_ab == BOA_CUDA_TF32 ? kComputeTf32 : kCompute32F;
  const int32_t first = p.transpose_b ? kOpT : kOpN, second = p.transpose_a ? kOpT : kOpN;
  const uint32_t epilogue = p.bias ? kEpilogueBias : kEpilogueDefault;
  absl::Status status = Call(MatmulDescCreate, &desc, compute, kReal32F);
  auto describe = [&](int attribute, const auto &value) {
    if (status.ok())
      status = Call(MatmulDescSetAttribute, desc, attribute, &value, sizeof(value));
  };
  describe(kDescTransA, first);
  describe(kDescTransB, second);
  describe(kDescEpilogue, epilogue);
  if (p.bias) {
    describe(kDescBiasType, type_c);
    describe(kDescBiasPointer, p.bias);
  }
  auto lay_out = [&](MatrixLayout &layout, int type, int64_t rows, int64_t columns,
                     int64_t stride) {
    if (status.ok())
      status = Call(MatrixLayoutCreate, &layout, type, uint64_t(columns), uint64_t(rows), stride);
  };
  lay_out(a, type_ab, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda);
  lay_out(b, type_ab, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.ldb);
  lay_out(c, type_c, p.m, p.n, p.ldc);
  if (status.ok())
    status = Call(MatmulPreferenceCreate, &preference);
  auto prefer = [&](int attribute, const auto &value) {
    if (status.ok())
      status = Call(MatmulPreferenceSetAttribute, preference, attribute, &value, sizeof(value));
  };
  auto alignment = [](const void *address) {
    const uintptr_t bits = reinterpret_cast<uintptr_t>(address) | 256;
    return uint32_t(bits & -bits);
  };
  prefer(kPrefWorkspaceBytes, uint64_t(p.scratch_bytes));
  prefer(kPrefReductions, kReductionInComputeType);
  prefer(kPrefAlignmentA, alignment(p.b));
  prefer(kPrefAlignmentB, alignment(p.a));
  const void *const added = p.addend ? p.addend : p.c;
  prefer(kPrefAlignmentC, alignment(added));
  prefer(kPrefAlignmentD, alignment(p.c));
  std::vector<MatmulHeuristic> found(static_cast<size_t>(most));
  int count = 0;
  if (status.ok())
    status = Call(MatmulAlgoGetHeuristic, handle, desc, b, a, c, c, preference, most, found.data(),
                  &count);
  std::vector<double> times;
  const float one = 1, beta = p.addend ? 1 : 0;
  for (int i = 0; i < count && status.ok(); ++i) {
    const MatmulHeuristic &algorithm = found[size_t(i)];
    const auto time = algorithm.state != 0 ? absl::StatusOr<double>(0.0) : MeasureMs(session, [&] {
      return Call(Matmul, handle, desc, &one, p.b, b, p.a, a, &beta, added, c, p.c, c,
                  &algorithm.algo, p.scratch, algorithm.workspace_bytes, session.stream());
    });
    times.push_back(time.ok() ? *time : 0);
  }
  session.Wait().IgnoreError(); // nothing uses them when they go
  if (desc)
    MatmulDescDestroy.address(desc);
  for (MatrixLayout layout : {a, b, c})
    if (layout)
      MatrixLayoutDestroy.address(layout);
  if (preference)
    MatmulPreferenceDestroy.address(preference);
  if (!status.ok())
    return status;
  return times;
}

} // namespace boa::gputest
