//===- blas.h - Matrix products of cuBLASLt ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of libcublasLt, opened when a program first multiplies, and products through it. The
// library is asked once for the algorithm of each distinct product, and the answer is kept. Sums
// are in f32 throughout: no TF32, and no partial sums in narrower types.
//
// The algorithm decides the last bits of sums. By default it is the library's first proposal,
// which is always the same for a GPU and a version of the library. With
// BOA_CUDA_PRODUCTS=measured it is the fastest of the first kCandidates, as measured before the
// first step. That may differ from run to run. So a commit records the choice in its
// environment, and a trainer that resumes repeats it.
//
// BOA_CUDA_BLAS names others than libcublasLt.so.13 and .12, separated by colons, for tests.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_BLAS_H
#define BOA_RUNTIME_DEVICE_CUDA_BLAS_H

#include "runtime/device/cuda/driver.h"

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace boa::cuda {

using BlasResult = int; // cublasStatus_t
// Opaque types of the library. It has no names for them that could be declared here.
using BlasHandle = struct BlasContext *;
using MatmulDesc = struct MatmulDescData *;
using MatrixLayout = struct MatrixLayoutData *;
using MatmulPreference = struct MatmulPreferenceData *;

// cublasStatus_t
constexpr BlasResult kBlasNotInitialized = 1, kBlasAllocFailed = 3, kBlasInvalidValue = 7,
                     kBlasArchMismatch = 8, kBlasNotSupported = 15;
// cublasComputeType_t, cudaDataType_t
constexpr int kCompute32F = 68, kComputeTf32 = 77, kReal32F = 0, kReal16BF = 14;
// cublasLtMatmulDescAttributes_t
constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8,
              kDescBiasType = 26;
// cublasOperation_t, cublasLtEpilogue_t
constexpr int32_t kOpN = 0, kOpT = 1;
constexpr uint32_t kEpilogueDefault = 1, kEpilogueBias = 4;
// cublasLtMatmulPreferenceAttributes_t, cublasLtReductionScheme_t
constexpr int kPrefWorkspaceBytes = 1, kPrefReductions = 3, kPrefAlignmentA = 5,
              kPrefAlignmentB = 6, kPrefAlignmentC = 7, kPrefAlignmentD = 8;
constexpr uint32_t kReductionInComputeType = 2;

struct MatmulAlgo {
  uint64_t data[8];
};
struct MatmulHeuristic {
  MatmulAlgo algo;
  size_t workspace_bytes;
  BlasResult state;
  float waves;
  int reserved[4];
};

/// F(name, symbol, result, arguments).
#define BOA_CUDA_BLAS_FUNCTIONS(F)                                                                 \
  F(Create, cublasLtCreate, BlasResult, (BlasHandle *))                                            \
  F(GetVersion, cublasLtGetVersion, size_t, ())                                                    \
  F(Destroy, cublasLtDestroy, BlasResult, (BlasHandle))                                            \
  F(GetStatusName, cublasLtGetStatusName, const char *, (BlasResult))                              \
  F(GetStatusString, cublasLtGetStatusString, const char *, (BlasResult))                          \
  F(MatmulDescCreate, cublasLtMatmulDescCreate, BlasResult,                                        \
    (MatmulDesc *, int compute_type, int scale_type))                                              \
  F(MatmulDescDestroy, cublasLtMatmulDescDestroy, BlasResult, (MatmulDesc))                        \
  F(MatmulDescSetAttribute, cublasLtMatmulDescSetAttribute, BlasResult,                            \
    (MatmulDesc, int attribute, const void *, size_t bytes))                                       \
  F(MatrixLayoutCreate, cublasLtMatrixLayoutCreate, BlasResult,                                    \
    (MatrixLayout *, int type, uint64_t rows, uint64_t columns, int64_t leading))                  \
  F(MatrixLayoutDestroy, cublasLtMatrixLayoutDestroy, BlasResult, (MatrixLayout))                  \
  F(MatmulPreferenceCreate, cublasLtMatmulPreferenceCreate, BlasResult, (MatmulPreference *))      \
  F(MatmulPreferenceDestroy, cublasLtMatmulPreferenceDestroy, BlasResult, (MatmulPreference))      \
  F(MatmulPreferenceSetAttribute, cublasLtMatmulPreferenceSetAttribute, BlasResult,                \
    (MatmulPreference, int attribute, const void *, size_t bytes))                                 \
  F(MatmulAlgoGetHeuristic, cublasLtMatmulAlgoGetHeuristic, BlasResult,                            \
    (BlasHandle, MatmulDesc, MatrixLayout a, MatrixLayout b, MatrixLayout c, MatrixLayout d,       \
     MatmulPreference, int most, MatmulHeuristic *, int *found))                                   \
  F(Matmul, cublasLtMatmul, BlasResult,                                                            \
    (BlasHandle, MatmulDesc, const void *alpha, const void *a, MatrixLayout, const void *b,        \
     MatrixLayout, const void *beta, const void *c, MatrixLayout, void *d, MatrixLayout,           \
     const MatmulAlgo *, void *workspace, size_t workspace_bytes, Stream))

/// c = op(a) op(b) + bias + addend; row-major, strides of rows in elements.
struct Product {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  int32_t type_ab, type_c;           // BOA_CUDA_F32 and so on
  const void *a, *b, *bias, *addend; // the last two, or null; the last may be c
  void *c, *scratch;                 // of scratch_bytes, or null
  int64_t lda, ldb, ldc;
  int64_t scratch_bytes;
};

/// In words, for messages.
std::string Format(const Product &);

/// The possible names of the library, in the order to try them. The name for the driver's version
/// of CUDA is first, since a library of a later version does not start on an older driver.
std::vector<std::string> BlasNames(int driver_version);

class Blas {
public:
  /// Needs the context current, as do all functions below.
  static absl::StatusOr<std::unique_ptr<Blas>> Open(int driver_version);
  /// Whether this machine has a GPU's driver, but not the library.
  static bool IsMissing();
  ~Blas();

  size_t version() const { return GetVersion.address(); } // 130101: 13.1.1

  /// Asks for an algorithm, unless one is known.
  absl::Status Plan(const Product &);
  /// The device memory for a trial of the product that needs the most.
  int64_t TrialBytes() const;
  /// Enqueues each planned product once, on the contents of that memory. The library puts a
  /// kernel on the GPU when it first runs, and may then take device memory for it.
  absl::Status Try(void *memory, Stream);

  /// How many algorithms of a product are measured, at most.
  static constexpr int kCandidates = 8;
  /// Whether they are to be: BOA_CUDA_PRODUCTS=measured.
  static absl::StatusOr<bool> WantsMeasuring();
  /// Measures the candidates of each planned product on the contents of that memory, chooses the
  /// fastest, and waits. A product that time does not allow for keeps its first. Before Try.
  absl::Status Measure(const Driver &, void *memory, Stream);
  /// The choices and a fingerprint of the products; empty where each choice is the first.
  std::string Choices() const;
  /// Repeats the choices. False: they belong to other products, and nothing is changed.
  absl::StatusOr<bool> TakeChoices(const std::string &choices);
  /// Enqueues a product that was planned.
  absl::Status Enqueue(const Product &, Stream);

private:
  /// The properties that decide the algorithm: operations, sizes, types, strides, alignment of
  /// addresses, scratch.
  using Key = std::tuple<bool, bool, bool, bool, int64_t, int64_t, int64_t, int32_t, int32_t,
                         int64_t, int64_t, int64_t, std::array<uint32_t, 5>, int64_t>;
  /// A product as the library knows it, and its algorithm.
  struct Planned {
    Product first; // that was planned
    MatmulDesc desc = nullptr;
    MatrixLayout a = nullptr, b = nullptr, c = nullptr;
    MatmulHeuristic chosen = {};
    int choice = 0; // among what the library proposes
  };
#define BOA_FUNCTION(name, symbol, result, arguments) EntryOf<result arguments>::type name;
  BOA_CUDA_BLAS_FUNCTIONS(BOA_FUNCTION)
#undef BOA_FUNCTION

  static absl::StatusOr<std::unique_ptr<Blas>> Use(Library);
  explicit Blas(Library library) : library(std::move(library)) {}
  static Key KeyOf(const Product &);
  absl::Status Describe(const Product &, Planned &);
  /// The library's proposals in its order: at least one.
  absl::StatusOr<std::vector<MatmulHeuristic>> Propose(const Product &, const Planned &, int most);
  /// A product that was planned, on memory for a trial.
  static Product OnTrial(const Product &, void *memory);
  /// Milliseconds of one run.
  absl::StatusOr<float> Time(const Driver &, const Product &, const Planned &, Stream,
                             const Event (&)[2]) const;
  absl::Status ChooseFastest(const Driver &, Planned &, void *memory, Stream, const Event (&)[2]);
  /// A hash of all planned products, the same in each process.
  uint64_t Fingerprint() const;
  absl::Status Run(const Product &, const Planned &, Stream) const;
  template <typename... P, typename... A>
  absl::Status Call(const Entry<BlasResult, P...> &entry, A... arguments) const {
    const BlasResult result = entry.address(arguments...);
    return result == 0 ? absl::OkStatus() : Error(result, entry.symbol);
  }
  absl::Status Error(BlasResult, const char *symbol) const;

  Library library;
  BlasHandle handle = nullptr;
  std::map<Key, Planned> products;
  bool measured = false; // or as chosen then
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_BLAS_H
