//===- devices_test.cpp - Two memories --------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The split device faults where a side touches what is not its own: the graph, which
// refuses such programs, is left out here.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/device.h"
#include "test/runtime/reference_optimizer.h"

#include "gtest/gtest.h"

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace boa {
namespace {

constexpr int64_t kChunk = 1 << 20;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BOA_SANITIZED
#endif
#endif

#ifndef BOA_SANITIZED // they make something else of the signal

void Touch(void *const *buffers, void *workspace, boa_queue *) {
  *static_cast<volatile char *>(workspace) = 1;
  *static_cast<volatile char *>(buffers[0]) = 1;
}
const boa_kernel kKernels[] = {Touch};

class Waiting : public DeviceListener {
public:
  void Done(const Work &, int64_t, int64_t, absl::Status status) override {
    std::lock_guard lock(mutex);
    done = true;
    result = status;
    changed.notify_all();
  }
  void Moved(const Work &, int32_t, int64_t, int64_t, int64_t) override {}
  void Wake() override {}
  absl::Status Wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done; });
    return result;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  absl::Status result;
};

/// Runs one piece of work by itself and exits with 0.
[[noreturn]] void RunAlone(Work work, bool separate, int32_t optimizer = BOA_HOST) {
  Program program;
  program.machine.memory = separate ? MemoryKind::separate : MemoryKind::unified;
  program.machine.threads = 1;
  program.kernels = {{"touch", {{true, true}}, 4096}};
  program.train.optimizer.kind = OptimizerKind::sgd;
  program.train.optimizer.rate = RateKind::constant;
  program.plan.update = optimizer == BOA_DEVICE ? UpdatePlace::device : UpdatePlace::host;
  Group group;
  group.elements = group.chunk_elements = kChunk / 4;
  group.weight_type = "f32";
  group.parameters = {{"w", {kChunk / 4}, 0, "zeros", 0, 0, 1, 0}};
  program.groups = {group};
  std::unique_ptr<Device> device =
      CreateCpuDevice(program, {kKernels, nullptr, &kReferenceSgd}, nullptr, {});
  Waiting listener;
  if (!device->Start({3 * kChunk, 2 * kChunk}, {BOA_DEVICE, 2 * kChunk}, &listener).ok())
    std::_Exit(2);
  device->Submit(work);
  std::_Exit(listener.Wait().ok() ? 0 : 3);
}

Work MakeWork(Work::Kind kind, std::vector<Location> buffers) {
  Work work;
  work.kind = kind;
  work.step = 1;
  work.count = 1;
  work.bytes = kChunk;
  work.buffers = std::move(buffers);
  return work;
}

class SplitDeathTest : public testing::Test {
protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SplitDeathTest, EachSideReachesItsOwnAlone) {
  const Location device{BOA_DEVICE, 0}, host{BOA_HOST, kChunk}, none;
  const auto well = testing::ExitedWithCode(0);
  const auto fault = testing::KilledBySignal(SIGSEGV);
  using Kind = Work::Kind;
  EXPECT_EXIT(RunAlone(MakeWork(Kind::kernel, {device}), true), well, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::kernel, {host}), true), fault, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::update, {host, none, {BOA_HOST, 0}}), true), well, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::update, {host, none, device}), true), fault, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::update, {device, none, host}), true), fault, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::norm, {host}), true), well, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::norm, {device}), true), fault, "");
  // An optimizer on the device reaches what kernels reach.
  EXPECT_EXIT(
      RunAlone(MakeWork(Kind::update, {device, none, {BOA_DEVICE, kChunk}}), true, BOA_DEVICE),
      well, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::update, {device, none, host}), true, BOA_DEVICE), fault, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::norm, {device}), true, BOA_DEVICE), well, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::norm, {host}), true, BOA_DEVICE), fault, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::copy, {host, device}), true), well, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::copy, {device, host}), true), well, "");
  EXPECT_EXIT(RunAlone(MakeWork(Kind::zero, {device}), true), well, "");
  // Of one memory all reach all: there a location in it has no other space.
  EXPECT_EXIT(RunAlone(MakeWork(Kind::norm, {device}), false), well, "");
}

#endif

} // namespace
} // namespace boa
