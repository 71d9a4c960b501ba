//===- cuda_test.cpp - The CUDA device, on a fake of the driver -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a small program leaves in its storages is compared, bit for bit, with what it
// leaves on the CPU with two memories, whatever the fake's timing is. Each function of
// the driver fails once at each of its calls: what comes back is a status.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/blas.h"
#include "runtime/device/cuda/calls.h"
#include "runtime/engine/engine.h"
#include "test/fake_cuda/emulated.h"
#include "test/fake_cuda/fake.h"
#include "test/runtime/chunks.h"
#include "test/runtime/trainer/scratch.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <thread>

namespace boa {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kChunk = 8192, kElements = 2 * kChunk / 4; // of an entry of two chunks
enum StorageId : int32_t { kData, kHome, kWeights, kMomentum, kVariance, kGradient };
enum KernelId : int32_t { kTrain, kMultiply };

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The gradient of weights by data, and new data; `home` counts in units of both.
void Element(const float *weights, float *data, float *gradient, float *home, int64_t i) {
  gradient[i] = weights[i] * 0.5f + data[i];
  home[i] = home[i] * 0.5f + gradient[i];
  data[i] = data[i] * 0.25f + weights[i];
}

void EmulatedElement(boa_emulated_thread *thread, void *const *args) {
  auto at = [&](int i) { return *static_cast<float *const *>(args[i]); };
  Element(at(0), at(1), at(2), at(3), thread->block[0] * thread->block_dim[0] + thread->thread[0]);
}

int64_t shared_bytes = 0, blocks_y = 1; // that the launch asks for

/// On either device.
void Train(void *const *buffers, void *, boa_queue *queue) {
  if (queue)
    return boa_cuda_launch(queue, 0, kElements / 64, blocks_y, 1, 64, 1, 1, shared_bytes, 4,
                           buffers);
  auto at = [&](int i) { return static_cast<float *>(buffers[i]); };
  for (int64_t i = 0; i < kElements; ++i)
    Element(at(0), at(1), at(2), at(3), i);
}

// What the next products are.
struct {
  bool transpose_a, transpose_b, bias, accumulate;
  int32_t type_ab, type_c;
} wanted;
bool use_scratch = false;
constexpr int64_t kM = 24, kN = 40, kK = 16;

/// c = a b, each and the bias in a quarter of the entry, beyond where it begins.
constexpr int64_t kQuarter = kElements, kBeyond = 48; // bytes
void Multiply(void *const *buffers, void *workspace, boa_queue *queue) {
  auto at = [&](int64_t quarter) {
    return static_cast<char *>(buffers[0]) + quarter * kQuarter + kBeyond;
  };
  boa_cuda_gemm(queue, wanted.transpose_a, wanted.transpose_b, kM, kN, kK, wanted.type_ab, at(0),
                wanted.transpose_a ? kM : kK, at(1), wanted.transpose_b ? kK : kN,
                wanted.bias ? at(3) : nullptr, wanted.accumulate, wanted.type_c, at(2), kN,
                use_scratch ? workspace : nullptr);
}

const boa_kernel kTable[] = {Train, Multiply};
const boa_emulated_function kFunctions[] = {{"element", EmulatedElement, 0, 4}};
const boa_emulated_module kModule = {BOA_EMULATED_MAGIC, 1, kFunctions};
const char *const kNames[] = {"element"};
const boa_device_image kImage = {&kModule, sizeof(kModule), kNames, 1};
const Kernels kKernels(kTable, &kImage);

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

Program MakeProgram(const char *device) {
  Program program;
  program.abi = BOA_ABI_VERSION;
  program.name = "test";
  program.machine.separate = true;
  program.machine.device = device;
  program.machine.threads = 2;
  auto add = [&](const char *name, Home::Tier tier) {
    Storage &storage = program.storages.emplace_back();
    storage.name = storage.role = name;
    storage.homes = {{tier, 2}};
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
  KernelBuffer read{true, false}, write{false, true}, both{true, true};
  program.kernels = {{"train", {read, both, write, both}, 0, 0, 0}};
  Group &group = program.groups.emplace_back();
  group.name = "block";
  group.count = 3;
  group.layer = true;
  group.elements = kElements;
  group.chunks = 2;
  group.chunk_elements = kElements / 2;
  group.weight_type = "f32";
  group.parameters = {{"matrix", {64, 64}, 0, "zeros", 0, true}};
  group.weights = kWeights;
  group.momentum = kMomentum;
  group.variance = kVariance;
  group.gradient = kGradient;
  program.optimizer.kind = "adamw";
  program.optimizer.weight_decay = 0.1;
  program.optimizer.clip = 1;
  program.optimizer.rate = "constant";
  program.optimizer.peak = program.optimizer.floor = 0.01;
  program.training.steps = 100;
  return program;
}

std::function<void(boa_context *, int64_t)> body;
void Drive(boa_context *context, int64_t step, int64_t) { body(context, step); }

/// A step of three layers: data from SSD and back, weights from the host, gradients to it;
/// then updates, chunk by chunk.
void Step(boa_context *c, int64_t step) {
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
    boa_buffer gradient = boa_rt_prefetch(c, kGradient, entry, 0, 2, BOA_HOST, 0);
    boa_rt_norm(c, 0, gradient);
    boa_rt_release(c, gradient, 0);
  }
  boa_rt_norm_done(c, step);
  for (int64_t entry = 0; entry < 3; ++entry)
    for (int32_t chunk = 0; chunk < 2; ++chunk) {
      auto fetch = [&](int32_t storage) {
        return boa_rt_prefetch(c, storage, entry, chunk, 1, BOA_HOST, 0);
      };
      boa_buffer of[] = {fetch(kWeights), fetch(kMomentum), fetch(kVariance), fetch(kGradient)};
      boa_rt_update(c, 0, chunk, step, of[0], 0, of[1], of[2], of[3]);
      boa_rt_offload(c, of[1], kMomentum, entry, chunk, 1);
      for (boa_buffer buffer : of)
        boa_rt_release(c, buffer, 0);
    }
}

class CudaTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("BOA_CUDA_DRIVER", BOA_FAKE_DRIVER, 1);
    setenv("BOA_CUDA_BLAS", BOA_FAKE_BLAS, 1);
    Fake("");
    boa_fake_cuda_reports();
  }
  void TearDown() override {
    engine.reset();
    EXPECT_STREQ(boa_fake_cuda_reports(), "");
  }
  static void Fake(const std::string &settings) { setenv("BOA_FAKE_CUDA", settings.c_str(), 1); }

  absl::Status Make(Program with, const Kernels &kernels = kKernels) {
    engine.reset();
    state.reset();
    program = std::move(with);
    std::filesystem::remove_all(scratch.path("state"));
    program.machine.ssd = {{scratch.path("state")}};
    auto opened = StateStore::Create(SystemFiles(), program, {scratch.path("state")});
    EXPECT_TRUE(opened.ok()) << opened.status();
    state = *std::move(opened);
    auto made = Engine::Create(program, kernels, state.get(), {});
    if (!made.ok())
      return made.status();
    engine = *std::move(made);
    return absl::OkStatus();
  }
  absl::Status Make(const char *device = "cuda") { return Make(MakeProgram(device)); }

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

  /// Fills all storages and takes three steps, with a port in and one out.
  absl::Status Train() {
    for (int32_t storage = 0; storage <= kGradient; ++storage)
      for (int64_t entry = 0; entry < 3; ++entry) {
        std::vector<float> values = Random(storage * 3 + entry);
        for (float &value : values)
          value = storage == kVariance ? 0.01f : value;
        if (absl::Status status = Write(storage, entry, values); !status.ok())
          return status;
      }
    body = Step;
    for (int64_t step = 1; step <= 3; ++step) {
      in = Random(1000 + step);
      out.assign(kElements, 0);
      if (absl::Status status = engine->Run(Drive, step, 0, {{kHome, 0, in.data(), 3000}},
                                            {{kHome, 2, out.data(), 4 * kElements}});
          !status.ok())
        return status;
    }
    return engine->Drain();
  }
  /// The bits of all that there is.
  std::vector<std::vector<float>> All() {
    std::vector<std::vector<float>> all = {out};
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
};

//===----------------------------------------------------------------------===//
// What it computes
//===----------------------------------------------------------------------===//

TEST_F(CudaTest, TrainsAsTheCpuDoes) {
  ASSERT_TRUE(Make("split").ok());
  absl::Status status = Train();
  ASSERT_TRUE(status.ok()) << status;
  const auto expected = All();
  const auto moved = engine->TakeCounters().moved;
  for (int seed = 1; seed <= 6; ++seed) {
    Fake(absl::StrCat("seed=", seed, " delay_us=", seed % 2 ? 300 : 0));
    status = Make();
    ASSERT_TRUE(status.ok()) << status;
    status = Train();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(All(), expected) << seed;
    const Counters counters = engine->TakeCounters();
    EXPECT_EQ(counters.moved.to_device, moved.to_device);
    EXPECT_EQ(counters.moved.to_host, moved.to_host);
    EXPECT_GT(counters.compute_seconds, 0);
  }
}

TEST_F(CudaTest, MemoryIsZeroAtFirst) {
  ASSERT_TRUE(Make().ok());
  for (int32_t storage : {kHome, kWeights})
    EXPECT_EQ(Read(storage, 2), std::vector<float>(kElements, 0));
}

TEST_F(CudaTest, ACommitHasWhatTheDeviceHas) {
  ASSERT_TRUE(Make().ok());
  ASSERT_TRUE(Train().ok());
  const auto expected = All();
  ASSERT_TRUE(engine->Commit({3, 0, {}}).ok());
  engine.reset();
  state.reset();
  auto opened = StateStore::Open(SystemFiles(), program, {scratch.path("state")});
  ASSERT_TRUE(opened.ok());
  state = *std::move(opened);
  auto made = Engine::Create(program, kKernels, state.get(), {});
  ASSERT_TRUE(made.ok());
  engine = *std::move(made);
  ASSERT_TRUE(engine->Restore().ok());
  EXPECT_EQ(All(), expected);
}

TEST_F(CudaTest, SaysWhichGpuItIs) {
  ASSERT_TRUE(Make().ok());
  EXPECT_THAT(engine->DescribeIo(), testing::EndsWith("; on Fake GPU 0 (sm_90)"));
}

// More shared memory than each function may have is granted before the first step, or not.
TEST_F(CudaTest, SharedMemoryIsAskedFor) {
  shared_bytes = 64 << 10;
  ASSERT_TRUE(Make().ok());
  absl::Status status = Train();
  EXPECT_TRUE(status.ok()) << status;
  shared_bytes = 0;
}

// What this GPU cannot launch is refused before the first step.
TEST_F(CudaTest, LaunchesAreCheckedBeforeTheyAreMade) {
  shared_bytes = 300 << 10;
  EXPECT_EQ(std::string(Make().message()),
            "function element is launched with 307200 bytes of shared memory beside its own, but "
            "may be with 0 to 232448 on Fake GPU 0 (sm_90): train on another GPU, or write `device "
            "cpu`");
  shared_bytes = 0;
  Fake("block_threads=32");
  EXPECT_THAT(std::string(Make().message()),
              StartsWith("function element is launched with 64 threads in a block, but may be with "
                         "1 to 32 on Fake GPU 0 (sm_90)"));
  Fake("");
  blocks_y = 65536;
  EXPECT_THAT(std::string(Make().message()),
              StartsWith("function element is launched with 65536 blocks along y, but may be with "
                         "1 to 65535"));
  blocks_y = 0;
  EXPECT_THAT(std::string(Make().message()),
              StartsWith("function element is launched with 0 blocks along y"));
  blocks_y = 1;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

float Narrow(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// Values of a type in a quarter of an entry.
void Put(char *to, int32_t type, const std::vector<float> &values) {
  for (float value : values) {
    const size_t size = type == 0 ? 4 : 2;
    std::memcpy(to, reinterpret_cast<const char *>(&value) + 4 - size, size);
    to += size;
  }
}
std::vector<float> Get(const char *from, int32_t type, int64_t count) {
  std::vector<float> values(count);
  for (float &value : values) {
    const size_t size = type == 0 ? 4 : 2;
    std::memcpy(reinterpret_cast<char *>(&value) + 4 - size, from, size);
    from += size;
  }
  return values;
}

// Whole numbers, of which all sums are exact.
TEST_F(CudaTest, ProductsAreRowMajor) {
  for (int variant = 0; variant < 48; ++variant) {
    const int types = variant / 16;
    Program with = MakeProgram("cuda");
    use_scratch = variant % 16 == 15;
    with.kernels.push_back(
        {"multiply", {{true, true}}, use_scratch ? BOA_CUDA_LIBRARY_WORKSPACE : 0, 0, 0});
    wanted = {bool(variant & 1), bool(variant & 2), bool(variant & 4),
              bool(variant & 8), types > 0,         types > 1};
    absl::Status status = Make(with);
    ASSERT_TRUE(status.ok()) << status;
    std::minstd_rand random(variant + 1);
    auto whole = [&](int64_t count) {
      std::vector<float> values(count);
      for (float &value : values)
        value = float(random() % 5) - 2;
      return values;
    };
    const std::vector<float> a = whole(kM * kK), b = whole(kK * kN), c = whole(kM * kN),
                             bias = whole(kN);
    std::vector<float> entry(kElements);
    auto quarter = [&](int64_t i) {
      return reinterpret_cast<char *>(entry.data()) + i * kQuarter + kBeyond;
    };
    Put(quarter(0), wanted.type_ab, a);
    Put(quarter(1), wanted.type_ab, b);
    Put(quarter(2), wanted.type_c, c);
    Put(quarter(3), wanted.type_c, bias);
    ASSERT_TRUE(Write(kHome, 0, entry).ok());
    body = [](boa_context *context, int64_t) {
      boa_buffer buffer = boa_rt_prefetch(context, kHome, 0, 0, 2, BOA_DEVICE, 0);
      boa_rt_launch(context, kMultiply, 1, &buffer);
      boa_rt_release(context, buffer, 0);
    };
    status = engine->Run(Drive, 1, 0);
    ASSERT_TRUE(status.ok()) << status;
    entry = Read(kHome, 0);
    std::vector<float> expected(kM * kN);
    for (int64_t i = 0; i < kM; ++i)
      for (int64_t j = 0; j < kN; ++j) {
        float sum = (wanted.accumulate ? c[i * kN + j] : 0) + (wanted.bias ? bias[j] : 0);
        for (int64_t l = 0; l < kK; ++l)
          sum += a[wanted.transpose_a ? l * kM + i : i * kK + l] *
                 b[wanted.transpose_b ? j * kK + l : l * kN + j];
        expected[i * kN + j] = Narrow(sum);
      }
    EXPECT_EQ(Get(quarter(2), wanted.type_c, kM * kN), expected) << variant;
  }
}

//===----------------------------------------------------------------------===//
// What goes wrong
//===----------------------------------------------------------------------===//

TEST_F(CudaTest, WhatIsMissingIsNamed) {
  setenv("BOA_CUDA_DRIVER", "/nowhere/libcuda.so", 1);
  EXPECT_THAT(std::string(Make().message()),
              StartsWith("BOA_CUDA_DRIVER=/nowhere/libcuda.so: /nowhere/libcuda.so: cannot open"));
  setenv("BOA_CUDA_DRIVER", BOA_FAKE_DRIVER, 1);
  Fake("driver=11040");
  EXPECT_EQ(std::string(Make().message()),
            "the NVIDIA driver of this machine is for CUDA 11.4: install one for "
            "CUDA 12.0 or newer");
  Fake("devices=0");
  EXPECT_EQ(std::string(Make().message()),
            "starting the driver: cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is "
            "detected): nvidia-smi shows which GPUs there are, and CUDA_VISIBLE_DEVICES must not "
            "hide them all; or write `device cpu`");
  Fake("memory=64KiB");
  EXPECT_EQ(
      std::string(Make().message()),
      "the program takes 244 KiB of device memory, but of the 64.0 KiB of Fake GPU 0 (sm_90) "
      "64.0 KiB are free: CUDA itself and other processes have 0 B, the program's code and its "
      "libraries 0 B; end what else uses the GPU (nvidia-smi lists it), or compile the "
      "program with less in `device cuda { memory = ... }`");
  Fake("");
  const char text[] = ".version 8.0";
  const boa_device_image ptx = {text, sizeof(text), kNames, 1};
  EXPECT_EQ(std::string(Make(MakeProgram("cuda"), Kernels(kTable, &ptx)).message()),
            "translating the program for Fake GPU 0 (sm_90): cuModuleLoadDataEx: "
            "CUDA_ERROR_INVALID_PTX (an error of the fake driver): compile the program anew for "
            "this GPU, or install a newer driver\n"
            "the fake driver runs emulated kernels alone");
  const char *const other[] = {"other"};
  const boa_device_image without = {&kModule, sizeof(kModule), other, 1};
  EXPECT_THAT(std::string(Make(MakeProgram("cuda"), Kernels(kTable, &without)).message()),
              StartsWith("other: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"));
  EXPECT_THAT(std::string(Make(MakeProgram("cuda"), kTable).message()),
              StartsWith("the program is not one for a GPU"));
  EXPECT_TRUE(Make().ok());
}

// The library for products is missed by programs that multiply, before their first step.
TEST_F(CudaTest, ProductsNeedTheirLibrary) {
  setenv("BOA_CUDA_BLAS", "/nowhere/libcublasLt.so", 1);
  EXPECT_TRUE(Make().ok());
  Program with = MakeProgram("cuda");
  with.kernels.push_back({"multiply", {{true, true}}, BOA_CUDA_LIBRARY_WORKSPACE, 0, 0});
  EXPECT_THAT(std::string(Make(with).message()),
              StartsWith("BOA_CUDA_BLAS=/nowhere/libcublasLt.so: "));
}

// What CUDA, code and libraries take of the device's memory is taken before the program's: there is
// enough at the start, which says who has what, or to the end.
TEST_F(CudaTest, LibrariesTakeTheirMemoryFirst) {
  wanted = {};
  for (bool scratch : {false, true}) {
    use_scratch = scratch;
    Program with = MakeProgram("cuda");
    with.kernels.push_back(
        {"multiply", {{true, true}}, scratch ? BOA_CUDA_LIBRARY_WORKSPACE : 0, 0, 0});
    ASSERT_TRUE(Make(with).ok());
    const int64_t arena = engine->ArenaBytes(BOA_DEVICE);
    body = [](boa_context *context, int64_t) {
      boa_buffer buffer = boa_rt_prefetch(context, kHome, 0, 0, 2, BOA_DEVICE, 0);
      boa_rt_launch(context, kMultiply, 1, &buffer);
      boa_rt_release(context, buffer, 0);
    };
    // A context, a function, cuBLASLt, a product.
    const int64_t taken = 4 * (64 << 10);
    Fake(absl::StrCat("overhead=64KiB memory=", arena + taken));
    absl::Status status = Make(with);
    ASSERT_TRUE(status.ok()) << status;
    status = engine->Run(Drive, 1, 0);
    EXPECT_TRUE(status.ok()) << status;
    status = Train();
    EXPECT_TRUE(status.ok()) << status;
    Fake(absl::StrCat("overhead=64KiB memory=", arena + taken - 1));
    EXPECT_THAT(std::string(Make(with).message()),
                HasSubstr("are free: CUDA itself and other processes have 64.0 KiB, the program's "
                          "code and its libraries 192 KiB; end what else"));
    // Less still is seen before the libraries are tried, or by them.
    for (int64_t memory : {arena + taken / 2, arena, arena / 2, taken, taken / 2, taken / 8}) {
      Fake(absl::StrCat("overhead=64KiB memory=", memory));
      EXPECT_EQ(Make(with).code(), absl::StatusCode::kResourceExhausted) << memory;
    }
  }
}

// The library of the driver's CUDA is tried first, since a later one does not begin on it; what
// does not begin makes place for the next.
TEST_F(CudaTest, TheLibraryForProductsFitsTheDriver) {
  using testing::ElementsAre;
  EXPECT_THAT(cuda::BlasNames(13010), ElementsAre("libcublasLt.so.13", "libcublasLt.so.12"));
  EXPECT_THAT(cuda::BlasNames(12090), ElementsAre("libcublasLt.so.12", "libcublasLt.so.13"));
  Program with = MakeProgram("cuda");
  with.kernels.push_back({"multiply", {{true, true}}, 0, 0, 0});
  Fake("fail=cublasLtCreate:1");
  EXPECT_EQ(std::string(Make(with).message()),
            absl::StrCat(BOA_FAKE_BLAS,
                         ": cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED (an error of the fake "
                         "cuBLASLt): libcublas and the driver do not go together: install the one "
                         "of the CUDA version that nvidia-smi shows"));
  setenv("BOA_CUDA_BLAS", BOA_FAKE_BLAS ":" BOA_FAKE_BLAS, 1);
  absl::Status status = Make(with);
  EXPECT_TRUE(status.ok()) << status;
  // What lacks a function, or is not there, is passed over too.
  setenv("BOA_CUDA_BLAS", BOA_FAKE_DRIVER ":/nowhere/libcublasLt.so:" BOA_FAKE_BLAS, 1);
  Fake("");
  status = Make(with);
  EXPECT_TRUE(status.ok()) << status;
  setenv("BOA_CUDA_BLAS", "/nowhere/libcublasLt.so:" BOA_FAKE_DRIVER, 1);
  EXPECT_EQ(std::string(Make(with).message()),
            absl::StrCat(BOA_FAKE_DRIVER, " has no cublasLtCreate: install CUDA's libcublas in "
                                          "version 12 or 13"));
}

// What may be done about an error is said with it.
TEST_F(CudaTest, ErrorsSayWhatToDo) {
  using Code = absl::StatusCode;
  struct {
    int error;
    Code code;
    const char *advice;
  } const cases[] = {
      {2, Code::kResourceExhausted, "end what else uses the GPU"},
      {34, Code::kFailedPrecondition, "the toolkit's stub"},
      {46, Code::kUnavailable, "nvidia-smi -c DEFAULT"},
      {214, Code::kDataLoss, "the GPU's memory is damaged"},
      {218, Code::kFailedPrecondition, "compile the program anew"},
      {220, Code::kDataLoss, "nvidia-smi nvlink -e"},
      {221, Code::kFailedPrecondition, "NVIDIA_DRIVER_CAPABILITIES"},
      {223, Code::kFailedPrecondition, "CUDA_DISABLE_PTX_JIT"},
      {700, Code::kInternal, "compute-sanitizer"},
      {702, Code::kUnavailable, "without a screen"},
      {714, Code::kInternal, "compute-sanitizer"},
      {715, Code::kInternal, "compute-sanitizer"},
      {716, Code::kInternal, "compute-sanitizer"},
      {717, Code::kInternal, "compute-sanitizer"},
      {718, Code::kInternal, "compute-sanitizer"},
      {802, Code::kUnavailable, "nvidia-fabricmanager"},
      {803, Code::kFailedPrecondition, "restart the machine"},
      {804, Code::kFailedPrecondition, "cuda-compat"},
      {999, Code::kInternal, "dmesg"},
  };
  for (const auto &[error, code, advice] : cases) {
    Fake(absl::StrCat("fail=cuModuleLoadDataEx:1 error=", error));
    const absl::Status status = Make();
    EXPECT_EQ(status.code(), code) << error;
    EXPECT_THAT(std::string(status.message()), HasSubstr(advice)) << error;
  }
}

// A driver that lacks a function is too old, and the function is named.
TEST_F(CudaTest, OldDriversAreTold) {
  std::ifstream library(BOA_FAKE_DRIVER, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(library), {}};
  const std::string name("\0cuEventElapsedTime\0", 20);
  const size_t at = bytes.find(name);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = 'x';
  std::ofstream(scratch.path("old.so"), std::ios::binary) << bytes;
  setenv("BOA_CUDA_DRIVER", scratch.path("old.so").c_str(), 1);
  EXPECT_EQ(std::string(Make().message()),
            absl::StrCat("the NVIDIA driver of this machine has no cuEventElapsedTime (",
                         scratch.path("old.so"), "): install one for CUDA 12.0 or newer"));
}

// Each call of each function fails in turn: the run ends with a status that names it, and
// nothing is used after it was given back.
TEST_F(CudaTest, EachCallMayFail) {
  for (const char *function : {"cuDeviceGetCount",
                               "cuDeviceGet",
                               "cuDeviceGetName",
                               "cuDeviceGetAttribute",
                               "cuCtxSetCurrent",
                               "cuDevicePrimaryCtxRetain",
                               "cuMemGetInfo_v2",
                               "cuMemAlloc_v2",
                               "cuMemHostRegister_v2",
                               "cuMemcpyHtoDAsync_v2",
                               "cuMemcpyDtoHAsync_v2",
                               "cuMemsetD8Async",
                               "cuStreamCreate",
                               "cuStreamSynchronize",
                               "cuEventCreate",
                               "cuEventRecord",
                               "cuEventSynchronize",
                               "cuEventElapsedTime",
                               "cuModuleLoadDataEx",
                               "cuModuleGetFunction",
                               "cuLaunchKernel",
                               "cuFuncGetAttribute",
                               "cuInit"}) {
    int failed = 0;
    for (int call : {1, 2, 5, 30}) {
      Fake(absl::StrCat("delay_us=20 fail=", function, ":", call));
      absl::Status status = Make();
      if (status.ok())
        status = Train();
      if (!status.ok()) {
        ++failed;
        EXPECT_THAT(std::string(status.message()),
                    HasSubstr(absl::StrCat(function, ": CUDA_ERROR_UNKNOWN")))
            << call;
      }
      engine.reset();
    }
    EXPECT_GT(failed, 0) << function;
  }
}

// So do those of cuBLASLt: before the first step where that is found out then.
TEST_F(CudaTest, ProductsMayFail) {
  wanted = {};
  use_scratch = false;
  Program with = MakeProgram("cuda");
  with.kernels.push_back({"multiply", {{true, true}}, 0, 0, 0});
  Fake("fail=cublasLtCreate:1");
  EXPECT_THAT(std::string(Make(with).message()),
              StartsWith(BOA_FAKE_BLAS ": cublasLtCreate: CUBLAS_STATUS_"));
  Fake("fail=cublasLtMatmulAlgoGetHeuristic:1");
  EXPECT_THAT(std::string(Make(with).message()),
              StartsWith("product of 24 x 16 and 16 x 40, f32 to f32: "
                         "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_"));
  Fake("fail=cublasLtMatmul:1");
  EXPECT_THAT(
      std::string(Make(with).message()),
      StartsWith("product of 24 x 16 and 16 x 40, f32 to f32: cublasLtMatmul: CUBLAS_STATUS_"));
  Fake("fail=cublasLtMatmul:2");
  ASSERT_TRUE(Make(with).ok());
  body = [](boa_context *context, int64_t) {
    boa_buffer buffer = boa_rt_prefetch(context, kHome, 0, 0, 2, BOA_DEVICE, 0);
    for (int i = 0; i < 3; ++i)
      boa_rt_launch(context, kMultiply, 1, &buffer);
    boa_rt_release(context, buffer, 0);
  };
  EXPECT_THAT(std::string(engine->Run(Drive, 1, 0).message()),
              StartsWith("kernel multiply: product of 24 x 16 and 16 x 40, f32 to f32: "
                         "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED"));
}

// A product of which nothing was known before the first step ends the run: its algorithm would be
// looked for while the GPU waits.
TEST_F(CudaTest, ProductsArePlanned) {
  wanted = {};
  use_scratch = false;
  Program with = MakeProgram("cuda");
  with.kernels.push_back({"multiply", {{true, true}}, 0, 0, 0});
  ASSERT_TRUE(Make(with).ok());
  wanted.accumulate = true;
  body = [](boa_context *context, int64_t) {
    boa_buffer buffer = boa_rt_prefetch(context, kHome, 0, 0, 2, BOA_DEVICE, 0);
    boa_rt_launch(context, kMultiply, 1, &buffer);
    boa_rt_release(context, buffer, 0);
  };
  EXPECT_EQ(
      std::string(engine->Run(Drive, 1, 0).message()),
      "kernel multiply: product of 24 x 16 and 16 x 40, f32 to f32: it was not planned before "
      "the first step, which is an error of the compiler; go on from the last commit");
  wanted = {};
}

// What is given back at the end may fail, too: it is the end, and no more.
TEST_F(CudaTest, GivingBackMayFail) {
  for (const char *function : {"cuMemFree_v2", "cuMemHostUnregister", "cuStreamDestroy_v2",
                               "cuEventDestroy_v2", "cuModuleUnload"}) {
    Fake(absl::StrCat("fail=", function, ":1"));
    ASSERT_TRUE(Make().ok());
    engine.reset();
    EXPECT_THAT(boa_fake_cuda_reports(), HasSubstr("left when the context was released"));
  }
}

// An engine that is dropped in the middle of a step gives nothing back that the GPU uses.
TEST_F(CudaTest, WhatIsUnderWayEndsFirst) {
  for (int wait_us : {0, 300, 2000}) {
    Fake("delay_us=500");
    ASSERT_TRUE(Make().ok());
    ASSERT_TRUE(Write(kData, 0, Random(1)).ok());
    body = [](boa_context *c, int64_t) {
      for (int i = 0; i < 10; ++i) {
        boa_buffer of[] = {boa_rt_prefetch(c, kWeights, 0, 0, 2, BOA_DEVICE, 0),
                           boa_rt_prefetch(c, kData, 0, 0, 2, BOA_DEVICE, 0),
                           boa_rt_create(c, kGradient, 0, 0, 2, BOA_DEVICE),
                           boa_rt_prefetch(c, kHome, 0, 0, 2, BOA_DEVICE, 0)};
        boa_rt_launch(c, kTrain, 4, of);
        boa_rt_offload(c, of[2], kGradient, 0, 0, 2);
        for (boa_buffer buffer : of)
          boa_rt_release(c, buffer, 0);
      }
    };
    engine->Enqueue(Drive, 1, 0);
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us));
    engine.reset();
  }
}

// What runs fails later: whose turn it was is said, with what is kept.
TEST_F(CudaTest, WhatRunsMayFail) {
  for (int call : {1, 2, 7}) {
    Fake(absl::StrCat("delay_us=50 late=cuLaunchKernel:", call));
    ASSERT_TRUE(Make().ok());
    const absl::Status status = Train();
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure): a "
                          "kernel went wrong, which is an error of the compiler"));
    engine.reset();
  }
  for (const char *function : {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"})
    for (int call : {1, 15, 25}) {
      Fake(absl::StrCat("delay_us=50 late=", function, ":", call, " error=214"));
      ASSERT_TRUE(Make().ok());
      const absl::Status status = Train();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
      engine.reset();
    }
}

} // namespace
} // namespace boa
