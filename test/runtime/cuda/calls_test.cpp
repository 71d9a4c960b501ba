//===- calls_test.cpp - Every function that the CUDA device calls ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program that uses all that there is: kernels as graphs, products, attention by cuDNN, SSDs
// that reach the device's memory, the optimizer on the device. What the tables of the driver and
// of the libraries hold is called by it, and so is each function that a table gets later: its
// calls fail in turn, before the first step, in a step and at the end.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/cuda_updates.h"
#include "runtime/device/cuda/blas.h"
#include "runtime/device/cuda/dnn_abi.h"
#include "runtime/device/cuda/files.h"
#include "test/runtime/cuda/fixture.h"

#include <cstring>
#include <map>
#include <set>
#include <string>

extern "C" void *__real_dlopen(const char *name, int flags);
/// The linker has this called for dlopen (CMakeLists.txt): a library that is looked for by its name
/// alone is not there, whatever this machine has.
extern "C" void *__wrap_dlopen(const char *name, int flags) {
  const bool by_name = name && !std::strchr(name, '/');
  return __real_dlopen(by_name ? absl::StrCat("/nowhere/", name).c_str() : name, flags);
}

namespace boa::cuda_test {
namespace {

//===----------------------------------------------------------------------===//
// The tables
//===----------------------------------------------------------------------===//

const char *const kBound[] = {
#define BOA_NAME(name, symbol, ...) #symbol,
    BOA_CUDA_DRIVER_FUNCTIONS(BOA_NAME) BOA_CUDA_BLAS_FUNCTIONS(BOA_NAME)
        BOA_CUDA_DNN_FUNCTIONS(BOA_NAME) BOA_CUDA_FILE_FUNCTIONS(BOA_NAME)
#undef BOA_NAME
};

/// They end with words, a number or nothing, and cannot fail.
const std::set<std::string> kWithoutStatus = {
    "cuGetErrorName",         "cuGetErrorString",        "cublasLtGetVersion",
    "cublasLtGetStatusName",  "cublasLtGetStatusString", "cudnnGetVersion",
    "cudnnGetCudartVersion",  "cudnnGetErrorString",     "cudnnGetLastErrorString",
    "cuFileHandleDeregister",
};

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

/// All in the workspace, of zeros: 1 x 16, two heads of 8 columns.
void Attend(char *at, boa_queue *queue) {
  constexpr int64_t kTime = 16, kHeads = 2, kColumns = 8, kWidth = kHeads * kColumns,
                    kStride = 3 * kWidth;
  auto take = [&](int64_t bytes) {
    char *const taken = at;
    at += (bytes + 255) / 256 * 256;
    return taken;
  };
  char *const qkv = take(kTime * kStride * 2), *const y = take(kTime * kWidth * 2);
  char *const dy = take(kTime * kWidth * 2), *const dqkv = take(kTime * kStride * 2);
  auto *const lse = reinterpret_cast<float *>(take(kHeads * kTime * 4));
  auto *const delta = reinterpret_cast<float *>(take(kHeads * kTime * 4));
  constexpr int64_t kPart = kWidth * 2;
  boa_cuda_attention(queue, 1, 1, kTime, kHeads, kHeads, kColumns, qkv, kStride, qkv + kPart,
                     kStride, qkv + 2 * kPart, kStride, y, kWidth, lse, at,
                     BOA_CUDA_ATTENTION_SCRATCH);
  boa_cuda_attention_grad(queue, 1, 1, kTime, kHeads, kHeads, kColumns, qkv, kStride, qkv + kPart,
                          kStride, qkv + 2 * kPart, kStride, y, kWidth, lse, dy, kWidth, dqkv,
                          kStride, dqkv + kPart, kStride, dqkv + 2 * kPart, kStride, delta, at,
                          BOA_CUDA_ATTENTION_SCRATCH);
}

/// What the fixture's kernel does, a product within the gradient, and attention: a graph.
void TrainAll(void *const *buffers, void *workspace, boa_queue *queue) {
  Train(buffers, nullptr, queue);
  Multiply(&buffers[2], workspace, queue);
  Attend(static_cast<char *>(workspace), queue);
}

void EmulatedUpdate(boa_emulated_thread *thread, void *const *args) {
  auto at = [&](int i) {
    return *static_cast<float *const *>(args[i]) +
           (thread->block[0] * thread->block_dim[0] + thread->thread[0]) * cuda::kUpdateElements;
  };
  for (int64_t i = 0; i < cuda::kUpdateElements; ++i)
    at(2)[i] = at(2)[i] * 0.5f + at(5)[i];
}

void EmulatedNorm(boa_emulated_thread *thread, void *const *args) {
  if (thread->block[0] == 0 && thread->thread[0] == 0)
    **static_cast<double *const *>(args[1]) = 1;
}

const boa_kernel kAllTable[] = {TrainAll, Multiply};
const boa_emulated_function kAllFunctions[] = {{"element", EmulatedElement, 0, 4},
                                               {"sums_8192", EmulatedSums<kChunk>, 0, 3},
                                               {"update_block", EmulatedUpdate, 0, 6},
                                               {"norm_block", EmulatedNorm, 0, 2}};
const boa_emulated_module kAllModule = {BOA_EMULATED_MAGIC, 4, kAllFunctions};
const char *const kAllNames[] = {"element", "sums_8192", "update_block", "norm_block"};
const boa_device_image kAllImage = {&kAllModule, sizeof(kAllModule), kAllNames, 4};
const Kernels kAll(kAllTable, &kAllImage, &kReferenceAdamW);

Program MakeAll() {
  Program program = MakeProgram("cuda");
  program.machine.direct = true;
  program.storages[kData].pools = {{BOA_DEVICE, 2, 2}};
  program.plan.update = UpdatePlace::device;
  program.kernels[0].name = "all";
  program.kernels[0].workspace = (8 << 10) + BOA_CUDA_ATTENTION_SCRATCH;
  program.kernels.push_back({"multiply", {{true, true}}});
  return program;
}

/// The fixture's step, a copy from one buffer of the device to another, and kernels that need no
/// more than a copy from the host, which they come before.
void StepAll(boa_context *c, int64_t step) {
  Step(c, step);
  for (int64_t entry = 0; entry < 3; ++entry) {
    boa_buffer buffer = boa_rt_prefetch(c, kVariance, entry, 0, 2, BOA_DEVICE, 0);
    boa_rt_launch(c, kMultiply, 1, &buffer);
    boa_rt_offload(c, buffer, kVariance, entry, 0, 2);
    boa_rt_release(c, buffer, 0);
  }
  boa_buffer from = boa_rt_prefetch(c, kData, 0, 0, 2, BOA_DEVICE, 0);
  boa_buffer to = boa_rt_create(c, kData, 1, 0, 2, BOA_DEVICE);
  boa_rt_copy(c, from, to, 0, 2);
  boa_rt_offload(c, to, kData, 1, 0, 2);
  boa_rt_release(c, from, 0);
  boa_rt_release(c, to, 0);
}

class CudaCallsTest : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    setenv("BOA_CUDA_DNN", BOA_FAKE_DNN, 1);
    shared_bytes = 64 << 10;
    wanted = {};
    wanted.bias = true;
    use_scratch = false;
    one_step = StepAll;
    commit_every = 2;
  }
  void TearDown() override {
    shared_bytes = 0;
    wanted = {};
    one_step = Step;
    unsetenv("BOA_CUDA_DNN");
    CudaTest::TearDown();
  }
  /// With more local memory than there is at first, and so late that kernels come after copies.
  static void FakeAll(const std::string &settings) { Fake("local=2048 delay_us=20 " + settings); }

  std::map<int64_t, std::vector<std::vector<float>>> expected;
};

/// What a run that ended well says of an error.
std::string Said(Engine &engine) { return engine.TakeRemark() + engine.DescribeIo(); }

/// How an error of the function is said: libcufile's by what was being done.
std::string WordsOf(const std::string &function) {
  if (function == "cuFileDriverOpen")
    return "starting GPUDirect Storage: cuFile error 5 (";
  if (function == "cuFileHandleRegister")
    return "for GPUDirect Storage: cuFile error 5 (";
  if (function == "cuFileBufRegister")
    return "which does not take it all at once: cuFile error 5 (";
  if (function == "cuFileRead")
    return "cannot read ";
  if (function == "cuFileWrite")
    return "cannot write ";
  return function + ": CU";
}

// Each function of the tables fails in turn. In a status, in a remark or in what is said at the
// start it is named; only where something is given back nothing is said, where cuDNN has other
// heuristics before the first step, and where the bound of what is pinned is not met. What was
// computed nevertheless is right, and the last commit opens.
TEST_F(CudaCallsTest, EachFunctionMayFail) {
  std::string all;
  for (const char *function : kBound) {
    EXPECT_EQ(fake::MayFail(function), kWithoutStatus.count(function) == 0) << function;
    if (fake::MayFail(function))
      absl::StrAppend(&all, " fail=", function, ":1000000000");
  }
  FakeAll(all);
  absl::Status status = Make(MakeAll(), kAll);
  ASSERT_TRUE(status.ok()) << status;
  std::map<std::string, int64_t> at_start, calls;
  for (const char *function : kBound)
    at_start[function] = boa_fake_cuda_calls(function);
  status = TrainAndCommit(&expected);
  ASSERT_TRUE(status.ok()) << status;
  const auto at_the_end = Storages();
  engine.reset();
  for (const char *function : kBound)
    calls[function] = boa_fake_cuda_calls(function);

  for (const std::string function : kBound) {
    if (kWithoutStatus.count(function))
      continue;
    const int64_t first = at_start[function], last = calls[function];
    // cuGraphExecDestroy is called at the end alone, and so on.
    EXPECT_GT(last, 0) << function << " is never called";
    for (int64_t call : std::set<int64_t>{1, first, first + 1, last}) {
      if (call < 1 || call > last)
        continue;
      SCOPED_TRACE(
          absl::StrCat("call ", call, " of ", first, " and ", last - first, " of ", function));
      FakeAll(absl::StrCat("fail=", function, ":", call));
      status = Make(MakeAll(), kAll);
      if (status.ok())
        status = TrainAndCommit();
      const std::string said = status.ok() ? Said(*engine) : std::string(status.message());
      const bool before_the_end = boa_fake_cuda_calls(function.c_str()) >= call;
      if (status.ok())
        EXPECT_TRUE(Storages() == at_the_end);
      engine.reset();
      const bool gives_back = !before_the_end || function.find("Destroy") != std::string::npos ||
                              function.find("Free") != std::string::npos;
      const bool does_without = (function.rfind("cudnnBackend", 0) == 0 && call <= first) ||
                                function == "cuFileDriverSetMaxPinnedMemSize";
      if (!status.ok() || !(gives_back || does_without))
        EXPECT_THAT(said, HasSubstr(WordsOf(function)));
      if (function == "cuDevicePrimaryCtxRelease_v2" && boa_fake_cuda_calls(function.c_str()) > 0)
        EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
      if (const std::string reports = boa_fake_cuda_reports(); gives_back && !reports.empty())
        EXPECT_THAT(reports, StartsWith("left when the context was released: "));
      else
        EXPECT_EQ(reports, "");
      ExpectLastCommit(expected, MakeAll(), kAll);
    }
  }
}

// So does what was enqueued, when its turn comes.
TEST_F(CudaCallsTest, WhatRunsMayFail) {
  FakeAll("");
  ASSERT_TRUE(Make(MakeAll(), kAll).ok());
  ASSERT_TRUE(TrainAndCommit(&expected).ok());
  for (const char *function :
       {"cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2",
        "cuMemsetD8Async", "cublasLtMatmul", "cudnnBackendExecute"}) {
    int failed = 0, committed_some = 0;
    for (int call : {1, 4, 20}) {
      SCOPED_TRACE(absl::StrCat("call ", call, " of ", function));
      FakeAll(absl::StrCat("late=", function, ":", call));
      absl::Status status = Make(MakeAll(), kAll);
      if (status.ok())
        status = TrainAndCommit();
      if (status.ok()) // it did not come to the call
        continue;
      ++failed;
      committed_some += committed > 0;
      // A transfer or a library may be the first to meet it.
      EXPECT_THAT(std::string(status.message()),
                  testing::AnyOf(HasSubstr("CUDA_ERROR_LAUNCH_FAILED"),
                                 HasSubstr("_STATUS_EXECUTION_FAILED"),
                                 HasSubstr("cuFile error 5011 (the driver failed)")));
      ExpectLastCommit(expected, MakeAll(), kAll);
    }
    EXPECT_GT(failed, 0) << function;
    EXPECT_GT(committed_some, 0) << function;
  }
}

// In a step nothing is allocated, registered, loaded, made or planned, and nothing waits for the
// whole device, nor for a stream: waits are for events. Graphs are made in the first steps, by the
// driver.
TEST_F(CudaCallsTest, StepsAllocateNothing) {
  const char *const never[] = {"cuMemAlloc_v2",
                               "cuMemFree_v2",
                               "cuMemHostAlloc",
                               "cuMemFreeHost",
                               "cuMemHostRegister_v2",
                               "cuMemHostUnregister",
                               "cuStreamCreate",
                               "cuStreamDestroy_v2",
                               "cuEventCreate",
                               "cuEventDestroy_v2",
                               "cuModuleLoadDataEx",
                               "cuModuleGetFunction",
                               "cuFuncGetAttribute",
                               "cuFuncSetAttribute",
                               "cuCtxSetLimit",
                               "cuCtxSynchronize",
                               "cuStreamSynchronize",
                               "cuStreamBeginCapture_v2",
                               "cuGraphInstantiateWithFlags",
                               "cublasLtCreate",
                               "cublasLtMatmulDescCreate",
                               "cublasLtMatrixLayoutCreate",
                               "cublasLtMatmulPreferenceCreate",
                               "cublasLtMatmulAlgoGetHeuristic",
                               "cudnnCreate",
                               "cudnnBackendGetAttribute",
                               "cuFileDriverOpen",
                               "cuFileHandleRegister",
                               "cuFileBufRegister"};
  std::string all;
  for (const char *function : never)
    absl::StrAppend(&all, " fail=", function, ":1000000000");
  setenv("BOA_CUDA_GRAPHS", "none", 1);
  for (int32_t space : {BOA_HOST, BOA_DEVICE})
    for (bool direct : {false, true}) {
      SCOPED_TRACE(absl::StrCat(space, " ", direct));
      FakeAll(all);
      Program with = MakeAll();
      with.plan.update = space == BOA_DEVICE ? UpdatePlace::device : UpdatePlace::host;
      with.machine.direct = direct;
      if (!direct)
        with.storages[kData].pools = {{BOA_DEVICE, 2, 2}, {BOA_HOST, 1, 2}};
      absl::Status status = Make(with, kAll);
      ASSERT_TRUE(status.ok()) << status;
      std::map<std::string, int64_t> before;
      for (const char *function : never)
        before[function] = boa_fake_cuda_calls(function);
      EXPECT_GT(before["cuEventCreate"], 0);
      status = TrainAndCommit();
      ASSERT_TRUE(status.ok()) << status;
      for (const char *function : never)
        EXPECT_EQ(boa_fake_cuda_calls(function), before[function]) << function;
    }
}

// Where nobody names a library, what a machine lacks is said with what to install, before the first
// step; only cuDNN need not be there. What the libraries are called by themselves, this process has
// none of.
TEST_F(CudaCallsTest, WhatAMachineLacks) {
  const auto absent = [](const char *name) {
    return absl::StrCat("/nowhere/", name,
                        ": cannot open shared object file: No such file or directory");
  };
  auto refused = [&] { return std::string(Make(MakeAll(), kAll).message()); };
  FakeAll("");
  unsetenv("BOA_CUDA_DNN");
  ASSERT_TRUE(Make(MakeAll(), kAll).ok());
  EXPECT_THAT(engine->DescribeIo(),
              testing::EndsWith(absl::StrCat(
                  "; on Fake GPU 0 (sm_90), attention by the program's own kernels (there is no "
                  "cuDNN 9 (",
                  absent("libcudnn.so.9"), "))")));
  EXPECT_TRUE(TrainAndCommit().ok());

  unsetenv("BOA_CUDA_FILE");
  EXPECT_EQ(refused(),
            absl::StrCat(
                "the program has SSDs reach the GPU's memory (`direct = true`), and there "
                "is no GPUDirect Storage on this machine: install it (libcufile-13-0 or "
                "libcufile-12-9 from NVIDIA's repository; of nvidia-cufile from pip, BOA_CUDA_FILE "
                "names the file), or compile the program without `direct`, which needs none (",
                absent("libcufile.so.0"), ")"));

  unsetenv("BOA_CUDA_BLAS");
  const std::string products =
      "products on a GPU are cuBLASLt's, which this machine does not have: install CUDA's "
      "libcublas (12, or 13 for a driver of CUDA 13), or set "
      "machine.device.gemm=own (";
  EXPECT_EQ(refused(), absl::StrCat(products, absent("libcublasLt.so.13"), "; ",
                                    absent("libcublasLt.so.12"), ")"));
  FakeAll("driver=12040");
  EXPECT_EQ(refused(), absl::StrCat(products, absent("libcublasLt.so.12"), "; ",
                                    absent("libcublasLt.so.13"), ")"));

  unsetenv("BOA_CUDA_DRIVER");
  EXPECT_EQ(refused(), absl::StrCat("there is no NVIDIA driver on this machine: install one, or "
                                    "write `device cpu` (",
                                    absent("libcuda.so.1"), ")"));
}

// An error that the driver has no name for is told by its number.
TEST_F(CudaCallsTest, ErrorsWithoutAName) {
  FakeAll("fail=cuMemAlloc_v2:1 error=12345");
  EXPECT_THAT(std::string(Make(MakeAll(), kAll).message()),
              HasSubstr("cuMemAlloc_v2: error 12345 (unknown): the system's log (dmesg)"));
}

} // namespace
} // namespace boa::cuda_test
