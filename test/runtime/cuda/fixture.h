//===- fixture.h - A small program on the CUDA device, for tests *- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_CUDA_FIXTURE_H
#define BOA_TEST_RUNTIME_CUDA_FIXTURE_H

#include "runtime/abi/cuda_calls.h"
#include "runtime/engine/engine.h"
#include "test/fake_cuda/emulated.h"
#include "test/fake_cuda/fake.h"
#include "test/runtime/chunks.h"
#include "test/runtime/cuda/emulated_sums.h"
#include "test/runtime/reference_optimizer.h"
#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <thread>

namespace boa::cuda_test {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kChunk = 8192, kElements = 2 * kChunk / 4; // of an entry of two chunks
constexpr float kDecay = 0.1f;
enum StorageId : int32_t { kData, kHome, kWeights, kMomentum, kVariance, kGradient };
enum KernelId : int32_t { kTrain, kMultiply };

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The gradient of weights by data, and new data; `home` counts in units of both.
inline void Element(const float *weights, float *data, float *gradient, float *home, int64_t i) {
  gradient[i] = weights[i] * 0.5f + data[i];
  home[i] = home[i] * 0.5f + gradient[i];
  data[i] = data[i] * 0.25f + weights[i];
}

inline std::chrono::microseconds slowness{0}; // of the first thread
inline std::atomic<int64_t> elements_made{0}; // by all launches

inline void EmulatedElement(boa_emulated_thread *thread, void *const *args) {
  auto at = [&](int i) { return *static_cast<float *const *>(args[i]); };
  const int64_t i = thread->block[0] * thread->block_dim[0] + thread->thread[0];
  if (i == 0 && slowness.count() > 0)
    std::this_thread::sleep_for(slowness);
  Element(at(0), at(1), at(2), at(3), i);
  elements_made.fetch_add(1, std::memory_order_relaxed); // orders nothing
}

inline int64_t shared_bytes = 0, blocks_y = 1; // that the launch asks for

/// On either device.
inline void Train(void *const *buffers, void *, boa_queue *queue) {
  if (queue)
    return boa_cuda_launch(queue, 0, kElements / 64, blocks_y, 1, 64, 1, 1, shared_bytes, 4,
                           buffers);
  auto at = [&](int i) { return static_cast<float *>(buffers[i]); };
  for (int64_t i = 0; i < kElements; ++i)
    Element(at(0), at(1), at(2), at(3), i);
}

// What the next products are.
struct Wanted {
  bool transpose_a, transpose_b, bias, accumulate;
  int32_t type_ab, type_c;
  bool apart; // what is added to lies elsewhere than the result
};
inline Wanted wanted;
inline bool use_scratch = false;
constexpr int64_t kM = 24, kN = 40, kK = 16;

/// c = a b, each and the bias in a quarter of the entry, beyond where it begins.
constexpr int64_t kQuarter = kElements, kBeyond = 48; // bytes
constexpr int64_t kApart = 192;                       // behind the bias, what is added to
inline void Multiply(void *const *buffers, void *workspace, boa_queue *queue) {
  auto at = [&](int64_t quarter) {
    return static_cast<char *>(buffers[0]) + quarter * kQuarter + kBeyond;
  };
  boa_cuda_gemm(queue, wanted.transpose_a, wanted.transpose_b, kM, kN, kK, wanted.type_ab, at(0),
                wanted.transpose_a ? kM : kK, at(1), wanted.transpose_b ? kK : kN,
                wanted.bias ? at(3) : nullptr,
                wanted.accumulate ? wanted.apart ? at(3) + kApart : at(2) : nullptr, wanted.type_c,
                at(2), kN, use_scratch ? workspace : nullptr);
}

inline const boa_kernel kTable[] = {Train, Multiply};
inline const boa_emulated_function kFunctions[] = {{"element", EmulatedElement, 0, 4},
                                                   {"sums_8192", EmulatedSums<kChunk>, 0, 3}};
inline const boa_emulated_module kModule = {BOA_EMULATED_MAGIC, 2, kFunctions};
inline const char *const kNames[] = {"element", "sums_8192"};
inline const boa_device_image kImage = {&kModule, sizeof(kModule), kNames, 2};
inline const Kernels kKernels(kTable, &kImage, &kReferenceAdamW);

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

inline Program MakeProgram(const char *device) {
  Program program;
  program.abi = BOA_ABI_VERSION;
  program.model.name = "test";
  program.machine.memory = MemoryKind::separate;
  program.machine.device = *ParseWord<DeviceKind>(device);
  program.machine.threads = 2;
  auto add = [&](const char *name, Home::Tier tier) {
    Storage &storage = program.storages.emplace_back();
    storage.name = storage.role = name;
    storage.homes = {{3, {{tier, 2}}}};
    storage.entries = {3};
    storage.bytes = 2 * kChunk;
    storage.chunks = 2;
    storage.persistent = true;
    storage.pools = {{BOA_DEVICE, 2, 2}, {BOA_HOST, 1, 2}};
  };
  add("data", Home::ssd);
  add("home", Home::device);
  add("weights", Home::host);
  add("momentum", Home::ssd);
  add("variance", Home::host);
  add("gradient", Home::host);
  for (int32_t of : {kWeights, kMomentum, kVariance})
    program.storages[size_t(of)].name += ".block";
  KernelBuffer read{true, false}, write{false, true}, both{true, true};
  program.kernels = {{"train", {read, both, write, both}}};
  Group &group = program.groups.emplace_back();
  group.name = "block";
  group.count = 3;
  group.layer = true;
  group.elements = kElements;
  group.chunks = 2;
  group.chunk_elements = kElements / 2;
  group.weight_type = "f32";
  group.parameters = {{"matrix", {64, 64}, 0, "zeros", 0, 0, 1, kDecay}};
  group.weights = kWeights;
  group.states = {kMomentum, kVariance};
  program.optimizer = kReferenceShape;
  group.gradient = kGradient;
  program.train.optimizer.kind = OptimizerKind::adamw;
  program.train.clip = 1;
  program.train.optimizer.rate = RateKind::constant;
  program.train.optimizer.peak = program.train.optimizer.floor = 0.01;
  program.train.steps = 100;
  return program;
}

// Of the program that is stepped: where the optimizer runs, and whether it waits for the norm.
inline int32_t update_space = BOA_HOST;
inline bool takes_norm = true;

inline std::function<void(boa_context *, int64_t)> body;
inline void Drive(boa_context *context, int64_t step, int64_t) { body(context, step); }

/// A step of three layers: data from SSD and back, weights from the host, gradients to it;
/// then updates, chunk by chunk.
inline void Step(boa_context *c, int64_t step) {
  for (int64_t entry = 0; entry < 3; ++entry) {
    boa_buffer of[] = {boa_rt_prefetch(c, kWeights, entry, 0, 2, BOA_DEVICE, 0),
                       boa_rt_prefetch(c, kData, entry, 0, 2, BOA_DEVICE, 0),
                       boa_rt_create(c, kGradient, entry, 0, 2, BOA_DEVICE),
                       boa_rt_prefetch(c, kHome, entry, 0, 2, BOA_DEVICE, /*zero=*/entry == 2)};
    boa_rt_launch(c, kTrain, 4, of);
    boa_rt_launch(c, kTrain, 4, of);
    boa_rt_offload(c, of[1], kData, entry, 0, 2);
    boa_rt_offload(c, of[2], kGradient, entry, 0, 2);
    for (boa_buffer buffer : of)
      boa_rt_release(c, buffer, 0);
    if (!takes_norm)
      continue;
    boa_buffer gradient = boa_rt_prefetch(c, kGradient, entry, 0, 2, update_space, 0);
    boa_rt_norm(c, 0, gradient);
    boa_rt_release(c, gradient, 0);
  }
  if (takes_norm)
    boa_rt_norm_done(c, step);
  for (int64_t entry = 0; entry < 3; ++entry)
    for (int32_t chunk = 0; chunk < 2; ++chunk) {
      auto fetch = [&](int32_t storage) {
        return boa_rt_prefetch(c, storage, entry, chunk, 1, update_space, 0);
      };
      boa_buffer of[] = {fetch(kWeights), fetch(kMomentum), fetch(kVariance), fetch(kGradient)};
      boa_rt_update(c, 0, chunk, step, of[0], 0, of[3], 2, of + 1);
      for (auto [buffer, storage] :
           {std::pair(of[0], kWeights), {of[1], kMomentum}, {of[2], kVariance}})
        boa_rt_offload(c, buffer, storage, entry, chunk, 1);
      for (boa_buffer buffer : of)
        boa_rt_release(c, buffer, 0);
    }
}

/// What Train does in each.
inline void (*one_step)(boa_context *, int64_t) = Step;

class CudaTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("BOA_CUDA_DRIVER", BOA_FAKE_DRIVER, 1);
    setenv("BOA_CUDA_BLAS", BOA_FAKE_BLAS, 1);
    setenv("BOA_CUDA_FILE", BOA_FAKE_FILE, 1);
    for (const char *name : {"BOA_FAKE_CUFILE", "BOA_CUDA_GRAPHS"})
      unsetenv(name);
    Fake("");
    boa_fake_cuda_reports();
  }
  void TearDown() override {
    engine.reset();
    EXPECT_STREQ(boa_fake_cuda_reports(), "");
  }
  static void Fake(const std::string &settings) { setenv("BOA_FAKE_CUDA", settings.c_str(), 1); }

  absl::Status Make(Program with, const Kernels &kernels = kKernels,
                    const EngineOptions &options = {}) {
    engine.reset();
    state.reset();
    committed = 0;
    program = std::move(with);
    update_space = program.UpdateSpace();
    takes_norm = NeedsNorm(program.train);
    std::filesystem::remove_all(scratch.path("state"));
    program.machine.ssd = {{scratch.path("state")}};
    auto opened = StateStore::Create(SystemFiles(), program, {scratch.path("state")});
    EXPECT_TRUE(opened.ok()) << opened.status();
    state = *std::move(opened);
    auto made = Engine::Create(program, kernels, state.get(), options);
    if (!made.ok())
      return made.status();
    engine = *std::move(made);
    return absl::OkStatus();
  }
  absl::Status Make(const char *device = "cuda") { return Make(MakeProgram(device)); }
  /// An engine anew, on the device, at the last commit.
  absl::Status Reopen(const char *device = "cuda") { return Reopen(MakeProgram(device), kKernels); }
  absl::Status Reopen(Program with, const Kernels &kernels) {
    engine.reset();
    state.reset();
    program = std::move(with);
    update_space = program.UpdateSpace();
    program.machine.ssd = {{scratch.path("state")}};
    auto opened = StateStore::Open(SystemFiles(), program, {scratch.path("state")});
    if (!opened.ok())
      return opened.status();
    state = *std::move(opened);
    auto made = Engine::Create(program, kernels, state.get(), {});
    if (!made.ok())
      return made.status();
    engine = *std::move(made);
    return engine->Restore();
  }

  absl::Status Write(int32_t storage, int64_t entry, const std::vector<float> &values) {
    for (int32_t chunk = 0; chunk < 2; ++chunk)
      if (absl::Status status = WriteChunk(*engine, storage, entry, chunk,
                                           values.data() + chunk * kElements / 2, kChunk);
          !status.ok())
        return status;
    return absl::OkStatus();
  }
  std::vector<float> Read(int32_t storage, int64_t entry) {
    std::vector<float> values(kElements);
    for (int32_t chunk = 0; chunk < 2; ++chunk) {
      absl::Status status =
          ReadChunk(*engine, storage, entry, chunk, values.data() + chunk * kElements / 2, kChunk);
      EXPECT_TRUE(status.ok()) << status;
    }
    return values;
  }
  static std::vector<float> Random(uint32_t seed) {
    std::minstd_rand random(seed + 1);
    std::vector<float> values(kElements);
    for (float &value : values)
      value = float(int64_t(random() % 2001) - 1000) / 1000;
    return values;
  }

  /// Fills all storages and takes three steps, with a port in and one out; after the first and
  /// after each of the others comes `then`.
  absl::Status Train(const std::function<absl::Status(int64_t step)> &then = {}) {
    for (int32_t storage = 0; storage <= kGradient; ++storage)
      for (int64_t entry = 0; entry < 3; ++entry) {
        std::vector<float> values = Random(storage * 3 + entry);
        for (float &value : values)
          value = storage == kVariance ? 0.01f : value;
        if (absl::Status status = Write(storage, entry, values); !status.ok())
          return status;
      }
    body = one_step;
    for (int64_t step = 0; step <= 3; ++step) {
      if (step > 0)
        if (absl::Status status = TakeStep(step); !status.ok())
          return status;
      if (then)
        if (absl::Status status = then(step); !status.ok())
          return status;
    }
    return engine->Drain();
  }
  /// The same, with commits; what each holds is noted, where that is asked for.
  absl::Status TrainAndCommit(std::map<int64_t, std::vector<std::vector<float>>> *held = nullptr) {
    return Train([&](int64_t step) {
      if (step % commit_every != 0)
        return absl::OkStatus();
      absl::Status status = engine->Commit({step + 1, 0, {}});
      if (status.ok())
        committed = step + 1;
      if (status.ok() && held)
        (*held)[step + 1] = Storages();
      return status;
    });
  }
  /// After TrainAndCommit, whatever it ended with: the last commit opens, and holds what it held.
  void ExpectLastCommit(const std::map<int64_t, std::vector<std::vector<float>>> &held,
                        Program with, const Kernels &kernels = kKernels) {
    engine.reset();
    Fake("");
    if (committed == 0)
      return;
    absl::Status status = Reopen(std::move(with), kernels);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_GE(state->Committed().step, committed);
    EXPECT_TRUE(Storages() == held.at(state->Committed().step));
    engine.reset();
  }
  absl::Status TakeStep(int64_t step) {
    in = Random(1000 + step);
    out.assign(kElements, 0);
    return engine->Run(Drive, step, 0, {{kHome, 0, in.data(), 3000}},
                       {{kHome, 2, out.data(), 4 * kElements}});
  }
  /// The bits of all that there is.
  std::vector<std::vector<float>> All() {
    std::vector<std::vector<float>> all = Storages();
    all.push_back(out);
    return all;
  }
  std::vector<std::vector<float>> Storages() {
    std::vector<std::vector<float>> all;
    for (int32_t storage = 0; storage <= kGradient; ++storage)
      for (int64_t entry = 0; entry < 3; ++entry)
        all.push_back(Read(storage, entry));
    return all;
  }

  Scratch scratch;
  Program program;
  std::unique_ptr<StateStore> state;
  std::unique_ptr<Engine> engine;
  std::vector<float> in, out; // the engine's while a step runs
  int64_t commit_every = 1;   // of Train's steps
  int64_t committed = 0;      // of this engine's state, by TrainAndCommit
};

} // namespace boa::cuda_test

#endif // BOA_TEST_RUNTIME_CUDA_FIXTURE_H
