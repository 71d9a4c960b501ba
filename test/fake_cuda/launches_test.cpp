//===- launches_test.cpp - Tests of the fake driver's modules and launches -===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/emulated.h"
#include "test/fake_cuda/fixture.h"

#include <memory>
#include <string>
#include <vector>

namespace boa::fake {
namespace {

using testing::HasSubstr;

template <typename T> T *Argument(void *const *args, int i) {
  return *static_cast<T *const *>(args[i]);
}

void AddVectors(boa_emulated_thread *t, void *const *args) {
  int64_t i = t->block[0] * t->block_dim[0] + t->thread[0];
  if (i >= 300)
    t->fault(t, "index past 300");
  Argument<float>(args, 2)[i] = Argument<float>(args, 0)[i] + Argument<float>(args, 1)[i];
}

void Nothing(boa_emulated_thread *, void *const *) {}

const boa_emulated_function kFunctions[] = {{"nothing", Nothing, 40 << 10, 0},
                                            {"add", AddVectors, 0, 3}};
const boa_emulated_module kModule = {BOA_EMULATED_MAGIC, 2, kFunctions};

class FakeKernelTest : public FakeCudaTest {
protected:
  void Begin(const std::string &settings) {
    session = std::make_unique<Session>(settings);
    EXPECT_EQ(cuModuleLoadDataEx(&module, &kModule, 0, nullptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&add, module, "add"), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&nothing, module, "nothing"), CUDA_SUCCESS);
    stream = NewStream();
    for (CUdeviceptr &vector : vectors)
      vector = NewMemory<float>(300);
  }
  /// Each call says the error that there is, and gives back what it is to give back.
  void End(CUresult error = CUDA_SUCCESS) {
    EXPECT_EQ(cuStreamSynchronize(stream), error);
    for (CUdeviceptr vector : vectors)
      EXPECT_EQ(cuMemFree_v2(vector), error);
    EXPECT_EQ(cuStreamDestroy_v2(stream), error);
    EXPECT_EQ(cuModuleUnload(module), error);
    session.reset();
  }
  CUresult Launch(unsigned blocks, unsigned threads, unsigned shared = 0) {
    void *arguments[] = {&vectors[0], &vectors[1], &vectors[2]};
    return cuLaunchKernel(add, blocks, 1, 1, threads, 1, 1, shared, stream, arguments, nullptr);
  }
  std::unique_ptr<Session> session;
  CUmodule module = nullptr;
  CUfunction add = nullptr, nothing = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr vectors[3] = {};
};

TEST_F(FakeKernelTest, AddsVectors) {
  Begin("delay_us=100");
  Upload(vectors[0], std::vector<float>(300, 1), stream);
  Upload(vectors[1], std::vector<float>(300, 2), stream);
  EXPECT_EQ(Launch(3, 100), CUDA_SUCCESS);
  EXPECT_EQ(Download<float>(vectors[2], 300, stream), std::vector<float>(300, 3));
  End();
}

// A launch's error is said by the next call that waits, and by each that follows; what was
// enqueued behind it does not happen, events but excepted.
TEST_F(FakeKernelTest, FaultsAreSticky) {
  Begin("delay_us=100");
  bool called = false;
  CUevent event = NewEvent();
  EXPECT_EQ(Launch(4, 100), CUDA_SUCCESS);
  auto call = [](void *flag) { *static_cast<bool *>(flag) = true; };
  CUresult host = cuLaunchHostFunc(stream, call, &called);
  EXPECT_TRUE(host == CUDA_SUCCESS || host == CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(called);
  EXPECT_THAT(Reports(), HasSubstr("kernel 'add', block (3, 0, 0), thread ("));
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Launch(3, 100), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  End(CUDA_ERROR_ILLEGAL_ADDRESS);
  Begin("");
  EXPECT_EQ(Launch(3, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  End();
}

// Who waits for an event behind the fault is told, and does not wait for ever.
TEST_F(FakeKernelTest, EventsBehindAFaultComeNevertheless) {
  Begin("");
  CUevent event = NewEvent();
  Gate gate(stream);
  EXPECT_EQ(Launch(4, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  gate.Open();
  EXPECT_EQ(cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Reports(), HasSubstr("index past 300"));
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  End(CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(FakeKernelTest, RefusesWhatNoDeviceRuns) {
  Begin("");
  EXPECT_EQ(Launch(1, 1025), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Launch(0, 32), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Reports(), "cuLaunchKernel of 'add': a grid or a block of a size that no device has\n"
                       "cuLaunchKernel of 'add': a grid or a block of a size that no device has\n");
  // More shared memory than 48 KiB must be asked for, and there are 227.
  auto launch = [&](unsigned shared) {
    return cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, shared, stream, nullptr, nullptr);
  };
  EXPECT_EQ(launch(8 << 10), CUDA_SUCCESS);
  EXPECT_EQ(launch(9 << 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Reports(),
            "cuLaunchKernel of 'nothing': more shared memory than the function may have\n");
  const int attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  EXPECT_EQ(cuFuncSetAttribute(nothing, attribute, 100 << 10), CUDA_SUCCESS);
  EXPECT_EQ(launch(100 << 10), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncSetAttribute(nothing, attribute, 188 << 10), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr kept = vectors[1];
  vectors[1] = reinterpret_cast<CUdeviceptr>(&kept);
  EXPECT_EQ(Launch(1, 32), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("cuLaunchKernel of 'add': argument 1: "));
  vectors[1] = kept;
  End();
}

TEST_F(FakeKernelTest, RefusesOtherModules) {
  Begin("");
  CUmodule other = nullptr;
  char log[100] = "";
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  EXPECT_EQ(cuModuleLoadDataEx(&other, ".version 8.0\n.target sm_90\n", 2, options, values),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(log, "the fake driver runs emulated kernels alone");
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&function, module, "subtract"), CUDA_ERROR_NOT_FOUND);
  // Who forgets the number of arguments has the next function's name in its place.
  const void *rows[] = {"add", "its body", nullptr, "next"};
  boa_emulated_module narrow = {BOA_EMULATED_MAGIC, 1,
                                reinterpret_cast<const boa_emulated_function *>(rows)};
  EXPECT_EQ(cuModuleLoadDataEx(&other, &narrow, 0, nullptr, nullptr), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(Reports(), "cuModuleLoadDataEx: function 0 of the module is not laid out as emulated.h "
                       "says\n");
  End();
}

TEST_F(FakeKernelTest, MemoryThatIsFreedWhileItIsWaitedForIsSeen) {
  Begin("");
  Gate gate(stream);
  EXPECT_EQ(Launch(3, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(vectors[1]), CUDA_SUCCESS);
  vectors[1] = NewMemory<float>(300);
  gate.Open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Reports(), HasSubstr("argument 1: freed while it waited in its stream"));
  End(CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(FakeKernelTest, MemoryThatIsUnpinnedWhileItIsWaitedForIsSeen) {
  Begin("");
  Gate gate(stream);
  {
    Pinned<float> host(300);
    EXPECT_EQ(cuMemcpyHtoDAsync_v2(vectors[0], host.values.data(), 1200, stream), CUDA_SUCCESS);
  }
  gate.Open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Reports(), HasSubstr("was unpinned while the copy waited in its stream"));
  End(CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(FakeKernelTest, ModuleThatIsUnloadedWhileItIsWaitedForIsSeen) {
  Begin("");
  Gate gate(stream);
  EXPECT_EQ(Launch(3, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_EQ(Launch(3, 100), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuLaunchKernel: of a module that was unloaded\n");
  EXPECT_EQ(cuModuleLoadDataEx(&module, &kModule, 0, nullptr, nullptr), CUDA_SUCCESS);
  gate.Open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Reports(), HasSubstr("its module was unloaded"));
  End(CUDA_ERROR_ILLEGAL_ADDRESS);
}

} // namespace
} // namespace boa::fake
