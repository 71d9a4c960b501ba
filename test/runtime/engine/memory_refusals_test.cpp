//===- memory_refusals_test.cpp - What no memory can hold or reach -------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/engine/memory_fixture.h"

namespace boa::memory_tests {
namespace {

TEST_P(MemoryTest, WithoutASlotOfThatSizeNothingOpens) {
  Program with = MakeProgram(GetParam());
  with.storages[kDisk].pools = {{BOA_HOST, 2, 1}};
  Make(with);
  auto create = [](int32_t space, int32_t count) {
    return [=](boa_context *context) {
      boa_rt_release(context, boa_rt_create(context, kDisk, 0, 0, count, space), 0);
    };
  };
  EXPECT_TRUE(Run(create(BOA_HOST, 2)).ok());
  // Of one memory the other space's slots are as good.
  absl::Status status = Run(create(BOA_DEVICE, 2));
  EXPECT_EQ(status.message(),
            separate() ? "the program asks for chunks that no slot can hold" : "");
  EXPECT_EQ(Run(create(BOA_HOST, 3)).message(),
            "the program asks for chunks that no slot can hold");
}

TEST_P(MemoryTest, CopiesAreOfChunksThatBothHold) {
  for (auto [first, count] : {std::pair<int32_t, int32_t>{1, 2}, {0, 1}, {2, 1}, {1, 0}}) {
    std::filesystem::remove_all(scratch.path("state"));
    Make();
    absl::Status status = Run([first = first, count = count](boa_context *context) {
      boa_buffer from = boa_rt_prefetch(context, kOnDevice, 0, 0, 2, BOA_DEVICE, 0);
      boa_buffer to = boa_rt_create(context, kOnDevice, 1, 1, 3, BOA_HOST);
      boa_rt_copy(context, from, to, first, count);
    });
    EXPECT_EQ(status.message(), "the program copies chunks that a buffer does not hold");
  }
  std::filesystem::remove_all(scratch.path("state"));
  Make();
  absl::Status status = Run([](boa_context *context) {
    boa_buffer from = boa_rt_prefetch(context, kOnDevice, 0, 0, 2, BOA_DEVICE, 0);
    boa_buffer to = boa_rt_prefetch(context, kOnHost, 0, 0, 2, BOA_HOST, 0);
    boa_rt_copy(context, from, to, 0, 1);
  });
  EXPECT_FALSE(status.ok()) << "of two storages";
}

// Of two memories, kernels reach one, the optimizer that in which it runs.
TEST_P(MemoryTest, TheWrongSpaceIsRefused) {
  Program with = MakeProgram(GetParam());
  Group group;
  group.name = "block";
  group.count = kEntries;
  group.chunks = kChunks;
  group.chunk_elements = kChunk / 4;
  group.elements = kChunks * group.chunk_elements;
  group.weight_type = "f32";
  group.weights = kOnHost;
  with.groups = {group};
  with.train.optimizer.kind = OptimizerKind::sgd;
  with.train.optimizer.rate = RateKind::constant;
  struct Case {
    const char *message;
    std::function<void(boa_context *)> run;
    int32_t space = BOA_HOST; // of the optimizer
  };
  const Case cases[] = {
      {"the program runs a kernel on a buffer in host memory",
       [](boa_context *context) {
         boa_buffer whole = boa_rt_prefetch(context, kOnHost, 0, 0, kChunks, BOA_HOST, 0);
         boa_rt_launch(context, kDouble, 1, &whole);
       }},
      {"the program updates a buffer in device memory",
       [](boa_context *context) {
         boa_buffer weights = boa_rt_prefetch(context, kOnHost, 0, 0, kChunks, BOA_HOST, 0);
         boa_buffer gradient = boa_rt_prefetch(context, kOnDevice, 0, 0, kChunks, BOA_DEVICE, 0);
         boa_rt_update(context, 0, 0, 1, weights, 0, gradient, 0, nullptr);
       }},
      {"the program takes the norm of a buffer in device memory",
       [](boa_context *context) {
         boa_rt_norm(context, 0, boa_rt_prefetch(context, kOnDevice, 0, 0, 1, BOA_DEVICE, 0));
       }},
      {"the program updates a buffer in host memory",
       [](boa_context *context) {
         boa_buffer weights = boa_rt_prefetch(context, kOnHost, 0, 0, kChunks, BOA_HOST, 0);
         boa_buffer gradient = boa_rt_prefetch(context, kOnDevice, 0, 0, kChunks, BOA_DEVICE, 0);
         boa_rt_update(context, 0, 0, 1, weights, 0, gradient, 0, nullptr);
       },
       BOA_DEVICE},
      {"the program takes the norm of a buffer in host memory",
       [](boa_context *context) {
         boa_rt_norm(context, 0, boa_rt_prefetch(context, kOnHost, 0, 0, 1, BOA_HOST, 0));
       },
       BOA_DEVICE},
  };
  for (const auto &[message, run, space] : cases) {
    with.plan.update = space == BOA_DEVICE ? UpdatePlace::device : UpdatePlace::host;
    std::filesystem::remove_all(scratch.path("state"));
    Make(with);
    for (int32_t storage : {kMixed, kOnHost, kOnDevice})
      Fill(storage, 0, 0);
    absl::Status status = Run(run);
    EXPECT_EQ(status.message(), separate() ? message : "");
  }
}

} // namespace
} // namespace boa::memory_tests
