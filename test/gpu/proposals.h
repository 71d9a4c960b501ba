//===- proposals.h - All that cuBLASLt proposes for a product ---*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GPU_PROPOSALS_H
#define BOA_TEST_GPU_PROPOSALS_H

#include "runtime/device/cuda/blas.h"
#include "test/gpu/session.h"

namespace boa::gputest {

/// The library, asked as the runtime asks it (runtime/device/cuda/blas.cpp), for more than one.
class Proposals {
public:
  static absl::StatusOr<std::unique_ptr<Proposals>> Open(int driver_version);
  ~Proposals();

  /// Milliseconds of each algorithm that it proposes for a product, in its order, but those that do
  /// not run: they are behind 0.
  absl::StatusOr<std::vector<double>> Measure(const Session &, const cuda::Product &, int most);

private:
  Proposals() = default;
  template <typename... P, typename... A>
  absl::Status Call(const cuda::Entry<cuda::BlasResult, P...> &entry, A... arguments) const;

#define BOA_FUNCTION(name, symbol, result, arguments) cuda::EntryOf<result arguments>::type name;
  using BlasResult = cuda::BlasResult;
  using BlasHandle = cuda::BlasHandle;
  using MatmulDesc = cuda::MatmulDesc;
  using MatrixLayout = cuda::MatrixLayout;
  using MatmulPreference = cuda::MatmulPreference;
  using MatmulHeuristic = cuda::MatmulHeuristic;
  using MatmulAlgo = cuda::MatmulAlgo;
  using Stream = cuda::Stream;
  BOA_CUDA_BLAS_FUNCTIONS(BOA_FUNCTION)
#undef BOA_FUNCTION
  cuda::Library library;
  BlasHandle handle = nullptr;
};

} // namespace boa::gputest

#endif // BOA_TEST_GPU_PROPOSALS_H
