//===- update_slots_test.cpp - What updates on the CUDA device are told by ===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory through which the host and updates speak, and how the host waits. What they
// compute is updates_test.cpp's.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/cuda_updates.h"
#include "runtime/device/cuda/stream.h"
#include "test/runtime/cuda/fixture.h"

#include <cstring>

namespace boa::cuda_test {
namespace {

/// Half the weights, and the number of the chunk, counted from 1: by it what was told to one update
/// is told from what was to another.
float Next(float weight, int32_t chunk) { return weight * 0.5f + float(chunk + 1); }

void EmulatedUpdate(boa_emulated_thread *thread, void *const *args) {
  using namespace boa::cuda;
  int32_t chunk = 0;
  std::memcpy(&chunk, *static_cast<const float *const *>(args[0]) + kChunkNumber, sizeof(chunk));
  const int64_t number = thread->block[0] * thread->block_dim[0] + thread->thread[0];
  float *const weights = *static_cast<float *const *>(args[2]) + number * kUpdateElements;
  for (int64_t i = 0; i < kUpdateElements; ++i)
    weights[i] = Next(weights[i], chunk);
}

void EmulatedNorm(boa_emulated_thread *thread, void *const *args) {
  if (thread->block[0] == 0 && thread->thread[0] == 0)
    **static_cast<double *const *>(args[1]) = 1;
}

const boa_emulated_function kSlotsFunctions[] = {{"element", EmulatedElement, 0, 4},
                                                 {"update_block", EmulatedUpdate, 0, 6},
                                                 {"norm_block", EmulatedNorm, 0, 2}};
const boa_emulated_module kSlotsModule = {BOA_EMULATED_MAGIC, 3, kSlotsFunctions};
const char *const kSlotsNames[] = {"element", "update_block", "norm_block"};
const boa_device_image kSlotsImage = {&kSlotsModule, sizeof(kSlotsModule), kSlotsNames, 3};

class UpdateSlotsTest : public CudaTest {
protected:
  /// The optimizer and all that it works on is on the device.
  absl::Status MakeOnDevice(double clip) {
    Program with = MakeProgram("cuda");
    with.plan.update = UpdatePlace::device;
    with.train.clip = clip;
    for (int32_t storage : {kWeights, kMomentum, kVariance, kGradient})
      with.storages[storage].homes[0].homes = {{Home::device, 2}};
    return Make(with, Kernels(kTable, &kSlotsImage, &kReferenceAdamW));
  }
};

// Slots are used again and again, none before its update is over.
TEST_F(UpdateSlotsTest, SlotsAreUsedAgain) {
  constexpr int64_t kUpdates = 5 * int64_t(cuda::GpuStream::kDepth);
  // Of three in turn, so that no number of slots, a power of two, meets the same chunk again.
  static constexpr int32_t kChunks[] = {0, 1, 1};
  body = [](boa_context *c, int64_t step) {
    for (int64_t i = 0; i < kUpdates; ++i) {
      const int32_t chunk = kChunks[i % 3];
      boa_buffer of[4];
      for (int32_t storage : {kWeights, kMomentum, kVariance, kGradient})
        of[storage - kWeights] = boa_rt_prefetch(c, storage, 0, chunk, 1, BOA_DEVICE, 0);
      boa_rt_update(c, 0, chunk, step, of[0], 0, of[3], 2, of + 1);
      for (boa_buffer buffer : of)
        boa_rt_release(c, buffer, 0);
    }
  };
  for (int seed : {1, 2}) {
    Fake(absl::StrCat("delay_us=50 seed=", seed));
    absl::Status status = MakeOnDevice(/*clip=*/0);
    ASSERT_TRUE(status.ok()) << status;
    std::vector<float> expected = Random(1);
    ASSERT_TRUE(Write(kWeights, 0, expected).ok());
    for (int64_t i = 0; i < kUpdates; ++i)
      for (int64_t j = 0; j < kElements / 2; ++j) {
        float &weight = expected[kChunks[i % 3] * kElements / 2 + j];
        weight = Next(weight, kChunks[i % 3]);
      }
    status = engine->Run(Drive, 1, 0);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Read(kWeights, 0), expected);
  }
}

// What slots and sums take is taken before the program's memory: where too little is left, the
// error says who has what.
TEST_F(UpdateSlotsTest, MemoryIsTakenBeforeTheProgramsOwn) {
  ASSERT_TRUE(MakeOnDevice(/*clip=*/1).ok());
  const int64_t arena = engine->ArenaBytes(BOA_DEVICE);
  const int64_t slots = int64_t(cuda::GpuStream::kDepth) * 192 + 8;
  Fake(absl::StrCat("memory=", arena + slots));
  ASSERT_TRUE(MakeOnDevice(/*clip=*/1).ok());
  EXPECT_TRUE(Train().ok());
  Fake(absl::StrCat("memory=", arena + slots - 1));
  EXPECT_THAT(
      std::string(MakeOnDevice(/*clip=*/1).message()),
      testing::MatchesRegex("the program takes .* of device memory, but of the .* are free: "
                            "CUDA itself and other processes have 0 B, the program's code "
                            "and its libraries 12.0 KiB; .*"));
}

// A norm is waited for by an event, which sleeps; a stream is waited for by a thread that does not.
TEST_F(UpdateSlotsTest, NormsAreWaitedForAsleep) {
  Fake("fail=cuStreamSynchronize:1000000000");
  ASSERT_TRUE(MakeOnDevice(/*clip=*/1).ok());
  const int64_t calls = boa_fake_cuda_calls("cuStreamSynchronize");
  EXPECT_TRUE(Train().ok());
  EXPECT_EQ(boa_fake_cuda_calls("cuStreamSynchronize"), calls);
}

} // namespace
} // namespace boa::cuda_test
