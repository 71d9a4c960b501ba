//===- beginnings_test.cpp - Deaths at every moment of a beginning --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A new state lacks the moments, and the first step writes them. A process dies at each
// operation of its disk, from the making of the state to the commit after the second step. The
// next one begins, or resumes, and ends with the losses and weights of an undisturbed run.
//
//===----------------------------------------------------------------------===//
#include "test/simulation/campaign.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace boa {
namespace {

struct Beginning {
  const char *tier, *weight_type;
  bool delayed;
};

class BeginningsTest : public testing::TestWithParam<Beginning> {};

TEST_P(BeginningsTest, LoseNothing) {
  const Scratch scratch(FastDirectory());
  Trainers trainers(scratch.path());
  Process process;
  process.paths = {"/ssd/state", "/ssd/second"};
  process.options.tier = GetParam().tier;
  process.options.weight_type = GetParam().weight_type;
  process.options.delayed = GetParam().delayed;
  process.options.steps = 3;
  process.options.commit_every = 2;
  for (Fault how : {Fault::kill, Fault::power_loss}) {
    int64_t from_zero = 0; // deaths after which the moments are absent still
    bool died = true;
    for (int64_t operation = 1; died && !HasFailure(); ++operation) {
      SCOPED_TRACE(absl::StrCat(FaultName(how), " at operation ", operation));
      SimulatedDisk disk{uint64_t(operation)};
      disk.AddDevice("/ssd");
      SeededScheduler scheduler{uint64_t(operation)};
      process.disk = &disk;
      process.scheduler = &scheduler;
      process.resume = false;
      trainers.Begin();
      disk.DieAt(operation, how);
      Ended ended = trainers.Run(process);
      died = disk.Dead();
      if (!died) {
        EXPECT_TRUE(ended.status.ok()) << ended.status;
        break;
      }
      disk.DieAt(0, how);
      disk.Restart();
      ended = trainers.Run(process);
      if (absl::IsAlreadyExists(ended.status)) {
        process.resume = true;
        ended = trainers.Run(process);
        from_zero += ended.resumed == 0;
      }
      EXPECT_TRUE(ended.status.ok()) << ended.status;
      EXPECT_EQ(trainers.Compare(process.options, ended.trained, /*whole=*/true), "");
    }
    EXPECT_GT(from_zero, 5);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, BeginningsTest,
                         testing::Values(Beginning{"ssd", "f32", false},
                                         Beginning{"ssd", "bf16", true},
                                         Beginning{"device", "f32", false}));

} // namespace
} // namespace boa
