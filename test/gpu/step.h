//===- step.h - One step of a packed program, call by call ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a compiled program asks for in a step: its entry point is called with a context that takes
// down which kernels run on which buffers, and each kernel with a queue that takes down what it
// asks of the GPU. So products, attention and launches are measured as the compiler laid them
// out, one by one, without an engine and without a state.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GPU_STEP_H
#define BOA_TEST_GPU_STEP_H

#include "runtime/abi/program.h"
#include "runtime/device/cuda/tables.h"
#include "test/gpu/session.h"

#include <map>
#include <variant>

namespace boa::gputest {

/// Some chunks of an entry of a storage, as a kernel takes them.
struct Piece {
  int32_t storage = 0;
  int64_t entry = 0;
  int32_t first = 0;
};

struct KernelRun {
  int32_t kernel = 0;
  std::vector<Piece> pieces; // one for each of its buffers
};

/// A program, as `boa compile` put it behind a trainer.
class PackedProgram {
public:
  static absl::StatusOr<std::unique_ptr<PackedProgram>> Load(const std::string &file);

  Program program;
  const boa_kernel *table = nullptr;
  const boa_optimizer *optimizer = nullptr; // if it trains
  const boa_device_image *image = nullptr;
  const int64_t *function_bytes = nullptr; // of the image: what arguments have in all; may be null
  std::vector<KernelRun> runs;             // of the first step, in order
};

/// What a kernel asks of the GPU.
using Call = std::variant<cuda::LaunchCall, cuda::Product, cuda::Attention>;

/// A program's step on the GPU: everything that its kernels take is in device memory, weights as
/// they are initialised, tokens at random, targets all counted.
class Step {
public:
  static absl::StatusOr<std::unique_ptr<Step>> Open(const Session &, const std::string &file);

  const Session &session;
  std::unique_ptr<PackedProgram> packed;

  const Kernel &KernelOf(const KernelRun &run) const { return packed->program.kernels[run.kernel]; }
  /// What the run's kernel asks for. Of attention that it offers, from the first on: whether a
  /// library is said to do it, as `library` says; where it is null, whether one really does.
  std::vector<Call> Record(const KernelRun &, const std::vector<bool> *library = nullptr);
  /// All that comes before a call is enqueued for the first time. An error: it cannot be. As in a
  /// training, attention that a library planned, but fails to run, is the program's own from then
  /// on.
  absl::Status Prepare(const Call &);
  absl::Status Enqueue(const Call &);
  /// In words.
  std::string Format(const Call &) const;
  /// Floating-point operations; 0 of a launch.
  static double Operations(const Call &);
  /// What a launch's arguments have in all; 0 of others, and where that is not known.
  double Bytes(const Call &) const;
  /// Null: the library is not there.
  cuda::Blas *blas() { return queue.blas.get(); }
  boa_queue queue; // what calls are enqueued on

private:
  explicit Step(const Session &session) : session(session) {}
  absl::Status Fill();
  absl::Status OpenBlas();
  absl::Status TryAttention();
  char *Address(const Piece &) const;

  std::unique_ptr<cuda::Gpu> gpu;                                              // with the image
  std::map<std::pair<int32_t, int64_t>, std::unique_ptr<DeviceMemory>> memory; // entries
  std::unique_ptr<cuda::GpuTables> tables;                                     // with the GPU
  std::unique_ptr<DeviceMemory> workspace;
  absl::Status no_blas; // why not
};

} // namespace boa::gputest

#endif // BOA_TEST_GPU_STEP_H
