//===- step_queue_test.cpp - The loss of a step ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step is cut into micro-batches, and its targets may be counted unevenly. Neither may change
// its loss, nor the weight of a target in it.
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/step_queue.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <set>
#include <vector>

namespace boa {
namespace {

constexpr int64_t kBatch = 4, kContext = 3;
// [4, 3], -1: not counted. Each counted target t has the loss t.
constexpr int32_t kTargets[] = {1, -1, -1, 7, 2, 4, -1, -1, -1, -1, 3, -1};

/// The batch above, cut into micro-batches of so many sequences.
MicroBatches Cut(int64_t micro_batch, bool counted = true) {
  Program program;
  program.train.batch = kBatch;
  program.plan.micro_batch = micro_batch;
  program.model.context = kContext;
  MicroBatches batches(program);
  const int32_t *from = kTargets;
  for (size_t m = 0; m < batches.targets.size(); ++m) {
    int64_t sum = 0, count = 0;
    for (int32_t &target : batches.targets[m]) {
      target = counted ? *from++ : -1;
      sum += std::max(target, 0);
      count += target >= 0;
    }
    // The kernel's: a mean over the counted targets.
    batches.losses[m] = float(sum) / float(std::max<int64_t>(count, 1));
  }
  batches.CountTargets();
  return batches;
}

TEST(StepQueueTest, TheLossDoesNotDependOnTheCut) {
  for (int64_t micro_batch : {1, 2, 4}) {
    const MicroBatches batches = Cut(micro_batch);
    EXPECT_EQ(batches.counted(), 5) << micro_batch;
    EXPECT_NEAR(batches.MeanLoss(), 17.0 / 5, 1e-6) << micro_batch;
    EXPECT_NEAR(batches.TotalLoss(), 17, 1e-5) << micro_batch;
  }
}

// The gradient of a micro-batch's mean is scaled by its share: each target has 1/5.
TEST(StepQueueTest, AMicroBatchHasTheWeightOfItsTargets) {
  EXPECT_EQ(Cut(1).loss_gradients, (std::vector<float>{0.2f, 0.6f, 0, 0.2f}));
  EXPECT_EQ(Cut(2).loss_gradients, (std::vector<float>{0.8f, 0.2f}));
  EXPECT_EQ(Cut(4).loss_gradients, (std::vector<float>{1}));
}

TEST(StepQueueTest, AStepWithoutTargetsHasNoLoss) {
  const MicroBatches batches = Cut(2, /*counted=*/false);
  EXPECT_EQ(batches.MeanLoss(), 0);
  EXPECT_EQ(batches.loss_gradients, (std::vector<float>{0, 0}));
}

constexpr int64_t kLayers = 3;

/// The keys of dropout of a step, [layer][sequence * context + position].
std::vector<std::vector<int32_t>> Keys(int64_t micro_batch, int64_t step, int64_t seed = 1) {
  Program program;
  program.train.batch = kBatch;
  program.train.seed = seed;
  program.plan.micro_batch = micro_batch;
  program.model.context = kContext;
  Storage storage;
  storage.role = "dropout_keys";
  storage.entries = {kLayers, kBatch / micro_batch};
  program.storages.push_back(storage);
  MicroBatches batches(program);
  for (const std::vector<int32_t> &entry : batches.dropout_keys)
    EXPECT_EQ(std::set<int32_t>(entry.begin(), entry.end()), std::set<int32_t>{0});
  batches.SetDropoutKeys(program, step);
  std::vector<std::vector<int32_t>> keys(kLayers);
  for (size_t entry = 0; entry < batches.dropout_keys.size(); ++entry) {
    std::vector<int32_t> &of_layer = keys[entry / size_t(kBatch / micro_batch)];
    of_layer.insert(of_layer.end(), batches.dropout_keys[entry].begin(),
                    batches.dropout_keys[entry].end());
  }
  return keys;
}

// Each token of each layer and step has a key of its own, which is not 0 and does not depend on the
// cut.
TEST(StepQueueTest, KeysOfDropoutDoNotDependOnTheCut) {
  const auto keys = Keys(1, 1);
  EXPECT_EQ(keys, Keys(2, 1));
  EXPECT_EQ(keys, Keys(4, 1));
  std::set<int32_t> all = {0};
  for (const auto &step : {keys, Keys(1, 2), Keys(1, 1, /*seed=*/2)})
    for (const std::vector<int32_t> &layer : step)
      all.insert(layer.begin(), layer.end());
  EXPECT_EQ(all.size(), size_t(1 + 3 * kLayers * kBatch * kContext));
}

} // namespace
} // namespace boa
